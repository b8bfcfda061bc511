/* SPDX-License-Identifier: MIT */
/*
 * Two tasks add up their part of an array. Each takes the sum so far, adds its numbers in a loop,
 * and writes the sum back. A task that is stopped in the loop forgets what the other has added.
 */
#include "gallery.h"

enum { NUMBERS = 8 };

struct sums {
    janus_mutex lock;
    atomic_int  sum;
    bool        mended;
};

static int64_t adder(void *argument)
{
    struct sums *sums = argument;
    if (sums->mended) JANUS_EXPECT(janus_mutex_lock(&sums->lock) == JANUS_OK);
    int sum = atomic_load_explicit(&sums->sum, memory_order_relaxed);
    for (int i = 0; i < NUMBERS; i++) {
        janus_check_or_end(1);
        sum += i;
    }
    atomic_store_explicit(&sums->sum, sum, memory_order_relaxed);
    if (sums->mended) (void)janus_mutex_unlock(&sums->lock);
    return 0;
}

static int64_t lost_sum(void *mended)
{
    struct sums sums = {.lock = JANUS_MUTEX_INIT("sums"), .mended = mended != NULL};
    JANUS_EXPECT(gallery_both(adder, adder, &sums) == JANUS_OK);
    JANUS_EXPECT(atomic_load(&sums.sum) == NUMBERS * (NUMBERS - 1));
    return 0;
}

const struct gallery_bug gallery_lost_sum = {
    "lost_sum", "a sum is read before a loop and written after it: what came between is lost",
    lost_sum};
