/* SPDX-License-Identifier: MIT */
/* What the environment asks of simulated runs: faults of the network. */
#include "../task/rig.h"

#include <janusrt/io.h>
#include <janusrt/net.h>
#include <stdlib.h>

enum { CALLS = 200 };

static int64_t greet(janus_io io, void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_io_write(io, "hello", 5, NULL));
    return 0;
}

struct visits {
    janus_io listener;
    unsigned greeted, reset;
};

static int64_t visit(void *argument)
{
    struct visits *visits = argument;
    janus_address  at;
    CHECK_EQ(janus_io_local(visits->listener, &at), JANUS_OK);
    for (int i = 0; i < CALLS; i++) {
        janus_io     io;
        char         text[5];
        janus_status status = janus_connect(&at, NULL, &io);
        if (status == JANUS_OK) {
            status = janus_io_read_full(io, text, sizeof text, NULL);
            CHECK_EQ(janus_io_close(io), JANUS_OK);
        }
        visits->greeted += status == JANUS_OK;
        visits->reset += status == JANUS_RESET || status == JANUS_CLOSED;
    }
    return janus_io_close(visits->listener);
}

static int64_t serve(void *argument)
{
    struct visits *visits = argument;
    janus_address  at;
    janus_status   status;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
    CHECK_EQ(janus_listen(&at, NULL, &visits->listener), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, visit, visits), JANUS_OK);
        JANUS_IGNORE(janus_serve(visits->listener, greet, NULL, NULL, NULL));
    }
    return status;
}

static struct visits run(uint64_t seed, const char *faults)
{
    struct visits visits = {.greeted = 0};
    if (faults != NULL) CHECK_EQ(setenv("JANUSRT_FAULTS", faults, 1), 0);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.deterministic_seed = seed), serve, &visits, NULL),
             JANUS_OK);
    CHECK_EQ(unsetenv("JANUSRT_FAULTS"), 0);
    return visits;
}

TEST("the environment resets connections of a simulated run, the same ones each time")
{
    struct visits none = run(7, NULL), first = run(7, "reset:20"), again = run(7, "reset:20");
    CHECK_EQ(none.greeted, CALLS);
    CHECK(first.greeted > 0 && first.reset > 0);
    CHECK_EQ(first.greeted + first.reset, CALLS);
    CHECK_EQ(first.greeted, again.greeted);
    CHECK_EQ(first.reset, again.reset);
    CHECK_EQ(run(7, "lost:2").greeted, CALLS); /* no stream loses bytes */
    CHECK(run(7, "edge,network").greeted < CALLS);
}

TEST("a list of faults that is malformed, or without a seed, is refused")
{
    static const char *const wrong[] = {"resets",  "reset,",   ",reset",   "reset:", "reset:0",
                                        "reset:1", "reset:-5", "reset:5x", "memory", "reset stall"};
    const char              *seed = getenv("JANUSRT_SEED");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(setenv("JANUSRT_FAULTS", wrong[i], 1), 0);
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.deterministic_seed = 7), nothing, NULL, NULL),
                 JANUS_INVALID);
    }
    CHECK_EQ(setenv("JANUSRT_FAULTS", "reset", 1), 0);
    CHECK_EQ(janus_run(NULL, nothing, NULL, NULL), seed != NULL ? JANUS_OK : JANUS_INVALID);
    CHECK_EQ(setenv("JANUSRT_FAULTS", "", 1), 0);
    CHECK_EQ(janus_run(NULL, nothing, NULL, NULL), JANUS_OK);
}
