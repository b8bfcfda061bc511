/* SPDX-License-Identifier: MIT */
/* Handlers that leave traps behind: shields, pointers, tasks. The next request notices nothing. */
#include "talk.h"

#include <janusrt/memory.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.0\r\n\r\n"
#define OK_SET "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nset"

__attribute__((noinline)) static void begin_until(void)
{
    janus_shield shield;
    janus_shield_begin_until(&shield, janus_now_ns() + 3600 * JANUS_SECONDS);
}

static int64_t leave_shield(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/ever")) return janus_sleep(3600 * JANUS_SECONDS);
    janus_status status = janus_http_answer(http, 200, NULL, "set", 3);
    if (talk_is(request->path, "/shield")) janus_shield_begin();
    if (talk_is(request->path, "/until")) begin_until(); /* its frame ends */
    return status;
}

static void stop_behind_shield(struct talk *talk)
{
    janus_io io = talk_open(talk);
    talk_put(io, GET("/shield"));
    CHECK_STR(talk_until(talk, io, "set"), OK_SET);
    talk_put(io, GET("/ever"));
    uint64_t from = janus_now_ns();
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    CHECK(strncmp(talk_rest(talk, io), "HTTP/1.1 503 ", 13) == 0);
    CHECK(janus_now_ns() - from < 10 * JANUS_SECONDS);
}

static void ask_behind_dead_shield(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, GET("/until") LAST("/ever")), OK_SET);
    CHECK_STR(talk_ask(talk, GET("/until")), OK_SET);
}

TEST("a shield that a handler leaves behind does not keep the server from stopping")
{
    talk_run(&(struct talk){.handler = leave_shield,
                            .client = stop_behind_shield,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = JANUS_SECONDS),
                            .seed = 7});
}

TEST("a shield in a frame that has ended ends the connection")
{
    if (JRT_ASAN) SKIP("AddressSanitizer uses the frame of the shield again at once");
    talk_run(&(struct talk){.handler = leave_shield, .client = ask_behind_dead_shield});
    talk_run(&(struct talk){.handler = leave_shield,
                            .client = ask_behind_dead_shield,
                            .options = JANUS_HTTP_OPTIONS(.handler_ns = JANUS_SECONDS)});
}

static int64_t leave_pointer(janus_http *http, const janus_http_request *request)
{
    static int secret;
    void     **local = janus_task_local();
    bool       clean = *local == NULL;
    (void)request;
    *local = &secret;
    return janus_http_answer(http, 200, NULL, clean ? "new" : "old", 3);
}

static void ask_for_pointer(struct talk *talk)
{
    const char *text = talk_ask(talk, GET("/") GET("/") LAST("/"));
    CHECK(strstr(text, "new") != NULL && strstr(text, "old") == NULL);
}

TEST("each request begins without a local pointer")
{
    talk_run(&(struct talk){.handler = leave_pointer, .client = ask_for_pointer});
}

static int64_t sleep_for_ever(void *argument)
{
    (void)argument;
    return janus_sleep(3600 * JANUS_SECONDS);
}

static atomic_int flooding;

/* Starts children until it is refused, and so does each child. Then all wait for ever. */
static int64_t flood(void *argument)
{
    janus_nursery n;
    if (janus_nursery_open(&n, NULL) < JANUS_OK) return -100;
    while (janus_spawn(&n, argument != NULL ? flood : sleep_for_ever, NULL) == JANUS_OK) continue;
    if (argument != NULL) atomic_fetch_add(&flooding, 1);
    JANUS_IGNORE(sleep_for_ever(NULL));
    return janus_nursery_end(&n, NULL);
}

static int64_t flood_or_greet(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/flood")) return flood(http);
    return janus_http_answer(http, 200, NULL, "set", 3);
}

static void ask_beside_flood(struct talk *talk)
{
    janus_io floods[2];
    atomic_store(&flooding, 0);
    for (int i = 0; i < 2; i++) {
        floods[i] = talk_open(talk);
        talk_put(floods[i], GET("/flood"));
    }
    while (atomic_load(&flooding) < 2) CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 50; i++) {
        CHECK(strstr(talk_ask(talk, LAST("/")), "set") != NULL);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_io_close(floods[i]), JANUS_OK);
}

TEST("two handlers that flood leave tasks to the others")
{
    talk_run(&(struct talk){.handler = flood_or_greet,
                            .client = ask_beside_flood,
                            .max_tasks = 100,
                            .options = JANUS_HTTP_OPTIONS(.grace_ns = 1)});
}
