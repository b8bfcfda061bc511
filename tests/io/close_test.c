/* SPDX-License-Identifier: MIT */
/* Closing wakes waiting tasks, whatever happens at the same moment. */
#include "wire.h"

/* Reads until something other than bytes comes. */
static int64_t read_to_end(void *argument)
{
    const janus_io *io = argument;
    char            bytes[64];
    size_t          got;
    janus_status    status;
    do status = janus_io_read(*io, bytes, sizeof bytes, &got);
    while (status == JANUS_OK);
    CHECK_EQ(got, 0);
    return -(int64_t)status;
}

/* Writes until something other than OK comes. */
static int64_t write_to_end(void *argument)
{
    const janus_io *io = argument;
    static char     block[1 << 16];
    janus_status    status;
    do status = janus_io_write(*io, block, sizeof block, NULL);
    while (status == JANUS_OK);
    return -(int64_t)status;
}

static int64_t closes_under_both(void *argument)
{
    (void)argument;
    janus_io      ends[2];
    janus_task_id reader, writer;
    janus_status  status;
    int64_t       told[2];
    char          byte;
    size_t        got;
    wire_tcp(ends);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn_with(n, read_to_end, &ends[1], NULL, &reader), JANUS_OK);
        CHECK_EQ(janus_spawn_with(n, write_to_end, &ends[1], NULL, &writer), JANUS_OK);
        wire_await_waiter(ends[1], JANUS_IO_BOTH);
        CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
        CHECK_EQ(janus_io_close(ends[1]), JANUS_STALE);
        CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_STALE);
        CHECK_EQ(janus_join(n, reader, &told[0]), JANUS_OK);
        CHECK_EQ(janus_join(n, writer, &told[1]), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(-told[0], JANUS_CLOSED);
    CHECK_EQ(-told[1], JANUS_CLOSED);
    /* What was written is still sent, and then the end. */
    CHECK_EQ(-read_to_end(&ends[0]), JANUS_CLOSED);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    return 0;
}

TEST("a close wakes the reader and the writer with CLOSED, and what was written arrives")
{
    rig_all(closes_under_both, NULL, 10);
}

static int64_t accept_to_end(void *argument)
{
    const janus_io *io = argument;
    janus_io        made;
    janus_status    status;
    while ((status = janus_accept(*io, &made, NULL)) == JANUS_OK) {
        CHECK_EQ(janus_io_close(made), JANUS_OK);
    }
    return -(int64_t)status;
}

static int64_t closes_under_acceptors(void *argument)
{
    (void)argument;
    enum { ACCEPTORS = 5 };
    janus_address at;
    janus_task_id tasks[ACCEPTORS];
    janus_status  status;
    janus_io      listener = wire_listen(&at);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < ACCEPTORS; i++) {
            CHECK_EQ(janus_spawn_with(n, accept_to_end, &listener, NULL, &tasks[i]), JANUS_OK);
        }
        wire_await_waiter(listener, JANUS_IO_READ);
        CHECK_EQ(janus_io_close(listener), JANUS_OK);
        for (int i = 0; i < ACCEPTORS; i++) {
            int64_t told = 0;
            CHECK_EQ(janus_join(n, tasks[i], &told), JANUS_OK);
            CHECK(-told == JANUS_CLOSED || -told == JANUS_STALE); /* STALE: it came too late */
        }
    }
    CHECK_EQ(status, JANUS_OK);
    janus_io made;
    CHECK_EQ(janus_connect(&at, NULL, &made), JANUS_REFUSED);
    return 0;
}

TEST("a close of a listener ends every accept, and then nobody listens")
{
    rig_all(closes_under_acceptors, NULL, 10);
}

/* A close, an edge, a cancel and a deadline at once. */

struct race {
    janus_io   ends[2];
    atomic_int go, told;
};

static int64_t race_reader(void *argument)
{
    struct race *race = argument;
    char         bytes[8];
    size_t       got = 0;
    janus_status status = janus_io_read(race->ends[1], bytes, sizeof bytes, &got);
    CHECK(status == JANUS_OK || status == JANUS_CLOSED || status == JANUS_CANCELLED ||
          status == JANUS_DEADLINE || status == JANUS_STALE);
    CHECK_EQ(got > 0, status == JANUS_OK);
    atomic_fetch_add(&race->told, 1);
    return status == JANUS_CANCELLED ? status : 0;
}

static int64_t race_close(void *argument)
{
    struct race *race = argument;
    JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_io_close(race->ends[1]), JANUS_OK);
    return 0;
}

static int64_t race_send(void *argument)
{
    struct race *race = argument;
    JANUS_IGNORE(janus_io_write(race->ends[0], "x", 1, NULL));
    return 0;
}

static int64_t race_deadline(void *argument)
{
    struct race *race = argument;
    janus_status status = janus_io_set_deadline(race->ends[1], JANUS_IO_READ, janus_now_ns());
    CHECK(status == JANUS_OK || status == JANUS_STALE);
    return 0;
}

static int64_t race_cancel(void *argument)
{
    JANUS_IGNORE(janus_nursery_cancel(argument));
    return 0;
}

static int64_t four_at_once(void *argument)
{
    (void)argument;
    struct race   race = {.told = 0};
    janus_nursery readers;
    janus_status  status;
    wire_pair(race.ends);
    CHECK_EQ(janus_nursery_open(&readers, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_spawn(&readers, race_reader, &race), JANUS_OK);
    uint64_t order = janus_now_ns() / 64;
    JANUS_NURSERY(n, status)
    {
        for (unsigned i = 0; i < 4; i++) {
            janus_entry *const entries[] = {race_close, race_send, race_deadline, race_cancel};
            unsigned           which = (i + (unsigned)order) % 4;
            CHECK_EQ(janus_spawn(n, entries[which], which == 3 ? (void *)&readers : &race),
                     JANUS_OK);
            if (order / 4 % 3 == 0) JANUS_IGNORE(janus_yield());
        }
    }
    CHECK_EQ(status, JANUS_OK);
    status = janus_nursery_end(&readers, NULL);
    CHECK(status == JANUS_OK || status == JANUS_CANCELLED);
    CHECK(atomic_load(&race.told) <= 1); /* 0: it was cancelled before it ran */
    CHECK_EQ(janus_io_close(race.ends[0]), JANUS_OK);
    return 0;
}

TEST("a close that races with an edge, a cancel and a deadline gives one status")
{
    rig_all(four_at_once, NULL, RIG_SLOW ? 300 : 3000);
}

/* The end of a scheduler. */

enum { MANY = 200 };

static int64_t idle_reader(void *argument)
{
    janus_io io = *(janus_io *)argument;
    char     byte;
    size_t   got;
    CHECK_EQ(janus_io_take(io), JANUS_OK);
    JANUS_IGNORE(janus_io_read(io, &byte, 1, &got));
    return JANUS_CANCELLED;
}

static int64_t stuck_writer(void *argument)
{
    static char block[1 << 16];
    while (janus_io_write(*(janus_io *)argument, block, sizeof block, NULL) == JANUS_OK) continue;
    return JANUS_CANCELLED;
}

static int64_t acceptor(void *argument)
{
    janus_io made;
    JANUS_IGNORE(janus_accept(*(janus_io *)argument, &made, NULL));
    return JANUS_CANCELLED;
}

struct fleet {
    janus_io   ends[MANY][2];
    janus_io   listener, queued, idle;
    atomic_int ready;
};

static int64_t every_state(void *argument)
{
    struct fleet *fleet = argument;
    janus_address at;
    janus_status  status;
    fleet->listener = wire_listen(&at);
    for (int i = 0; i < MANY; i++) wire_tcp(fleet->ends[i]);
    CHECK_EQ(janus_connect(&at, NULL, &fleet->queued), JANUS_OK); /* nobody accepts it */
    fleet->idle = wire_listen(&at);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, acceptor, &fleet->idle), JANUS_OK);
        CHECK_EQ(janus_spawn(n, acceptor, &fleet->idle), JANUS_OK);
        for (int i = 0; i < MANY; i += 4) {
            CHECK_EQ(janus_spawn(n, idle_reader, &fleet->ends[i][0]), JANUS_OK);
            CHECK_EQ(janus_spawn(n, stuck_writer, &fleet->ends[i + 1][0]), JANUS_OK);
            CHECK_EQ(janus_io_shutdown(fleet->ends[i + 2][0], JANUS_IO_WRITE), JANUS_OK);
            wire_put(fleet->ends[i + 3][0], "unread", 6);
        }
        atomic_store(&fleet->ready, 1);
    }
    return status;
}

static int64_t cancel_when_ready(void *argument)
{
    struct fleet *fleet = argument;
    CHECK(rig_wait(&fleet->ready));
    return -7; /* cancels the others */
}

TEST("a scheduler that stops with connections in every state leaves no descriptor")
{
    const uint32_t      workers[] = {1, 2, 8};
    static struct fleet fleet;
    int                 before = wire_descriptors();
    for (int i = 0; i < 3; i++) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers[i]));
        janus_nursery    root;
        atomic_store(&fleet.ready, 0);
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, every_state, &fleet), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, cancel_when_ready, &fleet), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_CHILD_FAILED);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        CHECK_EQ(wire_descriptors(), before);
    }
}

/* Two schedulers. */

struct shared {
    janus_io   ends[2];
    atomic_int waits;
};

static int64_t open_kept(void *argument)
{
    struct shared *shared = argument;
    CHECK_EQ(janus_io_pair(JANUS_IO_OPTIONS(.kept = true), shared->ends), JANUS_OK);
    char   byte;
    size_t got;
    /* Registers the descriptor in this scheduler's sets. */
    CHECK_EQ(janus_io_set_deadline(shared->ends[1], JANUS_IO_READ, janus_now_ns() + rig_ms),
             JANUS_OK);
    CHECK_EQ(janus_io_read(shared->ends[1], &byte, 1, &got), JANUS_DEADLINE);
    CHECK_EQ(janus_io_set_deadline(shared->ends[1], JANUS_IO_READ, JANUS_IO_NEVER), JANUS_OK);
    return 0;
}

static int64_t read_b(void *argument)
{
    struct shared *shared = argument;
    CHECK_EQ(wire_get(shared->ends[1]), 'b');
    return 0;
}

static int64_t write_b(void *argument)
{
    struct shared *shared = argument;
    wire_await_waiter(shared->ends[1], JANUS_IO_READ);
    wire_put(shared->ends[0], "b", 1);
    return 0;
}

TEST("a kept handle goes on in a second scheduler, also when the first one is gone meanwhile")
{
    RIG_REAL("two schedulers at once");
    for (int i = 0; i < (RIG_SLOW ? 10 : 100); i++) {
        struct shared    shared;
        janus_nursery    root;
        janus_scheduler *first = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
        janus_scheduler *second = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
        rig_do(first, open_kept, &shared);
        CHECK_EQ(janus_nursery_open_in(second, &root, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, read_b, &shared), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(first), JANUS_OK); /* at any moment of the wait */
        CHECK_EQ(janus_spawn(&root, write_b, &shared), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(second), JANUS_OK);
        wire_close(shared.ends);
    }
}
