/* SPDX-License-Identifier: MIT */
/* The parts of the aarch64 switch that are written in C. */
#include "fiber/ctx.h"

#include <ucontext.h>

_Static_assert(offsetof(struct jrt_landing, sp) == JRT_LANDING_SP, "as in assembly");
_Static_assert(offsetof(struct jrt_landing, result) == JRT_LANDING_RESULT, "as in assembly");

void *jrt_ctx_make(void *top, jrt_ctx_main *main, void *argument)
{
    struct jrt_ctx_frame *frame = (struct jrt_ctx_frame *)top - 1;
    *frame = (struct jrt_ctx_frame){
        .x19 = (uintptr_t)main,
        .x20 = (uintptr_t)argument,
        .x29 = 0, /* frame-pointer walks end here */
        .x30 = (void (*)(void))((uintptr_t)jrt_ctx_entry + JRT_CTX_ENTRY_SKIP),
    };
    __asm__ volatile("mrs %0, fpcr" : "=r"(frame->fpcr));
    return frame;
}

void jrt_ctx_land_from_signal(ucontext_t *context, void *load_sp, int message)
{
    context->uc_mcontext.sp = (uintptr_t)load_sp;
    context->uc_mcontext.regs[2] = (unsigned long long)message;
    context->uc_mcontext.pc = (uintptr_t)jrt_ctx_land;
}

const void *jrt_ctx_signal_pc(const ucontext_t *context)
{
    return (const void *)context->uc_mcontext.pc;
}

const void *jrt_ctx_signal_sp(const ucontext_t *context)
{
    return (const void *)context->uc_mcontext.sp;
}
