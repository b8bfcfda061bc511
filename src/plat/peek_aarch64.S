/* SPDX-License-Identifier: MIT */
/* int64_t jrt_peek_word(const void *at), jrt_peek_byte: x0 -> x0; the contract is in peek.h. */
    .text
    .globl  jrt_peek_word
    .hidden jrt_peek_word
    .type   jrt_peek_word, %function
    .p2align 4
jrt_peek_word:
    .cfi_startproc
    .globl  jrt_peek_word_load
    .hidden jrt_peek_word_load
jrt_peek_word_load:
    ldr     x0, [x0]
    .globl  jrt_peek_done
    .hidden jrt_peek_done
jrt_peek_done:
    ret
    .cfi_endproc
    .size   jrt_peek_word, . - jrt_peek_word

    .globl  jrt_peek_byte
    .hidden jrt_peek_byte
    .type   jrt_peek_byte, %function
    .p2align 4
jrt_peek_byte:
    .cfi_startproc
    .globl  jrt_peek_byte_load
    .hidden jrt_peek_byte_load
jrt_peek_byte_load:
    ldrb    w0, [x0]
    ret
    .cfi_endproc
    .size   jrt_peek_byte, . - jrt_peek_byte

    /* The world of this thread, plat/world.h. */
    .section .tbss, "awT", %nobits
    .globl  jrt_world_here
    .hidden jrt_world_here
    .type   jrt_world_here, %object
    .p2align 3
jrt_world_here:
    .zero   8
    .size   jrt_world_here, 8

    .section .note.GNU-stack, "", %progbits
