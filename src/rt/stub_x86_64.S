/* SPDX-License-Identifier: MIT */
/*
 * void janus_check_stub(uint64_t cost);
 *                       rdi
 *
 * Calls jrt_check_taken(cost) and keeps every general register but r11, as LLVM's preserve_most
 * demands. rbx, rbp and r12 to r15 are kept by the callee. Vector registers and flags are the
 * caller's to save.
 *
 * The caller's stack need not be aligned. CFI names the place of every register that is saved, so a
 * debugger shows the values in the caller's frame. The callee may switch to another task, or end
 * this one: then these frames are left behind.
 */
    .hidden jrt_check_taken
    .text
    .globl  janus_check_stub
    .type   janus_check_stub, @function
    .p2align 4
janus_check_stub:
    .cfi_startproc
    endbr64
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq    $64, %rsp
    movq    %rax, -8(%rbp)
    movq    %rcx, -16(%rbp)
    movq    %rdx, -24(%rbp)
    movq    %rsi, -32(%rbp)
    movq    %rdi, -40(%rbp)
    movq    %r8, -48(%rbp)
    movq    %r9, -56(%rbp)
    movq    %r10, -64(%rbp)
    .cfi_offset %rax, -24               /* from the CFA, which is rbp + 16 */
    .cfi_offset %rcx, -32
    .cfi_offset %rdx, -40
    .cfi_offset %rsi, -48
    .cfi_offset %rdi, -56
    .cfi_offset %r8, -64
    .cfi_offset %r9, -72
    .cfi_offset %r10, -80
    andq    $-16, %rsp
    callq   jrt_check_taken
    movq    -8(%rbp), %rax
    movq    -16(%rbp), %rcx
    movq    -24(%rbp), %rdx
    movq    -32(%rbp), %rsi
    movq    -40(%rbp), %rdi
    movq    -48(%rbp), %r8
    movq    -56(%rbp), %r9
    movq    -64(%rbp), %r10
    .irp    register, %rax, %rcx, %rdx, %rsi, %rdi, %r8, %r9, %r10
    .cfi_restore \register
    .endr
    movq    %rbp, %rsp
    .cfi_def_cfa_register %rsp
    popq    %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size   janus_check_stub, . - janus_check_stub

    /* GNU property: IBT and SHSTK, as this code only calls and returns. */
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long   4, 16, 5
    .asciz  "GNU"
    .long   0xc0000002, 4, 3, 0

    .section .note.GNU-stack, "", @progbits
