/* SPDX-License-Identifier: MIT */
/* What the library knows about the calling thread. */
#ifndef JRT_FIBER_THREAD_H
#define JRT_FIBER_THREAD_H

#include "base/assert.h"
#include "fiber/context.h"
#include "fiber/frames.h"
#include "plat/altstack.h"

#include <stdbool.h>
#include <stddef.h>

struct janus_fiber;
struct jrt_guarded;
struct jrt_stack;

/* The stack a thread runs on, if it is one of ours, and where to go on when it overflows. */
struct jrt_watch {
    const struct jrt_stack *stack;   /* NULL: the thread's own, not watched */
    void                  **landing; /* the saved stack pointer of the context to land in;
                                      * NULL: the thread's rescue, whichever thread that is */
};

/* What was refused here last; look/trouble.c. */
struct jrt_trouble {
    int32_t  status, component;
    uint64_t used, limit;
    uint64_t task;      /* whose call it was; 0: the thread's */
    uint8_t  table;     /* enum jrt_table: what is full; 0: not told */
    char     whose[48]; /* of the table: who shares the limit */
};

enum { JRT_MESSAGE_BYTES = 160 }; /* of janus_panic_info.message */

struct jrt_thread {
    struct janus_fiber *current;                   /* the fiber that runs here, NULL: none */
    struct jrt_watch    watch;                     /* read by the signal handler */
    void                (*on_panic)(const char *); /* the scheduler's, likewise; does not return */
    void                (*on_exit)(void); /* whoever would be left behind if the thread ended here:
                                             asked before it does, does not return; see exit.c */
    struct jrt_guarded *guarded;          /* the innermost call of jrt_call_guarded */
    void              **rescue; /* the scheduler's: where watches without a landing lead */
    void               *worker; /* the scheduler's, for threads that are workers */
    const void *helps;      /* the scheduler whose blocking call, or token's callback, runs here */
    void       *behalf;     /* the task whose blocking call runs here, NULL: none */
    void       *holder;     /* under which it holds locks, NULL: none; see means/holder.c */
    void       *cancelled;  /* tokens that this thread is to cancel, see cancel/token.c */
    unsigned    holding;    /* locks of ours that this thread holds */
    unsigned    number;     /* tells threads apart; 0: none yet, see jrt_thread_number */
    bool        attached;   /* can run fibers */
    bool        calls_back; /* a token's callback runs here */
    const void *callback;   /* of a task: that one; NULL: none, or a plain thread's */
    struct jrt_altstack altstack;
    /* Aligned: compilers write both at once, and the interrupted code may have asked the CPU to
     * check (EFLAGS.AC). */
    _Alignas(16) const void *fault_address; /* of the overflow that is being reported, and the */
    const void        *fault_code;          /* instruction; written by the signal handler */
    const void        *fault_frames[JRT_FRAMES_MAX]; /* likewise; where a task overflowed */
    unsigned           fault_frame_count;
    char               panic_message[JRT_MESSAGE_BYTES]; /* of the panic being reported */
    struct jrt_trouble trouble;
};

/*
 * The calling thread's record, whether attached or not. A real call that no compiler may look
 * through: a thread-local's address that was computed before a switch names the wrong thread
 * after it, and -O3 with link-time optimisation does keep such addresses. Nobody may keep the
 * result across a switch that can change threads.
 */
struct jrt_thread *jrt_thread_self(void);

/* Keeps a panic's message in panic_message, as jrt_text_copy writes it. */
void jrt_thread_keep_message(struct jrt_thread *thread, const char *message);

/* Its `worker`, without the call. It changes only before and after a thread runs tasks. */
extern _Thread_local struct jrt_thread jrt_thread_here __attribute__((visibility("hidden")));

static inline void *jrt_thread_worker(void)
{
    return JRT_CTX_OWN_WORD(offsetof(struct jrt_thread, worker));
}

/* A number for this thread, given on first asking. */
unsigned jrt_thread_number(struct jrt_thread *thread);

/* Makes the calling thread able to run fibers: an alternate signal stack and an exit hook. False
 * when the system refuses memory. */
bool jrt_thread_attach_now(struct jrt_thread *thread);

/* The exit hook alone: it looks whether the thread ends where it must not. False: refused. */
bool jrt_thread_watch_exit(struct jrt_thread *thread);

static inline bool jrt_thread_attach(struct jrt_thread *thread)
{
    return jrt_likely(thread->attached) || jrt_thread_attach_now(thread);
}

#endif
