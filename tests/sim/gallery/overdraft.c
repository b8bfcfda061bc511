/* SPDX-License-Identifier: MIT */
/*
 * Two tasks buy from one wallet. Each looks whether there is enough, computes the price in a loop,
 * and pays. If one is stopped in the loop, both have looked before either has paid.
 */
#include "gallery.h"

enum { HAS = 100, PRICE = 60, DIGITS = 3 };

struct wallet {
    janus_mutex lock;
    atomic_int  left;
    bool        mended;
};

static int price_of(int price)
{
    int sum = 0;
    for (int i = 0; i < DIGITS; i++) {
        janus_check_or_end(1);
        sum += price / DIGITS;
    }
    return sum;
}

static int64_t buyer(void *argument)
{
    struct wallet *wallet = argument;
    if (wallet->mended) JANUS_EXPECT(janus_mutex_lock(&wallet->lock) == JANUS_OK);
    if (atomic_load_explicit(&wallet->left, memory_order_relaxed) >= PRICE) {
        int price = price_of(PRICE);
        atomic_fetch_sub_explicit(&wallet->left, price, memory_order_relaxed);
    }
    if (wallet->mended) (void)janus_mutex_unlock(&wallet->lock);
    return 0;
}

static int64_t overdraft(void *mended)
{
    struct wallet wallet = {
        .lock = JANUS_MUTEX_INIT("wallet"), .left = HAS, .mended = mended != NULL};
    JANUS_EXPECT(gallery_both(buyer, buyer, &wallet) == JANUS_OK);
    JANUS_EXPECT(atomic_load(&wallet.left) >= 0);
    return 0;
}

const struct gallery_bug gallery_overdraft = {
    "overdraft", "a limit is checked before a loop, and used after it", overdraft};
