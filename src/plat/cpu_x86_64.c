/* SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "plat/peek.h"
#include "plat/seam.h"

#include <ucontext.h>

/* `pause` also keeps the loop from filling the pipeline with loads. The CPU would discard them all
 * when the awaited word changes. */
void jrt_cpu_relax(void)
{
    if (jrt_unlikely(jrt_world_now() != NULL)) jrt_thread_yield();
    __builtin_ia32_pause();
}

bool jrt_peek_recover(void *interrupted)
{
    ucontext_t *context = interrupted;
    greg_t     *registers = context->uc_mcontext.gregs;
    uintptr_t   pc = (uintptr_t)registers[REG_RIP];
    if (pc != (uintptr_t)jrt_peek_word_load && pc != (uintptr_t)jrt_peek_byte_load) return false;
    /* The place to continue lies right behind one of the loads. */
    jrt_debug_invariant("peek-fault", (uintptr_t)jrt_peek_done - (uintptr_t)jrt_peek_word_load < 8);
    registers[REG_RAX] = JRT_PEEK_NOTHING;
    registers[REG_RIP] = (greg_t)(uintptr_t)jrt_peek_done;
    return true;
}
