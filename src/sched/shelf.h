/* SPDX-License-Identifier: MIT */
/*
 * A worker's private queue with two ends. Its owner needs no locked instruction and no fence. Other
 * workers can take from it, and they pay for that. The essay is in shelf.c.
 */
#ifndef JRT_SCHED_SHELF_H
#define JRT_SCHED_SHELF_H

#include "base/assert.h"
#include "base/atomic.h"
#include "plat/seam.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Slots of the first ring, a power of two. Models make it small. */
#ifndef JRT_SHELF_FIRST_SLOTS
#define JRT_SHELF_FIRST_SLOTS 256
#endif

struct jrt_shelf {
    _Atomic(uint64_t) newest; /* items ever added and not taken back; only the owner writes it */
    _Atomic(uint64_t) oldest; /* the oldest item there; [shelf-lock] */
    uint64_t          room;   /* newest may grow up to this; owner only */
    _Atomic(void *)  *slots;  /* owned; item i lies in slot i & mask, [shelf-lock] */
    uint64_t          mask;
    _Atomic(uint32_t) busy;    /* [shelf-lock] the owner holds the lock */
    _Atomic(uint32_t) raiding; /* [shelf-lock] a raider holds the lock, or waits for it */
};

/* False: no memory. */
bool jrt_shelf_init(struct jrt_shelf *shelf);

/* The shelf must be empty. */
void jrt_shelf_fini(struct jrt_shelf *shelf);

/* The slow paths. */
bool jrt_shelf_push_slow(struct jrt_shelf *shelf, void *item);
void jrt_shelf_enter_slow(struct jrt_shelf *shelf);
void jrt_shelf_give_up(struct jrt_shelf *shelf);

/* Any thread. May be out of date when it returns. */
static inline uint64_t jrt_shelf_size(const struct jrt_shelf *shelf)
{
    uint64_t oldest = jrt_load_relaxed(&shelf->oldest); /* relaxed: a hint. */
    uint64_t newest = jrt_load_relaxed(&shelf->newest); /* relaxed: a hint. */
    return newest > oldest ? newest - oldest : 0;
}

static inline void jrt_shelf_enter(struct jrt_shelf *shelf)
{
    jrt_store_relaxed(&shelf->busy, 1u); /* relaxed: the fence follows, [shelf-lock]. */
    jrt_fence_light_seq_cst();           /* seq_cst: [shelf-lock]. */
    /* acquire: what the last raider did. */
    if (jrt_unlikely(jrt_load_acquire(&shelf->raiding) != 0)) jrt_shelf_enter_slow(shelf);
}

static inline void jrt_shelf_leave(struct jrt_shelf *shelf)
{
    jrt_store_release(&shelf->busy, 0u); /* release: what we did, for the next raider. */
}

/* Adds an item. There must be room; `newest` items were added before. */
static inline void jrt_shelf_place(struct jrt_shelf *shelf, uint64_t newest, void *item)
{
    /* relaxed: the next line makes it visible. */
    jrt_store_relaxed(&shelf->slots[newest & shelf->mask], item);
    jrt_store_release(&shelf->newest, newest + 1); /* release: the slot, and the item. */
}

/* Owner only. Adds the newest item, not NULL. Returns false if there is no memory to grow. Then
 * nothing changed. A shelf of zeros always refuses. */
static inline bool jrt_shelf_push(struct jrt_shelf *shelf, void *item)
{
    uint64_t newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    if (jrt_unlikely(newest == shelf->room)) return jrt_shelf_push_slow(shelf, item);
    jrt_shelf_place(shelf, newest, item);
    return true;
}

/* Takes the newest item of a shelf that is not empty. The caller holds the lock. */
static inline void *jrt_shelf_drop_newest(struct jrt_shelf *shelf, uint64_t newest)
{
    /* relaxed, both: inside the lock; ours. */
    void *item = jrt_load_relaxed(&shelf->slots[(newest - 1) & shelf->mask]);
    jrt_store_relaxed(&shelf->newest, newest - 1); /* relaxed: leaving releases it. */
    return item;
}

/* Owner only. Takes the newest item; NULL: empty. */
static inline void *jrt_shelf_pop_newest(struct jrt_shelf *shelf)
{
    void    *item = NULL;
    uint64_t newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    /* relaxed: at worst too small, and then read again. */
    if (jrt_load_relaxed(&shelf->oldest) == newest) return NULL;
    jrt_shelf_enter(shelf);
    if (jrt_likely(jrt_load_relaxed(&shelf->oldest) != newest)) { /* relaxed: inside. */
        item = jrt_shelf_drop_newest(shelf, newest);
    }
    jrt_shelf_leave(shelf);
    return item;
}

/* Takes the newest item if no raider is there. False: a raider is, or the shelf is empty. `full`:
 * as in jrt_fence_light_as_seq_cst. */
static inline __attribute__((always_inline)) bool jrt_shelf_pop_newest_fast(struct jrt_shelf *shelf,
                                                                            bool full, void **out)
{
    uint64_t newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    jrt_store_relaxed(&shelf->busy, 1u); /* relaxed: the fence follows, [shelf-lock]. */
    jrt_fence_light_as_seq_cst(full);    /* seq_cst: [shelf-lock]. */
    /* acquire: what the last raider did. relaxed: inside the lock. */
    if (jrt_unlikely(jrt_load_acquire(&shelf->raiding) != 0 ||
                     jrt_load_relaxed(&shelf->oldest) == newest)) {
        jrt_shelf_give_up(shelf);
        return false;
    }
    *out = jrt_shelf_drop_newest(shelf, newest);
    jrt_shelf_leave(shelf);
    return true;
}

/* Owner only. Takes the oldest item; NULL: empty. */
static inline void *jrt_shelf_pop_oldest(struct jrt_shelf *shelf)
{
    void    *item = NULL;
    uint64_t newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    /* relaxed: as in pop_newest. */
    if (jrt_load_relaxed(&shelf->oldest) == newest) return NULL;
    jrt_shelf_enter(shelf);
    uint64_t oldest = jrt_load_relaxed(&shelf->oldest); /* relaxed: inside. */
    if (jrt_likely(oldest != newest)) {
        /* relaxed, both: inside. */
        item = jrt_load_relaxed(&shelf->slots[oldest & shelf->mask]);
        jrt_store_relaxed(&shelf->oldest, oldest + 1);
    }
    jrt_shelf_leave(shelf);
    return item;
}

/* Takes the oldest item if no raider is there, like jrt_shelf_pop_newest_fast. */
static inline __attribute__((always_inline)) bool jrt_shelf_pop_oldest_fast(struct jrt_shelf *shelf,
                                                                            bool full, void **out)
{
    uint64_t newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    jrt_store_relaxed(&shelf->busy, 1u); /* relaxed: the fence follows, [shelf-lock]. */
    jrt_fence_light_as_seq_cst(full);    /* seq_cst: [shelf-lock]. */
    uint32_t raiding = jrt_load_acquire(&shelf->raiding); /* acquire: what the last raider did. */
    uint64_t oldest = jrt_load_relaxed(&shelf->oldest);   /* relaxed, all: inside the lock. */
    if (jrt_unlikely(raiding != 0 || oldest == newest)) {
        jrt_shelf_give_up(shelf);
        return false;
    }
    *out = jrt_load_relaxed(&shelf->slots[oldest & shelf->mask]); /* relaxed: as above. */
    jrt_store_relaxed(&shelf->oldest, oldest + 1);                /* relaxed: as above. */
    jrt_shelf_leave(shelf);
    return true;
}

/* Owner only, inside the lock. The item that lies `ahead` behind the oldest; NULL: there is no such
 * item. */
static inline void *jrt_shelf_see(const struct jrt_shelf *shelf, uint64_t ahead)
{
    uint64_t at = jrt_load_relaxed(&shelf->oldest) + ahead;   /* relaxed: inside. */
    if (at >= jrt_load_relaxed(&shelf->newest)) return NULL;  /* relaxed: our own. */
    return jrt_load_relaxed(&shelf->slots[at & shelf->mask]); /* relaxed: inside. */
}

/* Owner only. Takes up to `max` of the oldest items, at most half of all, rounded up. */
size_t jrt_shelf_pop_half(struct jrt_shelf *shelf, void **out, size_t max);

/* Any other thread. Takes up to `max` of the oldest items, at most half of all, rounded up. 0: the
 * shelf is empty, or another raider was first. Costs a heavy fence. */
size_t jrt_shelf_raid(struct jrt_shelf *shelf, void **out, size_t max);

#endif
