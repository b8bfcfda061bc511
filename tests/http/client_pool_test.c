/* SPDX-License-Identifier: MIT */
/* The client's connections: kept, limited, given back by tasks that end, closed by the owner. */
#include "caller.h"

static atomic_int inside, most, go;

static int64_t answer(janus_http *http, const janus_http_request *request)
{
    if (talk_is(request->path, "/together")) {
        int now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
        }
        for (int i = 0; i < 5; i++) CHECK_EQ(janus_yield(), JANUS_OK);
        atomic_fetch_sub(&inside, 1);
    }
    if (talk_is(request->path, "/wait")) {
        atomic_fetch_add(&inside, 1);
        if (!rig_wait(&go)) return -100;
    }
    if (talk_is(request->path, "/big")) {
        static char  bytes[100000];
        janus_status status = janus_http_begin(http, 200, NULL, sizeof bytes);
        return status == JANUS_OK ? janus_http_write(http, bytes, sizeof bytes) : status;
    }
    return janus_http_answer(http, 200, NULL, "done", 4);
}

struct crowd {
    struct talk       *talk;
    janus_http_client *client;
    const char        *path;
};

static int64_t call_one(void *argument)
{
    const struct crowd *crowd = argument;
    call_for(crowd->client, &crowd->talk->at, crowd->path, 200, "done");
    return 0;
}

static void call_together(struct talk *talk)
{
    enum { CALLERS = 20 };
    janus_status status;
    struct crowd crowd = {talk, client_with(JANUS_HTTP_CLIENT_OPTIONS(.max_per_host = 3)),
                          "/together"};
    atomic_store(&most, 0);
    atomic_store(&inside, 0);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CALLERS; i++) CHECK_EQ(janus_spawn(n, call_one, &crowd), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK(atomic_load(&most) <= 3);
    janus_http_client_info info = look(crowd.client);
    CHECK(info.connection_count <= 3);
    CHECK_EQ(info.idle_count, info.connection_count);
    CHECK_EQ(info.calls, CALLERS);
    janus_http_client_destroy(crowd.client);
}

TEST("calls above the limit of a host wait for a connection")
{
    talk_run(&(struct talk){.handler = answer, .client = call_together});
}

static void call_refused(struct talk *talk)
{
    janus_status      status;
    char              url[URL_BYTES];
    janus_http_reply *reply = NULL;
    struct crowd      crowd = {
        talk, client_with(JANUS_HTTP_CLIENT_OPTIONS(.max_connections = 1, .refuses = true)),
        "/wait"};
    atomic_store(&inside, 0);
    atomic_store(&go, 0);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, call_one, &crowd), JANUS_OK);
        CHECK(rig_wait(&inside));
        CHECK_EQ(janus_http_call(crowd.client, "GET", url_of(&talk->at, "/", url), NULL, &reply),
                 JANUS_FULL);
        atomic_store(&go, 1);
    }
    CHECK_EQ(status, JANUS_OK);
    call_for(crowd.client, &talk->at, "/", 200, "done");
    CHECK_EQ(look(crowd.client).connects, 1);
    janus_http_client_destroy(crowd.client);
}

TEST("a client that refuses returns FULL at its limit")
{
    talk_run(&(struct talk){.handler = answer, .client = call_refused});
}

static void wait_in_vain(struct talk *talk)
{
    janus_http_client *client = client_with(JANUS_HTTP_CLIENT_OPTIONS(.max_connections = 1));
    char               url[URL_BYTES];
    janus_http_reply  *first = NULL, *reply = NULL;
    CHECK_EQ(janus_http_call(client, "GET", url_of(&talk->at, "/big", url), NULL, &first),
             JANUS_OK);
    uint64_t end = janus_now_ns() + 50 * JANUS_MS;
    CHECK_EQ(
        janus_http_call(client, "GET", url, JANUS_HTTP_CALL_OPTIONS(.deadline_ns = end), &reply),
        JANUS_DEADLINE);
    CHECK(janus_now_ns() >= end);
    janus_http_reply_destroy(first); /* unread: the connection is closed */
    CHECK_EQ(look(client).connection_count, 0);
    call_for(client, &talk->at, "/", 200, "done");
    janus_http_client_destroy(client);
}

TEST("a call that waits for a connection ends with its deadline")
{
    talk_run(&(struct talk){.handler = answer, .client = wait_in_vain});
}

static void outlast(struct talk *talk)
{
    janus_http_client *client =
        client_with(JANUS_HTTP_CLIENT_OPTIONS(.idle_ns = 10 * JANUS_SECONDS));
    call_for(client, &talk->at, "/", 200, "done");
    CHECK_EQ(janus_sleep(9 * JANUS_SECONDS), JANUS_OK);
    call_for(client, &talk->at, "/", 200, "done");
    CHECK_EQ(look(client).connects, 1);
    CHECK_EQ(janus_sleep(11 * JANUS_SECONDS), JANUS_OK);
    call_for(client, &talk->at, "/", 200, "done");
    CHECK_EQ(look(client).connects, 2);
    CHECK_EQ(look(client).connection_count, 1);
    CHECK_EQ(janus_sleep(100 * JANUS_SECONDS), JANUS_OK); /* now the server has closed */
    call_for(client, &talk->at, "/", 200, "done");
    CHECK_EQ(look(client).connects, 3);
    CHECK_EQ(look(client).repeats, 0);
    janus_http_client_drop_idle(client);
    CHECK_EQ(look(client).connection_count, 0);
    janus_http_client_destroy(client);
}

TEST("an idle connection is not used after its time, nor after the server has closed it")
{
    talk_run(&(struct talk){.handler = answer, .client = outlast, .seed = 5});
}

static void notice_close(struct talk *talk)
{
    janus_http_client *client =
        client_with(JANUS_HTTP_CLIENT_OPTIONS(.idle_ns = 1000 * JANUS_SECONDS));
    call_for(client, &talk->at, "/", 200, "done");
    CHECK_EQ(janus_sleep(100 * JANUS_SECONDS), JANUS_OK); /* the server closes after 60 s */
    char              url[URL_BYTES];
    janus_http_reply *reply = NULL;
    CHECK_EQ(janus_http_call(client, "POST", url_of(&talk->at, "/", url), NULL, &reply), JANUS_OK);
    janus_http_reply_destroy(reply);
    CHECK_EQ(look(client).connects, 2);
    CHECK_EQ(look(client).repeats, 0); /* it was seen before the request was sent */
    janus_http_client_destroy(client);
}

TEST("a kept connection that the server has closed is replaced before the request is sent")
{
    talk_run(&(struct talk){.handler = answer, .client = notice_close, .seed = 6});
}

static void change_hosts(struct talk *talk)
{
    janus_http_client *client =
        client_with(JANUS_HTTP_CLIENT_OPTIONS(.max_connections = 1, .refuses = true));
    for (int i = 0; i < 3; i++) {
        char              url[URL_BYTES];
        janus_http_reply *reply = NULL;
        call_for(client, &talk->at, "/", 200, "done");
        CHECK_EQ(look(client).connection_count, 1);
        (void)snprintf(url, sizeof url, "http://localhost:%u/", (unsigned)talk->at.port);
        CHECK_EQ(janus_http_call(client, "HEAD", url, NULL, &reply), JANUS_OK);
        janus_http_reply_destroy(reply);
        CHECK_EQ(look(client).connection_count, 1);
    }
    CHECK_EQ(look(client).connects, 6);
    janus_http_client_destroy(client);
}

TEST("at the limit of all connections an idle one of another host makes room")
{
    talk_run(&(struct talk){.handler = answer, .client = change_hosts});
}

static int64_t call_and_panic(void *argument)
{
    const struct crowd *crowd = argument;
    char                url[URL_BYTES];
    janus_http_reply   *reply = NULL;
    CHECK_EQ(janus_http_call(crowd->client, "GET", url_of(&crowd->talk->at, crowd->path, url), NULL,
                             &reply),
             JANUS_OK);
    janus_panic("with an answer in its hands");
}

static int64_t call_and_forget(void *argument)
{
    const struct crowd *crowd = argument;
    char                url[URL_BYTES];
    janus_http_reply   *reply = NULL;
    CHECK_EQ(janus_http_call(crowd->client, "GET", url_of(&crowd->talk->at, crowd->path, url), NULL,
                             &reply),
             JANUS_OK);
    return 0;
}

static void end_in_the_middle(struct talk *talk)
{
    janus_status status;
    struct crowd crowd = {talk, client_with(JANUS_HTTP_CLIENT_OPTIONS(.max_connections = 1)),
                          "/big"};
    JANUS_NURSERY(n, status, .policy = JANUS_POLICY_WAIT_ALL)
    {
        CHECK_EQ(janus_spawn(n, call_and_panic, &crowd), JANUS_OK);
        CHECK_EQ(janus_spawn(n, call_and_forget, &crowd), JANUS_OK);
        CHECK_EQ(janus_spawn(n, call_and_panic, &crowd), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CHILD_FAILED);
    CHECK_EQ(look(crowd.client).connection_count, 0);
    call_for(crowd.client, &talk->at, "/", 200, "done");
    janus_http_client_destroy(crowd.client);
}

TEST("a task that ends in the middle of a call gives its place to the next")
{
    talk_run(&(struct talk){.handler = answer, .client = end_in_the_middle});
}

static int64_t own(void *argument)
{
    struct crowd *crowd = argument;
    crowd->client = client_with(NULL);
    call_for(crowd->client, &crowd->talk->at, "/", 200, "done");
    return 0; /* and destroys nothing */
}

static void leave_it(struct talk *talk)
{
    struct crowd crowd = {talk, NULL, "/"};
    janus_status status;
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, own, &crowd), JANUS_OK); }
    CHECK_EQ(status, JANUS_OK);
}

TEST("the end of the task that created a client closes all of its connections")
{
    talk_run(&(struct talk){.handler = answer, .client = leave_it}); /* the world counts them */
}

static atomic_int closed_status;

static int64_t call_until_closed(void *argument)
{
    const struct crowd *crowd = argument;
    char                url[URL_BYTES];
    janus_http_reply   *reply = NULL;
    atomic_store(&closed_status,
                 janus_http_call(crowd->client, "GET", url_of(&crowd->talk->at, "/wait", url), NULL,
                                 &reply));
    return 0;
}

static void destroy_early(struct talk *talk)
{
    struct crowd      crowd = {talk, client_with(NULL), "/wait"};
    janus_http_reply *reply = NULL;
    char              url[URL_BYTES];
    janus_status      status;
    atomic_store(&inside, 0);
    atomic_store(&go, 0);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, call_until_closed, &crowd), JANUS_OK);
        CHECK(rig_wait(&inside));
        janus_http_client_destroy(crowd.client);
    }
    CHECK_EQ(status, JANUS_OK);
    int seen = atomic_load(&closed_status);
    CHECK(seen == JANUS_CLOSED || seen == JANUS_RESET);
    CHECK_EQ(janus_http_call(crowd.client, "GET", url_of(&talk->at, "/", url), NULL, &reply),
             JANUS_CLOSED);
    atomic_store(&go, 1);
}

TEST("a client that is destroyed ends the calls of other tasks")
{
    talk_run(&(struct talk){.handler = answer, .client = destroy_early});
}

static void cancel_call(struct talk *talk)
{
    struct crowd crowd = {talk, client_with(NULL), "/wait"};
    janus_status status;
    atomic_store(&inside, 0);
    atomic_store(&go, 0);
    JANUS_NURSERY(n, status, .owner_apart = true)
    {
        CHECK_EQ(janus_spawn(n, call_until_closed, &crowd), JANUS_OK);
        CHECK(rig_wait(&inside));
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(atomic_load(&closed_status), JANUS_CANCELLED);
    CHECK_EQ(look(crowd.client).connection_count, 0);
    atomic_store(&go, 1);
    janus_http_client_destroy(crowd.client);
}

TEST("a call that is cancelled closes its connection")
{
    talk_run(&(struct talk){.handler = answer, .client = cancel_call});
}

static int64_t call_in_vain(void *argument)
{
    const struct crowd *crowd = argument;
    char                url[URL_BYTES];
    janus_http_reply   *reply = NULL;
    atomic_store(&inside, 1);
    atomic_store(&closed_status, janus_http_call(crowd->client, "GET",
                                                 url_of(&crowd->talk->at, "/", url), NULL, &reply));
    return 0;
}

static void cancel_waiting(struct talk *talk)
{
    struct crowd crowd = {talk, client_with(JANUS_HTTP_CLIENT_OPTIONS(.max_connections = 1)), "/"};
    janus_http_reply *reply = NULL;
    char              url[URL_BYTES];
    janus_status      status;
    CHECK_EQ(janus_http_call(crowd.client, "GET", url_of(&talk->at, "/big", url), NULL, &reply),
             JANUS_OK);
    atomic_store(&inside, 0);
    JANUS_NURSERY(n, status, .owner_apart = true)
    {
        CHECK_EQ(janus_spawn(n, call_in_vain, &crowd), JANUS_OK);
        CHECK(rig_wait(&inside));
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(atomic_load(&closed_status), JANUS_CANCELLED);
    CHECK_EQ(look(crowd.client).connection_count, 1);
    janus_http_reply_destroy(reply);
    call_for(crowd.client, &talk->at, "/", 200, "done");
    janus_http_client_destroy(crowd.client);
}

TEST("a call that is cancelled while it waits for a connection takes none")
{
    talk_run(&(struct talk){.handler = answer, .client = cancel_waiting});
}

static int64_t forward(janus_http *http, const janus_http_request *request)
{
    struct crowd *crowd = request->argument;
    if (!talk_is(request->path, "/front")) return answer(http, request);
    call_for(crowd->client, &crowd->talk->at, "/back", 200, "done");
    return janus_http_answer(http, 200, NULL, "front", 5);
}

static void call_through(struct talk *talk)
{
    struct crowd *crowd = talk->argument;
    crowd->client = client_with(NULL);
    for (int i = 0; i < 20; i++) call_for(crowd->client, &talk->at, "/front", 200, "front");
    CHECK(look(crowd->client).connects <= 2);
    janus_http_client_destroy(crowd->client);
}

TEST("handlers of a server share a client, whose connections outlive them")
{
    static struct talk  talk = {.handler = forward, .client = call_through};
    static struct crowd crowd = {&talk, NULL, "/"};
    talk.argument = &crowd;
    talk_run(&talk);
}

TEST("a client with options out of range is refused")
{
    janus_http_client *client = NULL;
    CHECK_EQ(janus_http_client_create(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_http_client_create(NULL, &client), JANUS_STATE);
    CHECK_EQ(janus_http_client_create(JANUS_HTTP_CLIENT_OPTIONS(.max_fields = 2000), &client),
             JANUS_INVALID);
    CHECK_EQ(janus_http_client_create(JANUS_HTTP_CLIENT_OPTIONS(.max_head_bytes = 60000), &client),
             JANUS_INVALID);
}
