/* SPDX-License-Identifier: MIT */
/* A forger's corpus: whatever bits are tried, only handles that were given out work. */
#include "realm.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>

#if JRT_TSAN || JRT_ASAN || defined(__aarch64__)
enum { TRIES = 200000 };
#else
enum { TRIES = 1000000 };
#endif
enum { CAPS = 1000 };

static struct realm realm;
static janus_cap    good[CAPS]; /* even ones are alive, odd ones released */

static void prepare(void)
{
    realm = realm_open(0);
    for (int i = 0; i < CAPS; i++) good[i] = mint_spawn(&realm, ALICE);
    for (int i = 1; i < CAPS; i += 2) {
        CHECK_EQ(janus_cap_release_in(realm.table, good[i], ALICE), JANUS_OK);
    }
    for (int i = 0; i < CAPS / 4; i++) (void)mint_spawn(&realm, BOB); /* in some of the places */
}

static bool same(janus_cap left, janus_cap right)
{
    return left.slot == right.slot && left.generation == right.generation &&
           left.nonce == right.nonce;
}

/* Tried with every call. No call may accept it. */
static void attempt(janus_cap forged)
{
    janus_cap      out;
    janus_cap_info info = JANUS_CAP_INFO();
    janus_status   status = jrt_cap_check(realm.table, forged, JANUS_CAP_KIND_SPAWN, 0, ALICE);
    CHECK(status == JANUS_CAP_FORGED || status == JANUS_CAP_STALE || status == JANUS_NO_SPAWN_CAP);
    CHECK(janus_cap_inspect_in(realm.table, forged, ALICE, &info) < 0);
    CHECK(janus_cap_attenuate_in(realm.table, forged, ALICE, JANUS_CAP_GRANT(.rights = 1), &out) <
          0);
    CHECK(janus_cap_revoke_in(realm.table, forged, good[0], ALICE) < 0);
    CHECK(janus_cap_revoke_in(realm.table, good[0], forged, ALICE) < 0);
    CHECK(janus_cap_release_in(realm.table, forged, ALICE) < 0);
    CHECK(janus_authority_revoke(realm.table, realm.root, forged) < 0);
}

TEST("random handles are never accepted")
{
    struct jrt_rng rng;
    prepare();
    jrt_rng_seed(&rng, 1);
    for (int i = 0; i < TRIES; i++) {
        janus_cap forged = {.slot = (uint32_t)jrt_rng_next(&rng),
                            .generation = (uint32_t)jrt_rng_next(&rng),
                            .nonce = jrt_rng_next(&rng)};
        if (i % 2 == 0) forged.slot %= 2 * CAPS; /* places that exist */
        if (i % 4 == 0) forged.generation = 1 + forged.generation % 2;
        CHECK(jrt_cap_check(realm.table, forged, JANUS_CAP_KIND_SPAWN, 0, ALICE) < 0);
        if (i % 8 == 0) attempt(forged);
    }
    janus_cap_table_info stats = stats_of(&realm);
    CHECK(stats.refused_forged + stats.refused_stale >= TRIES);
    CHECK_EQ(stats.live, CAPS / 2 + CAPS / 4);
    realm_close(&realm);
}

TEST("a handle with any bit changed, or any two, is never accepted")
{
    prepare();
    for (int first = 0; first < 128; first++) {
        for (int second = first; second < 128; second++) {
            unsigned char bytes[sizeof(janus_cap)];
            janus_cap     forged;
            memcpy(bytes, &good[(first * 2) % CAPS], sizeof bytes);
            bytes[first / 8] ^= (unsigned char)(1 << first % 8);
            if (second != first) bytes[second / 8] ^= (unsigned char)(1 << second % 8);
            memcpy(&forged, bytes, sizeof forged);
            attempt(forged);
        }
    }
    realm_close(&realm);
}

TEST("parts of good handles do not make another good handle")
{
    struct jrt_rng rng;
    prepare();
    jrt_rng_seed(&rng, 2);
    for (int i = 0; i < TRIES / 4; i++) {
        janus_cap a = good[jrt_rng_below(&rng, CAPS)], b = good[jrt_rng_below(&rng, CAPS)];
        janus_cap forged = {.slot = a.slot, .generation = a.generation, .nonce = b.nonce};
        if (same(forged, a)) continue;
        CHECK(jrt_cap_check(realm.table, forged, JANUS_CAP_KIND_SPAWN, 0, ALICE) < 0);
    }
    realm_close(&realm);
}

TEST("stale handles, handles of other holders and of other tables are never accepted")
{
    prepare();
    struct realm other = realm_open(0);
    for (int i = 0; i < CAPS; i++) (void)mint_spawn(&other, ALICE);
    for (int i = 0; i < CAPS; i++) {
        if (i % 2 == 1) {
            CHECK_EQ(check_spawn(&realm, good[i], ALICE), JANUS_CAP_STALE);
            attempt(good[i]);
        } else {
            CHECK_EQ(check_spawn(&realm, good[i], ALICE), JANUS_OK);
            CHECK_EQ(check_spawn(&realm, good[i], BOB), JANUS_CAP_FOREIGN);
        }
        CHECK_EQ(check_spawn(&other, good[i], ALICE), JANUS_CAP_FORGED);
    }
    realm_close(&other);
    realm_close(&realm);
}

TEST("nonces do not repeat and look random")
{
    prepare();
    int ones = 0;
    for (int i = 0; i < CAPS; i++) {
        CHECK(good[i].nonce != 0);
        ones += __builtin_popcountll(good[i].nonce);
        for (int k = 0; k < i; k++) CHECK(good[i].nonce != good[k].nonce);
    }
    /* 64000 tosses: ten standard deviations are 1265. */
    CHECK(ones > 32000 - 1265 && ones < 32000 + 1265);
    CHECK_EQ(realm.table->nonces[JRT_CAP_NONCES - 1], 0); /* given out, wiped */
    realm_close(&realm);
}

/* A write beyond the places ends the process and does not change the table. */
static void write_before_the_places(void *argument)
{
    (void)argument;
    volatile char *places = (volatile char *)realm.table->entries;
    places[-1] = 1;
}

TEST("a wild write just before the table hits a guard")
{
    int status;
    prepare();
    (void)harness_child(write_before_the_places, NULL, &status);
    CHECK(status != 0);
    realm_close(&realm);
}
