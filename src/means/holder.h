/* SPDX-License-Identifier: MIT */
/* Who holds what, and who waits for it: what a task or thread has to do with locks. The essay is in
 * holder.c. */
#ifndef JRT_MEANS_HOLDER_H
#define JRT_MEANS_HOLDER_H

#include "task/worker.h"

struct jrt_holder;

/* In something that is held: on the holder's list while others wait for it. */
struct jrt_contest {
    struct jrt_contest *next, *prev;
    /* The holder has died: the first waiter gets the thing. The caller has the holder's lock and
     * this function releases it. If the thing is busy, this function does nothing else. Each thing
     * brings its own function: one holder may hold things of several kinds. */
    void (*inherit)(struct jrt_holder *dead, struct jrt_contest *contest);
};

/* In the record of a share in something that many hold, on the list of its holder. The record is
 * the library's, so the list never leads to memory that a user freed. */
struct jrt_share {
    struct jrt_share *next;
    /* The holder has ended, and has taken the share off its list. The caller has no lock. */
    void (*over)(struct jrt_share *share);
};

enum { JRT_SEEN_MAX = 4 };

/* What is known about who holds something, copied. */
struct jrt_seen {
    bool          held, thread;             /* by anybody; by a plain thread */
    uint32_t      count;                    /* of something that many hold: how many; otherwise 0 */
    janus_task_id task;                     /* held by a task of the scheduler that asks: which */
    janus_task_id others[JRT_SEEN_MAX - 1]; /* of something that many hold: more of them, or 0 */
    const void   *record;                   /* its record, to compare */
    char          name[JANUS_NAME_BYTES], file[128];
    int           line; /* 0: not known where it was started */
};

/* What a waiter waits for; in its frame. */
struct jrt_want {
    const char *what; /* "mutex"; a literal */
    const char *name; /* or NULL */
    void       *object;
    /* Who holds it; NULL: it is nothing that is held. */
    void (*look)(const struct jrt_want *want, const janus_scheduler *scheduler,
                 struct jrt_seen *out);
};

struct jrt_holder {
    struct jrt_task       *task;     /* NULL: a plain thread */
    struct jrt_holder     *next;     /* while it is free */
    struct jrt_contest    *contests; /* [holder-end]; under `lock` */
    const struct jrt_want *want;     /* NULL: it waits for none of these; under `gaze` */
    _Atomic(uint32_t)      lock;     /* guards contests, dead, and held when dead */
    _Atomic(uint32_t)      gaze;     /* guards want and what it leads to, [holder-gaze] */
    uint32_t               held;     /* how many things; its own while it lives */
    bool                   dead;
    struct jrt_share      *shares; /* [holder-share]; its own, as the next */
    struct jrt_share      *spares; /* records for shares to come */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct jrt_holder) == 64, "a cache line");

/* For a few instructions, in which nobody waits or allocates. */
static inline void jrt_spin_pause(unsigned *rounds)
{
    if (++*rounds % 64 == 0) {
        jrt_thread_yield(); /* who has it may have lost its core */
    } else {
        jrt_cpu_relax();
    }
}

static inline void jrt_spin_lock(_Atomic(uint32_t) *word)
{
    unsigned rounds = 0;
    while (jrt_exchange_acquire(word, 1u) != 0) jrt_spin_pause(&rounds); /* acquire: a lock. */
}

static inline void jrt_spin_unlock(_Atomic(uint32_t) *word)
{
    jrt_store_release(word, 0u); /* release: a lock. */
}

/* The one of the current task, or of the calling thread; makes it. NULL: memory refused. */
struct jrt_holder *jrt_holder_make(struct jrt_worker *worker);

/* The same if there is one. */
struct jrt_holder *jrt_holder_of_thread(void);

/* What a thread did for somebody is over: what it still holds it has left behind. */
void jrt_holder_thread_over(void);

static inline struct jrt_holder *jrt_holder_self(struct jrt_worker *worker)
{
    /* relaxed: its own. */
    if (jrt_likely(worker != NULL)) return jrt_load_relaxed(&worker->current->record.holder);
    return jrt_holder_of_thread();
}

/* One thing less that a dead holder has left, under its lock, which it lets go of. */
void jrt_holder_heir(struct jrt_holder *dead);

/* A task ends: what it holds goes to who waits for it. */
void jrt_holder_end(struct jrt_worker *worker, struct jrt_task *task);

/* A worker is closed. */
void jrt_holder_forget(struct jrt_worker *worker);

/* Says what the holder waits for, and that it does no more. */
void jrt_holder_wants(struct jrt_holder *holder, const struct jrt_want *want);

/* What a task waits for: copies the text and who holds it. False: for nothing of that kind. */
bool jrt_holder_look(const struct jrt_task *task, struct jrt_want *out, char *name,
                     size_t name_bytes, struct jrt_seen *out_seen);

/* For `look`: a holder, by its lock. */
void jrt_holder_describe(struct jrt_holder *holder, const janus_scheduler *scheduler,
                         struct jrt_seen *out);

#endif
