/* SPDX-License-Identifier: MIT */
/* Waits that end in the switch, [task-finish]. The data in the strand's place belongs to one wait
 * only, and every way to leave and return leads to the same answers. */
#include "channels.h"

#include <janusrt/fiber.h>

enum { TRIPS = RIG_SLOW ? 200 : 2000 };

struct pair {
    janus_channel there, back;
};

static struct pair open_pair(bool outside)
{
    return outside ? (struct pair){open_outside(0), open_outside(0)}
                   : (struct pair){open_channel(0), open_channel(0)};
}

static void destroy_pair(struct pair pair)
{
    destroy(pair.there);
    destroy(pair.back);
}

/* Answers until the other end closes. */
static int64_t answer(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    janus_status status;
    while ((status = janus_channel_recv(pair->there, &value)) == JANUS_OK) {
        value++;
        CHECK_EQ(janus_channel_send(pair->back, &value), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CLOSED);
    return value;
}

static void ask(const struct pair *pair, int64_t times)
{
    int64_t value = 0;
    for (int64_t i = 1; i <= times; i++) {
        CHECK_EQ(janus_channel_send(pair->there, &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(pair->back, &value), JANUS_OK);
        CHECK_EQ(value, i);
    }
}

static int64_t ask_and_close(void *argument)
{
    struct pair *pair = argument;
    ask(pair, TRIPS);
    CHECK_EQ(janus_channel_close(pair->there), JANUS_OK);
    return 0;
}

/* Asks in a shield, whose waits take another path. */
static int64_t ask_shielded(void *argument)
{
    janus_shield_begin();
    (void)ask_and_close(argument);
    janus_shield_end();
    return 0;
}

/* Asks in a fiber of the task's own: the task leaves that stack. */
static int64_t ask_in_fiber(void *argument)
{
    janus_fiber_pool *pool = NULL;
    janus_fiber      *fiber = NULL;
    janus_outcome     outcome;
    CHECK_EQ(janus_fiber_pool_create(NULL, &pool), JANUS_OK);
    CHECK_EQ(janus_fiber_create(pool, ask_and_close, argument, NULL, &fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_COMPLETED);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
    return 0;
}

static int64_t talk(void *argument)
{
    static janus_entry *const ways[] = {ask_and_close, ask_shielded, ask_in_fiber};
    (void)argument;
    for (unsigned way = 0; way < 6; way++) {
        struct pair  pair = open_pair(way >= 3);
        janus_status said;
        JANUS_NURSERY(n, said)
        {
            CHECK_EQ(janus_spawn(n, answer, &pair), JANUS_OK);
            CHECK_EQ(janus_spawn(n, ways[way % 3], &pair), JANUS_OK);
        }
        CHECK_EQ(said, JANUS_OK);
        destroy_pair(pair);
    }
    return 0;
}

TEST("a plain task, a shielded one and one in its own fiber exchange values with a task")
{
    rig_all(talk, NULL, RIG_SLOW ? 1 : 5);
}

/* A task that ends in its wait waits again before it is gone, on the same strand. */

struct ended {
    struct pair   pair;  /* what its defer waits at */
    janus_channel quiet; /* what it waits at: no task sends */
    atomic_int    cleaned;
};

static void ask_at_end(void *argument)
{
    struct ended *ended = argument;
    ask(&ended->pair, 10);
    atomic_fetch_add(&ended->cleaned, 1);
}

static int64_t wait_for_nothing(void *argument)
{
    struct ended *ended = argument;
    int64_t       value = 0;
    CHECK_EQ(janus_defer(ask_at_end, ended), JANUS_OK);
    ask(&ended->pair, 10); /* the first wait of a task takes another path */
    CHECK_EQ(janus_channel_recv(ended->quiet, &value), JANUS_STATE); /* it does not return */
    return 0;
}

static int64_t end_them(void *argument)
{
    (void)argument;
    struct ended ended = {.pair = open_pair(false), .quiet = open_channel(0)};
    janus_status said;
    JANUS_NURSERY(n, said)
    {
        janus_nursery doomed;
        CHECK_EQ(janus_spawn(n, answer, &ended.pair), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&doomed, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&doomed, wait_for_nothing, &ended,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
                 JANUS_OK);
        await_waiting(ended.quiet, 0, 1);
        CHECK_EQ(janus_nursery_cancel(&doomed), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&doomed, NULL));
        CHECK_EQ(atomic_load(&ended.cleaned), 1);
        CHECK_EQ(look(ended.quiet).receivers, 0);
        CHECK_EQ(janus_channel_close(ended.pair.there), JANUS_OK);
    }
    CHECK_EQ(said, JANUS_OK);
    destroy_pair(ended.pair);
    destroy(ended.quiet);
    return 0;
}

TEST("a task that ended in its wait can wait at channels in its defers")
{
    rig_all(end_them, NULL, REPEATS);
}

/* A task that got CANCELLED in its wait waits again at once. */

static int64_t wait_again(void *argument)
{
    struct ended *ended = argument;
    int64_t       value = 7;
    ask(&ended->pair, 10); /* the first wait of a task takes another path */
    CHECK_EQ(janus_channel_recv(ended->quiet, &value), JANUS_CANCELLED);
    CHECK_EQ(value, 7);
    janus_shield_begin();
    ask(&ended->pair, 10);
    janus_shield_end();
    CHECK_EQ(janus_channel_recv(ended->quiet, &value), JANUS_CANCELLED);
    return 0;
}

static int64_t tell_them(void *argument)
{
    (void)argument;
    struct ended ended = {.pair = open_pair(false), .quiet = open_channel(0)};
    janus_status said;
    JANUS_NURSERY(n, said)
    {
        janus_nursery told;
        CHECK_EQ(janus_spawn(n, answer, &ended.pair), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&told, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&told, wait_again, &ended), JANUS_OK);
        await_waiting(ended.quiet, 0, 1);
        CHECK_EQ(janus_nursery_cancel(&told), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&told, NULL));
        CHECK_EQ(look(ended.quiet).receivers, 0);
        CHECK_EQ(janus_channel_close(ended.pair.there), JANUS_OK);
    }
    CHECK_EQ(said, JANUS_OK);
    destroy_pair(ended.pair);
    destroy(ended.quiet);
    return 0;
}

TEST("a task that was cancelled in its wait can wait in a shield")
{
    rig_all(tell_them, NULL, REPEATS);
}
