/* SPDX-License-Identifier: MIT */
/*
 * Cores: their clocks, and which runs next.
 *
 * A core has the thread-local storage of a real thread, the donor, which waits until the core has
 * ended. So a switch changes the stack and the base of that storage. Then everything is right that
 * the library, the language and the C library keep for a thread.
 *
 * The cores that can run, and those that sleep with a deadline, are in a heap by their clocks.
 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum { CORE_STACK = 1 << 20 };

struct machine_costs machine_costs;
bool                 machine_on;
struct core         *machine_self;
uint64_t             machine_horizon = MACHINE_NEVER;

static struct core *cores[MACHINE_CORES];
static unsigned     core_count;
static struct core *heap[MACHINE_CORES];
static unsigned     heap_count;

static void die(const char *what)
{
    (void)fprintf(stderr, "scale: %s\n", what);
    abort();
}

/* The heap. */

static bool before(const struct core *left, const struct core *right)
{
    if (left->now != right->now) return left->now < right->now;
    return left->number < right->number;
}

static void put(struct core *core, unsigned at)
{
    heap[at] = core;
    core->at = at;
}

static void rise(unsigned at)
{
    struct core *core = heap[at];
    while (at > 0 && before(core, heap[(at - 1) / 2])) {
        put(heap[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    put(core, at);
}

static void sink(unsigned at)
{
    struct core *core = heap[at];
    for (;;) {
        unsigned child = 2 * at + 1;
        if (child >= heap_count) break;
        if (child + 1 < heap_count && before(heap[child + 1], heap[child])) child++;
        if (before(core, heap[child])) break;
        put(heap[child], at);
        at = child;
    }
    put(core, at);
}

static void horizon_set(void) { machine_horizon = heap_count > 0 ? heap[0]->now : MACHINE_NEVER; }

static void heap_add(struct core *core)
{
    core->queued = true;
    put(core, heap_count++);
    rise(core->at);
    horizon_set();
}

static void heap_remove(struct core *core)
{
    struct core *last = heap[--heap_count];
    core->queued = false;
    if (last != core) {
        put(last, core->at);
        rise(last->at);
        sink(last->at);
    }
    horizon_set();
}

/* Switching. */

void scale_switch(void **save, void *to, uintptr_t base);
__asm__(".text\n.globl scale_switch\n.type scale_switch, @function\n"
        "scale_switch:\n\t"
        "push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
        "mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\twrfsbase %rdx\n\t"
        "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n"
        ".size scale_switch, . - scale_switch\n");

static void run_next(void)
{
    struct core *from = machine_self;
    if (heap_count == 0) die("no core can run");
    struct core *to = heap[0];
    heap_remove(to);
    if (to->state == CORE_SLEEPS) {
        to->late = true;
        to->state = CORE_READY;
    }
    if (to == from) return;
    machine_self = to;
    scale_switch(&from->sp, to->sp, to->base);
}

void machine_behind(void)
{
    heap_add(machine_self);
    run_next();
}

bool machine_sleep(uint64_t deadline)
{
    struct core *self = machine_self;
    uint64_t     now = self->now;
    if (deadline <= now) return false;
    self->state = CORE_SLEEPS;
    self->late = false;
    self->now = deadline;
    if (deadline != MACHINE_NEVER) heap_add(self);
    run_next();
    self->word = NULL;
    self->set = -1;
    self->joins = NULL;
    return !self->late;
}

void machine_wake(struct core *core, uint64_t when)
{
    if (core->state != CORE_SLEEPS) return;
    if (core->queued) heap_remove(core);
    core->state = CORE_READY;
    core->now = when;
    core->word = NULL; /* one wake ends one sleep */
    core->set = -1;
    heap_add(core);
}

unsigned machine_disturb(uint64_t ps)
{
    unsigned running = 0;
    for (unsigned i = 0; i < core_count; i++) {
        struct core *core = cores[i];
        if (core == machine_self || core->state != CORE_READY) continue;
        core->now += ps;
        running++;
        sink(core->at);
    }
    horizon_set();
    return running;
}

/* Starting and ending. */

struct core *machine_core(unsigned number) { return number < core_count ? cores[number] : NULL; }

static uintptr_t base_now(void)
{
    uintptr_t base;
    __asm__ volatile("rdfsbase %0" : "=r"(base));
    return base;
}

static struct core *core_make(void)
{
    struct core *core = calloc(1, sizeof *core);
    if (core == NULL || core_count == MACHINE_CORES) die("too many cores");
    core->number = core_count;
    core->set = -1;
    cores[core_count++] = core;
    return core;
}

void machine_start(const struct machine_costs *costs)
{
    if ((getauxval(AT_HWCAP2) & 2) == 0) die("the system does not allow wrfsbase");
    machine_costs = *costs;
    machine_self = core_make();
    machine_self->base = base_now();
    machine_self->now = MACHINE_NS * 1000000000; /* no clock begins with 0 */
    machine_on = true;
}

static void core_main(void)
{
    struct core *self = machine_self;
    self->result = self->main(self->argument);
    self->state = CORE_ENDED;
    for (unsigned i = 0; i < core_count; i++) {
        if (cores[i]->state == CORE_SLEEPS && cores[i]->joins == self)
            machine_wake(cores[i], self->now + machine_costs.woken);
    }
    run_next();
    die("an ended core went on");
}

struct donation {
    struct core *core;
    sem_t        ready;
};

static void *donate(void *argument)
{
    struct donation *donation = argument;
    struct core     *core = donation->core;
    core->base = base_now();
    (void)sem_post(&donation->ready);
    while (sem_wait(&core->over) != 0) continue;
    return NULL;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*main)(void *), void *argument);

struct core *machine_start_core(void *(*main)(void *argument), void *argument)
{
    struct core    *core = core_make();
    struct donation donation = {.core = core};
    (void)sem_init(&core->over, 0, 0);
    (void)sem_init(&donation.ready, 0, 0);
    if (__real_pthread_create(&core->donor, NULL, donate, &donation) != 0) die("no thread");
    while (sem_wait(&donation.ready) != 0) continue;
    char *stack = mmap(NULL, CORE_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) die("no memory");
    core->main = main;
    core->argument = argument;
    void **top = (void **)(void *)(stack + CORE_STACK - 64);
    *--top = NULL; /* the return address of core_main; keeps its stack aligned */
    *--top = (void *)core_main;
    for (int i = 0; i < 6; i++) *--top = NULL;
    core->sp = top;
    core->now = machine_self->now + machine_costs.woken;
    heap_add(core);
    return core;
}

void machine_join(struct core *core)
{
    while (core->state != CORE_ENDED) {
        machine_self->joins = core;
        (void)machine_sleep(MACHINE_NEVER);
    }
}
