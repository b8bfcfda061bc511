/* SPDX-License-Identifier: MIT */
/* uint64_t registers_lost(void **save_sp x0, void **load_sp x1, uint64_t seed x2) */
    .text
    .globl  registers_lost
    .type   registers_lost, %function
registers_lost:
    .cfi_startproc
    sub     sp, sp, #176
    .cfi_adjust_cfa_offset 176
    stp     x19, x20, [sp, #0]
    stp     x21, x22, [sp, #16]
    stp     x23, x24, [sp, #32]
    stp     x25, x26, [sp, #48]
    stp     x27, x28, [sp, #64]
    stp     x29, x30, [sp, #80]
    .cfi_rel_offset x29, 80
    .cfi_rel_offset x30, 88
    stp     d8, d9, [sp, #96]
    stp     d10, d11, [sp, #112]
    stp     d12, d13, [sp, #128]
    stp     d14, d15, [sp, #144]
    str     x2, [sp, #160]
    .set    step, 1
    .irp register, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29
    add     \register, x2, #step
    .set    step, step + 1
    .endr
    .irp register, d8, d9, d10, d11, d12, d13, d14, d15
    add     x9, x2, #step
    fmov    \register, x9
    .set    step, step + 1
    .endr
    ldr     x1, [x1]
    bl      jrt_ctx_switch
    mov     x0, #0
    ldr     x2, [sp, #160]
    .set    step, 1
    .irp register, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29
    add     x9, x2, #step
    cmp     \register, x9
    cinc    x0, x0, ne
    .set    step, step + 1
    .endr
    .irp register, d8, d9, d10, d11, d12, d13, d14, d15
    add     x9, x2, #step
    fmov    x10, \register
    cmp     x10, x9
    cinc    x0, x0, ne
    .set    step, step + 1
    .endr
    ldp     x19, x20, [sp, #0]
    ldp     x21, x22, [sp, #16]
    ldp     x23, x24, [sp, #32]
    ldp     x25, x26, [sp, #48]
    ldp     x27, x28, [sp, #64]
    ldp     x29, x30, [sp, #80]
    ldp     d8, d9, [sp, #96]
    ldp     d10, d11, [sp, #112]
    ldp     d12, d13, [sp, #128]
    ldp     d14, d15, [sp, #144]
    add     sp, sp, #176
    .cfi_adjust_cfa_offset -176
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   registers_lost, . - registers_lost
    .section .note.GNU-stack, "", %progbits
