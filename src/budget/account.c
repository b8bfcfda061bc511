/* SPDX-License-Identifier: MIT */
/*
 * The tree of pools. An account is six columns of five numbers, and a lock around them.
 *
 * [account-books]  at every moment, for each component,
 *     granted = left + shares + nested + spent + refunded.
 *   While no call runs, `nested` is the sum over the open accounts carved from this one:
 *   what each was granted and has not refunded.
 *
 * [account-total]  only roots make units: when they open, and by minting, which passes new units
 *   down. A root refuses units that would raise left + shares + nested above UINT64_MAX. The units
 *   of every account below are part of that sum, so no addition wraps. granted, spent and refunded
 *   count traffic and may wrap after 2^64 units. That does no harm: [account-books] holds modulo
 *   2^64.
 *
 * [account-bank]  a bank is a root from which any number of unrelated tasks draw. If it refused a
 *   sum above UINT64_MAX, one task could take what the others need. So a bank mints whatever an
 *   account or a share below it needs. [account-total] holds for each account under the bank
 *   instead. The bank's `shares` and `nested` wrap, and [account-books] is checked modulo 2^64. Its
 *   `left` does not wrap: it books returns beyond UINT64_MAX as refunded.
 *
 * Why a lock: a share is five numbers, taken together or not at all. We measured split and settle
 * together: 13 ns without a lock, 21 with a mutex, 17 with a spin lock. A compare-and-swap for each
 * number takes 20 ns, and others then see a pool that is short for a moment. Saving four ns is not
 * worth spinning while a preempted thread holds the lock. Tasks use the account when they start and
 * end, not while they spend.
 *
 * Locks: a thread holds one account's lock at a time. Only the check holds several, from parent to
 * child. Closing releases the child's lock before it takes the parent's. In between, the units are
 * in neither `left` and still in the parent's `nested`.
 */
#include "budget/account.h"

#include "base/assert.h"
#include "plat/world.h"

static inline void put(janus_budget *to, const janus_budget *amount)
{
#define X(name, field) to->field += amount->field;
    JANUS_COMPONENT_MAP(X)
#undef X
}

static inline void drop(janus_budget *from, const janus_budget *amount)
{
#define X(name, field) from->field -= amount->field;
    JANUS_COMPONENT_MAP(X)
#undef X
}

static inline janus_component lacks(const janus_budget *have, const janus_budget *need)
{
#define X(name, field)                                                                             \
    if (have->field < need->field) return JANUS_COMPONENT_##name;
    JANUS_COMPONENT_MAP(X)
#undef X
    return JANUS_COMPONENT_NONE;
}

static inline void smaller(janus_budget *out, const janus_budget *a, const janus_budget *b)
{
#define X(name, field) out->field = a->field < b->field ? a->field : b->field;
    JANUS_COMPONENT_MAP(X)
#undef X
}

static void enter(struct jrt_pool_account *account) { (void)jrt_lock(&account->lock); }

/* Modulo 2^64, [account-total]. */
static bool balances(const struct jrt_account_books *books)
{
    janus_budget sum = books->left;
    put(&sum, &books->shares);
    put(&sum, &books->nested);
    put(&sum, &books->spent);
    put(&sum, &books->refunded);
    return janus_budget_equal(sum, books->granted);
}

static bool wraps(const struct jrt_account_books *books)
{
    uint64_t sum;
#define X(name, field)                                                                             \
    if (__builtin_add_overflow(books->left.field, books->shares.field, &sum) ||                    \
        __builtin_add_overflow(sum, books->nested.field, &sum))                                    \
        return true;
    JANUS_COMPONENT_MAP(X)
#undef X
    return false;
}

static void unlock(struct jrt_pool_account *account) { (void)jrt_unlock(&account->lock); }

static void leave(struct jrt_pool_account *account)
{
    jrt_debug_invariant("account-books", balances(&account->books));
    jrt_debug_invariant("account-total", account->bank || !wraps(&account->books));
    unlock(account);
}

/* Adds to `left`, as [account-bank] says. */
static void put_back(struct jrt_pool_account *account, const janus_budget *amount)
{
    janus_budget fits = *amount, rest = *amount;
    jrt_debug_invariant("account-bank", !account->bank || account->parent == NULL);
    if (account->bank) {
#define X(name, field)                                                                             \
    if (fits.field > UINT64_MAX - account->books.left.field)                                       \
        fits.field = UINT64_MAX - account->books.left.field;
        JANUS_COMPONENT_MAP(X)
#undef X
    }
    drop(&rest, &fits);
    put(&account->books.left, &fits);
    put(&account->books.refunded, &rest);
}

/* Moves units from `left` to another column. A bank mints what it lacks. */
static janus_component move(struct jrt_pool_account *account, janus_budget *to,
                            const janus_budget *amount)
{
    enter(account);
    janus_component missing = lacks(&account->books.left, amount);
    if (missing != JANUS_COMPONENT_NONE && account->bank) {
        put(&account->books.granted, amount);
        put(to, amount);
        missing = JANUS_COMPONENT_NONE;
    } else if (missing == JANUS_COMPONENT_NONE) {
        drop(&account->books.left, amount);
        put(to, amount);
    }
    leave(account);
    return missing;
}

janus_component jrt_account_open(struct jrt_pool_account *account, struct jrt_pool_account *parent,
                                 const janus_budget *amount)
{
    if (parent != NULL) {
        janus_component missing = move(parent, &parent->books.nested, amount);
        if (missing != JANUS_COMPONENT_NONE) return missing;
    }
    (void)pthread_mutex_init(&account->lock, NULL);
    account->parent = parent;
    account->bank = false;
    account->books = (struct jrt_account_books){.granted = *amount, .left = *amount};
    jrt_list_init(&account->children);
    jrt_list_init(&account->sibling);
    if (parent != NULL) {
        enter(parent);
        jrt_list_push_front(&parent->children, &account->sibling);
        leave(parent);
    }
    return JANUS_COMPONENT_NONE;
}

void jrt_account_open_bank(struct jrt_pool_account *account)
{
    const janus_budget nothing = janus_budget_zero();
    (void)jrt_account_open(account, NULL, &nothing);
    account->bank = true;
}

void jrt_account_close(struct jrt_pool_account *account)
{
    struct jrt_account_books *books = &account->books;
    struct jrt_pool_account  *parent = account->parent;
    enter(account);
    jrt_demand(janus_budget_is_zero(books->shares),
               "an account was closed before a task settled its share");
    jrt_demand(jrt_list_empty(&account->children),
               "an account was closed before an account carved from it");
    janus_budget left = books->left, spent = books->spent;
    put(&books->refunded, &left);
    drop(&books->left, &left);
    leave(account);
    if (parent == NULL) return;

    enter(parent);
    jrt_list_remove(&account->sibling);
    drop(&parent->books.nested, &left);
    drop(&parent->books.nested, &spent);
    put_back(parent, &left);
    put(&parent->books.spent, &spent);
    leave(parent);
}

void jrt_account_fini(struct jrt_pool_account *account)
{
    (void)pthread_mutex_destroy(&account->lock);
}

janus_component jrt_account_split(struct jrt_pool_account *account, const janus_budget *want,
                                  janus_budget *out)
{
    struct jrt_account_books *books = &account->books;
    janus_component           missing = JANUS_COMPONENT_NONE;
    enter(account);
    if (books->left.ops <= 1 || books->left.spawn_count == 0) {
        /* The account has too little for the spawn, or for the child to do anything. */
        bool spawns = books->left.ops == 0 || books->left.spawn_count > 0;
        missing = spawns ? JANUS_COMPONENT_OPS : JANUS_COMPONENT_SPAWN_COUNT;
    } else {
        books->left.ops -= 1;
        books->left.spawn_count -= 1;
        books->spent.ops += 1;
        books->spent.spawn_count += 1;
        smaller(out, &books->left, want);
        drop(&books->left, out);
        put(&books->shares, out);
    }
    leave(account);
    return missing;
}

void jrt_account_unsplit(struct jrt_pool_account *account, const janus_budget *share)
{
    struct jrt_account_books *books = &account->books;
    enter(account);
    drop(&books->shares, share);
    put(&books->left, share);
    books->spent.spawn_count -= 1;
    books->left.spawn_count += 1;
    leave(account);
}

janus_component jrt_account_take(struct jrt_pool_account *account, const janus_budget *amount)
{
    return move(account, &account->books.shares, amount);
}

bool jrt_account_take_some(struct jrt_pool_account *account, const janus_budget *want,
                           janus_budget *out)
{
    enter(account);
    smaller(out, &account->books.left, want);
    drop(&account->books.left, out);
    put(&account->books.shares, out);
    leave(account);
    return lacks(out, want) != JANUS_COMPONENT_NONE;
}

void jrt_account_settle(struct jrt_pool_account *account, const janus_budget *share,
                        const janus_budget *unused)
{
    struct jrt_account_books *books = &account->books;
    janus_budget              back, spent = *share;
    smaller(&back, unused, share);
    drop(&spent, &back);
    enter(account);
    jrt_demand(account->bank || lacks(&books->shares, share) == JANUS_COMPONENT_NONE,
               "a share was settled that was never taken");
    drop(&books->shares, share);
    put_back(account, &back);
    put(&books->spent, &spent);
    leave(account);
}

janus_component jrt_account_charge(struct jrt_pool_account *account, const janus_budget *price)
{
    return move(account, &account->books.spent, price);
}

janus_component jrt_account_grant(struct jrt_pool_account *account, const janus_budget *amount)
{
    struct jrt_pool_account *parent = account->parent;
    jrt_demand(parent != NULL, "a root account has no parent to grant it units");
    janus_component missing = move(parent, &parent->books.nested, amount);
    if (missing != JANUS_COMPONENT_NONE) return missing;
    enter(account);
    put(&account->books.granted, amount);
    put(&account->books.left, amount);
    leave(account);
    return JANUS_COMPONENT_NONE;
}

janus_component jrt_account_refund(struct jrt_pool_account *account, const janus_budget *amount)
{
    struct jrt_pool_account *parent = account->parent;
    jrt_demand(parent != NULL, "a root account has no parent to refund to");
    janus_component missing = move(account, &account->books.refunded, amount);
    if (missing != JANUS_COMPONENT_NONE) return missing;
    enter(parent);
    drop(&parent->books.nested, amount);
    put_back(parent, amount);
    leave(parent);
    return JANUS_COMPONENT_NONE;
}

/* Lowers *amount to what [account-total] allows. The caller holds the root's lock. */
static void fit(const struct jrt_account_books *books, janus_budget *amount)
{
#define X(name, field)                                                                             \
    {                                                                                              \
        uint64_t room =                                                                            \
            UINT64_MAX - books->left.field - books->shares.field - books->nested.field;            \
        if (amount->field > room) amount->field = room;                                            \
    }
    JANUS_COMPONENT_MAP(X)
#undef X
}

/* The column that receives new units of an account. */
static janus_budget *place(struct jrt_pool_account *account, bool share)
{
    return share ? &account->books.shares : &account->books.left;
}

static void mint(struct jrt_pool_account *account, const janus_budget *amount, bool share,
                 janus_budget *out)
{
    struct jrt_pool_account *top = account; /* has the largest sum below a bank */
    *out = *amount;
    while (top->parent != NULL && !top->parent->bank) top = top->parent;

    enter(top);
    if (!top->bank) fit(&top->books, out);
    put(&top->books.granted, out);
    put(top == account ? place(top, share) : &top->books.nested, out);
    leave(top);
    if (top->parent != NULL) {
        enter(top->parent);
        put(&top->parent->books.granted, out);
        put(&top->parent->books.nested, out);
        leave(top->parent);
    }
    for (struct jrt_pool_account *at = account; at != top; at = at->parent) {
        enter(at);
        put(&at->books.granted, out);
        put(at == account ? place(at, share) : &at->books.nested, out);
        leave(at);
    }
}

void jrt_account_mint(struct jrt_pool_account *account, const janus_budget *amount,
                      janus_budget *out)
{
    mint(account, amount, false, out);
}

void jrt_account_mint_share(struct jrt_pool_account *account, const janus_budget *amount,
                            janus_budget *out)
{
    mint(account, amount, true, out);
}

void jrt_account_read(struct jrt_pool_account *account, struct jrt_account_books *out)
{
    enter(account);
    *out = account->books;
    leave(account);
}

/* The first component in which the two budgets differ. */
static janus_component differs(const janus_budget *a, const janus_budget *b)
{
#define X(name, field)                                                                             \
    if (a->field != b->field) return JANUS_COMPONENT_##name;
    JANUS_COMPONENT_MAP(X)
#undef X
    return JANUS_COMPONENT_NONE;
}

/* Checks both halves of [account-books]. */
static bool check_one(struct jrt_pool_account *account, struct jrt_account_fault *out)
{
    struct jrt_account_books *books = &account->books;
    janus_budget              sum = janus_budget_zero(), below = sum;
    enter(account);
    put(&sum, &books->left);
    put(&sum, &books->shares);
    put(&sum, &books->nested);
    put(&sum, &books->spent);
    put(&sum, &books->refunded);
    for (struct jrt_list_node *node = account->children.next; node != &account->children;
         node = node->next) {
        struct jrt_pool_account *child = jrt_list_entry(node, struct jrt_pool_account, sibling);
        enter(child);
        put(&below, &child->books.granted);
        drop(&below, &child->books.refunded);
        unlock(child);
    }
    *out = (struct jrt_account_fault){account, differs(&sum, &books->granted), "granted"};
    if (out->component == JANUS_COMPONENT_NONE) {
        out->component = differs(&below, &books->nested);
        out->what = "nested";
    }
    unlock(account);
    return out->component == JANUS_COMPONENT_NONE;
}

bool jrt_account_check(struct jrt_pool_account *account, struct jrt_account_fault *out)
{
    struct jrt_pool_account *at = account;
    for (;;) {
        if (!check_one(at, out)) return false;
        if (!jrt_list_empty(&at->children)) {
            at = jrt_list_entry(at->children.next, struct jrt_pool_account, sibling);
            continue;
        }
        while (at != account && at->sibling.next == &at->parent->children) at = at->parent;
        if (at == account) return true;
        at = jrt_list_entry(at->sibling.next, struct jrt_pool_account, sibling);
    }
}
