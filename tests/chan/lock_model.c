/* SPDX-License-Identifier: MIT */
/*
 * The shipped lock of a channel, in all orders of all its atomic steps. Its owner enters and leaves
 * while one or two other threads come and take the ownership away. Two threads are never inside
 * together. Each thread reads what the one before wrote inside, and every thread gets in. The light
 * fence does nothing, and the heavy one is membarrier(2). Stores may come late and out of order
 * (PSO). A variant without the heavy fence shows that the model finds mistakes.
 *
 * checks: [chan-lock], [chan-bias]
 */
#include "model.h"

#include "plat/seam.h"

static bool is_zero(void *word) { return atomic_load((_Atomic(uint32_t) *)word) == 0; }
static void heavy_fence(void);

#define jrt_fence_light_seq_cst() ((void)0)
#define jrt_fence_heavy_seq_cst() heavy_fence()
#define jrt_cpu_relax() model_wait_until(is_zero, word)
#include "chan/lock.c"

static struct {
    struct jrt_chan_lock lock;
    int                  owner, other; /* their addresses are their identities */
    _Atomic(uint32_t)    within;
    _Atomic(uint32_t)    count; /* of sections; written inside */
    bool                 fenced;
    bool                 at_once; /* the others first try without waiting, as the owner does */
} world;

static void heavy_fence(void)
{
    if (world.fenced) model_membarrier();
}

static void section(const void *self, bool at_once)
{
    _Atomic(uint32_t) *held = at_once ? jrt_chan_lock_fast(&world.lock, self) : NULL;
    bool               own = held == NULL && jrt_chan_lock(&world.lock, self);
    MODEL_CHECK(jrt_fetch_add_seq_cst(&world.within, 1u) == 0); /* seq_cst: the check's own. */
    uint32_t count = jrt_load_relaxed(&world.count);            /* relaxed: the lock protects it. */
    jrt_store_relaxed(&world.count, count + 1);                 /* relaxed: the lock protects it. */
    (void)jrt_fetch_sub_seq_cst(&world.within, 1u);             /* seq_cst: the check's own. */
    if (held != NULL) {
        jrt_chan_let_go(held);
    } else {
        jrt_chan_unlock(&world.lock, own);
    }
}

static void owner(void *state, int self)
{
    (void)state, (void)self;
    section(&world.owner, true);
    section(&world.owner, false);
}

static void other(void *state, int self)
{
    (void)state, (void)self;
    section(&world.other, world.at_once);
}

static void set_up(void *state)
{
    (void)state;
    atomic_store(&world.lock.word, 0);
    atomic_store(&world.lock.busy, 0);
    atomic_store(&world.lock.owner, &world.owner);
    atomic_store(&world.within, 0);
    atomic_store(&world.count, 0);
}

static void check_two(void *state)
{
    (void)state;
    MODEL_CHECK(atomic_load(&world.count) == 3 && atomic_load(&world.lock.owner) == NULL);
}

static void check_three(void *state)
{
    (void)state;
    MODEL_CHECK(atomic_load(&world.count) == 4 && atomic_load(&world.lock.owner) == NULL);
}

TEST("an owner whose lock is taken away is never inside together with another thread")
{
    struct model_scenario two = {.name = "owner twice, another once",
                                 .setup = set_up,
                                 .bodies = {owner, other},
                                 .check = check_two,
                                 .memory = MODEL_PSO};
    world.fenced = world.at_once = true;
    model_pass(&two);
    two.memory = MODEL_TSO;
    model_pass(&two);
}

TEST("two threads that come at once take the ownership away once")
{
    struct model_scenario three = {.name = "owner twice, two others once",
                                   .setup = set_up,
                                   .bodies = {owner, other, other},
                                   .check = check_three,
                                   .memory = MODEL_SC};
    world.fenced = true;
    world.at_once = false;
    model_pass(&three);
}

TEST("the model finds that without the heavy fence both are inside")
{
    struct model_scenario two = {.name = "a light fence only",
                                 .setup = set_up,
                                 .bodies = {owner, other},
                                 .check = check_two,
                                 .memory = MODEL_TSO};
    world.fenced = false;
    model_find(&two, "within");
}
