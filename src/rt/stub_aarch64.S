/* SPDX-License-Identifier: MIT */
/*
 * void janus_check_stub(uint64_t cost);
 *                       x0
 *
 * Calls jrt_check_taken(cost) and keeps every general register but x16 and x17, which the linker's
 * veneers use. x19 to x28 are kept by the callee. Vector registers and flags are the caller's to
 * save. The return address comes in x30, so a caller saves that register itself.
 *
 * CFI names the place of every register that is saved. The callee may switch to another task, or
 * end this one: then these frames are left behind.
 */
#define FRAME_BYTES 160

    .hidden jrt_check_taken
    .text
    .globl  janus_check_stub
    .type   janus_check_stub, %function
    .p2align 4
janus_check_stub:
    .cfi_startproc
    hint    #34                         /* bti c */
    stp     x29, x30, [sp, #-FRAME_BYTES]!
    .cfi_adjust_cfa_offset FRAME_BYTES
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov     x29, sp
    .cfi_def_cfa_register x29
    stp     x0, x1, [sp, #16]
    stp     x2, x3, [sp, #32]
    stp     x4, x5, [sp, #48]
    stp     x6, x7, [sp, #64]
    stp     x8, x9, [sp, #80]
    stp     x10, x11, [sp, #96]
    stp     x12, x13, [sp, #112]
    stp     x14, x15, [sp, #128]
    str     x18, [sp, #144]
    .cfi_offset x0, 16 - FRAME_BYTES    /* from the CFA, which is x29 + FRAME_BYTES */
    .cfi_offset x1, 24 - FRAME_BYTES
    .cfi_offset x2, 32 - FRAME_BYTES
    .cfi_offset x3, 40 - FRAME_BYTES
    .cfi_offset x4, 48 - FRAME_BYTES
    .cfi_offset x5, 56 - FRAME_BYTES
    .cfi_offset x6, 64 - FRAME_BYTES
    .cfi_offset x7, 72 - FRAME_BYTES
    .cfi_offset x8, 80 - FRAME_BYTES
    .cfi_offset x9, 88 - FRAME_BYTES
    .cfi_offset x10, 96 - FRAME_BYTES
    .cfi_offset x11, 104 - FRAME_BYTES
    .cfi_offset x12, 112 - FRAME_BYTES
    .cfi_offset x13, 120 - FRAME_BYTES
    .cfi_offset x14, 128 - FRAME_BYTES
    .cfi_offset x15, 136 - FRAME_BYTES
    .cfi_offset x18, 144 - FRAME_BYTES
    bl      jrt_check_taken
    ldp     x0, x1, [sp, #16]
    ldp     x2, x3, [sp, #32]
    ldp     x4, x5, [sp, #48]
    ldp     x6, x7, [sp, #64]
    ldp     x8, x9, [sp, #80]
    ldp     x10, x11, [sp, #96]
    ldp     x12, x13, [sp, #112]
    ldp     x14, x15, [sp, #128]
    ldr     x18, [sp, #144]
    .irp    register, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x18
    .cfi_restore \register
    .endr
    ldp     x29, x30, [sp], #FRAME_BYTES
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   janus_check_stub, . - janus_check_stub

    .section .note.GNU-stack, "", %progbits
