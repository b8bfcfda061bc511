/* SPDX-License-Identifier: MIT */
/* The records of a scheduler's tasks, millions of them, by number. The essay is in roster.c. */
#ifndef JRT_TASK_ROSTER_H
#define JRT_TASK_ROSTER_H

#include "task/task.h"

#include <pthread.h>

enum { JRT_ROSTER_BATCH = 64 };

struct jrt_roster {
    pthread_mutex_t  lock;    /* guards all below */
    struct jrt_task *batches; /* free, JRT_ROSTER_BATCH each; linked by record.batch */
    struct jrt_task *loose;   /* free, single ones */
    uint32_t         loose_count;
    char           **blocks; /* owned; JRT_ROSTER_BLOCK bytes each */
    size_t           block_count, block_room;
    uint32_t         carved; /* records of the last block */
    int64_t          out;    /* records in use */
};

bool jrt_roster_init(struct jrt_roster *roster);

/* Every record must be back. */
void jrt_roster_fini(struct jrt_roster *roster);

/* Take one clean record ([task-clean]), or a list of JRT_ROSTER_BATCH. NULL: memory refused. */
struct jrt_task *jrt_roster_take(struct jrt_roster *roster);
struct jrt_task *jrt_roster_take_batch(struct jrt_roster *roster);

/* Return clean records: a list of any length, or of exactly JRT_ROSTER_BATCH. */
void jrt_roster_give(struct jrt_roster *roster, struct jrt_task *list);
void jrt_roster_give_batch(struct jrt_roster *roster, struct jrt_task *list);

/* Drops a record that has had every generation: its ids would come again. */
void jrt_roster_drop(struct jrt_roster *roster, struct jrt_task *task);

/* The record with a number, free or not; NULL: it never existed. */
struct jrt_task *jrt_roster_find(struct jrt_roster *roster, uint32_t index);

/* The number of records ever made. */
size_t jrt_roster_count(struct jrt_roster *roster);

static inline struct jrt_task *jrt_task_next(const struct jrt_task *task)
{
    return (struct jrt_task *)task->record.next;
}

#endif
