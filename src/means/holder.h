/* SPDX-License-Identifier: MIT */
/* Holders: what a task or thread holds, and what it waits for. The essay is in holder.c. */
#ifndef JRT_MEANS_HOLDER_H
#define JRT_MEANS_HOLDER_H

#include "task/worker.h"

struct jrt_holder;

/* Part of a thing that can be held. It is on the holder's list while others wait for the thing. */
struct jrt_contest {
    struct jrt_contest *next, *prev;
    /* Hands the thing of a dead holder to the first waiter. The caller has the holder's lock, and
     * this function releases it. If the thing is busy, this function does nothing else. Each thing
     * brings its own function, because one holder may hold things of several kinds. */
    void (*inherit)(struct jrt_holder *dead, struct jrt_contest *contest);
};

/* Part of the record of a share in a thing that many hold. It is on its holder's list. The library
 * owns the record, so the list never leads to memory that a user freed. */
struct jrt_share {
    struct jrt_share *next;
    /* Ends the share. The holder has ended and has taken the share off its list. The caller has no
     * lock. */
    void (*over)(struct jrt_share *share);
};

enum { JRT_SEEN_MAX = 4 };

/* A copy of what is known about the holders of a thing. */
struct jrt_seen {
    bool          held, thread; /* by anybody; by a plain thread */
    uint32_t      count;        /* holders, if many can hold it; otherwise 0 */
    janus_task_id task;         /* the holder, if it is a task of the asking scheduler */
    janus_task_id others[JRT_SEEN_MAX - 1]; /* more holders, or 0 */
    const void   *record;                   /* the task's record, to compare */
    char          name[JANUS_NAME_BYTES], file[128];
    int           line; /* 0: it is unknown where the task was started */
};

/* What a waiter waits for; it lies in the waiter's frame. */
struct jrt_want {
    const char *what; /* "mutex"; a literal */
    const char *name; /* or NULL */
    void       *object;
    /* Finds the holders. NULL: the object cannot be held. */
    void (*look)(const struct jrt_want *want, const janus_scheduler *scheduler,
                 struct jrt_seen *out);
};

struct jrt_holder {
    struct jrt_task       *task;     /* NULL: a plain thread */
    struct jrt_holder     *next;     /* of the free list */
    struct jrt_contest    *contests; /* [holder-end]; under `lock` */
    const struct jrt_want *want;     /* NULL: it waits for nothing of this kind; under `gaze` */
    _Atomic(uint32_t)      lock;     /* guards contests, dead, and held when dead */
    _Atomic(uint32_t)      gaze;     /* guards want and what it leads to, [holder-gaze] */
    uint32_t               held;     /* number of things; the holder's own while it lives */
    bool                   dead;
    struct jrt_share      *shares; /* [holder-share]; only the holder touches it */
    struct jrt_share      *spares; /* records for later shares; only the holder touches them */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct jrt_holder) == 64, "a cache line");

/* Spin locks are held for a few instructions, without waiting or allocating. */
static inline void jrt_spin_pause(unsigned *rounds)
{
    if (++*rounds % 64 == 0) {
        jrt_thread_yield(); /* the owner may have lost its core */
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

/* The holder of the current task, or of the calling thread. Makes it if necessary. NULL: memory
 * refused. */
struct jrt_holder *jrt_holder_make(struct jrt_worker *worker);

/* The calling thread's holder; NULL: it has none. */
struct jrt_holder *jrt_holder_of_thread(void);

/* Ends the calling thread's holder: whatever it still holds is abandoned. */
void jrt_holder_thread_over(void);

static inline struct jrt_holder *jrt_holder_self(struct jrt_worker *worker)
{
    /* relaxed: its own. */
    if (jrt_likely(worker != NULL)) return jrt_load_relaxed(&worker->current->record.holder);
    return jrt_holder_of_thread();
}

/* A thing of a dead holder got a new one. The caller has the dead holder's lock; this releases
 * it. */
void jrt_holder_heir(struct jrt_holder *dead);

/* Ends a task's holder: whatever it holds goes to the waiters. */
void jrt_holder_end(struct jrt_worker *worker, struct jrt_task *task);

/* Frees the spare holder of a worker that is being closed. */
void jrt_holder_forget(struct jrt_worker *worker);

/* Publishes what the holder waits for; NULL: it no longer waits. */
void jrt_holder_wants(struct jrt_holder *holder, const struct jrt_want *want);

/* Copies what a task waits for, and the holders. False: it waits for nothing that can be held. */
bool jrt_holder_look(const struct jrt_task *task, struct jrt_want *out, char *name,
                     size_t name_bytes, struct jrt_seen *out_seen);

/* For `look`: describes one holder, under its lock. */
void jrt_holder_describe(struct jrt_holder *holder, const janus_scheduler *scheduler,
                         struct jrt_seen *out);

#endif
