/* SPDX-License-Identifier: MIT */
/* Sockets under capabilities: what a task may reach, how many it may have, and revocation. */
#include "../task/caps.h"
#include "wire.h"

#include <janusrt/file.h>
#include <janusrt/grant.h>
#include <janusrt/signal.h>
#include <signal.h>
#include <stdio.h>

/* Runs `entry` as the first task, where every right must be granted. */
static void sovereign(uint32_t workers, janus_entry *entry)
{
    const janus_budget plenty = janus_budget_of(1 << 30, 1 << 24, 1000, 1000, 1 << 20);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .yield_interval = 512,

                                               .profile = JANUS_PROFILE_SOVEREIGN,
                                               .task_budget = &plenty,
                                               .exhaustion = JANUS_EXHAUSTION_AUTO),
                       entry, NULL, NULL),
             JANUS_OK);
}

static void everywhere(janus_entry *entry)
{
    sovereign(1, entry);
    sovereign(2, entry);
    sovereign(8, entry);
}

static janus_authority *authority(void)
{
    janus_authority *root;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    return root;
}

static janus_cap net(const janus_authority *root, const char *range, uint64_t handles)
{
    janus_cap_limits limits;
    janus_cap        cap;
    CHECK_EQ(janus_net_limits_parse(range, handles, &limits.net), JANUS_OK);
    CHECK_EQ(janus_cap_mint(root, 0,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_NET, .rights = JANUS_RIGHTS_ALL,
                                            .limits = &limits),
                            &cap),
             JANUS_OK);
    return cap;
}

static void bind(janus_nursery *n, janus_cap cap)
{
    CHECK_EQ(janus_nursery_open(n, JANUS_NURSERY_OPTIONS(.net_cap = cap)), JANUS_OK);
}

/* An address on loopback that no other process uses. */
static const char *mine(unsigned port)
{
    static _Thread_local char text[32];
    int                       process = getpid();
    (void)snprintf(text, sizeof text, "127.%d.%d.%d:%u", 1 + process / 250 / 250 % 250,
                   process / 250 % 250, 1 + process % 250, port);
    return text;
}

static janus_status listen_at(const char *text, janus_io *out)
{
    janus_address at;
    janus_io      io;
    CHECK_EQ(janus_address_parse(text, &at), JANUS_OK);
    janus_status status = janus_listen(&at, NULL, out != NULL ? out : &io);
    if (status == JANUS_OK && out == NULL) CHECK_EQ(janus_io_close(io), JANUS_OK);
    return status;
}

static janus_status connect_to(const char *text, janus_io *out)
{
    janus_address at;
    janus_io      io;
    CHECK_EQ(janus_address_parse(text, &at), JANUS_OK);
    janus_status status = janus_connect(&at, NULL, out != NULL ? out : &io);
    if (status == JANUS_OK && out == NULL) CHECK_EQ(janus_io_close(io), JANUS_OK);
    return status;
}

static bool said(const char *what)
{
    char text[512];
    (void)janus_explain(text, sizeof text);
    if (strstr(text, what) != NULL) return true;
    printf("# it says: %s\n", text);
    return false;
}

static int64_t reach_nothing(void *argument)
{
    janus_io io;
    (void)argument;
    CHECK_EQ(listen_at(mine(8000), NULL), JANUS_NO_NET_CAP);
    CHECK(said("net.listen"));
    CHECK(said(mine(8000)));
    CHECK_EQ(connect_to(mine(8000), NULL), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_datagram_open(NULL, JANUS_FAMILY_IPV4, NULL, &io), JANUS_NO_NET_CAP);
    CHECK(said("net.datagram"));
    return 0;
}

TEST("in :sovereign a task without a capability opens no socket") { everywhere(reach_nothing); }

static int64_t reach_a_range(void *argument)
{
    janus_nursery n;
    janus_io      listener, ends[2];
    (void)argument;
    bind(&n, net(authority(), "127.0.0.0/8:8000-8999", 10));
    CHECK_EQ(listen_at(mine(8000), &listener), JANUS_OK);
    CHECK_EQ(connect_to(mine(8000), &ends[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &ends[1], NULL), JANUS_OK);
    wire_put(ends[0], "x", 1);
    CHECK_EQ(wire_get(ends[1]), 'x');
    wire_close(ends);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    CHECK_EQ(listen_at(mine(9000), NULL), JANUS_CAP_LIMIT);
    CHECK(said("127.0.0.0/8, ports 8000 to 8999"));
    static const char *const outside[] = {"10.0.0.1:8000", "[::ffff:10.0.0.1]:8000",
                                          "[::1]:8000",    "0.0.0.0:8000",
                                          "[::]:8000",     "127.0.0.1:0",
                                          "unix:/tmp/x",   "unix:@x"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        CHECK_EQ(listen_at(outside[i], NULL), JANUS_CAP_LIMIT);
        CHECK_EQ(connect_to(outside[i], NULL), JANUS_CAP_LIMIT);
    }
    return janus_nursery_end(&n, NULL);
}

TEST("a task reaches what its capability's range allows, and nothing by another spelling")
{
    everywhere(reach_a_range);
}

/* The source of a connection. */

/* To the listener at mine(8000). */
static janus_status connect_from(const char *source)
{
    janus_address from, to;
    janus_io      io;
    CHECK_EQ(janus_address_parse(source, &from), JANUS_OK);
    CHECK_EQ(janus_address_parse(mine(8000), &to), JANUS_OK);
    janus_status status = janus_connect(&to, JANUS_CONNECT_OPTIONS(.from = &from), &io);
    if (status == JANUS_OK) CHECK_EQ(janus_io_close(io), JANUS_OK);
    return status;
}

static int64_t begin_in_a_range(void *argument)
{
    janus_nursery   n;
    janus_io        listener;
    char            address[32], range[64];
    static unsigned rounds;
    (void)argument;
    (void)snprintf(address, sizeof address, "%s", mine(0));
    int length = (int)strcspn(address, ":"); /* this address alone */
    (void)snprintf(range, sizeof range, "%.*s/32:8000-8999", length, address);
    bind(&n, net(authority(), range, 10));
    CHECK_EQ(listen_at(mine(8000), &listener), JANUS_OK);
    CHECK_EQ(connect_from(mine(0)), JANUS_OK);               /* the system chooses the port */
    CHECK_EQ(connect_from(mine(8100 + rounds++)), JANUS_OK); /* the last one lingers */
    CHECK_EQ(connect_from(mine(9500)), JANUS_CAP_LIMIT);
    CHECK(said(mine(9500)));
    CHECK_EQ(connect_from("127.0.0.1:0"), JANUS_CAP_LIMIT);
    CHECK(said("127.0.0.1"));
    CHECK_EQ(connect_from("0.0.0.0:0"), JANUS_CAP_LIMIT);
    CHECK_EQ(connect_from("unix:@x"), JANUS_CAP_LIMIT);
    janus_io made[2]; /* the handles of refused connects do not count */
    CHECK_EQ(janus_accept(listener, &made[0], NULL), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &made[1], NULL), JANUS_OK);
    wire_close(made);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("the source of a connection lies in the capability's range, too, or the connect is refused")
{
    everywhere(begin_in_a_range);
}

static int64_t send_in_a_range(void *argument)
{
    janus_nursery n;
    janus_io      from, to;
    janus_address at, outside;
    char          byte = 0;
    size_t        got = 0;
    (void)argument;
    bind(&n, net(authority(), "127.0.0.0/8:8000-8999", 10));
    CHECK_EQ(janus_address_parse(mine(8001), &at), JANUS_OK);
    CHECK_EQ(janus_address_parse(mine(9001), &outside), JANUS_OK);
    CHECK_EQ(janus_datagram_open(&outside, 0, NULL, &to), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_datagram_open(&at, 0, NULL, &to), JANUS_OK);
    CHECK_EQ(janus_datagram_open(NULL, JANUS_FAMILY_IPV4, NULL, &from), JANUS_OK);
    CHECK_EQ(janus_datagram_send(from, "x", 1, &outside), JANUS_CAP_LIMIT);
    CHECK(said("net.datagram"));
    CHECK_EQ(janus_datagram_send(from, "x", 1, &at), JANUS_OK);
    CHECK_EQ(janus_datagram_receive(to, &byte, 1, &got, NULL, NULL), JANUS_OK);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(janus_io_close(from), JANUS_OK);
    CHECK_EQ(janus_io_close(to), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("each datagram is checked against the range of addresses") { everywhere(send_in_a_range); }

static int64_t count_connections(void *argument)
{
    janus_nursery n;
    janus_io      listener, a[2], b[2];
    (void)argument;
    bind(&n, net(authority(), "127.0.0.0/8:8000-8999", 4));
    CHECK_EQ(listen_at(mine(8002), &listener), JANUS_OK);
    CHECK_EQ(connect_to(mine(8002), &a[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &a[1], NULL), JANUS_OK);
    CHECK_EQ(connect_to(mine(8002), &b[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &b[1], NULL), JANUS_HANDLE_LIMIT);
    CHECK(said("4 of 4 used"));
    CHECK_EQ(connect_to(mine(8002), NULL), JANUS_HANDLE_LIMIT);
    janus_io pair[2];
    CHECK_EQ(janus_io_pair(NULL, pair), JANUS_HANDLE_LIMIT);
    CHECK_EQ(janus_io_close(a[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &b[1], NULL), JANUS_OK); /* the connection has waited */
    wire_put(b[0], "y", 1);
    CHECK_EQ(wire_get(b[1]), 'y');
    wire_close(b);
    CHECK_EQ(janus_io_close(a[1]), JANUS_OK);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("connections above the limit of handles wait, and go on when one is closed")
{
    everywhere(count_connections);
}

/* A file that changes hands between two capabilities while it is written. */

enum { WRITES = 200 };

struct moved {
    janus_io   file;
    atomic_int opened, done;
};

static int64_t write_in_vain(void *argument)
{
    struct moved *self = argument;
    size_t        done;
    CHECK_EQ(janus_file_open((janus_io){{0, 0}}, "/dev/full", JANUS_OPEN_WRITE, NULL, &self->file),
             JANUS_OK);
    atomic_store(&self->opened, 1);
    for (uint64_t i = 0; i < rig_few(WRITES * 10); i++) {
        CHECK_EQ(janus_io_take(self->file), JANUS_OK);
        /* Nothing is written, so the limit of 15 bytes in all is never reached. */
        CHECK_EQ(janus_io_write(self->file, "1234567890", 10, &done), JANUS_FULL);
    }
    atomic_store(&self->done, 1);
    return 0;
}

static int64_t take_and_take(void *argument)
{
    struct moved *self = argument;
    CHECK(rig_wait(&self->opened));
    while (!atomic_load(&self->done)) {
        janus_status status = janus_io_take(self->file);
        CHECK(status == JANUS_OK || status == JANUS_STALE); /* the writer has ended */
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t write_while_taken(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.file = {4, 15}};
    struct moved           self = {.opened = 0};
    janus_nursery          writers, takers;
    (void)argument;
    janus_cap spawn = caps_spawn(root, 10);
    janus_cap caps[2];
    for (int i = 0; i < 2; i++) {
        caps[i] = caps_mint(root, JANUS_CAP_KIND_FILE, JANUS_RIGHTS_ALL, &limits);
    }
    CHECK_EQ(janus_nursery_open(&writers,
                                JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .file_cap = caps[0])),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&writers, write_in_vain, &self), JANUS_OK);
    CHECK_EQ(
        janus_nursery_open(&takers, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .file_cap = caps[1])),
        JANUS_OK);
    CHECK_EQ(janus_spawn(&takers, take_and_take, &self), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&takers, NULL), JANUS_OK);
    return janus_nursery_end(&writers, NULL);
}

TEST("bytes that were not written go back to the capability that they came from")
{
    caps_all(write_while_taken, NULL);
}

static int64_t revoke_in_use(void *argument)
{
    janus_cap     cap = net(authority(), "127.0.0.0/8:8000-8999", 10);
    janus_nursery n;
    janus_io      listener, ends[2], more;
    (void)argument;
    bind(&n, cap);
    CHECK_EQ(listen_at(mine(8003), &listener), JANUS_OK);
    CHECK_EQ(connect_to(mine(8003), &ends[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &ends[1], NULL), JANUS_OK);
    CHECK_EQ(janus_cap_revoke(cap, cap), JANUS_OK);
    CHECK_EQ(connect_to(mine(8003), NULL), JANUS_CAP_REVOKED);
    CHECK_EQ(listen_at(mine(8004), NULL), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_accept(listener, &more, NULL), JANUS_CAP_REVOKED);
    wire_put(ends[0], "z", 1);
    CHECK_EQ(wire_get(ends[1]), 'z');
    wire_close(ends);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("after a revocation no connection is made, and those that stand go on")
{
    everywhere(revoke_in_use);
}

/* What concerns the whole process. */

static int64_t reach_for_the_process(void *argument)
{
    janus_io io, pair[2];
    int      fd;
    uint32_t ready;
    (void)argument;
    CHECK_EQ(janus_io_adopt(0, NULL, &io), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_io_wait_fd(0, JANUS_IO_READ, 0, &ready), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_signal_raise(SIGTERM), JANUS_NO_PROCESS_CAP); /* the process goes on */
    CHECK_EQ(janus_signal_catch(SIGTERM, NULL), JANUS_NO_PROCESS_CAP);
    wire_pair(pair); /* what is its own it may use */
    CHECK_EQ(janus_io_release(pair[0], &fd), JANUS_NO_NET_CAP);
    wire_close(pair);
    return 0;
}

static int64_t in_a_pool(void *argument)
{
    const janus_budget pool = janus_budget_of(100000, 1 << 20, 10, 100, 100);
    janus_nursery      n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, reach_for_the_process, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("in a pool of :service a task reaches no descriptor by number, and no signal of the process")
{
    RIG_REAL("there are no descriptors of the system");
    rig_all(in_a_pool, NULL, 3);
}
