/* SPDX-License-Identifier: MIT */
/*
 * Wards: objects of rooms above that end with the task that made them, and that it pays for. The
 * essay is in ward.c.
 */
#ifndef JRT_TASK_WARD_H
#define JRT_TASK_WARD_H

#include <stdbool.h>
#include <stdint.h>

struct jrt_purse;
struct jrt_terms;
struct jrt_ward;

/* The wards of an owner, which is a purse or terms. */
struct jrt_wards {
    struct jrt_ward *first;    /* [ward-lock] */
    uint64_t         returned; /* in a purse: bytes that others returned, [ward-lock] */
    bool             over;     /* in terms: their nursery has ended */
};

/* Part of the object. All fields but `link`, `at` and `purse` are written before it joins. */
struct jrt_ward {
    struct jrt_ward  *link;
    struct jrt_ward **at;      /* the pointer to this ward in its list; NULL: unowned */
    struct jrt_purse *purse;   /* the paying purse, until it ends; NULL: none */
    struct jrt_terms *terms;   /* kept: owners after the task, or NULL */
    uint64_t          bytes;   /* charged */
    uint64_t          name[2]; /* argument of `end`: names an object that may be gone */
    void              (*end)(const uint64_t name[2]); /* ends the object, if it still exists */
    bool              kept;                           /* it outlives the task */
};

/* Gives the ward to the current task's purse, which was charged. */
void jrt_ward_join(struct jrt_ward *ward, struct jrt_purse *purse);

/* Takes off the ward of an object that has ended, or was not made. The payer gets the bytes
 * back. */
void jrt_ward_leave(struct jrt_ward *ward);

/* Ends the wards of a purse that is about to be closed, or moves them to their terms. */
void jrt_wards_end(struct jrt_purse *purse);

/* Ends the wards of terms whose nursery has ended. */
void jrt_wards_end_terms(struct jrt_terms *terms);

/* Moves returned bytes to `left`; for the purse of the current task. */
void jrt_wards_collect(struct jrt_purse *purse);

#endif
