/* SPDX-License-Identifier: MIT */
/* How many tasks may live without a capability: the counters. */
#ifndef JRT_TASK_LIMIT_H
#define JRT_TASK_LIMIT_H

#include "base/atomic.h"
#include "base/list.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Stands for no limit. A worker's part of it never runs out. */
#define JRT_LIMIT_PLENTY ((int64_t)1 << 60)

/* One worker's part. */
struct jrt_quota {
    _Atomic(int64_t) used; /* tasks started less tasks ended here; its thread writes it */
    _Atomic(int64_t) base; /* [limit-seize]; it may start tasks until `used` reaches this */
};

struct jrt_limit {
    pthread_mutex_t      lock;    /* guards the rest, and every change of a base */
    int64_t              max;     /* constant; JRT_LIMIT_PLENTY: none */
    int64_t              central; /* room that is with no worker */
    struct jrt_list_node wishes;  /* waiting spawns, [limit-wish]; next NULL: none yet */
};

#endif
