/* SPDX-License-Identifier: MIT */
/*
 * Where stacks come from and where they return to.
 *
 *     fiber first runs          fiber ends
 *          |                        |
 *          v      (LIFO, hot)       v
 *     +----------- cache of this worker -----------+
 *          | 16 at a time           | the 16 oldest, above 32 or CACHE_BYTES
 *          v                        v
 *     +-------------------- depot -----------------+     one lock
 *          | partly used slabs first, then idle ones, then a new one
 *          v                        v
 *       carve                    above half of idle_max: keep the tops of large stacks;
 *                                above all of it: unmap idle slabs, drop idle pages,
 *                                at once or later
 *
 * A cache gives the newest stack first, because its top page is in this core's cache. The depot
 * fills partly used slabs first, so that others become wholly idle. Only wholly idle slabs can be
 * unmapped.
 *
 * [depot-books]  idle counts the stacks on free lists. idle_bytes bounds how much of them is
 *   resident. A stack that was used since its pages were dropped counts whole. If only its lower
 *   pages were dropped, its top (JRT_WARM_BYTES) counts. The slabs' own idle_bytes add up to the
 *   depot's.
 *
 * [stack-eighth]  a task that runs in place, on top of its parent, is promised as much stack as a
 *   task that runs alone. So where tasks share stacks, each stack has an eighth more than it
 *   promises, at least a page. A child runs in place while its ancestors use no more than that
 *   eighth. Untouched memory costs only address space.
 *
 * [depot-later]  To unmap a stack that was used costs more than all else at a task's end. Other
 *   workers pay for it, too: the kernel interrupts their CPUs. So in a scheduler's depot a slab
 *   past the limit only joins `leaving`. A worker that is about to sleep returns the memory, slab
 *   by slab, and stops when it is woken. If no worker has had time for late_ns, the busy ones do
 *   it in turn, in a sixteenth of the time of one. Meanwhile a new stack comes from an idle slab
 *   of its size first. Where stacks of another size take new memory, idle slabs of several times
 *   that much are returned at once: their books are upper bounds. So the depot never holds much
 *   more than its stacks have held together since a worker last slept, or for late_ns. Where the
 *   system refuses a mapping, the idle slabs past the limit go at once, and it is asked again. A
 *   pool of fibers has no workers, so its depot does not wait.
 *
 * When a crowd of fibers ends, slab after slab becomes idle. Dropping the pages of a slab that will
 * soon be unmapped is a waste: it costs more than the unmapping. So a slab's pages are dropped only
 * after LEAVING_MAX other slabs have reached the same point, if it has not become idle
 * meanwhile. The idle stacks of that many slabs may stay warm beyond idle_max. Of large stacks only
 * the tops stay. Ordinary stacks are not cut to their tops, for the same reason: a crowd of 1000
 * would end 1.6 times as slowly.
 *
 * Every stack is used at least once between two drops of its pages. So trimming costs each use a
 * bounded share of a system call, however fibers come and go.
 *
 * Locks: depot->lock alone, and no call here takes another.
 */
#include "stack/stack.h"

#include "base/assert.h"
#include "plat/seam.h"
#include "plat/world.h"

#include <errno.h>
#include <janusrt/profile.h>
#include <string.h>

enum {
    CACHE_MAX = 32,        /* hot stacks of a class; above, the older half goes to the depot */
    CACHE_BATCH = 16,      /* stacks moved between cache and depot at once */
    CACHE_BYTES = 8 << 20, /* all classes together, as if each stack was used to its end */
    PURGE_BATCH = 16,      /* idle stacks of a slab that are worth a system call */
    LEAVING_MAX = 4,       /* about as many as threads that end a crowd at once */
    LATE_SHARE = 16,       /* of a busy worker's time, [depot-later] */
    GROWN_MAX = 4 << 20,   /* bytes past the limit before idle ones are returned, [depot-later] */
    GROWN_TIMES = 4,       /* the books of what is idle are upper bounds */
};

static const uint64_t late_ns = 1000000000; /* [depot-later] */

static const size_t smallest = JANUS_STACK_BYTES_MIN;

/* If asked to, gcc probes the stack every 64 KiB on aarch64 and every 4 KiB on x86-64. Frames up to
 * the guard's size never step over it. */
#if defined(__aarch64__)
static const size_t guard_of_small = (size_t)64 << 10;
#else
static const size_t guard_of_small = (size_t)16 << 10;
#endif
static const size_t guard_of_large = (size_t)64 << 10;
static const size_t large = (size_t)64 << 10;
static const size_t ordinary = (size_t)1 << 20; /* larger ones are always worth a system call */

static size_t guard_for(size_t stack_bytes, size_t asked, size_t page)
{
    size_t bytes = asked;
    if (bytes == 0) bytes = stack_bytes >= large ? guard_of_large : guard_of_small;
    return (bytes + page - 1) / page * page;
}

/* What a stack has beyond its promise, [stack-eighth]. */
static size_t eighth(size_t promised, size_t page)
{
    return (promised / 8 + page - 1) / page * page;
}

static bool has_eighth(const struct jrt_stack_class *class)
{
    size_t more = class->stack_bytes - class->promised_bytes;
    return more >= class->promised_bytes / 8 && more >= jrt_page_bytes();
}

janus_status jrt_depot_init(struct jrt_depot *depot, const struct jrt_depot_options *options)
{
    memset(depot, 0, sizeof *depot);
    janus_status status = jrt_ladder_open(&depot->ladder, options->guard, options->mappings_max);
    if (status != JANUS_OK) return status;
    if (pthread_mutex_init(&depot->lock, NULL) != 0) return JANUS_NO_MEMORY;
    depot->guard_bytes = options->guard_bytes;
    depot->idle_max = options->idle_bytes;
    depot->later = options->later;
    jrt_list_init(&depot->leaving);
    size_t page = jrt_page_bytes();
    for (unsigned i = 0; i < JRT_STACK_CLASSES; i++) {
        size_t bytes = smallest << i;
        if (bytes < page) bytes = page;
        jrt_stack_class_init(&depot->classes[i], bytes, options->shared ? eighth(bytes, page) : 0,
                             guard_for(bytes, options->guard_bytes, page));
        jrt_debug_invariant("stack-eighth", !options->shared || has_eighth(&depot->classes[i]));
    }
    return JANUS_OK;
}

static struct jrt_spare *spare_here(void)
{
    return jrt_world_now() != NULL ? jrt_world_now()->spare : NULL;
}

janus_status jrt_depot_open(janus_guard guard, size_t idle_bytes, struct jrt_depot **out)
{
    struct jrt_spare *spare = spare_here();
    struct jrt_depot *depot = spare != NULL ? spare->depot : NULL;
    if (depot != NULL && depot->wanted == guard && depot->idle_max == idle_bytes) {
        spare->depot = NULL;
        *out = depot;
        return JANUS_OK;
    }
    depot = jrt_malloc(sizeof *depot);
    if (depot == NULL) return JANUS_NO_MEMORY;
    const struct jrt_depot_options options = {
        .guard = guard, .idle_bytes = idle_bytes, .shared = true, .later = true};
    janus_status status = jrt_depot_init(depot, &options);
    if (status != JANUS_OK) {
        free(depot);
        return status;
    }
    depot->wanted = guard;
    *out = depot;
    return JANUS_OK;
}

void jrt_depot_drop(struct jrt_depot *depot)
{
    jrt_depot_fini(depot);
    free(depot);
}

void jrt_depot_close(struct jrt_depot *depot)
{
    struct jrt_spare *spare = spare_here();
    if (spare != NULL && spare->depot == NULL) {
        spare->depot = depot;
    } else {
        jrt_depot_drop(depot);
    }
}

unsigned jrt_stack_class_of(size_t stack_bytes)
{
    unsigned class = 0;
    while (class < JRT_STACK_CLASSES && (smallest << class) < stack_bytes) class ++;
    return class;
}

/* Moves a slab to the list that its counters require. */
static void place(struct jrt_slab *slab)
{
    struct jrt_stack_class *class = slab->class;
    struct jrt_list_node *where = &class->partial;
    if (slab->given == 0) {
        where = &class->empty;
    } else if (slab->free_list == NULL && slab->carved == class->slab_stacks) {
        where = &class->full;
    }
    if (where == slab->where) return;
    jrt_list_remove(&slab->link);
    jrt_list_push_front(where, &slab->link);
    slab->where = where;
}

/* Takes a slab off `leaving`, if it is there. */
static void stay(struct jrt_depot *depot, struct jrt_slab *slab)
{
    if (jrt_list_empty(&slab->leaving)) return;
    jrt_list_remove(&slab->leaving);
    depot->leaving_count--;
}

/* Takes an idle slab off the books. Its memory is still mapped. */
static void retire(struct jrt_depot *depot, struct jrt_slab *slab)
{
    jrt_list_remove(&slab->link);
    stay(depot, slab);
    depot->idle -= slab->carved;
    depot->idle_bytes -= slab->idle_bytes;
    depot->reserved_bytes -= slab->bytes;
    for (uint32_t i = 0; i < slab->carved; i++) depot->carved[slab->stacks[i].guard]--;
    jrt_slab_retire(slab, &depot->ladder);
}

static void release(struct jrt_depot *depot, struct jrt_slab *slab)
{
    retire(depot, slab);
    jrt_slab_unmap(slab);
}

void jrt_depot_fini(struct jrt_depot *depot)
{
    for (unsigned i = 0; i < JRT_STACK_CLASSES; i++) {
        struct jrt_stack_class *class = &depot->classes[i];
        while (!jrt_list_empty(&class->empty)) {
            release(depot, jrt_list_entry(class->empty.next, struct jrt_slab, link));
        }
        jrt_invariant("depot-books", jrt_list_empty(&class->partial));
        jrt_invariant("depot-books", jrt_list_empty(&class->full));
    }
    jrt_invariant("depot-books", depot->idle == 0 && depot->idle_bytes == 0);
    pthread_mutex_destroy(&depot->lock);
}

/* Unmaps the idle slabs that should have gone already, [depot-later]. The system refused more
 * memory. False: no slab was idle. */
__attribute__((noinline, cold)) static bool release_late(struct jrt_depot *depot)
{
    bool                  some = false;
    struct jrt_list_node *node = depot->leaving.prev;
    while (node != &depot->leaving) {
        struct jrt_slab *slab = jrt_list_entry(node, struct jrt_slab, leaving);
        node = node->prev;
        if (slab->given > 0) continue;
        release(depot, slab);
        depot->slabs_released++;
        some = true;
    }
    return some;
}

/* A slab of this class that has a stack or can carve one. NULL: the system refused. */
static struct jrt_slab *slab_to_take_from(struct jrt_depot *depot, struct jrt_stack_class *class)
{
    /* Slabs with a free stack come first, because the system may refuse carving. Few slabs have
     * none. */
    struct jrt_list_node *node = class->partial.next;
    for (; node != &class->partial; node = node->next) {
        struct jrt_slab *slab = jrt_list_entry(node, struct jrt_slab, link);
        if (slab->free_list != NULL) return slab;
    }
    if (!jrt_list_empty(&class->empty)) {
        return jrt_list_entry(class->empty.next, struct jrt_slab, link);
    }
    if (!jrt_list_empty(&class->partial)) {
        return jrt_list_entry(class->partial.next, struct jrt_slab, link);
    }
    struct jrt_slab *slab = jrt_slab_create(class);
    if (slab == NULL && release_late(depot)) slab = jrt_slab_create(class);
    if (slab == NULL) return NULL;
    depot->reserved_bytes += slab->bytes;
    place(slab);
    return slab;
}

static janus_status take_one(struct jrt_depot  *depot, struct jrt_stack_class *class,
                             struct jrt_stack **out)
{
    struct jrt_slab *slab = slab_to_take_from(depot, class);
    if (slab == NULL) return JANUS_NO_MEMORY;
    if (slab->free_list == NULL) {
        uint32_t     before = slab->carved;
        janus_status status = jrt_slab_carve(slab, &depot->ladder, depot->scratch);
        if (jrt_unlikely(status != JANUS_OK) && release_late(depot)) {
            status = jrt_slab_carve(slab, &depot->ladder, depot->scratch);
        }
        if (status != JANUS_OK) return status;
        depot->idle += slab->carved - before;
        depot->carved[slab->stacks[before].guard] += slab->carved - before;
    }
    struct jrt_stack *stack = slab->free_list;
    slab->free_list = stack->next;
    slab->given++;
    stack->free = false;
    depot->idle--;
    depot->given++;
    if (stack->warmth == JRT_COLD) {
        bool past = depot->later && depot->idle_bytes > depot->idle_max;
        if (past) depot->grown_bytes += class->stack_bytes;
    } else {
        slab->idle_warm--;
        slab->idle_bytes -= jrt_stack_idle_bytes(stack);
        depot->idle_bytes -= jrt_stack_idle_bytes(stack);
    }
    place(slab);
    *out = stack;
    return JANUS_OK;
}

static size_t purge(struct jrt_depot *depot, struct jrt_slab *slab)
{
    jrt_invariant("depot-books", depot->idle_bytes >= slab->idle_bytes);
    depot->idle_bytes -= slab->idle_bytes;
    return jrt_slab_purge(slab, depot->scratch);
}

/* Takes the slab off `leaving` that joined first. NULL: none is there. */
static struct jrt_slab *oldest_leaving(struct jrt_depot *depot)
{
    if (jrt_list_empty(&depot->leaving)) return NULL;
    struct jrt_slab *slab = jrt_list_entry(depot->leaving.prev, struct jrt_slab, leaving);
    stay(depot, slab);
    return slab;
}

/* Above the limit, unmaps an idle slab, and queues a slab with enough idle stacks. A scheduler's
 * depot queues both, see depot-later. */
static void trim_around(struct jrt_depot *depot, struct jrt_slab *slab)
{
    if (depot->idle_bytes <= depot->idle_max) return;
    if (slab->given == 0 && !depot->later) {
        release(depot, slab);
        depot->slabs_released++;
        return;
    }
    bool worth = slab->idle_warm >= PURGE_BATCH || slab->idle_warm * 2 >= slab->class->slab_stacks;
    if (slab->given > 0 && !worth) return;
    if (jrt_list_empty(&slab->leaving)) {
        jrt_list_push_front(&depot->leaving, &slab->leaving);
        depot->leaving_count++;
    }
    if (depot->later) {
        jrt_store_relaxed(&depot->over, true); /* relaxed: a hint. */
    } else if (depot->leaving_count > LEAVING_MAX) {
        struct jrt_slab *late = oldest_leaving(depot);
        if (late->idle_warm > 0) (void)purge(depot, late);
    }
}

/* Returns the memory of one slab past the limit. *more: there is more to return. Returns the bytes
 * by which the books fell. */
static size_t return_one(struct jrt_depot *depot, bool *more)
{
    struct jrt_slab *gone = NULL, *slab = NULL;
    bool             purged = false;
    jrt_debug_invariant("depot-later", depot->later); /* a pool's depot leaves nothing to others */
    jrt_lock(&depot->lock);
    size_t before = depot->idle_bytes;
    while (gone == NULL && !purged && depot->idle_bytes > depot->idle_max &&
           (slab = oldest_leaving(depot)) != NULL) {
        if (slab->given == 0) {
            retire(depot, slab);
            depot->slabs_released++;
            gone = slab;
        } else if (slab->idle_warm > 0) {
            (void)purge(depot, slab);
            purged = true;
        }
    }
    size_t returned = before - depot->idle_bytes;
    *more = depot->idle_bytes > depot->idle_max && !jrt_list_empty(&depot->leaving);
    if (!*more) {
        jrt_store_relaxed(&depot->over, false); /* relaxed, both: hints. */
        jrt_store_relaxed(&depot->due_ns, (uint64_t)0);
    }
    jrt_unlock(&depot->lock);
    if (gone != NULL) jrt_slab_unmap(gone);
    return returned;
}

bool jrt_depot_return_some(struct jrt_depot *depot)
{
    bool more;
    (void)return_one(depot, &more);
    return more;
}

/* Returns more than stacks without memory have taken past the limit, [depot-later]. */
__attribute__((noinline, cold)) static void make_up(struct jrt_depot *depot)
{
    int    error = errno; /* a task's, which goes on */
    bool   more = true;
    size_t returned = 0;
    jrt_lock(&depot->lock);
    size_t grown = depot->grown_bytes;
    depot->grown_bytes = 0;
    jrt_unlock(&depot->lock);
    while (more && returned / GROWN_TIMES < grown) returned += return_one(depot, &more);
    errno = error;
}

void jrt_depot_look_late(struct jrt_depot *depot, uint64_t now_ns)
{
    uint64_t due = jrt_load_relaxed(&depot->due_ns); /* relaxed, all: the cas chooses one worker. */
    uint64_t next = now_ns + late_ns;
    if (now_ns < due || !jrt_cas_relaxed(&depot->due_ns, &due, next) || due == 0) return;
    int  error = errno; /* a task's, which goes on */
    bool more = jrt_depot_return_some(depot);
    errno = error;
    uint64_t then = jrt_clock_now_ns();
    /* relaxed: as above. */
    if (more) jrt_store_relaxed(&depot->due_ns, then + (then - now_ns) * (LATE_SHARE - 1));
}

static void give_one(struct jrt_depot *depot, struct jrt_stack *stack)
{
    struct jrt_slab *slab = stack->slab;
    stack->next = slab->free_list;
    slab->free_list = stack;
    stack->free = true;
    slab->given--;
    slab->idle_warm++;
    slab->idle_bytes += jrt_stack_idle_bytes(stack);
    depot->idle++;
    depot->given--;
    depot->idle_bytes += jrt_stack_idle_bytes(stack);
    place(slab);
    trim_around(depot, slab);
}

janus_status jrt_stack_take(struct jrt_stack_cache *cache, struct jrt_depot *depot, unsigned class,
                            struct jrt_stack **out)
{
    struct jrt_stack *stack = cache->hot[class].newest;
    if (jrt_unlikely(stack == NULL)) {
        janus_status status = JANUS_OK;
        jrt_lock(&depot->lock);
        while (cache->hot[class].count < CACHE_BATCH && status == JANUS_OK) {
            status = take_one(depot, &depot->classes[class], &stack);
            if (status != JANUS_OK) break;
            stack->next = cache->hot[class].newest;
            cache->hot[class].newest = stack;
            cache->hot[class].count++;
            cache->bytes += depot->classes[class].stack_bytes;
            /* A stack that was never used is not fetched ahead: it would only wait here. */
            if (stack->warmth == JRT_COLD || cache->bytes >= CACHE_BYTES) break;
        }
        bool grown = depot->grown_bytes >= GROWN_MAX;
        jrt_unlock(&depot->lock);
        if (jrt_unlikely(grown)) make_up(depot);
        stack = cache->hot[class].newest;
        if (stack == NULL) return status;
    }
    cache->hot[class].newest = stack->next;
    cache->hot[class].count--;
    cache->bytes -= depot->classes[class].stack_bytes;
    *out = stack;
    return JANUS_OK;
}

/* Above half of the limit, large stacks that return keep only their tops, so that many can be kept.
 * It makes one system call for all of them, or none. */
static void lighten(struct jrt_depot *depot, const struct jrt_stack_class *class,
                    struct jrt_stack *first)
{
    struct iovec *lower = depot->scratch;
    size_t        count = 0;
    for (struct jrt_stack *stack = first; stack != NULL; stack = stack->next, count++) {
        stack->warmth = JRT_WARM;
        if (count == JRT_RANGES_MAX || class->stack_bytes <= JRT_WARM_BYTES) continue;
        lower[count] = (struct iovec){jrt_stack_low(stack), class->stack_bytes - JRT_WARM_BYTES};
    }
    bool many = depot->idle_bytes + count * class->stack_bytes > depot->idle_max / 2 &&
                class->stack_bytes > ordinary;
    if (!many || count > JRT_RANGES_MAX || class->stack_bytes <= JRT_WARM_BYTES) return;
    /* Refused for locked memory: then all of it counts as resident. */
    if (!jrt_map_discard(lower, count)) return;
    for (struct jrt_stack *stack = first; stack != NULL; stack = stack->next) {
        stack->warmth = JRT_WARM_TOP;
    }
}

/* Returns all but the `keep` newest stacks of one class to the depot. */
static void spill(struct jrt_stack_cache *cache, struct jrt_depot *depot, unsigned class,
                  uint32_t keep)
{
    struct jrt_stack **cut = &cache->hot[class].newest;
    for (uint32_t i = 0; i < keep && *cut != NULL; i++) cut = &(*cut)->next;
    struct jrt_stack *rest = *cut;
    *cut = NULL;
    if (rest == NULL) return;
    cache->bytes -= (cache->hot[class].count - keep) * depot->classes[class].stack_bytes;
    cache->hot[class].count = keep;
    jrt_lock(&depot->lock);
    lighten(depot, &depot->classes[class], rest);
    while (rest != NULL) {
        struct jrt_stack *stack = rest;
        rest = rest->next; /* the slab may be unmapped below */
        give_one(depot, stack);
    }
    jrt_unlock(&depot->lock);
}

void jrt_stack_give(struct jrt_stack_cache *cache, struct jrt_depot *depot, unsigned class,
                    struct jrt_stack *stack)
{
    stack->next = cache->hot[class].newest;
    cache->hot[class].newest = stack;
    cache->bytes += depot->classes[class].stack_bytes;
    if (jrt_unlikely(++cache->hot[class].count > CACHE_MAX || cache->bytes > CACHE_BYTES)) {
        spill(cache, depot, class, cache->hot[class].count / 2);
    }
    if (jrt_unlikely(cache->bytes > CACHE_BYTES)) spill(cache, depot, class, 0);
}

void jrt_stack_cache_flush(struct jrt_stack_cache *cache, struct jrt_depot *depot)
{
    for (unsigned i = 0; i < JRT_STACK_CLASSES; i++) spill(cache, depot, i, 0);
}

size_t jrt_depot_trim(struct jrt_depot *depot, size_t keep_bytes)
{
    size_t dropped = 0;
    jrt_lock(&depot->lock);
    for (unsigned i = 0; i < JRT_STACK_CLASSES; i++) {
        struct jrt_stack_class *class = &depot->classes[i];
        while (!jrt_list_empty(&class->empty) &&
               (depot->idle_bytes > keep_bytes || keep_bytes == 0)) {
            struct jrt_slab *slab = jrt_list_entry(class->empty.next, struct jrt_slab, link);
            dropped += slab->idle_bytes;
            release(depot, slab);
            depot->slabs_released++;
        }
        struct jrt_list_node *node = class->partial.next;
        for (; node != &class->partial && depot->idle_bytes > keep_bytes; node = node->next) {
            dropped += purge(depot, jrt_list_entry(node, struct jrt_slab, link));
        }
    }
    jrt_unlock(&depot->lock);
    return dropped;
}

void jrt_depot_stats(struct jrt_depot *depot, janus_scheduler_stacks_info *out)
{
    jrt_lock(&depot->lock);
    out->stacks_used = depot->given;
    out->stacks_idle = depot->idle;
    out->idle_bytes = depot->idle_bytes;
    out->max_idle_bytes = depot->idle_max;
    out->stacks_marker = depot->carved[JANUS_GUARD_MARKER];
    out->stacks_mprotect = depot->carved[JANUS_GUARD_MPROTECT];
    out->stacks_canary = depot->carved[JANUS_GUARD_CANARY];
    out->reserved_bytes = depot->reserved_bytes;
    out->slabs_released = depot->slabs_released;
    out->guard = jrt_ladder_next(&depot->ladder);
    jrt_unlock(&depot->lock);
}
