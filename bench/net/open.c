/* SPDX-License-Identifier: MIT */
#include "open.h"

#include "../bench.h"
#include "protocol.h"

#include <errno.h>
#include <math.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256, BUFFER = 65536, WAIT_MS = 1000 };

#define PATH(path) "GET " path " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n"
static const char burn_request[] = PATH("/burn");
static const char stream_request[] = PATH("/stream");
static const char last_chunk[] = "\r\n0\r\n\r\n";

enum kind { OTHER, BURNER, STREAM };

struct connection {
    int       fd;
    enum kind kind;
    bool      answered; /* the head of the answer has come */
    uint64_t  begun;
    uint64_t  left; /* of the stream */
};

struct open_load {
    struct open_plan    plan;
    int                 set;
    unsigned            count, idle_count, busy;
    uint64_t            random;
    struct connection  *connections;
    struct connection **idle; /* others that have no request under way */
    /* of the run */
    double              rate;
    double              next; /* the time of the next request */
    uint64_t            start, until;
    bool                crowd;
    struct open_report *report;
};

static char buffer[BUFFER];

static bool ends_with(const char *bytes, size_t count, const char *end, size_t end_bytes)
{
    return count >= end_bytes && memcmp(bytes + count - end_bytes, end, end_bytes) == 0;
}

static void send_all(struct connection *c, const char *bytes, size_t count)
{
    net_need(send(c->fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count, "client: send");
}

static void begin(struct open_load *load, struct connection *c, uint64_t at)
{
    c->begun = at;
    c->answered = false;
    if (c->kind == OTHER) send_all(c, NET_REQUEST, sizeof NET_REQUEST - 1);
    if (c->kind == BURNER) send_all(c, burn_request, sizeof burn_request - 1);
    if (c->kind != STREAM) load->busy++;
    if (c->kind != STREAM) return;
    c->left = 0;
    send_all(c, stream_request, sizeof stream_request - 1);
}

/* A while until the next request, as in a Poisson process. */
static double gap(struct open_load *load)
{
    load->random ^= load->random << 13;
    load->random ^= load->random >> 7;
    load->random ^= load->random << 17;
    double share = ((double)(load->random >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
    return -log(share) * 1e9 / load->rate;
}

/* Sends what is due, as far as connections are free. */
static void send_due(struct open_load *load, uint64_t now)
{
    if (load->rate <= 0) {
        if (now >= load->until) return;
        while (load->idle_count > 0) begin(load, load->idle[--load->idle_count], now);
        return;
    }
    while (load->idle_count > 0 && load->next <= (double)now && load->next < (double)load->until) {
        begin(load, load->idle[--load->idle_count], (uint64_t)load->next);
        load->next += gap(load);
    }
}

static bool is_over(const struct open_load *load, uint64_t now)
{
    if (load->busy > 0) return false;
    return load->rate <= 0 ? now >= load->until : load->next >= (double)load->until;
}

static void hear_stream(struct open_load *load, struct connection *c, const char *bytes, size_t got)
{
    size_t head = c->answered ? 0 : net_head_end(bytes, got);
    net_need(c->answered || head > 0, "client: the head of the stream");
    if (!c->answered) c->left = NET_STREAM_BYTES;
    c->answered = true;
    net_need(got - head <= c->left, "client: the stream is too long");
    c->left -= got - head;
    load->report->streamed_bytes += got - head;
    if (c->left == 0) begin(load, c, bench_now_ns());
}

static void hear(struct open_load *load, struct connection *c)
{
    ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EAGAIN) return;
    net_need(got > 0, got == 0 ? "client: the server closed" : "client: recv");
    if (c->kind == STREAM) {
        hear_stream(load, c, buffer, (size_t)got);
        return;
    }
    net_need(c->answered || (got > 12 && memcmp(buffer, "HTTP/1.1 200", 12) == 0),
             "client: a wrong answer");
    c->answered = true;
    if (!ends_with(buffer, (size_t)got, NET_BODY, sizeof NET_BODY - 1) &&
        !ends_with(buffer, (size_t)got, last_chunk, sizeof last_chunk - 1)) {
        return;
    }
    uint64_t now = bench_now_ns();
    load->busy--;
    if (c->kind == OTHER) {
        load_record(&load->report->others, now - c->begun);
        load->idle[load->idle_count++] = c;
    } else {
        load->report->burnt++;
        if (now < load->until) begin(load, c, now);
    }
}

static void listen_to_stream(struct open_load *load, bool listens)
{
    for (unsigned i = 0; i < load->count; i++) {
        struct connection *c = &load->connections[i];
        struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.ptr = c};
        if (c->kind != STREAM) continue;
        net_need(epoll_ctl(load->set, EPOLL_CTL_MOD, c->fd, &event) == 0, "client: epoll_ctl");
        if (listens && c->begun == 0) begin(load, c, bench_now_ns());
    }
}

static void loop(struct open_load *load)
{
    struct epoll_event events[EVENTS];
    uint64_t           now = load->start, heard = now;
    while (!is_over(load, now)) {
        send_due(load, now);
        /* A sleep until the next request would wake too late, so this client never sleeps then. */
        bool sleeps = load->rate <= 0 || (load->busy > 0 && load->next >= (double)load->until);
        int  count = epoll_wait(load->set, events, EVENTS, sleeps ? WAIT_MS : 0);
        net_need(count >= 0 || errno == EINTR, "client: epoll_wait");
        for (int i = 0; i < count; i++) hear(load, events[i].data.ptr);
        now = bench_now_ns();
        if (count > 0) heard = now;
        net_need(now - heard < LOAD_PATIENCE_NS, "client: the server does not answer");
    }
    load->report->others.ns += now - load->start;
}

void open_load_run(struct open_load *load, double rate, uint64_t ns, bool crowd,
                   struct open_report *report)
{
    load->rate = rate;
    load->crowd = crowd;
    load->report = report;
    load->start = bench_now_ns();
    load->until = load->start + ns;
    load->next = (double)load->start;
    if (crowd) {
        listen_to_stream(load, true);
        for (unsigned i = 0; i < load->count; i++) {
            if (load->connections[i].kind != BURNER) continue;
            begin(load, &load->connections[i], load->start);
        }
    }
    loop(load);
    if (crowd) listen_to_stream(load, false);
}

static void connect_one(struct open_load *load, struct connection *c, unsigned number)
{
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};
    c->fd = load_connect(load->plan.port, number);
    net_need(c->fd >= 0, "client: connect");
    net_need(epoll_ctl(load->set, EPOLL_CTL_ADD, c->fd, &event) == 0, "client: epoll_ctl");
    net_need(epoll_wait(load->set, &event, 1, (int)(LOAD_PATIENCE_NS / 1000000)) == 1,
             "client: cannot connect");
    event.events = c->kind == STREAM ? 0 : EPOLLIN;
    event.data.ptr = c;
    net_need(epoll_ctl(load->set, EPOLL_CTL_MOD, c->fd, &event) == 0, "client: epoll_ctl");
}

struct open_load *open_load_open(const struct open_plan *plan)
{
    struct open_load *load = calloc(1, sizeof *load);
    net_need(load != NULL, "client: memory");
    load->plan = *plan;
    load->random = 88172645463325252u;
    load->count = plan->connections + plan->burners + plan->streams;
    load->connections = calloc(load->count, sizeof *load->connections);
    load->idle = calloc(load->count, sizeof(struct connection *));
    load->set = epoll_create1(EPOLL_CLOEXEC);
    net_need(load->connections != NULL && load->idle != NULL && load->set >= 0, "client: memory");
    for (unsigned i = 0; i < load->count; i++) {
        struct connection *c = &load->connections[i];
        c->kind = i < plan->connections                   ? OTHER
                  : i < plan->connections + plan->burners ? BURNER
                                                          : STREAM;
        connect_one(load, c, i);
        if (c->kind == OTHER) load->idle[load->idle_count++] = c;
    }
    return load;
}

void open_load_close(struct open_load *load)
{
    for (unsigned i = 0; i < load->count; i++) close(load->connections[i].fd);
    close(load->set);
    free(load->connections);
    free(load->idle);
    free(load);
}
