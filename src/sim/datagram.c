/* SPDX-License-Identifier: MIT */
/* Datagrams of the simulated network: UDP, which may overtake each other, and Unix, which do not.
 * The essay is in net.c. */
#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

bool jrt_sim_mail_settle(struct sim_socket *socket, uint64_t now)
{
    bool came = false;
    while (socket->mail_fresh != NULL && socket->mail_fresh->arrives_ns <= now) {
        socket->mail_fresh = socket->mail_fresh->next;
        came = true;
    }
    if (socket->error_ns <= now) {
        socket->error_ns = JRT_NEVER;
        socket->error = socket->answer;
        came = true;
    }
    return came;
}

void jrt_sim_mail_free(struct sim_socket *socket)
{
    while (socket->mail != NULL) {
        struct sim_datagram *next = socket->mail->next;
        free(socket->mail);
        socket->mail = next;
    }
}

static uint64_t sum(const struct iovec *pieces, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pieces[i].iov_len;
    return bytes;
}

static bool is_full(const struct sim_socket *socket, uint64_t bytes)
{
    return socket->mail != NULL && socket->mail_bytes + bytes > SIM_ROOM;
}

/* Puts it among those that have not arrived, by its time. */
static void queue_up(struct sim_socket *socket, struct sim_datagram *datagram)
{
    struct sim_datagram **at = &socket->mail;
    while (*at != NULL && *at != socket->mail_fresh) at = &(*at)->next;
    while (*at != NULL && (*at)->arrives_ns <= datagram->arrives_ns) at = &(*at)->next;
    if (*at == socket->mail_fresh) socket->mail_fresh = datagram;
    datagram->next = *at;
    *at = datagram;
    socket->mail_bytes += datagram->count;
}

static int deliver(struct jrt_sim *net, struct sim_socket *to, const struct iovec *pieces,
                   int count, const janus_address *from, uint64_t delay_ns)
{
    uint64_t             bytes = sum(pieces, count);
    struct sim_datagram *datagram = malloc(sizeof *datagram + bytes);
    if (datagram == NULL) return -ENOBUFS;
    datagram->arrives_ns = jrt_sim_now(net) + delay_ns;
    datagram->from = *from;
    datagram->count = 0;
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len == 0) continue;
        memcpy(datagram->bytes + datagram->count, pieces[i].iov_base, pieces[i].iov_len);
        datagram->count += (uint32_t)pieces[i].iov_len;
    }
    queue_up(to, datagram);
    jrt_sim_touch(net, to, false);
    return (int)bytes;
}

static int send_local(struct jrt_sim *net, struct sim_socket *socket, const struct iovec *from,
                      int count, const janus_address *to)
{
    struct sim_socket *target = jrt_sim_target(net, SOCK_DGRAM, to);
    if (target == NULL) {
        bool path = to->family == JANUS_FAMILY_UNIX;
        return path && !jrt_sim_name_exists(net, to) ? -ENOENT : -ECONNREFUSED;
    }
    if (is_full(target, sum(from, count))) {
        if (!socket->starved) net->starved++;
        socket->starved = true;
        return -EAGAIN;
    }
    return deliver(net, target, from, count, &socket->local, 0);
}

/* A connected socket takes datagrams of its peer only. */
static bool takes_from(const struct sim_socket *socket, const janus_address *from)
{
    return socket->remote.family == JANUS_FAMILY_NONE || jrt_sim_same(&socket->remote, from);
}

static int send_udp(struct jrt_sim *net, struct sim_socket *socket, const struct iovec *from,
                    int count, const janus_address *to)
{
    if (!jrt_sim_bind_any(net, socket, NULL)) return -EAGAIN;
    struct sim_socket *target = jrt_sim_target(net, SOCK_DGRAM, to);
    janus_address      source = jrt_sim_source(socket, to);
    uint64_t           delay = jrt_sim_delay(net, socket, SIM_ACT_DATAGRAM);
    int                bytes = (int)sum(from, count);
    if (target == NULL && socket->remote.family != JANUS_FAMILY_NONE) {
        socket->answer = ECONNREFUSED;
        socket->error_ns = jrt_sim_now(net) + 2 * delay;
        jrt_sim_touch(net, socket, false);
    }
    if (jrt_sim_fails(net, JRT_FAULT_LOST, socket, SIM_ACT_LOST)) return bytes;
    if (target == NULL || !takes_from(target, &source)) return bytes;
    if (is_full(target, (uint64_t)bytes)) return bytes; /* lost */
    if (deliver(net, target, from, count, &source, delay) < 0) return -ENOBUFS;
    if (!jrt_sim_fails(net, JRT_FAULT_LOST, socket, SIM_ACT_TWICE)) return bytes;
    delay = jrt_sim_delay(net, socket, SIM_ACT_DATAGRAM);
    (void)deliver(net, target, from, count, &source, delay);
    return bytes;
}

static int take_error(struct sim_socket *socket)
{
    int error = socket->error;
    socket->error = 0;
    return -error;
}

ptrdiff_t jrt_sim_mail_send(struct jrt_sim *net, struct sim_socket *socket,
                            const struct iovec *from, int count, const janus_address *to)
{
    jrt_sim_touch(net, socket, false);
    if (socket->error != 0) return take_error(socket);
    if (to == NULL && socket->remote.family == JANUS_FAMILY_NONE) return -EDESTADDRREQ;
    if (to == NULL) to = &socket->remote;
    int error = jrt_sim_check(socket, to);
    if (error != 0) return error;
    if (sum(from, count) > SIM_DATAGRAM_MAX) return -EMSGSIZE;
    socket->writes++;
    return jrt_sim_is_unix(socket->family) ? send_local(net, socket, from, count, to)
                                           : send_udp(net, socket, from, count, to);
}

/* Senders that found no room get an event. */
static void make_room(struct jrt_sim *net)
{
    for (uint32_t i = 0; i < net->used && net->starved > 0; i++) {
        struct sim_socket *socket = net->sockets[i];
        if (socket == NULL || !socket->starved) continue;
        socket->starved = false;
        net->starved--;
        jrt_sim_touch(net, socket, true);
    }
}

ptrdiff_t jrt_sim_mail_receive(struct jrt_sim *net, struct sim_socket *socket,
                               const struct iovec *to, int count, janus_address *out_from,
                               bool *out_cut)
{
    jrt_sim_touch(net, socket, false);
    if (socket->error != 0) return take_error(socket);
    struct sim_datagram *datagram = socket->mail;
    if (datagram == socket->mail_fresh) return -EAGAIN;
    uint32_t done = 0;
    for (int i = 0; i < count && done < datagram->count; i++) {
        uint32_t left = datagram->count - done;
        uint32_t some = to[i].iov_len < left ? (uint32_t)to[i].iov_len : left;
        if (some > 0) memcpy(to[i].iov_base, datagram->bytes + done, some);
        done += some;
    }
    if (out_from != NULL) *out_from = datagram->from;
    if (out_cut != NULL) *out_cut = done < datagram->count;
    socket->reads++;
    socket->mail = datagram->next;
    socket->mail_bytes -= datagram->count;
    free(datagram);
    if (net->starved > 0) make_room(net);
    return done;
}

ptrdiff_t jrt_sim_receive_from(int fd, const struct iovec *to, janus_address *out_from,
                               bool *out_cut)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    if (socket->what != SIM_DATAGRAM) return -ENOTSOCK;
    ptrdiff_t got = jrt_sim_mail_receive(net, socket, to, 1, out_from, out_cut);
    jrt_sim_note(net, fd, got);
    return got;
}

ptrdiff_t jrt_sim_send_to(int fd, const struct iovec *from, const janus_address *to)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    if (socket->what != SIM_DATAGRAM) return -EISCONN;
    ptrdiff_t done = jrt_sim_mail_send(net, socket, from, 1, to);
    jrt_sim_note(net, fd, done);
    return done;
}
