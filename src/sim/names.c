/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the simulated network, and how connections are made. The host has every address. A
 * path of a Unix socket stays when its socket is closed, as on a real system.
 */
#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_FIRST = 32768, PORT_LAST = 60999, BACKLOG_MAX = 4096 };

bool jrt_sim_same(const janus_address *a, const janus_address *b)
{
    return a->family == b->family && a->port == b->port && a->count == b->count &&
           a->scope == b->scope && memcmp(a->bytes, b->bytes, a->count) == 0;
}

static bool is_any(const janus_address *at)
{
    static const uint8_t zeros[16];
    return memcmp(at->bytes, zeros, at->count) == 0;
}

int jrt_sim_check(const struct sim_socket *socket, const janus_address *at)
{
    switch (at->family) {
    case JANUS_FAMILY_IPV4:
    case JANUS_FAMILY_IPV6:
        if (at->count != (at->family == JANUS_FAMILY_IPV4 ? 4 : 16)) return -EINVAL;
        return at->family == (uint8_t)socket->family ? 0 : -EAFNOSUPPORT;
    case JANUS_FAMILY_UNIX:
    case JANUS_FAMILY_ABSTRACT:
        if (at->count == 0 || at->count > JANUS_UNIX_MAX) return -EINVAL;
        return jrt_sim_is_unix(socket->family) ? 0 : -EINVAL;
    default: return -EINVAL;
    }
}

/* An IPv4 address that was written as IPv6 becomes IPv4, and no address the loopback. */
static janus_address plain(const janus_address *at)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    janus_address        out = *at;
    if (out.family == JANUS_FAMILY_IPV6 && memcmp(out.bytes, mapped, 12) == 0) {
        out.family = JANUS_FAMILY_IPV4;
        out.count = 4;
        memcpy(out.bytes, at->bytes + 12, 4);
    }
    if (!jrt_sim_is_unix((janus_family)out.family) && is_any(&out)) {
        bool four = out.family == JANUS_FAMILY_IPV4;
        if (four) out.bytes[0] = 127;
        out.bytes[out.count - 1] = 1;
    }
    return out;
}

/* As an IPv6 socket sees an IPv4 address. */
static janus_address as_seen_by(const struct sim_socket *socket, janus_address at)
{
    if (socket->family != JANUS_FAMILY_IPV6 || at.family != JANUS_FAMILY_IPV4) return at;
    janus_address out = {.family = JANUS_FAMILY_IPV6, .count = 16, .port = at.port};
    out.bytes[10] = out.bytes[11] = 0xff;
    memcpy(out.bytes + 12, at.bytes, 4);
    return out;
}

janus_address jrt_sim_source(const struct sim_socket *socket, const janus_address *to)
{
    janus_address from = socket->local;
    if (jrt_sim_is_unix(socket->family) || !is_any(&from)) return from;
    janus_address host = plain(to);
    uint16_t      port = from.port;
    if (host.family == JANUS_FAMILY_IPV4 && host.bytes[0] == 127) {
        memcpy(host.bytes, (const uint8_t[]){127, 0, 0, 1}, 4);
    }
    host.port = port;
    return as_seen_by(socket, host);
}

/* The table. */

static int type_of(const struct sim_socket *socket)
{
    return socket->what == SIM_DATAGRAM ? SOCK_DGRAM : SOCK_STREAM;
}

static bool collides(const struct sim_name *name, const struct sim_socket *socket,
                     const janus_address *at)
{
    const struct sim_socket *holder = name->holder;
    if (jrt_sim_is_unix((janus_family)at->family)) return jrt_sim_same(&name->at, at);
    if (name->type != type_of(socket) || name->at.port != at->port) return false;
    if (holder->reuse_port && socket->reuse_port) return false;
    bool mail = name->type == SOCK_DGRAM;
    if (mail && holder->reuse_address && socket->reuse_address) return false;
    if (name->at.family == at->family) {
        return is_any(&name->at) || is_any(at) || jrt_sim_same(&name->at, at);
    }
    bool old_is_6 = name->at.family == JANUS_FAMILY_IPV6;
    if (old_is_6 ? holder->only_v6 : socket->only_v6) return false;
    return is_any(old_is_6 ? &name->at : at) && !jrt_sim_is_unix((janus_family)name->at.family);
}

static const struct sim_name *find_collision(const struct jrt_sim    *net,
                                             const struct sim_socket *socket,
                                             const janus_address     *at)
{
    for (const struct sim_name *name = net->names; name != NULL; name = name->next) {
        if (collides(name, socket, at)) return name;
    }
    return NULL;
}

bool jrt_sim_name_exists(const struct jrt_sim *net, const janus_address *at)
{
    for (const struct sim_name *name = net->names; name != NULL; name = name->next) {
        if (jrt_sim_same(&name->at, at)) return true;
    }
    return false;
}

/* The next port that nobody has bound; 0: none. */
static uint16_t next_port(struct jrt_sim *net, const struct sim_socket *socket, janus_address at)
{
    for (int tries = PORT_FIRST; tries <= PORT_LAST; tries++) {
        at.port = net->port;
        net->port = net->port == PORT_LAST ? PORT_FIRST : (uint16_t)(net->port + 1);
        if (find_collision(net, socket, &at) == NULL) return at.port;
    }
    return 0;
}

static int enter(struct jrt_sim *net, struct sim_socket *socket, janus_address at)
{
    struct sim_name *name = malloc(sizeof *name);
    if (name == NULL) return -ENOMEM;
    *name = (struct sim_name){net->names, at, type_of(socket), socket};
    net->names = name;
    socket->name = name;
    socket->local = at;
    return 0;
}

int jrt_sim_bind(int fd, const janus_address *at)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    int  error = jrt_sim_check(socket, at);
    bool bindable = socket->what == SIM_FRESH || socket->what == SIM_DATAGRAM;
    if (error != 0) return error;
    if (!bindable || socket->local.family != JANUS_FAMILY_NONE) return -EINVAL;
    janus_address full = *at;
    bool          inet = !jrt_sim_is_unix(socket->family);
    if (inet && full.port == 0) {
        full.port = next_port(net, socket, full);
        if (full.port == 0) return -EADDRINUSE;
    }
    if (find_collision(net, socket, &full) != NULL) return -EADDRINUSE;
    return enter(net, socket, full);
}

bool jrt_sim_bind_any(struct jrt_sim *net, struct sim_socket *socket, const janus_address *like)
{
    bool four = socket->family == JANUS_FAMILY_IPV4;
    if (socket->local.family != JANUS_FAMILY_NONE || jrt_sim_is_unix(socket->family)) return true;
    janus_address at = {.family = (uint8_t)socket->family, .count = four ? 4 : 16};
    at.port = next_port(net, socket, at);
    if (at.port == 0) return false;
    if (like == NULL) return enter(net, socket, at) == 0;
    socket->local = at; /* a client's port is not in the table: nothing is sent to it by address */
    socket->local = jrt_sim_source(socket, like);
    return true;
}

void jrt_sim_unbind(struct jrt_sim *net, struct sim_socket *socket)
{
    struct sim_name *name = socket->name;
    if (name == NULL) return;
    socket->name = NULL;
    name->holder = NULL;
    if (name->at.family == JANUS_FAMILY_UNIX) return; /* the path stays */
    struct sim_name **at = &net->names;
    while (*at != name) at = &(*at)->next;
    *at = name->next;
    free(name);
}

int jrt_sim_unlink(const janus_address *path)
{
    struct jrt_sim *net = jrt_world_now() != NULL ? jrt_sim() : NULL;
    if (net == NULL) return -ENOENT;
    for (struct sim_name **at = &net->names; *at != NULL; at = &(*at)->next) {
        struct sim_name *name = *at;
        if (path->family != JANUS_FAMILY_UNIX || !jrt_sim_same(&name->at, path)) continue;
        if (name->holder != NULL) name->holder->name = NULL;
        *at = name->next;
        free(name);
        return 0;
    }
    return -ENOENT;
}

/* How well a name fits. 3: it is the address. 2: any address of this family. 1: any address. */
static int fit(const struct sim_name *name, int type, const janus_address *to)
{
    const struct sim_socket *holder = name->holder;
    if (holder == NULL || name->type != type) return 0;
    if (type == SOCK_STREAM && holder->what != SIM_LISTENER) return 0;
    if (jrt_sim_is_unix((janus_family)to->family)) return jrt_sim_same(&name->at, to) ? 3 : 0;
    if (jrt_sim_is_unix((janus_family)name->at.family) || name->at.port != to->port) return 0;
    janus_address at = is_any(&name->at) ? name->at : plain(&name->at);
    if (jrt_sim_same(&at, to)) return 3;
    if (!is_any(&at)) return 0;
    if (at.family == to->family) return 2;
    return at.family == JANUS_FAMILY_IPV6 && !holder->only_v6 ? 1 : 0;
}

struct sim_socket *jrt_sim_target(const struct jrt_sim *net, int type, const janus_address *given)
{
    janus_address to = jrt_sim_is_unix((janus_family)given->family) ? *given : plain(given);
    int           best = 1;
    uint32_t      count = 0;
    for (const struct sim_name *name = net->names; name != NULL; name = name->next) {
        int fits = fit(name, type, &to);
        if (fits > best) count = 0;
        if (fits >= best) count++;
        if (fits > best) best = fits;
    }
    uint32_t turn = count > 0 ? net->connections % count : 0; /* sockets that share a port */
    for (const struct sim_name *name = count > 0 ? net->names : NULL; name != NULL;
         name = name->next) {
        if (fit(name, type, &to) == best && turn-- == 0) return name->holder;
    }
    return NULL;
}

/* Connections. */

int jrt_sim_listen(int fd, uint32_t backlog)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    if (socket->what == SIM_DATAGRAM) return -EOPNOTSUPP;
    if (socket->what != SIM_FRESH && socket->what != SIM_LISTENER) return -EINVAL;
    if (socket->name == NULL && jrt_sim_is_unix(socket->family)) return -EINVAL;
    if (!jrt_sim_bind_any(net, socket, NULL)) return -EADDRINUSE;
    if (socket->what == SIM_FRESH) socket->number = ++net->listeners;
    socket->what = SIM_LISTENER;
    socket->backlog = backlog > BACKLOG_MAX ? BACKLOG_MAX : backlog;
    jrt_sim_touch(net, socket, false);
    return 0;
}

int jrt_sim_accept(int fd, janus_address *out_peer)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *listener = jrt_sim_find(net, fd);
    if (listener == NULL) return -EBADF;
    if (listener->what != SIM_LISTENER) return -EINVAL;
    jrt_sim_touch(net, listener, false);
    struct sim_socket *socket = listener->queue;
    if (socket == listener->fresh) return -EAGAIN;
    int made = jrt_sim_no_descriptor(net) ? -EMFILE : jrt_sim_open(net, socket);
    jrt_sim_note(net, fd, made);
    if (made < 0) return made;
    listener->queue = socket->queue_next;
    if (listener->queue == NULL) listener->queue_last = NULL;
    listener->queue_count--;
    socket->queue_next = NULL;
    if (out_peer != NULL) *out_peer = socket->remote;
    return made;
}

/* Puts a connection among those that have not arrived, by its time. */
static void queue_up(struct sim_socket *listener, struct sim_socket *socket)
{
    struct sim_socket **at = &listener->queue;
    while (*at != NULL && *at != listener->fresh) at = &(*at)->queue_next;
    while (*at != NULL && (*at)->arrives_ns <= socket->arrives_ns) at = &(*at)->queue_next;
    if (*at == listener->fresh) listener->fresh = socket;
    socket->queue_next = *at;
    *at = socket;
    if (socket->queue_next == NULL) listener->queue_last = socket;
    listener->queue_count++;
}

/* Makes the listener's end of a connection. False: no memory. */
static bool meet(struct jrt_sim *net, struct sim_socket *client, struct sim_socket *listener,
                 uint64_t arrives_ns)
{
    bool               local = jrt_sim_is_unix(client->family);
    struct sim_socket *socket = jrt_sim_make(SIM_STREAM, listener->family);
    if (socket == NULL) return false;
    socket->number = client->number;
    socket->arrives_ns = arrives_ns;
    if (!jrt_sim_link(net, local ? SIM_UNIX : SIM_TCP, client, socket)) {
        free(socket);
        return false;
    }
    socket->local = local ? listener->local : as_seen_by(socket, plain(&client->remote));
    socket->remote = local ? client->local : as_seen_by(socket, plain(&client->local));
    queue_up(listener, socket);
    jrt_sim_touch(net, listener, false);
    return true;
}

/* Connects over a Unix socket: at once. */
static int connect_here(struct jrt_sim *net, struct sim_socket *socket, struct sim_socket *listener)
{
    bool path = socket->remote.family == JANUS_FAMILY_UNIX;
    if (path && !jrt_sim_name_exists(net, &socket->remote)) return -ENOENT;
    if (listener == NULL) return -ECONNREFUSED;
    if (jrt_sim_fails(net, JRT_FAULT_REFUSE, socket, SIM_ACT_CONNECT)) return -ECONNREFUSED;
    if (listener->queue_count > listener->backlog) return -EAGAIN;
    if (!meet(net, socket, listener, jrt_sim_now(net))) return -ENOMEM;
    socket->what = SIM_STREAM;
    jrt_sim_touch(net, socket, true);
    return 0;
}

static int connect_there(struct jrt_sim *net, struct sim_socket *socket,
                         struct sim_socket *listener)
{
    bool refused = listener == NULL || listener->queue_count > listener->backlog;
    if (jrt_sim_fails(net, JRT_FAULT_REFUSE, socket, SIM_ACT_CONNECT)) refused = true;
    socket->arrives_ns = jrt_sim_now(net) + jrt_sim_delay(net, socket, SIM_ACT_CONNECT);
    socket->answer = refused ? ECONNREFUSED : 0;
    if (!refused && !meet(net, socket, listener, socket->arrives_ns)) return -ENOMEM;
    socket->what = SIM_CONNECTING;
    jrt_sim_touch(net, socket, false);
    return -EINPROGRESS;
}

int jrt_sim_connect(int fd, const janus_address *to)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    jrt_sim_touch(net, socket, false);
    if (socket->what == SIM_STREAM) return 0;
    if (socket->what == SIM_CONNECTING) return -EINPROGRESS;
    if (socket->what == SIM_LISTENER) return -EINVAL;
    if (socket->error != 0 && socket->what == SIM_FRESH) {
        int error = socket->error;
        socket->error = 0;
        return -error;
    }
    int error = jrt_sim_check(socket, to);
    if (error != 0) return error;
    if (!jrt_sim_bind_any(net, socket, socket->what == SIM_DATAGRAM ? NULL : to)) {
        return -EADDRNOTAVAIL;
    }
    socket->remote = *to;
    if (!jrt_sim_is_unix(socket->family)) {
        socket->remote = as_seen_by(socket, plain(to)); /* no address means the loopback */
    }
    if (socket->what == SIM_DATAGRAM) return 0;
    socket->local = jrt_sim_source(socket, to);
    socket->dead = false;
    struct sim_socket *listener = jrt_sim_target(net, SOCK_STREAM, to);
    socket->number = ++net->connections;
    bool local = jrt_sim_is_unix(socket->family);
    int  made = local ? connect_here(net, socket, listener) : connect_there(net, socket, listener);
    jrt_sim_note(net, fd, made);
    return made;
}
