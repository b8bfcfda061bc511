/* SPDX-License-Identifier: MIT */
/*
 * Holders: the name under which a task or thread holds a lock.
 *
 * A task gets a holder when it first locks something, or waits for something that can be held.
 * Threads have holders, too. Each returns its holder when it ends. Records of holders are never
 * unmapped. A lock may keep the address of a holder that has ended. The record at that address
 * says so, even after the task's scheduler was closed.
 *
 * [holder-end]  A holder that ends while it holds something is dead. It is not used again until
 *   everything it held has a new holder. Things that others wait for are on its list: its end
 *   hands each of them to the first waiter. A thing without waiters keeps the dead holder's name.
 *   The next task that wants it takes the holder's lock, finds it dead and takes the thing. Both
 *   ways mark the thing as abandoned.
 *   The holder counts what it still holds; at zero it becomes free again. Its end counts as one
 *   more, so that the holder stays while its end walks the list. A thing that was freed while it
 *   was held is never touched; it costs the holder's 64 bytes.
 *
 * [holder-share]  A thing that many hold at a time cannot name them all in one word. So each holder
 *   has a list of its shares, which only the holder itself touches. Its end returns every share
 *   before the holder is dead. So a dead holder has no shares, and nobody has to look for them.
 *   Spare records of shares return the same way.
 *
 * [holder-gaze]  What a waiter waits for lies in the waiter's frame. The waiter publishes it under
 *   `gaze`, and withdraws it under `gaze` before it returns. So a thread that has `gaze` may read
 *   it, and may look at the thing itself, which must exist while somebody waits for it. A reader
 *   asks a task under its nursery's lock. The task leaves its nursery only after its holder has
 *   ended.
 *
 * Order of locks: a nursery's, a holder's gaze, the thing's, a holder's lock, the pool's.
 */
#include "means/holder.h"

#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_HOLDERS = 64 };

static struct {
    pthread_mutex_t    lock;
    struct jrt_holder *free;
    struct jrt_holder *blocks; /* owned for ever; the first holder of each is the link */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t  key;
static bool           key_works;

/* Adds a block to the free list, under the pool's lock. */
static void add_block(void)
{
    struct jrt_holder *block = jrt_aligned_alloc_for_ever(64, BLOCK_HOLDERS * sizeof *block);
    if (block == NULL) return;
    memset(block, 0, BLOCK_HOLDERS * sizeof *block);
    block[0].next = pool.blocks;
    pool.blocks = block;
    for (int i = 1; i < BLOCK_HOLDERS; i++) {
        block[i].next = pool.free;
        pool.free = &block[i];
    }
}

static struct jrt_holder *take(void)
{
    /* The fault is drawn here and not where memory is needed: in a simulated system, holders that
     * others left must not decide. */
    if (jrt_fails(JRT_FAULT_MEMORY)) return NULL;
    jrt_lock(&pool.lock);
    if (pool.free == NULL) add_block();
    struct jrt_holder *holder = pool.free;
    if (holder != NULL) pool.free = holder->next;
    jrt_unlock(&pool.lock);
    return holder;
}

static void give(struct jrt_holder *holder)
{
    jrt_lock(&pool.lock);
    holder->next = pool.free;
    pool.free = holder;
    jrt_unlock(&pool.lock);
}

/* Starts with nothing held and nothing wanted. Other threads may still take its locks to look. */
static void begin(struct jrt_holder *holder, struct jrt_task *task)
{
    jrt_spin_lock(&holder->gaze);
    jrt_spin_lock(&holder->lock);
    jrt_invariant("holder-end", holder->contests == NULL && holder->want == NULL);
    jrt_invariant("holder-share", holder->shares == NULL && holder->spares == NULL);
    holder->task = task;
    holder->held = 0;
    holder->dead = false;
    jrt_spin_unlock(&holder->lock);
    jrt_spin_unlock(&holder->gaze);
}

static void end_shares(struct jrt_share **list)
{
    while (*list != NULL) {
        struct jrt_share *share = *list;
        *list = share->next;
        share->over(share);
    }
}

/* Ends the holder. True: it can be used again, now. */
static bool end(struct jrt_holder *holder)
{
    end_shares(&holder->shares); /* [holder-share] */
    end_shares(&holder->spares);
    jrt_spin_lock(&holder->lock);
    holder->dead = true;
    holder->held++; /* this function, [holder-end] */
    unsigned rounds = 0;
    while (holder->contests != NULL) {
        holder->contests->inherit(holder, holder->contests);
        jrt_spin_pause(&rounds);
        jrt_spin_lock(&holder->lock);
    }
    bool last = --holder->held == 0;
    jrt_spin_unlock(&holder->lock);
    return last;
}

void jrt_holder_heir(struct jrt_holder *dead)
{
    jrt_invariant("holder-end", dead->dead && dead->held > 0);
    bool last = --dead->held == 0;
    jrt_spin_unlock(&dead->lock);
    if (last) give(dead);
}

struct jrt_holder *jrt_holder_of_thread(void) { return jrt_thread_self()->holder; }

void jrt_holder_thread_over(void)
{
    struct jrt_thread *thread = jrt_thread_self();
    struct jrt_holder *holder = thread->holder;
    if (holder == NULL) return;
    thread->holder = NULL;
    if (end(holder)) give(holder);
}

static void thread_ends(void *thread)
{
    (void)thread;
    jrt_holder_thread_over();
}

static void make_key(void) { key_works = pthread_key_create(&key, thread_ends) == 0; }

/* Whether the library will notice the end of the calling thread. */
static bool end_is_watched(struct jrt_thread *thread)
{
    (void)pthread_once(&key_once, make_key);
    return key_works && pthread_setspecific(key, thread) == 0;
}

struct jrt_holder *jrt_holder_make(struct jrt_worker *worker)
{
    struct jrt_holder *holder = jrt_holder_self(worker);
    if (holder != NULL) return holder;
    if (worker != NULL && worker->holder != NULL) {
        holder = worker->holder;
        worker->holder = NULL;
    } else {
        holder = take();
    }
    if (holder == NULL) return NULL;
    begin(holder, worker != NULL ? worker->current : NULL);
    if (worker != NULL) {
        worker->current->dirty = true;
        jrt_store_release(&worker->current->record.holder, holder); /* release: what begin wrote. */
        return holder;
    }
    struct jrt_thread *thread = jrt_thread_self();
    if (!end_is_watched(thread)) {
        give(holder);
        return NULL;
    }
    thread->holder = holder;
    return holder;
}

void jrt_holder_end(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_holder *holder = jrt_load_relaxed(&task->record.holder); /* relaxed: its own. */
    /* relaxed: a reader finds no holder, or an ended one. */
    jrt_store_relaxed(&task->record.holder, NULL);
    if (!end(holder)) return;
    if (worker->holder == NULL) {
        worker->holder = holder;
    } else {
        give(holder);
    }
}

void jrt_holder_forget(struct jrt_worker *worker)
{
    if (worker->holder != NULL) give(worker->holder);
    worker->holder = NULL;
}

void jrt_holder_wants(struct jrt_holder *holder, const struct jrt_want *want)
{
    jrt_spin_lock(&holder->gaze);
    jrt_debug_invariant("holder-gaze", (holder->want == NULL) != (want == NULL));
    holder->want = want;
    jrt_spin_unlock(&holder->gaze);
}

bool jrt_holder_look(const struct jrt_task *task, struct jrt_want *out, char *name,
                     size_t name_bytes, struct jrt_seen *out_seen)
{
    struct jrt_holder *holder =
        jrt_load_acquire(&task->record.holder); /* acquire: what begin wrote. */
    *out_seen = (struct jrt_seen){.held = false};
    if (holder == NULL) return false;
    jrt_spin_lock(&holder->gaze);
    const struct jrt_want *want = holder->task == task ? holder->want : NULL;
    if (want != NULL) {
        *out = *want;
        /* The object's user owns the name and may have freed it, [name-clean]. */
        if (want->name != NULL) (void)jrt_name_copy(name, name_bytes, want->name);
        out->name = want->name != NULL ? name : NULL;
        if (want->look != NULL) want->look(want, task->nursery->scheduler, out_seen);
    }
    jrt_spin_unlock(&holder->gaze);
    return want != NULL;
}

void jrt_holder_describe(struct jrt_holder *holder, const janus_scheduler *scheduler,
                         struct jrt_seen *out)
{
    jrt_spin_lock(&holder->lock);
    const struct jrt_task *task = holder->task;
    out->held = !holder->dead;
    out->thread = out->held && task == NULL;
    if (out->held && task != NULL && task->nursery->scheduler == scheduler) {
        out->task = jrt_task_id(task);
        out->record = task;
        jrt_name_again(out->name, sizeof out->name, jrt_task_name(task));
        const janus_site *site = jrt_task_site(task);
        if (site != NULL) {
            (void)snprintf(out->file, sizeof out->file, "%s", site->file);
            out->line = site->line;
        }
    }
    jrt_spin_unlock(&holder->lock);
}
