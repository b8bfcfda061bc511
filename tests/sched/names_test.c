/* SPDX-License-Identifier: MIT */
/* The table of names against a list that is searched from end to end. Includes the code itself, so
 * that the test can refuse it memory. */
#include "harness.h"
#include "plat/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int allocations_left = -1; /* negative: no limit */

static void *limited_calloc(size_t count, size_t bytes)
{
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return calloc(count, bytes);
}

#define jrt_calloc limited_calloc
#include "sched/names.c"
#undef jrt_calloc

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { STEPS = 20000, MANY = 2000, ROUNDS = 300 };
#else
enum { STEPS = 200000, MANY = 20000, ROUNDS = 3000 };
#endif

static struct jrt_names names_new(void)
{
    struct jrt_names names;
    CHECK(jrt_names_init(&names));
    return names;
}

static janus_status put(struct jrt_names *names, const char *name, uint64_t value)
{
    return jrt_names_put(names, name, (uint64_t[2]){value, ~value});
}

static void drop(struct jrt_names *names, const char *name, uint64_t value)
{
    jrt_names_drop(names, name, (uint64_t[2]){value, ~value});
}

/* The value of a name; 0: it is not there. */
static uint64_t find(struct jrt_names *names, const char *name)
{
    uint64_t out[2] = {7, 7};
    if (!jrt_names_find(names, name, out)) {
        CHECK_EQ(out[0], 7); /* untouched */
        return 0;
    }
    CHECK_EQ(out[1], ~out[0]);
    return out[0];
}

static const char *number(unsigned i)
{
    static _Thread_local char text[JRT_NAME_BYTES];
    (void)snprintf(text, sizeof text, "name.%u", i);
    return text;
}

TEST("a name stands for its value until it is dropped, and takes no memory before the first")
{
    struct jrt_names names = names_new();
    CHECK(names.slots == NULL);
    CHECK_EQ(find(&names, "db"), 0);
    drop(&names, "db", 1);
    CHECK_EQ(put(&names, "db", 1), JANUS_OK);
    CHECK_EQ(put(&names, "db.main", 2), JANUS_OK);
    CHECK_EQ(find(&names, "db"), 1);
    CHECK_EQ(find(&names, "db.main"), 2);
    CHECK_EQ(find(&names, "d"), 0);
    CHECK_EQ(put(&names, "db", 3), JANUS_EXISTS);
    CHECK_EQ(find(&names, "db"), 1);
    drop(&names, "db", 1);
    CHECK_EQ(find(&names, "db"), 0);
    CHECK_EQ(put(&names, "db", 3), JANUS_OK);
    CHECK_EQ(find(&names, "db"), 3);
    drop(&names, "db", 3);
    drop(&names, "db.main", 2);
    jrt_names_fini(&names);
}

TEST("a drop removes a name only if both words of the value are the same")
{
    struct jrt_names names = names_new();
    CHECK_EQ(put(&names, "web", 1), JANUS_OK);
    drop(&names, "web", 2);
    jrt_names_drop(&names, "web", (uint64_t[2]){1, 1});
    jrt_names_drop(&names, "web", (uint64_t[2]){0, ~UINT64_C(1)});
    CHECK_EQ(find(&names, "web"), 1);
    drop(&names, "web", 1);
    CHECK_EQ(names.count, 0);
    jrt_names_fini(&names);
}

TEST("a name has up to 63 bytes, of any value, and all of them count")
{
    struct jrt_names names = names_new();
    char             name[JRT_NAME_BYTES], other[JRT_NAME_BYTES];
    memset(name, 0xff, sizeof name);
    name[JRT_NAME_BYTES - 1] = '\0';
    memcpy(other, name, sizeof name);
    other[JRT_NAME_BYTES - 2] = 1;
    CHECK_EQ(put(&names, name, 1), JANUS_OK);
    CHECK_EQ(put(&names, other, 2), JANUS_OK);
    CHECK_EQ(find(&names, name), 1);
    CHECK_EQ(find(&names, other), 2);
    drop(&names, name, 1);
    drop(&names, other, 2);
    jrt_names_fini(&names);
}

static void put_too_long(void *argument)
{
    struct jrt_names names = names_new();
    char             name[JRT_NAME_BYTES + 1];
    (void)argument;
    memset(name, 'x', sizeof name);
    name[JRT_NAME_BYTES] = '\0';
    (void)put(&names, name, 1);
}

static void put_nothing(void *argument)
{
    struct jrt_names names = names_new();
    (void)argument;
    (void)put(&names, "", 1);
}

static void fini_with_a_name(void *argument)
{
    struct jrt_names names = names_new();
    (void)argument;
    (void)put(&names, "left", 1);
    jrt_names_fini(&names);
}

static void put_unreserved(void *argument)
{
    struct jrt_names names = names_new();
    (void)argument;
    (void)jrt_names_put_reserved(&names, "name", (uint64_t[2]){1, 2});
}

TEST("an empty or longer name, a name at the end, and a place that is not reserved are bugs")
{
    static void (*const bugs[])(void *) = {put_too_long, put_nothing, fini_with_a_name,
                                           put_unreserved};
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        int status = 0;
        (void)harness_child(bugs[i], NULL, &status);
        CHECK(status != 0);
    }
}

/* Size. */

TEST("the table grows with its names, and shrinks to its first slots when they are dropped")
{
    struct jrt_names names = names_new();
    size_t           largest = 0;
    for (unsigned i = 1; i <= MANY; i++) {
        CHECK_EQ(put(&names, number(i), i), JANUS_OK);
        CHECK(names.count <= names.capacity / 4 * 3);
    }
    largest = names.capacity;
    CHECK(largest >= MANY && largest < 4 * (size_t)MANY);
    for (unsigned i = 1; i <= MANY; i++) CHECK_EQ(find(&names, number(i)), i);
    for (unsigned i = 1; i <= MANY; i++) {
        drop(&names, number(i), i);
        CHECK(names.capacity == CAPACITY_MIN || names.count >= names.capacity / 8);
        if (i < MANY) CHECK_EQ(find(&names, number(MANY)), MANY);
    }
    CHECK_EQ(names.count, 0);
    CHECK_EQ(names.capacity, CAPACITY_MIN);
    jrt_names_fini(&names);
}

TEST("without memory a put changes nothing, a drop still works, and the put may be tried again")
{
    struct jrt_names names = names_new();
    allocations_left = 0;
    CHECK_EQ(put(&names, "first", 1), JANUS_NO_MEMORY);
    CHECK_EQ(find(&names, "first"), 0);
    allocations_left = 1;
    for (unsigned i = 1; i <= 12; i++) CHECK_EQ(put(&names, number(i), i), JANUS_OK);
    CHECK_EQ(put(&names, number(13), 13), JANUS_NO_MEMORY);
    CHECK_EQ(put(&names, number(12), 13), JANUS_EXISTS);
    drop(&names, number(12), 12);
    CHECK_EQ(put(&names, number(13), 13), JANUS_OK);
    allocations_left = 3;
    for (unsigned i = 14; i <= 90; i++) CHECK_EQ(put(&names, number(i), i), JANUS_OK);
    for (unsigned i = 1; i <= 90; i++) drop(&names, number(i), i); /* no halving is possible */
    CHECK_EQ(names.count, 0);
    CHECK_EQ(names.capacity, 128);
    allocations_left = -1;
    jrt_names_fini(&names);
}

TEST("a put into a reserved place needs no memory, and nobody else takes the place")
{
    struct jrt_names names = names_new();
    for (int i = 0; i < 5; i++) CHECK(jrt_names_reserve(&names));
    allocations_left = 0;
    for (unsigned i = 1; i <= 7; i++) CHECK_EQ(put(&names, number(i), i), JANUS_OK);
    CHECK_EQ(put(&names, number(8), 8), JANUS_NO_MEMORY);
    CHECK(!jrt_names_reserve(&names));
    for (unsigned i = 8; i <= 11; i++) {
        CHECK_EQ(jrt_names_put_reserved(&names, number(i), (uint64_t[2]){i, ~(uint64_t)i}),
                 JANUS_OK);
    }
    CHECK_EQ(jrt_names_put_reserved(&names, number(3), (uint64_t[2]){9, 9}), JANUS_EXISTS);
    CHECK_EQ(find(&names, number(3)), 3);
    CHECK_EQ(put(&names, number(12), 12), JANUS_OK); /* the place came back */
    for (unsigned i = 1; i <= 12; i++) {
        CHECK_EQ(find(&names, number(i)), i);
        drop(&names, number(i), i);
    }
    allocations_left = -1;
    jrt_names_fini(&names);
}

TEST("reserved places keep the table large, and it shrinks when they are given back")
{
    struct jrt_names names = names_new();
    for (int i = 0; i < 100; i++) CHECK(jrt_names_reserve(&names));
    CHECK_EQ(names.capacity, 256);
    CHECK_EQ(put(&names, "one", 1), JANUS_OK);
    drop(&names, "one", 1);
    CHECK_EQ(names.capacity, 256);
    for (int i = 0; i < 100; i++) jrt_names_unreserve(&names);
    CHECK_EQ(names.capacity, CAPACITY_MIN);
    jrt_names_fini(&names);
}

/* Chains. */

TEST("names with the same home, also around the table's end, are found after every drop")
{
    enum { CHAIN = 8 };
    struct jrt_names names = names_new();
    unsigned         chain[CHAIN], found = 0;
    size_t           home = CAPACITY_MIN - 3; /* the chain goes on at the first slot */
    for (unsigned i = 1; found < CHAIN; i++) {
        if ((hash_of(&names, number(i)) & (CAPACITY_MIN - 1)) - home < 2) chain[found++] = i;
    }
    for (unsigned first = 0; first < CHAIN; first++) {
        for (unsigned i = 0; i < CHAIN; i++) {
            CHECK_EQ(put(&names, number(chain[i]), i + 1), JANUS_OK);
        }
        for (unsigned gone = 0; gone < CHAIN; gone++) {
            unsigned victim = (first + gone * 3) % CHAIN;
            drop(&names, number(chain[victim]), victim + 1);
            CHECK(is_whole(&names));
            CHECK_EQ(names.count, CHAIN - gone - 1);
        }
    }
    jrt_names_fini(&names);
}

TEST("two tables order the same names differently")
{
    struct jrt_names one = names_new(), two = names_new();
    int              same = 0;
    for (unsigned i = 0; i < 64; i++) {
        same += hash_of(&one, number(i)) == hash_of(&two, number(i));
    }
    CHECK_EQ(same, 0);
    jrt_names_fini(&one);
    jrt_names_fini(&two);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

TEST("after any puts, drops and reservations the table holds what a list holds")
{
    enum { NAMES = 300 };
    static uint64_t  list[NAMES]; /* the value of each name; 0: it is not there */
    struct jrt_names names = names_new();
    uint64_t         random = 42;
    size_t           count = 0;
    for (uint64_t step = 1; step <= STEPS; step++) {
        /* Most names are used for a while, then few, so that the table grows and shrinks. */
        unsigned range = step / 1000 % 2 == 0 ? NAMES : 10;
        unsigned i = (unsigned)(random_next(&random) % range);
        bool     there = list[i] != 0;
        switch (random_next(&random) % 4) {
        case 0: CHECK_EQ(put(&names, number(i), step), there ? JANUS_EXISTS : JANUS_OK); break;
        case 1:
            CHECK(jrt_names_reserve(&names));
            CHECK_EQ(jrt_names_put_reserved(&names, number(i), (uint64_t[2]){step, ~step}),
                     there ? JANUS_EXISTS : JANUS_OK);
            break;
        default:
            i = (unsigned)(random_next(&random) % NAMES);
            there = true; /* nothing is put */
            drop(&names, number(i), list[i] + random_next(&random) % 2);
            if (list[i] != 0 && find(&names, number(i)) == 0) list[i] = 0, count--;
            break;
        }
        if (!there) list[i] = step, count++;
        CHECK_EQ(find(&names, number(i)), list[i]);
        CHECK_EQ(names.count, count);
    }
    for (unsigned i = 0; i < NAMES; i++) {
        CHECK_EQ(find(&names, number(i)), list[i]);
        if (list[i] != 0) drop(&names, number(i), list[i]);
    }
    jrt_names_fini(&names);
}

/* Threads. */

enum { THREADS = 4, SHARED = 50 };

static struct jrt_names shared;
static atomic_ulong     holders[SHARED], put_often;

static void *take_names(void *argument)
{
    uint64_t me = (uint64_t)(uintptr_t)argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned     i = (round * (unsigned)me) % SHARED;
        const char  *name = number(i);
        uint64_t     out[2];
        janus_status status = put(&shared, name, me);
        if (status != JANUS_OK) {
            CHECK_EQ(status, JANUS_EXISTS);
            drop(&shared, name, me); /* another thread's: it stays */
            if (jrt_names_find(&shared, name, out)) CHECK_EQ(out[1], ~out[0]);
            continue;
        }
        CHECK_EQ(atomic_exchange(&holders[i], me), 0);
        CHECK_EQ(find(&shared, name), me);
        CHECK_EQ(atomic_exchange(&holders[i], 0), me);
        drop(&shared, name, me);
        atomic_fetch_add(&put_often, 1);
    }
    return NULL;
}

TEST("of several threads that put a name one gets it, and keeps it until it drops the name")
{
    pthread_t threads[THREADS];
    CHECK(jrt_names_init(&shared));
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, take_names, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK(atomic_load(&put_often) > 0);
    CHECK_EQ(shared.count, 0);
    jrt_names_fini(&shared);
}
