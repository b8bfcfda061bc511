/* SPDX-License-Identifier: MIT */
/*
 * The owner of a nursery is inside its scope. Its own waits in the block end with the nursery's
 * cancellation, until the nursery ends.
 */
#include "rig.h"

static int64_t fail_at_once(void *argument)
{
    (void)argument;
    return -7;
}

static int64_t sleep_long(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_MAX);
}

static bool wait_cancelling(janus_nursery *n)
{
    while (!janus_nursery_is_cancelled(n)) CHECK_EQ(janus_yield(), JANUS_OK);
    return true;
}

static int64_t cancel_it(void *argument)
{
    (void)janus_nursery_cancel(argument);
    return 0;
}

/* Each kind of wait, in a nursery whose child fails. */

enum wait {
    WAIT_SLEEP,
    WAIT_RECV,
    WAIT_SEND,
    WAIT_SELECT,
    WAIT_MUTEX,
    WAIT_POINT,
    WAIT_YIELD,
    WAITS
};

struct place {
    enum wait     wait;
    janus_channel channel;
    janus_mutex   mutex;
};

static int64_t hold_mutex(void *argument)
{
    struct place *place = argument;
    CHECK_EQ(janus_mutex_lock(&place->mutex), JANUS_OK);
    CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
    CHECK_EQ(janus_mutex_unlock(&place->mutex), JANUS_OK);
    return JANUS_CANCELLED;
}

static janus_status wait_so(struct place *place)
{
    int               value = 0;
    size_t            chosen = 0;
    janus_select_case one = {.channel = place->channel, .value = &value};
    janus_waitpoint   point;
    janus_status      status = JANUS_OK;
    switch (place->wait) {
    case WAIT_SLEEP: return janus_sleep(UINT64_MAX);
    case WAIT_RECV: return janus_channel_recv(place->channel, &value);
    case WAIT_SEND: return janus_channel_send(place->channel, &value);
    case WAIT_SELECT: return janus_select(&one, 1, &chosen);
    case WAIT_MUTEX: return janus_mutex_lock(&place->mutex);
    case WAIT_POINT:
        janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
        return janus_waitpoint_wait(&point, "started");
    default:
        while ((status = janus_yield()) == JANUS_OK) rig_spin();
        return status;
    }
}

static int64_t wait_for_started(void *argument)
{
    struct place *place = argument;
    janus_status  ended;
    janus_nursery holders;
    CHECK_EQ(janus_nursery_open(&holders, NULL), JANUS_OK);
    if (place->wait == WAIT_MUTEX) {
        CHECK_EQ(janus_spawn(&holders, hold_mutex, place), JANUS_OK);
        while (janus_mutex_try_lock(&place->mutex) == JANUS_OK) {
            CHECK_EQ(janus_mutex_unlock(&place->mutex), JANUS_OK);
            CHECK_EQ(janus_yield(), JANUS_OK);
        }
    }
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, fail_at_once, NULL), JANUS_OK);
        CHECK_EQ(wait_so(place), JANUS_CANCELLED);
        CHECK_EQ(wait_so(place), JANUS_CANCELLED); /* for as long as the block lasts */
        CHECK(janus_cancelled());
        CHECK_EQ(janus_cancelled_reason(), JANUS_CANCEL_REASON_SIBLING_ERROR);
    }
    CHECK_EQ(ended, JANUS_CHILD_FAILED);
    CHECK(!janus_cancelled());
    CHECK_EQ(janus_cancelled_reason(), JANUS_CANCEL_REASON_NONE);
    CHECK_EQ(janus_sleep(1), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&holders), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&holders, NULL));
    return 0;
}

TEST("after a child failed every wait of the owner in the block returns CANCELLED")
{
    for (int i = 0; i < WAITS; i++) {
        struct place place = {.wait = (enum wait)i, .mutex = JANUS_MUTEX_INIT("held")};
        CHECK_EQ(janus_channel_create(sizeof(int), 0, JANUS_CHANNEL_OPTIONS(.outside = true),
                                      &place.channel),
                 JANUS_OK);
        rig_all(wait_for_started, &place, 3);
        CHECK_EQ(janus_channel_destroy(place.channel), JANUS_OK);
    }
}

/* Sleeping siblings keep looking up, so that they could mark the shared nursery clean. */

static int64_t own_and_wait(void *argument)
{
    janus_status ended;
    (void)argument;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, cancel_it, n), JANUS_OK);
        while (!janus_cancelled()) JANUS_IGNORE(janus_sleep(1000));
        for (int i = 0; i < 20; i++) CHECK_EQ(janus_sleep(1000), JANUS_CANCELLED);
        CHECK_EQ(janus_cancelled_reason(), JANUS_CANCEL_REASON_EXPLICIT);
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    for (int i = 0; i < 5; i++) CHECK_EQ(janus_sleep(100), JANUS_OK);
    return 0;
}

static int64_t sleep_often(void *argument)
{
    (void)argument;
    for (int i = 0; i < 50; i++) CHECK_EQ(janus_sleep(500), JANUS_OK);
    return 0;
}

static int64_t siblings(void *argument)
{
    janus_status ended;
    (void)argument;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(janus_spawn(n, own_and_wait, NULL), JANUS_OK);
            CHECK_EQ(janus_spawn(n, sleep_often, NULL), JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a cancelled scope concerns its owner alone, not the owner's siblings")
{
    rig_all(siblings, NULL, 20);
}

static int64_t nested(void *argument)
{
    janus_status outer_ended, inner_ended;
    (void)argument;
    JANUS_NURSERY(outer, outer_ended)
    {
        JANUS_NURSERY(inner, inner_ended)
        {
            CHECK_EQ(janus_spawn(inner, sleep_long, NULL), JANUS_OK);
            CHECK_EQ(janus_spawn(outer, cancel_it, outer), JANUS_OK);
            CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
        } /* would wait for ever if its child were not cancelled with the outer nursery */
        CHECK_EQ(inner_ended, JANUS_CANCELLED);
        CHECK_EQ(janus_sleep(1), JANUS_CANCELLED);
    }
    CHECK_EQ(outer_ended, JANUS_CANCELLED);
    CHECK_EQ(janus_sleep(1), JANUS_OK);
    JANUS_NURSERY(outer, outer_ended)
    {
        JANUS_NURSERY(inner, inner_ended)
        {
            CHECK_EQ(janus_spawn(inner, cancel_it, inner), JANUS_OK);
            CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
        }
        CHECK_EQ(inner_ended, JANUS_CANCELLED);
        CHECK_EQ(janus_sleep(1), JANUS_OK);
    }
    CHECK_EQ(outer_ended, JANUS_OK);
    return 0;
}

TEST("a nursery opened inside a cancelled one is cancelled with it, and not the other way round")
{
    rig_all(nested, NULL, 50);
}

static int64_t shields(void *argument)
{
    janus_status ended;
    (void)argument;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
        janus_shield_begin();
        CHECK_EQ(janus_sleep(1000), JANUS_OK); /* begun inside: it holds */
        janus_shield_end();
        CHECK_EQ(janus_sleep(1000), JANUS_CANCELLED);
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    janus_shield_begin();
    JANUS_NURSERY(n, ended) /* opened inside: the shield is outside of it */
    {
        CHECK_EQ(janus_spawn(n, cancel_it, n), JANUS_OK);
        CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    janus_shield_end();
    return 0;
}

TEST("a shield holds off cancels from outside of it, and no others") { rig_all(shields, NULL, 20); }

static int64_t stay_apart(void *argument)
{
    janus_status ended;
    (void)argument;
    JANUS_NURSERY(n, ended, .owner_apart = true)
    {
        CHECK_EQ(janus_spawn(n, cancel_it, n), JANUS_OK);
        CHECK(wait_cancelling(n));
        CHECK_EQ(janus_sleep(1000), JANUS_OK);
        CHECK(!janus_cancelled());
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    return 0;
}

TEST("options.owner_apart keeps the owner out of the scope") { rig_all(stay_apart, NULL, 20); }

/* Unwinding. */

static atomic_int went_on;

static int64_t unwind_owner(void *argument)
{
    janus_status ended;
    (void)argument;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, cancel_it, n), JANUS_OK);
        CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    atomic_fetch_add(&went_on, 1);
    return 0;
}

static int64_t start_unwinding(void *argument)
{
    janus_status ended;
    (void)argument;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn_with(n, unwind_owner, NULL,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("an owner in unwind mode is not unwound if only its own nursery is cancelled")
{
    went_on = 0;
    rig_run(2, start_unwinding, NULL, 1);
    CHECK_EQ(atomic_load(&went_on), 1);
}

/* Deadlines. */

static int64_t deadlines(void *argument)
{
    janus_status ended;
    uint64_t     now = janus_now_ns();
    (void)argument;
    JANUS_NURSERY(n, ended, .deadline_ns = now + 3600 * 1000 * rig_ms)
    {
        CHECK_EQ(janus_nursery_deadline(n), now + 3600 * 1000 * rig_ms);
        CHECK_EQ(janus_nursery_set_deadline(n, 0), JANUS_OK);
        CHECK_EQ(janus_nursery_deadline(n), 0);
        CHECK_EQ(janus_nursery_set_deadline(n, now + rig_ms), JANUS_OK);
        CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
        CHECK_EQ(janus_cancelled_reason(), JANUS_CANCEL_REASON_DEADLINE);
        CHECK_EQ(janus_nursery_set_deadline(n, now + 9999 * rig_ms), JANUS_STATE);
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_nursery_deadline(n), 0);
        CHECK_EQ(janus_nursery_set_deadline(n, janus_now_ns() + rig_ms), JANUS_OK);
        CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    return 0;
}

TEST("a nursery's deadline can be read and moved, and ends the owner's wait")
{
    rig_all(deadlines, NULL, 3);
}

static int64_t timed_out(void *argument)
{
    janus_status status = JANUS_STALE, waited = JANUS_OK;
    uint64_t     limit = argument == NULL ? rig_ms : 3600 * 1000 * rig_ms;
    JANUS_TIMEOUT(status, limit) waited = janus_sleep(UINT64_MAX);
    CHECK_EQ(waited, JANUS_CANCELLED);
    CHECK_EQ(status, argument == NULL ? JANUS_DEADLINE : JANUS_CANCELLED);
    if (argument != NULL) return JANUS_CANCELLED;
    CHECK_EQ(janus_sleep(1), JANUS_OK);
    JANUS_TIMEOUT(status, UINT64_MAX) waited = janus_sleep(1);
    CHECK_EQ(waited, JANUS_OK);
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

static int64_t time_out_both(void *argument)
{
    janus_status ended;
    CHECK_EQ(timed_out(NULL), 0);
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
        CHECK_EQ(timed_out(&ended), JANUS_CANCELLED);
    }
    CHECK_EQ(ended, JANUS_CANCELLED);
    return argument != NULL;
}

TEST("a timeout returns DEADLINE, and a cancellation from outside CANCELLED")
{
    rig_all(time_out_both, NULL, 3);
}

static int64_t obey_in_scope(void *argument)
{
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
        CHECK_EQ(janus_sleep(1), JANUS_CANCELLED);
    }
    *(janus_status *)argument = ended;
    return JANUS_CANCELLED;
}

static int64_t see_unhandled(void *argument)
{
    janus_status ended, inner = JANUS_OK;
    (void)argument;
    JANUS_NURSERY(n, ended) CHECK_EQ(janus_spawn(n, obey_in_scope, &inner), JANUS_OK);
    CHECK_EQ(inner, JANUS_CANCELLED);
    CHECK_EQ(ended, JANUS_CHILD_FAILED);
    return 0;
}

TEST("a task that returns CANCELLED because of its own nursery alone has failed")
{
    rig_all(see_unhandled, NULL, 3);
}

/* Observers. */

static int64_t watch_final(void *argument)
{
    CHECK(rig_wait_state(argument, JANUS_NURSERY_STATE_CANCELLED));
    return 0;
}

static int64_t be_watched(void *argument)
{
    janus_status watched, watching;
    (void)argument;
    JANUS_NURSERY(watchers, watching)
    {
        JANUS_NURSERY(n, watched)
        {
            CHECK_EQ(janus_spawn(n, cancel_it, n), JANUS_OK);
            CHECK_EQ(janus_spawn(watchers, watch_final, n), JANUS_OK);
            CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
            CHECK_EQ(janus_nursery_close(watchers), JANUS_OK);
            janus_shield_begin();
            while (!janus_nursery_try_await(watchers, NULL)) CHECK_EQ(janus_yield(), JANUS_OK);
            janus_shield_end();
        }
        CHECK_EQ(watched, JANUS_CANCELLED);
    }
    CHECK_EQ(watching, JANUS_OK);
    return 0;
}

TEST("observers see CANCELLED once the owner's wait has ended, although the owner does not ask")
{
    rig_all(be_watched, NULL, 20);
}
