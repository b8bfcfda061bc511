/* SPDX-License-Identifier: MIT */
/*
 * Tasks on workers and tasks on threads of their own (backend THREADED) meet at channels, selects
 * and every object to wait for. Values pass, locks hold, and waits end as they should.
 */
#include "../chan/channels.h"
#include "../task/backends.h"

#include <string.h>

enum { KINDS = 2, ROUNDS = RIG_SLOW ? 30 : 300, RACES = RIG_SLOW ? 5 : 40 };

#define BY_TASKS JANUS_WAKER_TASKS

/* Two nurseries of the first task, one of each kind. */
struct mix {
    janus_nursery of[KINDS];
};

static const janus_backend kinds[KINDS] = {JANUS_BACKEND_COOPERATIVE, JANUS_BACKEND_THREADED};

static void mix_open(struct mix *mix)
{
    janus_cap channel = backend_mint(JANUS_CAP_KIND_CHANNEL, JANUS_RIGHTS_ALL,
                                     (janus_cap_limits){.channel = {1000, 1000}});
    for (int k = 0; k < KINDS; k++) {
        BACKEND_OPEN(&mix->of[k], kinds[k], .policy = JANUS_POLICY_WAIT_ALL,
                     .channel_cap = channel);
    }
}

static void mix_end(struct mix *mix, janus_status status)
{
    for (int k = KINDS - 1; k >= 0; k--) CHECK_EQ(janus_nursery_end(&mix->of[k], NULL), status);
}

static void mix_spawn(struct mix *mix, janus_entry *entry, void *argument)
{
    for (int k = 0; k < KINDS; k++) CHECK_EQ(janus_spawn(&mix->of[k], entry, argument), JANUS_OK);
}

/* The first task, with all the capabilities that this needs. */
static int64_t with_much(void *argument)
{
    janus_entry *const *entry = argument;
    first_caps.spawn = backend_mint(
        JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL,
        (janus_cap_limits){
            .spawn = {.max_tasks = 1000,
                      .task_budget =
                          JANUS_BUDGET(.ops = 1000000000, .memory = 1 << 20, .spawn_count = 100,
                                       .channel_ops = 1000000000, .syscalls = 10)}});
    return (*entry)(NULL);
}

static void mix_all(janus_entry *entry)
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) backend_run(workers, with_much, &entry);
}

/* Values. */

enum { SELLERS = 2 * KINDS, BUYERS = 4 * KINDS, VALUES = SELLERS * ROUNDS };

struct fair {
    janus_channel channels[2];
    atomic_int    sellers, buyers, seen[VALUES];
};

static int64_t sell(void *argument)
{
    struct fair *fair = argument;
    int64_t      first = (int64_t)atomic_fetch_add(&fair->sellers, 1) * ROUNDS;
    for (int64_t value = first; value < first + ROUNDS; value++) {
        janus_select_case cases[2];
        for (int i = 0; i < 2; i++) {
            cases[i] = (janus_select_case){
                .channel = fair->channels[i], .kind = JANUS_SELECT_KIND_SEND, .value = &value};
        }
        CHECK_EQ(value % 3 == 0 ? janus_select(cases, 2, NULL)
                                : janus_channel_send(fair->channels[value % 2], &value),
                 JANUS_OK);
    }
    return 0;
}

/* Receives from both, or from one, until they are closed. */
static int64_t buy(void *argument)
{
    struct fair      *fair = argument;
    int               number = atomic_fetch_add(&fair->buyers, 1), open = number % 2 == 0 ? 2 : 1;
    int64_t           value = 0;
    janus_select_case cases[2] = {{.channel = fair->channels[number / 2 % 2], .value = &value},
                                  {.channel = fair->channels[1 - number / 2 % 2], .value = &value}};
    for (int left = open; left > 0;) {
        size_t       chosen = 0;
        janus_status status = open == 2 ? janus_select(cases, 2, &chosen)
                                        : janus_channel_recv(cases[0].channel, &value);
        CHECK(status == JANUS_OK || status == JANUS_CLOSED);
        if (status == JANUS_OK) {
            atomic_fetch_add(&fair->seen[value], 1);
        } else {
            cases[chosen].channel = (janus_channel){{0, 0}};
            left--;
        }
    }
    return 0;
}

static int64_t hold_fair(void *argument)
{
    static struct fair fair;
    (void)argument;
    for (uint64_t capacity = 0; capacity < 3; capacity++) {
        struct mix buyers, sellers;
        memset(&fair, 0, sizeof fair);
        mix_open(&buyers);
        for (int i = 0; i < 2; i++) fair.channels[i] = open_channel(capacity);
        for (int i = 0; i < BUYERS / KINDS; i++) mix_spawn(&buyers, buy, &fair);
        mix_open(&sellers);
        for (int i = 0; i < SELLERS / KINDS; i++) mix_spawn(&sellers, sell, &fair);
        mix_end(&sellers, JANUS_OK);
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_channel_close(fair.channels[i]), JANUS_OK);
        mix_end(&buyers, JANUS_OK);
        for (int i = 0; i < VALUES; i++) CHECK_EQ(atomic_load(&fair.seen[i]), 1);
        for (int i = 0; i < 2; i++) destroy(fair.channels[i]);
    }
    return 0;
}

TEST("values between tasks on workers and tasks on threads are received once")
{
    mix_all(hold_fair);
}

/* Locks. */

struct shop {
    janus_mutex     lock;
    janus_semaphore permits; /* two */
    janus_condition filled, emptied;
    atomic_int      inside, out;
    long            count; /* plain: the lock guards it, and the rest */
    int             items;
    long            taken;
};

static int64_t work_in_shop(void *argument)
{
    struct shop *shop = argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(janus_mutex_lock(&shop->lock), JANUS_OK);
        CHECK_EQ(atomic_fetch_add(&shop->inside, 1), 0);
        shop->count++;
        if (i % 4 == 0) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(atomic_fetch_sub(&shop->inside, 1), 1);
        CHECK_EQ(janus_mutex_unlock(&shop->lock), JANUS_OK);
        CHECK_EQ(janus_semaphore_acquire(&shop->permits), JANUS_OK);
        CHECK(atomic_fetch_add(&shop->out, 1) < 2);
        if (i % 4 == 1) CHECK_EQ(janus_yield(), JANUS_OK);
        atomic_fetch_sub(&shop->out, 1);
        CHECK_EQ(janus_semaphore_release(&shop->permits, 1), JANUS_OK);
    }
    return 0;
}

static int64_t fill(void *argument)
{
    struct shop *shop = argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(janus_mutex_lock(&shop->lock), JANUS_OK);
        while (shop->items == 3) {
            CHECK_EQ(janus_condition_wait(&shop->emptied, &shop->lock), JANUS_OK);
        }
        shop->items++;
        CHECK_EQ(janus_mutex_unlock(&shop->lock), JANUS_OK);
        janus_condition_signal(&shop->filled);
    }
    return 0;
}

static int64_t empty(void *argument)
{
    struct shop *shop = argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(janus_mutex_lock(&shop->lock), JANUS_OK);
        while (shop->items == 0) {
            CHECK_EQ(janus_condition_wait(&shop->filled, &shop->lock), JANUS_OK);
        }
        shop->items--;
        shop->taken++;
        janus_condition_signal(&shop->emptied);
        CHECK_EQ(janus_mutex_unlock(&shop->lock), JANUS_OK);
    }
    return 0;
}

static int64_t run_shop(void *argument)
{
    struct shop shop = {.lock = JANUS_MUTEX_INIT("shop"),
                        .permits = JANUS_SEMAPHORE_INIT(2, BY_TASKS, "two"),
                        .filled = JANUS_CONDITION_INIT(BY_TASKS, "filled"),
                        .emptied = JANUS_CONDITION_INIT(BY_TASKS, "emptied")};
    struct mix  mix;
    (void)argument;
    mix_open(&mix);
    for (int i = 0; i < 2; i++) mix_spawn(&mix, work_in_shop, &shop);
    for (int i = 0; i < 2; i++) mix_spawn(&mix, fill, &shop);
    for (int i = 0; i < 2; i++) mix_spawn(&mix, empty, &shop);
    mix_end(&mix, JANUS_OK);
    CHECK_EQ(shop.count, 2L * KINDS * ROUNDS);
    CHECK_EQ(shop.taken, 2L * KINDS * ROUNDS);
    CHECK_EQ(shop.items, 0);
    CHECK_EQ(janus_semaphore_permits(&shop.permits), 2);
    return 0;
}

TEST("tasks on workers and tasks on threads share a mutex, permits and conditions")
{
    mix_all(run_shop);
}

/* Waits of each kind at each place, and how they end. */

enum place { RECV, SEND, SELECT, MUTEX, SEMAPHORE, CONDITION, EVENT, GROUP, BROADCAST, PLACES };

struct hall {
    janus_channel   empty, full, left, right;
    janus_mutex     lock, held;
    janus_semaphore permits;
    janus_condition change;
    janus_event     event;
    janus_group     group;
    janus_broadcast news;
    int             at_condition; /* plain: the lock guards it */
};

struct guest {
    struct hall  *hall;
    enum place    place;
    uint64_t      until;
    janus_status  status;
    janus_task_id id;
};

static janus_status wait_in_select(struct guest *guest)
{
    int64_t           value = 1;
    janus_select_case cases[2] = {
        {.channel = guest->hall->left, .value = &value},
        {.channel = guest->hall->right, .kind = JANUS_SELECT_KIND_SEND, .value = &value}};
    return janus_select_until(cases, 2, NULL, guest->until);
}

static janus_status wait_at_condition(struct guest *guest)
{
    CHECK_EQ(janus_mutex_lock(&guest->hall->lock), JANUS_OK);
    guest->hall->at_condition++;
    janus_status status =
        janus_condition_wait_until(&guest->hall->change, &guest->hall->lock, guest->until);
    CHECK_EQ(janus_mutex_unlock(&guest->hall->lock), JANUS_OK);
    return status;
}

static janus_status wait_at(struct guest *guest)
{
    struct hall *hall = guest->hall;
    int64_t      value = 1;
    uint64_t     seen = 0, until = guest->until;
    janus_status status = JANUS_STATE;
    switch (guest->place) {
    case RECV: return janus_channel_recv_until(hall->empty, &value, until);
    case SEND: return janus_channel_send_until(hall->full, &value, until);
    case SELECT: return wait_in_select(guest);
    case MUTEX:
        status = janus_mutex_lock_until(&hall->held, until);
        if (status == JANUS_OK) CHECK_EQ(janus_mutex_unlock(&hall->held), JANUS_OK);
        return status;
    case SEMAPHORE: return janus_semaphore_acquire_until(&hall->permits, until);
    case CONDITION: return wait_at_condition(guest);
    case EVENT: return janus_event_wait_until(&hall->event, until);
    case GROUP: return janus_group_wait_until(&hall->group, until);
    case BROADCAST: return janus_broadcast_wait_until(&hall->news, &seen, until);
    case PLACES: break;
    }
    return status;
}

static int64_t be_guest(void *argument)
{
    struct guest *guest = argument;
    guest->status = wait_at(guest);
    return 0;
}

static void await_blocked(janus_nursery *nursery, janus_task_id id)
{
    uint64_t        limit = janus_now_ns() + rig_patience;
    janus_task_info info = JANUS_TASK_INFO();
    for (;;) {
        CHECK_EQ(janus_task_inspect(nursery, id, &info), JANUS_OK);
        if (info.state == JANUS_TASK_STATE_BLOCKED || info.has_result) return;
        CHECK(janus_now_ns() < limit);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
}

/* Waits until this many are at the condition, which they reach only by unlocking. */
static void await_at_condition(struct hall *hall, int count)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    for (int now = 0; now < count;) {
        CHECK(janus_now_ns() < limit);
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_mutex_lock(&hall->lock), JANUS_OK);
        now = hall->at_condition;
        CHECK_EQ(janus_mutex_unlock(&hall->lock), JANUS_OK);
    }
}

/* Serves all waits except `held`. */
static int64_t serve_all(void *argument)
{
    struct hall *hall = argument;
    int64_t      value = 2;
    for (int k = 0; k < KINDS; k++) {
        CHECK_EQ(janus_channel_send(hall->empty, &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(hall->full, &value), JANUS_OK);
        CHECK_EQ(k == 0 ? janus_channel_send(hall->left, &value)
                        : janus_channel_recv(hall->right, &value),
                 JANUS_OK);
        CHECK_EQ(janus_semaphore_release(&hall->permits, 1), JANUS_OK);
    }
    janus_condition_broadcast(&hall->change);
    janus_event_set(&hall->event);
    CHECK_EQ(janus_group_done(&hall->group), JANUS_OK);
    janus_broadcast_send(&hall->news);
    return 0;
}

static void hall_open(struct hall *hall)
{
    int64_t value = 0;
    *hall = (struct hall){.empty = open_channel(0),
                          .full = open_channel(1),
                          .left = open_channel(0),
                          .right = open_channel(0)};
    janus_semaphore_init(&hall->permits, 0, BY_TASKS, "permits");
    janus_condition_init(&hall->change, BY_TASKS, "change");
    janus_event_init(&hall->event, BY_TASKS, "event");
    janus_group_init(&hall->group, BY_TASKS, "group");
    janus_broadcast_init(&hall->news, BY_TASKS, "news");
    CHECK_EQ(janus_channel_try_send(hall->full, &value), JANUS_OK);
    CHECK_EQ(janus_group_add(&hall->group, 1), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&hall->held), JANUS_OK);
}

/* Checks that no task is left anywhere. */
static void hall_close(struct hall *hall, bool served)
{
    const janus_channel channels[] = {hall->empty, hall->full, hall->left, hall->right};
    for (int i = 0; i < 4; i++) {
        janus_channel_info info = look(channels[i]);
        CHECK_EQ(info.senders + info.receivers, 0);
        CHECK_EQ(info.length, i == 1 ? 1 : 0);
        destroy(channels[i]);
    }
    CHECK_EQ(janus_semaphore_permits(&hall->permits), 0);
    CHECK_EQ(janus_mutex_try_lock(&hall->lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&hall->lock), JANUS_OK);
    CHECK_EQ(janus_mutex_try_lock(&hall->held), served ? JANUS_OK : JANUS_STATE);
    CHECK_EQ(janus_mutex_unlock(&hall->held), JANUS_OK);
}

/* All waits end with this status: OK, CANCELLED or DEADLINE. */
static void end_waits(janus_status how, janus_nursery *server)
{
    struct guest guests[KINDS][PLACES];
    struct hall  hall;
    struct mix   mix;
    uint64_t     until = how == JANUS_DEADLINE ? janus_now_ns() + (RIG_SLOW ? 20 : 2) * rig_ms : 0;
    mix_open(&mix);
    hall_open(&hall);
    for (int k = 0; k < KINDS; k++) {
        for (int p = 0; p < PLACES; p++) {
            struct guest *guest = &guests[k][p];
            *guest = (struct guest){.hall = &hall, .place = (enum place)p, .until = until};
            if (until == 0) guest->until = UINT64_MAX;
            CHECK_EQ(janus_spawn_with(&mix.of[k], be_guest, guest, NULL, &guest->id), JANUS_OK);
        }
    }
    for (int k = 0; k < KINDS; k++) {
        for (int p = 0; p < PLACES; p++) await_blocked(&mix.of[k], guests[k][p].id);
    }
    await_at_condition(&hall, KINDS);
    if (how == JANUS_OK) {
        CHECK_EQ(janus_spawn(server != NULL ? server : &mix.of[0], serve_all, &hall), JANUS_OK);
        CHECK_EQ(janus_mutex_unlock(&hall.held), JANUS_OK);
    } else if (how == JANUS_CANCELLED) {
        for (int k = KINDS; k-- > 0;) CHECK_EQ(janus_nursery_cancel(&mix.of[k]), JANUS_OK);
    }
    mix_end(&mix, how == JANUS_CANCELLED ? how : JANUS_OK);
    CHECK(janus_now_ns() >= until);
    for (int k = 0; k < KINDS; k++) {
        for (int p = 0; p < PLACES; p++) CHECK_EQ(guests[k][p].status, how);
    }
    hall_close(&hall, how == JANUS_OK);
}

static int64_t serve_them(void *argument)
{
    struct mix servers;
    (void)argument;
    mix_open(&servers);
    for (int k = 0; k < KINDS; k++) end_waits(JANUS_OK, &servers.of[k]);
    mix_end(&servers, JANUS_OK);
    return 0;
}

TEST("a task on a worker or on its own thread is served by a task of the other kind")
{
    mix_all(serve_them);
}

static int64_t cancel_them(void *argument)
{
    (void)argument;
    for (int i = 0; i < 3; i++) end_waits(JANUS_CANCELLED, NULL);
    return 0;
}

TEST("a cancel ends waits on threads of their own, and leaves everything as before")
{
    mix_all(cancel_them);
}

static int64_t let_them_be_late(void *argument)
{
    (void)argument;
    end_waits(JANUS_DEADLINE, NULL);
    return 0;
}

TEST("a deadline ends waits on threads of their own, and leaves everything as before")
{
    mix_all(let_them_be_late);
}

/* A value and a cancel at the same moment: nothing is lost, and nothing comes twice. */

enum { TAKERS = 3, GIVEN = TAKERS };

struct race {
    janus_channel   channel;
    janus_semaphore permits;
    atomic_int      arrived, taken, received, sent;
};

static int64_t take_both(void *argument)
{
    struct race *race = argument;
    int64_t      value = 0;
    atomic_fetch_add(&race->arrived, 1);
    janus_status status = janus_channel_recv(race->channel, &value);
    if (status == JANUS_OK) atomic_fetch_add(&race->received, (int)value);
    CHECK(status == JANUS_OK || status == JANUS_CANCELLED);
    status = janus_semaphore_acquire(&race->permits);
    if (status == JANUS_OK) atomic_fetch_add(&race->taken, 1);
    CHECK(status == JANUS_OK || status == JANUS_CANCELLED);
    return 0;
}

static int64_t give_both(void *argument)
{
    struct race *race = argument;
    for (int64_t i = 1; i <= GIVEN; i++) {
        janus_status status = janus_channel_try_send(race->channel, &i);
        if (status == JANUS_OK) atomic_fetch_add(&race->sent, (int)i);
        CHECK(status == JANUS_OK || status == JANUS_WOULD_WAIT);
        CHECK_EQ(janus_semaphore_release(&race->permits, 1), JANUS_OK);
    }
    return 0;
}

static int64_t race_them(void *argument)
{
    (void)argument;
    for (int i = 0; i < RACES; i++) {
        struct race race = {.permits = JANUS_SEMAPHORE_INIT(0, BY_TASKS, "raced for")};
        struct mix  takers, givers;
        mix_open(&givers);
        race.channel = open_channel(0);
        mix_open(&takers);
        for (int k = 0; k < TAKERS; k++) mix_spawn(&takers, take_both, &race);
        while (atomic_load(&race.arrived) < i % (KINDS * TAKERS)) {
            CHECK_EQ(janus_yield(), JANUS_OK);
        }
        CHECK_EQ(janus_spawn(&givers.of[i % KINDS], give_both, &race), JANUS_OK);
        for (int k = i % 4; k > 0; k--) CHECK_EQ(janus_yield(), JANUS_OK);
        for (int k = KINDS; k-- > 0;) CHECK_EQ(janus_nursery_cancel(&takers.of[k]), JANUS_OK);
        mix_end(&takers, JANUS_CANCELLED);
        mix_end(&givers, JANUS_OK);
        CHECK_EQ(race.received, race.sent);
        CHECK_EQ((int)janus_semaphore_permits(&race.permits) + race.taken, GIVEN);
        CHECK_EQ(look(race.channel).receivers, 0);
        destroy(race.channel);
    }
    return 0;
}

TEST("nothing given to takers that are cancelled is lost, on threads of their own too")
{
    mix_all(race_them);
}

/* A mutex that is left behind. */

struct left {
    janus_mutex lock;
    atomic_int  has, asked;
    bool        abandoned;
};

static int64_t leave_it(void *argument)
{
    struct left *left = argument;
    CHECK_EQ(janus_mutex_lock(&left->lock), JANUS_OK);
    atomic_store(&left->has, 1);
    CHECK(rig_wait(&left->asked));
    return 0;
}

static int64_t find_it(void *argument)
{
    struct left *left = argument;
    CHECK(rig_wait(&left->has));
    atomic_store(&left->asked, 1);
    CHECK_EQ(janus_mutex_lock(&left->lock), JANUS_OK);
    left->abandoned = janus_mutex_is_abandoned(&left->lock);
    CHECK_EQ(janus_mutex_unlock(&left->lock), JANUS_OK);
    return 0;
}

static int64_t leave_and_find(void *argument)
{
    (void)argument;
    for (int k = 0; k < KINDS; k++) {
        struct left left = {.lock = JANUS_MUTEX_INIT("left")};
        struct mix  mix;
        mix_open(&mix);
        CHECK_EQ(janus_spawn(&mix.of[k], leave_it, &left), JANUS_OK);
        CHECK_EQ(janus_spawn(&mix.of[1 - k], find_it, &left), JANUS_OK);
        mix_end(&mix, JANUS_OK);
        CHECK(left.abandoned);
    }
    return 0;
}

TEST("a mutex left by, or left to, a task on a thread of its own is abandoned")
{
    mix_all(leave_and_find);
}

/* All tasks wait for each other. */

static int64_t wait_for_deadlock(void *argument)
{
    janus_channel *channel = argument;
    int64_t        value = 0;
    CHECK_EQ(janus_channel_recv(*channel, &value), JANUS_DEADLOCK);
    return 0;
}

static int64_t all_wait(void *argument)
{
    struct mix mix;
    (void)argument;
    mix_open(&mix);
    janus_channel channel = open_channel(0);
    for (int i = 0; i < 2; i++) mix_spawn(&mix, wait_for_deadlock, &channel);
    mix_end(&mix, JANUS_OK);
    destroy(channel);
    return 0;
}

static void be_stuck(void *argument)
{
    (void)argument;
    mix_all(all_wait);
}

TEST("if all tasks on workers and on threads wait at a channel, all get DEADLOCK")
{
    int         status = 0;
    const char *text = harness_child(be_stuck, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "janusrt: deadlock: every task waits") != NULL);
}
