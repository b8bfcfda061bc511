/* SPDX-License-Identifier: MIT */
/*
 * A worker has an allowance for each period. The worker asks for it when it runs out, and a timer
 * pays it when a period begins. Both look whether it was paid, then ask the bank, which takes a
 * while, and only then note that it was paid.
 */
#include "gallery.h"

enum { ALLOWANCE = 10 };

struct purse {
    janus_mutex lock, bank;
    uint64_t    paid_for; /* the last period that was paid for */
    int         units;
    bool        mended;
};

/* The bank serves one after the other. */
static int ask_bank(struct purse *purse)
{
    JANUS_EXPECT(janus_mutex_lock(&purse->bank) == JANUS_OK);
    (void)janus_mutex_unlock(&purse->bank);
    return ALLOWANCE;
}

/* Pays for a period, once. */
static void pay(struct purse *purse, uint64_t period)
{
    JANUS_EXPECT(janus_mutex_lock(&purse->lock) == JANUS_OK);
    bool due = purse->paid_for < period;
    if (due && purse->mended) purse->paid_for = period;
    (void)janus_mutex_unlock(&purse->lock);
    if (!due) return;
    int units = ask_bank(purse);
    JANUS_EXPECT(janus_mutex_lock(&purse->lock) == JANUS_OK);
    purse->paid_for = period;
    purse->units += units;
    (void)janus_mutex_unlock(&purse->lock);
}

static int64_t worker(void *argument)
{
    pay(argument, 1); /* it has run out */
    return 0;
}

static int64_t timer(void *argument)
{
    JANUS_EXPECT(janus_sleep(JANUS_US) == JANUS_OK);
    pay(argument, 1);
    return 0;
}

static int64_t paid_twice(void *mended)
{
    struct purse purse = {.lock = JANUS_MUTEX_INIT("purse"),
                          .bank = JANUS_MUTEX_INIT("bank"),
                          .mended = mended != NULL};
    JANUS_EXPECT(gallery_both(worker, timer, &purse) == JANUS_OK);
    JANUS_EXPECT(purse.units == ALLOWANCE);
    return 0;
}

const struct gallery_bug gallery_paid_twice = {
    "paid_twice", "the allowance of one period is paid twice: when asked for, and by the timer",
    paid_twice};
