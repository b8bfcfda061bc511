/* SPDX-License-Identifier: MIT */
/*
 * void janus_cc_pay_1(void) and so on to janus_cc_pay_8: slow paths of checks of 1 to 8 ops, for
 * code without AVX. They call janus_check_stub(1) and so on.
 *
 * They keep every general register but r11, and xmm0 to xmm15, as LLVM's preserve_all demands. So
 * code around such a check loses no register to it, not even one for an argument.
 *
 * The caller's stack need not be aligned. CFI names the place of every register that is saved here.
 */
    .text
    .irp    cost, 1, 2, 3, 4, 5, 6, 7, 8
    .globl  janus_cc_pay_\cost
    .hidden janus_cc_pay_\cost
    .type   janus_cc_pay_\cost, @function
janus_cc_pay_\cost:
    .cfi_startproc
    endbr64
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rdi, 0
    movl    $\cost, %edi
    jmp     pay_and_keep
    .cfi_endproc
    .size   janus_cc_pay_\cost, . - janus_cc_pay_\cost
    .endr

    .type   pay_and_keep, @function
    .p2align 4
pay_and_keep:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_rel_offset %rdi, 0
    subq    $256, %rsp
    .cfi_adjust_cfa_offset 256
    .set    place, 0
    .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups  %xmm\number, place(%rsp)
    .cfi_rel_offset %xmm\number, place
    .set    place, place + 16
    .endr
    callq   janus_check_stub@PLT
    .set    place, 0
    .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups  place(%rsp), %xmm\number
    .cfi_restore %xmm\number
    .set    place, place + 16
    .endr
    addq    $256, %rsp
    .cfi_adjust_cfa_offset -256
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rdi
    ret
    .cfi_endproc
    .size   pay_and_keep, . - pay_and_keep

    /* GNU property: IBT and SHSTK, as this code only calls and returns. */
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long   4, 16, 5
    .asciz  "GNU"
    .long   0xc0000002, 4, 3, 0

    .section .note.GNU-stack, "", @progbits
