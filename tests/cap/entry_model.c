/* SPDX-License-Identifier: MIT */
/*
 * One place of a shipped table, in all orders of all atomic steps. A check of a handle runs against
 * its revocation and against a new capability in the place, with the same holder and more rights.
 * The old handle must not be accepted for a new right, with new limits, or after the revocation has
 * returned.
 *
 * Stores may come late (TSO, as on x86) or late and out of order (PSO). Broken variants show that
 * the model finds mistakes.
 *
 * checks: [entry-state], [entry-once], [entry-read], [entry-gone], [entry-publish]
 */
#include "model.h"

#include "cap/entry.h"

#include <string.h>

#if JRT_ASAN || JRT_TSAN || JRT_DEBUG || defined(__aarch64__)
enum { SLOW = true };
#else
enum { SLOW = false };
#endif

enum { HOLDER = 7, OLD_RIGHT = 1, NEW_RIGHT = 2, OLD_NONCE = 100, NEW_NONCE = 200 };

static const janus_cap old_cap = {.slot = 0, .generation = 1, .nonce = OLD_NONCE};
static const janus_cap new_cap = {.slot = 0, .generation = 2, .nonce = NEW_NONCE};

static struct {
    struct jrt_cap_entry entry;
    uint32_t             wanted;
    bool                 state_first, fields_first; /* the broken variants */
    _Atomic(uint32_t)    returned;                  /* set when the revocation has returned */
} world;

static void set(janus_cap cap, uint32_t rights, uint64_t limit)
{
    janus_cap_limits limits = {.words = {limit, limit}};
    jrt_cap_entry_publish(&world.entry, cap.generation, cap.nonce,
                          jrt_cap_scope(JANUS_CAP_KIND_SPAWN, rights), HOLDER, &limits);
}

static void setup(void *state)
{
    (void)state;
    memset(&world.entry, 0, sizeof world.entry);
    atomic_store(&world.returned, 0);
    janus_cap_limits limits = {.words = {10, 10}};
    /* By hand: the setup is not part of the interleaving. */
    atomic_store(&world.entry.words[0], limits.words[0]);
    atomic_store(&world.entry.words[1], limits.words[1]);
    atomic_store(&world.entry.scope, jrt_cap_scope(JANUS_CAP_KIND_SPAWN, OLD_RIGHT));
    atomic_store(&world.entry.holder, HOLDER);
    atomic_store(&world.entry.nonce, OLD_NONCE);
    atomic_store(&world.entry.state, jrt_cap_state(1, JRT_CAP_LIVE));
}

static void revoke_and_reuse(void *state, int self)
{
    (void)state, (void)self;
    jrt_cap_entry_end(&world.entry, 1, JRT_CAP_REVOKED);
    if (world.fields_first) { /* as if the end were written after the new capability */
        jrt_store_relaxed(&world.returned, 1);
        return;
    }
    jrt_store_release(&world.returned, 1);
    set(new_cap, OLD_RIGHT | NEW_RIGHT, 99);
}

static struct jrt_cap_view read_entry(janus_cap_limits *limits)
{
    if (!world.state_first) return jrt_cap_entry_read(&world.entry, limits);
    struct jrt_cap_view view;
    view.state = jrt_load_acquire(&world.entry.state);
    view.nonce = jrt_load_acquire(&world.entry.nonce);
    view.scope = jrt_load_acquire(&world.entry.scope);
    view.holder = jrt_load_acquire(&world.entry.holder);
    for (int i = 0; i < JRT_CAP_WORDS; i++) {
        limits->words[i] = jrt_load_acquire(&world.entry.words[i]);
    }
    return view;
}

static void check_old(void *state, int self)
{
    (void)state, (void)self;
    janus_cap_limits    limits;
    bool                gone = jrt_load_acquire(&world.returned) != 0;
    struct jrt_cap_view view = read_entry(&limits);
    bool allowed = jrt_cap_view_allows(&view, old_cap, JANUS_CAP_KIND_SPAWN, world.wanted, HOLDER);
    if (!allowed) return;
    MODEL_CHECK(!gone);
    MODEL_CHECK(world.wanted == OLD_RIGHT);
    MODEL_CHECK(limits.words[0] == 10 && limits.words[1] == 10);
}

/* A forger that guessed the next nonce: accepted only with the whole new capability. */
static void check_new(void *state, int self)
{
    (void)state, (void)self;
    janus_cap_limits    limits;
    struct jrt_cap_view view = read_entry(&limits);
    if (!jrt_cap_view_allows(&view, new_cap, JANUS_CAP_KIND_SPAWN, NEW_RIGHT, HOLDER)) return;
    MODEL_CHECK(limits.words[0] == 99 && limits.words[1] == 99);
}

static void pass_in_every_memory(struct model_scenario scenario)
{
    for (int memory = MODEL_SC; memory <= MODEL_PSO; memory++) {
        scenario.memory = (enum model_memory)memory;
        model_pass(&scenario);
    }
}

TEST("an old handle never uses the rights, or the limits, of what came after it")
{
    struct model_scenario scenario = {
        .name = "check, revoke and reuse", .setup = setup, .bodies = {revoke_and_reuse, check_old}};
    world.wanted = OLD_RIGHT;
    pass_in_every_memory(scenario);
    world.wanted = NEW_RIGHT;
    pass_in_every_memory(scenario);
}

TEST("two checks of different handles and a reuse at the same time are correct")
{
    struct model_scenario scenario = {
        .name = "two checks", .setup = setup, .bodies = {revoke_and_reuse, check_old, check_new}};
    world.wanted = NEW_RIGHT;
    scenario.memory = SLOW ? MODEL_SC : MODEL_PSO;
    model_pass(&scenario);
}

TEST("the model finds a check that reads the state first")
{
    struct model_scenario scenario = {
        .name = "state first", .setup = setup, .bodies = {revoke_and_reuse, check_old}};
    world.state_first = true;
    world.wanted = OLD_RIGHT;
    model_find(&scenario, "limits.words[0] == 10");
    world.state_first = false;
}

TEST("the model finds a revocation that returns before its mark is seen")
{
    struct model_scenario scenario = {.name = "late mark",
                                      .setup = setup,
                                      .bodies = {revoke_and_reuse, check_old},
                                      .memory = MODEL_PSO};
    world.fields_first = true;
    world.wanted = OLD_RIGHT;
    model_find(&scenario, "!gone");
    world.fields_first = false;
}
