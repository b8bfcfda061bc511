/* SPDX-License-Identifier: MIT */
/*
 * Capabilities. A program may pass a capability to any of its tasks, as an argument. The library's
 * handle belongs to the task that made it. So this file remembers what each capability allows, and
 * makes a handle of the same limits for another task when that task uses it. What the program must
 * not do (give a capability to untrusted code, widen it) the checker refuses.
 */
#include "host/state.h"

#include <stdlib.h>
#include <string.h>

struct jl_slot {
    struct jl_slot *next;
    janus_cap       of, mine;
};

static void lock(struct jl_world *world)
{
    while (atomic_flag_test_and_set_explicit(&world->held_lock, memory_order_acquire)) {
    }
}

static void unlock(struct jl_world *world)
{
    atomic_flag_clear_explicit(&world->held_lock, memory_order_release);
}

static bool same(janus_cap left, janus_cap right)
{
    return left.slot == right.slot && left.generation == right.generation &&
           left.nonce == right.nonce;
}

/* Entries are never freed while the program runs: channels point to them. */
static struct jl_held *find(struct jl_world *world, janus_cap cap)
{
    struct jl_held *held = world->held[cap.slot % JL_HELD];
    while (held && !same(held->cap, cap)) held = held->next;
    return held;
}

struct jl_held *jl_held_of(struct jl_world *world, janus_cap cap)
{
    lock(world);
    struct jl_held *held = find(world, cap);
    unlock(world);
    return held;
}

static void hold(struct jl_world *world, janus_cap cap, janus_cap_kind kind, uint32_t depth,
                 const janus_cap_limits *limits)
{
    struct jl_held *held = malloc(sizeof *held);
    if (!held) jl_end_task(JANUS_NO_MEMORY, 0);
    *held = (struct jl_held){.cap = cap, .kind = kind, .depth = depth, .limits = *limits};
    lock(world);
    struct jl_held **first = &world->held[cap.slot % JL_HELD];
    held->next = *first;
    *first = held;
    unlock(world);
}

void jl_held_free(struct jl_world *world)
{
    for (uint32_t i = 0; i < JL_HELD; i++) {
        for (struct jl_held *next, *held = world->held[i]; held; held = next) {
            next = held->next;
            free(held);
        }
    }
}

static janus_cap mint(const struct jl_task *self, janus_cap_kind kind, uint32_t depth,
                      const janus_cap_limits *limits, uint64_t place)
{
    janus_cap    made = {0, 0, 0};
    janus_status status = JANUS_NO_AUTHORITY;
    if (self->world->authority) {
        status = janus_cap_mint(self->world->authority, 0,
                                JANUS_CAP_GRANT(.kind = kind, .rights = JANUS_RIGHTS_ALL,
                                                .limits = limits, .delegation_depth = depth),
                                &made);
    }
    if (status != JANUS_OK) jl_end_task(status, place);
    return made;
}

janus_cap jl_cap_here(janus_cap cap)
{
    struct jl_task *self = jl_self();
    struct jl_held *held = jl_held_of(self->world, cap);
    if (!held || janus_cap_check(cap, held->kind, 0) != JANUS_CAP_FOREIGN) return cap;
    struct jl_slot *slot = self->slots;
    while (slot && !same(slot->of, cap)) slot = slot->next;
    if (slot) return slot->mine;
    slot = jl_task_memory(sizeof *slot);
    slot->of = cap;
    slot->mine = mint(self, held->kind, held->depth, &held->limits, 0);
    slot->next = self->slots;
    self->slots = slot;
    return slot->mine;
}

static uint64_t natural(int64_t number) { return number < 0 ? 0 : (uint64_t)number; }

static janus_cap_kind limits_of(enum jl_cap_kind kind, const struct jl_cap_fields *fields,
                                janus_cap_limits *out)
{
    const int64_t *n = fields->numbers;
    memset(out, 0, sizeof *out);
    switch (kind) {
    case JL_CAP_OF_SPAWN:
        out->spawn = (janus_spawn_limits){natural(n[0]), fields->budget};
        return JANUS_CAP_KIND_SPAWN;
    case JL_CAP_OF_BUDGET:
        out->budget = (janus_budget_limits){.cpu_budget = natural(n[0]),
                                            .memory_budget = natural(n[1]),
                                            .spawn_limit = natural(n[2]),
                                            .channel_budget = natural(n[3]),
                                            .syscall_budget = natural(n[4])};
        return JANUS_CAP_KIND_BUDGET;
    case JL_CAP_OF_CHANNEL:
        out->channel = (janus_channel_limits){natural(n[0]), natural(n[1])};
        return JANUS_CAP_KIND_CHANNEL;
    case JL_CAP_OF_EXECUTOR:
        out->executor = (janus_executor_limits){natural(n[0])};
        return JANUS_CAP_KIND_EXECUTOR;
    }
    return JANUS_CAP_KIND_NONE;
}

static bool fits(const janus_budget *part, const janus_budget_limits *limits)
{
    return part->ops <= limits->cpu_budget && part->memory <= limits->memory_budget &&
           part->spawn_count <= limits->spawn_limit &&
           part->channel_ops <= limits->channel_budget && part->syscalls <= limits->syscall_budget;
}

__attribute__((noreturn)) static void widens(uint64_t place)
{
    static const char text[] = "a capability can only be made narrower than the one it comes from";
    jl_panic((struct jl_text){text, sizeof text - 1}, place);
}

janus_cap jl_cap_new(enum jl_cap_kind kind, const struct jl_cap_fields *fields,
                     const janus_cap *parent, enum jl_cap_kind parent_kind, bool delegatable,
                     uint64_t place)
{
    struct jl_task  *self = jl_self();
    janus_cap_limits limits;
    janus_cap_kind   made_kind = limits_of(kind, fields, &limits);
    uint32_t         depth = delegatable ? JANUS_DELEGATION_UNLIMITED : 0;
    janus_cap        made;
    if (parent && parent_kind == kind) {
        struct jl_held *held = jl_held_of(self->world, *parent);
        if (held && depth > held->depth) widens(place);
        janus_status status =
            janus_cap_attenuate(jl_cap_here(*parent),
                                JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &limits,
                                                .delegation_depth = depth),
                                &made);
        if (status == JANUS_CAP_WIDENS) widens(place);
        if (status != JANUS_OK) jl_end_task(status, place);
    } else {
        if (parent) {
            /* A CapSpawn from a CapBudget: each child gets a part of what that one allows,
             * and there are no more children than its spawns. */
            struct jl_held *held = jl_held_of(self->world, *parent);
            if (held && (!fits(&limits.spawn.task_budget, &held->limits.budget) ||
                         limits.spawn.max_tasks > held->limits.budget.spawn_limit))
                widens(place);
        }
        made = mint(self, made_kind, depth, &limits, place);
    }
    hold(self->world, made, made_kind, depth, &limits);
    return made;
}

janus_budget jl_cap_to_budget(janus_cap cap, uint64_t place)
{
    struct jl_held *held = jl_held_of(jl_self()->world, cap);
    if (!held) jl_end_task(JANUS_CAP_STALE, place);
    return janus_budget_limits_to_budget(&held->limits.budget);
}
