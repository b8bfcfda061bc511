/* SPDX-License-Identifier: MIT */
/*
 * A contestant of the work `https`: a server of HTTPS, NET_SERVER, beside nginx, NET_BASE.
 *
 * All speak TLS 1.3 with TLS_AES_128_GCM_SHA256 and X25519, and show the same certificate for an
 * ECDSA key on P-256. The client of OpenSSL allows nothing else, and checks no certificate.
 *
 * Timed: CPU       the server's CPU time, against that of nginx
 *        CPU time  the same, absolute
 * for a connection with a full handshake, one request and a close
 *     the same with a handshake that resumes a session by its last ticket
 *     a request over one of 64 connections that stay open
 *
 * Slots of 100 ms take turns: nginx, the server, the server, nginx. The server has one core and one
 * worker. The client has another core and eight threads, which wait for the network.
 */
#include "../runner.h"
#include "process.h"
#include "protocol.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define SLOT_NS UINT64_C(100000000)

enum { THREADS = 8, OF_EACH = 8, ANSWER_MAX = 1024 };

enum situation { FULL, RESUMED, HELLO, SITUATIONS };

static const char *const labels[SITUATIONS] = {"a connection with a full handshake",
                                               "a connection with a resumed handshake",
                                               "hello, 64 connections"};

struct part {
    struct side *side;
    pthread_t    thread;
    SSL_SESSION *ticket;
    SSL         *kept[OF_EACH];
    uint64_t     done;
};

struct side {
    struct process process;
    enum situation situation;
    uint64_t       until, done, cpu_ns;
    struct part    parts[THREADS];
};

static SSL_CTX *context;

static void need_tls(bool right, const char *what)
{
    if (right) return;
    fprintf(stderr, "client: %s\n", what);
    exit(1);
}

/* OpenSSL hands over a ticket, which this thread's part keeps. */
static int keep_ticket(SSL *ssl, SSL_SESSION *session)
{
    struct part *part = SSL_get_app_data(ssl);
    SSL_SESSION_free(part->ticket);
    part->ticket = session;
    return 1;
}

static void make_context(void)
{
    context = SSL_CTX_new(TLS_client_method());
    need_tls(context != NULL && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                 SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
                 SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
                 SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x08http/1.1", 9) == 0,
             "OpenSSL refuses the settings");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_ticket);
}

/* A copy, because OpenSSL uses a ticket only once. Not every server sends another. */
static void use_ticket(SSL *ssl, const SSL_SESSION *ticket)
{
    SSL_SESSION *copy = SSL_SESSION_dup(ticket);
    need_tls(copy != NULL && SSL_set_session(ssl, copy) == 1, "the ticket is refused");
    SSL_SESSION_free(copy);
}

static SSL *connect_one(struct part *part, bool resumes)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(part->side->process.port)};
    struct linger      reset = {.l_onoff = 1}; /* its close leaves no port behind that waits */
    struct timeval     patience = {.tv_sec = 10};
    int                yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
    SSL               *ssl = SSL_new(context);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    net_need(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "client: connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    need_tls(ssl != NULL && SSL_set_fd(ssl, fd) == 1, "no memory");
    SSL_set_app_data(ssl, part);
    if (resumes && part->ticket != NULL) use_ticket(ssl, part->ticket);
    need_tls(SSL_connect(ssl) == 1, "the handshake fails");
    need_tls(SSL_session_reused(ssl) == (resumes && part->ticket != NULL),
             "the handshake is not of the wanted kind");
    return ssl;
}

static void ask(SSL *ssl)
{
    need_tls(SSL_write(ssl, NET_REQUEST, sizeof NET_REQUEST - 1) == sizeof NET_REQUEST - 1, "send");
}

static void hear(SSL *ssl)
{
    const int body = sizeof NET_BODY - 1;
    char      bytes[ANSWER_MAX];
    int       have = 0;
    while (have < body || memcmp(bytes + have - body, NET_BODY, (size_t)body) != 0) {
        int got = SSL_read(ssl, bytes + have, (int)sizeof bytes - have);
        need_tls(got > 0, "the server closed");
        have += got;
    }
    need_tls(memcmp(bytes, "HTTP/1.1 200", 12) == 0, "a wrong answer");
}

static void drop(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);
    (void)SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

static void once(struct part *part)
{
    if (part->side->situation != HELLO) {
        SSL *ssl = connect_one(part, part->side->situation == RESUMED);
        ask(ssl);
        hear(ssl);
        drop(ssl);
        part->done++;
        return;
    }
    for (int i = 0; i < OF_EACH; i++) {
        if (part->kept[i] == NULL) part->kept[i] = connect_one(part, false);
        ask(part->kept[i]);
    }
    for (int i = 0; i < OF_EACH; i++) hear(part->kept[i]);
    part->done += OF_EACH;
}

static void *run_part(void *argument)
{
    struct part *part = argument;
    part->done = 0;
    do once(part);
    while (bench_now_ns() < part->side->until);
    return NULL;
}

static void slot(struct side *side, uint64_t ns)
{
    uint64_t before = process_cpu_ns(&side->process);
    side->until = bench_now_ns() + ns;
    for (int i = 0; i < THREADS; i++) {
        struct part *part = &side->parts[i];
        part->side = side;
        runner_need(pthread_create(&part->thread, NULL, run_part, part) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(side->parts[i].thread, NULL);
        side->done += side->parts[i].done;
    }
    side->cpu_ns += process_cpu_ns(&side->process) - before;
}

static void open_side(struct side *side, const char *path)
{
    cpu_set_t server, client;
    memset(side, 0, sizeof *side);
    process_choose_cores(1, &server, &client);
    process_start(&side->process, path, "https", 1, &server);
    runner_need(sched_setaffinity(0, sizeof client, &client) == 0, "cannot choose a core");
}

static void close_side(struct side *side)
{
    for (int i = 0; i < THREADS; i++) {
        SSL_SESSION_free(side->parts[i].ticket);
        for (int k = 0; k < OF_EACH; k++) {
            if (side->parts[i].kept[k] != NULL) drop(side->parts[i].kept[k]);
        }
    }
    process_stop(&side->process);
}

static double cpu_of(const struct side *side) { return (double)side->cpu_ns / (double)side->done; }

static void race(struct side *base, struct side *side, enum situation situation)
{
    struct side *const order[] = {base, side, side, base};
    char               metric[128];
    base->situation = side->situation = situation;
    for (int i = 0; i < 2; i++) slot(order[i], SLOT_NS / 10); /* warms up; for RESUMED, tickets */
    base->done = side->done = base->cpu_ns = side->cpu_ns = 0;
    for (int turn = 0; turn < (runner.quick ? 2 : 5); turn++) {
        for (int i = 0; i < 4; i++) slot(order[i], SLOT_NS);
    }
    snprintf(metric, sizeof metric, "%s: CPU", labels[situation]);
    runner_say_as(side->process.name, side->process.version, metric, "x nginx",
                  cpu_of(side) / cpu_of(base));
    snprintf(metric, sizeof metric, "%s: CPU time", labels[situation]);
    runner_say_as(side->process.name, side->process.version, metric, "us", cpu_of(side) / 1000);
}

static void run_https(void)
{
    struct side base, side;
    make_context();
    (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    runner_need(setenv("NET_TLS", NET_TLS, 1) == 0, "no memory");
    open_side(&base, NET_BASE);
    open_side(&side, NET_SERVER);
    for (int i = 0; i < SITUATIONS; i++) race(&base, &side, i);
    close_side(&side);
    close_side(&base);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {{"https", 1, run_https}, {NULL, 0, NULL}};
    return runner_main(argc, argv, NET_SERVER, "", works);
}
