/* SPDX-License-Identifier: MIT */
/*
 * Cache lines, and other things that one core at a time uses.
 *
 * A line is owned by the core that may write it, or shared by those that have read it. To get it
 * from another core takes a transfer. While an owned line moves, it is busy, and the next core
 * waits. The owner keeps it for a moment, because the request takes time to arrive. So a few
 * instructions in a row find it still there. Copies of a shared line are handed out at the same
 * time. Cores are served in the order in which they ask. What a core does to a line is done when
 * the line has arrived.
 *
 * A store does not make its core wait for the line. It is put into the core's buffer, and done, in
 * order, when the line is there. A locked instruction, and a full fence, wait for the buffer. A
 * load waits for its line: out of order execution across a miss is left out.
 *
 * The first touch of a line costs nothing, and no cache is ever full: memory is left out.
 */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1 << 16, NEAR = 4096, AHEAD_NS = 200 };

static struct resource **table;
static size_t            table_room, table_count;
static struct resource  *near[NEAR];
static struct resource   locks[256];
static unsigned          lock_count;
static uint64_t          began, ended;

static size_t slot_of(uintptr_t key, size_t room)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (room - 1);
}

static void insert(struct resource **into, size_t room, struct resource *line)
{
    size_t slot = slot_of(line->key, room);
    while (into[slot] != NULL) slot = (slot + 1) & (room - 1);
    into[slot] = line;
}

static void grow(void)
{
    size_t            room = table_room == 0 ? FIRST_ROOM : table_room * 2;
    struct resource **bigger = calloc(room, sizeof *bigger);
    if (bigger == NULL) abort();
    for (size_t i = 0; i < table_room; i++) {
        if (table[i] != NULL) insert(bigger, room, table[i]);
    }
    free(table);
    table = bigger;
    table_room = room;
}

static struct resource *find(uintptr_t key)
{
    static struct resource *chunk;
    static size_t           left;
    if (table_count * 2 >= table_room) grow();
    size_t slot = slot_of(key, table_room);
    while (table[slot] != NULL && table[slot]->key != key) slot = (slot + 1) & (table_room - 1);
    if (table[slot] != NULL) return table[slot];
    if (left == 0) {
        left = 4096;
        chunk = calloc(left, sizeof *chunk);
        if (chunk == NULL) abort();
    }
    struct resource *line = chunk++;
    left--;
    line->key = key;
    line->owner = -1;
    table[slot] = line;
    table_count++;
    return line;
}

struct resource *machine_line(const volatile void *at)
{
    uintptr_t         key = (uintptr_t)at >> 6;
    struct resource **cached = &near[key % NEAR];
    if (*cached == NULL || (*cached)->key != key) *cached = find(key);
    return *cached;
}

static bool has(const struct resource *line, unsigned core)
{
    return (line->sharers[core / 64] >> core % 64 & 1) != 0;
}

static bool is_new(const struct resource *line)
{
    uint64_t any = 0;
    for (int i = 0; i < MACHINE_WORDS; i++) any |= line->sharers[i];
    return any == 0;
}

/* Whether the core may write the line, because it owns it, or still does. */
static bool may_write(const struct resource *line, const struct core *core)
{
    if (line->owner == (int)core->number) return true;
    for (unsigned i = 0; i < MACHINE_LOSERS; i++) {
        if (line->losers[i].core == (int)core->number + 1 && core->now < line->losers[i].until)
            return true;
    }
    return false;
}

/* The owner, if there is one, has the line until then. */
static void lose(struct resource *line, uint64_t until)
{
    if (line->owner < 0) return;
    line->losers[line->losses++ % MACHINE_LOSERS] = (struct loser){line->owner + 1, until};
}

static void own(struct resource *line, unsigned core)
{
    memset(line->sharers, 0, sizeof line->sharers);
    line->sharers[core / 64] = UINT64_C(1) << core % 64;
    line->owner = (int)core;
}

static unsigned group_of(unsigned core)
{
    uint64_t group = machine_costs.group / 1000;
    return core == 0 ? 0 : (core - 1) / (unsigned)group; /* core 0 only starts the others */
}

/* The time until the core has the line. */
static uint64_t way(const struct resource *line, unsigned core)
{
    if (line->owner >= 0) {
        bool near_by = group_of((unsigned)line->owner) == group_of(core);
        return near_by ? machine_costs.transfer : machine_costs.far;
    }
    for (unsigned i = 0; i < MACHINE_CORES; i++) {
        if (has(line, i) && group_of(i) == group_of(core)) return machine_costs.transfer;
    }
    return machine_costs.far;
}

/* To take a line from all cores that share it, the farthest must answer. */
static uint64_t way_from_all(const struct resource *line, unsigned core)
{
    if (line->owner >= 0 || machine_costs.far == machine_costs.transfer) return way(line, core);
    for (unsigned i = 0; i < MACHINE_CORES; i++) {
        if (has(line, i) && group_of(i) != group_of(core)) return machine_costs.far;
    }
    return machine_costs.transfer;
}

/* Takes the next place in the queue of the resource. Returns when it is free for this place. */
static uint64_t reserve(struct resource *resource, uint64_t from, uint64_t ps)
{
    uint64_t start = resource->free_at > from ? resource->free_at : from;
    resource->waited += start - from;
    resource->busy += ps;
    resource->moves++;
    resource->free_at = start + ps;
    lose(resource, start + machine_costs.linger);
    return start;
}

/* The word that most of the transfers were for. */
static void note(struct resource *line, const volatile void *at, const void *who)
{
    if (line->votes == 0) {
        line->what = at;
        line->who = who;
    }
    if (line->what == at) {
        line->votes++;
    } else {
        line->votes--;
    }
}

/* The buffers of stores. */

static void perform(const struct store *store)
{
    switch (store->bytes) {
    case 1: __atomic_store_n((volatile uint8_t *)store->at, (uint8_t)store->value, 5); break;
    case 2: __atomic_store_n((volatile uint16_t *)store->at, (uint16_t)store->value, 5); break;
    case 4: __atomic_store_n((volatile uint32_t *)store->at, (uint32_t)store->value, 5); break;
    default: __atomic_store_n((volatile uint64_t *)store->at, store->value, 5); break;
    }
}

/* Does the stores of a core that are due. */
static void perform_until(struct core *core, uint64_t now)
{
    unsigned done = 0;
    for (; done < core->store_count && core->stores[done].done_at <= now; done++) {
        const struct store *store = &core->stores[done];
        perform(store);
        if (store->line->storer == (int)core->number + 1) store->line->storer = 0;
    }
    core->store_count -= done;
    memmove(core->stores, core->stores + done, core->store_count * sizeof core->stores[0]);
    for (unsigned i = 0; done > 0 && i < core->store_count; i++)
        core->stores[i].line->storer = (int)core->number + 1;
}

void machine_drain(void)
{
    struct core *self = machine_self;
    if (self->drained > self->now) self->now = self->drained;
    if (self->store_count > 0) perform_until(self, self->now);
}

/* Before a core accesses a line, apply the finished stores to that line. The core waits for its own
 * pending stores. */
static void settle(const struct resource *line)
{
    if (line->storer == 0) return;
    struct core *storer = machine_core((unsigned)line->storer - 1);
    if (storer == machine_self) {
        machine_drain();
    } else {
        perform_until(storer, machine_self->now);
    }
}

/* A core that touches only its own lines gets ahead of the others, but not far. */
static void hit(void)
{
    machine_self->now += machine_costs.plain;
    if (machine_self->now > machine_horizon &&
        machine_self->now - machine_horizon > AHEAD_NS * MACHINE_NS)
        machine_behind();
}

static void read_line(struct resource *line, const volatile void *at, const void *who)
{
    struct core *self = machine_self;
    if (has(line, self->number) || may_write(line, self)) {
        hit();
        return;
    }
    if (is_new(line)) {
        own(line, self->number);
        hit();
        return;
    }
    machine_point();
    note(line, at, who);
    uint64_t ps = way(line, self->number);
    if (line->owner >= 0) {
        self->now = reserve(line, self->now, ps);
    } else if (line->free_at > self->now) { /* it was written a moment ago */
        line->waited += line->free_at - self->now;
        self->now = line->free_at;
    }
    line->owner = -1;
    line->sharers[self->number / 64] |= UINT64_C(1) << self->number % 64;
    self->now += ps + machine_costs.plain;
}

void machine_read(const volatile void *at, const void *who)
{
    struct resource *line = machine_line(at);
    if (line->storer == (int)machine_self->number + 1) machine_drain();
    read_line(line, at, who);
    if (line->storer != 0) {
        machine_point();
        settle(line);
    }
}

/* Takes the line without waiting for it. Returns when it is there. */
static uint64_t write_line(struct resource *line, const volatile void *at, const void *who)
{
    struct core *self = machine_self;
    uint64_t     from = self->now > self->drained ? self->now : self->drained;
    if (is_new(line)) own(line, self->number);
    if (may_write(line, self)) return from;
    machine_point();
    note(line, at, who);
    uint64_t ps = way_from_all(line, self->number);
    self->drained = reserve(line, from, ps) + ps;
    own(line, self->number);
    return self->drained;
}

void machine_write(const volatile void *at, const void *who)
{
    struct resource *line = machine_line(at);
    (void)write_line(line, at, who);
    if (line->storer != 0) settle(line);
    hit();
}

void machine_store(volatile void *at, uint64_t value, unsigned bytes, const void *who)
{
    struct core     *self = machine_self;
    struct resource *line = machine_line(at);
    machine_point();
    if (line->storer != 0 && line->storer != (int)self->number + 1) settle(line);
    if (self->store_count == MACHINE_STORES) machine_drain();
    uint64_t     done_at = write_line(line, at, who);
    struct store store = {line, at, value, done_at, bytes};
    self->now += machine_costs.plain;
    if (self->store_count == 0 && done_at <= self->now) {
        perform(&store);
        return;
    }
    self->stores[self->store_count++] = store;
    line->storer = (int)self->number + 1;
}

void machine_rmw(const volatile void *at, const void *who)
{
    struct core     *self = machine_self;
    struct resource *line = machine_line(at);
    machine_drain();
    machine_point();
    if (is_new(line)) own(line, self->number);
    if (may_write(line, self)) {
        self->now += machine_costs.rmw;
        if (line->storer != 0) settle(line);
        return;
    }
    note(line, at, who);
    uint64_t ps = way_from_all(line, self->number) + machine_costs.rmw;
    self->now = reserve(line, self->now, ps) + ps;
    own(line, self->number);
    machine_point();
    if (line->storer != 0) settle(line);
}

void machine_use(struct resource *resource, uint64_t ps)
{
    machine_point();
    machine_self->now = reserve(resource, machine_self->now, ps) + ps;
}

struct resource *machine_lock_of(const void *lock)
{
    for (unsigned i = 0; i < lock_count; i++) {
        if (locks[i].key == (uintptr_t)lock) return &locks[i];
    }
    struct resource *made = &locks[lock_count % 256];
    if (lock_count < 256) lock_count++;
    *made = (struct resource){.key = (uintptr_t)lock, .owner = -1};
    return made;
}

/* Findings. */

static void forget(struct resource *resource)
{
    resource->busy = resource->waited = resource->moves = resource->votes = 0;
    resource->held_since = machine_self->now;
}

void machine_begin(void)
{
    for (size_t i = 0; i < table_room; i++) {
        if (table[i] != NULL) forget(table[i]);
    }
    for (unsigned i = 0; i < lock_count; i++) forget(&locks[i]);
    began = machine_self->now;
}

void machine_end(void) { ended = machine_self->now; }

static void consider(const struct resource *resource, struct machine_finding *out, unsigned max,
                     unsigned *count)
{
    double                 time = (double)(ended - began);
    struct machine_finding found = {.busy = (double)resource->busy / time,
                                    .waited = (double)resource->waited / time};
    if (resource->busy == 0) return;
    unsigned at = *count;
    while (at > 0 && out[at - 1].busy < found.busy) at--;
    if (at == max) return;
    machine_name(resource, found.what, sizeof found.what);
    unsigned last = *count < max ? (*count)++ : max - 1;
    memmove(&out[at + 1], &out[at], (last - at) * sizeof *out);
    out[at] = found;
}

unsigned machine_findings(struct machine_finding *out, unsigned max)
{
    unsigned count = 0;
    for (size_t i = 0; i < table_room; i++) {
        if (table[i] != NULL) consider(table[i], out, max, &count);
    }
    for (unsigned i = 0; i < lock_count; i++) consider(&locks[i], out, max, &count);
    return count;
}
