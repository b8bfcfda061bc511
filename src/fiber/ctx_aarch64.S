/* SPDX-License-Identifier: MIT */
/*
 * int jrt_ctx_switch(void **save_sp, void *load_sp, int message);
 *                    x0              x1             w2
 *
 * Suspends the caller and resumes the context whose stack pointer is load_sp. Returns, on the
 * resumed stack, the message that its resumer passed.
 *
 * Saved:      x19-x28, x29, x30, d8-d15 and FPCR, which the callee must preserve by AAPCS64
 *             (6.1).
 * Not saved:  caller-saved registers, the upper halves of v8-v15 (the caller's by the ABI),
 *             FPSR, the signal mask, TPIDR_EL0. A context may therefore move between threads,
 *             but must not keep a thread-local's address across a switch.
 * Stack:      a suspended stack ends in one jrt_ctx_frame, 176 bytes, 16-byte aligned:
 *
 *                 load_sp -> +0   x19 ... x28
 *                            +80  x29, x30 (where to go on)
 *                            +96  d8 ... d15
 *                            +160 FPCR, unused
 *
 * CFI:        correct at every instruction. Both stacks hold the same frame, so the rules hold
 *             before and after sp changes. The rules of registers are added when all are stored
 *             and dropped when all are loaded.
 * Cost:       FPCR is written only if it differs: the write may flush the pipeline. The end is
 *             `br`, not `ret`: no `bl` on this stack matches it in the return predictor.
 * BTI, PAC:   the targets of `br` are return addresses without a landing pad. So this object
 *             carries no BTI property, and the linker clears it for the whole program. Callers
 *             sign return addresses (PAC) with their own sp, so these stay valid. Guarded
 *             control stacks (GCS) are not supported, as CET on x86-64.
 */
#include "fiber/ctx_aarch64.h"

/* All registers are in the frame at sp. */
.macro IN_FRAME
    .cfi_rel_offset x19, JRT_CTX_X19
    .cfi_rel_offset x20, JRT_CTX_X19 + 8
    .cfi_rel_offset x21, JRT_CTX_X21
    .cfi_rel_offset x22, JRT_CTX_X21 + 8
    .cfi_rel_offset x23, JRT_CTX_X23
    .cfi_rel_offset x24, JRT_CTX_X23 + 8
    .cfi_rel_offset x25, JRT_CTX_X25
    .cfi_rel_offset x26, JRT_CTX_X25 + 8
    .cfi_rel_offset x27, JRT_CTX_X27
    .cfi_rel_offset x28, JRT_CTX_X27 + 8
    .cfi_rel_offset x29, JRT_CTX_X29
    .cfi_rel_offset x30, JRT_CTX_X30
    .cfi_rel_offset d8, JRT_CTX_D8
    .cfi_rel_offset d9, JRT_CTX_D8 + 8
    .cfi_rel_offset d10, JRT_CTX_D10
    .cfi_rel_offset d11, JRT_CTX_D10 + 8
    .cfi_rel_offset d12, JRT_CTX_D12
    .cfi_rel_offset d13, JRT_CTX_D12 + 8
    .cfi_rel_offset d14, JRT_CTX_D14
    .cfi_rel_offset d15, JRT_CTX_D14 + 8
.endm

/* Loads the registers from the frame at sp and continues where that context left. w2: the
 * message. */
.macro LEAVE_BY_FRAME
    ldp     x19, x20, [sp, #JRT_CTX_X19]
    ldp     x21, x22, [sp, #JRT_CTX_X21]
    ldp     x23, x24, [sp, #JRT_CTX_X23]
    ldp     x25, x26, [sp, #JRT_CTX_X25]
    ldp     x27, x28, [sp, #JRT_CTX_X27]
    ldp     x29, x30, [sp, #JRT_CTX_X29]
    ldp     d8, d9, [sp, #JRT_CTX_D8]
    ldp     d10, d11, [sp, #JRT_CTX_D10]
    ldp     d12, d13, [sp, #JRT_CTX_D12]
    ldp     d14, d15, [sp, #JRT_CTX_D14]
    .irp    register, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30
    .cfi_restore \register
    .endr
    .irp    register, d8, d9, d10, d11, d12, d13, d14, d15
    .cfi_restore \register
    .endr
    mov     w0, w2
    add     sp, sp, #JRT_CTX_FRAME_BYTES
    .cfi_adjust_cfa_offset -JRT_CTX_FRAME_BYTES
    br      x30
.endm

/* Stores all registers in the frame at sp. */
.macro SAVE_REGISTERS
    stp     x19, x20, [sp, #JRT_CTX_X19]
    stp     x21, x22, [sp, #JRT_CTX_X21]
    stp     x23, x24, [sp, #JRT_CTX_X23]
    stp     x25, x26, [sp, #JRT_CTX_X25]
    stp     x27, x28, [sp, #JRT_CTX_X27]
    stp     x29, x30, [sp, #JRT_CTX_X29]
    stp     d8, d9, [sp, #JRT_CTX_D8]
    stp     d10, d11, [sp, #JRT_CTX_D10]
    stp     d12, d13, [sp, #JRT_CTX_D12]
    stp     d14, d15, [sp, #JRT_CTX_D14]
    IN_FRAME
.endm

/* Makes a frame for the caller, saves it at [x0] and enters the frame at x1. Jumps to the label if
 * FPCR differs. */
.macro GO_OVER other
    sub     sp, sp, #JRT_CTX_FRAME_BYTES
    .cfi_adjust_cfa_offset JRT_CTX_FRAME_BYTES
    SAVE_REGISTERS
    mrs     x9, fpcr
    str     x9, [sp, #JRT_CTX_FPCR]
    mov     x10, sp
    str     x10, [x0]
    mov     sp, x1                      /* from here on this is the other context */
    ldr     x11, [sp, #JRT_CTX_FPCR]
    cmp     x9, x11
    b.ne    \other
.endm

    .text
    .globl  jrt_ctx_switch
    .hidden jrt_ctx_switch
    .type   jrt_ctx_switch, %function
    .p2align 6
jrt_ctx_switch:
    .cfi_startproc
    GO_OVER 2f
1:
    .cfi_remember_state
    LEAVE_BY_FRAME
2:
    .cfi_restore_state
    msr     fpcr, x11
    b       1b
    .cfi_endproc
    .size   jrt_ctx_switch, . - jrt_ctx_switch

/*
 * int jrt_ctx_switch_then(void **save_sp, void *load_sp, int (*then)(void *), void *argument);
 *                         x0              x1             x2                   x3
 *
 * Switches as jrt_ctx_switch. The resumed context gets what then(argument) returns, called below
 * its frame.
 */
    .globl  jrt_ctx_switch_then
    .hidden jrt_ctx_switch_then
    .type   jrt_ctx_switch_then, %function
    .p2align 6
jrt_ctx_switch_then:
    .cfi_startproc
    GO_OVER 2f
1:
    mov     x0, x3
    blr     x2
    mov     w2, w0
    .cfi_remember_state
    LEAVE_BY_FRAME
2:
    .cfi_restore_state
    msr     fpcr, x11
    b       1b
    .cfi_endproc
    .size   jrt_ctx_switch_then, . - jrt_ctx_switch_then

/*
 * int jrt_ctx_call(struct jrt_landing *landing, int64_t (*entry)(void *), void *argument);
 *                  x0                           x1                        x2
 *
 * The frame of a switch stays on this stack while entry runs, so that a switch to it can end the
 * call. After an ordinary return, entry has preserved the registers, and the frame is dropped. Its
 * FPCR is zero.
 */
    .globl  jrt_ctx_call
    .hidden jrt_ctx_call
    .type   jrt_ctx_call, %function
    .p2align 6
jrt_ctx_call:
    .cfi_startproc
    .cfi_personality 0x1b, jrt_ctx_personality /* [exit-boundary] in exit.c */
    sub     sp, sp, #JRT_CTX_FRAME_BYTES
    .cfi_adjust_cfa_offset JRT_CTX_FRAME_BYTES
    SAVE_REGISTERS
    str     xzr, [sp, #JRT_CTX_FPCR]
    mov     x19, x0
    mov     x9, sp
    str     x9, [x0, #JRT_LANDING_SP]
    mov     x0, x2
    blr     x1
    str     x0, [x19, #JRT_LANDING_RESULT]
    ldr     x19, [sp, #JRT_CTX_X19]
    ldp     x29, x30, [sp, #JRT_CTX_X29]
    .irp    register, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30
    .cfi_restore \register
    .endr
    .irp    register, d8, d9, d10, d11, d12, d13, d14, d15
    .cfi_restore \register
    .endr
    add     sp, sp, #JRT_CTX_FRAME_BYTES
    .cfi_adjust_cfa_offset -JRT_CTX_FRAME_BYTES
    mov     w0, #0
    ret
    .cfi_endproc
    .size   jrt_ctx_call, . - jrt_ctx_call

/*
 * The first instructions of a fresh context. The jump above arrives with the main function in x19,
 * the argument in x20 and the message in w0. Undefined x30: a backtrace ends here.
 */
    .globl  jrt_ctx_entry
    .hidden jrt_ctx_entry
    .type   jrt_ctx_entry, %function
    .p2align 4
jrt_ctx_entry:
    .cfi_startproc
    .cfi_personality 0x1b, jrt_ctx_personality /* [exit-boundary] in exit.c */
    .cfi_undefined x30
    nop                                 /* JRT_CTX_ENTRY_SKIP */
    mov     w1, w0
    mov     x0, x20
    blr     x19
    brk     #1
    .cfi_endproc
    .size   jrt_ctx_entry, . - jrt_ctx_entry

/* Landing from a signal: sp is a suspended context's frame, w2 is the message. */
    .globl  jrt_ctx_land
    .hidden jrt_ctx_land
    .type   jrt_ctx_land, %function
    .p2align 4
jrt_ctx_land:
    .cfi_startproc
    .cfi_def_cfa sp, JRT_CTX_FRAME_BYTES
    IN_FRAME
    ldr     x11, [sp, #JRT_CTX_FPCR]
    msr     fpcr, x11
    LEAVE_BY_FRAME
    .cfi_endproc
    .size   jrt_ctx_land, . - jrt_ctx_land

    /* The thread's record. It stands in this file because assembly in C names it, which link-time
     * optimisation does not see. */
    .section .tbss, "awT", %nobits
    .globl  jrt_thread_here
    .hidden jrt_thread_here
    .type   jrt_thread_here, %object
    .p2align 6
jrt_thread_here:
    .zero   JRT_THREAD_BYTES
    .size   jrt_thread_here, JRT_THREAD_BYTES

    /* The word that yield checks count down, <janusrt/yield.h>. */
    .globl  janus_fuel
    .type   janus_fuel, %object
    .p2align 3
janus_fuel:
    .zero   8
    .size   janus_fuel, 8

    .section .note.GNU-stack, "", %progbits
