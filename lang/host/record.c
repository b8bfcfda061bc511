/* SPDX-License-Identifier: MIT */
/*
 * Records are recycled without malloc. A thread keeps a short list of free records of each size. A
 * list that becomes too long goes to a shared list as a whole, and a thread without records takes
 * all of the shared list by one exchange. So there is no ABA problem: nobody takes a single record
 * from a shared list.
 */
#include "host/record.h"

#include <pthread.h>
#include <stdlib.h>

enum { SORTS = 4, KEEP_MAX = 256, LOOKS_MAX = 4 };
static const size_t sort_bytes[SORTS] = {32, 128, 512, 4096};

struct keep {
    struct jl_record *first;
    uint32_t          count;
};

static _Thread_local struct keep   keeps[SORTS];
static _Thread_local bool          is_watched; /* the thread's end gives its records back */
static _Atomic(struct jl_record *) shared[SORTS];
static pthread_key_t               end_key;
static pthread_once_t              end_once = PTHREAD_ONCE_INIT;

static void share(uint32_t sort, struct jl_record *first)
{
    struct jl_record *last = first;
    if (!first) return;
    while (last->next) last = last->next;
    last->next = atomic_load_explicit(&shared[sort], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&shared[sort], &last->next, first,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

static void give_back(void *argument)
{
    (void)argument;
    for (uint32_t sort = 0; sort < SORTS; sort++) {
        share(sort, keeps[sort].first);
        keeps[sort] = (struct keep){NULL, 0};
    }
}

static void make_key(void) { (void)pthread_key_create(&end_key, give_back); }

static void watch(void)
{
    (void)pthread_once(&end_once, make_key);
    (void)pthread_setspecific(end_key, &end_key);
    is_watched = true;
}

static struct jl_record *refill(uint32_t sort)
{
    struct keep      *keep = &keeps[sort];
    struct jl_record *record = atomic_exchange_explicit(&shared[sort], NULL, memory_order_acquire);
    if (!record) {
        record = malloc(sizeof *record + sort_bytes[sort]);
        if (record) record->sort = sort;
        return record;
    }
    keep->first = record->next;
    for (struct jl_record *at = keep->first; at; at = at->next) keep->count++;
    return record;
}

/* No call below may wait: the thread, and with it its lists, must stay the same. */
__attribute__((noinline)) static struct jl_record *take(size_t bytes)
{
    uint32_t sort = 0;
    while (sort < SORTS && sort_bytes[sort] < bytes) sort++;
    struct jl_record *record;
    if (sort == SORTS) {
        record = bytes < SIZE_MAX / 2 ? malloc(sizeof *record + bytes) : NULL;
        if (record) record->sort = SORTS;
        return record;
    }
    record = keeps[sort].first;
    if (!record) return refill(sort);
    keeps[sort].first = record->next;
    keeps[sort].count--;
    return record;
}

static void give(struct jl_record *record)
{
    if (record->sort == SORTS) {
        free(record);
        return;
    }
    struct keep *keep = &keeps[record->sort];
    if (!is_watched) watch();
    record->next = keep->first;
    keep->first = record;
    if (++keep->count < KEEP_MAX) return;
    struct jl_record *first = keep->first;
    uint32_t          sort = (uint32_t)record->sort;
    *keep = (struct keep){NULL, 0};
    share(sort, first);
}

static size_t room_of(const struct jl_record *record)
{
    return record->sort < SORTS ? sort_bytes[record->sort] : 0;
}

/* A record of a child that has ended; NULL: there is none, or it is too small. */
static struct jl_record *unused(struct jl_record *home, size_t bytes)
{
    if (!home->unused && atomic_load_explicit(&home->ended, memory_order_relaxed)) {
        home->unused = atomic_exchange_explicit(&home->ended, NULL, memory_order_acquire);
    }
    struct jl_record **at = &home->unused;
    for (int i = 0; *at && i < LOOKS_MAX; i++, at = &(*at)->next) {
        if (room_of(*at) < bytes) continue;
        struct jl_record *found = *at;
        *at = found->next;
        return found;
    }
    return NULL;
}

void *jl_record(struct jl_nursery *nursery, size_t bytes)
{
    struct jl_record *home = jl_self()->home;
    struct jl_record *record = unused(home, bytes);
    if (!record) {
        record = take(bytes);
        if (!record) jl_end_task(JANUS_NO_MEMORY, jl_scope_of(nursery)->place);
        record->next_owned = home->owned;
        home->owned = record;
    }
    record->value = NULL;
    record->owned = NULL;
    record->unused = NULL;
    atomic_store_explicit(&record->ended, NULL, memory_order_relaxed);
    return record + 1;
}

/* The record stays with the task until it ends. */
void jl_record_done(void *arguments) { (void)arguments; }

void jl_record_back(struct jl_record *home, struct jl_record *record)
{
    struct jl_record *first = atomic_load_explicit(&home->ended, memory_order_relaxed);
    do {
        record->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&home->ended, &first, record,
                                                    memory_order_release, memory_order_relaxed));
}

__attribute__((noinline)) void jl_records_free(struct jl_record *home)
{
    struct jl_record *todo = home->owned;
    home->owned = NULL;
    while (todo) {
        struct jl_record *record = todo;
        todo = record->next_owned;
        /* A task that was broken off has left its own. */
        while (record->owned) {
            struct jl_record *left = record->owned;
            record->owned = left->next_owned;
            left->next_owned = todo;
            todo = left;
        }
        give(record);
    }
}
