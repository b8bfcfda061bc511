/* SPDX-License-Identifier: MIT */
/*
 * Accounts: the pools that budgets come from and return to. A nursery with a budget of its own has
 * an account. A pool inside another pool is carved from it. Tasks hold shares. They spend a share
 * without visiting the account, and settle when they end.
 *
 * Any thread may call any function at any time, unless the function says otherwise. Each call locks
 * one account at a time. Budgets go by pointer: copies would be half of a call's cost. A function
 * that returns a janus_component names what was missing, and then has changed nothing. NONE means
 * success. A call holds the lock for a few dozen instructions. A task must not overflow its stack
 * while it holds a lock, so public calls reserve stack first.
 */
#ifndef JRT_BUDGET_ACCOUNT_H
#define JRT_BUDGET_ACCOUNT_H

#include "base/list.h"

#include <janusrt/budget.h>

#include <pthread.h>

/* Where the units are. [account-books] relates the columns. */
struct jrt_account_books {
    janus_budget granted;  /* all it ever got: when it opened, by grants, by minting */
    janus_budget left;     /* available here */
    janus_budget shares;   /* held by tasks that have not settled */
    janus_budget nested;   /* held by open accounts carved from this one */
    janus_budget spent;    /* consumed by tasks, also below in accounts already closed */
    janus_budget refunded; /* returned to the parent; for a root, what was left when it closed */
};

struct jrt_pool_account {
    pthread_mutex_t          lock;   /* guards everything but the parent and the sibling links */
    struct jrt_pool_account *parent; /* borrowed, outlives this account; NULL: a root */
    struct jrt_list_node     children;
    struct jrt_list_node     sibling; /* guarded by the parent's lock */
    bool                     bank; /* constant: a root that mints what it lacks, [account-bank] */
    struct jrt_account_books books;
};

/* Opens an account with `amount`, taken from `parent`. With parent NULL it makes the units. The
 * caller owns the memory and keeps it in place until jrt_account_fini. */
janus_component jrt_account_open(struct jrt_pool_account *account, struct jrt_pool_account *parent,
                                 const janus_budget *amount);

/* Opens a root that mints whatever the shares and accounts below it request, [account-bank]. */
void jrt_account_open_bank(struct jrt_pool_account *account);

/* Closes an account: `left` and `spent` go to the parent. All shares must be settled and all nested
 * accounts closed. The books can be read until jrt_account_fini. The owner calls this once. */
void jrt_account_close(struct jrt_pool_account *account);

/* Destroys a closed account. */
void jrt_account_fini(struct jrt_pool_account *account);

/* Takes a new child's share and the price of its spawn, as janus_budget_split does. */
janus_component jrt_account_split(struct jrt_pool_account *account, const janus_budget *want,
                                  janus_budget *out);

/* Undoes a split for a child that was not started. The share returns, and the spawn's price except
 * the op. */
void jrt_account_unsplit(struct jrt_pool_account *account, const janus_budget *share);

/* Takes a share of exactly `amount`, or adds it to the share that a task already has. */
janus_component jrt_account_take(struct jrt_pool_account *account, const janus_budget *amount);

/* Takes a share of up to `want`, and stores in *out how much there was. Returns whether that is
 * less. */
bool jrt_account_take_some(struct jrt_pool_account *account, const janus_budget *want,
                           janus_budget *out);

/* Ends a share: of all that was taken as `share`, `unused` returns and the rest is spent. If
 * `unused` exceeds the share, the excess is dropped. */
void jrt_account_settle(struct jrt_pool_account *account, const janus_budget *share,
                        const janus_budget *unused);

/* Spends from the account itself. */
janus_component jrt_account_charge(struct jrt_pool_account *account, const janus_budget *price);

/* An open account takes more from its parent, or returns what it does not need. */
janus_component jrt_account_grant(struct jrt_pool_account *account, const janus_budget *amount);
janus_component jrt_account_refund(struct jrt_pool_account *account, const janus_budget *amount);

/* Makes new units for implicit budgets, which replenish. Every account above grants them too. *out
 * is how many: fewer if the tree's sum would exceed UINT64_MAX. Below a bank the outermost
 * account's sum counts. A bank itself mints only for shares. */
void jrt_account_mint(struct jrt_pool_account *account, const janus_budget *amount,
                      janus_budget *out);

/* Makes new units, as jrt_account_mint, directly in a share: no other task can take them. */
void jrt_account_mint_share(struct jrt_pool_account *account, const janus_budget *amount,
                            janus_budget *out);

/* Reads all books at one moment. */
void jrt_account_read(struct jrt_pool_account *account, struct jrt_account_books *out);

/* What jrt_account_check found. */
struct jrt_account_fault {
    const struct jrt_pool_account *account;
    janus_component                component;
    const char                    *what;
};

/* Whether the books of an account and of all accounts below it balance, each alone and each with
 * its parent. For debug builds and tests, while no thread uses any of these accounts. On false,
 * *out names the account and component. */
bool jrt_account_check(struct jrt_pool_account *account, struct jrt_account_fault *out);

#endif
