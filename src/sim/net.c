/* SPDX-License-Identifier: MIT */
/*
 * The network of a world: one host that has every address.
 *
 * A thread in a world has this table of calls instead of the system's (plat/net.h). Descriptors are
 * numbers from JRT_NET_SIMULATED on. The network gives out the number that was closed last. So a
 * program that uses a closed descriptor soon meets another's bytes.
 *
 * Bytes travel in segments. Each has a time of arrival: now and a delay, but never before the
 * segment ahead of it. Nothing happens at that time. Every call first lets everything happen to its
 * socket that is due (jrt_sim_touch). So there are no timers. Only sets and sleeping threads need
 * to know when the next segment arrives.
 *
 * The world decides how much of a transfer is done, how long segments travel, and what fails. The
 * first answer is always the usual one: all bytes, the shortest delay, no fault.
 *
 * [sim-short]  after a short read a program may assume that nothing is left, and after a short
 *   write that there is no room. Then it waits for an event. So the rest of a read that the world
 *   cut arrives a little later, with an event. After a write that the world cut, the socket takes
 *   nothing for a while, and then an event comes. If the end of the stream has arrived, all bytes
 *   have arrived, and a cut read leaves them readable.
 *
 * [sim-edge]  events are those of an edge-triggered epoll set. A segment, an end, a reset, a
 *   connection, a datagram or new room for a sender that found none makes its socket ready, once.
 *   The event says what is true when it is taken: all bits, not only what has changed.
 *
 * [sim-set]  a set keeps its members in a heap, ordered by when their next segment arrives. A
 *   thread in set_wait sleeps on the set's word until then. A send that creates an earlier arrival
 *   wakes it. A ring adds one to the word; any thread may do so.
 */
#include "sim/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16, FIRST_PORT = 32768 };

struct jrt_sim *jrt_sim(void)
{
    struct world *world = (struct world *)jrt_world_now();
    if (jrt_likely(world->network != NULL)) return world->network;
    struct jrt_sim *net = calloc(1, sizeof *net);
    if (net == NULL) return NULL;
    net->world = &world->interface;
    net->port = FIRST_PORT;
    world->network = net;
    return net;
}

/* Descriptors. */

struct sim_socket *jrt_sim_find(const struct jrt_sim *net, int fd)
{
    uint32_t at = (uint32_t)fd - (uint32_t)JRT_NET_SIMULATED;
    return net != NULL && at < net->used ? net->sockets[at] : NULL;
}

struct sim_socket *jrt_sim_make(enum sim_what what, janus_family family)
{
    struct sim_socket *socket = calloc(1, sizeof *socket);
    if (socket == NULL) return NULL;
    socket->fd = -1;
    socket->what = what;
    socket->family = family;
    socket->due_ns = socket->error_ns = JRT_NEVER;
    return socket;
}

static bool make_room(struct jrt_sim *net)
{
    uint32_t            room = net->room == 0 ? FIRST_ROOM : net->room * 2;
    struct sim_socket **sockets = realloc(net->sockets, room * sizeof(struct sim_socket *));
    if (sockets == NULL) return false;
    net->sockets = sockets;
    int *list = realloc(net->free, room * sizeof *list);
    if (list == NULL) return false;
    net->free = list;
    net->room = room;
    return true;
}

int jrt_sim_open(struct jrt_sim *net, struct sim_socket *socket)
{
    if (net->free_count > 0) {
        socket->fd = net->free[--net->free_count];
    } else {
        if (net->used == net->room && !make_room(net)) return -ENOMEM;
        socket->fd = JRT_NET_SIMULATED + (int)net->used++;
    }
    net->sockets[socket->fd - JRT_NET_SIMULATED] = socket;
    net->open++;
    return socket->fd;
}

bool jrt_sim_no_descriptor(struct jrt_sim *net)
{
    return jrt_sim_fails(net, JRT_FAULT_DESCRIPTOR, NULL, SIM_ACT_DESCRIPTOR);
}

static void drop_backlog(struct jrt_sim *net, struct sim_socket *listener)
{
    while (listener->queue != NULL) {
        struct sim_socket *socket = listener->queue;
        listener->queue = socket->queue_next;
        jrt_sim_end(net, socket);
    }
}

void jrt_sim_end(struct jrt_sim *net, struct sim_socket *socket)
{
    if (socket->fd >= 0) {
        net->sockets[socket->fd - JRT_NET_SIMULATED] = NULL;
        net->free[net->free_count++] = socket->fd;
        net->open--;
    }
    for (struct sim_waiter *w = socket->waiters; w != NULL; w = w->next) {
        w->gone = true;
        net->world->wake(net->world, w->word, 1);
    }
    jrt_sim_set_leave(socket);
    jrt_sim_unbind(net, socket);
    if (socket->link != NULL) jrt_sim_unlink_end(net, socket, true);
    drop_backlog(net, socket);
    jrt_sim_mail_free(socket);
    if (socket->starved) net->starved--;
    free(socket);
}

/* The table's calls that belong to no kind. */

static int make_socket(janus_family family, int type)
{
    struct jrt_sim *net = jrt_sim();
    if (net == NULL) return -ENOMEM;
    bool known = family >= JANUS_FAMILY_IPV4 && family <= JANUS_FAMILY_ABSTRACT;
    if (!known) return -EAFNOSUPPORT;
    if (type != SOCK_STREAM && type != SOCK_DGRAM) return -EPROTONOSUPPORT;
    if (jrt_sim_no_descriptor(net)) return -EMFILE;
    struct sim_socket *socket =
        jrt_sim_make(type == SOCK_STREAM ? SIM_FRESH : SIM_DATAGRAM, family);
    if (socket == NULL) return -ENOMEM;
    if (type == SOCK_DGRAM) socket->number = ++net->datagrams;
    int fd = jrt_sim_open(net, socket);
    if (fd < 0) free(socket);
    return fd;
}

static int close_it(int fd)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    jrt_sim_note(net, fd, -1);
    jrt_sim_end(net, socket);
    return 0;
}

static int make_two(int out[2], enum sim_link_kind kind)
{
    struct jrt_sim *net = jrt_sim();
    if (net == NULL) return -ENOMEM;
    if (jrt_sim_no_descriptor(net)) return -EMFILE;
    struct sim_socket *first = jrt_sim_make(SIM_STREAM, JANUS_FAMILY_UNIX);
    struct sim_socket *second = jrt_sim_make(SIM_STREAM, JANUS_FAMILY_UNIX);
    if (first != NULL && second != NULL && jrt_sim_link(net, kind, first, second)) {
        out[0] = jrt_sim_open(net, first);
        out[1] = out[0] >= 0 ? jrt_sim_open(net, second) : -ENOMEM;
        if (out[1] >= 0) return 0;
    }
    if (first != NULL) jrt_sim_end(net, first);
    if (second != NULL) jrt_sim_end(net, second);
    return -ENOMEM;
}

static int make_pair(int out[2]) { return make_two(out, SIM_PAIR); }
static int make_pipe(int out[2]) { return make_two(out, SIM_PIPE); }

static int take_error(int fd)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    jrt_sim_touch(net, socket, false);
    int error = socket->error;
    socket->error = 0;
    return -error;
}

static bool is_pipe(const struct sim_socket *socket)
{
    return socket->link != NULL && socket->link->kind == SIM_PIPE;
}

static int shut_down(int fd, uint32_t ways)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    if (is_pipe(socket)) return -ENOTSOCK;
    jrt_sim_touch(net, socket, false);
    if (socket->what != SIM_STREAM || socket->dead) return -ENOTCONN;
    return jrt_sim_stream_shutdown(net, socket, ways);
}

static int local_of(int fd, janus_address *out)
{
    const struct sim_socket *socket = jrt_sim_find(jrt_sim(), fd);
    if (socket == NULL) return -EBADF;
    if (is_pipe(socket)) return -ENOTSOCK;
    *out = socket->local;
    if (out->family != JANUS_FAMILY_NONE || jrt_sim_is_unix(socket->family)) return 0;
    out->family = (uint8_t)socket->family; /* not bound: no address and no port */
    out->count = socket->family == JANUS_FAMILY_IPV4 ? 4 : 16;
    return 0;
}

static int peer_of(int fd, janus_address *out)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    if (is_pipe(socket)) return -ENOTSOCK;
    jrt_sim_touch(net, socket, false);
    bool mail = socket->what == SIM_DATAGRAM && socket->remote.family != JANUS_FAMILY_NONE;
    if (!mail && (socket->what != SIM_STREAM || socket->dead)) return -ENOTCONN;
    *out = socket->remote;
    return 0;
}

/* Options that change nothing here are accepted. */
static int set_option(int fd, enum jrt_net_option which, int64_t value)
{
    struct sim_socket *socket = jrt_sim_find(jrt_sim(), fd);
    if (socket == NULL) return -EBADF;
    if (is_pipe(socket)) return -ENOTSOCK;
    switch (which) {
    case JRT_NET_REUSE_ADDRESS: socket->reuse_address = value != 0; break;
    case JRT_NET_REUSE_PORT: socket->reuse_port = value != 0; break;
    case JRT_NET_ONLY_V6:
        if (socket->family != JANUS_FAMILY_IPV6) return -ENOPROTOOPT;
        socket->only_v6 = value != 0;
        break;
    case JRT_NET_NO_DELAY:
    case JRT_NET_SEND_BUFFER:
    case JRT_NET_RECEIVE_BUFFER: break;
    }
    return 0;
}

/* Transfers. */

static ptrdiff_t receive(int fd, bool socket, const struct iovec *to, int count)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *from = jrt_sim_find(net, fd);
    ptrdiff_t          got;
    if (from == NULL) return -EBADF;
    switch (from->what) {
    case SIM_DATAGRAM: got = jrt_sim_mail_receive(net, from, to, count, NULL, NULL); break;
    case SIM_LISTENER: return -ENOTCONN;
    default:
        if (socket && is_pipe(from)) return -ENOTSOCK;
        got = jrt_sim_stream_receive(net, from, to, count);
    }
    jrt_sim_note(net, fd, got);
    return got;
}

static ptrdiff_t send_it(int fd, bool socket, const struct iovec *from, int count)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *to = jrt_sim_find(net, fd);
    ptrdiff_t          done;
    if (to == NULL) return -EBADF;
    switch (to->what) {
    case SIM_DATAGRAM: done = jrt_sim_mail_send(net, to, from, count, NULL); break;
    case SIM_LISTENER: return -EPIPE;
    default:
        if (socket && is_pipe(to)) return -ENOTSOCK;
        done = jrt_sim_stream_send(net, to, from, count);
    }
    jrt_sim_note(net, fd, done);
    return done;
}

/* The end of a world. */

static void forget(struct jrt_sim *net, struct sim_socket *socket)
{
    while (socket->queue != NULL) {
        struct sim_socket *next = socket->queue->queue_next;
        forget(net, socket->queue);
        socket->queue = next;
    }
    if (socket->link != NULL) jrt_sim_unlink_end(net, socket, false);
    jrt_sim_mail_free(socket);
    free(socket);
}

_Atomic(jrt_sim_orphan *) jrt_sim_orphaned;

/* A handle that outlives its world must not name a descriptor of a later one. */
static void end_handle(const struct sim_socket *socket, bool left)
{
    jrt_sim_orphan *orphaned = jrt_load_acquire(&jrt_sim_orphaned); /* acquire: its table. */
    if (socket == NULL || orphaned == NULL || (socket->handle[0] | socket->handle[1]) == 0) return;
    uint64_t handle[2] = {socket->handle[0], socket->handle[1]};
    orphaned(handle, left);
}

void jrt_sim_close(struct jrt_world *world, bool tell)
{
    struct jrt_sim *net = ((struct world *)world)->network;
    char            words[256];
    if (net == NULL) return;
    if (tell && !world->mute && !net->told && jrt_sim_leaks(world, words, sizeof words) > 0) {
        fprintf(stderr, "janusrt: a simulated run ended: %s\n", words);
    }
    for (uint32_t i = 0; i < net->used; i++) end_handle(net->sockets[i], !tell);
    for (uint32_t i = 0; i < net->used; i++) {
        if (net->sockets[i] != NULL) forget(net, net->sockets[i]);
    }
    while (net->sets != NULL) {
        struct sim_set *next = net->sets->next;
        free(net->sets->heap);
        free(net->sets);
        net->sets = next;
    }
    while (net->names != NULL) {
        struct sim_name *next = net->names->next;
        free(net->names);
        net->names = next;
    }
    jrt_sim_hosts_free(net);
    free(net->sockets);
    free(net->free);
    free(net);
    ((struct world *)world)->network = NULL;
}

const struct jrt_net jrt_net_sim = {
    .set_open = jrt_sim_set_open,
    .set_close = jrt_sim_set_close,
    .set_add = jrt_sim_set_add,
    .set_remove = jrt_sim_set_remove,
    .set_wait = jrt_sim_set_wait,
    .set_ring = jrt_sim_set_ring,
    .is_quiet = jrt_sim_is_quiet,
    .socket = make_socket,
    .bind = jrt_sim_bind,
    .listen = jrt_sim_listen,
    .accept = jrt_sim_accept,
    .connect = jrt_sim_connect,
    .error = take_error,
    .shutdown = shut_down,
    .local = local_of,
    .peer = peer_of,
    .option = set_option,
    .pair = make_pair,
    .pipe = make_pipe,
    .close = close_it,
    .receive = receive,
    .send = send_it,
    .receive_from = jrt_sim_receive_from,
    .send_to = jrt_sim_send_to,
    .wait_one = jrt_sim_wait_one,
    .bell_open = jrt_sim_bell_open,
    .bell_ring = jrt_sim_bell_ring,
    .bell_close = jrt_sim_bell_close,
    .look_up = jrt_sim_look_up,
};
