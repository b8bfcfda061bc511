/* SPDX-License-Identifier: MIT */
/* A server and two clients under thousands of schedules, with faults of the network. */
#include "harness.h"
#include "part.h"

#include <janusrt/explore.h>
#include <janusrt/http.h>
#include <janusrt/janus.h>
#include <string.h>

static bool     faulty;
static uint32_t places; /* for connections. 0: the usual; else silent clients come, too */

struct world {
    janus_io      listener;
    janus_address at;
    janus_status  served;
};

#define REQUESTS                                                                                   \
    "GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "         \
    "chunked\r\n\r\n3\r\nxyz\r\n0\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\nConnection: "               \
    "close\r\n\r\n"
#define ANSWER(length) "HTTP/1.1 200 OK\r\nContent-Length: " length "\r\n"

/* Answers with the path and the body. */
static int64_t answer(janus_http *http, const janus_http_request *request)
{
    char         text[16];
    size_t       bytes = request->path.bytes, got = 0;
    janus_status status = JANUS_OK;
    memcpy(text, request->path.at, bytes);
    if (request->path.at[1] == 'p') janus_panic("on purpose");
    if (request->method == JANUS_HTTP_METHOD_GET) {
        return janus_http_answer(http, 200, NULL, text, bytes);
    }
    while (status == JANUS_OK) {
        status = janus_http_read(http, text + bytes, sizeof text - bytes, &got);
        bytes += got;
    }
    return status == JANUS_CLOSED ? janus_http_answer(http, 200, NULL, text, bytes) : status;
}

static int64_t serve(void *argument)
{
    struct world *world = argument;
    world->served = janus_http_serve(world->listener, answer, NULL,
                                     JANUS_HTTP_OPTIONS(.max_connections = places));
    if (world->served != JANUS_OK) JANUS_IGNORE(janus_io_close(world->listener)); /* a fault */
    return 0;
}

/* Removes the lines of Date, also a line that was cut off. */
static void tidy_up(char *text)
{
    char *cut = strrchr(text, 'D');
    if (cut != NULL && strncmp(cut, "Date: ", strlen(cut)) == 0) *cut = '\0';
    char *date;
    while ((date = strstr(text, "Date: ")) != NULL) {
        char *end = strstr(date, "\r\n");
        if (end == NULL) {
            *date = '\0';
            return;
        }
        memmove(date, end + 2, strlen(end + 2) + 1);
    }
}

/* What arrived is the beginning of the right answers, or of an error. */
static void check(char *text, bool all)
{
    static const char want[] =
        ANSWER("2") "\r\n/a" ANSWER("5") "\r\n/bxyz" ANSWER("2") "Connection: close\r\n\r\n/c";
    tidy_up(text);
    size_t bytes = strlen(text), same = 0;
    while (same < bytes && same < sizeof want - 1 && text[same] == want[same]) same++;
    if (all) JANUS_EXPECT(same == sizeof want - 1 && same == bytes);
    /* A status of the server for a connection that broke, as 400 or 408. */
    bool failed = same >= 9 && (strncmp(text + same, "4", 1) == 0 || text[same] == '5');
    /* A full server closes after an answer, if the connection has had its turn. */
    static const char turn[] = "Connection: close";
    size_t            rest = bytes - same < sizeof turn - 1 ? bytes - same : sizeof turn - 1;
    bool              turned = places > 0 && strncmp(text + same, turn, rest) == 0;
    JANUS_EXPECT(same == bytes || failed || turned);
}

static int64_t visit(void *argument)
{
    struct world *world = argument;
    char          text[1024];
    size_t        have = 0, got = 0;
    janus_io      io;
    janus_status  status = janus_connect(&world->at, NULL, &io);
    if (status != JANUS_OK) return 0;
    status = janus_io_write(io, REQUESTS, sizeof REQUESTS - 1, NULL);
    bool sent = status == JANUS_OK;
    while (status == JANUS_OK && have < sizeof text - 1) {
        status = janus_io_read(io, text + have, sizeof text - 1 - have, &got);
        have += got;
    }
    text[have] = '\0';
    check(text, !faulty && sent && status == JANUS_CLOSED);
    JANUS_EXPECT(janus_io_close(io) == JANUS_OK);
    return 0;
}

static int64_t break_off(void *argument)
{
    struct world *world = argument;
    janus_io      io;
    if (janus_connect(&world->at, NULL, &io) != JANUS_OK) return 0;
    JANUS_IGNORE(janus_io_write(io, "GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b", 36, NULL));
    JANUS_EXPECT(janus_io_close(io) == JANUS_OK);
    return 0;
}

/* Says nothing until the server closes. */
static int64_t be_silent(void *argument)
{
    struct world *world = argument;
    char          byte;
    size_t        got = 0;
    janus_io      io;
    if (janus_connect(&world->at, NULL, &io) != JANUS_OK) return 0;
    JANUS_IGNORE(janus_io_read(io, &byte, 1, &got));
    JANUS_EXPECT(janus_io_close(io) == JANUS_OK);
    return 0;
}

static int64_t scene(void *argument)
{
    struct world world = {.served = JANUS_OK};
    janus_status status;
    (void)argument;
    JANUS_EXPECT(janus_address_parse("127.0.0.1:0", &world.at) == JANUS_OK);
    if (janus_listen(&world.at, NULL, &world.listener) != JANUS_OK) return 0; /* a fault */
    JANUS_EXPECT(janus_io_local(world.listener, &world.at) == JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        if (janus_spawn(n, serve, &world) != JANUS_OK) break;
        janus_status visited;
        JANUS_NURSERY(clients, visited)
        {
            if (places > 0 && janus_spawn(clients, be_silent, &world) != JANUS_OK) break;
            if (janus_spawn(clients, visit, &world) != JANUS_OK) break;
            if (janus_spawn(clients, break_off, &world) != JANUS_OK) break;
        }
        JANUS_EXPECT(visited == JANUS_OK);
        JANUS_IGNORE(janus_io_close(world.listener));
    }
    /* STALE: the clients failed, and the listener was closed before the server began. */
    JANUS_EXPECT(world.served == JANUS_OK || world.served == JANUS_NO_MEMORY ||
                 world.served == JANUS_STALE);
    return status;
}

/* The listener is closed while the server is between two accepts, so one call may see it stale. */
static void explore(uint32_t faults, uint64_t schedules)
{
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    faulty = faults != 0;
    janus_status status = janus_explore(
        JANUS_EXPLORE_OPTIONS(.schedules = harness_part(schedules, 5), .faults = faults,
                              .faults_every = 40, .worker_count = 2, .stale_allowed = true),
        scene, NULL, &result);
    if (status != JANUS_OK) harness_fail(__FILE__, __LINE__, result.message);
}

TEST("a server and its clients agree under every schedule") { explore(0, 1000); }

TEST("a broken network breaks connections and nothing else") { explore(JANUS_FAULT_NETWORK, 3000); }

TEST("shortage of memory breaks connections and nothing else")
{
    explore(JANUS_FAULT_MEMORY | JANUS_FAULT_WAKE, 1000);
}

TEST("on a full server connections make way, under every schedule and with faults")
{
    places = 1;
    explore(0, 500);
    explore(JANUS_FAULT_NETWORK, 1000);
    explore(JANUS_FAULT_MEMORY | JANUS_FAULT_WAKE, 500);
    places = 0;
}
