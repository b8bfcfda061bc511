/* SPDX-License-Identifier: MIT */
/* Memory for records of one size, by the million: chunks with free lists, given back when idle. */
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
        struct jrt_record_chunk *chunk; /* where it belongs, always */
        struct jrt_record
            *batch; /* of tasks: the next batch, while it is free, see task/roster.c */
        _Atomic(struct jrt_holder *) holder; /* of tasks that live: see means/holder.c, or NULL */
    };
    uint32_t          index;      /* among all records, always */
    _Atomic(uint32_t) generation; /* for owners that hand out names of records */
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
    struct jrt_list_node full;    /* chunks with none */
};

/* Sets up for records of a size that is a multiple of 16. False when the system refuses. */
bool jrt_records_init(struct jrt_records *records, size_t record_bytes);

/* Unmaps everything. Every record is back. */
void jrt_records_fini(struct jrt_records *records);

/* Up to `count` records as a list; fewer, or NULL, when the system refuses. Memory that was never
 * given before is zero. */
struct jrt_record *jrt_records_take(struct jrt_records *records, uint32_t count);

/* Takes a list of records back. Chunks that are wholly free are unmapped, but for one. */
void jrt_records_give(struct jrt_records *records, struct jrt_record *list);

/* Unmaps the last idle chunk too, where all are. */
void jrt_records_trim(struct jrt_records *records);

/* Bytes mapped. */
size_t jrt_records_bytes(struct jrt_records *records);

#endif
