/* SPDX-License-Identifier: MIT */
/* Handles: stale and forged ones, rights, owners. */
#include "io/io.h"
#include "wire.h"

/* Every call with a handle that must be refused. */
static void refused(janus_io io, janus_status status)
{
    char           byte = 0;
    size_t         count = 0;
    int            fd = -1;
    janus_io       other;
    janus_address  address;
    janus_io_piece piece = {&byte, 1};
    janus_io_info  info = JANUS_IO_INFO();
    CHECK_EQ(janus_io_read(io, &byte, 1, &count), status);
    CHECK_EQ(janus_io_try_read(io, &byte, 1, &count), status);
    CHECK_EQ(janus_io_read_full(io, &byte, 1, &count), status);
    CHECK_EQ(janus_io_readv(io, &piece, 1, &count), status);
    CHECK_EQ(janus_io_write(io, &byte, 1, &count), status);
    CHECK_EQ(janus_io_try_write(io, &byte, 1, &count), status);
    CHECK_EQ(janus_io_writev(io, &piece, 1, &count), status);
    CHECK_EQ(count, 0);
    CHECK_EQ(janus_io_wait(io, JANUS_IO_READ), status);
    CHECK_EQ(janus_io_set_deadline(io, JANUS_IO_BOTH, 1), status);
    CHECK_EQ(janus_io_shutdown(io, JANUS_IO_BOTH), status);
    CHECK_EQ(janus_io_attenuate(io, JANUS_IO_MAY_READ, &other), status);
    CHECK_EQ(janus_io_take(io), status);
    CHECK_EQ(janus_io_inspect(io, &info), status);
    CHECK_EQ(janus_io_local(io, &address), status);
    CHECK_EQ(janus_io_peer(io, &address), status);
    CHECK_EQ(janus_accept(io, &other, NULL), status);
    if (!rig_simulated()) CHECK_EQ(janus_io_release(io, &fd), status);
    CHECK_EQ(fd, -1);
    CHECK_EQ(janus_io_close(io), status);
}

static int64_t stale(void *argument)
{
    (void)argument;
    janus_io ends[2], others[2];
    wire_tcp(ends);
    wire_close(ends);
    refused(ends[0], JANUS_STALE);
    wire_tcp(others);
    wire_put(others[0], "secret", 6);
    refused(ends[0], JANUS_STALE);
    refused(ends[1], JANUS_STALE);
    wire_close(others);
    return 0;
}

TEST("every call with a closed handle returns STALE") { rig_all(stale, NULL, 5); }

/* One task opens and closes connections with a secret byte; others try what it has closed. */
struct reuse {
    _Atomic(uint64_t) names[2]; /* the latest handle; torn reads are forged ones */
    atomic_int        done;
    atomic_ullong     tries, hits;
    int               rounds;
};

static int64_t reopen(void *argument)
{
    struct reuse *all = argument;
    for (int i = 0; i < all->rounds; i++) {
        janus_io ends[2];
        wire_pair(ends);
        wire_put(ends[0], "s", 1);
        JANUS_IGNORE(janus_io_close(ends[1]));
        atomic_store(&all->names[0], ends[1].opaque[0]); /* closed before anybody knows it */
        atomic_store(&all->names[1], ends[1].opaque[1]);
        JANUS_IGNORE(janus_io_close(ends[0]));
    }
    atomic_store(&all->done, 1);
    return 0;
}

static int64_t try_stale(void *argument)
{
    struct reuse *all = argument;
    while (!atomic_load(&all->done)) {
        janus_io io = {{atomic_load(&all->names[0]), atomic_load(&all->names[1])}};
        char     bytes[16];
        size_t   got = 0;
        for (int i = 0; i < 16; i++) {
            janus_status status = janus_io_try_read(io, bytes, sizeof bytes, &got);
            CHECK(status == JANUS_STALE || status == JANUS_INVALID);
            CHECK_EQ(got, 0);
            atomic_fetch_add(&all->tries, 1);
        }
    }
    return 0;
}

static int64_t reuse_race(void *argument)
{
    janus_status status;
    struct reuse all = {.rounds = (int)rig_few(*(uint64_t *)argument)};
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(n, try_stale, &all), JANUS_OK);
        CHECK_EQ(janus_spawn(n, reopen, &all), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

TEST("a stale handle never reaches the connection that uses its place and descriptor again")
{
    uint64_t rounds = RIG_SLOW ? 2000 : 20000;
    rig_all(reuse_race, &rounds, 1);
}

static uint64_t mix(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (*state ^ *state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int64_t forge(void *argument)
{
    (void)argument;
    janus_io ends[2];
    uint64_t state = 7, tries = rig_few(RIG_SLOW ? 100000 : 1000000);
    wire_tcp(ends);
    wire_put(ends[0], "x", 1);
    for (uint64_t i = 0; i < tries; i++) {
        uint64_t noise = mix(&state);
        janus_io io = ends[1];
        switch (i % 5) {
        case 0: io.opaque[1] ^= noise | 1; break;
        case 1: io.opaque[0] ^= 1 + noise % 15, io.opaque[1] ^= 1 + noise % 15; break;
        case 2: io.opaque[0] = noise; break;
        case 3: io.opaque[i / 5 % 2] ^= UINT64_C(1) << noise % 64; break;
        default: io.opaque[0] ^= noise, io.opaque[1] ^= noise; break;
        }
        if (io.opaque[0] == ends[1].opaque[0] && io.opaque[1] == ends[1].opaque[1]) continue;
        if (io.opaque[0] == 0 && io.opaque[1] == 0) continue;
        char         byte;
        size_t       got = 0;
        janus_status status = janus_io_try_read(io, &byte, 1, &got);
        CHECK_EQ(status, JANUS_STALE);
        CHECK_EQ(got, 0);
    }
    CHECK_EQ(wire_get(ends[1]), 'x');
    wire_close(ends);
    return 0;
}

TEST("no forged handle of a million is accepted") { rig_run(2, forge, NULL, 1); }

/* Rights. */

static int64_t attenuated(void *argument)
{
    (void)argument;
    janus_io      ends[2], reads, writes, closes, more;
    janus_io_info info = JANUS_IO_INFO();
    char          byte;
    size_t        got;
    wire_tcp(ends);
    CHECK_EQ(janus_io_attenuate(ends[1], JANUS_IO_MAY_READ, &reads), JANUS_OK);
    CHECK_EQ(janus_io_attenuate(ends[1], JANUS_IO_MAY_WRITE, &writes), JANUS_OK);
    CHECK_EQ(janus_io_attenuate(ends[1], JANUS_IO_MAY_CLOSE, &closes), JANUS_OK);
    CHECK_EQ(janus_io_write(reads, "x", 1, NULL), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_close(reads), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_set_deadline(reads, JANUS_IO_READ, 1), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_shutdown(writes, JANUS_IO_WRITE), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_take(writes), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_read(writes, &byte, 1, &got), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_wait(writes, JANUS_IO_READ), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_attenuate(reads, JANUS_IO_MAY_READ | JANUS_IO_MAY_WRITE, &more),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_io_attenuate(reads, JANUS_IO_MAY_CLOSE, &more), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_io_attenuate(reads, 0, &more), JANUS_INVALID);
    CHECK_EQ(janus_io_attenuate(reads, 16, &more), JANUS_INVALID);
    CHECK_EQ(janus_io_attenuate(reads, JANUS_IO_MAY_READ, &more), JANUS_OK);
    CHECK_EQ(janus_io_inspect(reads, &info), JANUS_OK);
    CHECK_EQ(info.rights, JANUS_IO_MAY_READ);
    wire_put(ends[0], "a", 1);
    CHECK_EQ(wire_get(more), 'a');
    wire_put(writes, "b", 1);
    CHECK_EQ(wire_get(ends[0]), 'b');
    CHECK_EQ(janus_io_close(closes), JANUS_OK); /* the same close ends all */
    CHECK_EQ(janus_io_read(reads, &byte, 1, &got), JANUS_STALE);
    CHECK_EQ(janus_io_write(writes, "x", 1, NULL), JANUS_STALE);
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_STALE);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    return 0;
}

TEST("a narrowed handle does what its rights say, cannot be widened, and ends with the others")
{
    rig_all(attenuated, NULL, 3);
}

/* Owners. */

struct owned {
    janus_io ends[2];
    janus_io kept[2];
};

static int64_t open_and_leave(void *argument)
{
    struct owned *owned = argument;
    wire_tcp(owned->ends);
    CHECK_EQ(janus_io_pair(JANUS_IO_OPTIONS(.kept = true, .name = "kept"), owned->kept), JANUS_OK);
    return 0;
}

static int64_t owner_ends(void *argument)
{
    (void)argument;
    struct owned  owned;
    janus_status  status;
    janus_io_info info = JANUS_IO_INFO();
    char          byte;
    size_t        got;
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, open_and_leave, &owned), JANUS_OK); }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_io_read(owned.ends[0], &byte, 1, &got), JANUS_STALE);
    CHECK_EQ(janus_io_read(owned.ends[1], &byte, 1, &got), JANUS_STALE);
    CHECK_EQ(janus_io_inspect(owned.kept[0], &info), JANUS_OK);
    CHECK_STR(info.name, "kept");
    wire_put(owned.kept[0], "k", 1);
    CHECK_EQ(wire_get(owned.kept[1]), 'k');
    wire_close(owned.kept);
    return 0;
}

TEST("a task's end closes what it opened, and nothing that it asked to keep")
{
    rig_all(owner_ends, NULL, 20);
}

struct taker {
    janus_io   io;
    atomic_int opened, taken, go;
};

static int64_t take_it(void *argument)
{
    struct taker *taker = argument;
    CHECK_EQ(janus_io_take(taker->io), JANUS_OK);
    atomic_store(&taker->taken, 1);
    CHECK(rig_wait(&taker->go));
    CHECK_EQ(wire_get(taker->io), 't');
    return 0;
}

static int64_t open_and_give(void *argument)
{
    struct taker *taker = argument;
    janus_io      ends[2];
    wire_tcp(ends);
    wire_put(ends[0], "t", 1);
    taker->io = ends[1];
    atomic_store(&taker->opened, 1);
    CHECK(rig_wait(&taker->taken));
    return 0; /* closes the end that nobody took */
}

static int64_t given(void *argument)
{
    (void)argument;
    struct taker taker = {.opened = 0};
    janus_status status;
    char         byte;
    size_t       got;
    JANUS_NURSERY(n, status)
    {
        janus_task_id giver;
        CHECK_EQ(janus_spawn_with(n, open_and_give, &taker, NULL, &giver), JANUS_OK);
        CHECK(rig_wait(&taker.opened));
        CHECK_EQ(janus_spawn(n, take_it, &taker), JANUS_OK);
        CHECK_EQ(janus_join(n, giver, NULL), JANUS_OK);
        atomic_store(&taker.go, 1);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_io_read(taker.io, &byte, 1, &got), JANUS_STALE); /* the taker has ended */
    return 0;
}

TEST("a taken handle outlives its first owner and ends with the task that took it")
{
    rig_all(given, NULL, 20);
}

static int64_t crowd(void *argument)
{
    janus_io ends[2];
    char     byte;
    size_t   got;
    (void)argument;
    wire_pair(ends);
    struct jrt_io *io = jrt_io_of(ends[1]);
    jrt_fetch_add_relaxed(&io->use, JRT_IO_WAITERS); /* relaxed: as if other calls were inside. */
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_FULL);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_STALE);
    jrt_fetch_sub_relaxed(&io->use, JRT_IO_WAITERS - 1); /* relaxed: all but one have left. */
    jrt_io_leave(io, 0);
    return janus_io_close(ends[0]);
}

TEST("however many calls wait at a handle, it can be closed") { rig_all(crowd, NULL, 5); }
