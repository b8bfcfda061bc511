/* SPDX-License-Identifier: MIT */
/* Parts of a world: their stacks, the switches between them, and the choice of the next part. */
#include "fiber/fuel.h"
#include "plat/memory.h"
#include "sim/inside.h"
#include "stack/stack.h"

#include <errno.h>

static const uint64_t point_ns = 100; /* [sim-time] */

void jrt_spare_drop(struct jrt_spare *spare)
{
    for (unsigned i = 0; i < JRT_SPARES; i++) {
        if (spare->maps[i].kind == JRT_SPARE_NONE) continue;
        jrt_map_release(spare->maps[i].base, spare->maps[i].bytes);
        spare->maps[i].kind = JRT_SPARE_NONE;
    }
    if (spare->depot != NULL) jrt_depot_drop(spare->depot);
    spare->depot = NULL;
}

/* Stacks. */

char *jrt_part_stack(void)
{
    char *kept = jrt_spare_take(JRT_SPARE_STACK, JRT_PART_BYTES);
    if (kept != NULL) return kept;
    char *stack = jrt_map_reserve(JRT_PART_BYTES);
    if (stack == NULL) return NULL;
    if (jrt_map_protect(stack, jrt_page_bytes())) return stack;
    jrt_map_release(stack, JRT_PART_BYTES);
    return NULL;
}

static void stack_give(char *stack)
{
    if (!jrt_spare_give(JRT_SPARE_STACK, stack, JRT_PART_BYTES))
        jrt_map_release(stack, JRT_PART_BYTES);
}

/* Switching. */

void jrt_part_free(struct part *part)
{
    if (part->stack != NULL) {
        jrt_sanitizer_detach(&part->context.sanitizer, part->stack, JRT_PART_BYTES);
        stack_give(part->stack);
    }
    free(part);
}

JRT_BETWEEN_STACKS void jrt_part_arrive(struct world *world)
{
    jrt_sanitizer_arrive(&world->current->context.sanitizer, &world->left->context.sanitizer);
}

static void put_aside(struct part *part)
{
    part->record = *jrt_thread_self(); /* [sim-own] */
    part->fuel = jrt_fuel_get();
    part->error = errno;
    if (jrt_exceptions_exist()) part->exceptions = jrt_exceptions_take();
}

static void put_back(const struct part *part)
{
    *jrt_thread_self() = part->record; /* [sim-own] */
    jrt_fuel_set(part->fuel);
    errno = part->error;
    if (jrt_exceptions_exist()) jrt_exceptions_put(part->exceptions);
}

static void go_to(struct world *world, struct part *to, bool for_good)
{
    struct part *from = world->current;
    if (from == to) return;
    int64_t fuel = jrt_fuel_get();
    jrt_sanitizer_adopt_thread(&from->context.sanitizer); /* whatever stack it is on */
    put_aside(from);
    put_back(to);
    world->current = to;
    world->left = from;
    jrt_sanitizer_leave(&from->context.sanitizer, &to->context.sanitizer, for_good);
    (void)jrt_ctx_switch(&from->context.sp, to->context.sp, 0);
    jrt_part_arrive(world);
    jrt_debug_invariant("sim-own", world->current == from && jrt_fuel_get() == fuel);
    (void)fuel;
}

void jrt_part_save(struct world *world)
{
    world->record = *jrt_thread_self(); /* [sim-own] */
    world->fuel = jrt_fuel_get();
    if (!jrt_exceptions_exist()) return;
    world->exceptions = jrt_exceptions_take();
    jrt_exceptions_put(world->exceptions);
}

/* The next part. */

/* Returns to where the execution began. The stacks of the other parts are not used again. */
void jrt_world_give_up(struct world *world, enum jrt_world_end why)
{
    struct part *first = world->parts[0], *from = world->current;
    if (world->run == NULL) return;
    jrt_die_hook = NULL;
    jrt_world_account(world);
    if (world->run->given_up != NULL) world->run->given_up(world->run, why);
    *jrt_thread_self() = world->record; /* [sim-own] */
    jrt_fuel_set(world->fuel);
    if (jrt_exceptions_exist()) jrt_exceptions_put(world->exceptions);
    if (from == first) {
        world->left = NULL;
        jrt_sanitizer_unwind(__builtin_frame_address(0), world->landing.sp);
    } else {
        world->current = first;
        world->left = from;
        jrt_sanitizer_unwind(first->context.sp, world->landing.sp); /* frames that it left */
        jrt_sanitizer_adopt_thread(&from->context.sanitizer);
        jrt_sanitizer_leave(&from->context.sanitizer, &first->context.sanitizer, true);
    }
    /* Saved where nothing reads it. Not in this frame, which ASan may just have removed. */
    (void)jrt_ctx_switch(&from->context.sp, world->landing.sp, (int)why);
    jrt_die("invariant [sim-point] broken", "a world that was given up went on", __FILE__,
            __LINE__);
}

static bool is_ready(const struct world *world, struct part *part)
{
    if (part->state == PART_READY) return true;
    if (part->state == PART_ENDED || part->deadline_ns > world->now_ns) return false;
    part->state = PART_READY;
    part->in_time = false;
    return true;
}

/* Lists all parts that can run. The current one comes first, then the others by number, starting
 * after the current one. So taking the first other runs each part in turn. */
static uint32_t find_ready(struct world *world)
{
    uint32_t      count = 0, at = 0;
    struct part **out = world->found;
    while (world->parts[at] != world->current) at++;
    for (uint32_t i = 0; i < world->count; i++) {
        struct part *part = world->parts[at];
        if (is_ready(world, part)) out[count++] = part;
        if (++at == world->count) at = 0;
    }
    return count;
}

/* The earliest deadline of a sleeping part; JRT_NEVER: no part has one. */
static uint64_t earliest_deadline(const struct world *world)
{
    uint64_t earliest = JRT_NEVER;
    for (uint32_t i = 0; i < world->count; i++) {
        const struct part *part = world->parts[i];
        if (part->state == PART_SLEEPS && part->deadline_ns < earliest) {
            earliest = part->deadline_ns;
        }
    }
    return earliest;
}

/* If no part can run, advances the clock to the earliest deadline. False: there is no deadline. */
static bool jump(struct world *world)
{
    uint64_t earliest = earliest_deadline(world);
    if (earliest == JRT_NEVER) return false;
    uint64_t before = world->now_ns;
    if (earliest > before) world->now_ns = earliest; /* it may have come at this very point */
    jrt_debug_invariant("sim-time", world->now_ns >= before && world->now_ns >= earliest);
    if (world->run != NULL && world->now_ns - jrt_world_began_ns > world->run->max_time_ns) {
        jrt_world_give_up(world, JRT_WORLD_TOO_LATE);
    }
    return true;
}

/* Whether an outside thread changed a word that a part sleeps on. */
static bool words_changed(struct world *world)
{
    bool changed = false;
    for (uint32_t i = 0; i < world->count; i++) {
        struct part *part = world->parts[i];
        if (part->state != PART_SLEEPS || part->word == NULL) continue;
        if (jrt_load_acquire(part->word) == part->expected) continue; /* acquire: the change. */
        part->state = PART_READY;
        part->in_time = true;
        changed = true;
    }
    return changed;
}

/* No part can run until an outside thread wakes one, [sim-outside]. */
static void await_bell(struct world *world)
{
    if (world->interface.closed) jrt_world_give_up(world, JRT_WORLD_STUCK);
    jrt_debug_invariant("sim-outside", earliest_deadline(world) == JRT_NEVER);
    jrt_fetch_add_seq_cst(&jrt_bells, 1u); /* seq_cst: [bell]. */
    for (;;) {
        uint32_t heard = jrt_load_acquire(&jrt_bell); /* acquire: the changes before the ring. */
        jrt_fences_full();                            /* seq_cst: [bell]. */
        if (words_changed(world)) break;
        (void)jrt_real_wait_until(&jrt_bell, heard, JRT_NEVER);
    }
    jrt_fetch_sub_relaxed(&jrt_bells, 1u); /* relaxed: a ring too many does no harm. */
}

uint32_t jrt_world_decide(struct world *world, enum jrt_choice kind, uint32_t count,
                          const uint32_t *who, bool must)
{
    if (count < 2) return 0;
    uint32_t chosen = world->strategy->decide(world->strategy, kind, count, who, must);
    return chosen < count ? chosen : count - 1;
}

void jrt_world_schedule(struct world *world, bool must, bool for_good)
{
    uint32_t      count = find_ready(world);
    struct part **ready = world->found;
    if (++world->steps > world->max_steps) jrt_world_give_up(world, JRT_WORLD_TOO_LONG);
    world->now_ns += point_ns; /* [sim-time] */
    while (count == 0) {
        if (!jump(world)) await_bell(world);
        count = find_ready(world);
    }
    uint32_t first = must && count > 1 && ready[0] == world->current ? 1 : 0;
    if (first == 1 && world->strategy->passed != NULL) {
        world->strategy->passed(world->strategy, world->current->number);
    }
    for (uint32_t i = first; i < count; i++) world->ready[i - first] = ready[i]->number;
    uint32_t chosen = jrt_world_decide(world, JRT_CHOOSE_THREAD, count - first, world->ready, must);
    go_to(world, ready[first + chosen], for_good);
}
