/* SPDX-License-Identifier: MIT */
/* Tasks in a world without descriptors. Its clock shows what ended a wait, and when. */
#include "wire.h"

#include <janusrt/janus.h>
#include <janusrt/net.h>

static const uint64_t ms = 1000000;

static bool short_of_descriptors;

static uint32_t decide(struct jrt_strategy *strategy, enum jrt_choice kind, uint32_t count,
                       const uint32_t *who, bool must)
{
    (void)strategy, (void)count, (void)who, (void)must;
    return kind == JRT_CHOOSE_FAULT && short_of_descriptors;
}

struct town {
    janus_entry  *entry;
    janus_io      listener, client;
    janus_status  told;
    uint64_t      told_ns;
    janus_nursery acceptors;
};

static void run_entry(void *argument)
{
    struct town     *town = argument;
    janus_scheduler *scheduler;
    janus_nursery    root;
    CHECK_EQ(janus_scheduler_create_with(
                 JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .profile = JANUS_PROFILE_CLUSTER),
                 &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, town->entry, town), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static void run(janus_entry *entry)
{
    struct town         town = {.entry = entry};
    struct jrt_strategy strategy = {
        .decide = decide, .faults = JRT_FAULT_DESCRIPTOR, .faults_every = 2};
    struct jrt_world_run world = {.strategy = &strategy,
                                  .max_steps = 100000000,
                                  .max_time_ns = UINT64_C(3600) * 1000000000,
                                  .main = run_entry,
                                  .argument = &town};
    short_of_descriptors = false;
    CHECK_EQ(jrt_world_run(&world), JRT_WORLD_DONE);
}

static int64_t accept_one_more(void *argument)
{
    struct town *town = argument;
    janus_io     made;
    town->told = janus_accept(town->listener, &made, NULL);
    town->told_ns = janus_now_ns();
    if (town->told == JANUS_OK) CHECK_EQ(janus_io_close(made), JANUS_OK);
    return 0;
}

/* A connection comes, and the accept waits for a descriptor. */
static void begin_to_starve(struct town *town)
{
    janus_address at = loopback(80);
    CHECK_EQ(janus_listen(&at, NULL, &town->listener), JANUS_OK);
    CHECK_EQ(janus_connect(&at, NULL, &town->client), JANUS_OK);
    short_of_descriptors = true;
    CHECK_EQ(janus_nursery_open(&town->acceptors, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&town->acceptors, accept_one_more, town), JANUS_OK);
    CHECK_EQ(janus_sleep(510 * ms), JANUS_OK); /* it has tried some times, and waits */
}

/* The accept ended when `acted_ns` was, and not when it would have tried again by itself. */
static void expect_at_once(struct town *town, janus_status told, uint64_t acted_ns)
{
    CHECK_EQ(town->told, told);
    CHECK(town->told_ns >= acted_ns && town->told_ns < acted_ns + ms);
}

static int64_t closed(void *argument)
{
    struct town *town = argument;
    begin_to_starve(town);
    uint64_t acted = janus_now_ns();
    CHECK_EQ(janus_io_close(town->listener), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&town->acceptors, NULL), JANUS_OK);
    expect_at_once(town, JANUS_CLOSED, acted);
    return 0;
}

TEST("closing a listener wakes an accept that waits for a descriptor at once") { run(closed); }

static int64_t cancelled(void *argument)
{
    struct town *town = argument;
    begin_to_starve(town);
    uint64_t acted = janus_now_ns();
    CHECK_EQ(janus_nursery_cancel(&town->acceptors), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&town->acceptors, NULL), JANUS_CANCELLED);
    expect_at_once(town, JANUS_CANCELLED, acted);
    return 0;
}

TEST("a cancel ends an accept that waits for a descriptor at once") { run(cancelled); }

static int64_t late(void *argument)
{
    struct town *town = argument;
    begin_to_starve(town);
    uint64_t soon = janus_now_ns() + 20 * ms; /* before it would try again */
    CHECK_EQ(janus_io_set_deadline(town->listener, JANUS_IO_READ, soon + 5000 * ms), JANUS_OK);
    CHECK_EQ(janus_sleep(ms), JANUS_OK);
    CHECK_EQ(town->told, JANUS_OK); /* not told yet */
    CHECK_EQ(janus_io_set_deadline(town->listener, JANUS_IO_READ, soon), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&town->acceptors, NULL), JANUS_OK);
    expect_at_once(town, JANUS_DEADLINE, soon);
    return 0;
}

TEST("an accept that waits for a descriptor follows a deadline that is set meanwhile")
{
    run(late);
}

static int64_t freed(void *argument)
{
    struct town *town = argument;
    begin_to_starve(town);
    uint64_t acted = janus_now_ns();
    short_of_descriptors = false;
    CHECK_EQ(janus_io_close(town->client), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&town->acceptors, NULL), JANUS_OK);
    expect_at_once(town, JANUS_OK, acted);
    return 0;
}

TEST("closing another handle wakes an accept that waits for a descriptor at once") { run(freed); }

static int64_t first_wait(void *argument)
{
    struct town  *town = argument;
    janus_address at = loopback(80);
    CHECK_EQ(janus_listen(&at, NULL, &town->listener), JANUS_OK);
    short_of_descriptors = true; /* no worker has a set yet */
    CHECK_EQ(janus_nursery_open(&town->acceptors, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&town->acceptors, accept_one_more, town), JANUS_OK);
    CHECK_EQ(janus_sleep(510 * ms), JANUS_OK);
    short_of_descriptors = false;
    CHECK_EQ(janus_connect(&at, NULL, &town->client), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&town->acceptors, NULL), JANUS_OK);
    CHECK_EQ(town->told, JANUS_OK);
    return 0;
}

TEST("an accept waits, too, if there is no descriptor to wait with") { run(first_wait); }

/* The backend EVENTED promises a set. */

static janus_status open_evented(janus_nursery *n)
{
    return janus_nursery_open(
        n, JANUS_NURSERY_OPTIONS(.backend = JANUS_BACKEND_SET(JANUS_BACKEND_EVENTED)));
}

static int64_t read_byte(void *argument)
{
    char   byte;
    size_t got;
    return janus_io_read(*(janus_io *)argument, &byte, 1, &got);
}

static int64_t evented(void *argument)
{
    janus_nursery n;
    janus_io      pairs[2][2];
    (void)argument;
    CHECK_EQ(janus_io_pair(NULL, pairs[0]), JANUS_OK);
    CHECK_EQ(janus_io_pair(NULL, pairs[1]), JANUS_OK);
    short_of_descriptors = true;
    CHECK_EQ(open_evented(&n), JANUS_UNAVAILABLE);
    short_of_descriptors = false;
    CHECK_EQ(open_evented(&n), JANUS_OK);
    short_of_descriptors = true; /* the set of one worker serves both */
    CHECK_EQ(janus_spawn(&n, read_byte, &pairs[0][1]), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, read_byte, &pairs[1][1]), JANUS_OK);
    CHECK_EQ(janus_sleep(ms), JANUS_OK);
    CHECK_EQ(janus_io_write(pairs[0][0], "x", 1, NULL), JANUS_OK);
    CHECK_EQ(janus_io_write(pairs[1][0], "x", 1, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(open_evented(&n), JANUS_OK); /* it is still there */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a nursery with the backend EVENTED is not opened without a set, and keeps its promise")
{
    run(evented);
}

static int64_t alone(void *argument)
{
    struct town *town = argument;
    begin_to_starve(town);
    uint64_t acted = janus_now_ns();
    short_of_descriptors = false; /* another library has closed one: nobody tells */
    CHECK_EQ(janus_nursery_end(&town->acceptors, NULL), JANUS_OK);
    CHECK_EQ(town->told, JANUS_OK);
    CHECK(town->told_ns > acted && town->told_ns <= acted + 100 * ms);
    return 0;
}

TEST("an accept that waits for a descriptor tries again after at most 100 ms") { run(alone); }
