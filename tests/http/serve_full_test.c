/* SPDX-License-Identifier: MIT */
/* Servers that are full: of connections, of tasks. They serve on, and they can be stopped. */
#include "talk.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static int64_t serve_or_sleep(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/ever")) return janus_sleep(36000 * JANUS_SECONDS);
    return janus_http_answer(http, 200, NULL, "done", 4);
}

static uint64_t seconds_since(uint64_t begun) { return (janus_now_ns() - begun) / JANUS_SECONDS; }

/* Drops what comes until the connection ends, however it ends. */
static void await_end(janus_io io)
{
    char   byte;
    size_t got = 0;
    while (janus_io_read(io, &byte, 1, &got) == JANUS_OK) {
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
}

static void stop_while_one_waits(struct talk *talk)
{
    janus_io kept = talk_open(talk), next = talk_open(talk);
    talk_put(kept, GET("/"));
    CHECK(strstr(talk_until(talk, kept, "done"), "200") != NULL);
    talk_put(next, GET("/"));
    CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    uint64_t begun = janus_now_ns();
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    await_end(kept);
    await_end(next);
    CHECK(seconds_since(begun) < 4); /* an idle connection may live for 60 s */
}

TEST("a stop begins at once while connections wait for room")
{
    talk_run(&(struct talk){.handler = serve_or_sleep,
                            .client = stop_while_one_waits,
                            .options = JANUS_HTTP_OPTIONS(.max_connections = 1),
                            .seed = 7});
}

static void stop_while_busy(struct talk *talk)
{
    janus_io busy = talk_open(talk), next = talk_open(talk);
    talk_put(busy, GET("/ever"));
    CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    uint64_t begun = janus_now_ns();
    CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    await_end(busy);
    await_end(next);
    CHECK(seconds_since(begun) >= 5 && seconds_since(begun) < 9);
}

TEST("the grace ends a request that fills the server")
{
    talk_run(&(struct talk){
        .handler = serve_or_sleep,
        .client = stop_while_busy,
        .options = JANUS_HTTP_OPTIONS(.max_connections = 1, .grace_ns = 5 * JANUS_SECONDS),
        .seed = 7});
}

enum { CONNECTIONS = 8, TASKS = 2 * CONNECTIONS + 5 };

static int64_t sleep_on(void *argument)
{
    (void)argument;
    return janus_sleep(36000 * JANUS_SECONDS);
}

/* Takes all tasks that the scheduler still has. */
static void take_tasks(janus_nursery *n)
{
    janus_status status;
    do {
        status = janus_spawn(n, sleep_on, NULL);
    } while (status == JANUS_OK);
    CHECK_EQ(status, JANUS_TASK_LIMIT);
}

static void ask_without_tasks(struct talk *talk)
{
    janus_io     guests[CONNECTIONS];
    janus_status status;
    for (int i = 0; i < CONNECTIONS; i++) guests[i] = talk_open(talk);
    CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    JANUS_NURSERY(n, status, .owner_apart = true)
    {
        take_tasks(n);
        for (int i = 0; i < CONNECTIONS; i++) talk_put(guests[i], LAST);
        for (int i = 0; i < CONNECTIONS; i++) { /* a place that one leaves serves another */
            const char *text = talk_rest(talk, guests[i]);
            CHECK(strstr(text, "HTTP/1.1 200") == text || strstr(text, "HTTP/1.1 503") == text);
        }
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK(strstr(talk_ask(talk, LAST), "done") != NULL);
}

TEST("requests for which the scheduler has no task get 503, not an endless wait")
{
    char log[TALK_LOG_BYTES];
    talk_run(&(struct talk){.handler = serve_or_sleep,
                            .client = ask_without_tasks,
                            .options = JANUS_HTTP_OPTIONS(.max_connections = CONNECTIONS),
                            .max_tasks = TASKS,
                            .seed = 7,
                            .log = log});
    CHECK(strstr(log, " - - 503 ") != NULL); /* its head was not read */
}

static void stop_without_tasks(struct talk *talk)
{
    janus_io     kept = talk_open(talk), next;
    janus_status status;
    talk_put(kept, GET("/"));
    CHECK(strstr(talk_until(talk, kept, "done"), "200") != NULL);
    JANUS_NURSERY(n, status, .owner_apart = true)
    {
        take_tasks(n);
        next = talk_open(talk);
        CHECK_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
        uint64_t begun = janus_now_ns();
        CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
        await_end(kept);
        await_end(next);
        CHECK(seconds_since(begun) < 4);
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
}

TEST("a stop begins at once while a connection waits for a task")
{
    talk_run(&(struct talk){.handler = serve_or_sleep,
                            .client = stop_without_tasks,
                            .options = JANUS_HTTP_OPTIONS(.max_connections = CONNECTIONS),
                            .max_tasks = TASKS,
                            .seed = 7});
}
