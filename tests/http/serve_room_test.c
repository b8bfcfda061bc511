/* SPDX-License-Identifier: MIT */
/* The server: how many connections a scheduler has tasks for, routes of a whole server, texts. */
#include "talk.h"

#include <janusrt/explain.h>

#define LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

enum { TASKS = 21, ROOM = 8, GUESTS = 12 };

static atomic_int inside, running;

/* Answers when as many requests run as there is room for. */
static int64_t meet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    CHECK(atomic_fetch_add(&running, 1) < ROOM);
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&inside) < ROOM) {
        if (janus_yield() != JANUS_OK) return -100;
    }
    atomic_fetch_sub(&running, 1);
    return janus_http_answer_text(http, 200, "met");
}

static void come_together(struct talk *talk)
{
    janus_io guests[GUESTS];
    atomic_store(&inside, 0);
    for (int i = 0; i < GUESTS; i++) {
        guests[i] = talk_open(talk);
        talk_put(guests[i], LAST("/"));
    }
    for (int i = 0; i < GUESTS; i++) CHECK(strstr(talk_rest(talk, guests[i]), "met") != NULL);
    CHECK_EQ(atomic_load(&inside), GUESTS);
}

TEST("by default as many requests run at a time as the scheduler has tasks for, and others wait")
{
    talk_run(&(struct talk){.handler = meet, .client = come_together, .max_tasks = TASKS});
}

TEST("as many connections as the scheduler has tasks for can be asked for")
{
    talk_run(&(struct talk){.handler = meet,
                            .client = come_together,
                            .max_tasks = TASKS,
                            .options = JANUS_HTTP_OPTIONS(.max_connections = ROOM)});
}

static void ask_for_more(struct talk *talk)
{
    for (uint32_t n = ROOM + 1; n < 1000000; n *= 7) {
        CHECK_EQ(
            janus_http_serve(talk->listener, meet, NULL, JANUS_HTTP_OPTIONS(.max_connections = n)),
            JANUS_TASK_LIMIT);
        char why[512];
        CHECK(janus_explain(why, sizeof why) > 0);
        CHECK(strstr(why, "janus_http_serve: the scheduler's max_tasks is too small") != NULL);
    }
    come_together(talk); /* the server itself goes on */
}

TEST("a server that needs more tasks than the scheduler allows is refused")
{
    talk_run(&(struct talk){.handler = meet, .client = ask_for_more, .max_tasks = TASKS});
}

/* Requests that end just when the next connection has waited for a while, and looks for room. */

enum { PLACES = 2, VISITORS = 8, VISITS = 10 };

static atomic_int napping, most;

static int64_t nap(janus_http *http, const janus_http_request *request)
{
    int now = atomic_fetch_add(&napping, 1) + 1;
    (void)request;
    if (now > atomic_load(&most)) atomic_store(&most, now);
    CHECK_EQ(janus_sleep(100 * JANUS_MS), JANUS_OK);
    atomic_fetch_sub(&napping, 1);
    return janus_http_answer_text(http, 200, "met");
}

static int64_t visit(void *argument)
{
    for (int i = 0; i < VISITS; i++) {
        char     text[256];
        size_t   got;
        janus_io io = talk_open(argument);
        talk_put(io, LAST("/"));
        while (janus_io_read(io, text, sizeof text, &got) == JANUS_OK) {
        }
        CHECK_EQ(janus_io_close(io), JANUS_OK);
    }
    return 0;
}

static void come_and_go(struct talk *talk)
{
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < VISITORS; i++) CHECK_EQ(janus_spawn(n, visit, talk), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
}

TEST("a connection that ends while the next one waits gives its place to one, not to two")
{
    /* One schedule in two hundred has the race. These have it, or had it once. */
    static const uint64_t seeds[] = {164, 220, 115, 312, 395};
    atomic_store(&most, 0);
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        talk_run(&(struct talk){.handler = nap,
                                .client = come_and_go,
                                .seed = seeds[i],
                                .options = JANUS_HTTP_OPTIONS(.max_connections = PLACES)});
    }
    CHECK_EQ(atomic_load(&most), PLACES);
}

/* Routes. */

static int64_t tell(janus_http *http, const janus_http_request *request)
{
    return janus_http_answer_text(http, 200, request->argument);
}

static const janus_http_route routes[] = {
    {JANUS_HTTP_METHOD_GET, "/own", tell, "its own"},
    {JANUS_HTTP_METHOD_GET, "/shared", tell, NULL},
    {0, NULL, NULL, NULL},
};

static void follow_routes(struct talk *talk)
{
    CHECK(strstr(talk_ask(talk, LAST("/own")), "\r\n\r\nits own") != NULL);
    CHECK(strstr(talk_ask(talk, LAST("/shared")), "\r\n\r\nthe server's") != NULL);
    CHECK(strncmp(talk_ask(talk, LAST("/none")), "HTTP/1.1 404 ", 13) == 0);
}

TEST("a row without an argument gets the server's")
{
    talk_run(&(struct talk){.argument = "the server's",
                            .client = follow_routes,
                            .options = JANUS_HTTP_OPTIONS(.routes = routes)});
}

static janus_status serve_row(struct talk *talk, janus_http_route row)
{
    janus_http_route table[2] = {row, {0, NULL, NULL, NULL}};
    return janus_http_serve(talk->listener, NULL, NULL, JANUS_HTTP_OPTIONS(.routes = table));
}

static void offer_wrong_tables(struct talk *talk)
{
    static const char *const wrong[] = {"",       "a",  "/{",  "/a/{b",
                                        "/{*}/a", "**", "{*}", "/{1}{2}{3}{4}{5}{6}{7}{8}{9}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(serve_row(talk, (janus_http_route){0, wrong[i], tell, NULL}), JANUS_INVALID);
    }
    CHECK_EQ(serve_row(talk, (janus_http_route){0, "/", NULL, NULL}), JANUS_INVALID);
    CHECK_EQ(serve_row(talk, (janus_http_route){(janus_http_method)99, "/", tell, NULL}),
             JANUS_INVALID);
    CHECK_EQ(janus_http_serve(talk->listener, tell, NULL, JANUS_HTTP_OPTIONS(.routes = routes)),
             JANUS_INVALID);
    CHECK(strstr(talk_ask(talk, LAST("/")), "the server's") != NULL); /* it goes on */
}

TEST("a table of routes that cannot fit is refused before anything is served")
{
    talk_run(
        &(struct talk){.handler = tell, .argument = "the server's", .client = offer_wrong_tables});
}

/* Texts. */

static janus_http_text text_of(const char *text) { return (janus_http_text){text, strlen(text)}; }

TEST("a number of a request is digits only, and fits")
{
    uint64_t number = 7;
    CHECK_EQ(janus_http_text_number(text_of("0"), &number), JANUS_OK);
    CHECK_EQ(number, 0);
    CHECK_EQ(janus_http_text_number(text_of("0042"), &number), JANUS_OK);
    CHECK_EQ(number, 42);
    CHECK_EQ(janus_http_text_number(text_of("18446744073709551615"), &number), JANUS_OK);
    CHECK_EQ(number, UINT64_MAX);
    CHECK_EQ(janus_http_text_number(text_of("18446744073709551616"), &number), JANUS_FULL);
    CHECK_EQ(janus_http_text_number(text_of("99999999999999999999"), &number), JANUS_FULL);
    CHECK_EQ(janus_http_text_number(text_of("184467440737095516150"), &number), JANUS_FULL);
    static const char *const wrong[] = {"", "-1", "+1", " 1", "1 ", "1a", "0x1", "1.0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(janus_http_text_number(text_of(wrong[i]), &number), JANUS_INVALID);
    }
    CHECK_EQ(janus_http_text_number((janus_http_text){NULL, 0}, &number), JANUS_INVALID);
    CHECK_EQ(janus_http_text_number(text_of("1"), NULL), JANUS_INVALID);
    CHECK_EQ(number, UINT64_MAX);
}

TEST("a text equals the same bytes only")
{
    CHECK(janus_http_text_equal(text_of("abc"), "abc"));
    CHECK(janus_http_text_equal((janus_http_text){NULL, 0}, ""));
    CHECK(!janus_http_text_equal(text_of("abc"), "ABC"));
    CHECK(!janus_http_text_equal(text_of("abc"), "ab"));
    CHECK(!janus_http_text_equal(text_of("ab"), "abc"));
    CHECK(!janus_http_text_equal(text_of("abc"), NULL));
}
