/* SPDX-License-Identifier: MIT */
/* The frame of a suspended context on aarch64; offsets for ctx_aarch64.S. */
#ifndef JRT_FIBER_CTX_AARCH64_H
#define JRT_FIBER_CTX_AARCH64_H

#define JRT_CTX_X19 0
#define JRT_CTX_X21 16
#define JRT_CTX_X23 32
#define JRT_CTX_X25 48
#define JRT_CTX_X27 64
#define JRT_CTX_X29 80
#define JRT_CTX_X30 88
#define JRT_CTX_D8 96
#define JRT_CTX_D10 112
#define JRT_CTX_D12 128
#define JRT_CTX_D14 144
#define JRT_CTX_FPCR 160
#define JRT_CTX_FRAME_BYTES 176

/* At least sizeof(struct jrt_thread). */
#define JRT_THREAD_BYTES 832

#define JRT_LANDING_SP 0
#define JRT_LANDING_RESULT 8

/* A fresh context begins this far inside jrt_ctx_entry, behind a nop. Unwinders look up a return
 * address by the byte before it, which must be in the function too. */
#define JRT_CTX_ENTRY_SKIP 4

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct jrt_ctx_frame {
    uint64_t x19, x20, x21, x22, x23, x24, x25, x26, x27, x28;
    uint64_t x29;
    void     (*x30)(void);
    uint64_t d8, d9, d10, d11, d12, d13, d14, d15;
    uint64_t fpcr;
    uint64_t unused;
};

_Static_assert(offsetof(struct jrt_ctx_frame, x19) == JRT_CTX_X19, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, x21) == JRT_CTX_X21, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, x23) == JRT_CTX_X23, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, x25) == JRT_CTX_X25, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, x27) == JRT_CTX_X27, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, x29) == JRT_CTX_X29, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, x30) == JRT_CTX_X30, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, d8) == JRT_CTX_D8, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, d10) == JRT_CTX_D10, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, d12) == JRT_CTX_D12, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, d14) == JRT_CTX_D14, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, fpcr) == JRT_CTX_FPCR, "as in assembly");
_Static_assert(sizeof(struct jrt_ctx_frame) == JRT_CTX_FRAME_BYTES, "as in assembly");
_Static_assert(JRT_CTX_FRAME_BYTES % 16 == 0, "the stack stays aligned");

/* Reads below the stack pointer. If the stack is nearly used up, the fault comes now, while no lock
 * is held. */
static inline void jrt_ctx_probe(void)
{
    __asm__ volatile("sub x16, sp, #4096\n\tldrb wzr, [x16]" : : : "x16");
}

/* The word at an offset in the thread's record. It is a call; see jrt_thread_self. */
#define JRT_CTX_OWN_WORD(offset) (*(void **)(void *)((char *)jrt_thread_self() + (offset)))
#endif
#endif
