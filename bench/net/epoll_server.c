/* SPDX-License-Identifier: MIT */
/*
 * The base of the works with servers: epoll and nothing else (protocol.h).
 *
 * Each thread has a level-triggered set and a listener of its own (SO_REUSEPORT). It accepts until
 * nothing is left, reads once for each event, and writes at once. It waits for room only if the
 * socket was full. A connection has its buffer on the heap. In the work `http` each look at the set
 * asks for the second, and a new second writes a new Date.
 */
#include "protocol.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256 };

struct connection {
    int    fd;
    bool   blocked; /* it waits for room */
    size_t have;    /* bytes of a head, or to send */
    size_t sent;    /* of those */
    char   bytes[NET_BUFFER_BYTES];
};

static struct net_order order;
static uint16_t         port;

static _Thread_local char   dated[NET_DATED_BYTES + 1];
static _Thread_local time_t second;

static void watch(int set, int what, struct connection *c, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};
    net_need(epoll_ctl(set, what, c->fd, &event) == 0, "epoll_ctl");
}

static void accept_all(int set, int listener)
{
    int yes = 1;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            net_need(errno == EAGAIN || errno == ECONNABORTED, "accept4");
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct connection *c = malloc(sizeof *c);
        net_need(c != NULL, "malloc");
        c->fd = fd;
        c->blocked = false;
        c->have = c->sent = 0;
        watch(set, EPOLL_CTL_ADD, c, EPOLLIN);
    }
}

/* Whether the connection lives. */
static bool send_rest(int set, struct connection *c, const char *bytes, size_t count)
{
    while (c->sent < count) {
        ssize_t done = send(c->fd, bytes + c->sent, count - c->sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EAGAIN) {
            if (!c->blocked) watch(set, EPOLL_CTL_MOD, c, EPOLLOUT);
            c->blocked = true;
            return true;
        }
        if (done < 0) return false;
        c->sent += (size_t)done;
    }
    if (c->blocked) watch(set, EPOLL_CTL_MOD, c, EPOLLIN);
    c->blocked = false;
    c->have = c->sent = 0;
    return true;
}

static bool answer(int set, struct connection *c)
{
    if (!order.hello) return send_rest(set, c, c->bytes, c->have);
    if (order.http) return send_rest(set, c, dated, NET_DATED_BYTES);
    return send_rest(set, c, NET_ANSWER, sizeof NET_ANSWER - 1);
}

static bool serve(int set, struct connection *c)
{
    if (c->blocked) return answer(set, c);
    ssize_t got = recv(c->fd, c->bytes + c->have, sizeof c->bytes - c->have, 0);
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    c->have += (size_t)got;
    if (order.hello && net_head_end(c->bytes, c->have) == 0) return c->have < sizeof c->bytes;
    return answer(set, c);
}

_Noreturn static void *run(void *argument)
{
    struct epoll_event events[EVENTS];
    struct connection  listener = {.fd = *(int *)argument};
    int                set = epoll_create1(EPOLL_CLOEXEC);
    net_need(set >= 0, "epoll_create1");
    watch(set, EPOLL_CTL_ADD, &listener, EPOLLIN);
    for (;;) {
        int count = epoll_wait(set, events, EVENTS, -1);
        net_need(count >= 0 || errno == EINTR, "epoll_wait");
        if (order.http && time(NULL) != second) {
            second = time(NULL);
            net_date(dated);
        }
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c == &listener) {
                accept_all(set, listener.fd);
            } else if (!serve(set, c)) {
                close(c->fd);
                free(c);
            }
        }
    }
}

int main(int argc, char **argv)
{
    order = net_order_read(argc, argv);
    int *listeners = calloc(order.workers, sizeof *listeners);
    net_need(listeners != NULL, "calloc");
    for (unsigned i = 0; i < order.workers; i++) listeners[i] = net_listener(&port);
    for (unsigned i = 1; i < order.workers; i++) {
        pthread_t thread;
        net_need(pthread_create(&thread, NULL, run, &listeners[i]) == 0, "pthread_create");
    }
    net_announce(port, "raw_epoll", "1");
    run(&listeners[0]);
}
