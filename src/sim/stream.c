/* SPDX-License-Identifier: MIT */
/* Byte streams of the simulated network: TCP, Unix streams, pairs and pipes. The essay is in
 * net.c. */
#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_RING = 256, FIRST_SEGMENTS = 4 };

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t sooner(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A direction. */

static void way_init(struct sim_way *way) { way->end_ns = way->reset_ns = JRT_NEVER; }

static struct sim_segment *segment_at(const struct sim_way *way, uint32_t i)
{
    return &way->segments[(way->segments_begin + i) & (way->segments_room - 1)];
}

static bool grow_ring(struct sim_way *way, uint32_t count)
{
    uint32_t room = way->room == 0 ? FIRST_RING : way->room;
    if (count <= way->room) return true;
    while (room < count) room *= 2;
    char *ring = malloc(room);
    if (ring == NULL) return false;
    uint32_t first = way->room - way->begin < way->count ? way->room - way->begin : way->count;
    if (way->count > 0) {
        memcpy(ring, way->ring + way->begin, first);
        memcpy(ring + first, way->ring, way->count - first);
    }
    free(way->ring);
    way->ring = ring;
    way->room = room;
    way->begin = 0;
    return true;
}

static bool grow_segments(struct sim_way *way)
{
    if (way->on_way < way->segments_room) return true;
    uint32_t            room = way->segments_room == 0 ? FIRST_SEGMENTS : way->segments_room * 2;
    struct sim_segment *segments = malloc(room * sizeof *segments);
    if (segments == NULL) return false;
    for (uint32_t i = 0; i < way->on_way; i++) segments[i] = *segment_at(way, i);
    free(way->segments);
    way->segments = segments;
    way->segments_room = room;
    way->segments_begin = 0;
    return true;
}

/* Copies between the ring, from `at` on, and the caller's memory. */
static void copy_in(struct sim_way *way, uint32_t at, const char *from, uint32_t count)
{
    uint32_t to = (way->begin + at) & (way->room - 1);
    uint32_t first = way->room - to < count ? way->room - to : count;
    memcpy(way->ring + to, from, first);
    memcpy(way->ring, from + first, count - first);
}

static void copy_out(const struct sim_way *way, uint32_t at, char *to, uint32_t count)
{
    uint32_t from = (way->begin + at) & (way->room - 1);
    uint32_t first = way->room - from < count ? way->room - from : count;
    memcpy(to, way->ring + from, first);
    memcpy(to + first, way->ring, count - first);
}

static void append(struct sim_way *way, const struct iovec *from, uint32_t count)
{
    for (uint32_t left = count; left > 0; from++) {
        uint32_t some = from->iov_len < left ? (uint32_t)from->iov_len : left;
        if (some > 0) copy_in(way, way->count, from->iov_base, some);
        way->count += some;
        left -= some;
    }
}

static void take(struct sim_way *way, const struct iovec *to, uint32_t count)
{
    uint32_t at = 0;
    for (uint32_t left = count; left > 0; to++) {
        uint32_t some = to->iov_len < left ? (uint32_t)to->iov_len : left;
        if (some > 0) copy_out(way, at, to->iov_base, some);
        at += some;
        left -= some;
    }
    way->begin = (way->begin + count) & (way->room - 1);
    way->count -= count;
    way->arrived -= count;
}

/* The bytes were appended and arrive then. There is room for a segment. */
static void depart(struct sim_way *way, uint64_t arrives_ns, uint32_t bytes)
{
    struct sim_segment *last = way->on_way > 0 ? segment_at(way, way->on_way - 1) : NULL;
    if (last != NULL && last->arrives_ns == arrives_ns) {
        last->bytes += bytes;
    } else {
        *segment_at(way, way->on_way++) = (struct sim_segment){arrives_ns, bytes};
    }
    way->last_ns = arrives_ns;
}

/* What has arrived and was not read arrives again, [sim-short]. Everything behind it waits. */
static void postpone(struct sim_way *way, uint64_t until_ns)
{
    uint32_t bytes = way->arrived;
    while (way->on_way > 0 && segment_at(way, 0)->arrives_ns <= until_ns) {
        bytes += segment_at(way, 0)->bytes;
        way->segments_begin++;
        way->on_way--;
    }
    way->arrived = bytes;
    if (bytes == 0 || !grow_segments(way)) return; /* without memory, it stays readable */
    way->arrived = 0;
    way->segments_begin--;
    *segment_at(way, 0) = (struct sim_segment){until_ns, bytes};
    way->on_way++;
    way->last_ns = later(way->last_ns, until_ns);
    if (!way->ended) way->end_ns = later(way->end_ns, until_ns);
    way->reset_ns = later(way->reset_ns, until_ns);
}

/* Forgets all bytes that have not arrived. */
static void lose(struct sim_way *way)
{
    for (uint32_t i = 0; i < way->on_way; i++) way->count -= segment_at(way, i)->bytes;
    way->on_way = 0;
}

/* Connections. */

bool jrt_sim_link(struct jrt_sim *net, enum sim_link_kind kind, struct sim_socket *first,
                  struct sim_socket *second)
{
    struct sim_link *link = calloc(1, sizeof *link);
    if (link == NULL) return false;
    link->kind = kind;
    link->number = kind == SIM_PAIR ? ++net->pairs : kind == SIM_PIPE ? ++net->pipes : 0;
    if (link->number == 0) link->number = first->number;
    link->delay_ns = kind == SIM_TCP ? sim_short_ns : 0;
    for (uint32_t i = 0; i < 2; i++) {
        struct sim_socket *socket = i == 0 ? first : second;
        way_init(&link->ways[i]);
        link->ends[i] = socket;
        socket->link = link;
        socket->end = (uint8_t)i;
    }
    return true;
}

static void link_free(struct sim_link *link)
{
    for (int i = 0; i < 2; i++) {
        free(link->ways[i].ring);
        free(link->ways[i].segments);
    }
    free(link);
}

static void send_end(struct jrt_sim *net, struct sim_socket *socket)
{
    struct sim_way *out = jrt_sim_out(socket);
    uint64_t        delay = socket->link->delay_ns;
    if (socket->link->kind == SIM_TCP) delay = jrt_sim_delay(net, socket, SIM_ACT_END);
    socket->sends_no_more = true;
    if (out->broken) return;
    out->end_ns = out->last_ns = later(out->last_ns, jrt_sim_now(net) + delay);
}

/* As TCP does: bytes that nobody will read are answered with a reset. */
static void leave_tcp(struct jrt_sim *net, struct sim_socket *socket, struct sim_socket *peer)
{
    struct sim_way *in = jrt_sim_in(socket), *out = jrt_sim_out(socket);
    uint64_t        now = jrt_sim_now(net);
    if (peer->what == SIM_CONNECTING && socket->fd < 0) { /* the listener was closed */
        peer->answer = ECONNREFUSED;
        return;
    }
    if (socket->dead || out->broken) return;
    bool unread = in->arrived > 0 || socket->fd < 0;
    if (!unread && !socket->sends_no_more) send_end(net, socket);
    if (unread) {
        out->reset_ns = later(out->last_ns, now + sim_short_ns);
    } else if (in->on_way > 0) {
        out->reset_ns = later(out->last_ns, segment_at(in, 0)->arrives_ns + sim_short_ns);
    }
}

/* As one system does, at once. */
static void leave_local(struct jrt_sim *net, struct sim_socket *socket, struct sim_socket *peer)
{
    struct sim_way *in = jrt_sim_in(socket), *out = jrt_sim_out(socket);
    bool            pipe = socket->link->kind == SIM_PIPE;
    if (!pipe || socket->end == 1) {
        if (!socket->sends_no_more) out->end_ns = later(out->last_ns, jrt_sim_now(net));
    }
    if (pipe && socket->end == 1) return; /* a reader stays */
    peer->dead = true;
    bool unread = in->count > 0 || socket->fd < 0;
    if (!pipe && unread) peer->error = ECONNRESET;
}

void jrt_sim_unlink_end(struct jrt_sim *net, struct sim_socket *socket, bool fair)
{
    struct sim_link   *link = socket->link;
    struct sim_socket *peer = jrt_sim_peer(socket);
    bool               tcp = link->kind == SIM_TCP;
    if (fair && peer != NULL) {
        (void)jrt_sim_stream_settle(socket, jrt_sim_now(net));
        if (tcp) {
            leave_tcp(net, socket, peer);
        } else {
            leave_local(net, socket, peer);
        }
        lose(jrt_sim_in(socket));
        jrt_sim_in(socket)->count = jrt_sim_in(socket)->arrived = 0;
    }
    link->ends[socket->end] = NULL;
    socket->link = NULL;
    if (peer != NULL && peer->what == SIM_CONNECTING && peer->answer != 0) peer->link = NULL;
    if (peer == NULL || peer->link == NULL) link_free(link);
    if (fair && peer != NULL) jrt_sim_touch(net, peer, !tcp);
}

/* A connection breaks. The caller's end notices at `when_ns`, the other a little later. */
static void break_link(struct jrt_sim *net, struct sim_socket *socket, uint64_t when_ns)
{
    uint64_t other_ns = jrt_sim_now(net) + sim_short_ns;
    for (uint32_t i = 0; i < 2; i++) {
        struct sim_socket *end = socket->link->ends[i];
        struct sim_way    *way = &socket->link->ways[i];
        lose(way);
        way->broken = true;
        if (!way->ended) way->end_ns = JRT_NEVER;
        way->reset_ns = end == socket ? when_ns : other_ns;
        if (end != NULL) jrt_sim_touch(net, end, false);
    }
}

/* What happens by itself. */

bool jrt_sim_stream_settle(struct sim_socket *socket, uint64_t now)
{
    struct sim_way *in = jrt_sim_in(socket), *out = jrt_sim_out(socket);
    bool            came = false;
    while (in->on_way > 0 && segment_at(in, 0)->arrives_ns <= now) {
        in->arrived += segment_at(in, 0)->bytes;
        in->segments_begin++;
        in->on_way--;
        came = true;
    }
    if (in->end_ns <= now && !in->ended) came = in->ended = true;
    if (in->reset_ns <= now) {
        in->reset_ns = JRT_NEVER;
        if (!socket->dead) socket->error = in->ended ? EPIPE : ECONNRESET;
        came = socket->dead = true;
    }
    if (out->hold_ns != 0 && out->hold_ns <= now) {
        out->hold_ns = 0;
        came = true;
    }
    return came;
}

uint64_t jrt_sim_stream_due(const struct sim_socket *socket)
{
    const struct sim_way *in = jrt_sim_in(socket), *out = jrt_sim_out(socket);
    uint64_t              due = in->reset_ns;
    if (in->on_way > 0) due = sooner(due, segment_at(in, 0)->arrives_ns);
    if (!in->ended) due = sooner(due, in->end_ns);
    if (out->hold_ns != 0) due = sooner(due, out->hold_ns);
    return due;
}

/* A sender that learns that there is no room gets an event when there is. */
static bool is_writable(struct sim_way *out)
{
    if (out->hold_ns != 0) return false;
    if (SIM_ROOM - out->count < SIM_WRITABLE) out->hold_ns = JRT_NEVER;
    return out->hold_ns == 0;
}

/* Whether the other end has said that it reads no more. Only one system hears that. */
static bool is_unheard(const struct sim_socket *socket)
{
    const struct sim_socket *peer = jrt_sim_peer(socket);
    return socket->link->kind != SIM_TCP && peer != NULL && peer->reads_no_more;
}

static uint32_t pipe_mask(struct sim_socket *socket)
{
    if (socket->end == 1) {
        return (is_writable(jrt_sim_out(socket)) || socket->dead ? JRT_NET_WRITE : 0u) |
               (socket->dead ? JRT_NET_ERR : 0u);
    }
    const struct sim_way *in = jrt_sim_in(socket);
    return (in->arrived > 0 ? JRT_NET_READ : 0u) | (in->ended ? JRT_NET_HUP : 0u);
}

uint32_t jrt_sim_stream_mask(struct sim_socket *socket)
{
    const struct sim_way *in = jrt_sim_in(socket);
    if (socket->link->kind == SIM_PIPE) return pipe_mask(socket);
    bool     read_over = in->ended || socket->reads_no_more || socket->dead;
    bool     write_over = socket->sends_no_more || socket->dead || is_unheard(socket);
    uint32_t mask = socket->error != 0 ? JRT_NET_ERR : 0u;
    if (in->arrived > 0 || read_over) mask |= JRT_NET_READ;
    if (read_over) mask |= JRT_NET_RDHUP;
    if (read_over && write_over) mask |= JRT_NET_HUP;
    if (write_over || is_writable(jrt_sim_out(socket))) mask |= JRT_NET_WRITE;
    return mask;
}

/* Transfers. */

static uint64_t sum(const struct iovec *pieces, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pieces[i].iov_len;
    return bytes;
}

static int take_error(struct sim_socket *socket)
{
    int error = socket->error;
    socket->error = 0;
    return -error;
}

/* The answer of a receive that finds no bytes. */
static int nothing_left(struct sim_socket *socket)
{
    const struct sim_way *in = jrt_sim_in(socket);
    bool                  tcp = socket->link->kind == SIM_TCP;
    /* The other end of a pair is gone, but not the rest of a read that was cut, [sim-short]. */
    if (!tcp && in->on_way > 0 && !in->ended && !socket->reads_no_more) return -EAGAIN;
    if (socket->error != 0 && !(in->ended && tcp)) return take_error(socket);
    return in->ended || socket->dead || socket->reads_no_more ? 0 : -EAGAIN;
}

static void make_room(struct jrt_sim *net, struct sim_socket *socket)
{
    struct sim_way *in = jrt_sim_in(socket);
    if (in->hold_ns != JRT_NEVER || SIM_ROOM - in->count < SIM_WRITABLE) return;
    in->hold_ns = jrt_sim_now(net) + socket->link->delay_ns;
    if (jrt_sim_peer(socket) != NULL) jrt_sim_touch(net, jrt_sim_peer(socket), false);
}

ptrdiff_t jrt_sim_stream_receive(struct jrt_sim *net, struct sim_socket *socket,
                                 const struct iovec *to, int count)
{
    jrt_sim_touch(net, socket, false);
    if (socket->what == SIM_CONNECTING) return -EAGAIN;
    if (socket->what == SIM_FRESH) return socket->error != 0 ? take_error(socket) : -ENOTCONN;
    struct sim_way *in = jrt_sim_in(socket);
    uint64_t        wanted = sum(to, count);
    if (socket->link->kind == SIM_PIPE && socket->end == 1) return -EBADF;
    if (socket->link->kind == SIM_TCP && !socket->dead &&
        jrt_sim_fails(net, JRT_FAULT_RESET, socket, SIM_ACT_RESET)) {
        break_link(net, socket, jrt_sim_now(net));
    }
    if (wanted == 0) return 0;
    if (in->arrived == 0) return nothing_left(socket);
    uint32_t there = in->arrived < wanted ? in->arrived : (uint32_t)wanted;
    socket->reads++;
    uint32_t some = jrt_sim_cut(net, socket, SIM_ACT_READ, there, there);
    take(in, to, some);
    if (some < there && !in->ended && !socket->dead) { /* [sim-short] */
        postpone(in, jrt_sim_now(net) + sim_short_ns);
        jrt_sim_touch(net, socket, false);
    }
    jrt_debug_invariant("sim-short",
                        some == there || in->arrived == 0 || in->ended || socket->dead);
    make_room(net, socket);
    return some;
}

/* Whether a send cannot begin, and why: -errno. */
static int cannot_send(struct sim_socket *socket, uint64_t wanted)
{
    struct sim_way *out = jrt_sim_out(socket);
    bool            tcp = socket->link->kind == SIM_TCP;
    if (socket->link->kind == SIM_PIPE && socket->end == 0) return -EBADF;
    if (tcp && socket->error != 0) return take_error(socket);
    if (socket->dead || socket->sends_no_more) return -EPIPE;
    if (is_unheard(socket)) return -EPIPE;
    if (out->hold_ns != 0) return -EAGAIN;
    uint32_t room = SIM_ROOM - out->count;
    bool     whole = socket->link->kind == SIM_PIPE && wanted <= SIM_PIPE_ATOMIC;
    if (room > 0 && (!whole || room >= wanted)) return 0;
    out->hold_ns = JRT_NEVER;
    return -EAGAIN;
}

/* Faults of a connection. Returns whether the bytes are lost. */
static bool is_broken(struct jrt_sim *net, struct sim_socket *socket)
{
    if (socket->link->kind != SIM_TCP) return false;
    if (jrt_sim_fails(net, JRT_FAULT_RESET, socket, SIM_ACT_RESET)) {
        break_link(net, socket, jrt_sim_now(net) + sim_short_ns);
        return true;
    }
    if (jrt_sim_fails(net, JRT_FAULT_STALL, socket, SIM_ACT_STALL)) {
        uint64_t until = jrt_sim_now(net) + jrt_sim_stall(net, socket);
        for (int i = 0; i < 2; i++) {
            socket->link->ways[i].last_ns = later(socket->link->ways[i].last_ns, until);
        }
    }
    return false;
}

/* The bytes travel to the other end. */
static bool carry(struct jrt_sim *net, struct sim_socket *socket, const struct iovec *from,
                  uint32_t some)
{
    struct sim_way *out = jrt_sim_out(socket);
    uint64_t        now = jrt_sim_now(net);
    if (out->broken) return true;       /* lost */
    if (jrt_sim_peer(socket) == NULL) { /* it is answered with a reset */
        struct sim_way *in = jrt_sim_in(socket);
        in->reset_ns = sooner(in->reset_ns, later(in->last_ns, now + 2 * sim_short_ns));
        return true;
    }
    if (!grow_ring(out, out->count + some) || !grow_segments(out)) return false;
    append(out, from, some);
    uint64_t delay = socket->link->delay_ns;
    if (socket->link->kind == SIM_TCP) delay = jrt_sim_delay(net, socket, SIM_ACT_TRAVEL);
    depart(out, later(out->last_ns, now + delay), some);
    jrt_sim_touch(net, jrt_sim_peer(socket), false);
    return true;
}

ptrdiff_t jrt_sim_stream_send(struct jrt_sim *net, struct sim_socket *socket,
                              const struct iovec *from, int count)
{
    jrt_sim_touch(net, socket, false);
    if (socket->what == SIM_CONNECTING) return -EAGAIN;
    if (socket->what == SIM_FRESH) return socket->error != 0 ? take_error(socket) : -EPIPE;
    struct sim_way *out = jrt_sim_out(socket);
    uint64_t        wanted = sum(from, count);
    int             error = cannot_send(socket, wanted);
    if (error != 0 || wanted == 0) return error;
    uint32_t room = SIM_ROOM - out->count;
    uint32_t most = wanted < room ? (uint32_t)wanted : room;
    uint32_t some = most;
    socket->writes++;
    if (is_broken(net, socket)) return most;
    bool whole = socket->link->kind == SIM_PIPE && wanted <= SIM_PIPE_ATOMIC;
    if (!whole) some = jrt_sim_cut(net, socket, SIM_ACT_WRITE, most, wanted);
    if (!carry(net, socket, from, some)) return -ENOBUFS;
    if (some < most) { /* [sim-short] */
        out->hold_ns = jrt_sim_now(net) + sim_short_ns;
    } else if (most < wanted) {
        out->hold_ns = JRT_NEVER;
    }
    if (some < most || jrt_sim_peer(socket) == NULL) jrt_sim_touch(net, socket, false);
    return some;
}

int jrt_sim_stream_shutdown(struct jrt_sim *net, struct sim_socket *socket, uint32_t ways)
{
    struct sim_socket *peer = jrt_sim_peer(socket);
    bool               tcp = socket->link->kind == SIM_TCP;
    if ((ways & JANUS_IO_WRITE) && !socket->sends_no_more) send_end(net, socket);
    if (ways & JANUS_IO_READ) socket->reads_no_more = true;
    jrt_sim_note(net, socket->fd, (int64_t)ways);
    if (peer != NULL) jrt_sim_touch(net, peer, !tcp && (ways & JANUS_IO_READ));
    jrt_sim_touch(net, socket, true);
    return 0;
}
