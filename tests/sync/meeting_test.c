/* SPDX-License-Identifier: MIT */
/* Barriers: all parties pass together and one leads. Also cancelled, too late, on threads, in a
 * deadlock. */
#include "listen.h"

#include <pthread.h>

enum { PARTIES = 5 };

struct meeting {
    janus_barrier barrier;
    atomic_int    arrived[200], leaders[200], cancelled;
    int           rounds;
};

static void meet(struct meeting *meeting)
{
    for (int i = 0; i < meeting->rounds; i++) {
        bool leads = false;
        atomic_fetch_add(&meeting->arrived[i], 1);
        CHECK_EQ(janus_barrier_wait(&meeting->barrier, &leads), JANUS_OK);
        CHECK_EQ(atomic_load(&meeting->arrived[i]), PARTIES); /* no party passes before all came */
        if (leads) atomic_fetch_add(&meeting->leaders[i], 1);
    }
}

static int64_t party(void *argument)
{
    meet(argument);
    return 0;
}

static int64_t meet_often(void *argument)
{
    struct meeting meeting = {.barrier = JANUS_BARRIER_INIT(PARTIES, JANUS_WAKER_TASKS, "meeting"),
                              .rounds = (int)rig_few(200)};
    janus_nursery  n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < PARTIES; i++) CHECK_EQ(janus_spawn(&n, party, &meeting), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (int i = 0; i < meeting.rounds; i++) CHECK_EQ(meeting.leaders[i], 1);
    return 0;
}

TEST("no party passes a barrier before all have come, and one party of each meeting leads")
{
    rig_all(meet_often, NULL, 2);
}

static void *thread_party(void *argument)
{
    meet(argument);
    return NULL;
}

TEST("plain threads meet at a barrier")
{
    RIG_REAL("threads outside");
    struct meeting meeting = {.rounds = 100};
    pthread_t      threads[PARTIES];
    CHECK_EQ(janus_barrier_init(&meeting.barrier, PARTIES, JANUS_WAKER_ANYBODY, NULL), JANUS_OK);
    for (int i = 0; i < PARTIES; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_party, &meeting), 0);
    }
    for (int i = 0; i < PARTIES; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < meeting.rounds; i++) CHECK_EQ(meeting.leaders[i], 1);
}

/* Parties that give up have not arrived. */

static int64_t give_up(void *argument)
{
    struct meeting *meeting = argument;
    janus_status    status = janus_barrier_wait(&meeting->barrier, NULL);
    CHECK_EQ(status, JANUS_CANCELLED);
    atomic_fetch_add(&meeting->cancelled, 1);
    return status;
}

static int64_t cancel_some(void *argument)
{
    struct meeting meeting = {.barrier = JANUS_BARRIER_INIT(PARTIES, JANUS_WAKER_ANYBODY, NULL),
                              .rounds = 1};
    janus_nursery  n, others;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&others, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&others, give_up, &meeting), JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&others), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&others, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_barrier_wait_until(&meeting.barrier, NULL, 1), JANUS_DEADLINE);
    for (int i = 0; i < PARTIES; i++) CHECK_EQ(janus_spawn(&n, party, &meeting), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(meeting.leaders[0], 1);
    return 0;
}

TEST("a wait at a barrier that is cancelled or too late takes its arrival back")
{
    rig_all(cancel_some, NULL, 3);
}

static int64_t come_alone(void *argument)
{
    (void)argument;
    janus_barrier barrier = JANUS_BARRIER_INIT(2, JANUS_WAKER_TASKS, "lonely");
    CHECK_EQ(janus_barrier_wait(&barrier, NULL), JANUS_DEADLOCK);
    return 0;
}

TEST("a barrier that no other party can reach is a deadlock, and is reported")
{
    listen_to(1, come_alone, NULL);
    CHECK(times_said("waits for barrier \"lonely\"") > 0);
}

TEST("a barrier for zero parties is refused, and one for a single party never waits")
{
    janus_barrier barrier = {NULL, {0, 0, 0}};
    bool          leads = false;
    CHECK_EQ(janus_barrier_wait(&barrier, NULL), JANUS_INVALID);
    CHECK_EQ(janus_barrier_wait(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_barrier_init(&barrier, 0, JANUS_WAKER_ANYBODY, NULL), JANUS_INVALID);
    CHECK_EQ(janus_barrier_init(NULL, 1, JANUS_WAKER_ANYBODY, NULL), JANUS_INVALID);
    CHECK_EQ(janus_barrier_init(&barrier, 1, JANUS_WAKER_ANYBODY, NULL), JANUS_OK);
    CHECK_EQ(janus_barrier_wait(&barrier, &leads), JANUS_OK);
    CHECK(leads);
}
