/* SPDX-License-Identifier: MIT */
/* Reader-writer locks: which tasks hold them together, which go first, and holders that end. */
#include "listen.h"

#include "sync/queue.h"

#include <pthread.h>

/* How many wait for it. */
static int waiting(janus_rwlock *lock)
{
    struct jrt_sync         *sync = (struct jrt_sync *)(void *)lock;
    uint64_t                 word = jrt_sync_enter(sync);
    const struct jrt_waiter *first = jrt_sync_first(sync), *at = first;
    int                      length = first != NULL;
    for (; first != NULL && at->next != first; at = at->next) length++;
    jrt_sync_leave(sync, word);
    return length;
}

static void until_waiting(janus_rwlock *lock, int count)
{
    while (waiting(lock) != count) CHECK_EQ(janus_yield(), JANUS_OK);
}

/* Together or alone. */

struct page {
    janus_rwlock lock;
    atomic_int   readers, writers, most;
    long         first, second; /* plain: the lock alone orders them */
    int          rounds;
    bool         yields, alone; /* alone: on one worker */
};

static void rest(const struct page *page)
{
    if (page->yields) CHECK_EQ(janus_yield(), JANUS_OK);
}

static void read_page(struct page *page)
{
    CHECK_EQ(janus_rwlock_read_lock(&page->lock), JANUS_OK);
    int readers = atomic_fetch_add(&page->readers, 1) + 1;
    if (readers > atomic_load(&page->most)) atomic_store(&page->most, readers);
    CHECK_EQ(page->writers, 0);
    long first = page->first;
    rest(page);
    CHECK_EQ(first, page->second);
    atomic_fetch_sub(&page->readers, 1);
    CHECK_EQ(janus_rwlock_unlock(&page->lock), JANUS_OK);
}

static void write_page(struct page *page)
{
    CHECK_EQ(janus_rwlock_write_lock(&page->lock), JANUS_OK);
    CHECK_EQ(atomic_fetch_add(&page->writers, 1), 0);
    CHECK_EQ(page->readers, 0);
    page->first++;
    rest(page);
    page->second++;
    atomic_fetch_sub(&page->writers, 1);
    CHECK_EQ(janus_rwlock_unlock(&page->lock), JANUS_OK);
}

static int64_t read_often(void *argument)
{
    struct page *page = argument;
    for (int i = 0; i < page->rounds; i++) read_page(page);
    return 0;
}

static int64_t write_often(void *argument)
{
    struct page *page = argument;
    for (int i = 0; i < page->rounds; i++) write_page(page);
    return 0;
}

static int64_t share_page(void *argument)
{
    struct page  *given = argument, page = {.lock = JANUS_RWLOCK_INIT("page")};
    janus_nursery n;
    page.rounds = (int)rig_few(RIG_SLOW ? 200 : 1000);
    page.yields = given->yields;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 6; i++) CHECK_EQ(janus_spawn(&n, read_often, &page), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, write_often, &page), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(page.first, 2L * page.rounds);
    /* With more workers each reader may have one to itself, and be through before the next. */
    if (page.yields && given->alone) CHECK(page.most > 1);
    CHECK_EQ(janus_rwlock_try_write_lock(&page.lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&page.lock), JANUS_OK);
    return 0;
}

TEST("readers share the lock, and a writer has it alone")
{
    struct page page = {.yields = true, .alone = true};
    rig_run(1, share_page, &page, 2);
    page.alone = false;
    rig_run(2, share_page, &page, 2);
    rig_run(8, share_page, &page, 2);
    page.yields = false;
    rig_all(share_page, &page, 2);
}

static void *thread_reader(void *argument)
{
    (void)read_often(argument);
    return NULL;
}

static void *thread_writer(void *argument)
{
    (void)write_often(argument);
    return NULL;
}

TEST("plain threads and tasks share one lock")
{
    RIG_REAL("threads outside");
    struct page      page = {.rounds = RIG_SLOW ? 300 : 2000};
    pthread_t        threads[4];
    janus_nursery    root;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) {
        void *(*entry)(void *) = i % 2 == 0 ? thread_reader : thread_writer;
        CHECK_EQ(pthread_create(&threads[i], NULL, entry, &page), 0);
        CHECK_EQ(janus_spawn(&root, i % 2 == 0 ? read_often : write_often, &page), JANUS_OK);
    }
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(page.first, 4L * page.rounds);
}

/* Phases: each task writes one letter. */

struct phases {
    janus_rwlock  lock;
    char          order[64];
    atomic_int    length;
    janus_nursery nursery;
};

static void put_letter(struct phases *phases, char letter)
{
    int at = atomic_fetch_add(&phases->length, 1);
    CHECK(at < (int)sizeof phases->order - 1);
    phases->order[at] = letter;
}

static int64_t phase_reader(void *argument)
{
    struct phases *phases = argument;
    janus_status   status = janus_rwlock_read_lock(&phases->lock);
    if (status != JANUS_OK) return status;
    put_letter(phases, 'r');
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    put_letter(phases, 'R');
    CHECK_EQ(janus_rwlock_unlock(&phases->lock), JANUS_OK);
    return 0;
}

static int64_t phase_writer(void *argument)
{
    struct phases *phases = argument;
    janus_status   status = janus_rwlock_write_lock(&phases->lock);
    if (status != JANUS_OK) return status;
    put_letter(phases, 'w');
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    put_letter(phases, 'W');
    CHECK_EQ(janus_rwlock_unlock(&phases->lock), JANUS_OK);
    return 0;
}

/* Sorts the readers of one phase: "rRrR" counts as "rrRR". */
static void sort_phases(char *order)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (char *at = order; *at != '\0'; at++) {
            if (at[0] != 'R' || at[1] != 'r') continue;
            at[0] = 'r';
            at[1] = 'R';
            moved = true;
        }
    }
}

/* The tasks queue in the order of `who` while the caller reads or writes. */
static void queue_up(struct phases *phases, const char *who, bool writes)
{
    janus_status status =
        writes ? janus_rwlock_write_lock(&phases->lock) : janus_rwlock_read_lock(&phases->lock);
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_nursery_open(&phases->nursery, NULL), JANUS_OK);
    for (int i = 0; who[i] != '\0'; i++) {
        CHECK_EQ(janus_spawn(&phases->nursery, who[i] == 'r' ? phase_reader : phase_writer, phases),
                 JANUS_OK);
        until_waiting(&phases->lock, i + 1);
    }
    CHECK_EQ(janus_rwlock_try_read_lock(&phases->lock), writes ? JANUS_STATE : JANUS_OK);
    if (!writes) CHECK_EQ(janus_rwlock_unlock(&phases->lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&phases->lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&phases->nursery, NULL), JANUS_OK);
    sort_phases(phases->order);
}

static int64_t take_turns(void *argument)
{
    struct phases after_reader = {.lock = JANUS_RWLOCK_INIT(NULL)}, after_writer = after_reader;
    (void)argument;
    queue_up(&after_reader, "wrwrr", false);
    CHECK_EQ(strcmp(after_reader.order, "wWrrrRRRwW"), 0);
    queue_up(&after_writer, "wwrwr", true);
    CHECK_EQ(strcmp(after_writer.order, "rrRRwWwWwW"), 0);
    return 0;
}

TEST("readers and writers take turns: after a writer all waiting readers, then one writer")
{
    rig_all(take_turns, NULL, 3);
}

/* No task starves, although the others never stop. */

struct crowd {
    janus_rwlock lock;
    atomic_int   done, entered, at_ask, at_got;
    bool         writers;
};

static int64_t never_stop(void *argument)
{
    struct crowd *crowd = argument;
    while (!atomic_load(&crowd->done)) {
        CHECK_EQ(crowd->writers ? janus_rwlock_write_lock(&crowd->lock)
                                : janus_rwlock_read_lock(&crowd->lock),
                 JANUS_OK);
        atomic_fetch_add(&crowd->entered, 1);
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_rwlock_unlock(&crowd->lock), JANUS_OK);
    }
    return 0;
}

enum { CROWD = 6 };

static int64_t get_through(void *argument)
{
    struct crowd *crowd = argument;
    janus_nursery n;
    crowd->done = crowd->entered = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, never_stop, crowd), JANUS_OK);
    for (int i = 0; i < 20; i++) {
        while (atomic_load(&crowd->entered) < 3 * i) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(crowd->writers ? janus_rwlock_read_lock(&crowd->lock)
                                : janus_rwlock_write_lock(&crowd->lock),
                 JANUS_OK);
        CHECK_EQ(janus_rwlock_unlock(&crowd->lock), JANUS_OK);
    }
    atomic_store(&crowd->done, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a writer among endless readers, and a reader among endless writers, both get the lock")
{
    struct crowd crowd = {.writers = false};
    rig_all(get_through, &crowd, 2);
    crowd.writers = true;
    rig_all(get_through, &crowd, 2);
}

/* What a holder may request. */

static int64_t stranger(void *argument)
{
    CHECK_EQ(janus_rwlock_unlock(argument), JANUS_STATE);
    CHECK_EQ(janus_rwlock_repaired(argument), JANUS_STATE);
    CHECK_EQ(janus_rwlock_try_write_lock(argument), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_rwlock_write_lock_until(argument, 1), JANUS_DEADLINE);
    return 0;
}

static void as_stranger(janus_rwlock *lock)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, stranger, lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
}

static int64_t ask_for_more(void *argument)
{
    janus_rwlock lock = JANUS_RWLOCK_INIT("twice");
    (void)argument;
    CHECK_EQ(janus_rwlock_unlock(&lock), JANUS_STATE);
    CHECK_EQ(janus_rwlock_write_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_write_lock(&lock), JANUS_STATE);
    CHECK_EQ(janus_rwlock_try_write_lock(&lock), JANUS_STATE);
    CHECK_EQ(janus_rwlock_read_lock(&lock), JANUS_STATE);
    as_stranger(&lock);
    CHECK_EQ(janus_rwlock_unlock(&lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&lock), JANUS_STATE);
    CHECK_EQ(janus_rwlock_read_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_write_lock(&lock), JANUS_STATE);
    CHECK_EQ(janus_rwlock_write_lock_until(&lock, 1), JANUS_STATE);
    CHECK_EQ(janus_rwlock_try_write_lock(&lock), JANUS_STATE);
    CHECK_EQ(janus_rwlock_repaired(&lock), JANUS_STATE);
    CHECK_EQ(janus_rwlock_read_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&lock), JANUS_OK);
    as_stranger(&lock);
    CHECK_EQ(janus_rwlock_unlock(&lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&lock), JANUS_STATE);
    return 0;
}

TEST("a second write lock, an upgrade, and an unlock by a stranger return STATE")
{
    rig_all(ask_for_more, NULL, 1);
}

static int64_t read_twice(void *argument)
{
    struct phases phases = {.lock = JANUS_RWLOCK_INIT(NULL)};
    (void)argument;
    CHECK_EQ(janus_rwlock_read_lock(&phases.lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&phases.nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&phases.nursery, phase_writer, &phases), JANUS_OK);
    until_waiting(&phases.lock, 1);
    CHECK_EQ(janus_rwlock_read_lock(&phases.lock), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&phases.lock), JANUS_OK);
    CHECK_EQ(phases.length, 0);
    CHECK_EQ(janus_rwlock_unlock(&phases.lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&phases.nursery, NULL), JANUS_OK);
    CHECK_EQ(strcmp(phases.order, "wW"), 0);
    return 0;
}

TEST("a reader locks again while a writer waits, and does not wait for itself")
{
    rig_all(read_twice, NULL, 3);
}

TEST("calls with NULL for the lock return INVALID")
{
    CHECK_EQ(janus_rwlock_init(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_read_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_read_lock_until(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_try_read_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_write_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_write_lock_until(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_try_write_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_unlock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_rwlock_repaired(NULL), JANUS_INVALID);
    CHECK(!janus_rwlock_is_abandoned(NULL));
}

/* Waiters that give up. */

static int64_t give_up_writing(void *argument)
{
    struct phases *phases = argument;
    janus_status   status = janus_rwlock_write_lock(&phases->lock);
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(janus_rwlock_unlock(&phases->lock), JANUS_STATE);
    return status;
}

static int64_t cancel_writer(void *argument)
{
    struct phases phases = {.lock = JANUS_RWLOCK_INIT(NULL)};
    janus_nursery others;
    (void)argument;
    CHECK_EQ(janus_rwlock_read_lock(&phases.lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&phases.nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&others, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&others, give_up_writing, &phases), JANUS_OK);
    until_waiting(&phases.lock, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn(&phases.nursery, phase_reader, &phases), JANUS_OK);
    }
    until_waiting(&phases.lock, 4);
    CHECK_EQ(janus_nursery_cancel(&others), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&others, NULL), JANUS_CANCELLED);
    CHECK_EQ(waiting(&phases.lock), 0); /* they read beside the caller */
    CHECK_EQ(janus_nursery_end(&phases.nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&phases.lock), JANUS_OK);
    CHECK_EQ(phases.length, 6);
    return 0;
}

TEST("a waiting writer that is cancelled lets the readers behind it join the present ones")
{
    rig_all(cancel_writer, NULL, 3);
}

static int64_t too_late(void *argument)
{
    struct phases *phases = argument;
    uint64_t       deadline = janus_now_ns() + rig_ms;
    CHECK_EQ(janus_rwlock_write_lock_until(&phases->lock, deadline), JANUS_DEADLINE);
    CHECK(janus_now_ns() >= deadline);
    CHECK_EQ(janus_rwlock_try_read_lock(&phases->lock), JANUS_OK);
    return janus_rwlock_unlock(&phases->lock);
}

static int64_t let_time_pass(void *argument)
{
    struct phases phases = {.lock = JANUS_RWLOCK_INIT(NULL)};
    (void)argument;
    CHECK_EQ(janus_rwlock_read_lock(&phases.lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&phases.nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&phases.nursery, too_late, &phases), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&phases.nursery, NULL), JANUS_OK);
    return janus_rwlock_unlock(&phases.lock);
}

TEST("a write lock that comes too late leaves the lock to its readers")
{
    rig_all(let_time_pass, NULL, 2);
}
