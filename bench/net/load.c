/* SPDX-License-Identifier: MIT */
#include "load.h"

#include "../bench.h"
#include "protocol.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS = 256,
    SOURCES = 200,       /* 127.0.1.1 and on: a port is not used again for some seconds */
    SOURCE_PORTS = 1000, /* of each while connections stay open; the search for more is slow */
    ANSWER_MAX = 512,
    WAIT_MS = 1000,
    IDLE_BATCH = 256,
};

struct connection {
    int      fd;
    bool     connecting; /* the request waits for the connection */
    unsigned got;
    uint64_t begun;
};

/* One thread's part. */
struct part {
    struct load       *load;
    pthread_t          thread;
    int                set;
    unsigned           count, busy, next_source;
    struct connection *connections;
    uint64_t           until;
    struct load_report report;
};

struct load {
    struct load_plan plan;
    const char      *request, *answer;
    size_t           request_bytes, answer_bytes;
    struct part     *parts;
};

static char echo_bytes[NET_ECHO_BYTES];

int load_connect(uint16_t port, unsigned source)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};
    int                yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0) return -1;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 256 + source % SOURCES);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
        (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        int wrong = errno;
        close(fd);
        errno = wrong;
        return -1;
    }
    return fd;
}

static void watch(struct part *part, int what, struct connection *c, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};
    net_need(epoll_ctl(part->set, what, c->fd, &event) == 0, "client: epoll_ctl");
}

static void send_request(struct part *part, struct connection *c)
{
    const struct load *load = part->load;
    ssize_t            done = send(c->fd, load->request, load->request_bytes, MSG_NOSIGNAL);
    if (done < 0 && (errno == EAGAIN || errno == ENOTCONN) && !c->connecting) {
        c->connecting = true;
        watch(part, EPOLL_CTL_MOD, c, EPOLLOUT);
        return;
    }
    net_need(done == (ssize_t)load->request_bytes, "client: send");
    if (c->connecting) watch(part, EPOLL_CTL_MOD, c, EPOLLIN);
    c->connecting = false;
}

static void begin(struct part *part, struct connection *c, uint64_t now)
{
    c->begun = now;
    c->got = 0;
    if (c->fd < 0) {
        c->fd = load_connect(part->load->plan.port, part->next_source++);
        net_need(c->fd >= 0, "client: connect");
        watch(part, EPOLL_CTL_ADD, c, EPOLLIN);
    }
    send_request(part, c);
    part->busy++;
}

static unsigned bucket_of(uint64_t ns)
{
    if (ns < 32) return (unsigned)ns;
    unsigned high = 63u - (unsigned)__builtin_clzll(ns);
    return (high - 4) * 32 + (unsigned)(ns >> (high - 5)) % 32;
}

static double bucket_ns(unsigned bucket)
{
    if (bucket < 32) return bucket;
    return (32.5 + bucket % 32) * (double)(UINT64_C(1) << (bucket / 32 - 1));
}

void load_record(struct load_report *report, uint64_t ns)
{
    report->requests++;
    report->latency[bucket_of(ns)]++;
}

/* Whether these bytes end an answer of HTTP. Its head and its body come in one segment. */
static bool is_whole(const char *bytes, size_t count)
{
    const size_t body = sizeof NET_BODY - 1;
    return count > body && memcmp(bytes + count - body, NET_BODY, body) == 0;
}

/* Whether the answer is complete. */
static bool take(const struct load *load, struct connection *c, const char *bytes, size_t got)
{
    if (load->plan.http) {
        net_need(c->got > 0 || (got > 12 && memcmp(bytes, "HTTP/1.1 200", 12) == 0),
                 "client: a wrong answer");
        c->got += (unsigned)got;
        return is_whole(bytes, got);
    }
    net_need(c->got + got <= load->answer_bytes, "client: the answer is too long");
    net_need(memcmp(bytes, load->answer + c->got, got) == 0, "client: a wrong answer");
    c->got += (unsigned)got;
    return c->got == load->answer_bytes;
}

/* Takes what has come. The next request begins when the answer is complete. */
static void hear(struct part *part, struct connection *c)
{
    const struct load *load = part->load;
    char               bytes[ANSWER_MAX];
    ssize_t            got = recv(c->fd, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EAGAIN) return;
    net_need(got > 0, got == 0 ? "client: the server closed" : "client: recv");
    if (!take(load, c, bytes, (size_t)got)) return;
    uint64_t now = bench_now_ns();
    load_record(&part->report, now - c->begun);
    part->busy--;
    if (load->plan.each_opens) {
        close(c->fd);
        c->fd = -1;
    }
    if (now < part->until) begin(part, c, now);
}

static void run_part(struct part *part, uint64_t ns)
{
    struct epoll_event events[EVENTS];
    uint64_t           start = bench_now_ns(), heard = start;
    part->until = start + ns;
    memset(&part->report, 0, sizeof part->report);
    for (unsigned i = 0; i < part->count; i++) begin(part, &part->connections[i], bench_now_ns());
    while (part->busy > 0) {
        int count = epoll_wait(part->set, events, EVENTS, WAIT_MS);
        net_need(count >= 0 || errno == EINTR, "client: epoll_wait");
        if (count > 0) heard = bench_now_ns();
        net_need(bench_now_ns() - heard < LOAD_PATIENCE_NS, "client: the server does not answer");
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c->connecting) {
                send_request(part, c);
            } else {
                hear(part, c);
            }
        }
    }
    part->report.ns = bench_now_ns() - start;
}

static void *run_thread(void *argument)
{
    struct part *part = argument;
    run_part(part, part->until);
    return NULL;
}

void load_run(struct load *load, uint64_t ns, struct load_report *report)
{
    uint64_t longest = 0;
    for (unsigned i = 1; i < load->plan.threads; i++) {
        struct part *part = &load->parts[i];
        part->until = ns;
        net_need(pthread_create(&part->thread, NULL, run_thread, part) == 0, "client: a thread");
    }
    run_part(&load->parts[0], ns);
    for (unsigned i = 0; i < load->plan.threads; i++) {
        struct part *part = &load->parts[i];
        if (i > 0) pthread_join(part->thread, NULL);
        if (part->report.ns > longest) longest = part->report.ns;
        report->requests += part->report.requests;
        for (int k = 0; k < LOAD_BUCKETS; k++) report->latency[k] += part->report.latency[k];
    }
    report->ns += longest;
}

struct load *load_open(const struct load_plan *plan)
{
    struct load       *load = calloc(1, sizeof *load);
    struct load_report nobody_asks = {0};
    net_need(load != NULL, "client: memory");
    load->plan = *plan;
    for (int i = 0; i < NET_ECHO_BYTES; i++) echo_bytes[i] = (char)('A' + i % 26);
    load->request = plan->hello ? NET_REQUEST : echo_bytes;
    load->answer = plan->hello ? NET_ANSWER : echo_bytes;
    load->request_bytes = plan->hello ? sizeof NET_REQUEST - 1 : sizeof echo_bytes;
    load->answer_bytes = plan->hello ? sizeof NET_ANSWER - 1 : sizeof echo_bytes;
    load->parts = calloc(plan->threads, sizeof *load->parts);
    net_need(load->parts != NULL, "client: memory");
    for (unsigned i = 0; i < plan->threads; i++) {
        struct part *part = &load->parts[i];
        part->load = load;
        part->set = epoll_create1(EPOLL_CLOEXEC);
        part->next_source = i * (SOURCES / plan->threads);
        part->count = plan->connections / plan->threads + (i < plan->connections % plan->threads);
        part->connections = calloc(part->count, sizeof *part->connections);
        net_need(part->set >= 0 && part->connections != NULL, "client: memory");
        for (unsigned k = 0; k < part->count; k++) part->connections[k].fd = -1;
    }
    load_run(load, 0, &nobody_asks);
    return load;
}

void load_close(struct load *load)
{
    for (unsigned i = 0; i < load->plan.threads; i++) {
        struct part *part = &load->parts[i];
        for (unsigned k = 0; k < part->count; k++) {
            if (part->connections[k].fd >= 0) close(part->connections[k].fd);
        }
        close(part->set);
        free(part->connections);
    }
    free(load->parts);
    free(load);
}

double load_percentile(const struct load_report *report, double percent)
{
    uint64_t sum = 0, wanted = (uint64_t)((double)report->requests * percent / 100);
    for (unsigned i = 0; i < LOAD_BUCKETS; i++) {
        sum += report->latency[i];
        if (sum > wanted) return bucket_ns(i);
    }
    return 0;
}

/* Sends the first request of a connection, which blocks from now on. */
static bool ask(int fd, bool http)
{
    struct timeval patience = {.tv_sec = (time_t)(LOAD_PATIENCE_NS / 1000000000)};
    struct linger  reset = {.l_onoff = 1}; /* its close leaves no port behind that waits */
    char           bytes[NET_ECHO_BYTES] = {0};
    int            flags = fcntl(fd, F_GETFL);
    net_need(flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0, "client: fcntl");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (http) {
        const ssize_t all = sizeof NET_REQUEST - 1;
        return send(fd, NET_REQUEST, (size_t)all, MSG_NOSIGNAL) == all;
    }
    return send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes;
}

static bool is_answered(int fd, bool http)
{
    char    bytes[ANSWER_MAX];
    ssize_t got = recv(fd, bytes, http ? sizeof bytes : NET_ECHO_BYTES, http ? 0 : MSG_WAITALL);
    if (http) return got > 0 && is_whole(bytes, (size_t)got);
    return got == NET_ECHO_BYTES;
}

unsigned load_idle(uint16_t port, bool http, unsigned count, int *out)
{
    unsigned open = 0, answered = 0;
    while (answered < count) {
        /* Many at a time: a busy machine lets each side wait for its turn. */
        while (open < count && open - answered < IDLE_BATCH) {
            int fd = load_connect(port, open / SOURCE_PORTS);
            if (fd < 0) break;
            out[open++] = fd;
            if (!ask(fd, http)) return answered;
        }
        if (open == answered) return answered;
        for (; answered < open; answered++) {
            if (!is_answered(out[answered], http)) return answered;
        }
    }
    return answered;
}
