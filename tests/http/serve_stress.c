/* SPDX-License-Identifier: MIT */
/* Many clients at once, which behave, break off, or ask for handlers that fail. */
#include "talk.h"

#include <janusrt/memory.h>

enum { CLIENTS = 24 };

struct storm {
    const struct talk *talk;
    atomic_uint        next, good, failed;
    uint64_t           rounds;
};

static int64_t serve(janus_http *http, const janus_http_request *request)
{
    char kind = request->path.bytes > 1 ? request->path.at[1] : 'g';
    if (kind == 'p') janus_panic("on purpose");
    if (kind == 'l' && janus_alloc(1000) == NULL) return -100; /* left behind */
    if (kind == 'b') {
        char        *body;
        size_t       bytes;
        janus_status status = janus_http_read_all(http, &body, &bytes);
        return status != JANUS_OK ? status : janus_http_answer(http, 200, NULL, body, bytes);
    }
    return janus_http_answer(http, 200, NULL, "good", 4);
}

static const char *const requests[] = {
    "GET /good HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /leave HTTP/1.1\r\nHost: a\r\n\r\nGET /good HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /panic HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
    "GET /good HTT",
    "GET /good HTTP/1.1\r\nHost : a\r\n\r\n",
};

/* Reads until all answers have come, or the server closes. */
static bool read_answers(janus_io io, int count, const char *end)
{
    char   text[2048];
    size_t have = 0, got = 0;
    for (;;) {
        int found = 0;
        text[have] = '\0';
        for (const char *at = text; (at = strstr(at, end)) != NULL; at += 4) found++;
        if (found >= count) return true;
        janus_status status = janus_io_read(io, text + have, sizeof text - 1 - have, &got);
        if (status != JANUS_OK) return false;
        have += got;
    }
}

static int64_t client(void *argument)
{
    struct storm *storm = argument;
    for (uint64_t round = 0; round < storm->rounds; round++) {
        unsigned number = atomic_fetch_add(&storm->next, 1);
        unsigned kind = number % (sizeof requests / sizeof requests[0]);
        janus_io io = talk_open(storm->talk);
        for (unsigned i = 0; i <= number % 3; i++) {
            size_t bytes = strlen(requests[kind]);
            if (janus_io_write(io, requests[kind], bytes, NULL) != JANUS_OK) break;
            if (kind == 4) break; /* breaks off */
            const char *end = kind == 3 ? "\r\n\r\nbody" : "\r\n\r\ngood";
            bool        good = read_answers(io, kind == 1 ? 2 : 1, end);
            CHECK(good == (kind != 2 && kind != 5));
            atomic_fetch_add(good ? &storm->good : &storm->failed, 1);
            if (!good) break;
        }
        CHECK_EQ(janus_io_close(io), JANUS_OK);
    }
    return 0;
}

static void storm(struct talk *talk)
{
    struct storm storm = {.talk = talk, .rounds = rig_few(RIG_SLOW ? 30 : 100)};
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CLIENTS; i++) CHECK_EQ(janus_spawn(n, client, &storm), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK(atomic_load(&storm.good) > 0 && atomic_load(&storm.failed) > 0);
}

TEST("clients that behave get their answers beside clients that do not")
{
    static const janus_budget small = {
        .ops = 100000, .memory = 1 << 20, .spawn_count = 50, .channel_ops = 100, .syscalls = 500};
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        talk_run(&(struct talk){.handler = serve, .client = storm, .workers = workers});
        talk_run(&(struct talk){
            .handler = serve,
            .client = storm,
            .workers = workers,
            .options = JANUS_HTTP_OPTIONS(.max_connections = 10, .request_budget = &small)});
    }
}
