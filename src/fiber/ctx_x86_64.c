/* SPDX-License-Identifier: MIT */
/* The parts of the x86-64 switch that are written in C. */
#include "fiber/ctx.h"

#include <ucontext.h>

_Static_assert(offsetof(struct jrt_landing, sp) == JRT_LANDING_SP, "as in assembly");
_Static_assert(offsetof(struct jrt_landing, result) == JRT_LANDING_RESULT, "as in assembly");

void *jrt_ctx_make(void *top, jrt_ctx_main *main, void *argument)
{
    struct jrt_ctx_frame *frame = (struct jrt_ctx_frame *)top - 1;
    *frame = (struct jrt_ctx_frame){
        .rbx = (uintptr_t)main,
        .rbp = 0, /* frame-pointer walks end here */
        .r12 = (uintptr_t)argument,
        .rip = (void (*)(void))((uintptr_t)jrt_ctx_entry + JRT_CTX_ENTRY_SKIP),
    };
    __asm__ volatile("stmxcsr %0" : "=m"(frame->mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(frame->x87_cw));
    return frame;
}

void jrt_ctx_land_from_signal(ucontext_t *context, void *load_sp, int message)
{
    greg_t *registers = context->uc_mcontext.gregs;
    registers[REG_RSP] = (greg_t)load_sp;
    registers[REG_RDX] = message;
    registers[REG_RIP] = (greg_t)jrt_ctx_land;
    /* Trap, direction, nested task and alignment check are clear when a function starts. */
    registers[REG_EFL] &= ~(greg_t)(1 << 8 | 1 << 10 | 1 << 14 | 1 << 18);
}

const void *jrt_ctx_signal_pc(const ucontext_t *context)
{
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
}

const void *jrt_ctx_signal_sp(const ucontext_t *context)
{
    return (const void *)context->uc_mcontext.gregs[REG_RSP];
}
