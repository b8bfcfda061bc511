/* SPDX-License-Identifier: MIT */
/* A server of HTTP and a client that talks to it in plain bytes, in one scheduler. */
#ifndef JANUSRT_TESTS_HTTP_TALK_H
#define JANUSRT_TESTS_HTTP_TALK_H

#include "../task/rig.h"

#include <janusrt/http.h>
#include <stdio.h>
#include <string.h>

enum { TALK_BYTES = 65536, TALK_LOG_BYTES = 4096 };

struct talk {
    janus_http_handler       *handler;
    void                     *argument;
    const janus_http_options *options;
    void                      (*client)(struct talk *talk);
    uint32_t                  workers; /* 0: two */
    uint64_t                  seed;    /* not 0: always simulated */
    const janus_budget       *max_budget;
    uint64_t                  max_tasks;   /* 0: the usual */
    size_t                    stack_bytes; /* 0: 65536 */
    char                     *log;         /* TALK_LOG_BYTES for the access log, or NULL: none */
    janus_io                  log_ends[2];
    janus_io                  listener;
    janus_address             at;
    janus_status              served;
    char                      text[TALK_BYTES]; /* the last answer, without its dates */
};

static inline int64_t talk_serve(void *argument)
{
    struct talk       *talk = argument;
    janus_http_options options = {.struct_bytes = sizeof options};
    if (talk->options != NULL) options = *talk->options;
    if (talk->log != NULL) options.log = talk->log_ends[1];
    talk->served = janus_http_serve(talk->listener, talk->handler, talk->argument, &options);
    return 0;
}

/* Reads the access log, after the server has ended. */
static inline void talk_read_log(struct talk *talk)
{
    size_t have = 0, got = 0;
    CHECK_EQ(janus_io_close(talk->log_ends[1]), JANUS_OK);
    while (janus_io_read(talk->log_ends[0], talk->log + have, TALK_LOG_BYTES - 1 - have, &got) ==
           JANUS_OK) {
        have += got;
    }
    talk->log[have] = '\0';
    CHECK_EQ(janus_io_close(talk->log_ends[0]), JANUS_OK);
}

static inline int64_t talk_first(void *argument)
{
    struct talk *talk = argument;
    janus_status status;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &talk->at), JANUS_OK);
    CHECK_EQ(janus_listen(&talk->at, NULL, &talk->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(talk->listener, &talk->at), JANUS_OK);
    if (talk->log != NULL) CHECK_EQ(janus_io_pair(NULL, talk->log_ends), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, talk_serve, talk), JANUS_OK);
        talk->client(talk);
        (void)janus_io_close(talk->listener); /* the client may have closed it */
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(talk->served, JANUS_OK);
    if (talk->log != NULL) talk_read_log(talk);
    return 0;
}

/* Runs the server and the client, until both have ended. */
static inline void talk_run(struct talk *talk)
{
    janus_scheduler *scheduler = rig_open(
        JANUS_SCHEDULER_OPTIONS(.worker_count = talk->workers != 0 ? talk->workers : 2,
                                .deterministic_seed = talk->seed, .max_tasks = talk->max_tasks,
                                .max_budget = talk->max_budget,
                                .stack_bytes = talk->stack_bytes != 0 ? talk->stack_bytes : 65536));
    rig_do(scheduler, talk_first, talk);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static inline janus_io talk_open(const struct talk *talk)
{
    janus_io io;
    CHECK_EQ(janus_connect(&talk->at, NULL, &io), JANUS_OK);
    return io;
}

static inline void talk_put(janus_io io, const char *text)
{
    CHECK_EQ(janus_io_write(io, text, strlen(text), NULL), JANUS_OK);
}

/* Removes the lines of Date. */
static inline void talk_undate(char *text)
{
    char *date;
    while ((date = strstr(text, "Date: ")) != NULL) {
        char *end = strstr(date, "\r\n");
        if (end == NULL) return;
        memmove(date, end + 2, strlen(end + 2) + 1);
    }
}

/* Reads all that the server sends until it closes. */
static inline const char *talk_rest(struct talk *talk, janus_io io)
{
    size_t       have = 0, got = 0;
    janus_status status;
    do {
        status = janus_io_read(io, talk->text + have, TALK_BYTES - 1 - have, &got);
        have += got;
    } while (status == JANUS_OK && have < TALK_BYTES - 1);
    CHECK_EQ(status, JANUS_CLOSED);
    talk->text[have] = '\0';
    talk_undate(talk->text);
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    return talk->text;
}

/* Reads until the text ends with `end`. */
static inline const char *talk_until(struct talk *talk, janus_io io, const char *end)
{
    size_t have = 0, got = 0, tail = strlen(end);
    do {
        CHECK_EQ(janus_io_read(io, talk->text + have, TALK_BYTES - 1 - have, &got), JANUS_OK);
        have += got;
        CHECK(have < TALK_BYTES - 1);
    } while (have < tail || memcmp(talk->text + have - tail, end, tail) != 0);
    talk->text[have] = '\0';
    talk_undate(talk->text);
    return talk->text;
}

/* Sends a request on a connection of its own, and reads until the server closes. */
static inline const char *talk_ask(struct talk *talk, const char *request)
{
    janus_io io = talk_open(talk);
    talk_put(io, request);
    return talk_rest(talk, io);
}

/* Whether a path of a request is this text. */
static inline bool talk_is(janus_http_text text, const char *other)
{
    return text.bytes == strlen(other) && memcmp(text.at, other, text.bytes) == 0;
}

#endif
