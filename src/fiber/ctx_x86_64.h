/* SPDX-License-Identifier: MIT */
/* The frame of a suspended context on x86-64; offsets for ctx_x86_64.S. */
#ifndef JRT_FIBER_CTX_X86_64_H
#define JRT_FIBER_CTX_X86_64_H

#define JRT_CTX_MXCSR 0
#define JRT_CTX_X87_CW 4
#define JRT_CTX_RBX 8
#define JRT_CTX_RBP 16
#define JRT_CTX_R12 24
#define JRT_CTX_R13 32
#define JRT_CTX_R14 40
#define JRT_CTX_R15 48
#define JRT_CTX_RIP 56
#define JRT_CTX_FRAME_BYTES 64

/* The psABI's values for a new process. */
#define JRT_CTX_MXCSR_DEFAULT 0x1f80
#define JRT_CTX_X87_CW_DEFAULT 0x37f

/* At least sizeof(struct jrt_thread). */
#define JRT_THREAD_BYTES 832

#define JRT_LANDING_SP 0
#define JRT_LANDING_RESULT 8

/* A fresh context begins this far inside jrt_ctx_entry, behind a nop. Unwinders look up a return
 * address by the byte before it, which must be in the function too. */
#define JRT_CTX_ENTRY_SKIP 1

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct jrt_ctx_frame {
    uint32_t mxcsr;
    uint16_t x87_cw;
    uint16_t unused;
    uint64_t rbx, rbp, r12, r13, r14, r15;
    void     (*rip)(void);
};

_Static_assert(offsetof(struct jrt_ctx_frame, mxcsr) == JRT_CTX_MXCSR, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, x87_cw) == JRT_CTX_X87_CW, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, rbx) == JRT_CTX_RBX, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, rbp) == JRT_CTX_RBP, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, r12) == JRT_CTX_R12, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, r13) == JRT_CTX_R13, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, r14) == JRT_CTX_R14, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, r15) == JRT_CTX_R15, "as in assembly");
_Static_assert(offsetof(struct jrt_ctx_frame, rip) == JRT_CTX_RIP, "as in assembly");
_Static_assert(sizeof(struct jrt_ctx_frame) == JRT_CTX_FRAME_BYTES, "as in assembly");
_Static_assert(JRT_CTX_FRAME_BYTES % 16 == 0, "the stack stays aligned");

/* Reads below the stack pointer. If the stack is nearly used up, the fault comes now, while no lock
 * is held. */
static inline void jrt_ctx_probe(void) { __asm__ volatile("testb $0, -4096(%rsp)"); }

/*
 * The word at an offset in the thread's record, jrt_thread_here. In assembly, so that the compiler
 * does not repeat, merge or move it. A thread-local's address computed before a switch names the
 * wrong thread after it.
 */
#define JRT_CTX_OWN_WORD(offset)                                                                   \
    __extension__({                                                                                \
        void *word_;                                                                               \
        __asm__ volatile("movq jrt_thread_here@gottpoff(%%rip), %0\n\tmovq %%fs:%c1(%0), %0"       \
                         : "=r"(word_)                                                             \
                         : "i"(offset));                                                           \
        word_;                                                                                     \
    })
#endif
#endif
