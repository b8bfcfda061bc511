/* SPDX-License-Identifier: MIT */
/* What I/O costs a task, what a task without syscalls may do, and how a worker's time is shared. */
#define RIG_TURN_NS 20000 /* turns end by time: some tests are about fairness */
#include "wire.h"

#include <janusrt/file.h>
#include <stdio.h>
#include <unistd.h>

static const janus_budget plenty = {.ops = 1000000, .memory = 1 << 20, .syscalls = 10000};

/* Prices. */

/* What a call costs, without what the question costs. */
#define COST(call)                                                                                 \
    do {                                                                                           \
        janus_budget first = janus_budget_get_current(), before = janus_budget_get_current();      \
        call;                                                                                      \
        janus_budget after = janus_budget_get_current();                                           \
        ops = before.ops - after.ops - (first.ops - before.ops);                                   \
        syscalls = before.syscalls - after.syscalls;                                               \
    } while (0)

static int64_t prices(void *argument)
{
    (void)argument;
    uint64_t ops = 0, syscalls = 0;
    janus_io ends[2], stale[2];
    char     bytes[64];
    size_t   got;
    wire_pair(stale);
    wire_close(stale);
    wire_pair(ends);
    COST(wire_put(ends[0], "abc", 3));
    CHECK_EQ(ops, syscalls);
    CHECK(syscalls == 1 || rig_simulated()); /* a world cuts transfers */
    COST(CHECK_EQ(wire_get(ends[1]), 'a'));
    CHECK_EQ(ops, 1);
    CHECK_EQ(syscalls, 1);
    COST(CHECK_EQ(janus_io_read_full(ends[1], bytes, 2, &got), JANUS_OK));
    CHECK(syscalls == 1 || rig_simulated());
    CHECK_EQ(ops, syscalls);
    COST(CHECK_EQ(janus_io_try_read(ends[1], bytes, 1, &got), JANUS_WOULD_WAIT));
    CHECK_EQ(syscalls, 0); /* no transfer */
    COST(CHECK_EQ(janus_io_read(stale[0], bytes, 1, &got), JANUS_STALE));
    CHECK_EQ(syscalls, 0);
    COST(CHECK_EQ(janus_io_set_deadline(ends[0], JANUS_IO_BOTH, janus_now_ns()), JANUS_OK));
    CHECK_EQ(syscalls, 0);
    COST(CHECK_EQ(janus_io_read(ends[0], bytes, 1, &got), JANUS_DEADLINE));
    CHECK_EQ(syscalls, 0);
    CHECK_EQ(janus_io_set_deadline(ends[0], JANUS_IO_BOTH, JANUS_IO_NEVER), JANUS_OK);
    COST(CHECK_EQ(janus_io_close(ends[0]), JANUS_OK));
    CHECK_EQ(syscalls, 0);
    COST(CHECK_EQ(janus_io_read(ends[1], bytes, 1, &got), JANUS_CLOSED));
    CHECK_EQ(syscalls, 1); /* it asked, and learned of the end */
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    return 0;
}

static int64_t with_budget(janus_entry *entry, void *argument, const janus_budget *budget)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, entry, argument, JANUS_SPAWN_OPTIONS(.budget = budget), NULL),
             JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t pays(void *argument)
{
    (void)argument;
    return with_budget(prices, NULL, &plenty);
}

TEST("a transfer costs one op and one syscall, and a call without a transfer no syscall")
{
    rig_all(pays, NULL, 3);
}

#define COSTS_ONE(call)                                                                            \
    do {                                                                                           \
        COST(CHECK_EQ(call, JANUS_OK));                                                            \
        CHECK_EQ(ops, 1);                                                                          \
        CHECK_EQ(syscalls, 1);                                                                     \
    } while (0)

static int64_t file_prices(void *argument)
{
    (void)argument;
    uint64_t        ops = 0, syscalls = 0;
    janus_io        dir, file;
    char            path[64], byte;
    size_t          got;
    const uint32_t  how = JANUS_OPEN_READ | JANUS_OPEN_WRITE | JANUS_OPEN_CREATE;
    janus_file_info info = JANUS_FILE_INFO();
    snprintf(path, sizeof path, "janusrt_budget_test.%d", (int)getpid());
    COSTS_ONE(janus_dir_open("/tmp",
                             JANUS_RIGHT_FILE_READ | JANUS_RIGHT_FILE_WRITE |
                                 JANUS_RIGHT_FILE_CREATE | JANUS_RIGHT_FILE_REMOVE,
                             NULL, &dir));
    COSTS_ONE(janus_file_open(dir, path, how, NULL, &file));
    COSTS_ONE(janus_io_write(file, "abc", 3, &got));
    COSTS_ONE(janus_file_read_at(file, 1, &byte, 1, &got));
    CHECK_EQ(byte, 'b');
    COSTS_ONE(janus_dir_inspect(dir, path, &info));
    COSTS_ONE(janus_file_remove(dir, path));
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

static int64_t pays_files(void *argument)
{
    (void)argument;
    return with_budget(file_prices, NULL, &plenty);
}

TEST("a call on a file or a directory costs one op and one syscall")
{
    rig_all(pays_files, NULL, 3);
}

/* More transfers than a task has syscalls without asking. Each is one byte, so that a world cannot
 * cut it. */
static int64_t goes_on(void *argument)
{
    (void)argument;
    janus_io ends[2];
    uint64_t portion = JANUS_DEFAULT_SYSCALLS;
    wire_pair(ends);
    uint64_t left = janus_budget_get_current().syscalls;
    for (int i = 0; i < 50; i++) {
        if (left == 0) left = portion;
        if (i & 1) {
            CHECK_EQ(wire_get(ends[1]), 'x');
        } else {
            wire_put(ends[0], "x", 1);
        }
        CHECK_EQ(janus_budget_get_current().syscalls, --left);
    }
    wire_close(ends);
    return 0;
}

static int64_t goes_on_as_child(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, goes_on, argument), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("a task on an implicit budget gets a portion whenever it has no syscall left, and goes on")
{
    rig_all(goes_on_as_child, NULL, 3);
}

struct waits_often {
    janus_io ends[2];
    uint64_t ops, syscalls;
};

static int64_t read_after_kicks(void *argument)
{
    struct waits_often *self = argument;
    uint64_t            ops = 0, syscalls = 0;
    COST(CHECK_EQ(wire_get(self->ends[1]), 'k'));
    self->ops = ops;
    self->syscalls = syscalls;
    return 0;
}

static int64_t waits_are_free(void *argument)
{
    (void)argument;
    struct waits_often self = {.ops = 0};
    janus_nursery      n;
    wire_pair(self.ends);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, read_after_kicks, &self, JANUS_SPAWN_OPTIONS(.budget = &plenty), NULL),
        JANUS_OK);
    for (int i = 0; i < 3; i++) { /* each new deadline makes it wait anew */
        wire_await_waiter(self.ends[1], JANUS_IO_READ);
        uint64_t late = janus_now_ns() + UINT64_C(3600) * JANUS_SECONDS;
        CHECK_EQ(janus_io_set_deadline(self.ends[1], JANUS_IO_READ, late), JANUS_OK);
    }
    wire_await_waiter(self.ends[1], JANUS_IO_READ);
    wire_put(self.ends[0], "k", 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(self.ops, 1);
    CHECK_EQ(self.syscalls, 1);
    wire_close(self.ends);
    return 0;
}

TEST("a read that waits several times costs as much as a read that does not wait")
{
    rig_all(waits_are_free, NULL, 3);
}

/* Without syscalls. */

struct poor {
    janus_io ends[2];
    int      sum;
};

static int64_t read_three(void *argument)
{
    struct poor *poor = argument;
    for (int i = 0; i < 3; i++) poor->sum = poor->sum * 10 + wire_get(poor->ends[1]) - '0';
    return 0;
}

static int64_t recharged(void *argument)
{
    (void)argument;
    struct poor     poor = {.sum = 0};
    janus_nursery   n;
    janus_exhausted child = {.task = 0};
    janus_budget    pool = {.ops = 100000, .memory = 1 << 20, .syscalls = 100, .spawn_count = 1};
    janus_budget    none = {.ops = 1000}, two = {.syscalls = 2};
    wire_pair(poor.ends);
    wire_put(poor.ends[0], "123", 3);
    CHECK_EQ(
        janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, read_three, &poor, JANUS_SPAWN_OPTIONS(.budget = &none), NULL),
             JANUS_OK);
    for (int i = 0; i < 2; i++) { /* first none, then one short */
        CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
        CHECK_EQ(child.lacks, JANUS_COMPONENT_SYSCALLS);
        CHECK_EQ(child.left.syscalls, 0);
        CHECK_EQ(janus_nursery_recharge(&n, child.task, two), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(poor.sum, 123); /* no byte was lost */
    wire_close(poor.ends);
    return 0;
}

TEST("a task without syscalls stops at its first read, and goes on after a recharge")
{
    rig_all(recharged, NULL, 5);
}

static int64_t ended(void *argument)
{
    (void)argument;
    struct poor          poor = {.sum = 0};
    janus_nursery        n;
    janus_nursery_result result;
    janus_budget         none = {.ops = 1000};
    wire_pair(poor.ends);
    wire_put(poor.ends[0], "1", 1);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, read_three, &poor, JANUS_SPAWN_OPTIONS(.budget = &none), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(wire_get(poor.ends[1]), '1'); /* it is still there */
    wire_close(poor.ends);
    return 0;
}

TEST("a task without syscalls whose owner awaits it ends with BUDGET_EXHAUSTED, and takes no byte")
{
    rig_all(ended, NULL, 5);
}

/* Shares of a worker. */

struct mixed {
    janus_io          ends[2];
    atomic_int        stop;
    atomic_ullong     computed; /* pieces of some 10 us, each followed by a library call */
    _Atomic(uint64_t) poured;
    uint64_t          rounds;
};

static int64_t compute(void *argument)
{
    struct mixed *mixed = argument;
    while (!atomic_load(&mixed->stop)) {
        for (uint64_t end = janus_now_ns() + 10000; janus_now_ns() < end;) continue;
        atomic_fetch_add(&mixed->computed, 1);
        JANUS_IGNORE(janus_check());
    }
    return 0;
}

static int64_t reply(void *argument)
{
    struct mixed *mixed = argument;
    for (uint64_t i = 0; i < mixed->rounds; i++) {
        unsigned char byte = (unsigned char)wire_get(mixed->ends[1]);
        wire_put(mixed->ends[1], &byte, 1);
    }
    return 0;
}

static int64_t ask(void *argument)
{
    struct mixed *mixed = argument;
    for (uint64_t i = 0; i < mixed->rounds; i++) {
        unsigned char byte = wire_byte(i);
        wire_put(mixed->ends[0], &byte, 1);
        CHECK_EQ(wire_get(mixed->ends[0]), byte);
    }
    atomic_store(&mixed->stop, 1);
    return 0;
}

static int64_t mixed_load(void *argument)
{
    (void)argument;
    struct mixed mixed = {.rounds = 200};
    janus_status status;
    wire_tcp(mixed.ends);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(n, compute, &mixed), JANUS_OK);
        CHECK_EQ(janus_spawn(n, reply, &mixed), JANUS_OK);
        CHECK_EQ(janus_spawn(n, ask, &mixed), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    /* Neither kind starves. A round has two waits, looks at the set come every 200 us, and a turn
     * has two pieces. */
    uint64_t computed = atomic_load(&mixed.computed);
    CHECK(computed > mixed.rounds / 4);
    CHECK(computed < mixed.rounds * 400);
    wire_close(mixed.ends);
    return 0;
}

TEST("beside four computing tasks on one worker, an asking task gets its answers, and they compute")
{
    RIG_REAL("time passes while tasks compute");
    rig_run(1, mixed_load, NULL, 2);
}

static int64_t pour(void *argument)
{
    struct mixed *mixed = argument;
    static char   block[1 << 16];
    size_t        done;
    while (!atomic_load(&mixed->stop)) {
        CHECK_EQ(janus_io_write(mixed->ends[0], block, sizeof block, &done), JANUS_OK);
    }
    CHECK_EQ(janus_io_shutdown(mixed->ends[0], JANUS_IO_WRITE), JANUS_OK);
    return 0;
}

static int64_t swallow(void *argument)
{
    struct mixed *mixed = argument;
    static char   block[1 << 16];
    size_t        got;
    while (janus_io_read(mixed->ends[1], block, sizeof block, &got) == JANUS_OK) {
        atomic_fetch_add(&mixed->poured, got);
    }
    return 0;
}

static int64_t firehose(void *argument)
{
    (void)argument;
    struct mixed hose = {.rounds = 0}, asking = {.rounds = 300};
    janus_status status;
    wire_pair(hose.ends);
    wire_pair(asking.ends);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, pour, &hose), JANUS_OK);
        CHECK_EQ(janus_spawn(n, swallow, &hose), JANUS_OK);
        CHECK_EQ(janus_spawn(n, reply, &asking), JANUS_OK);
        CHECK_EQ(janus_spawn(n, ask, &asking), JANUS_OK);
        CHECK(rig_wait(&asking.stop));
        atomic_store(&hose.stop, 1);
    }
    CHECK_EQ(status, JANUS_OK);
    uint64_t poured = atomic_load(&hose.poured);
    CHECK(poured > 0);
    CHECK(poured / asking.rounds < 64 << 20); /* a round waits for less than 64 MiB */
    wire_close(hose.ends);
    wire_close(asking.ends);
    return 0;
}

TEST("a firehose beside requests on one worker holds up neither")
{
    RIG_REAL("time passes while tasks transfer");
    rig_run(1, firehose, NULL, 1);
}

/* Books. */

struct guest {
    uint32_t      fate;
    janus_address at;
};

static int64_t guest(void *argument)
{
    struct guest *self = argument;
    janus_io      io;
    char          bytes[16];
    size_t        got;
    janus_status  status = janus_connect(&self->at, NULL, &io);
    if (status != JANUS_OK) return status == JANUS_CANCELLED ? status : 0;
    if (self->fate % 7 == 1) janus_panic("on purpose");
    for (uint32_t i = 0; i < self->fate % 5; i++) {
        status = janus_io_write(io, bytes, sizeof bytes, NULL);
        if (status == JANUS_OK) status = janus_io_read(io, bytes, sizeof bytes, &got);
        if (status != JANUS_OK) return status == JANUS_CANCELLED ? status : 0;
    }
    return self->fate % 2 ? 0 : janus_io_close(io);
}

static int64_t host(janus_io io, void *argument)
{
    char   bytes[16];
    size_t got;
    (void)argument;
    while (janus_io_read(io, bytes, sizeof bytes, &got) == JANUS_OK) {
        if (janus_io_write(io, bytes, got, NULL) != JANUS_OK) break;
    }
    return 0;
}

static int64_t serve(void *argument)
{
    JANUS_IGNORE(janus_serve(*(janus_io *)argument, host, NULL, NULL, NULL));
    return 0;
}

static void visit(struct guest *guests, int count, const janus_address *at, uint32_t *random)
{
    janus_nursery           n;
    janus_nursery_pool_info before = JANUS_NURSERY_POOL_INFO(), after = JANUS_NURSERY_POOL_INFO();
    janus_budget pool = {.ops = 1000000, .memory = 1 << 24, .syscalls = 10000, .spawn_count = 100};
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL,
                                                          .budget = &pool, .owner_apart = true)),
             JANUS_OK);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &before), JANUS_OK);
    for (int i = 0; i < count; i++) {
        *random = *random * 1664525 + 1013904223;
        guests[i] = (struct guest){*random >> 8, *at};
        janus_budget budget = {.ops = 200, .memory = 1 << 13, .syscalls = *random >> 16 & 7};
        CHECK_EQ(
            janus_spawn_with(&n, guest, &guests[i], JANUS_SPAWN_OPTIONS(.budget = &budget), NULL),
            JANUS_OK);
    }
    if (*random % 3 == 0) CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    CHECK_EQ(janus_nursery_pool_inspect(&n, &after), JANUS_OK);
    CHECK_EQ(after.left.memory, before.left.memory); /* every handle's memory came back */
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

static int64_t books(void *argument)
{
    (void)argument;
    enum { GUESTS = 20 };
    struct guest  guests[GUESTS];
    janus_address at;
    janus_nursery n;
    uint32_t      random = 1;
    uint64_t      rounds = rig_few(RIG_SLOW ? 20 : 250);
    janus_io      listener = wire_listen(&at);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, serve, &listener), JANUS_OK);
    for (uint64_t i = 0; i < rounds; i++) visit(guests, GUESTS, &at, &random);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("the books balance after connections with random exhaustion, cancels and panics")
{
    int before = wire_descriptors();
    rig_all(books, NULL, 1);
    CHECK_EQ(wire_descriptors(), before);
}

/* Servers. */

static int64_t swallow_slowly(janus_io io, void *argument)
{
    char         bytes[256];
    size_t       got;
    janus_status status;
    (void)argument;
    do status = janus_io_read(io, bytes, 1, &got);
    while (status == JANUS_OK);
    return status == JANUS_CLOSED ? 0 : status;
}

/* The client of a connection that ends gets the end or a reset, and the next client is served. */
static int64_t flood(void *argument)
{
    janus_io     *listener = argument, io;
    janus_address at;
    CHECK_EQ(janus_io_local(*listener, &at), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        janus_status status = janus_connect(&at, NULL, &io);
        CHECK_EQ(status, JANUS_OK);
        char zeros[512] = {0};
        while (status == JANUS_OK) status = janus_io_write(io, zeros, sizeof zeros, NULL);
        CHECK(status == JANUS_BROKEN || status == JANUS_RESET);
        CHECK_EQ(janus_io_close(io), JANUS_OK);
    }
    return janus_io_close(*listener);
}

static int64_t serve_flood(void *argument)
{
    const janus_budget limit = janus_budget_of(1000, 1 << 20, 0, 0, 20);
    janus_io           listener;
    janus_address      at;
    janus_nursery      n;
    (void)argument;
    listener = wire_listen(&at);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, flood, &listener), JANUS_OK);
    CHECK_EQ(
        janus_serve(listener, swallow_slowly, NULL, NULL, JANUS_SPAWN_OPTIONS(.budget = &limit)),
        JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a connection that has used up its budget is closed, and the server goes on")
{
    rig_all(serve_flood, NULL, 5);
}
