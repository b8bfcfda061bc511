/* SPDX-License-Identifier: MIT */
/*
 * Five races of ordinary C: no call of the library, and no check by hand, stands between the two
 * halves of each. `janusrt cc` compiles this file, and `janusrt explore` finds each race.
 * tests/sim/gallery has the same bugs with checks.
 *
 *     races NAME        the bug: exit 3 if it shows
 *     races NAME mended the same without the bug
 */
#include <janusrt/janus.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 8, WANTED = 3, HAS = 100, PRICE = 60 };

static janus_mutex lock = JANUS_MUTEX_INIT("lock");
static bool        mended;
static atomic_int  sum, left = HAS, ready, count = 5, cells[CELLS], copied[CELLS];
static atomic_bool failed;

static int  get(atomic_int *cell) { return atomic_load_explicit(cell, memory_order_relaxed); }
static void put(atomic_int *cell, int value)
{
    atomic_store_explicit(cell, value, memory_order_relaxed);
}

static void enter(void)
{
    if (mended) JANUS_EXPECT(janus_mutex_lock(&lock) == JANUS_OK);
}
static void leave(void)
{
    if (mended) (void)janus_mutex_unlock(&lock);
}

static void add_numbers(void)
{
    int so_far = get(&sum);
    for (int i = 0; i < CELLS; i++) so_far += i;
    put(&sum, so_far);
}

static void write_all(void)
{
    for (int i = 0; i < CELLS; i++) put(&cells[i], 7);
}

static void copy_all(void)
{
    for (int i = 0; i < CELLS; i++) put(&copied[i], get(&cells[i]));
}

static void use_table(void)
{
    int total = 0;
    if (!get(&ready)) {
        put(&ready, 1);
        for (int i = 0; i < CELLS; i++) put(&cells[i], i * i);
    }
    for (int i = 0; i < CELLS; i++) total += get(&cells[i]);
    if (total != 0 + 1 + 4 + 9 + 16 + 25 + 36 + 49) atomic_store(&failed, true);
}

static void remove_first(void)
{
    int most = get(&count);
    for (int i = 1; i < most; i++) put(&cells[i - 1], get(&cells[i]));
    put(&count, most - 1);
}

static void find_entry(void)
{
    bool found = false;
    for (int i = 0; i < get(&count); i++) found |= get(&cells[i]) == WANTED;
    if (!found) atomic_store(&failed, true);
}

static void buy(void)
{
    int price = 0;
    if (get(&left) < PRICE) return;
    for (int i = 0; i < 3; i++) price += PRICE / 3;
    put(&left, get(&left) - price);
}

static void no_begin(void) {}
static void begin_list(void)
{
    for (int i = 0; i < 5; i++) put(&cells[i], i);
}

static bool sum_is_wrong(void) { return get(&sum) != CELLS * (CELLS - 1); }
static bool copy_is_torn(void)
{
    for (int i = 1; i < CELLS; i++)
        if (get(&copied[i]) != get(&copied[0])) return true;
    return false;
}
static bool has_failed(void) { return atomic_load(&failed); }
static bool is_overdrawn(void) { return get(&left) < 0; }

static const struct race {
    const char *name;
    void        (*begin)(void);
    void        (*one)(void);
    void        (*other)(void);
    bool        (*wrong)(void);
} races[] = {
    {"lost_sum", no_begin, add_numbers, add_numbers, sum_is_wrong},
    {"half_copy", no_begin, write_all, copy_all, copy_is_torn},
    {"early_flag", no_begin, use_table, use_table, has_failed},
    {"moved_entry", begin_list, remove_first, find_entry, has_failed},
    {"overdraft", no_begin, buy, buy, is_overdrawn},
};

static int64_t run_half(void *argument)
{
    void (*const *half)(void) = argument;
    enter();
    (*half)();
    leave();
    return 0;
}

static int64_t run_race(void *argument)
{
    const struct race *race = argument;
    janus_nursery      n;
    race->begin();
    JANUS_EXPECT(janus_nursery_open(&n, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&n, run_half, (void *)&race->one) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&n, run_half, (void *)&race->other) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_end(&n, NULL) == JANUS_OK);
    if (race->wrong()) _Exit(3);
    return 0;
}

int main(int words, char **arguments)
{
    mended = words > 2 && strcmp(arguments[2], "mended") == 0;
    for (size_t i = 0; i < sizeof races / sizeof races[0]; i++)
        if (words > 1 && strcmp(arguments[1], races[i].name) == 0)
            return janus_run(NULL, run_race, (void *)&races[i], NULL) == JANUS_OK ? 0 : 1;
    fprintf(stderr, "races: lost_sum, half_copy, early_flag, moved_entry or overdraft\n");
    return 2;
}
