/* SPDX-License-Identifier: MIT */
/*
 * The shipped lock of a channel, in all orders of all its atomic steps. Its owner enters and leaves
 * while one or two other threads come and take the ownership away. One of them may become the owner
 * in turn. Two threads are never inside together. Each thread reads what the one before wrote
 * inside, and every thread gets in, also threads that are inside two locks. The light fence does
 * nothing, and the heavy one is membarrier(2). Stores may come late and out of order (PSO). A
 * variant without the heavy fence shows that the model finds mistakes.
 *
 * checks: [chan-lock], [chan-bias], [bias-slot]
 */
#include "model.h"

#include "plat/seam.h"
#include "sched/bias.h"

static bool changed(void *word);
static void heavy_fence(void);

#define jrt_fence_light_seq_cst() ((void)0)
#define jrt_fence_heavy_seq_cst() heavy_fence()
#define jrt_cpu_relax() model_wait_until(changed, word)
#include "chan/lock.c"

enum { LOCKS = 2 };

static struct {
    struct jrt_chan_lock locks[LOCKS];
    struct jrt_bias      owner, other, third;
    _Atomic(uint32_t)    within[LOCKS];
    _Atomic(uint32_t)    count[LOCKS]; /* of sections; written inside */
    bool                 fenced;
    bool                 at_once; /* the others first try without waiting, as the owner does */
    bool                 adopts;  /* the holder of the word becomes the owner */
} world;

/* A word or a slot that a thread waits for is 0 again. */
static bool changed(void *word) { return atomic_load((_Atomic(uint32_t) *)word) == 0; }

static void heavy_fence(void)
{
    if (world.fenced) model_membarrier();
}

static void inside(int i)
{
    MODEL_CHECK(jrt_fetch_add_seq_cst(&world.within[i], 1u) == 0); /* seq_cst: the check's own. */
    uint32_t count = jrt_load_relaxed(&world.count[i]); /* relaxed: the lock protects it. */
    jrt_store_relaxed(&world.count[i], count + 1);      /* relaxed: the lock protects it. */
    (void)jrt_fetch_sub_seq_cst(&world.within[i], 1u);  /* seq_cst: the check's own. */
}

static void section(struct jrt_bias *self, bool at_once)
{
    struct jrt_chan_lock *lock = &world.locks[0];
    _Atomic(uint32_t)    *held = at_once ? jrt_chan_lock_fast(lock, self) : NULL;
    bool own = held != NULL ? jrt_chan_lock_owned(lock, held) : jrt_chan_lock(lock, self);
    inside(0);
    if (world.adopts && !own) jrt_chan_lock_adopt(lock, self);
    jrt_chan_unlock(lock, own ? self : NULL);
}

/* As a select does. */
static void both(struct jrt_bias *self)
{
    bool own[LOCKS];
    for (int i = 0; i < LOCKS; i++) own[i] = jrt_chan_lock_more(&world.locks[i], self);
    for (int i = 0; i < LOCKS; i++) inside(i);
    for (int i = 0; i < LOCKS; i++) jrt_chan_unlock(&world.locks[i], own[i] ? self : NULL);
}

static void owner(void *state, int self)
{
    (void)state, (void)self;
    section(&world.owner, true);
    section(&world.owner, false);
}

static void owner_once(void *state, int self)
{
    (void)state, (void)self;
    section(&world.owner, true);
}

static void owner_of_both(void *state, int self)
{
    (void)state, (void)self;
    both(&world.owner);
}

static void other(void *state, int self)
{
    (void)state, (void)self;
    section(&world.other, world.at_once);
}

static void other_twice(void *state, int self)
{
    (void)state, (void)self;
    section(&world.other, true);
    section(&world.other, true);
}

static void other_of_both(void *state, int self)
{
    (void)state, (void)self;
    both(&world.other);
}

static void other_of_second(void *state, int self)
{
    (void)state, (void)self;
    bool own = jrt_chan_lock(&world.locks[1], &world.other);
    inside(1);
    jrt_chan_unlock(&world.locks[1], own ? &world.other : NULL);
}

static void third(void *state, int self)
{
    (void)state, (void)self;
    section(&world.third, world.at_once);
}

static void set_up(void *state)
{
    (void)state;
    for (int i = 0; i < LOCKS; i++) {
        atomic_store(&world.locks[i].word, 0);
        atomic_store(&world.locks[i].owner, &world.owner);
        atomic_store(&world.within[i], 0);
        atomic_store(&world.count[i], 0);
    }
    atomic_store(&world.owner.inside, 0);
    atomic_store(&world.other.inside, 0);
    atomic_store(&world.third.inside, 0);
    world.adopts = false;
}

static void set_up_adopting(void *state)
{
    set_up(state);
    world.adopts = true;
}

static void check_three(void *state)
{
    (void)state;
    MODEL_CHECK(atomic_load(&world.count[0]) == 3);
    MODEL_CHECK(world.adopts || atomic_load(&world.locks[0].owner) == NULL);
}

static void check_four(void *state)
{
    (void)state;
    MODEL_CHECK(atomic_load(&world.count[0]) == 4);
    MODEL_CHECK(world.adopts || atomic_load(&world.locks[0].owner) == NULL);
}

static void check_both(void *state)
{
    (void)state;
    for (int i = 0; i < LOCKS; i++) MODEL_CHECK(atomic_load(&world.count[i]) == 2);
}

static void check_second(void *state)
{
    (void)state;
    MODEL_CHECK(atomic_load(&world.count[0]) == 1 && atomic_load(&world.count[1]) == 2);
}

TEST("an owner whose lock is taken away is never inside together with another thread")
{
    struct model_scenario two = {.name = "owner twice, another once",
                                 .setup = set_up,
                                 .bodies = {owner, other},
                                 .check = check_three,
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
                                   .bodies = {owner, other, third},
                                   .check = check_four,
                                   .memory = MODEL_SC};
    world.fenced = true;
    world.at_once = false;
    model_pass(&three);
}

TEST("ownership passes from thread to thread, and two are never inside together")
{
    struct model_scenario two = {.name = "owner once, another twice, the holder of the word adopts",
                                 .setup = set_up_adopting,
                                 .bodies = {owner_once, other_twice},
                                 .check = check_three,
                                 .memory = MODEL_PSO};
    world.fenced = world.at_once = true;
    model_pass(&two);
    struct model_scenario three = {.name =
                                       "owner once, two others once, the holder of the word adopts",
                                   .setup = set_up_adopting,
                                   .bodies = {owner_once, other, third},
                                   .check = check_three,
                                   .memory = MODEL_SC};
    model_pass(&three);
}

TEST("threads that are inside two locks do not wait for each other")
{
    struct model_scenario two = {.name = "owner of both and another, inside both",
                                 .setup = set_up,
                                 .bodies = {owner_of_both, other_of_both},
                                 .check = check_both,
                                 .memory = MODEL_TSO};
    world.fenced = true;
    model_pass(&two);
    struct model_scenario one = {.name = "owner of both inside both, another inside the second",
                                 .setup = set_up,
                                 .bodies = {owner_of_both, other_of_second},
                                 .check = check_second,
                                 .memory = MODEL_TSO};
    model_pass(&one);
}

TEST("the model finds that without the heavy fence both are inside")
{
    struct model_scenario two = {.name = "a light fence only",
                                 .setup = set_up,
                                 .bodies = {owner, other},
                                 .check = check_three,
                                 .memory = MODEL_TSO};
    world.fenced = false;
    model_find(&two, "within");
}
