/* SPDX-License-Identifier: MIT */
/* Memory for millions of records of one size: chunks with free lists, unmapped when idle. */
#ifndef JRT_FIBER_RECORD_H
#define JRT_FIBER_RECORD_H

#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At the start of every record. */
struct jrt_holder;

struct jrt_record {
    struct jrt_record *next; /* while it is free */
    union {
        struct jrt_record_chunk     *chunk;  /* the chunk it was carved from, always */
        struct jrt_record           *batch;  /* of a free task: the next batch (task/roster.c) */
        _Atomic(struct jrt_holder *) holder; /* of live tasks: means/holder.c, or NULL */
    };
    uint32_t          index;      /* unique among all records, constant */
    _Atomic(uint32_t) generation; /* for owners that give out handles of records */
};

struct jrt_record_chunk {
    struct jrt_list_node  link; /* on partial or full */
    struct jrt_list_node *where;
    struct jrt_record    *free_list;
    uint32_t              carved, given;
    uint32_t              number; /* of this chunk, from 0 */
};

struct jrt_records {
    pthread_mutex_t      lock; /* guards all below */
    size_t               record_bytes;
    uint32_t             chunk_records;
    size_t               chunks;
    struct jrt_list_node partial; /* chunks with records to give */
    struct jrt_list_node full;    /* chunks without */
};

/* Prepares for records of a size that is a multiple of 16. Returns false if the system refuses. */
bool jrt_records_init(struct jrt_records *records, size_t record_bytes);

/* Unmaps everything. Every record must be back. */
void jrt_records_fini(struct jrt_records *records);

/* Returns up to `count` records as a list; fewer, or NULL, if the system refuses. Memory that was
 * never given before is zero. */
struct jrt_record *jrt_records_take(struct jrt_records *records, uint32_t count);

/* Takes a list of records back. Unmaps wholly free chunks, except one. */
void jrt_records_give(struct jrt_records *records, struct jrt_record *list);

/* Also unmaps the last chunk, if it is free. */
void jrt_records_trim(struct jrt_records *records);

/* Bytes mapped. */
size_t jrt_records_bytes(struct jrt_records *records);

#endif
