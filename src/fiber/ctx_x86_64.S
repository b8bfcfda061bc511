/* SPDX-License-Identifier: MIT */
/*
 * int jrt_ctx_switch(void **save_sp, void *load_sp, int message);
 *                    rdi             rsi            edx
 *
 * Suspends the caller and resumes the context whose stack pointer is load_sp. Returns, on the
 * resumed stack, the message that its resumer passed.
 *
 * Saved:      rbx rbp r12-r15, MXCSR, x87 control word, which the callee must preserve by the
 *             SysV psABI (3.2.1, 3.2.3).
 * Not saved:  caller-saved and vector registers, the x87 stack (empty at a call), the signal
 *             mask, fs/gs. A context may therefore move between threads, but must not keep a
 *             thread-local's address across a switch.
 * Stack:      a suspended stack ends in one jrt_ctx_frame, 64 bytes, whose end is where rsp was
 *             before the call, 16-byte aligned:
 *
 *                 load_sp -> +0  mxcsr (4), x87 control word (2), unused (2)
 *                            +8  rbx  rbp  r12  r13  r14  r15
 *                            +56 return address
 *
 * CFI:        correct at every instruction. Both stacks hold the same frame, so the rules hold
 *             before and after rsp changes. The rules of registers are added when all are stored
 *             and dropped when all are loaded.
 * Cost:       9 cycles on Zen 4 without MXCSR. `stmxcsr` alone adds 9 more and has no
 *             substitute. `ldmxcsr` after it is free. Comparing first is not free, because the
 *             load waits for the store. For the x87 word the comparison is cheaper. The end is
 *             a jump, not `ret`: no call pushed this return address, so the return predictor
 *             would miss, 20 cycles. See bench/switch_bench.c.
 * Red zone:   MXCSR is stored below rsp before rsp moves. The ABI reserves 128 bytes there.
 * CET:        not safe with shadow stacks (SHSTK): a jump to another stack's return address
 *             leaves the shadow stack behind. This object carries no SHSTK property, so the
 *             linker clears it for the whole program, and the kernel does not turn it on.
 *             Indirect branch tracking (IBT) works, and the property says so. Entries begin
 *             with endbr64, and the jumps to return addresses are `notrack`.
 */
#include "fiber/ctx_x86_64.h"

/* All registers are in the frame at rsp. */
.macro IN_FRAME
    .cfi_rel_offset %rbx, JRT_CTX_RBX
    .cfi_rel_offset %rbp, JRT_CTX_RBP
    .cfi_rel_offset %r12, JRT_CTX_R12
    .cfi_rel_offset %r13, JRT_CTX_R13
    .cfi_rel_offset %r14, JRT_CTX_R14
    .cfi_rel_offset %r15, JRT_CTX_R15
.endm

/* Stores all registers in the frame at rsp. */
.macro SAVE_REGISTERS
    movq    %rbx, JRT_CTX_RBX(%rsp)
    movq    %rbp, JRT_CTX_RBP(%rsp)
    movq    %r12, JRT_CTX_R12(%rsp)
    movq    %r13, JRT_CTX_R13(%rsp)
    movq    %r14, JRT_CTX_R14(%rsp)
    movq    %r15, JRT_CTX_R15(%rsp)
    IN_FRAME
.endm

/* Loads the registers from the frame at rsp and continues where that context left. edx: the
 * message. */
.macro LEAVE_BY_FRAME
    movq    JRT_CTX_RBX(%rsp), %rbx
    movq    JRT_CTX_RBP(%rsp), %rbp
    movq    JRT_CTX_R12(%rsp), %r12
    movq    JRT_CTX_R13(%rsp), %r13
    movq    JRT_CTX_R14(%rsp), %r14
    movq    JRT_CTX_R15(%rsp), %r15
    .cfi_restore %rbx
    .cfi_restore %rbp
    .cfi_restore %r12
    .cfi_restore %r13
    .cfi_restore %r14
    .cfi_restore %r15
    movq    JRT_CTX_RIP(%rsp), %rcx
    movl    %edx, %eax
    .cfi_register %rip, %rcx
    addq    $JRT_CTX_FRAME_BYTES, %rsp
    .cfi_adjust_cfa_offset -JRT_CTX_FRAME_BYTES
    notrack jmp *%rcx
.endm

    .text
/* Suspends the caller. Afterwards rsp is its frame and r8d the x87 control word. */
.macro ENTER_FRAME
    stmxcsr JRT_CTX_MXCSR - JRT_CTX_RIP(%rsp)
    leaq    -JRT_CTX_RIP(%rsp), %rsp
    .cfi_adjust_cfa_offset JRT_CTX_RIP
    SAVE_REGISTERS
    fnstcw  JRT_CTX_X87_CW(%rsp)
    movzwl  JRT_CTX_X87_CW(%rsp), %r8d
.endm

/* Saves that frame at (rdi) and enters the frame at rsi. Jumps to the label if the x87 word
 * differs. */
.macro GO_OVER other
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp                  /* from here on this is the other context */
    ldmxcsr JRT_CTX_MXCSR(%rsp)
    cmpw    JRT_CTX_X87_CW(%rsp), %r8w
    jne     \other
.endm

    .globl  jrt_ctx_switch
    .hidden jrt_ctx_switch
    .type   jrt_ctx_switch, @function
    .p2align 6
jrt_ctx_switch:
    .cfi_startproc
    endbr64
    ENTER_FRAME
    GO_OVER     2f
1:
    .cfi_remember_state
    LEAVE_BY_FRAME
2:
    .cfi_restore_state
    fldcw   JRT_CTX_X87_CW(%rsp)
    jmp     1b
    .cfi_endproc
    .size   jrt_ctx_switch, . - jrt_ctx_switch

/*
 * int jrt_ctx_switch_then(void **save_sp, void *load_sp, int (*then)(void *), void *argument);
 *                         rdi             rsi            rdx                  rcx
 *
 * Switches as jrt_ctx_switch. The resumed context gets what then(argument) returns, called below
 * its frame. The beginning of the frame is aligned as a call needs it, because its end is.
 */
    .globl  jrt_ctx_switch_then
    .hidden jrt_ctx_switch_then
    .type   jrt_ctx_switch_then, @function
    .p2align 6
jrt_ctx_switch_then:
    .cfi_startproc
    endbr64
    ENTER_FRAME
    GO_OVER     2f
1:
    movq    %rcx, %rdi
    callq   *%rdx
    movl    %eax, %edx
    .cfi_remember_state
    LEAVE_BY_FRAME
2:
    .cfi_restore_state
    fldcw   JRT_CTX_X87_CW(%rsp)
    jmp     1b
    .cfi_endproc
    .size   jrt_ctx_switch_then, . - jrt_ctx_switch_then

/*
 * int jrt_ctx_call(struct jrt_landing *landing, int64_t (*entry)(void *), void *argument);
 *                  rdi                          rsi                       rdx
 *
 * The frame of a switch stays on this stack while entry runs, so that a switch to it can end the
 * call. After an ordinary return, entry has preserved the registers, and the frame is dropped. Its
 * control words are constants: reading MXCSR would double the cost of the call, which is rarely
 * interrupted.
 */
    .globl  jrt_ctx_call
    .hidden jrt_ctx_call
    .type   jrt_ctx_call, @function
    .p2align 6
jrt_ctx_call:
    .cfi_startproc
    .cfi_personality 0x1b, jrt_ctx_personality /* [exit-boundary] in exit.c */
    endbr64
    leaq    -JRT_CTX_RIP(%rsp), %rsp
    .cfi_adjust_cfa_offset JRT_CTX_RIP
    SAVE_REGISTERS
    movl    $JRT_CTX_MXCSR_DEFAULT, JRT_CTX_MXCSR(%rsp)
    movl    $JRT_CTX_X87_CW_DEFAULT, JRT_CTX_X87_CW(%rsp)
    movq    %rdi, %rbx
    movq    %rsp, JRT_LANDING_SP(%rdi)
    movq    %rdx, %rdi
    callq   *%rsi
    movq    %rax, JRT_LANDING_RESULT(%rbx)
    movq    JRT_CTX_RBX(%rsp), %rbx
    .cfi_restore %rbx
    .cfi_restore %rbp
    .cfi_restore %r12
    .cfi_restore %r13
    .cfi_restore %r14
    .cfi_restore %r15
    addq    $JRT_CTX_RIP, %rsp
    .cfi_adjust_cfa_offset -JRT_CTX_RIP
    xorl    %eax, %eax
    ret
    .cfi_endproc
    .size   jrt_ctx_call, . - jrt_ctx_call

/*
 * The first instructions of a fresh context. The jump above arrives with the main function in rbx,
 * the argument in r12 and the message in eax. Undefined rip: a backtrace ends here.
 */
    .globl  jrt_ctx_entry
    .hidden jrt_ctx_entry
    .type   jrt_ctx_entry, @function
    .p2align 4
jrt_ctx_entry:
    .cfi_startproc
    .cfi_personality 0x1b, jrt_ctx_personality /* [exit-boundary] in exit.c */
    .cfi_undefined %rip
    .cfi_def_cfa %rsp, 0
    nop                                 /* JRT_CTX_ENTRY_SKIP */
    endbr64
    movq    %r12, %rdi
    movl    %eax, %esi
    callq   *%rbx
    ud2
    .cfi_endproc
    .size   jrt_ctx_entry, . - jrt_ctx_entry

/*
 * Landing from a signal: rsp is a suspended context's frame, edx is the message. The signal may
 * have interrupted any code, so the x87 stack is emptied too. The handler has cleared the flags.
 */
    .globl  jrt_ctx_land
    .hidden jrt_ctx_land
    .type   jrt_ctx_land, @function
    .p2align 4
jrt_ctx_land:
    .cfi_startproc
    .cfi_def_cfa %rsp, JRT_CTX_FRAME_BYTES
    .cfi_rel_offset %rip, JRT_CTX_RIP
    IN_FRAME
    endbr64
    fninit
    fldcw   JRT_CTX_X87_CW(%rsp)
    ldmxcsr JRT_CTX_MXCSR(%rsp)
    LEAVE_BY_FRAME
    .cfi_endproc
    .size   jrt_ctx_land, . - jrt_ctx_land

    /* The thread's record. It stands in this file because assembly in C names it, which link-time
     * optimisation does not see. */
    .section .tbss, "awT", @nobits
    .globl  jrt_thread_here
    .hidden jrt_thread_here
    .type   jrt_thread_here, @object
    .p2align 6
jrt_thread_here:
    .zero   JRT_THREAD_BYTES
    .size   jrt_thread_here, JRT_THREAD_BYTES

    /* The word that yield checks count down, <janusrt/yield.h>. */
    .globl  janus_fuel
    .type   janus_fuel, @object
    .p2align 3
janus_fuel:
    .zero   8
    .size   janus_fuel, 8

    /* GNU property: IBT yes, SHSTK no. */
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long   4, 16, 5
    .asciz  "GNU"
    .long   0xc0000002, 4, 1, 0

    .section .note.GNU-stack, "", @progbits
