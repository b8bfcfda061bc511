/* SPDX-License-Identifier: MIT */
/*
 * Wards: things of rooms above that end with the task that made them, and whose memory is charged
 * to it. The essay is in ward.c.
 */
#ifndef JRT_TASK_WARD_H
#define JRT_TASK_WARD_H

#include <stdbool.h>
#include <stdint.h>

struct jrt_purse;
struct jrt_terms;
struct jrt_ward;

/* What an owner has: a purse, or terms. */
struct jrt_wards {
    struct jrt_ward *first;    /* [ward-lock] */
    uint64_t         returned; /* of a purse: bytes that others gave back, [ward-lock] */
    bool             over;     /* of terms: their nursery has ended */
};

/* In the thing. All but `link`, `at` and `purse` is written before it joins. */
struct jrt_ward {
    struct jrt_ward  *link;
    struct jrt_ward **at;      /* where its owner, or the ward before it, names it; NULL: unowned */
    struct jrt_purse *purse;   /* who was charged and has not ended; NULL: nobody */
    struct jrt_terms *terms;   /* kept: who owns it after the task; NULL: nobody does */
    uint64_t          bytes;   /* charged */
    uint64_t          name[2]; /* what `end` is told: a thing that may be gone */
    void              (*end)(const uint64_t name[2]); /* ends the thing, if it is still there */
    bool              kept;                           /* it outlives the task */
};

/* The current task's purse, which was charged, has it from now on. */
void jrt_ward_join(struct jrt_ward *ward, struct jrt_purse *purse);

/* The thing has ended, or was not made: whoever was charged gets the bytes back. */
void jrt_ward_leave(struct jrt_ward *ward);

/* The purse is about to be closed: its wards end, or go to their terms. */
void jrt_wards_end(struct jrt_purse *purse);

/* The nursery of these terms has ended. */
void jrt_wards_end_terms(struct jrt_terms *terms);

/* What others gave back is in `left` from now on; for the purse of the current task. */
void jrt_wards_collect(struct jrt_purse *purse);

#endif
