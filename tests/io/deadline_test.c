/* SPDX-License-Identifier: MIT */
/* Deadlines of handles: sticky, set anew, followed by waits, and kept with few timers. */
#include "wire.h"

#include "io/io.h"
#include "task/worker.h"

static const uint64_t hour = UINT64_C(3600) * JANUS_SECONDS;

static int64_t sticky(void *argument)
{
    (void)argument;
    janus_io      ends[2];
    char          byte;
    size_t        got = 3;
    janus_io_info info = JANUS_IO_INFO();
    uint64_t      soon = janus_now_ns() + rig_ms;
    wire_tcp(ends);
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ, soon), JANUS_OK);
    CHECK_EQ(janus_io_inspect(ends[1], &info), JANUS_OK);
    CHECK(info.read_deadline == soon && info.write_deadline == JANUS_IO_NEVER);
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_DEADLINE);
    CHECK(janus_now_ns() >= soon);
    CHECK_EQ(got, 0);
    wire_put(ends[0], "x", 1); /* also if something is there now */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_DEADLINE);
        CHECK_EQ(janus_io_wait(ends[1], JANUS_IO_READ), JANUS_DEADLINE);
    }
    wire_put(ends[1], "y", 1); /* the other direction has none */
    CHECK_EQ(wire_get(ends[0]), 'y');
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ, janus_now_ns() + hour), JANUS_OK);
    CHECK_EQ(wire_get(ends[1]), 'x');
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_BOTH, JANUS_IO_NEVER), JANUS_OK);
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_WRITE, 1), JANUS_OK);
    CHECK_EQ(janus_io_write(ends[1], "z", 1, &got), JANUS_DEADLINE);
    CHECK_EQ(got, 0);
    wire_close(ends);
    return 0;
}

TEST("a deadline that passed stays, in its direction, until it is set anew")
{
    rig_all(sticky, NULL, 3);
}

struct waiting {
    janus_io   ends[2];
    bool       only_waits;
    atomic_int told;
    uint64_t   when;
};

static int64_t wait_for_it(void *argument)
{
    struct waiting *self = argument;
    char            byte;
    size_t          got;
    self->told = self->only_waits ? janus_io_wait(self->ends[1], JANUS_IO_READ)
                                  : janus_io_read(self->ends[1], &byte, 1, &got);
    self->when = janus_now_ns();
    return 0;
}

/* Another task sets the deadline of a read that waits: first later, then earlier. */
static int64_t set_by_another(void *argument)
{
    for (int round = 0; round < 4; round++) {
        struct waiting self = {.only_waits = round % 2 != 0};
        janus_status   status;
        uint64_t       soon = 0;
        wire_tcp(self.ends);
        if (argument != NULL) { /* owned by nobody of this scheduler's: alarms in frames */
            wire_close(self.ends);
            CHECK_EQ(janus_io_pair(JANUS_IO_OPTIONS(.kept = true), self.ends), JANUS_OK);
        }
        if (round >= 2) soon = janus_now_ns() + 2 * rig_ms;
        if (round >= 2) {
            CHECK_EQ(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, soon), JANUS_OK);
        }
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn(n, wait_for_it, &self), JANUS_OK);
            if (round < 2) {
                wire_await_waiter(self.ends[1], JANUS_IO_READ);
                soon = janus_now_ns();
            } else { /* later, before the first one passes or not */
                soon += 3 * rig_ms;
            }
            CHECK_EQ(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, soon), JANUS_OK);
        }
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(self.told, JANUS_DEADLINE);
        CHECK(round >= 2 || self.when >= soon);
        wire_close(self.ends);
    }
    return 0;
}

TEST("a read or a wait follows a deadline that another task sets, earlier or later")
{
    bool kept = true;
    rig_all(set_by_another, NULL, 5);
    rig_all(set_by_another, &kept, 5);
}

/* A deadline that is set in a race with the beginning of the wait is never missed. */
static int64_t set_in_a_race(void *argument)
{
    (void)argument;
    struct waiting self = {.told = JANUS_OK};
    janus_status   status;
    wire_pair(self.ends);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, wait_for_it, &self), JANUS_OK);
        for (uint64_t i = janus_now_ns() / 32 % 64; i > 0; i--) rig_spin();
        if (janus_now_ns() % 2) JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, janus_now_ns()), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(self.told, JANUS_DEADLINE);
    wire_close(self.ends);
    return 0;
}

TEST("a deadline set while a wait begins is never missed")
{
    rig_all(set_in_a_race, NULL, RIG_SLOW ? 300 : 3000);
}

/* A deadline that was moved later does not end a wait: the alarm of the old one rings early. */
static int64_t moved_later(void *argument)
{
    (void)argument;
    struct waiting self = {.told = JANUS_OK};
    janus_status   status;
    uint64_t       first = janus_now_ns() + 2 * rig_ms;
    wire_tcp(self.ends);
    CHECK_EQ(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, first), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, wait_for_it, &self), JANUS_OK);
        if (janus_now_ns() < first) {
            CHECK_EQ(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, janus_now_ns() + hour),
                     JANUS_OK);
        }
        bool moved = janus_now_ns() < first; /* on a busy machine it may have passed before */
        CHECK_EQ(janus_sleep_until(first + rig_ms), JANUS_OK);
        if (moved) CHECK_EQ(self.told, JANUS_OK);
        wire_put(self.ends[0], "m", 1);
        JANUS_IGNORE(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, janus_now_ns() + hour));
    }
    CHECK_EQ(status, JANUS_OK);
    wire_close(self.ends);
    return 0;
}

TEST("an alarm of an earlier deadline does not end a wait whose deadline was moved later")
{
    rig_all(moved_later, NULL, 3);
}

/* [io-lazy] Each arming of a timer takes a number, in the order of the scheduler. */

struct lazy {
    janus_io ends[2];
    uint64_t requests;
};

static int64_t answer(void *argument)
{
    struct lazy *lazy = argument;
    for (uint64_t i = 0; i < lazy->requests; i++) {
        unsigned char byte = (unsigned char)wire_get(lazy->ends[1]);
        wire_put(lazy->ends[1], &byte, 1);
    }
    return 0;
}

/* The number of the last arming for reads. */
static uint64_t last_arming(janus_io handle)
{
    janus_scheduler *scheduler = janus_scheduler_current();
    /* acquire: their content. */
    const struct jrt_io_alarms *alarms = jrt_load_acquire(&jrt_io_of(handle)->cold->alarms);
    const struct jrt_timer *timer = alarms != NULL ? &alarms->of[JRT_READY_READ].alarm.timer : NULL;
    if (timer == NULL || timer->set == 0) return 0;
    struct jrt_timer_set *set = &scheduler->workers[timer->set - 1].timers;
    jrt_lock(&set->lock);
    uint64_t number = timer->sequence;
    jrt_unlock(&set->lock);
    return number;
}

static int64_t lazily(void *argument)
{
    (void)argument;
    struct lazy  lazy = {.requests = rig_few(RIG_SLOW ? 2000 : 10000)};
    janus_status status;
    uint64_t     last = 0, armings = 0, began = janus_now_ns();
    wire_tcp(lazy.ends);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, answer, &lazy), JANUS_OK);
        for (uint64_t i = 0; i < lazy.requests; i++) {
            uint64_t      late = janus_now_ns() + 60 * JANUS_SECONDS;
            unsigned char byte = wire_byte(i);
            CHECK_EQ(janus_io_set_deadline(lazy.ends[0], JANUS_IO_READ, late), JANUS_OK);
            wire_put(lazy.ends[0], &byte, 1);
            CHECK_EQ(wire_get(lazy.ends[0]), byte);
            uint64_t now = last_arming(lazy.ends[0]);
            armings += now != last;
            last = now;
        }
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK(armings <= 2 + (janus_now_ns() - began) / (60 * JANUS_SECONDS));
    wire_close(lazy.ends);
    return 0;
}

TEST("a deadline that moves with each of 10,000 requests arms a timer once")
{
    rig_run(1, lazily, NULL, 1);
    rig_run(2, lazily, NULL, 1);
}

/* Closing with an armed alarm. */
static int64_t close_armed(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20; i++) {
        struct waiting self = {.told = JANUS_OK};
        janus_status   status;
        wire_pair(self.ends);
        uint64_t deadline = janus_now_ns() + (i % 2 ? hour : rig_ms / 10);
        CHECK_EQ(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, deadline), JANUS_OK);
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn(n, wait_for_it, &self), JANUS_OK);
            JANUS_IGNORE(janus_yield());
            CHECK_EQ(janus_io_close(self.ends[1]), JANUS_OK);
        }
        CHECK_EQ(status, JANUS_OK);
        CHECK(self.told == JANUS_CLOSED || self.told == JANUS_DEADLINE || self.told == JANUS_STALE);
        CHECK_EQ(janus_io_close(self.ends[0]), JANUS_OK);
    }
    return 0;
}

TEST("a handle with an armed alarm is closed, and its place is used again")
{
    rig_all(close_armed, NULL, 20);
}

/* Listeners. */
static int64_t accept_deadline(void *argument)
{
    (void)argument;
    janus_address at;
    janus_io      made, client;
    janus_io      listener = wire_listen(&at);
    CHECK_EQ(janus_io_set_deadline(listener, JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &made, NULL), JANUS_DEADLINE);
    CHECK_EQ(janus_connect(&at, NULL, &client), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &made, NULL), JANUS_DEADLINE);
    CHECK_EQ(janus_io_set_deadline(listener, JANUS_IO_READ, JANUS_IO_NEVER), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &made, NULL), JANUS_OK);
    CHECK_EQ(janus_io_close(made), JANUS_OK);
    CHECK_EQ(janus_io_close(client), JANUS_OK);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    return 0;
}

TEST("an accept ends by the listener's deadline, and the connection waits for the next")
{
    rig_all(accept_deadline, NULL, 3);
}
