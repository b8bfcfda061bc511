/* SPDX-License-Identifier: MIT */
/* Dumps and explanations know handles. */
#include "wire.h"

#include "../task/dumped.h"

#include <janusrt/trace.h>
#include <stdio.h>

static int64_t read_for_ever(void *argument)
{
    char   byte;
    size_t got;

    CHECK_EQ(janus_io_read(*(janus_io *)argument, &byte, 1, &got), JANUS_CLOSED);
    return 0;
}

static int64_t accept_for_ever(void *argument)
{
    janus_io io;
    CHECK_EQ(janus_accept(*(janus_io *)argument, &io, NULL), JANUS_CLOSED);
    return 0;
}

/* Dumps until the text is there. */
static void await_text(const char *wanted)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    bool     found = false;
    while (!found && janus_now_ns() < limit) {
        char *text = dumped(janus_scheduler_current());
        found = strstr(text, wanted) != NULL;
        free(text);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK(found);
}

static int64_t look(void *argument)
{
    janus_address at, local;
    janus_io      listener, ours, theirs;
    janus_nursery n;
    char          wanted[200], text[JANUS_ADDRESS_TEXT_BYTES];
    (void)argument;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
    CHECK_EQ(janus_listen(&at, NULL, &listener), JANUS_OK);
    CHECK_EQ(janus_io_local(listener, &at), JANUS_OK);
    CHECK_EQ(janus_connect(&at, NULL, &ours), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &theirs, NULL), JANUS_OK);
    CHECK_EQ(janus_io_local(ours, &local), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, read_for_ever, &theirs), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, accept_for_ever, &listener), JANUS_OK);
    snprintf(wanted, sizeof wanted, "waits for bytes to read from %s",
             janus_address_text(&local, text, sizeof text));
    await_text(wanted);
    snprintf(wanted, sizeof wanted, "waits for a connection to accept at %s",
             janus_address_text(&at, text, sizeof text));
    await_text(wanted);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    CHECK_EQ(janus_io_close(ours), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_io_close(theirs), JANUS_OK);
    return 0;
}

TEST("a dump shows the other end of a connection that a task reads, and where it accepts")
{
    RIG_REAL("a task that polls keeps the simulated clock from moving");
    rig_run(2, look, NULL, 1);
}

static int64_t refused(void *argument)
{
    janus_address at;
    janus_io      io;
    char          text[300];
    (void)argument;
    CHECK_EQ(janus_address_parse("127.0.0.1:1", &at), JANUS_OK); /* nobody listens there */
    CHECK_EQ(janus_connect(&at, NULL, &io), JANUS_REFUSED);
    CHECK(janus_explain(text, sizeof text) > 0);
    CHECK(strstr(text, "errno 111") != NULL);
    CHECK(strstr(text, "JANUS_REFUSED") != NULL);
    CHECK(strstr(text, "Start the server first") != NULL);
    return 0;
}

TEST("after an error of the system, an explanation has its number and what to do")
{
    rig_run(1, refused, NULL, 1);
}

static int64_t write_one(void *argument)
{
    size_t put;
    return janus_io_write(*(janus_io *)argument, "x", 1, &put);
}

/* On one worker the writer runs when the reader waits. */
static int64_t read_early(void *argument)
{
    janus_io      pair[2];
    janus_nursery n;
    char          byte;
    size_t        got;
    (void)argument;
    wire_pair(pair);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, write_one, &pair[1]), JANUS_OK);
    CHECK_EQ(janus_io_read(pair[0], &byte, 1, &got), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    wire_close(pair);
    return 0;
}

TEST("a trace has the descriptor for which a task waited")
{
    janus_trace *trace;
    static char  text[100000];
    FILE        *file = tmpfile();
    CHECK(file != NULL);
    CHECK_EQ(janus_trace_create(NULL, &trace), JANUS_OK);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .trace = trace), read_early, NULL,
                       NULL),
             JANUS_OK);
    CHECK_EQ(janus_trace_write(trace, JANUS_TRACE_FORMAT_TEXT, fileno(file)), JANUS_OK);
    janus_trace_destroy(trace);
    rewind(file);
    size_t got = fread(text, 1, sizeof text - 1, file);
    text[got] = '\0';
    CHECK(strstr(text, "waits for bytes to read, descriptor ") != NULL);
    fclose(file);
}
