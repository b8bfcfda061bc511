/* SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "plat/peek.h"
#include "plat/seam.h"

#include <ucontext.h>

/* `yield` does nothing on cores without sibling threads. `isb` takes about as long as the `pause`
 * of x86-64. */
void jrt_cpu_relax(void)
{
    if (jrt_unlikely(jrt_world_now() != NULL)) jrt_thread_yield();
    __asm__ volatile("isb" ::: "memory");
}

bool jrt_peek_recover(void *interrupted)
{
    ucontext_t *context = interrupted;
    uintptr_t   pc = (uintptr_t)context->uc_mcontext.pc;
    if (pc != (uintptr_t)jrt_peek_word_load && pc != (uintptr_t)jrt_peek_byte_load) return false;
    /* The place to continue lies right behind one of the loads. */
    jrt_debug_invariant("peek-fault", (uintptr_t)jrt_peek_done - (uintptr_t)jrt_peek_word_load < 8);
    context->uc_mcontext.regs[0] = (unsigned long long)JRT_PEEK_NOTHING;
    context->uc_mcontext.pc = (uintptr_t)jrt_peek_done;
    return true;
}
