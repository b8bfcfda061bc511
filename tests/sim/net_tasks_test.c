/* SPDX-License-Identifier: MIT */
/* Tasks on the simulated network: a server of echoes and its clients, with every fault. No schedule
 * hangs, leaks a descriptor, or loses or changes a byte. */
#include "harness.h"
#include "sim/world.h"

#include <janusrt/janus.h>
#include <janusrt/net.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENTS = 3,
    BYTES = 40,
    SCHEDULES = JRT_TSAN                ? 20
                : JRT_ASAN || JRT_DEBUG ? 100
                                        : 1000,
};

static const uint64_t second = 1000000000;
static uint64_t       last_hash; /* of the world, at the end of the last run */

struct town {
    janus_io      listener;
    janus_address at;
    int           served, whole;
};

/* What a call on a connection may return when the network fails. */
static bool is_trouble(janus_status status)
{
    return status == JANUS_RESET || status == JANUS_BROKEN || status == JANUS_CLOSED ||
           status == JANUS_REFUSED || status == JANUS_FULL || status == JANUS_DEADLINE ||
           status == JANUS_CANCELLED;
}

static int64_t serve(janus_io io, void *argument)
{
    char   bytes[16];
    size_t got;
    (void)argument;
    for (;;) {
        janus_status status = janus_io_read(io, bytes, sizeof bytes, &got);
        if (status == JANUS_OK) status = janus_io_write(io, bytes, got, NULL);
        if (status == JANUS_OK) continue;
        JANUS_EXPECT(is_trouble(status));
        return 0;
    }
}

static int64_t run_server(void *argument)
{
    struct town *town = argument;
    janus_status status = janus_serve(town->listener, serve, NULL, NULL, NULL);
    JANUS_EXPECT(status == JANUS_OK || status == JANUS_STALE); /* closed before it began */
    return 0;
}

static void talk(struct town *town, janus_io io)
{
    char   sent[BYTES], got[BYTES];
    size_t count = 0, done = 0;
    JANUS_EXPECT(janus_io_set_deadline(io, JANUS_IO_BOTH, janus_now_ns() + 300 * second) ==
                 JANUS_OK);
    for (int i = 0; i < BYTES; i++) sent[i] = (char)(i * 7 + 1);
    janus_status status = janus_io_write(io, sent, BYTES, &done);
    JANUS_EXPECT(status == JANUS_OK ? done == BYTES : is_trouble(status));
    if (status != JANUS_OK) return;
    status = janus_io_read_full(io, got, BYTES, &count);
    JANUS_EXPECT(status == JANUS_OK || is_trouble(status));
    JANUS_EXPECT(memcmp(sent, got, count) == 0);
    town->whole += status == JANUS_OK;
}

static int64_t run_client(void *argument)
{
    struct town *town = argument;
    janus_io     io;
    janus_status status = janus_connect(&town->at, NULL, &io);
    JANUS_EXPECT(status == JANUS_OK || is_trouble(status));
    if (status != JANUS_OK) return 0;
    talk(town, io);
    JANUS_EXPECT(janus_io_close(io) == JANUS_OK);
    return 0;
}

static int64_t run_town(void *argument)
{
    struct town  town = {0};
    janus_status ended, status;
    bool         calm = argument != NULL;
    JANUS_EXPECT(janus_address_parse("127.0.0.1:80", &town.at) == JANUS_OK);
    status = janus_listen(&town.at, NULL, &town.listener);
    JANUS_EXPECT(status == JANUS_OK || status == JANUS_FULL);
    if (status != JANUS_OK) return 0;
    JANUS_NURSERY(outer, ended)
    {
        janus_status inside;
        JANUS_EXPECT(janus_spawn(outer, run_server, &town) == JANUS_OK);
        JANUS_NURSERY(inner, inside)
        {
            for (int i = 0; i < CLIENTS; i++) {
                JANUS_EXPECT(janus_spawn(inner, run_client, &town) == JANUS_OK);
            }
        }
        JANUS_EXPECT(inside == JANUS_OK);
        JANUS_EXPECT(janus_io_close(town.listener) == JANUS_OK);
    }
    JANUS_EXPECT(ended == JANUS_OK);
    JANUS_EXPECT(!calm || town.whole == CLIENTS);
    last_hash = jrt_world_hash(jrt_world_now());
    return 0;
}

static void explore(janus_explore_options options, void *argument)
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    options.struct_bytes = sizeof options;
    options.stale_allowed = true; /* a listener may be closed between two accepts */
    const char *many = getenv("SCHEDULES");
    options.schedules = many != NULL ? strtoull(many, NULL, 10) : SCHEDULES;
    options.quiet = many == NULL;
    janus_status status = janus_explore(&options, run_town, argument, &result);
    if (status != JANUS_OK) {
        printf("# %s: JANUSRT_REPLAY=%s\n", result.message,
               result.replay != NULL ? result.replay : "");
    }
    CHECK_EQ(status, JANUS_OK);
    free(result.replay);
}

TEST("without faults every client gets its bytes back")
{
    explore((janus_explore_options){0}, &(int){1});
    explore((janus_explore_options){.strategy = JANUS_STRATEGY_PCT}, &(int){1});
}

TEST("with faults of the network every call returns, and no byte is lost or changed")
{
    explore((janus_explore_options){.faults = JANUS_FAULT_NETWORK, .faults_every = 20}, NULL);
    explore((janus_explore_options){.faults = JANUS_FAULT_NETWORK,
                                    .faults_every = 10,
                                    .strategy = JANUS_STRATEGY_PCT},
            NULL);
}

TEST("when threads of workers die, and are replaced or not, every client gets its bytes back")
{
    const uint32_t death = JANUS_FAULT_DEATH, alone = JANUS_FAULT_DEATH | JANUS_FAULT_THREAD;
    explore((janus_explore_options){.faults = death, .faults_every = 10}, &(int){1});
    explore((janus_explore_options){.faults = alone, .faults_every = 10}, &(int){1});
    explore((janus_explore_options){.faults = death | JANUS_FAULT_NETWORK, .faults_every = 20},
            NULL);
}

TEST("a run on a seed gives the same hash twice, and another seed another one")
{
    uint64_t hashes[3];
    for (uint64_t i = 0; i < 3; i++) {
        janus_explore_options options = {
            .struct_bytes = sizeof options, .seed = 7 + i / 2, .schedules = 1, .quiet = true};
        CHECK_EQ(janus_explore(&options, run_town, &(int){1}, NULL), JANUS_OK);
        hashes[i] = last_hash;
    }
    CHECK_EQ(hashes[0], hashes[1]);
    CHECK(hashes[0] != hashes[2]);
}

/* A thread outside of the world. */

struct visit {
    janus_channel door;
    janus_io      ends[2];
    int           got;
};

static int64_t read_one(void *argument)
{
    struct visit *visit = argument;
    char          byte;
    size_t        got;
    CHECK_EQ(janus_io_read(visit->ends[0], &byte, 1, &got), JANUS_OK);
    visit->got++;
    return 0;
}

static void *knock(void *argument)
{
    struct visit *visit = argument;
    for (int64_t i = 0; i < 100; i++) CHECK_EQ(janus_channel_send(visit->door, &i), JANUS_OK);
    return NULL;
}

/* The worker sleeps in its set while both tasks wait. */
static int64_t wait_for_knocks(void *argument)
{
    struct visit *visit = argument;
    CHECK_EQ(janus_io_pair(NULL, visit->ends), JANUS_OK);
    for (int64_t i = 0, got = -1; i < 100; i++) {
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            CHECK_EQ(janus_spawn(n, read_one, visit), JANUS_OK);
            CHECK_EQ(janus_channel_recv(visit->door, &got), JANUS_OK);
            CHECK_EQ(got, i);
            CHECK_EQ(janus_io_write(visit->ends[1], "x", 1, NULL), JANUS_OK);
        }
        CHECK_EQ(ended, JANUS_OK);
    }
    CHECK_EQ(janus_io_close(visit->ends[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(visit->ends[1]), JANUS_OK);
    return 0;
}

TEST("a thread outside of a world wakes a worker that sleeps in a simulated set")
{
    for (uint32_t workers = 1; workers < 3; workers++) {
        struct visit visit = {0};
        pthread_t    thread;
        CHECK_EQ(janus_channel_create(sizeof(int64_t), 1, JANUS_CHANNEL_OPTIONS(.outside = true),
                                      &visit.door),
                 JANUS_OK);
        CHECK_EQ(pthread_create(&thread, NULL, knock, &visit), 0);
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .deterministic_seed = 7),
                      wait_for_knocks, &visit, NULL),
            JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(visit.got, 100);
        CHECK_EQ(janus_channel_destroy(visit.door), JANUS_OK);
    }
}

/* Leaks. */

static int64_t leave_open(void *argument)
{
    janus_io ends[2];
    (void)argument;
    return janus_io_pair(JANUS_IO_OPTIONS(.name = "lost", .kept = true), ends);
}

static int64_t spawn_leaver(void *argument)
{
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        JANUS_EXPECT(janus_spawn_with(n, leave_open, argument,
                                      JANUS_SPAWN_OPTIONS(.name = "leaver"), NULL) == JANUS_OK);
    }
    return ended;
}

TEST("an explorer names the handle that a task left open, and the task")
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.quiet = true), spawn_leaver, NULL, &result),
             JANUS_CHILD_FAILED);
    CHECK_EQ(result.failing, JANUS_FAILING_LEAK);
    const char *words =
        "2 descriptors were not closed: pair 1's first end (\"lost\", opened by task "
        "\"leaver\"";
    result.message[strlen(words)] = '\0';
    CHECK_STR(result.message, words);
    free(result.replay);
}
