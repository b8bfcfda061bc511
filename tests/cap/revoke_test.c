/* SPDX-License-Identifier: MIT */
/* Revoking and releasing: branches, ghosts, reused slots, and generations that run out. */
#include "realm.h"

#include "base/rng.h"

#include <stdlib.h>

static janus_cap delegate(struct realm *realm, janus_cap cap, uint64_t from, uint64_t to)
{
    janus_cap out;
    CHECK_EQ(janus_cap_delegate_in(realm->table, cap, from, to,
                                   JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL,
                                                   .delegation_depth = JANUS_DELEGATION_UNLIMITED),
                                   &out),
             JANUS_OK);
    return out;
}

TEST("revoking a capability revokes everything derived from it and nothing else")
{
    struct realm realm = realm_open(0);
    janus_cap    top = mint_spawn(&realm, ALICE), beside = mint_spawn(&realm, ALICE);
    janus_cap    left = copy_of(&realm, top, ALICE), right = copy_of(&realm, top, ALICE);
    janus_cap    bobs = delegate(&realm, left, ALICE, BOB);
    janus_cap    carols = delegate(&realm, bobs, BOB, CAROL);
    CHECK_EQ(janus_cap_revoke_in(realm.table, left, top, ALICE), JANUS_OK);
    CHECK_EQ(check_spawn(&realm, left, ALICE), JANUS_CAP_REVOKED);
    CHECK_EQ(check_spawn(&realm, bobs, BOB), JANUS_CAP_REVOKED);
    CHECK_EQ(check_spawn(&realm, carols, CAROL), JANUS_CAP_REVOKED);
    CHECK_EQ(check_spawn(&realm, top, ALICE), JANUS_OK);
    CHECK_EQ(check_spawn(&realm, right, ALICE), JANUS_OK);
    CHECK_EQ(check_spawn(&realm, beside, ALICE), JANUS_OK);
    CHECK_EQ(stats_of(&realm).revoked, 3);
    CHECK_EQ(stats_of(&realm).live, 3);

    janus_cap out;
    CHECK_EQ(janus_cap_attenuate_in(realm.table, bobs, BOB, JANUS_CAP_GRANT(.rights = 1), &out),
             JANUS_CAP_REVOKED);
    CHECK_EQ(janus_cap_release_in(realm.table, bobs, BOB), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_cap_revoke_in(realm.table, bobs, top, ALICE), JANUS_CAP_REVOKED);
    realm_close(&realm);
}

TEST("only the capability itself, an ancestor or the authority can revoke a capability")
{
    struct realm realm = realm_open(0);
    janus_cap    top = mint_spawn(&realm, ALICE), other = mint_spawn(&realm, BOB);
    janus_cap    bobs = delegate(&realm, top, ALICE, BOB);
    CHECK_EQ(janus_cap_revoke_in(realm.table, top, bobs, BOB), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_revoke_in(realm.table, bobs, other, BOB), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_revoke_in(realm.table, other, top, ALICE), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_revoke_in(realm.table, bobs, top, BOB), JANUS_CAP_FOREIGN);
    CHECK_EQ(stats_of(&realm).live, 3);
    CHECK_EQ(janus_cap_revoke_in(realm.table, bobs, top, ALICE), JANUS_OK);
    CHECK_EQ(janus_authority_revoke(realm.table, realm.root, other), JANUS_OK);
    CHECK_EQ(janus_authority_revoke(realm.table, realm.root, other), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_cap_revoke_in(realm.table, top, top, ALICE), JANUS_OK);
    CHECK_EQ(stats_of(&realm).live, 0);
    realm_close(&realm);
}

TEST("what was derived from a released capability lives on and is still revoked from above")
{
    struct realm realm = realm_open(0);
    janus_cap    top = mint_spawn(&realm, ALICE), middle = copy_of(&realm, top, ALICE);
    janus_cap    first = copy_of(&realm, middle, ALICE), second = copy_of(&realm, middle, ALICE);
    CHECK_EQ(janus_cap_release_in(realm.table, middle, ALICE), JANUS_OK);
    CHECK_EQ(check_spawn(&realm, middle, ALICE), JANUS_CAP_STALE);
    CHECK_EQ(check_spawn(&realm, first, ALICE), JANUS_OK);
    CHECK_EQ(janus_cap_release_in(realm.table, middle, ALICE), JANUS_CAP_STALE);
    CHECK_EQ(janus_cap_release_in(realm.table, second, ALICE), JANUS_OK);
    CHECK_EQ(janus_cap_revoke_in(realm.table, first, top, ALICE), JANUS_OK);
    CHECK_EQ(check_spawn(&realm, first, ALICE), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_cap_release_in(realm.table, top, ALICE), JANUS_OK);
    CHECK_EQ(stats_of(&realm).live, 0);
    CHECK_EQ(stats_of(&realm).released, 3);
    realm_close(&realm);
}

TEST("a chain of deriving and releasing does not grow the table")
{
    struct realm realm = realm_open(0);
    janus_cap    top = mint_spawn(&realm, ALICE), cap = copy_of(&realm, top, ALICE);
    for (int i = 0; i < 10000; i++) {
        janus_cap next = copy_of(&realm, cap, ALICE);
        CHECK_EQ(janus_cap_release_in(realm.table, cap, ALICE), JANUS_OK);
        cap = next;
    }
    CHECK(stats_of(&realm).slots < 100);
    CHECK_EQ(stats_of(&realm).live, 2);
    CHECK_EQ(janus_cap_revoke_in(realm.table, cap, top, ALICE), JANUS_OK);
    realm_close(&realm);
}

TEST("a handle of a former capability never reaches the next one in its place")
{
    struct realm realm = realm_open(0);
    janus_cap    old[200];
    for (int i = 0; i < 200; i++) {
        old[i] = mint_spawn(&realm, ALICE);
        CHECK_EQ(janus_cap_revoke_in(realm.table, old[i], old[i], ALICE), JANUS_OK);
        CHECK_EQ(check_spawn(&realm, old[i], ALICE), JANUS_CAP_REVOKED);
    }
    CHECK(stats_of(&realm).slots < 100);
    int revoked = 0, stale = 0;
    for (int i = 0; i < 200; i++) {
        janus_status status = check_spawn(&realm, old[i], ALICE);
        revoked += status == JANUS_CAP_REVOKED;
        stale += status == JANUS_CAP_STALE;
    }
    CHECK_EQ(revoked + stale, 200);
    CHECK(revoked >= 64 && stale >= 100);
    realm_close(&realm);
}

TEST("a place whose generations are used up is never used again")
{
    struct realm realm = realm_open(0);
    realm.table->first_generation = UINT32_MAX - 1;
    janus_cap old[1000];
    for (int i = 0; i < 1000; i++) {
        old[i] = mint_spawn(&realm, ALICE);
        CHECK(old[i].generation >= UINT32_MAX - 1);
        CHECK_EQ(janus_cap_release_in(realm.table, old[i], ALICE), JANUS_OK);
    }
    CHECK(stats_of(&realm).retired > 400);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(check_spawn(&realm, old[i], ALICE), JANUS_CAP_STALE);
        for (int k = 0; k < i; k++) {
            CHECK(old[i].slot != old[k].slot || old[i].generation != old[k].generation);
        }
    }
    realm_close(&realm);
}

TEST("a full table refuses a capability, and has room again after a release")
{
    struct realm realm;
    janus_cap    caps[8], cap;
    CHECK_EQ(
        janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.max_caps = 8), &realm.table, &realm.root),
        JANUS_OK);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++) caps[i] = mint_spawn(&realm, ALICE);
        CHECK_EQ(janus_cap_mint_in(realm.table, realm.root, ALICE,
                                   JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = 1,
                                                   .limits = &many_tasks),
                                   &cap),
                 JANUS_FULL);
        CHECK_EQ(
            janus_cap_attenuate_in(realm.table, caps[0], ALICE, JANUS_CAP_GRANT(.rights = 1), &cap),
            JANUS_FULL);
        for (int i = 0; i < 8; i++) {
            CHECK_EQ(janus_cap_release_in(realm.table, caps[i], ALICE), JANUS_OK);
        }
    }
    CHECK(stats_of(&realm).slots <= 16);
    realm_close(&realm);
}

#if JRT_TSAN || JRT_ASAN || defined(__aarch64__)
enum { CROWD = 100000 };
#else
enum { CROWD = 1000000 };
#endif

TEST("a million capabilities, wide and deep, are revoked as one branch")
{
    struct realm realm;
    CHECK_EQ(janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.max_caps = CROWD * 2), &realm.table,
                                    &realm.root),
             JANUS_OK);
    janus_cap *caps = malloc(CROWD * sizeof *caps);
    CHECK(caps != NULL);
    caps[0] = mint_spawn(&realm, ALICE);
    for (int i = 1; i < CROWD; i++) {
        caps[i] = copy_of(&realm, caps[i < CROWD / 2 ? i - 1 : i / 3], ALICE);
    }
    for (int i = 0; i < CROWD; i += 97) CHECK_EQ(check_spawn(&realm, caps[i], ALICE), JANUS_OK);
    CHECK_EQ(stats_of(&realm).live, CROWD);
    CHECK_EQ(janus_cap_revoke_in(realm.table, caps[0], caps[0], ALICE), JANUS_OK);
    CHECK_EQ(stats_of(&realm).live, 0);
    for (int i = 0; i < CROWD; i++) {
        CHECK_EQ(check_spawn(&realm, caps[i], ALICE), JANUS_CAP_REVOKED);
    }
    free(caps);
    realm_close(&realm);
}

TEST("a task that derives without end leaves the authority a quarter of the table")
{
    struct realm realm;
    janus_cap    cap, last;
    int          derived = 0;
    CHECK_EQ(
        janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.max_caps = 64), &realm.table, &realm.root),
        JANUS_OK);
    cap = mint_spawn(&realm, ALICE);
    while (janus_cap_attenuate_in(realm.table, cap, ALICE, JANUS_CAP_GRANT(.rights = 1), &last) ==
           JANUS_OK) {
        derived++;
    }
    CHECK_EQ(derived, 47);
    for (int i = 0; i < 16; i++) (void)mint_spawn(&realm, BOB);
    realm_close(&realm);
}

/* A plain forest beside the table: parents by number, without released ones. */

enum { NODES = 600, STEPS = 20000 };

static struct {
    janus_cap cap;
    int       parent; /* -1: minted */
    bool      used, alive, ended_by_release;
} nodes[NODES];

static void forest_revoke(int victim)
{
    for (int i = 0; i < NODES; i++) {
        int up = i;
        while (up >= 0 && up != victim) up = nodes[up].parent;
        if (up == victim) nodes[i].alive = false;
    }
}

static bool forest_below(int node, int above)
{
    while (node >= 0 && node != above) node = nodes[node].parent;
    return node == above;
}

static int pick(struct jrt_rng *rng, int count)
{
    for (int tries = 0; tries < 50 && count > 0; tries++) {
        int node = (int)jrt_rng_below(rng, (uint32_t)count);
        if (nodes[node].alive) return node;
    }
    return -1;
}

static int forest_step(struct realm *realm, struct jrt_rng *rng, int count)
{
    int      node = pick(rng, count), other = pick(rng, count);
    uint32_t choice = jrt_rng_below(rng, 100);
    if (count < NODES && (node < 0 || choice < 50)) {
        nodes[count].parent = choice < 5 ? -1 : node;
        nodes[count].cap = nodes[count].parent < 0 ? mint_spawn(realm, ALICE)
                                                   : copy_of(realm, nodes[node].cap, ALICE);
        nodes[count].alive = true;
        return count + 1;
    }
    if (node >= 0 && choice < 80) {
        CHECK_EQ(janus_cap_release_in(realm->table, nodes[node].cap, ALICE), JANUS_OK);
        nodes[node].alive = false;
        nodes[node].ended_by_release = true;
    } else if (node >= 0 && other >= 0 && choice < 90) {
        bool         below = forest_below(node, other);
        janus_status status =
            janus_cap_revoke_in(realm->table, nodes[node].cap, nodes[other].cap, ALICE);
        CHECK_EQ(status, below ? JANUS_OK : JANUS_CAP_FOREIGN);
        if (below) forest_revoke(node);
    }
    return count;
}

TEST("any history of deriving, releasing and revoking agrees with a plain forest")
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct realm   realm = realm_open(0);
        struct jrt_rng rng;
        int            count = 0;
        jrt_rng_seed(&rng, seed);
        memset(nodes, 0, sizeof nodes);
        for (int i = 0; i < NODES; i++) nodes[i].parent = -1;
        for (int step = 0; step < STEPS / 10; step++) count = forest_step(&realm, &rng, count);
        uint64_t alive = 0;
        for (int i = 0; i < count; i++) {
            janus_status status = check_spawn(&realm, nodes[i].cap, ALICE);
            alive += nodes[i].alive;
            CHECK_EQ(status == JANUS_OK, nodes[i].alive);
            if (nodes[i].ended_by_release) CHECK_EQ(status, JANUS_CAP_STALE);
        }
        janus_cap_table_info stats = stats_of(&realm);
        CHECK_EQ(stats.live, alive);
        /* Every place is alive, free, or a ghost, and there are fewer ghosts than live ones. */
        uint64_t ghosts = stats.slots - stats.live - realm.table->free_count;
        CHECK(alive == 0 ? ghosts == 0 : ghosts < alive);
        realm_close(&realm);
    }
}
