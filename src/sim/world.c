/* SPDX-License-Identifier: MIT */
/*
 * A system of threads on one thread.
 *
 * Workers, helpers for blocking calls and threads of single tasks are started, sleep, wake each
 * other and are joined through plat/seam.h. On a thread that is in a world these calls come here.
 * Each thread of the world has a stack, and a copy of what the library and the language keep for
 * a thread; at most one runs. Nothing above knows: it is the same scheduler.
 *
 *     part 0     whoever entered, on its own stack: it drives the others whenever it waits
 *     part 1...  started by jrt_os_thread_start
 *
 * [sim-point]  only at a point may another part go on: where one sleeps, passes, finds a lock taken
 *   or ends, in the loop of a worker, and at the beginning of every public call. What lies between
 *   two points is one step. So an execution is the sequence of the choices made at points, and the
 *   same choices are the same execution: nothing else can differ. No address, no clock and no other
 *   thread has a say. (Threads outside of the world may wake a part. Then they decide, too, when
 *   that happens; who wants the same execution twice does without them.)
 *
 * [sim-time]  the clock stands still in a step and moves by a little at every point, so that who
 *   waits for it by asking again and again comes to an end. A task that has used up its slice has
 *   spent time, too. When all parts sleep the clock jumps to the earliest deadline.
 *
 * A part that sleeps goes on when somebody wakes its word or its deadline has come. A word that
 * changes without anybody waking it is slept through, as in the real world.
 *
 * [sim-outside]  where nobody can go on, and there is no deadline, threads outside may still wake
 *   somebody: the thread sleeps on the bell. A closed world, one that explores, gives up instead.
 *
 * [sim-own]  what belongs to a thread and not to a stack is put aside when a part is left: the
 *   library's record, the fuel word, errno, exceptions being handled.
 */
#include "sim/world.h"

#include "base/rng.h"
#include "fiber/exception.h"
#include "fiber/fuel.h"
#include "fiber/stack.h"
#include "fiber/thread.h"
#include "plat/memory.h"
#include "plat/seam.h"

#include <errno.h>
#include <string.h>

enum {
    STACK_BYTES = 512 * 1024 * JRT_STACK_FACTOR, /* of a part; blocking calls run there */
    FIRST_PARTS = 8,
};

static const uint64_t began_ns = UINT64_C(1000000000000); /* when every world begins */
static const uint64_t point_ns = 100;                     /* [sim-time] */

enum part_state {
    PART_READY,
    PART_SLEEPS,
    PART_ENDED,
};

struct part {
    struct jrt_context    context;
    struct jrt_thread     record; /* these four: while another runs, [sim-own] */
    int64_t               fuel;
    int                   error;
    struct jrt_exceptions exceptions;
    struct jrt_os_thread *thread; /* NULL: part 0 */
    char                 *stack;  /* owned; the lowest byte */
    _Atomic(uint32_t)    *word;   /* asleep: on which, */
    uint32_t              expected;
    uint64_t              deadline_ns; /* and until when */
    bool                  in_time;     /* woken, and not by its deadline */
    enum part_state       state;
    uint32_t              number;
};

struct world {
    struct jrt_world      interface; /* first */
    struct part         **parts;     /* owned; by number, ended and joined ones are gone */
    uint32_t              count, room, numbers;
    struct part          *current;
    struct part          *left;  /* who was left last, */
    bool                  spent; /* for good: its stack is free */
    uint32_t             *ready; /* owned; numbers of those that can go on, for who decides */
    uint32_t              entered;
    uint64_t              now_ns, steps, steps_max;
    struct jrt_strategy  *strategy;
    struct jrt_strategy   walk; /* where nobody else decides: */
    struct jrt_rng        random;
    struct part         **found; /* owned; scratch, for those looked for */
    struct jrt_world_run *run;   /* NULL: it is never given up */
    struct jrt_landing    landing;
    struct jrt_thread     record; /* of the thread that entered, as it was */
};

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

static struct world *of(struct jrt_world *world) { return (struct world *)world; }

/* Stacks. */

static char *stack_take(void)
{
    char *kept = jrt_spare_take(JRT_SPARE_STACK, STACK_BYTES);
    if (kept != NULL) return kept;
    char *stack = jrt_map_reserve(STACK_BYTES);
    if (stack == NULL) return NULL;
    if (jrt_map_protect(stack, jrt_page_bytes())) return stack;
    jrt_map_release(stack, STACK_BYTES);
    return NULL;
}

static void stack_give(char *stack)
{
    if (!jrt_spare_give(JRT_SPARE_STACK, stack, STACK_BYTES)) jrt_map_release(stack, STACK_BYTES);
}

/* Going from one to another. */

static void part_free(struct part *part)
{
    if (part->stack != NULL) {
        jrt_sanitizer_detach(&part->context.sanitizer, part->stack, STACK_BYTES);
        stack_give(part->stack);
    }
    free(part);
}

/* As the part that was entered: the one that was left is off the stack. */
JRT_BETWEEN_STACKS static void arrive(struct world *world)
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
    jrt_sanitizer_adopt_thread(&from->context.sanitizer); /* whichever stack it is on */
    put_aside(from);
    put_back(to);
    world->current = to;
    world->left = from;
    world->spent = for_good;
    jrt_sanitizer_leave(&from->context.sanitizer, &to->context.sanitizer, for_good);
    (void)jrt_ctx_switch(&from->context.sp, to->context.sp, 0);
    arrive(world);
}

/* Who goes on. */

/* Back to where the execution began; the stacks of all others are not used any more. */
static void give_up(struct world *world, enum jrt_world_end why)
{
    struct part *first = world->parts[0], *from = world->current;
    void        *nowhere;
    if (world->run == NULL) return;
    jrt_die_hook = NULL;
    *jrt_thread_self() = world->record;
    if (from == first) {
        world->left = NULL;
        jrt_sanitizer_unwind(__builtin_frame_address(0), world->landing.sp);
    } else {
        world->current = first;
        world->left = from;
        jrt_sanitizer_unwind(first->context.sp, world->landing.sp);
        jrt_sanitizer_adopt_thread(&from->context.sanitizer);
        jrt_sanitizer_leave(&from->context.sanitizer, &first->context.sanitizer, true);
    }
    (void)jrt_ctx_switch(&nowhere, world->landing.sp, (int)why);
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

/* All that can go on, the current one first, the others in the order of their numbers, those behind
 * it before those in front of it: so the first of the others is each in turn. */
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

/* Nobody can: on to the earliest deadline. False: there is none. */
static bool jump(struct world *world)
{
    uint64_t earliest = JRT_NEVER;
    for (uint32_t i = 0; i < world->count; i++) {
        const struct part *part = world->parts[i];
        if (part->state == PART_SLEEPS && part->deadline_ns < earliest) {
            earliest = part->deadline_ns;
        }
    }
    if (earliest == JRT_NEVER) return false;
    world->now_ns = earliest;
    if (world->run != NULL && world->now_ns - began_ns > world->run->time_max_ns) {
        give_up(world, JRT_WORLD_TOO_LATE);
    }
    return true;
}

/* Whether somebody outside has changed a word that a part sleeps on. */
static bool words_changed(struct world *world)
{
    bool changed = false;
    for (uint32_t i = 0; i < world->count; i++) {
        struct part *part = world->parts[i];
        if (part->state != PART_SLEEPS || part->word == NULL) continue;
        if (jrt_load_acquire(part->word) == part->expected) continue; /* acquire: who changed it. */
        part->state = PART_READY;
        part->in_time = true;
        changed = true;
    }
    return changed;
}

/* Nobody can, ever, unless somebody outside does something, [sim-outside]. */
static void await_bell(struct world *world)
{
    if (world->interface.closed) give_up(world, JRT_WORLD_STUCK);
    jrt_fetch_add_seq_cst(&jrt_bells, 1u); /* seq_cst: [bell]. */
    for (;;) {
        uint32_t heard = jrt_load_acquire(&jrt_bell); /* acquire: what was changed before. */
        jrt_fences_full();                            /* seq_cst: [bell]. */
        if (words_changed(world)) break;
        (void)jrt_real_wait_until(&jrt_bell, heard, JRT_NEVER);
    }
    jrt_fetch_sub_relaxed(&jrt_bells, 1u); /* relaxed: who rings for nothing does no harm. */
}

static uint32_t decide(struct world *world, enum jrt_choice kind, uint32_t count,
                       const uint32_t *who, bool must)
{
    if (count < 2) return 0;
    uint32_t chosen = world->strategy->decide(world->strategy, kind, count, who, must);
    return chosen < count ? chosen : count - 1;
}

/* Chooses who goes on, and goes there; `must`: somebody else, if anybody can. */
static void schedule(struct world *world, bool must, bool for_good)
{
    uint32_t      count = find_ready(world);
    struct part **ready = world->found;
    if (++world->steps > world->steps_max) give_up(world, JRT_WORLD_TOO_LONG);
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
    uint32_t chosen = decide(world, JRT_CHOOSE_THREAD, count - first, world->ready, must);
    go_to(world, ready[first + chosen], for_good);
}

/* What the system is asked for. */

static uint64_t now_ns(struct jrt_world *interface) { return of(interface)->now_ns; }

static void point(struct jrt_world *interface) { schedule(of(interface), false, false); }

static void pass(struct jrt_world *interface) { schedule(of(interface), true, false); }

/* Those that can go on would compute at the same time. */
static void spend(struct jrt_world *interface, uint64_t ns)
{
    struct world *world = of(interface);
    uint32_t      busy = 0;
    for (uint32_t i = 0; i < world->count; i++) busy += world->parts[i]->state == PART_READY;
    world->now_ns += ns / busy;
}

static uint32_t choose(struct jrt_world *interface, enum jrt_choice kind, uint32_t count)
{
    return decide(of(interface), kind, count, NULL, false);
}

static bool fails(struct jrt_world *interface, enum jrt_fault fault)
{
    struct jrt_strategy *strategy = of(interface)->strategy;
    interface->fault = (uint32_t)fault;
    if (!(strategy->faults & (uint32_t)fault) || strategy->faults_every == 0) return false;
    return decide(of(interface), JRT_CHOOSE_FAULT, strategy->faults_every, NULL, false) == 1;
}

static bool wait_on(struct jrt_world *interface, _Atomic(uint32_t) *word, uint32_t expected,
                    uint64_t deadline_ns)
{
    struct world *world = of(interface);
    struct part  *self = world->current;
    if (jrt_load_acquire(word) != expected) return true; /* acquire: who changed it. */
    if (deadline_ns <= world->now_ns) return false;
    if (fails(interface, JRT_FAULT_WAKE)) {
        schedule(world, false, false);
        return true;
    }
    self->word = word;
    self->expected = expected;
    self->deadline_ns = deadline_ns;
    self->in_time = true;
    self->state = PART_SLEEPS;
    schedule(world, false, false);
    self->word = NULL;
    return self->in_time;
}

static void wake(struct jrt_world *interface, _Atomic(uint32_t) *word, int count)
{
    struct world *world = of(interface);
    while (count > 0) {
        struct part **sleepers = world->found;
        uint32_t      found = 0;
        for (uint32_t i = 0; i < world->count; i++) {
            struct part *part = world->parts[i];
            if (part->state == PART_SLEEPS && part->word == word) sleepers[found++] = part;
        }
        if (found == 0) break;
        bool all = (uint32_t)count >= found;
        if (!all) sleepers[0] = sleepers[decide(world, JRT_CHOOSE_WAKE, found, NULL, false)];
        for (uint32_t i = 0; i < (all ? found : 1); i++) sleepers[i]->state = PART_READY;
        count -= all ? (int)found : 1;
        if (all) break;
    }
    if (count > 0 && !world->interface.closed) {
        jrt_real_wake(word, count);
        jrt_bell_ring();
    }
}

/* Threads. */

static void part_main(void *argument, int message)
{
    struct world *world = argument;
    struct part  *self = world->current;
    (void)message;
    arrive(world);
    self->thread->main(self->thread->argument);
    self->state = PART_ENDED;
    for (uint32_t i = 0; i < world->count; i++) { /* whoever joins it */
        struct part *part = world->parts[i];
        if (part->state == PART_SLEEPS && (void *)part->word == (void *)self) {
            part->state = PART_READY;
        }
    }
    schedule(world, false, true);
    jrt_die("invariant [sim-point] broken", "an ended thread went on", __FILE__, __LINE__);
}

static bool make_room(struct world *world)
{
    if (world->count < world->room) return true;
    uint32_t      room = world->room * 2;
    struct part **parts = realloc(world->parts, room * sizeof(struct part *));
    if (parts == NULL) return false;
    world->parts = parts;
    uint32_t *ready = realloc(world->ready, room * sizeof *ready);
    if (ready == NULL) return false;
    world->ready = ready;
    struct part **found = realloc(world->found, room * sizeof(struct part *));
    if (found == NULL) return false;
    world->found = found;
    world->room = room;
    return true;
}

/* A part without a stack, which has nothing of a thread's yet. */
static struct part *part_make(struct world *world)
{
    struct part *part = make_room(world) ? calloc(1, sizeof *part) : NULL;
    if (part == NULL) return NULL;
    const struct jrt_thread *thread = jrt_thread_self();
    part->record.altstack = thread->altstack;
    part->record.attached = thread->attached;
    part->number = world->numbers++;
    part->in_time = true;
    return part;
}

static bool start(struct jrt_world *interface, struct jrt_os_thread *thread)
{
    struct world *world = of(interface);
    if (fails(interface, JRT_FAULT_THREAD)) return false;
    struct part *part = part_make(world);
    if (part == NULL) return false;
    part->stack = stack_take();
    if (part->stack == NULL) {
        free(part);
        return false;
    }
    jrt_sanitizer_attach(&part->context.sanitizer, part->stack, STACK_BYTES);
    part->context.sp = jrt_ctx_make(part->stack + STACK_BYTES, part_main, world);
    part->thread = thread;
    thread->part = part;
    world->parts[world->count++] = part;
    return true;
}

static bool has_ended(struct jrt_world *interface, const struct jrt_os_thread *thread)
{
    return interface != NULL && ((struct part *)thread->part)->state == PART_ENDED;
}

static void end_if_empty(struct world *world);

static void join(struct jrt_world *interface, struct jrt_os_thread *thread)
{
    struct world *world = of(interface);
    struct part  *part = thread->part, *self = world->current;
    while (part->state != PART_ENDED) {
        self->word = (void *)part; /* no word, but nobody else has this address */
        self->expected = 0;
        self->deadline_ns = JRT_NEVER;
        self->state = PART_SLEEPS;
        schedule(world, false, false);
        self->word = NULL;
    }
    uint32_t at = 0;
    while (world->parts[at] != part) at++;
    memmove(&world->parts[at], &world->parts[at + 1],
            (world->count - at - 1) * sizeof(struct part *));
    world->count--;
    part_free(part);
    end_if_empty(world);
}

bool jrt_world_look(const struct jrt_world *interface, uint32_t number, struct jrt_world_view *out)
{
    const struct world *world = (const struct world *)interface;
    const struct part  *part = world->current;
    for (uint32_t i = 0; i < world->count && number != JRT_WORLD_CURRENT; i++) {
        part = world->parts[i];
        if (part->number == number) number = JRT_WORLD_CURRENT;
    }
    bool runs = part == world->current;
    *out = (struct jrt_world_view){part->number, world->steps,
                                   part->thread != NULL ? part->thread->name : "main",
                                   runs ? jrt_thread_self() : &part->record};
    return number == JRT_WORLD_CURRENT;
}

/* Entering and leaving. */

static uint32_t walk(struct jrt_strategy *strategy, enum jrt_choice kind, uint32_t count,
                     const uint32_t *who, bool must)
{
    struct world *world = (struct world *)((char *)strategy - offsetof(struct world, walk));
    (void)kind, (void)who, (void)must;
    return jrt_rng_below(&world->random, count);
}

static void world_free(struct world *world)
{
    free(world->parts);
    free(world->ready);
    free(world->found);
    free(world);
}

static void end_if_empty(struct world *world)
{
    if (world->entered > 0 || world->count > 1 || world->current->number != 0) return;
    jrt_world_here = NULL;
    free(world->current);
    world_free(world);
}

static struct world *make(void)
{
    struct world *world = calloc(1, sizeof *world);
    if (world == NULL) return NULL;
    world->room = FIRST_PARTS;
    world->parts = calloc(FIRST_PARTS, sizeof(struct part *));
    world->ready = calloc(FIRST_PARTS, sizeof *world->ready);
    world->found = calloc(FIRST_PARTS, sizeof(struct part *));
    bool         room = world->parts != NULL && world->ready != NULL && world->found != NULL;
    struct part *first = NULL;
    if (room && jrt_thread_attach(jrt_thread_self())) first = part_make(world);
    if (first == NULL) {
        world_free(world);
        return NULL;
    }
    world->parts[world->count++] = first;
    world->current = first;
    world->interface = (struct jrt_world){.now_ns = now_ns,
                                          .wait = wait_on,
                                          .wake = wake,
                                          .point = point,
                                          .pass = pass,
                                          .choose = choose,
                                          .spend = spend,
                                          .fails = fails,
                                          .start = start,
                                          .has_ended = has_ended,
                                          .join = join};
    world->now_ns = began_ns;
    world->steps_max = UINT64_MAX;
    world->walk.decide = walk;
    world->strategy = &world->walk;
    return world;
}

struct jrt_world *jrt_world_enter(uint64_t seed)
{
    if (jrt_world_here == NULL) {
        struct world *world = make();
        if (world == NULL) return NULL;
        jrt_rng_seed(&world->random, seed);
        jrt_world_note(&world->interface, seed, 0);
        jrt_world_here = &world->interface;
    }
    of(jrt_world_here)->entered++;
    return jrt_world_here;
}

void jrt_world_leave(struct jrt_world *interface)
{
    struct world *world = of(interface);
    world->entered--;
    end_if_empty(world);
}

/* One that may be given up. */

static void on_death(const char *what, const char *why, const char *file, int line)
{
    struct world *world = of(jrt_world_here);
    world->run->what = what;
    world->run->why = why;
    world->run->file = file;
    world->run->line = line;
    give_up(world, JRT_WORLD_DIED);
}

static int64_t run_main(void *argument)
{
    struct jrt_world_run *run = argument;
    run->main(run->argument);
    return 0;
}

/* Forgets all parts but the first, which is the current one. */
static void forget_others(struct world *world)
{
    while (world->count > 1) part_free(world->parts[--world->count]);
}

enum jrt_world_end jrt_world_run(struct jrt_world_run *run)
{
    jrt_contract(jrt_world_here == NULL, "a world inside another");
    struct world *world = make();
    if (world == NULL) return JRT_WORLD_REFUSED;
    world->strategy = run->strategy;
    world->steps_max = run->steps_max;
    world->interface.closed = true;
    world->interface.spare = run->spare;
    world->interface.trace = run->trace;
    world->entered = 1;
    world->run = run;
    world->record = *jrt_thread_self();
    jrt_world_here = &world->interface;
    jrt_die_hook = on_death;
    int how = jrt_ctx_call(&world->landing, run_main, run);
    jrt_die_hook = NULL;
    if (how != 0 && world->left != NULL) arrive(world);
    if (how != 0) forget_others(world);
    run->steps = world->steps;
    run->time_ns = world->now_ns - began_ns;
    run->hash = jrt_world_hash(&world->interface);
    world->entered = 0;
    end_if_empty(world);
    return (enum jrt_world_end)how;
}
