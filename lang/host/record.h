/* SPDX-License-Identifier: MIT */
/*
 * Records: what a spawn hands to its task, and where the task keeps those of its own children.
 *
 * A record belongs to the task that spawns. The child pushes it to a list of that task when it
 * ends, and the owner takes the whole list by one exchange. The records of a task that was broken
 * off, and of children that never began, lie in the list `owned` of the record above them. The
 * task above frees them when it ends.
 */
#ifndef JANUSRT_LANG_HOST_RECORD_H
#define JANUSRT_LANG_HOST_RECORD_H

#include "host/state.h"

struct jl_record {
    struct jl_record *next;       /* while it is free */
    struct jl_record *next_owned; /* of the same task */
    uint64_t          sort;       /* its size class; above the last: it is malloc's alone */
    janus_entry      *entry;
    struct jl_world  *world;
    struct jl_task   *parent;
    struct jl_scope  *scope; /* of the parent, which it runs in */
    const char       *name;
    uint64_t          place;
    void             *value; /* of an async call; NULL: none */

    /* Of the task that it starts. */
    struct jl_record           *owned, *unused;
    _Atomic(struct jl_record *) ended; /* children that have ended push their records here */
    uint64_t                    pad;
};
_Static_assert(sizeof(struct jl_record) % 16 == 0, "arguments are aligned");

/* The arguments lie behind the record, aligned to 16. */
static inline struct jl_record *jl_record_of(void *arguments)
{
    return (struct jl_record *)arguments - 1;
}

/* The task that a record started has ended: nobody uses the records of its children. */
void jl_records_free(struct jl_record *home);
/* Gives the record back to the task that made it, which lives. */
void jl_record_back(struct jl_record *home, struct jl_record *record);

#endif
