/* SPDX-License-Identifier: MIT */
/*
 * Accounts: the pools that budgets come from and go back to. A nursery with a budget of its own has
 * one; a pool inside another is carved from it. Tasks hold shares: they spend them alone, without
 * coming here, and settle at their end.
 *
 * All functions may be called by any thread at any time, unless they say otherwise; each locks one
 * account at a time. Budgets go by pointer: at this rate the copies would be half the cost.
 * Who returns a janus_component says what was missing, and then nothing happened; NONE is success.
 * A lock is held for a few dozen instructions; a task must not overflow its stack there, so public
 * calls make sure of some stack first, as they do before every lock.
 */
#ifndef JRT_BUDGET_ACCOUNT_H
#define JRT_BUDGET_ACCOUNT_H

#include "base/list.h"

#include <janusrt/budget.h>

#include <pthread.h>

/* Where the units are: see [account-books]. */
struct jrt_account_books {
    janus_budget granted;  /* all it ever got: at its opening, by grants, by minting */
    janus_budget left;     /* here */
    janus_budget shares;   /* with tasks that have not settled */
    janus_budget nested;   /* with accounts carved from this one and still open */
    janus_budget spent;    /* gone; what tasks and closed accounts below have spent too */
    janus_budget refunded; /* returned to the parent, or for a root, left at its closing */
};

struct jrt_pool_account {
    pthread_mutex_t          lock;   /* guards all but the parent and the sibling links */
    struct jrt_pool_account *parent; /* borrowed, outlives us; NULL: a root */
    struct jrt_list_node     children;
    struct jrt_list_node     sibling; /* the parent's lock */
    bool                     bank;    /* constant: a root that never lacks, [account-bank] */
    struct jrt_account_books books;
};

/* Opens an account with `amount`, taken from `parent`; NULL: out of nothing. The memory is the
 * caller's and stays put until jrt_account_fini. */
janus_component jrt_account_open(struct jrt_pool_account *account, struct jrt_pool_account *parent,
                                 const janus_budget *amount);

/* Opens a root that mints whatever shares and accounts below it ask for; [account-bank]. */
void jrt_account_open_bank(struct jrt_pool_account *account);

/* Closes it: what is left and what was spent go to the parent. No share and no account carved from
 * it may be out. The books can be read until jrt_account_fini. Its owner, once. */
void jrt_account_close(struct jrt_pool_account *account);

/* The end of a closed account's memory. */
void jrt_account_fini(struct jrt_pool_account *account);

/* A new child's share, and the price of its spawn, as janus_budget_split. */
janus_component jrt_account_split(struct jrt_pool_account *account, const janus_budget *want,
                                  janus_budget *out);

/* The child is not started after all: the share comes back, and what its spawn cost but the op. */
void jrt_account_unsplit(struct jrt_pool_account *account, const janus_budget *share);

/* A share of exactly `amount`; for a task that has one: added to it. */
janus_component jrt_account_take(struct jrt_pool_account *account, const janus_budget *amount);

/* A share of up to `want`: *out is what there was. Whether that is less. */
bool jrt_account_take_some(struct jrt_pool_account *account, const janus_budget *want,
                           janus_budget *out);

/* The end of a share: of all that was taken as `share`, `unused` comes back and the rest is spent.
 * Nobody returns more than he got: what is above the share is dropped. */
void jrt_account_settle(struct jrt_pool_account *account, const janus_budget *share,
                        const janus_budget *unused);

/* Spends from the account itself. */
janus_component jrt_account_charge(struct jrt_pool_account *account, const janus_budget *price);

/* More from the parent for an open account; back to the parent what it does not need. */
janus_component jrt_account_grant(struct jrt_pool_account *account, const janus_budget *amount);
janus_component jrt_account_refund(struct jrt_pool_account *account, const janus_budget *amount);

/* Makes units out of nothing, for implicit budgets, which replenish; every account above grants
 * them too. *out is how much: less where all units of the tree, or below a bank of the outermost
 * account, would be more than UINT64_MAX. Not for a bank itself, but for shares. */
void jrt_account_mint(struct jrt_pool_account *account, const janus_budget *amount,
                      janus_budget *out);

/* The same, straight into a share: nobody else gets at them. */
void jrt_account_mint_share(struct jrt_pool_account *account, const janus_budget *amount,
                            janus_budget *out);

/* The books at one moment. */
void jrt_account_read(struct jrt_pool_account *account, struct jrt_account_books *out);

/* What jrt_account_check found. */
struct jrt_account_fault {
    const struct jrt_pool_account *account;
    janus_component                component;
    const char                    *what;
};

/* Whether the books of an account and all that are carved from it balance: each in itself, and what
 * one has given to others with what those got. For debug builds and tests; call it when nobody uses
 * any of them. False: *out says where not. */
bool jrt_account_check(struct jrt_pool_account *account, struct jrt_account_fault *out);

#endif
