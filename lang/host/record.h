/* SPDX-License-Identifier: MIT */
/* Records: what a spawn hands to its task. */
#ifndef JANUSRT_LANG_HOST_RECORD_H
#define JANUSRT_LANG_HOST_RECORD_H

#include "host/state.h"

struct jl_record {
    struct jl_record *next; /* while it is free */
    uint64_t          sort; /* its size class; above the last: it is malloc's alone */
    janus_entry      *entry;
    struct jl_world  *world;
    struct jl_task   *parent;
    struct jl_scope  *scope; /* of the parent, which it runs in */
    const char       *name;
    uint64_t          place;
    void             *value; /* of an async call; NULL: none */
    uint64_t          pad;
};

/* The arguments lie behind the record, aligned to 16. */
static inline struct jl_record *jl_record_of(void *arguments)
{
    return (struct jl_record *)arguments - 1;
}

#endif
