/* SPDX-License-Identifier: MIT */
/*
 * Threads mint, derive, check, revoke and release in one table without pause.
 *
 * In each round one thread publishes a handle, others check it without end, and it is revoked. A
 * check that begins after the revocation has returned must not succeed, whatever fills the place
 * then.
 */
#include "realm.h"

#include "base/rng.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#if JRT_TSAN || defined(__aarch64__)
enum { ROUNDS = 3000, STEPS = 20000 };
#elif JRT_ASAN || JRT_DEBUG
enum { ROUNDS = 10000, STEPS = 100000 };
#else
enum { ROUNDS = 20000, STEPS = 200000 };
#endif
enum { CHECKERS = 2, THREADS = 4 };

static struct realm realm;

static struct {
    janus_cap   cap; /* written before round */
    atomic_uint round;
    atomic_uint revoked; /* rounds whose revocation has returned */
    atomic_bool stop;
    atomic_uint accepted;
} play;

/* Reads the handle of a round between two looks at the round's number, so that it is not torn. */
static bool handle_of_round(janus_cap *cap, unsigned *round)
{
    *round = atomic_load(&play.round);
    if (*round % 2 == 1) return false; /* being written */
    cap->slot = __atomic_load_n(&play.cap.slot, __ATOMIC_ACQUIRE);
    cap->generation = __atomic_load_n(&play.cap.generation, __ATOMIC_ACQUIRE);
    cap->nonce = __atomic_load_n(&play.cap.nonce, __ATOMIC_ACQUIRE);
    return atomic_load(&play.round) == *round;
}

static void publish_handle(janus_cap cap)
{
    atomic_fetch_add(&play.round, 1);
    __atomic_store_n(&play.cap.slot, cap.slot, __ATOMIC_RELEASE);
    __atomic_store_n(&play.cap.generation, cap.generation, __ATOMIC_RELEASE);
    __atomic_store_n(&play.cap.nonce, cap.nonce, __ATOMIC_RELEASE);
    atomic_fetch_add(&play.round, 1);
}

static void *run_checker(void *argument)
{
    (void)argument;
    while (!atomic_load(&play.stop)) {
        janus_cap cap;
        unsigned  round;
        if (!handle_of_round(&cap, &round) || round == 0) continue;
        unsigned         gone = atomic_load(&play.revoked);
        janus_cap_limits limits;
        janus_status     status = jrt_cap_check_limits(realm.table, cap, JANUS_CAP_KIND_SPAWN,
                                                       JANUS_RIGHT_SPAWN_TASK, ALICE, &limits);
        if (status == JANUS_OK) {
            CHECK(gone < round);
            CHECK_EQ(limits.spawn.max_tasks, round);
            CHECK_EQ(limits.spawn.task_budget.ops, round);
            atomic_fetch_add(&play.accepted, 1);
        } else {
            CHECK(status == JANUS_CAP_REVOKED || status == JANUS_CAP_STALE);
        }
        /* The handle never had this right, but the filler's capability in its place has it. */
        CHECK(jrt_cap_check(realm.table, cap, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_NURSERY,
                            ALICE) != JANUS_OK);
    }
    return NULL;
}

/* Fills places that were just freed with capabilities that have every right. */
static void *run_filler(void *argument)
{
    (void)argument;
    while (!atomic_load(&play.stop)) {
        janus_cap cap = mint_spawn(&realm, ALICE);
        CHECK_EQ(janus_cap_release_in(realm.table, cap, ALICE), JANUS_OK);
        sched_yield(); /* the lock is not fair */
    }
    return NULL;
}

TEST("after a revocation has returned, no check of the branch succeeds")
{
    pthread_t threads[CHECKERS + 1];
    realm.table = NULL;
    CHECK_EQ(janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.max_caps = 4), &realm.table,
                                    &realm.root), /* eight places: reused at once */
             JANUS_OK);
    for (int i = 0; i <= CHECKERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, i < CHECKERS ? run_checker : run_filler, NULL),
                 0);
    }
    for (unsigned round = 2; round <= 2 * ROUNDS; round += 2) {
        janus_cap        top, cap;
        janus_cap_limits limits = {.spawn = {.max_tasks = round, .task_budget = {.ops = round}}};
        top = mint(&realm, ALICE, JANUS_CAP_KIND_SPAWN, &limits, 0);
        CHECK_EQ(janus_cap_attenuate_in(realm.table, top, ALICE,
                                        JANUS_CAP_GRANT(.rights = JANUS_RIGHT_SPAWN_TASK), &cap),
                 JANUS_OK);
        publish_handle(cap);
        if (round % 64 == 0) { /* until one was accepted, so that the threads do meet */
            unsigned before = atomic_load(&play.accepted);
            while (atomic_load(&play.accepted) == before) sched_yield();
        }
        CHECK_EQ(janus_cap_revoke_in(realm.table, top, top, ALICE), JANUS_OK);
        atomic_store(&play.revoked, round);
    }
    atomic_store(&play.stop, true);
    for (int i = 0; i <= CHECKERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(stats_of(&realm).live, 0);
    CHECK_EQ(stats_of(&realm).revoked, 2 * ROUNDS);
    realm_close(&realm);
}

/* Each thread is a holder with capabilities of its own, all in one table and partly in one tree. */

enum { OWN = 64 };

struct player {
    uint64_t  holder;
    janus_cap own[OWN];
    bool      has[OWN];
    uint64_t  minted, ended;
};

static void player_step(struct player *player, struct jrt_rng *rng)
{
    uint32_t  at = jrt_rng_below(rng, OWN), from = jrt_rng_below(rng, OWN);
    uint64_t  me = player->holder;
    janus_cap cap;
    if (!player->has[at]) {
        if (player->has[from] && from != at) {
            cap = copy_of(&realm, player->own[from], me);
        } else {
            cap = mint_spawn(&realm, me);
        }
        player->own[at] = cap;
        player->has[at] = true;
        player->minted++;
    } else if (jrt_rng_below(rng, 4) == 0) {
        CHECK_EQ(janus_cap_release_in(realm.table, player->own[at], me), JANUS_OK);
        player->has[at] = false;
        player->ended++;
    } else {
        CHECK_EQ(check_spawn(&realm, player->own[at], me), JANUS_OK);
        CHECK_EQ(check_spawn(&realm, player->own[at], me + 1), JANUS_CAP_FOREIGN);
    }
}

static void *run_player(void *argument)
{
    struct player *player = argument;
    struct jrt_rng rng;
    jrt_rng_seed(&rng, player->holder);
    for (int i = 0; i < STEPS; i++) player_step(player, &rng);
    for (int i = 0; i < OWN; i++) {
        if (!player->has[i]) continue;
        CHECK_EQ(janus_cap_release_in(realm.table, player->own[i], player->holder), JANUS_OK);
        player->ended++;
    }
    return NULL;
}

TEST("threads that work in one table do not disturb each other, and the books balance")
{
    static struct player players[THREADS];
    pthread_t            threads[THREADS];
    uint64_t             minted = 0, ended = 0;
    realm = realm_open(0);
    for (int i = 0; i < THREADS; i++) {
        players[i].holder = (uint64_t)(i + 1) * 10;
        CHECK_EQ(pthread_create(&threads[i], NULL, run_player, &players[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        minted += players[i].minted;
        ended += players[i].ended;
    }
    janus_cap_table_info stats = stats_of(&realm);
    CHECK_EQ(minted, ended);
    CHECK_EQ(stats.minted + stats.attenuated, minted);
    CHECK_EQ(stats.released, ended);
    CHECK_EQ(stats.live, 0);
    CHECK_EQ(stats.slots, realm.table->free_count);
    realm_close(&realm);
}
