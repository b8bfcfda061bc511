/* SPDX-License-Identifier: MIT */
/* Handlers that reach for what is not theirs: nurseries, names, connections, descriptors, locks. */
#include "http/server.h"
#include "talk.h"

#include <janusrt/abi.h>
#include <janusrt/async.h>
#include <janusrt/charge.h>
#include <janusrt/dump.h>
#include <janusrt/memory.h>
#include <janusrt/rwlock.h>
#include <janusrt/token.h>
#include <janusrt/websocket.h>
#include <sys/resource.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.0\r\n\r\n"
#define OK_SET "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nset"

static const janus_budget pool = {
    .ops = 1000000, .memory = 1 << 20, .spawn_count = 20, .channel_ops = 100, .syscalls = 1000};

static janus_status greet(janus_http *http) { return janus_http_answer(http, 200, NULL, "set", 3); }

/* Nurseries. */

static int64_t do_nothing(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t give_nothing(void *argument, void *value)
{
    (void)argument;
    (void)value;
    return 0;
}

static int64_t look_around(janus_http *http, const janus_http_request *request)
{
    janus_task_info    info = JANUS_TASK_INFO();
    janus_nursery_info inside = JANUS_NURSERY_INFO();
    janus_async        call;
    janus_nursery      n;
    (void)request;
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    CHECK(info.nursery == NULL && info.owned == NULL);
    CHECK_EQ(info.nurseries, 0);
    CHECK_STR(info.nursery_name, "requests");
    CHECK_EQ(janus_scheduler_spawn(do_nothing, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_async_start(NULL, &call, give_nothing, NULL, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_inspect(&n, &inside), JANUS_OK);
    CHECK(inside.parent == NULL);
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    CHECK(info.owned == &n);
    CHECK_EQ(info.nurseries, 1);
    CHECK_EQ(janus_scheduler_spawn(do_nothing, NULL), JANUS_OK); /* in its own */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return greet(http);
}

static void ask_twice(struct talk *talk)
{
    CHECK(strstr(talk_ask(talk, GET("/") LAST("/")), OK_SET) != NULL);
}

TEST("a handler finds no nursery of the server, and starts no task in one")
{
    talk_run(&(struct talk){.handler = look_around, .client = ask_twice});
    talk_run(&(struct talk){.handler = look_around,
                            .client = ask_twice,
                            .options = JANUS_HTTP_OPTIONS(.handler_ns = JANUS_SECONDS)});
    talk_run(&(struct talk){
        .handler = look_around,
        .client = ask_twice,
        .options = JANUS_HTTP_OPTIONS(.handler_ns = JANUS_SECONDS, .request_budget = &pool)});
}
