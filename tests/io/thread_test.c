/* SPDX-License-Identifier: MIT */
/* Plain threads, seats and the BLOCKING backend: the same calls, and a thread that waits. */
#include "wire.h"

#include "../task/backends.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

/* Plain threads, under a signal every millisecond. */

static atomic_int ticks;

static void tick(int number)
{
    (void)number;
    atomic_fetch_add(&ticks, 1);
}

static void tick_every_ms(bool on)
{
    struct sigaction action = {.sa_handler = tick}; /* without SA_RESTART */
    struct itimerval every = {{0, on ? 1000 : 0}, {0, on ? 1000 : 0}};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void *echo_thread(void *argument)
{
    janus_io io = *(janus_io *)argument;
    char     bytes[700];
    size_t   got;
    while (janus_io_read(io, bytes, sizeof bytes, &got) == JANUS_OK) wire_put(io, bytes, got);
    return NULL;
}

TEST("plain threads read, write, accept and connect, whatever signals come")
{
    RIG_REAL("plain threads");
    janus_io      ends[2];
    janus_address at;
    pthread_t     thread;
    unsigned char bytes[1000], back[1000];
    size_t        got;
    uint64_t      limit = janus_now_ns() + rig_patience;
    janus_io      listener = wire_listen(&at);
    tick_every_ms(true);
    CHECK_EQ(janus_connect(&at, NULL, &ends[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &ends[1], NULL), JANUS_OK);
    CHECK_EQ(pthread_create(&thread, NULL, echo_thread, &ends[1]), 0);
    for (uint64_t i = 0; i < 200 || atomic_load(&ticks) < 50; i++) {
        wire_fill(bytes, sizeof bytes, i);
        wire_put(ends[0], bytes, sizeof bytes);
        CHECK_EQ(janus_io_read_full(ends[0], back, sizeof back, &got), JANUS_OK);
        wire_check(back, sizeof back, i);
        CHECK(janus_now_ns() < limit);
    }
    CHECK_EQ(janus_io_set_deadline(ends[0], JANUS_IO_READ, janus_now_ns() + 20 * rig_ms), JANUS_OK);
    CHECK_EQ(janus_io_read(ends[0], back, 1, &got), JANUS_DEADLINE);
    tick_every_ms(false);
    CHECK_EQ(janus_io_shutdown(ends[0], JANUS_IO_WRITE), JANUS_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    wire_close(ends);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
}

struct thread_read {
    janus_io     io;
    janus_status told;
};

static void *read_in_thread(void *argument)
{
    struct thread_read *self = argument;
    char                byte;
    size_t              got;
    self->told = janus_io_read(self->io, &byte, 1, &got);
    return NULL;
}

static void await_thread(janus_io io)
{
    janus_io_info info = JANUS_IO_INFO();
    uint64_t      limit = janus_now_ns() + rig_patience;
    do {
        CHECK_EQ(janus_io_inspect(io, &info), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    } while (info.waits != JANUS_IO_READ);
}

TEST("a plain thread that waits is woken by a byte, a close and a new deadline")
{
    RIG_REAL("plain threads");
    for (int i = 0; i < (RIG_SLOW ? 30 : 300); i++) {
        janus_io  ends[2];
        pthread_t thread;
        wire_pair(ends);
        struct thread_read self = {.io = ends[1]};
        CHECK_EQ(pthread_create(&thread, NULL, read_in_thread, &self), 0);
        if (i % 2) await_thread(ends[1]);
        if (i % 3 == 0) wire_put(ends[0], "x", 1);
        if (i % 3 == 1) JANUS_IGNORE(janus_io_close(ends[1]));
        if (i % 3 == 2) CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ, 1), JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        if (i % 3 == 0) CHECK_EQ(self.told, JANUS_OK);
        if (i % 3 == 1) CHECK(self.told == JANUS_CLOSED || self.told == JANUS_STALE);
        if (i % 3 == 2) CHECK_EQ(self.told, JANUS_DEADLINE);
        JANUS_IGNORE(janus_io_close(ends[1]));
        CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    }
}

/* A thread and a task use the two directions, and then the same one in turns. */
static int64_t task_side(void *argument)
{
    janus_io io = *(janus_io *)argument;
    for (int i = 0; i < 100; i++) {
        unsigned char byte = (unsigned char)wire_get(io);
        CHECK_EQ(byte, wire_byte((uint64_t)i));
        wire_put(io, &byte, 1);
    }
    return 0;
}

TEST("a task and a plain thread talk to each other")
{
    RIG_REAL("plain threads");
    janus_io         ends[2];
    janus_nursery    root;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    wire_pair(ends);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, task_side, &ends[1]), JANUS_OK);
    for (int i = 0; i < 100; i++) {
        unsigned char byte = wire_byte((uint64_t)i);
        wire_put(ends[0], &byte, 1);
        CHECK_EQ(wire_get(ends[0]), byte);
    }
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    wire_put(ends[0], "t", 1);
    CHECK_EQ(wire_get(ends[1]), 't'); /* it was a task's, and is registered in a set */
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    wire_put(ends[0], "u", 1);
    CHECK_EQ(wire_get(ends[1]), 'u'); /* the set is gone */
    wire_close(ends);
}

/* Seats. */

struct seated {
    janus_io     ends[2];
    janus_status told;
    int          place;
};

static int64_t read_seated(void *argument)
{
    struct seated *self = argument;
    char           byte;
    size_t         got;
    self->place = rig_place();
    CHECK_EQ(wire_get(self->ends[1]), 'a');
    CHECK_EQ(rig_place(), self->place); /* its own thread */
    self->told = janus_io_read(self->ends[1], &byte, 1, &got);
    return self->told == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t seats(void *argument)
{
    (void)argument;
    struct seated self = {.told = JANUS_OK};
    janus_nursery n;
    wire_pair(self.ends);
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .owner_apart = true);
    CHECK_EQ(janus_spawn(&n, read_seated, &self), JANUS_OK);
    wire_await_waiter(self.ends[1], JANUS_IO_READ);
    wire_put(self.ends[0], "a", 1);
    janus_io_info info = JANUS_IO_INFO();
    do {
        JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_io_inspect(self.ends[1], &info), JANUS_OK);
    } while (info.read_bytes == 0);
    wire_await_waiter(self.ends[1], JANUS_IO_READ);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(self.told, JANUS_CANCELLED);
    wire_close(self.ends);
    return 0;
}

TEST("a child with a thread of its own waits there for bytes, and a cancel reaches it")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) backend_run(workers, seats, NULL);
}

static int64_t deadline_seated(void *argument)
{
    struct seated *self = argument;
    char           byte;
    size_t         got;
    uint64_t       soon = janus_now_ns() + 2 * rig_ms;
    CHECK_EQ(janus_io_set_deadline(self->ends[1], JANUS_IO_READ, soon), JANUS_OK);
    self->told = janus_io_read(self->ends[1], &byte, 1, &got);
    return 0;
}

static int64_t seat_deadlines(void *argument)
{
    janus_backend backend = *(janus_backend *)argument;
    struct seated self = {.told = JANUS_OK};
    janus_nursery n;
    wire_pair(self.ends);
    BACKEND_OPEN(&n, backend, .name = "deadlines");
    CHECK_EQ(janus_spawn(&n, deadline_seated, &self), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(self.told, JANUS_DEADLINE);
    wire_close(self.ends);
    return 0;
}

TEST("a handle's deadline ends a read with every backend")
{
    for (int i = 0; i < BACKENDS; i++) {
        janus_backend backend = every_backend[i];
        backend_run(1, seat_deadlines, &backend);
        backend_run(2, seat_deadlines, &backend);
        backend_run(8, seat_deadlines, &backend);
    }
}

/* BLOCKING. */

static int64_t read_blocking(void *argument)
{
    struct seated *self = argument;
    CHECK_EQ(wire_get(self->ends[1]), 'b');
    self->told = JANUS_OK;
    return 0;
}

static int64_t write_later(void *argument)
{
    struct seated *self = argument;
    wire_await_waiter(self->ends[1], JANUS_IO_READ);
    wire_put(self->ends[0], "b", 1);
    return 0;
}

static int64_t blocking(void *argument)
{
    (void)argument;
    struct seated self = {.told = JANUS_STATE};
    janus_nursery n, others;
    wire_pair(self.ends);
    BACKEND_OPEN(&others, JANUS_BACKEND_COOPERATIVE, .name = "others");
    BACKEND_OPEN(&n, JANUS_BACKEND_BLOCKING, .name = "one");
    CHECK_EQ(janus_spawn(&others, write_later, &self), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, read_blocking, &self), JANUS_OK);
    CHECK_EQ(self.told, JANUS_OK); /* the spawn has returned: its I/O is done */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&others, NULL), JANUS_OK);
    wire_close(self.ends);
    return 0;
}

TEST("with the BLOCKING backend a spawn returns when the child's read is done")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) backend_run(workers, blocking, NULL);
}
