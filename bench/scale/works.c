/* SPDX-License-Identifier: MIT */
/*
 * fib      every call spawns a child for one half
 * mpmc     as many senders and receivers as workers, at least four, and one channel with room for
 *          128
 * echo     eight connections for each worker: one task writes 64 bytes and reads them again, the
 *          other one sends back what it reads
 *
 * Every work runs once before it is timed, so that its workers are awake.
 */
#include "works.h"

#include <janusrt/janus.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROOM = 128, LINKS = 8, BYTES = 64, TASKS_MAX = 1000000, TURNS_MAX = 31 };

void (*works_begin)(void);
void (*works_end)(void);

static void need(bool right, const char *what)
{
    if (right) return;
    (void)fprintf(stderr, "scale: %s\n", what);
    exit(1);
}

static void need_ok(janus_status status) { need(status == JANUS_OK, janus_status_text(status)); }

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* fib */

static int64_t fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t      left = *n - 1, right = *n - 2;
    janus_status ended;
    JANUS_NURSERY(nursery, ended)
    {
        JANUS_IGNORE(janus_spawn(nursery, fib, &left));
        (void)fib(&right);
    }
    *n = left + right;
    return ended;
}

static uint64_t run_fib(unsigned workers, unsigned size)
{
    (void)workers;
    int64_t n = size;
    need_ok((janus_status)fib(&n));
    uint64_t previous = 0, current = 1;
    for (unsigned i = 1; i <= size; i++) {
        uint64_t next = previous + current;
        previous = current;
        current = next;
    }
    need((uint64_t)n == previous, "fib is wrong");
    return current - 1;
}

/* mpmc */

struct traffic {
    janus_channel    channel;
    int64_t          each;
    _Atomic(int64_t) senders, sum;
};

static int64_t produce(void *argument)
{
    struct traffic *traffic = argument;
    for (int64_t i = 1; i <= traffic->each; i++) need_ok(janus_channel_send(traffic->channel, &i));
    if (atomic_fetch_sub(&traffic->senders, 1) == 1) need_ok(janus_channel_close(traffic->channel));
    return 0;
}

static int64_t consume(void *argument)
{
    struct traffic *traffic = argument;
    int64_t         value = 0, sum = 0;
    while (janus_channel_recv(traffic->channel, &value) == JANUS_OK) sum += value;
    (void)atomic_fetch_add(&traffic->sum, sum);
    return 0;
}

static uint64_t run_mpmc(unsigned workers, unsigned size)
{
    int64_t        parties = workers < 4 ? 4 : (int64_t)workers;
    struct traffic traffic = {.each = (int64_t)size * 1000 / parties};
    atomic_store(&traffic.senders, parties);
    need_ok(janus_channel_create(sizeof(int64_t), ROOM, NULL, &traffic.channel));
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int64_t i = 0; i < parties; i++) {
            JANUS_IGNORE(janus_spawn(n, consume, &traffic));
            JANUS_IGNORE(janus_spawn(n, produce, &traffic));
        }
    }
    need_ok(ended);
    need(traffic.sum == parties * (traffic.each * (traffic.each + 1) / 2), "a message is missing");
    need_ok(janus_channel_destroy(traffic.channel));
    return (uint64_t)(traffic.each * parties);
}

/* echo */

struct link {
    janus_io ends[2];
    unsigned rounds;
};

static int64_t answer(void *argument)
{
    struct link *link = argument;
    char         bytes[BYTES];
    for (unsigned i = 0; i < link->rounds; i++) {
        need_ok(janus_io_read_full(link->ends[1], bytes, sizeof bytes, NULL));
        need_ok(janus_io_write(link->ends[1], bytes, sizeof bytes, NULL));
    }
    return 0;
}

static int64_t ask(void *argument)
{
    struct link *link = argument;
    char         bytes[BYTES] = "echo";
    for (unsigned i = 0; i < link->rounds; i++) {
        need_ok(janus_io_write(link->ends[0], bytes, sizeof bytes, NULL));
        need_ok(janus_io_read_full(link->ends[0], bytes, sizeof bytes, NULL));
    }
    return 0;
}

static uint64_t run_echo(unsigned workers, unsigned size)
{
    unsigned     count = workers * LINKS;
    struct link *links = calloc(count, sizeof *links);
    need(links != NULL, "no memory");
    for (unsigned i = 0; i < count; i++) {
        links[i].rounds = size;
        need_ok(janus_io_pair(NULL, links[i].ends));
    }
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (unsigned i = 0; i < count; i++) {
            JANUS_IGNORE(janus_spawn(n, answer, &links[i]));
            JANUS_IGNORE(janus_spawn(n, ask, &links[i]));
        }
    }
    need_ok(ended);
    for (unsigned i = 0; i < count; i++) {
        JANUS_IGNORE(janus_io_close(links[i].ends[0]));
        JANUS_IGNORE(janus_io_close(links[i].ends[1]));
    }
    free(links);
    return (uint64_t)count * size;
}

const struct work works[] = {
    {"fib", "spawns", run_fib},
    {"mpmc", "messages", run_mpmc},
    {"echo", "round trips", run_echo},
    {NULL, NULL, NULL},
};

struct request {
    const struct work *work;
    unsigned           workers, size, turns;
    uint64_t           ps[TURNS_MAX];
};

static int compare(const void *left, const void *right)
{
    const uint64_t *l = left, *r = right;
    return (*l > *r) - (*l < *r);
}

static int64_t timed(void *argument)
{
    struct request *request = argument;
    unsigned        warm = request->size > 20 ? request->size * 3 / 4 : request->size;
    (void)request->work->run(request->workers, warm);
    for (unsigned turn = 0; turn < request->turns; turn++) {
        if (works_begin != NULL) works_begin();
        uint64_t start = now_ns();
        uint64_t count = request->work->run(request->workers, request->size);
        request->ps[turn] = (now_ns() - start) * 1000 / count;
        if (works_end != NULL) works_end();
    }
    return 0;
}

uint64_t works_time(const struct work *work, unsigned workers, unsigned size, unsigned turns)
{
    struct request request = {.work = work, .workers = workers, .size = size, .turns = turns};
    need(turns > 0 && turns <= TURNS_MAX, "too many turns");
    need_ok(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = TASKS_MAX,
                                              .max_handles = 10000),
                      timed, &request, NULL));
    qsort(request.ps, turns, sizeof request.ps[0], compare);
    return request.ps[turns / 2];
}
