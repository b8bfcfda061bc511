/* SPDX-License-Identifier: MIT */
/*
 * Two transfers between the same accounts in opposite directions. Each locks the account it takes
 * from, then the account it gives to. Each may have one lock and want the other's.
 */
#include "gallery.h"

struct bank {
    janus_mutex locks[2];
    int         balances[2];
    bool        mended;
};

static int64_t transfer(struct bank *bank, int from, int to)
{
    bool         swap = bank->mended && from > to; /* always the lower one first */
    janus_mutex *first = &bank->locks[swap ? to : from];
    janus_mutex *second = &bank->locks[swap ? from : to];
    janus_status status = janus_mutex_lock(first);
    if (status < JANUS_OK) return status;
    status = janus_mutex_lock(second);
    if (status >= JANUS_OK) {
        bank->balances[from] -= 10;
        bank->balances[to] += 10;
        (void)janus_mutex_unlock(second);
    }
    (void)janus_mutex_unlock(first);
    return status;
}

static int64_t there(void *argument) { return transfer(argument, 0, 1); }
static int64_t back(void *argument) { return transfer(argument, 1, 0); }

static int64_t lock_order(void *mended)
{
    struct bank bank = {
        .locks = {JANUS_MUTEX_INIT("left"), JANUS_MUTEX_INIT("right")},
        .balances = {100, 100},
        .mended = mended != NULL,
    };
    janus_status status = gallery_both(there, back, &bank);
    JANUS_EXPECT(status != JANUS_OK || bank.balances[0] == 100);
    return status;
}

const struct gallery_bug gallery_lock_order = {"lock_order", "two locks, taken in two orders",
                                               lock_order};
