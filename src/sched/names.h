/* SPDX-License-Identifier: MIT */
/*
 * Names and what they stand for: two words, which only the caller understands. A name has 1 to 63
 * bytes. Any thread may call. The essay is in names.c.
 */
#ifndef JRT_SCHED_NAMES_H
#define JRT_SCHED_NAMES_H

#include "base/siphash.h"

#include <janusrt/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JRT_NAME_BYTES = 64 }; /* with its zero */

struct jrt_name {
    uint64_t hash;
    uint64_t value[2];
    char     text[JRT_NAME_BYTES]; /* "": a free slot */
};

struct jrt_names {
    struct jrt_sip_key key; /* secret; constant */
    pthread_mutex_t    lock;
    /* Guarded by the lock. */
    struct jrt_name *slots;    /* owned; NULL until first needed */
    size_t           capacity; /* slots: 0, or a power of two */
    size_t           count;    /* names */
    size_t           reserved; /* names that may still be put by jrt_names_put_reserved */
};

/* Makes it empty. Takes no memory. False: the system gives no random numbers, and there is nothing
 * to fini. */
bool jrt_names_init(struct jrt_names *names);

/* Frees the memory. All names were dropped, and no place is reserved. */
void jrt_names_fini(struct jrt_names *names);

/* Enters a name. EXISTS: it is there, and keeps its value. NO_MEMORY. On an error nothing
 * happened. */
janus_status jrt_names_put(struct jrt_names *names, const char *name, const uint64_t value[2]);

/* Keeps a place for one name, until jrt_names_put_reserved or jrt_names_unreserve. Others cannot
 * take it. False: no memory. */
bool jrt_names_reserve(struct jrt_names *names);
void jrt_names_unreserve(struct jrt_names *names);

/* As jrt_names_put, in a reserved place, which is used up in either case. OK or EXISTS. */
janus_status jrt_names_put_reserved(struct jrt_names *names, const char *name,
                                    const uint64_t value[2]);

/* Whether the name is there. If so, `out` gets its value. */
bool jrt_names_find(struct jrt_names *names, const char *name, uint64_t out[2]);

/* Removes the name, if it stands for this value. So a late drop does not remove a name that another
 * caller has put meanwhile. */
void jrt_names_drop(struct jrt_names *names, const char *name, const uint64_t value[2]);

#endif
