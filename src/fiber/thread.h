/* SPDX-License-Identifier: MIT */
/* The library's record of the calling thread. */
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

/* The stack that a thread runs on, if it is the library's, and where to continue when it
 * overflows. */
struct jrt_watch {
    const struct jrt_stack *stack;   /* NULL: the thread's own, not watched */
    void                  **landing; /* the saved stack pointer of the context to land in;
                                      * NULL: the thread's rescue, whichever thread that is */
};

/* The last refusal on this thread; means/trouble.c. */
struct jrt_trouble {
    int32_t     status, component;
    uint64_t    used, limit;
    uint64_t    task;       /* the task that called; 0: the thread itself */
    const char *call;       /* the public call that ended so; NULL: unknown */
    uint8_t     table;      /* enum jrt_table; 0: unknown */
    bool        fresh;      /* noted by a call that has not ended yet, or is not said to */
    char        whose[240]; /* of the table: the tasks that share the limit, or what was refused */
    const char *told;       /* constant; NULL: none */
};

enum { JRT_MESSAGE_BYTES = 160 }; /* of janus_panic_detail.message */

struct jrt_thread {
    struct janus_fiber *current;                   /* the fiber that runs here, NULL: none */
    struct jrt_watch    watch;                     /* read by the signal handler */
    void                (*on_panic)(const char *); /* the scheduler's; does not return */
    void                (*on_exit)(void); /* keeps a thread from ending inside a call, so that no
                                           * task is left behind. Does not return; see exit.c */
    struct jrt_guarded *guarded;          /* the innermost call of jrt_call_guarded */
    void              **rescue;     /* the scheduler's: landing of watches without their own */
    void               *worker;     /* the scheduler's, for threads that are workers */
    const void         *helps;      /* the scheduler whose blocking call or callback runs here */
    void               *behalf;     /* the task whose blocking call runs here, or NULL */
    void               *holder;     /* under which it holds locks, or NULL; means/holder.c */
    void               *cancelled;  /* tokens that this thread has to cancel; cancel/token.c */
    unsigned            holding;    /* how many locks of the library this thread holds */
    unsigned            number;     /* tells threads apart; 0: none yet, jrt_thread_number */
    bool                attached;   /* can run fibers */
    bool                calls_back; /* a token's callback runs here */
    const void         *callback;   /* that callback, of a task; NULL: none, or a plain thread's */
    struct jrt_altstack altstack;
    /* Aligned: compilers write both at once, and the interrupted code may have enabled alignment
     * checks (EFLAGS.AC). */
    _Alignas(16) const void *fault_address; /* of the overflow being reported, and the */
    const void        *fault_code;          /* instruction; written by the signal handler */
    const void        *fault_frames[JRT_FRAMES_MAX]; /* where a task overflowed */
    unsigned           fault_frame_count;
    char               panic_message[JRT_MESSAGE_BYTES]; /* of the panic being reported */
    struct jrt_trouble trouble;
};

/*
 * The calling thread's record, attached or not. It is a real call that no compiler sees through. A
 * thread-local's address computed before a switch names the wrong thread after it, and -O3 with
 * link-time optimisation keeps such addresses. Callers must not keep the result across a switch
 * that can change threads.
 */
struct jrt_thread *jrt_thread_self(void);

/* Keeps a panic's message in panic_message, as jrt_text_copy writes it. */
void jrt_thread_keep_message(struct jrt_thread *thread, const char *message);

/* The record's `worker`, without the call. It changes only before and after a thread runs tasks. */
extern _Thread_local struct jrt_thread jrt_thread_here __attribute__((visibility("hidden")));

static inline void *jrt_thread_worker(void)
{
    return JRT_CTX_OWN_WORD(offsetof(struct jrt_thread, worker));
}

/* A number of this thread, assigned at the first call. */
unsigned jrt_thread_number(struct jrt_thread *thread);

/* Prepares the calling thread for fibers: an alternate signal stack and an exit hook. Returns false
 * if the system refuses memory. */
bool jrt_thread_attach_now(struct jrt_thread *thread);

/* Installs only the exit hook, which checks whether the thread ends where it must not. False:
 * refused. */
bool jrt_thread_watch_exit(struct jrt_thread *thread);

static inline bool jrt_thread_attach(struct jrt_thread *thread)
{
    return jrt_likely(thread->attached) || jrt_thread_attach_now(thread);
}

#endif
