/* SPDX-License-Identifier: MIT */
/* The records of a scheduler's tasks, by the million and by number. The essay is in roster.c. */
#ifndef JRT_TASK_ROSTER_H
#define JRT_TASK_ROSTER_H

#include "task/task.h"

#include <pthread.h>

enum { JRT_ROSTER_BATCH = 64 };

struct jrt_roster {
    pthread_mutex_t  lock;    /* guards all below */
    struct jrt_task *batches; /* free, JRT_ROSTER_BATCH each; linked by record.batch */
    struct jrt_task *loose;   /* free, one by one */
    uint32_t         loose_count;
    char           **blocks; /* owned; each of JRT_ROSTER_BLOCK bytes */
    size_t           block_count, block_room;
    uint32_t         carved; /* records of the last block */
    int64_t          out;    /* records that are not here */
};

bool jrt_roster_init(struct jrt_roster *roster);

/* Every record is back. */
void jrt_roster_fini(struct jrt_roster *roster);

/* One clean record ([task-clean]), or JRT_ROSTER_BATCH of them as a list. NULL: memory refused. */
struct jrt_task *jrt_roster_take(struct jrt_roster *roster);
struct jrt_task *jrt_roster_take_batch(struct jrt_roster *roster);

/* Clean records go back: a list of any length, or one of exactly JRT_ROSTER_BATCH. */
void jrt_roster_give(struct jrt_roster *roster, struct jrt_task *list);
void jrt_roster_give_batch(struct jrt_roster *roster, struct jrt_task *list);

/* One that has had every generation: its ids could come again, so it is never used again. */
void jrt_roster_drop(struct jrt_roster *roster, struct jrt_task *task);

/* The record with a number, free or not; NULL: there never was one. */
struct jrt_task *jrt_roster_find(struct jrt_roster *roster, uint32_t index);

/* How many records were ever made. */
size_t jrt_roster_count(struct jrt_roster *roster);

static inline struct jrt_task *jrt_task_next(const struct jrt_task *task)
{
    return (struct jrt_task *)task->record.next;
}

#endif
