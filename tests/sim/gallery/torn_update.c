/* SPDX-License-Identifier: MIT */
/*
 * Two tasks add to a balance, and write a line to the log between reading and writing it. The log
 * call lets others run now and then. Then what they added is lost.
 */
#include "gallery.h"

enum { TIMES = 2 };

struct account {
    janus_mutex   lock;
    janus_channel log;
    int           balance;
    bool          mended;
};

static void deposit(struct account *account, int amount)
{
    if (account->mended) JANUS_EXPECT(janus_mutex_lock(&account->lock) == JANUS_OK);
    int balance = account->balance;
    JANUS_EXPECT(janus_channel_try_send(account->log, &balance) == JANUS_OK);
    account->balance = balance + amount;
    if (account->mended) (void)janus_mutex_unlock(&account->lock);
}

static int64_t payer(void *argument)
{
    for (int i = 0; i < TIMES; i++) deposit(argument, 10);
    return 0;
}

static int64_t torn_update(void *mended)
{
    struct account account = {.lock = JANUS_MUTEX_INIT("account"), .mended = mended != NULL};
    JANUS_EXPECT(janus_channel_create(sizeof(int), 2 * TIMES, NULL, &account.log) == JANUS_OK);
    JANUS_EXPECT(gallery_both(payer, payer, &account) == JANUS_OK);
    JANUS_EXPECT(account.balance == 2 * TIMES * 10);
    return janus_channel_destroy(account.log);
}

const struct gallery_bug gallery_torn_update = {
    "torn_update", "read, a call that may yield, write back: what came between is lost",
    torn_update};
