/* SPDX-License-Identifier: MIT */
/*
 * The switch: the only place where the CPU leaves one stack and enters another. ctx_x86_64.S and
 * ctx_aarch64.S hold the contract and the picture of a suspended stack. The header of the same name
 * holds the frame and its offsets, for C and assembly.
 *
 * A suspended context lies in one frame on its own stack, so a stack pointer is the whole handle.
 * Stackless tasks could use these names too.
 */
#ifndef JRT_FIBER_CTX_H
#define JRT_FIBER_CTX_H

#if defined(__x86_64__)
#include "fiber/ctx_x86_64.h"
#elif defined(__aarch64__)
#include "fiber/ctx_aarch64.h"
#else
#error "janusrt has no context switch for this CPU: write src/fiber/ctx_<cpu>.S and .h"
#endif

#ifndef __ASSEMBLER__

#include <signal.h>
#include <stdint.h>

/* The function of a fresh context. It must never return, because it has no caller. */
typedef void jrt_ctx_main(void *argument, int message);

/*
 * Suspends the caller in a frame on its stack and stores that stack pointer in *save_sp. Continues
 * in the context whose stack pointer is load_sp. When a thread switches back, returns the message
 * that it passed.
 */
int jrt_ctx_switch(void **save_sp, void *load_sp, int message);

/*
 * Switches as jrt_ctx_switch. The message is what then(argument) returns, called on the other stack
 * when this context is off the CPU. If a function ends with this call, its resume continues in that
 * function's caller.
 */
int jrt_ctx_switch_then(void **save_sp, void *load_sp, int (*then)(void *), void *argument);

/*
 * Builds the frame of a context that has not run yet. The first switch to the result calls
 * main(argument, message). `top` is the end of the stack, aligned to 16 bytes. The new context
 * starts with the caller's floating-point control words.
 */
void *jrt_ctx_make(void *top, jrt_ctx_main *main, void *argument);

/* Where an interrupted call continues, and what the call returned. */
struct jrt_landing {
    void   *sp; /* a jrt_ctx_frame; valid while the call runs */
    int64_t result;
};

/*
 * Calls entry(argument) on the current stack so that it can be interrupted. A switch to
 * landing->sp, or a landing there from a signal, makes jrt_ctx_call return that message. After an
 * ordinary return it returns 0 and sets landing->result. After an interruption the floating-point
 * control words are the system's defaults.
 */
int jrt_ctx_call(struct jrt_landing *landing, int64_t (*entry)(void *), void *argument);

/* The first instructions of a fresh context, at which backtraces end. C never calls it. */
void jrt_ctx_entry(void);

/* Where a thread continues after jrt_ctx_land_from_signal. Nothing calls it. */
void jrt_ctx_land(void);

/*
 * Rewrites the interrupted state in `context`. The return from the signal handler then continues in
 * the suspended context `load_sp`, as after a switch with `message`. The interrupted context is
 * lost, but its stack keeps its bytes.
 */
void jrt_ctx_land_from_signal(ucontext_t *context, void *load_sp, int message);

/* The instruction that a signal interrupted, and its stack pointer. */
const void *jrt_ctx_signal_pc(const ucontext_t *context);
const void *jrt_ctx_signal_sp(const ucontext_t *context);

#endif
#endif
