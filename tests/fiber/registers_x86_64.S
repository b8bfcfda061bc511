/* SPDX-License-Identifier: MIT */
/* uint64_t registers_lost(void **save_sp rdi, void **load_sp rsi, uint64_t seed rdx) */
    .text
    .globl  registers_lost
    .type   registers_lost, @function
registers_lost:
    .cfi_startproc
    .irp register, rbx, rbp, r12, r13, r14, r15
    pushq   %\register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endr
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    leaq    1(%rdx), %rbx
    leaq    2(%rdx), %rbp
    leaq    3(%rdx), %r12
    leaq    4(%rdx), %r13
    leaq    5(%rdx), %r14
    leaq    6(%rdx), %r15
    movq    (%rsi), %rsi
    call    jrt_ctx_switch
    xorl    %eax, %eax
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    .set    step, 1
    .irp register, rbx, rbp, r12, r13, r14, r15
    subq    %rdx, %\register
    cmpq    $step, %\register
    setne   %cl
    movzbl  %cl, %ecx
    addq    %rcx, %rax
    .set    step, step + 1
    .endr
    .irp register, r15, r14, r13, r12, rbp, rbx
    popq    %\register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endr
    ret
    .cfi_endproc
    .size   registers_lost, . - registers_lost
    .section .note.GNU-stack, "", @progbits
