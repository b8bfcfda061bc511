/* SPDX-License-Identifier: MIT */
/*
 * Wards: objects of rooms above that end with the task that made them, and that it pays for. The
 * essay is in means/ward.c.
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

#endif
