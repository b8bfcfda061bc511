/* SPDX-License-Identifier: MIT */
/*
 * A system of threads on one thread.
 *
 * Workers, helpers for blocking calls and threads of single tasks start, sleep, wake each other and
 * are joined through plat/seam.h. On a thread that is in a world these calls come here. Each part
 * of the world has a stack, and a copy of what the library and the language keep for a thread. At
 * most one part runs. Everything above is the same scheduler and does not notice.
 *
 *     part 0     the thread that entered, on its own stack: it drives the others while it waits
 *     part 1...  started by jrt_os_thread_start
 *
 * [sim-point]  another part may run only at a point. Points are: sleeping, passing, finding a lock
 *   taken, ending, the loop of a worker, and the beginning of every public call. The code between
 *   two points is one step. So an execution is the sequence of the choices made at points, and
 *   equal choices give equal executions. No address, no clock and no other thread has an influence.
 *   Outside threads may wake a part, and then they influence when that happens. A program that
 *   needs the same execution twice does without them.
 *
 * [sim-time]  the clock stands still in a step and advances a little at every point. So a loop that
 *   polls the clock ends. A task that has used up its slice has spent time too. When all parts
 *   sleep, the clock jumps to the earliest deadline.
 *
 * A sleeping part continues when a part or thread wakes its word, or when its deadline has come. If
 * a word changes without a wake, its sleepers sleep on, as on a real system.
 *
 * [sim-outside]  if no part can run and there is no deadline, an outside thread may still wake one.
 *   The thread then sleeps on the bell. A closed world, which an explorer uses, gives up instead.
 *
 * [sim-own]  leaving a part saves what belongs to a thread and not to a stack. That is the
 * library's record, the fuel word, errno, and exceptions being handled.
 */
#include "sim/inside.h"
#include "sim/net.h"

#include <string.h>

enum { FIRST_PARTS = 8 };

static struct world *of(struct jrt_world *world) { return (struct world *)world; }

/* What plat/seam.h asks of the system. */

static uint64_t now_ns(struct jrt_world *interface) { return of(interface)->now_ns; }

static void point(struct jrt_world *interface) { jrt_world_schedule(of(interface), false, false); }

static void pass(struct jrt_world *interface) { jrt_world_schedule(of(interface), true, false); }

/* On a real system the ready parts would compute at the same time. */
static void spend(struct jrt_world *interface, uint64_t ns)
{
    struct world *world = of(interface);
    uint32_t      busy = 1; /* the part that computes */
    for (uint32_t i = 0; i < world->count; i++) {
        const struct part *part = world->parts[i];
        busy += part != world->current && part->state == PART_READY;
    }
    world->now_ns += ns / busy;
}

static uint32_t choose(struct jrt_world *interface, enum jrt_choice kind, uint32_t count)
{
    return jrt_world_decide(of(interface), kind, count, NULL, false);
}

static bool fails(struct jrt_world *interface, enum jrt_fault fault)
{
    struct jrt_strategy *strategy = of(interface)->strategy;
    interface->fault = (uint32_t)fault;
    if (!(strategy->faults & (uint32_t)fault) || strategy->faults_every == 0) return false;
    return jrt_world_decide(of(interface), JRT_CHOOSE_FAULT, strategy->faults_every, NULL, false) ==
           1;
}

static bool wait_on(struct jrt_world *interface, _Atomic(uint32_t) *word, uint32_t expected,
                    uint64_t deadline_ns)
{
    struct world *world = of(interface);
    struct part  *self = world->current;
    if (jrt_load_acquire(word) != expected) return true; /* acquire: the change of the word. */
    if (deadline_ns <= world->now_ns) return false;
    if (fails(interface, JRT_FAULT_WAKE)) {
        jrt_world_schedule(world, false, false);
        return true;
    }
    self->word = word;
    self->expected = expected;
    self->deadline_ns = deadline_ns;
    self->in_time = true;
    self->state = PART_SLEEPS;
    jrt_world_schedule(world, false, false);
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
        if (!all)
            sleepers[0] = sleepers[jrt_world_decide(world, JRT_CHOOSE_WAKE, found, NULL, false)];
        for (uint32_t i = 0; i < (all ? found : 1); i++) sleepers[i]->state = PART_READY;
        count -= all ? (int)found : 1;
        if (all) break;
    }
    if (count > 0 && !world->interface.closed && !jrt_thread_is_alone()) {
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
    jrt_part_arrive(world);
    self->thread->main(self->thread->argument);
    self->state = PART_ENDED;
    for (uint32_t i = 0; i < world->count; i++) { /* wakes the joiner */
        struct part *part = world->parts[i];
        if (part->state == PART_SLEEPS && part->joins == self) part->state = PART_READY;
    }
    jrt_world_schedule(world, false, true);
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

/* Makes a part without a stack and without a thread's data. */
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
    part->stack = jrt_part_stack();
    if (part->stack == NULL) {
        free(part);
        return false;
    }
    jrt_sanitizer_attach(&part->context.sanitizer, part->stack, JRT_PART_BYTES);
    part->context.sp = jrt_ctx_make(part->stack + JRT_PART_BYTES, part_main, world);
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
        self->joins = part;
        self->deadline_ns = JRT_NEVER;
        self->state = PART_SLEEPS;
        jrt_world_schedule(world, false, false);
        self->joins = NULL;
    }
    uint32_t at = 0;
    while (world->parts[at] != part) at++;
    memmove(&world->parts[at], &world->parts[at + 1],
            (world->count - at - 1) * sizeof(struct part *));
    world->count--;
    jrt_part_free(part);
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
    jrt_sim_close(&world->interface, true);
    jrt_world_set(NULL);
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
                                          .join = join,
                                          .net = &jrt_net_sim};
    world->now_ns = jrt_world_began_ns;
    world->max_steps = UINT64_MAX;
    world->walk.decide = walk;
    world->strategy = &world->walk;
    return world;
}

struct jrt_world *jrt_world_enter(uint64_t seed)
{
    if (jrt_world_now() == NULL) {
        struct world *world = make();
        if (world == NULL) return NULL;
        jrt_rng_seed(&world->random, seed);
        jrt_world_note(&world->interface, seed, 0);
        jrt_world_set(&world->interface);
    }
    of(jrt_world_now())->entered++;
    return jrt_world_now();
}

void jrt_world_break(struct jrt_world *interface, uint32_t faults, uint32_t every)
{
    of(interface)->walk.faults = faults;
    of(interface)->walk.faults_every = every;
}

void jrt_world_leave(struct jrt_world *interface)
{
    struct world *world = of(interface);
    world->entered--;
    end_if_empty(world);
}

/* In a world that may be given up. */

static void on_death(const char *what, const char *why, const char *file, int line)
{
    struct world *world = of(jrt_world_now());
    world->run->what = what;
    world->run->why = why;
    world->run->file = file;
    world->run->line = line;
    jrt_world_give_up(world, JRT_WORLD_DIED);
}

static int64_t run_main(void *argument)
{
    struct jrt_world_run *run = argument;
    run->main(run->argument);
    return 0;
}

/* Frees all parts but the first, which is the current one. */
static void forget_others(struct world *world)
{
    while (world->count > 1) jrt_part_free(world->parts[--world->count]);
}

/* Makes a world around the calling thread. `run` says when it is given up. */
static struct world *make_for(struct jrt_world_run *run)
{
    jrt_demand(jrt_world_now() == NULL, "a world inside another");
    struct world *world = make();
    if (world == NULL) return NULL;
    world->strategy = run->strategy;
    world->max_steps = run->max_steps;
    world->interface.closed = true;
    world->interface.spare = run->spare;
    world->interface.trace = run->trace;
    world->entered = 1;
    world->run = run;
    jrt_part_save(world);
    jrt_world_set(&world->interface);
    jrt_die_hook = on_death;
    return world;
}

void jrt_world_account(const struct world *world)
{
    world->run->steps = world->steps;
    world->run->time_ns = world->now_ns - jrt_world_began_ns;
    world->run->hash = jrt_world_hash(&world->interface);
}

bool jrt_world_begin(struct jrt_world_run *run) { return make_for(run) != NULL; }

bool jrt_world_finish(struct jrt_world_run *run)
{
    struct world *world = of(jrt_world_now());
    if (world == NULL || world->run != run || world->entered != 1 || world->count != 1) {
        return false;
    }
    jrt_die_hook = NULL;
    jrt_world_account(world);
    world->entered = 0;
    end_if_empty(world);
    return true;
}

enum jrt_world_end jrt_world_run(struct jrt_world_run *run)
{
    struct world *world = make_for(run);
    if (world == NULL) return JRT_WORLD_REFUSED;
    int how = jrt_ctx_call(&world->landing, run_main, run);
    jrt_die_hook = NULL;
    if (how != 0 && world->left != NULL) jrt_part_arrive(world);
    if (how != 0) forget_others(world);
    if (how != 0) jrt_sim_close(&world->interface, false); /* everything was left in the middle */
    jrt_world_account(world);
    world->entered = 0;
    end_if_empty(world);
    return (enum jrt_world_end)how;
}

bool jrt_world_is_elsewhere(const struct jrt_world *world)
{
    if (world == NULL || world == jrt_world_now()) return false;
    if (world->elsewhere != NULL) world->elsewhere();
    return true;
}
