/* SPDX-License-Identifier: MIT */
/*
 * The switch: the only place where one stack is left and another entered. The contract and the
 * picture of a suspended stack stand in ctx_x86_64.S and ctx_aarch64.S; the frame and its
 * offsets in the header of the same name, shared by C and assembly.
 *
 * Everything a suspended context is lies in one frame on its own stack; a stack pointer is the
 * whole handle. Stackless tasks could hide behind these names too.
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

/* What a fresh context runs. It must never return: there is nothing to return to. */
typedef void jrt_ctx_main(void *argument, int message);

/*
 * Suspends the caller in a frame on its stack, stores that stack pointer in *save_sp and goes on
 * in the context whose stack pointer is load_sp. Returns, when somebody switches back, the
 * message they passed.
 */
int jrt_ctx_switch(void **save_sp, void *load_sp, int message);

/*
 * The same, but the message is what then(argument) returns, called on the other context's stack
 * when this one is off the CPU. A caller that ends in this call goes on, when it is resumed,
 * where it was called from.
 */
int jrt_ctx_switch_then(void **save_sp, void *load_sp, int (*then)(void *), void *argument);

/*
 * Builds the frame of a context that has not run yet, so that the first switch to the result
 * calls main(argument, message). `top` is the end of the stack and 16-byte aligned. The new
 * context starts with the caller's floating-point control words.
 */
void *jrt_ctx_make(void *top, jrt_ctx_main *main, void *argument);

/* Where a call can be broken off to, and what it returned. */
struct jrt_landing {
    void   *sp; /* a jrt_ctx_frame; good while the call runs */
    int64_t result;
};

/*
 * Calls entry(argument) on the current stack, so that the call can be broken off: switching to
 * landing->sp, or landing there from a signal, makes jrt_ctx_call return that message. Returns 0
 * after an ordinary return, with landing->result set. Floating-point control words are the
 * system's defaults after it was broken off.
 */
int jrt_ctx_call(struct jrt_landing *landing, int64_t (*entry)(void *), void *argument);

/* The first instructions of a fresh context; backtraces end here. Never called from C. */
void jrt_ctx_entry(void);

/* Where a signal handler lets the thread go on, see jrt_ctx_land_from_signal. Never called. */
void jrt_ctx_land(void);

/*
 * Rewrites the interrupted state in `context` so that returning from the signal handler goes on
 * in the suspended context `load_sp`, as if somebody had switched to it with `message`. The
 * interrupted context is lost; its stack keeps its bytes.
 */
void jrt_ctx_land_from_signal(ucontext_t *context, void *load_sp, int message);

/* The instruction a signal interrupted, and the stack pointer it had. */
const void *jrt_ctx_signal_pc(const ucontext_t *context);
const void *jrt_ctx_signal_sp(const ucontext_t *context);

#endif
#endif
