/* SPDX-License-Identifier: MIT */
/* A handle whose last user is not of its owner's scheduler, which may be gone by then. */
#include "wire.h"

#include <pthread.h>

static const uint64_t hour = UINT64_C(3600) * JANUS_SECONDS;

struct shared {
    janus_io     ends[2];
    atomic_int   armed; /* the owner's read has left an alarm armed */
    atomic_int   go;    /* the owner may end */
    struct gate  busy;  /* keeps the other scheduler's only worker */
    janus_status told;
};

static int64_t write_late(void *argument)
{
    struct shared *self = argument;
    wire_await_waiter(self->ends[1], JANUS_IO_READ);
    wire_put(self->ends[0], "x", 1);
    return 0;
}

/* Reads once with a deadline in the far future, so that an alarm stays armed. */
static int64_t own(void *argument)
{
    struct shared *self = argument;
    janus_status   status;
    wire_pair(self->ends);
    CHECK_EQ(janus_io_set_deadline(self->ends[1], JANUS_IO_READ, janus_now_ns() + hour), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, write_late, self), JANUS_OK);
        CHECK_EQ(wire_get(self->ends[1]), 'x');
    }
    CHECK_EQ(status, JANUS_OK);
    atomic_store(&self->armed, 1);
    CHECK(rig_wait(&self->go));
    return 0;
}

static int64_t read_as_guest(void *argument)
{
    struct shared *self = argument;
    char           byte;
    size_t         got;
    self->told = janus_io_read(self->ends[1], &byte, 1, &got);
    return 0;
}

static void begin(struct shared *self, janus_scheduler **out, janus_nursery *root)
{
    *out = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    CHECK_EQ(janus_nursery_open_in(*out, root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(root, own, self), JANUS_OK);
    while (!atomic_load(&self->armed)) rig_spin();
}

static void await_guest(const struct shared *self)
{
    janus_io_info info = JANUS_IO_INFO();
    uint64_t      limit = janus_now_ns() + rig_patience;
    do {
        CHECK_EQ(janus_io_inspect(self->ends[1], &info), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    } while ((info.waits & JANUS_IO_READ) == 0);
}

TEST("a task whose read ends after the owner's scheduler touches nothing of that scheduler")
{
    for (int i = 0; i < 4; i++) {
        struct shared    self = {.told = JANUS_OK};
        janus_scheduler *home, *other = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
        janus_nursery    root, guests;
        begin(&self, &home, &root);
        CHECK_EQ(janus_nursery_open_in(other, &guests, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&guests, read_as_guest, &self), JANUS_OK);
        await_guest(&self);
        CHECK_EQ(janus_spawn(&guests, keep_worker, &self.busy), JANUS_OK);
        while (!atomic_load(&self.busy.arrived)) rig_spin();
        if (i % 2) CHECK_EQ(janus_io_close(self.ends[1]), JANUS_OK);
        atomic_store(&self.go, 1); /* the owner ends, and closes the handle if nobody has */
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(home), JANUS_OK);
        atomic_store(&self.busy.open, 1); /* only now the reader can leave the handle */
        CHECK_EQ(janus_nursery_end(&guests, NULL), JANUS_OK);
        CHECK_EQ(self.told, JANUS_CLOSED);
        CHECK_EQ(janus_scheduler_destroy(other), JANUS_OK);
    }
}

/* Races: at the owner's end, others close the handle, read from it, or take it. */

enum role { CLOSES, READS, TAKES, ROLES };

struct racer {
    struct shared *shared;
    enum role      role;
    bool           in_task;
};

static int64_t meet(void *argument)
{
    const struct racer *self = argument;
    janus_io            io = self->shared->ends[1];
    char                byte;
    size_t              got;
    janus_status        status = JANUS_OK;
    while (!atomic_load(&self->shared->go)) rig_spin();
    switch (self->role) {
    case CLOSES: status = janus_io_close(io); break;
    case READS: status = janus_io_read(io, &byte, 1, &got); break;
    default:
        if (self->in_task) status = janus_io_take(io);
        if (status == JANUS_OK) status = janus_io_close(io);
        break;
    }
    CHECK(status == JANUS_OK || status == JANUS_STALE || status == JANUS_CLOSED ||
          status == JANUS_STATE);
    return 0;
}

static void *meet_in_thread(void *argument)
{
    (void)meet(argument);
    return NULL;
}

enum { RACERS = 3 };

/* One round: the owner ends in the same moment. Its scheduler is destroyed at once. */
static void race(janus_scheduler *other, int round)
{
    struct shared    self = {.told = JANUS_OK};
    struct racer     racers[RACERS];
    pthread_t        thread;
    janus_scheduler *home;
    janus_nursery    root, guests;
    begin(&self, &home, &root);
    CHECK_EQ(janus_nursery_open_in(other, &guests, NULL), JANUS_OK);
    for (int i = 0; i < RACERS; i++) {
        bool in_task = i < RACERS - 1 || rig_simulated();
        racers[i] = (struct racer){&self, (enum role)((round >> 2 * i) % ROLES), in_task};
        if (in_task) {
            CHECK_EQ(janus_spawn(&guests, meet, &racers[i]), JANUS_OK);
        } else {
            CHECK_EQ(pthread_create(&thread, NULL, meet_in_thread, &racers[i]), 0);
        }
    }
    atomic_store(&self.go, 1);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(home), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&guests, NULL), JANUS_OK);
    if (!rig_simulated()) CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST("others close, read or take a handle while its owner and the owner's scheduler end")
{
    janus_scheduler *other = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    int              rounds = (int)rig_few(RIG_SLOW ? 150 : harness_long() ? 1500 : 500);
    for (int round = 0; round < rounds; round++) race(other, round);
    CHECK_EQ(janus_scheduler_destroy(other), JANUS_OK);
}

/* A listener that changes hands while a task waits there. */

struct listener {
    janus_io   io;
    atomic_int waits, told, taken;
};

static int64_t accept_in_vain(void *argument)
{
    struct listener *self = argument;
    janus_io         made;
    CHECK_EQ(janus_accept(self->io, &made, NULL), JANUS_DEADLINE);
    atomic_store(&self->told, 1);
    return 0;
}

static int64_t own_listener(void *argument)
{
    struct listener *self = argument;
    janus_address    at;
    janus_status     status;
    self->io = wire_listen(&at);
    CHECK_EQ(janus_io_set_deadline(self->io, JANUS_IO_READ, janus_now_ns() + 100 * rig_ms),
             JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, accept_in_vain, self), JANUS_OK);
        wire_await_waiter(self->io, JANUS_IO_READ);
        atomic_store(&self->waits, 1);
        CHECK(rig_wait(&self->taken));
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

static int64_t take_listener(void *argument)
{
    struct listener *self = argument;
    CHECK(rig_wait(&self->waits));
    CHECK_EQ(janus_io_take(self->io), JANUS_OK);
    atomic_store(&self->taken, 1);
    CHECK(rig_wait(&self->told)); /* the deadline that was set before */
    return 0;
}

TEST("the deadline of a waiting accept survives that another scheduler takes the listener")
{
    for (int i = 0; i < 5; i++) {
        struct listener  self = {.waits = 0};
        janus_scheduler *home = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
        janus_scheduler *other = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
        janus_nursery    root, guests;
        CHECK_EQ(janus_nursery_open_in(home, &root, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_open_in(other, &guests, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, own_listener, &self), JANUS_OK);
        CHECK_EQ(janus_spawn(&guests, take_listener, &self), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&guests, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(home), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(other), JANUS_OK);
    }
}
