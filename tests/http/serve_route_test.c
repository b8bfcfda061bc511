/* SPDX-License-Identifier: MIT */
/* The server: routes, files, events, the access log. */
#include "talk.h"

#include <fcntl.h>
#include <janusrt/file.h>
#include <sys/stat.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

/* Answers with its argument and what was captured. */
static int64_t tell(janus_http *http, const janus_http_request *request)
{
    char   text[256];
    size_t bytes = (size_t)snprintf(text, sizeof text, "%s", (const char *)request->argument);
    for (uint32_t i = 0; i < request->captured_count; i++) {
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, " [%.*s]",
                                  (int)request->captured[i].bytes, request->captured[i].at);
    }
    return janus_http_answer(http, 200, NULL, text, bytes);
}

static const janus_http_route routes[] = {
    {JANUS_HTTP_METHOD_GET, "/", tell, "root"},
    {JANUS_HTTP_METHOD_GET, "/user/{name}", tell, "user"},
    {JANUS_HTTP_METHOD_POST, "/user/{name}", tell, "post"},
    {JANUS_HTTP_METHOD_GET, "/user/{name}/{*}", tell, "below"},
    {JANUS_HTTP_METHOD_OTHER, "/any", tell, "any"},
    {0, NULL, NULL, NULL},
};

static const char *body_of(const char *text)
{
    const char *body = strstr(text, "\r\n\r\n");
    CHECK(body != NULL);
    return body + 4;
}

static void follow_routes(struct talk *talk)
{
    CHECK_STR(body_of(talk_ask(talk, LAST("/"))), "root");
    CHECK_STR(body_of(talk_ask(talk, LAST("/user/ann%20b"))), "user [ann%20b]");
    CHECK_STR(body_of(talk_ask(talk, LAST("/user/ann/"))), "below [ann] []");
    CHECK_STR(body_of(talk_ask(talk, LAST("/user/ann/x/y?z"))), "below [ann] [x/y]");
    CHECK_STR(body_of(talk_ask(talk, "POST /user/a HTTP/1.0\r\n\r\n")), "post [a]");
    CHECK_STR(body_of(talk_ask(talk, "HEAD /user/a HTTP/1.0\r\n\r\n")), "");
    CHECK_STR(body_of(talk_ask(talk, "PURGE /any HTTP/1.0\r\n\r\n")), "any");
    CHECK(strncmp(talk_ask(talk, LAST("/user/")), "HTTP/1.1 404 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, LAST("/users")), "HTTP/1.1 404 ", 13) == 0);
    const char *text = talk_ask(talk, "PUT /user/a HTTP/1.0\r\n\r\n");
    CHECK(strncmp(text, "HTTP/1.1 405 ", 13) == 0);
    CHECK(strstr(text, "\r\nAllow: GET, HEAD, POST, OPTIONS\r\n") != NULL);
    text = talk_ask(talk, "OPTIONS /user/a HTTP/1.0\r\n\r\n");
    CHECK(strncmp(text, "HTTP/1.1 204 ", 13) == 0);
    CHECK(strstr(text, "\r\nAllow: GET, HEAD, POST, OPTIONS\r\n") != NULL);
    CHECK(strncmp(talk_ask(talk, "OPTIONS * HTTP/1.0\r\n\r\n"), "HTTP/1.1 204 ", 13) == 0);
}

TEST("routes capture parts of paths and answer 404 and 405 by themselves")
{
    talk_run(&(struct talk){.handler = janus_http_routes,
                            .argument = (void *)(uintptr_t)routes,
                            .client = follow_routes});
}

/* Files. */

static char folder[64];

static void make_file(const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    CHECK_EQ(write(file, text, strlen(text)), strlen(text));
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    CHECK_EQ(futimens(file, times), 0);
    CHECK_EQ(close(file), 0);
}

static void make_folder(void)
{
    char path[128];
    (void)snprintf(folder, sizeof folder, "/tmp/janusrt-http-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/sub", folder);
    CHECK_EQ(mkdir(path, 0700), 0);
    make_file("a b.txt", "0123456789");
    make_file("sub/index.html", "<p>index");
    (void)snprintf(path, sizeof path, "%s/out", folder);
    CHECK_EQ(symlink("/etc/passwd", path), 0);
}

static void remove_folder(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_EQ(system(command), 0);
}

static int64_t show_file(janus_http *http, const janus_http_request *request)
{
    janus_io     dir;
    janus_status status = janus_dir_open(folder, JANUS_RIGHT_FILE_READ, NULL, &dir);
    if (status != JANUS_OK) return status;
    if (request->query.at != NULL) { /* room for one field of the file is left, not for all */
        static char value[4000];
        memset(value, 'v', sizeof value - 1);
        CHECK_EQ(janus_http_set_field(http, "X", value), JANUS_OK);
    }
    status = janus_http_answer_file(http, dir, request->path);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    if (status == JANUS_FULL) return janus_http_answer_text(http, 500, "too many fields");
    return status;
}

#define FILE_FIELDS                                                                                \
    "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\nETag: \"de0b6b3a7640000-a\"\r\n"              \
    "Accept-Ranges: bytes\r\n"
#define ASK(field) "GET /a%20b.txt HTTP/1.0\r\n" field "\r\n\r\n"

static void get_files(struct talk *talk)
{
    const char *full = talk_ask(talk, "GET /a%20b.txt?full HTTP/1.0\r\n\r\n");
    CHECK(strncmp(full, "HTTP/1.1 500 ", 13) == 0 && strstr(full, "Last-Modified") == NULL);
    CHECK_STR(talk_ask(talk, ASK("A: b")),
              "HTTP/1.1 200 OK\r\n" FILE_FIELDS "Content-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 10\r\nConnection: close\r\n\r\n0123456789");
    CHECK_STR(talk_ask(talk, ASK("Range: bytes=2-4")),
              "HTTP/1.1 206 Partial Content\r\n" FILE_FIELDS "Content-Range: bytes 2-4/10\r\n"
              "Content-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 3\r\nConnection: close\r\n\r\n234");
    CHECK_STR(body_of(talk_ask(talk, ASK("Range: bytes=-2"))), "89");
    CHECK_STR(body_of(talk_ask(talk, ASK("Range: bytes=1-2,4-5"))), "0123456789");
    CHECK_STR(body_of(talk_ask(talk, ASK("Range: bytes=2-4\r\nIf-Range: \"x\""))), "0123456789");
    CHECK_STR(body_of(talk_ask(talk, ASK("Range: bytes=2-4\r\nIf-Range: "
                                         "\"de0b6b3a7640000-a\""))),
              "234");
    const char *text = talk_ask(talk, ASK("Range: bytes=10-"));
    CHECK(strncmp(text, "HTTP/1.1 416 ", 13) == 0 && strstr(text, "bytes */10\r\n") != NULL);
    CHECK_STR(talk_ask(talk, ASK("If-None-Match: W/\"de0b6b3a7640000-a\"")),
              "HTTP/1.1 304 Not Modified\r\n" FILE_FIELDS "Connection: close\r\n\r\n");
    CHECK(strncmp(talk_ask(talk, ASK("If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT")),
                  "HTTP/1.1 304 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, ASK("If-Modified-Since: Sun, 09 Sep 2001 01:46:39 GMT")),
                  "HTTP/1.1 200 ", 13) == 0);
    CHECK(strncmp(talk_ask(talk, ASK("If-Match: \"x\"")), "HTTP/1.1 412 ", 13) == 0);
    text = talk_ask(talk, "HEAD /a%20b.txt HTTP/1.0\r\n\r\n");
    CHECK(strstr(text, "\r\nContent-Length: 10\r\n") != NULL);
    CHECK_STR(body_of(text), "");
    CHECK_STR(body_of(talk_ask(talk, LAST("/sub/"))), "<p>index");
    text = talk_ask(talk, LAST("/sub?x"));
    CHECK(strncmp(text, "HTTP/1.1 301 ", 13) == 0);
    CHECK(strstr(text, "\r\nLocation: /sub/?x\r\n") != NULL);
}

static void get_no_files(struct talk *talk)
{
    static const char *const missing[] = {LAST("/nothing"),       LAST("/"),
                                          LAST("/../etc/passwd"), LAST("/%2e%2e/etc/passwd"),
                                          LAST("/out"),           LAST("/sub%2Findex.html"),
                                          LAST("/a%00b"),         LAST("//sub"),
                                          LAST("/a%20b.txt/")};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        CHECK(strncmp(talk_ask(talk, missing[i]), "HTTP/1.1 404 ", 13) == 0);
    }
    const char *text = talk_ask(talk, "POST /a%20b.txt HTTP/1.0\r\n\r\n");
    CHECK(strncmp(text, "HTTP/1.1 405 ", 13) == 0);
    CHECK(strstr(text, "\r\nAllow: GET, HEAD\r\n") != NULL);
}

static const janus_budget plenty = {.ops = 100000000,
                                    .memory = 64 << 20,
                                    .spawn_count = 1000,
                                    .channel_ops = 1000000,
                                    .syscalls = 1000000};

TEST("files have types, ranges, versions and dates")
{
    make_folder();
    talk_run(&(struct talk){.handler = show_file, .client = get_files});
    remove_folder();
}

TEST("nothing outside of the directory is served")
{
    make_folder();
    talk_run(&(struct talk){.handler = show_file, .client = get_no_files, .max_budget = &plenty});
    remove_folder();
}

/* Events. */

static int64_t send_events(janus_http *http, const janus_http_request *request)
{
    (void)request;
    CHECK_EQ(janus_http_event(http, "a\nb", NULL, "x"), JANUS_INVALID);
    CHECK_EQ(janus_http_event(http, "tick", "1", "one\ntwo"), JANUS_OK);
    CHECK_EQ(janus_http_event(http, NULL, NULL, ""), JANUS_OK);
    return 0;
}

static void hear_events(struct talk *talk)
{
    CHECK_STR(talk_ask(talk, "GET / HTTP/1.0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/event-stream\r\n"
              "Connection: close\r\n\r\nevent: tick\nid: 1\ndata: one\ndata: two\n\ndata: \n\n");
}

TEST("events are sent in their own format")
{
    talk_run(&(struct talk){.handler = send_events, .client = hear_events});
}

/* The log. */

struct logged {
    janus_io ends[2]; /* the server writes to the second */
    char     text[4096];
    size_t   bytes;
};

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, NULL, "Hello!", 6);
}

static void read_log(struct logged *logged, const char *until)
{
    while (strstr(logged->text, until) == NULL) {
        size_t got = 0;
        CHECK_EQ(janus_io_read(logged->ends[0], logged->text + logged->bytes,
                               sizeof logged->text - 1 - logged->bytes, &got),
                 JANUS_OK);
        logged->bytes += got;
        logged->text[logged->bytes] = '\0';
    }
}

static int64_t serve_logged(void *argument)
{
    struct talk   *talk = argument;
    struct logged *logged = talk->argument;
    talk->served = janus_http_serve(
        talk->listener, greet, NULL,
        JANUS_HTTP_OPTIONS(.log = logged->ends[1], .log_lines = 4, .max_requests = 100000));
    return 0;
}

static int64_t run_logged(void *argument)
{
    struct talk   *talk = argument;
    struct logged *logged = talk->argument;
    janus_status   status;
    memset(logged, 0, sizeof *logged);
    CHECK_EQ(janus_io_pair(NULL, logged->ends), JANUS_OK);
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, serve_logged, talk), JANUS_OK);
        (void)talk_ask(talk, LAST("/x?%22\\\"y"));
        (void)talk_ask(talk, "GET / HTTP/1.1\r\nHost : b\r\n\r\n");
        read_log(logged, " 400 ");
        CHECK(strstr(logged->text, "Z 127.0.0.1:") != NULL);
        /* Nobody reads the log any more. Requests go on, and lines are dropped. */
        janus_io io = talk_open(talk);
        for (int i = 0; i < 6000; i++) {
            talk_put(io, GET("/"));
            (void)talk_until(talk, io, "Hello!");
        }
        CHECK_EQ(janus_io_close(io), JANUS_OK);
        logged->bytes = 0;
        for (int i = 0; i < 20000 && strstr(logged->text, " lines were dropped\n") == NULL; i++) {
            size_t got = 0;
            CHECK_EQ(janus_io_read(logged->ends[0], logged->text, sizeof logged->text - 1, &got),
                     JANUS_OK);
            logged->text[got] = '\0';
            if (janus_io_try_read(logged->ends[0], logged->text + got, 1, &got) ==
                JANUS_WOULD_WAIT) {
                (void)talk_ask(talk, LAST("/more"));
            }
        }
        CHECK(strstr(logged->text, " lines were dropped\n") != NULL);
        CHECK_EQ(janus_io_close(talk->listener), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(talk->served, JANUS_OK);
    CHECK_EQ(janus_io_close(logged->ends[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(logged->ends[1]), JANUS_OK);
    return 0;
}

TEST("the log has a line for each request, and says how many lines were dropped")
{
    static struct logged logged;
    static struct talk   talk;
    RIG_REAL("it fills the buffers of a real socket");
    talk = (struct talk){.argument = &logged};
    rig_run(2, run_logged, &talk, 1);
}
