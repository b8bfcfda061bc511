/* SPDX-License-Identifier: MIT */
/* Cancels: a wait ends at once, and no byte and no connection is lost or doubled. */
#include "wire.h"

static uint64_t rounds_of(uint64_t usual)
{
    const char *models = getenv("JANUSRT_MODELS");
    if (models != NULL && strcmp(models, "long") == 0) return usual * 10;
    return rig_few(RIG_SLOW ? usual / 20 : usual);
}

enum call { READ, READ_FULL, WRITE, WAIT, ACCEPT, RECEIVE, CALLS };

struct waiter {
    enum call    call;
    janus_io     io;
    janus_status told;
    size_t       count;
    bool         deferred;
    atomic_int   begun;
};

static void note_defer(void *argument) { ((struct waiter *)argument)->deferred = true; }

static janus_status do_call(struct waiter *self)
{
    static char block[1 << 20];
    char        bytes[4];
    janus_io    made;
    switch (self->call) {
    case READ: return janus_io_read(self->io, bytes, sizeof bytes, &self->count);
    case READ_FULL: return janus_io_read_full(self->io, bytes, sizeof bytes, &self->count);
    case WAIT: return janus_io_wait(self->io, JANUS_IO_READ);
    case ACCEPT: return janus_accept(self->io, &made, NULL);
    case RECEIVE:
        return janus_datagram_receive(self->io, bytes, sizeof bytes, &self->count, NULL, NULL);
    default: break;
    }
    do self->told = janus_io_write(self->io, block, sizeof block, &self->count);
    while (self->told == JANUS_OK);
    return self->told;
}

static int64_t wait_there(void *argument)
{
    struct waiter *self = argument;
    CHECK_EQ(janus_defer(note_defer, self), JANUS_OK);
    self->told = do_call(self);
    CHECK_EQ(do_call(self), JANUS_CANCELLED); /* once more: it stays cancelled */
    return self->told;
}

static janus_io make_for(enum call call, janus_io ends[2])
{
    janus_address at;
    ends[0] = ends[1] = (janus_io){{0, 0}};
    if (call == ACCEPT) return ends[1] = wire_listen(&at);
    if (call == RECEIVE) {
        CHECK_EQ(janus_datagram_open(NULL, JANUS_FAMILY_IPV4, NULL, &ends[1]), JANUS_OK);
        return ends[1];
    }
    wire_tcp(ends);
    return ends[1];
}

static int64_t cancel_each(void *argument)
{
    (void)argument;
    for (enum call call = READ; call < CALLS; call++) {
        janus_io      ends[2];
        struct waiter self = {.call = call, .io = make_for(call, ends), .told = JANUS_OK};
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, wait_there, &self), JANUS_OK);
        wire_await_waiter(ends[1], call == WRITE ? JANUS_IO_WRITE : JANUS_IO_READ);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(self.told, JANUS_CANCELLED);
        CHECK(self.deferred);
        if (call != WRITE) CHECK_EQ(self.count, 0);
        wire_close(ends); /* the handle is the owner's: it lives on */
    }
    return 0;
}

TEST("a cancel ends a read, a write, a wait, an accept and a receive with CANCELLED")
{
    rig_all(cancel_each, NULL, 10);
}

/* The storm: a byte arrives while the reader is cancelled. */

struct storm {
    janus_io      io;
    janus_status  told;
    unsigned char byte;
    bool          began;
};

static int64_t storm_reader(void *argument)
{
    struct storm *storm = argument;
    size_t        got = 0;
    storm->began = true;
    storm->told = janus_io_read(storm->io, &storm->byte, 1, &got);
    CHECK_EQ(got, storm->told == JANUS_OK ? 1 : 0);
    return storm->told;
}

struct blow {
    janus_io io;
    uint64_t round;
};

static int64_t blow(void *argument)
{
    struct blow  *self = argument;
    unsigned char byte = wire_byte(self->round);
    wire_put(self->io, &byte, 1);
    return 0;
}

static int64_t cancel_storm(void *argument)
{
    uint64_t rounds = *(uint64_t *)argument, taken = 0, left = 0;
    janus_io ends[2];
    wire_pair(ends);
    for (uint64_t i = 0; i < rounds; i++) {
        struct storm  storm = {.io = ends[1], .told = JANUS_CANCELLED};
        struct blow   self = {ends[0], i};
        janus_nursery readers, others;
        CHECK_EQ(janus_nursery_open(&others, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&readers, JANUS_NURSERY_OPTIONS(.owner_apart = true)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&readers, storm_reader, &storm), JANUS_OK);
        if (i % 4 != 0) JANUS_IGNORE(janus_yield());
        if (i % 2 == 0) CHECK_EQ(janus_spawn(&others, blow, &self), JANUS_OK);
        if (i % 2 != 0) CHECK_EQ(blow(&self), 0);
        if (i % 3 == 0) JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_nursery_cancel(&readers), JANUS_OK);
        janus_status ended = janus_nursery_end(&readers, NULL);
        CHECK(ended == JANUS_OK || ended == JANUS_CANCELLED);
        CHECK_EQ(janus_nursery_end(&others, NULL), JANUS_OK);
        if (storm.told == JANUS_OK) {
            taken++;
        } else {
            CHECK_EQ(storm.told, JANUS_CANCELLED);
            storm.byte = (unsigned char)wire_get(ends[1]); /* it is still there */
            left++;
        }
        CHECK_EQ(storm.byte, wire_byte(i));
        size_t got;
        CHECK_EQ(janus_io_try_read(ends[1], &storm.byte, 1, &got), JANUS_WOULD_WAIT);
    }
    CHECK_EQ(taken + left, rounds);
    wire_close(ends);
    return 0;
}

TEST("of all bytes that arrive while their reader is cancelled none is lost and none is doubled")
{
    uint64_t rounds = rounds_of(40000);
    rig_run(2, cancel_storm, &rounds, 1);
    rounds = rounds_of(30000);
    rig_run(1, cancel_storm, &rounds, 1);
    rig_run(8, cancel_storm, &rounds, 1);
}

/* A write that is cancelled half-way. */

struct pouring {
    janus_io     io;
    size_t       done;
    janus_status told;
};

static int64_t pour_much(void *argument)
{
    struct pouring *self = argument;
    size_t          bytes = 8 << 20;
    unsigned char  *block = malloc(bytes);
    wire_fill(block, bytes, 0);
    self->told = janus_io_write(self->io, block, bytes, &self->done);
    free(block);
    return self->told;
}

static int64_t cancelled_write(void *argument)
{
    (void)argument;
    janus_io       ends[2];
    unsigned char  block[5000];
    size_t         got = 0, all = 0;
    janus_nursery  n;
    janus_status   status;
    struct pouring self = {.told = JANUS_CANCELLED}; /* it may never run */
    wire_tcp(ends);
    self.io = ends[0];
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, pour_much, &self), JANUS_OK);
    size_t some = janus_now_ns() / 128 % 50 * sizeof block;
    while (all < some) {
        CHECK_EQ(janus_io_read(ends[1], block, sizeof block, &got), JANUS_OK);
        wire_check(block, got, all);
        all += got;
    }
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    status = janus_nursery_end(&n, NULL);
    CHECK(status == JANUS_CANCELLED || self.told == JANUS_OK);
    CHECK(self.told == JANUS_CANCELLED || self.done == 8 << 20);
    CHECK_EQ(janus_io_shutdown(ends[0], JANUS_IO_WRITE), JANUS_OK);
    while ((status = janus_io_read(ends[1], block, sizeof block, &got)) == JANUS_OK) {
        wire_check(block, got, all);
        all += got;
    }
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK_EQ(all, self.done);
    wire_close(ends);
    return 0;
}

TEST("a write that was cancelled half-way reports exactly the bytes that the other end received")
{
    rig_all(cancelled_write, NULL, RIG_SLOW ? 1 : 20);
}

/* Accepts. */

static int64_t accept_one(void *argument)
{
    struct waiter *self = argument;
    janus_io       made;
    self->told = janus_accept(self->io, &made, NULL);
    if (self->told != JANUS_OK) return self->told;
    janus_shield_begin(); /* the cancel may come after the accept */
    self->count = (size_t)wire_get(made);
    janus_shield_end();
    return 0;
}

static int64_t accept_storm(void *argument)
{
    (void)argument;
    janus_address at;
    janus_io      listener = wire_listen(&at);
    uint64_t      rounds = rounds_of(1000);
    for (uint64_t i = 0; i < rounds; i++) {
        struct waiter self = {.io = listener, .told = JANUS_CANCELLED}, next = self;
        janus_io      client;
        janus_nursery n;
        unsigned char byte = wire_byte(i);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, accept_one, &self), JANUS_OK);
        if (i % 3 != 0) JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_connect(&at, NULL, &client), JANUS_OK);
        wire_put(client, &byte, 1);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        if (self.told != JANUS_OK) {
            CHECK_EQ(self.told, JANUS_CANCELLED);
            CHECK_EQ(accept_one(&next), 0);
            self.count = next.count;
        }
        CHECK_EQ(self.count, byte);
        CHECK_EQ(janus_io_close(client), JANUS_OK);
    }
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    return 0;
}

TEST("a cancelled accept loses no connection: the next acceptor gets it")
{
    rig_all(accept_storm, NULL, 1);
}

/* A connect to a listener that answers no more. */
static int64_t connect_there(void *argument)
{
    struct waiter *self = argument;
    janus_address  at;
    janus_io       made;
    CHECK_EQ(janus_io_local(self->io, &at), JANUS_OK);
    self->told = janus_connect(&at, NULL, &made);
    return self->told;
}

static int64_t cancelled_connect(void *argument)
{
    (void)argument;
    janus_address at;
    janus_io      listener, filled[16];
    int           before = 0;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
    CHECK_EQ(janus_listen(&at, JANUS_LISTEN_OPTIONS(.backlog = 1), &listener), JANUS_OK);
    CHECK_EQ(janus_io_local(listener, &at), JANUS_OK);
    uint64_t soon = janus_now_ns() + 50 * rig_ms;
    int      count = 0;
    while (count < 16 && janus_connect(&at, JANUS_CONNECT_OPTIONS(.deadline_ns = soon),
                                       &filled[count]) == JANUS_OK) {
        count++;
    }
    CHECK(count < 16);
    before = wire_sockets();
    struct waiter self = {.io = listener, .told = JANUS_OK};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, connect_there, &self), JANUS_OK);
    while (wire_sockets() == before) JANUS_IGNORE(janus_yield()); /* it has its socket */
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(self.told, JANUS_CANCELLED);
    CHECK_EQ(wire_sockets(), before);
    for (int i = 0; i < count; i++) CHECK_EQ(janus_io_close(filled[i]), JANUS_OK);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    return 0;
}

TEST("a connect that nobody answers ends by its deadline or a cancel, and leaves no descriptor")
{
    RIG_REAL("a listener that drops what does not fit");
    rig_all(cancelled_connect, NULL, 1);
}

/* Nursery deadlines, shields, unwinding. */

struct slow {
    janus_io      ends[2];
    struct waiter waiter;
    atomic_int    mine; /* the child's own end is open */
};

static int64_t slow_peer(void *argument)
{
    struct slow *slow = argument;
    CHECK_EQ(janus_io_take(slow->ends[1]), JANUS_OK);
    CHECK_EQ(janus_defer(note_defer, &slow->waiter), JANUS_OK);
    char   bytes[8];
    size_t got = 0;
    slow->waiter.told = janus_io_read(slow->ends[1], bytes, sizeof bytes, &got);
    CHECK_EQ(got, 0);
    return slow->waiter.told;
}

static int64_t nursery_deadline(void *argument)
{
    (void)argument;
    enum { CHILDREN = 10 };
    static struct slow slow[CHILDREN];
    janus_nursery      n;
    char               byte;
    size_t             got;
    memset(slow, 0, sizeof slow);
    for (int i = 0; i < CHILDREN; i++) wire_tcp(slow[i].ends);
    uint64_t deadline = janus_now_ns() + 5 * rig_ms;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = deadline)), JANUS_OK);
    for (int i = 0; i < CHILDREN; i++) {
        janus_status status = janus_spawn(&n, slow_peer, &slow[i]);
        CHECK(status == JANUS_OK || status == JANUS_CLOSED);
        if (status != JANUS_OK) slow[i].waiter.count = 1;
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK(janus_now_ns() >= deadline);
    for (int i = 0; i < CHILDREN; i++) {
        if (slow[i].waiter.deferred) { /* it ran */
            CHECK_EQ(slow[i].waiter.told, JANUS_CANCELLED);
            CHECK_EQ(janus_io_read(slow[i].ends[1], &byte, 1, &got), JANUS_STALE);
        }
        CHECK_EQ(janus_io_close(slow[i].ends[0]), JANUS_OK);
    }
    return 0;
}

TEST("a nursery's deadline ends the reads of all children, runs their defers, closes their handles")
{
    rig_all(nursery_deadline, NULL, 3);
}

static int64_t shielded_reader(void *argument)
{
    struct waiter *self = argument;
    char           byte;
    janus_shield   shield;
    atomic_store(&self->begun, 1);
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_io_read(self->io, &byte, 1, &self->count), JANUS_CANCELLED);
    janus_shield_begin();
    CHECK_EQ(wire_get(self->io), 's'); /* waits for it */
    janus_shield_end();
    janus_shield_begin_until(&shield, janus_now_ns() + rig_ms);
    CHECK_EQ(janus_io_read(self->io, &byte, 1, &self->count), JANUS_CANCELLED);
    janus_shield_end();
    return JANUS_CANCELLED;
}

static int64_t shields(void *argument)
{
    (void)argument;
    janus_io      ends[2];
    janus_nursery n;
    wire_tcp(ends);
    struct waiter self = {.io = ends[1]};
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, shielded_reader, &self), JANUS_OK);
    CHECK(rig_wait(&self.begun)); /* a child that has not begun is cancelled without running */
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    wire_await_waiter(ends[1], JANUS_IO_READ);
    wire_put(ends[0], "s", 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    wire_close(ends);
    return 0;
}

TEST("in a shield a cancelled task reads, until the shield's deadline")
{
    rig_all(shields, NULL, 5);
}

static int64_t unwound(void *argument)
{
    struct slow *slow = argument;
    JANUS_IGNORE(slow_peer(slow));
    slow->waiter.count = 99; /* never */
    return 0;
}

static int64_t unwinds(void *argument)
{
    (void)argument;
    struct slow   slow = {.mine = 0};
    janus_nursery n;
    char          byte;
    size_t        got;
    wire_tcp(slow.ends);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, unwound, &slow,
                              JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
             JANUS_OK);
    wire_await_waiter(slow.ends[1], JANUS_IO_READ);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK(slow.waiter.deferred);
    CHECK_EQ(slow.waiter.count, 0);
    CHECK_EQ(janus_io_read(slow.ends[1], &byte, 1, &got), JANUS_STALE);
    CHECK_EQ(janus_io_read(slow.ends[0], &byte, 1, &got), JANUS_CLOSED);
    CHECK_EQ(janus_io_close(slow.ends[0]), JANUS_OK);
    return 0;
}

TEST("a task with UNWIND that is cancelled in a read is unwound, and its handle is closed")
{
    rig_all(unwinds, NULL, 10);
}
