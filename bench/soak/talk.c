/* SPDX-License-Identifier: MIT */
#include "talk.h"

#include "../net/load.h"
#include "../net/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    BUFFER = 1 << 18,
    BATCH = 32,
    PATIENCE_S = 60,
    UPLOAD_MAX = 20000,
    MESSAGE_MAX = 2000,
    REQUESTS_MAX = 1000 /* of a connection; then the server closes it */
};

#define HOST "Host: 127.0.0.1\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static _Thread_local char        buffer[BUFFER + 1];
static _Thread_local const char *act_name = "";

uint64_t talk_chance(struct talk *talk, uint64_t below)
{
    talk->random ^= talk->random << 13;
    talk->random ^= talk->random >> 7;
    talk->random ^= talk->random << 17;
    return (talk->random * UINT64_C(2685821657736338717) >> 33) % below;
}

int talk_connect(struct talk *talk, uint16_t port)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int            fd = load_connect(port, (unsigned)talk_chance(talk, 200));
    net_need(fd >= 0, "connect");
    net_need(fcntl(fd, F_SETFL, 0) == 0, "fcntl");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    talk->connections++;
    return fd;
}

static void put(int fd, const char *bytes, size_t count)
{
    net_need(send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count, "send");
}

static void put_text(int fd, const char *text) { put(fd, text, strlen(text)); }

void talk_drop(struct talk *talk, int fd, bool resets)
{
    struct linger at_once = {.l_onoff = 1};
    if (resets) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    talk->resets += resets;
    close(fd);
}

/* Reads until `have` bytes are there. */
static size_t fill(int fd, size_t have, size_t wanted)
{
    net_need(wanted <= BUFFER, "the answer is too long");
    while (have < wanted) {
        ssize_t got = recv(fd, buffer + have, BUFFER - have, 0);
        if (got <= 0) {
            fprintf(stderr, "%s: %s\n", act_name, got == 0 ? "the server closed" : strerror(errno));
            exit(1);
        }
        have += (size_t)got;
    }
    buffer[have] = 0;
    return have;
}

/* Reads one head and its body with a length. Returns the status; *out_body is where the body is. */
static int read_answer(int fd, size_t *have, size_t *used, char **out_body, size_t *out_bytes)
{
    size_t head;
    while ((head = net_head_end(buffer + *used, *have - *used)) == 0) {
        *have = fill(fd, *have, *have + 1);
    }
    char  *text = buffer + *used, *length = strcasestr(text, "\r\nContent-Length:");
    size_t bytes = length == NULL || length > text + head ? 0 : strtoul(length + 17, NULL, 10);
    *have = fill(fd, *have, *used + head + bytes);
    *out_body = buffer + *used + head;
    *out_bytes = bytes;
    *used += head + bytes;
    net_need(memcmp(text, "HTTP/1.1 ", 9) == 0, "no answer of HTTP");
    return (int)strtol(text + 9, NULL, 10);
}

static int one_answer(int fd, char **out_body, size_t *out_bytes)
{
    size_t have = 0, used = 0;
    return read_answer(fd, &have, &used, out_body, out_bytes);
}

static void need_status(int status, int wanted, const char *what)
{
    if (status == wanted) return;
    fprintf(stderr, "%s: the status is %d instead of %d\n", what, status, wanted);
    exit(1);
}

/* Requests over a connection that stays open, pipelined by chance. */
static void act_hello(struct talk *talk)
{
    static const char request[] = GET("/hello");
    uint64_t          which = talk_chance(talk, TALK_KEPT);
    int              *fd = &talk->kept[which];
    unsigned          count = 1 + (unsigned)talk_chance(talk, BATCH);
    char              batch[BATCH * sizeof request], *body;
    size_t            have = 0, used = 0, bytes, all = 0;
    if (*fd < 0) {
        *fd = talk_connect(talk, talk->port);
        talk->asked[which] = 0;
    }
    for (unsigned i = 0; i < count; i++) {
        memcpy(batch + all, request, sizeof request - 1);
        all += sizeof request - 1;
    }
    put(*fd, batch, all);
    for (unsigned i = 0; i < count; i++) {
        if (used == have) have = used = 0;
        need_status(read_answer(*fd, &have, &used, &body, &bytes), 200, "/hello");
        net_need(bytes == sizeof NET_BODY - 1 && memcmp(body, NET_BODY, bytes) == 0, "the body");
    }
    talk->requests += count;
    talk->asked[which] += count;
    if (talk_chance(talk, 40) != 0 && talk->asked[which] <= REQUESTS_MAX - BATCH) return;
    talk_drop(talk, *fd, talk_chance(talk, 2) == 0);
    *fd = -1;
}

static void act_upload(struct talk *talk)
{
    char   head[256], *body;
    size_t left = talk_chance(talk, UPLOAD_MAX), all = left, bytes;
    int    fd = talk_connect(talk, talk->port);
    put_text(fd, "POST /upload HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    memset(buffer, 'u', UPLOAD_MAX);
    while (left > 0) {
        size_t part = 1 + talk_chance(talk, left);
        snprintf(head, sizeof head, "%zx\r\n", part);
        put_text(fd, head);
        put(fd, buffer, part);
        put_text(fd, "\r\n");
        left -= part;
        if (left > 0 && talk_chance(talk, 20) == 0) { /* breaks off */
            talk_drop(talk, fd, talk_chance(talk, 2) == 0);
            return;
        }
    }
    put_text(fd, "0\r\n\r\n");
    need_status(one_answer(fd, &body, &bytes), 200, "/upload");
    net_need(strtoul(body, NULL, 10) == all, "the length of the upload");
    talk->requests++;
    talk_drop(talk, fd, false);
}

/* Asks for a stream, and reads some of it, or all. */
static void read_some(struct talk *talk, const char *request, const char *end)
{
    int    fd = talk_connect(talk, talk->port);
    size_t have = 0, stop = talk_chance(talk, 4) == 0 ? talk_chance(talk, 60000) : BUFFER;
    put_text(fd, request);
    while (have < stop &&
           (have < 5 || memcmp(buffer + have - strlen(end), end, strlen(end)) != 0)) {
        have = fill(fd, have, have + 1);
    }
    talk->requests++;
    talk_drop(talk, fd, talk_chance(talk, 4) == 0);
}

static void act_events(struct talk *talk) { read_some(talk, GET("/events"), "\r\n0\r\n\r\n"); }

static void act_stream(struct talk *talk) { read_some(talk, GET("/stream"), "\r\n0\r\n\r\n"); }

static void act_file(struct talk *talk)
{
    char  *body;
    size_t bytes, have = 0, stop = talk_chance(talk, 50000);
    int    fd = talk_connect(talk, talk->port);
    talk->requests++;
    switch (talk_chance(talk, 3)) {
    case 0:
        put_text(fd, GET("/file/a.bin"));
        need_status(one_answer(fd, &body, &bytes), 200, "/file/a.bin");
        net_need(bytes == TALK_FILE_BYTES, "the length of the file");
        break;
    case 1:
        put_text(fd, "GET /file/a.bin HTTP/1.1\r\n" HOST "Range: bytes=500-1499\r\n\r\n");
        need_status(one_answer(fd, &body, &bytes), 206, "a range");
        net_need(bytes == 1000, "the length of the range");
        break;
    default: /* breaks off */
        put_text(fd, GET("/file/a.bin"));
        while (have < stop) have = fill(fd, have, have + 1);
    }
    talk_drop(talk, fd, talk_chance(talk, 4) == 0);
}

static void send_frame(int fd, int opcode, size_t bytes)
{
    unsigned char frame[MESSAGE_MAX + 8] = {(unsigned char)(0x80 | opcode)};
    size_t        head = bytes < 126 ? 2 : 4;
    frame[1] = (unsigned char)(0x80 | (bytes < 126 ? bytes : 126));
    if (bytes >= 126) {
        frame[2] = (unsigned char)(bytes >> 8);
        frame[3] = (unsigned char)bytes;
    }
    memset(frame + head + 4, 'w', bytes); /* the mask is 0 */
    put(fd, (char *)frame, head + 4 + bytes);
}

static void act_websocket(struct talk *talk)
{
    int      fd = talk_connect(talk, talk->port);
    char    *body;
    size_t   bytes;
    unsigned count = 1 + (unsigned)talk_chance(talk, 10);
    put_text(fd,
             "GET /echo HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    need_status(one_answer(fd, &body, &bytes), 101, "/echo");
    for (unsigned i = 0; i < count; i++) {
        size_t length = talk_chance(talk, MESSAGE_MAX);
        send_frame(fd, 2, length);
        if (talk_chance(talk, 30) == 0) break;
        (void)fill(fd, 0, length + (length < 126 ? 2 : 4));
        talk->requests++;
    }
    if (talk_chance(talk, 2) == 0) send_frame(fd, 8, 0);
    talk_drop(talk, fd, talk_chance(talk, 4) == 0);
}

/* A head or a body that ends too early. */
static void act_part(struct talk *talk)
{
    static const char request[] =
        "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\nnot yet";
    int fd = talk_connect(talk, talk->port);
    put(fd, request, 1 + talk_chance(talk, sizeof request - 2));
    talk->requests++;
    talk_drop(talk, fd, talk_chance(talk, 2) == 0);
}

static void act_nonsense(struct talk *talk)
{
    char  *body;
    size_t bytes;
    int    fd = talk_connect(talk, talk->port);
    put_text(fd, "GET /hello HTTP/1.1\r\nHost : x\r\nContent-Length: 1, 2\r\n\r\n");
    need_status(one_answer(fd, &body, &bytes), 400, "nonsense");
    talk->requests++;
    talk_drop(talk, fd, false);
}

static void ask(struct talk *talk, const char *request, int wanted)
{
    char  *body;
    size_t bytes;
    int    fd = talk_connect(talk, talk->port);
    put_text(fd, request);
    need_status(one_answer(fd, &body, &bytes), wanted, request);
    talk->requests++;
    talk_drop(talk, fd, false);
}

static void act_leak(struct talk *talk) { ask(talk, GET("/leak"), 200); }
static void act_fail(struct talk *talk) { ask(talk, GET("/fail"), 500); }
static void act_loop(struct talk *talk) { ask(talk, GET("/loop"), 500); }
static void act_tls(struct talk *talk)
{
#if SOAK_TLS
    if (talk->tls_port != 0) talk_tls(talk);
#else
    (void)talk;
#endif
}
static void act_nowhere(struct talk *talk) { ask(talk, GET("/nowhere"), 404); }

/* How often an act comes, of 1000. */
enum { ALL = 1000 };
static const struct {
    unsigned share;
    void     (*run)(struct talk *talk);
} acts[] = {{760, act_hello}, {50, act_upload},    {30, act_events}, {30, act_stream},
            {40, act_file},   {30, act_websocket}, {20, act_part},   {10, act_nonsense},
            {10, act_leak},   {8, act_fail},       {2, act_loop},    {5, act_nowhere},
            {5, act_tls}};

const char *const talk_names[] = {"hello",     "upload", "events",   "stream", "file",
                                  "WebSocket", "part",   "nonsense", "leak",   "fail",
                                  "loop",      "404",    "TLS",      NULL};

void talk_act(struct talk *talk)
{
    unsigned drawn = (unsigned)talk_chance(talk, ALL);
    size_t   i = 0;
    while (drawn >= acts[i].share) drawn -= acts[i++].share;
    act_name = talk_names[i];
    acts[i].run(talk);
    talk->acts[i]++;
}

void talk_open(struct talk *talk, uint16_t port, uint64_t seed)
{
    memset(talk, 0, sizeof *talk);
    talk->port = port;
    talk->random = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (int i = 0; i < TALK_KEPT; i++) talk->kept[i] = -1;
    talk->tls_port = (uint16_t)talk_ask(talk, "/tls");
}

void talk_close(struct talk *talk)
{
    for (int i = 0; i < TALK_KEPT; i++) {
        if (talk->kept[i] >= 0) close(talk->kept[i]);
        talk->kept[i] = -1;
    }
}

long talk_ask(struct talk *talk, const char *path)
{
    char   request[256], *body;
    size_t bytes;
    int    fd = talk_connect(talk, talk->port);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "\r\n", path);
    put_text(fd, request);
    need_status(one_answer(fd, &body, &bytes), 200, path);
    close(fd);
    return strtol(body, NULL, 10);
}
