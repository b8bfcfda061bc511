/* SPDX-License-Identifier: MIT */
/*
 * Forks: calls that a task makes itself, and that other workers may share.
 *
 * An eager division, with a task for each janus_both, costs a record, a nursery and a queue: 20
 * ns. The task itself runs most pieces, so that price buys nothing. Here a call leaves a note in
 * its own frame, a fork, and goes on. Only the task's own worker reads the notes, at moments of
 * its own choice. So they need neither a lock nor an atomic step. If thieves would find nothing on
 * this worker, it makes a real child of the oldest fork. In a balanced division the oldest fork is
 * the largest. Thieves only ever see ordinary tasks in ordinary nurseries.
 *
 * [fork-list]  The forks of a strand lie in a list, newest first. Frames are entered and left in
 *   that order, and tasks that run in place lie above their owner. The list goes with the strand
 *   from worker to worker. `unsplit` is the newest fork with nothing left to divide. All older
 *   forks have nothing left either, because the oldest is always divided first. So a push is three
 *   stores, and the next fork to divide is unsplit->newer. A task that is broken off takes its
 *   forks off the list before anything else runs on its stack.
 *
 * [fork-nursery]  Pieces are children in a nursery of the fork. The worker opens it when it splits
 *   off the first piece, perhaps long after the call began. The nursery then lies around those
 *   that the call has opened since, and is linked into the owner's chain there. Its owner may have
 *   a child in place on top just then; the two are one thread. The call frees the block. If the
 *   task is broken off, the end of its open nurseries frees it (on_heap).
 *
 * [fork-look]  The worker keeps one piece where thieves find it, on its shelf or deque. It looks at
 *   every fork if forks are rare, and at every 64th if they come quickly. A look at each fork
 *   would cost 30 ns more; longer intervals would let a thief wait. A worker that was refused a
 *   child looks again after 64 forks.
 *
 * In a world the strategy chooses at every fork whether it is divided, so both ways are explored.
 *
 * Rejected:
 * - To push forks on a shelf that thieves read. A thief would have to make the child itself, in
 *   the name of a task that runs elsewhere and may have moved.
 * - To divide the newest fork where a thief asks. Then thieves get the smallest pieces.
 */
#include "nursery/fork.h"

#include "cancel/cancel.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "nursery/run.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t quick_ns = 2000; /* between two looks: forks come quickly */
static const uint64_t rare_ns = 20000;

static struct jrt_fork *fork_of(struct jrt_link *link) { return (struct jrt_fork *)link; }

/* Whether the nursery around the call is still open. The body of the call may have ended it, and
 * its memory may be gone. */
static bool is_around_open(const struct jrt_fork *fork)
{
    const struct jrt_nursery *n = fork->task->innermost;
    if (fork->around == NULL) return true;
    while (n != NULL && n != fork->around) n = jrt_nursery_outer(n);
    return n != NULL;
}

/* The terms under which the call began; NULL: implicit. */
static struct jrt_terms *terms_at(const struct jrt_fork *fork)
{
    if (fork->around != NULL) return fork->around->terms;
    const struct jrt_task  *task = fork->task;
    const struct jrt_purse *purse = task->dirty ? task->purse : NULL;
    if (purse != NULL && purse->terms != NULL) return purse->terms;
    return task->nursery->terms;
}

/* The nursery around the nursery of the pieces. It is the next older fork's, or the innermost when
 * the call began, whichever is further in. NULL: none. */
static struct jrt_nursery *place_of(const struct jrt_fork *fork)
{
    const struct jrt_link    *end = &jrt_worker_self()->strand->no_fork;
    const struct jrt_nursery *older = NULL;
    for (struct jrt_link *at = fork->link.outer; at != end && older == NULL; at = at->outer) {
        if (fork_of(at)->task != fork->task) break;
        older = fork_of(at)->nursery;
    }
    struct jrt_nursery *n = fork->task->innermost;
    while (n != older && n != fork->around) n = jrt_nursery_outer(n);
    return n;
}

/* Whether workers would run a child under these terms, and no supervisor would have to pay. */
static bool terms_allow(const struct jrt_fork *fork, const struct jrt_worker *worker,
                        const struct jrt_terms *terms)
{
    if (fork->task != worker->current || fork->task->innermost != place_of(fork)) return false;
    bool may = (terms->implicit & 1u << JANUS_CAP_KIND_SPAWN) != 0 ||
               terms->held[JANUS_CAP_KIND_SPAWN].holder != 0;
    return may && jrt_backend_on_workers(terms->backend) &&
           terms->exhaustion == JANUS_EXHAUSTION_AUTO;
}

static bool allowed(const struct jrt_fork *fork, const struct jrt_worker *worker)
{
    if (!is_around_open(fork)) return false;
    struct jrt_task        *task = fork->task;
    const struct jrt_terms *terms = terms_at(fork);
    const struct jrt_purse *purse = task->dirty ? task->purse : NULL;
    bool                    pooled = terms != NULL && terms->account != NULL;
    /* relaxed: only the task writes it, and it lies on this strand. */
    if (jrt_load_relaxed(&task->shield) > 0 || task->ending) return false;
    if (purse != NULL && purse->hard && !pooled) return false;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) return false;
    if (terms == NULL) return worker->scheduler->exhaustion == JANUS_EXHAUSTION_AUTO;
    return terms_allow(fork, worker, terms);
}

/* Opens the nursery where the call began, [fork-nursery]. */
static bool open_at(struct jrt_nursery *n, struct jrt_worker *worker, struct jrt_fork *fork)
{
    struct jrt_task *task = fork->task;
    if (terms_at(fork) == NULL) {
        jrt_nursery_open_around(n, worker, task, place_of(fork));
        return true;
    }
    return jrt_nursery_open_on_terms(n, worker);
}

struct jrt_nursery *jrt_fork_open(struct jrt_fork *fork, struct jrt_worker *worker, size_t bytes)
{
    if (!allowed(fork, worker)) return NULL;
    if (fork->nursery != NULL) return fork->nursery;
    struct jrt_nursery *n = jrt_aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (n == NULL) return NULL;
    if (!open_at(n, worker, fork)) {
        free(n);
        return NULL;
    }
    n->initial = fork->task->initial & ~UINT32_C(0xff); /* the task's lane, stack and mode; READY */
    /* A piece of a task with a larger stack pays for its own, [spawn-stack]. */
    n->on_terms = n->terms != NULL || fork->task->stack_class > n->scheduler->stack_class;
    fork->nursery = n;
    return n;
}

bool jrt_fork_start(struct jrt_fork *fork, struct jrt_worker *worker, janus_entry *entry,
                    void *argument, const char *name)
{
    struct jrt_nursery *n = fork->nursery;
    if (!jrt_nursery_is_apart(n)) return jrt_spawn_piece(n, worker, entry, argument, name);
    if (jrt_fuel_get() <= 0) return false; /* a spawn would end the turn in the middle of this */
    const janus_spawn_options options = {.struct_bytes = sizeof options, .name = name};
    return janus_spawn_with((janus_nursery *)(void *)n, entry, argument, &options, NULL) ==
           JANUS_OK;
}

/* janus_both. */

static int64_t run_second(void *argument)
{
    struct jrt_both_piece *piece = argument;
    struct jrt_task       *task = jrt_worker_self()->current;
    piece->task = jrt_task_id(task);
    if (piece->local != NULL) {
        task->local = piece->local;
        task->dirty = true;
    }
    int64_t result = piece->entry(piece->argument);
    piece->result = result;
    return result < 0 ? result : 0;
}

static enum jrt_division split_both(struct jrt_fork *fork, struct jrt_worker *worker)
{
    struct jrt_nursery *n = jrt_fork_open(fork, worker, sizeof(struct jrt_both_piece));
    if (n == NULL) return JRT_DIVISION_REFUSED;
    struct jrt_both_piece *piece = (struct jrt_both_piece *)(void *)n;
    piece->entry = fork->second;
    piece->argument = fork->argument;
    piece->local = fork->task->dirty ? fork->task->local : NULL;
    piece->result = JRT_NOT_RETURNED;
    piece->task = 0;
    fork->piece = piece;
    if (jrt_fork_start(fork, worker, run_second, piece, "second of both")) return JRT_DIVIDED_LAST;
    fork->piece = NULL; /* the nursery stays, empty, until the call ends */
    return JRT_DIVISION_REFUSED;
}

/* Looking. */

/* Divides the oldest divisible fork. False: refused. */
static bool divide(struct jrt_worker *worker)
{
    struct jrt_strand *strand = worker->strand;
    while (strand->unsplit != strand->forks) {
        struct jrt_fork  *fork = fork_of(strand->unsplit->newer);
        enum jrt_division did =
            fork->split == NULL ? split_both(fork, worker) : fork->split(fork, worker);
        if (did == JRT_DIVISION_REFUSED) return false;
        if (did == JRT_DIVIDED_MORE) return true;
        strand->unsplit = &fork->link;
        if (did == JRT_DIVIDED_LAST) return true;
    }
    return true;
}

void jrt_fork_offer(struct jrt_worker *worker)
{
    struct jrt_world *world = jrt_world_now();
    if (worker->alone || !worker->scheduler->stealing) return; /* in a world: forks are only seen */
    if (jrt_unlikely(world != NULL) && world->choose(world, JRT_CHOOSE_SPLIT, 2) != 0) return;
    if (jrt_count_fresh(worker, worker->current->lane) == 0) {
        /* A spawn on terms may have ended the turn, [worker-again]. */
        if (!divide(worker)) jrt_worker_self()->until_split = JRT_FORK_LOOKS;
    } else {
        jrt_idle_notify_shelf(worker);
    }
}

__attribute__((noinline)) void jrt_fork_look(struct jrt_worker *worker)
{
    jrt_worker_stack_check(worker); /* [stack-reserve]; in a world, others may go on */
    jrt_debug_invariant("fork-look", worker->split_every - 1 < JRT_FORK_LOOKS);
    worker->until_split = 1;
    if (jrt_likely(worker->scheduler->world == NULL)) { /* in a world every fork is a look */
        uint64_t now = jrt_clock_now_ns();
        uint64_t since = now - worker->split_ns;
        worker->split_ns = now;
        if (since < quick_ns && worker->split_every < JRT_FORK_LOOKS) worker->split_every *= 2;
        if (since > rare_ns) worker->split_every = 1;
        worker->until_split = worker->split_every;
    }
    jrt_fork_offer(worker);
}

/* Ending. */

/* A piece has panicked: the caller panics in the same way. */
__attribute__((cold, noreturn)) static void panic_too(const janus_panic_detail *panic)
{
    struct jrt_task *task = jrt_worker_self()->current;
    if (panic->kind != JANUS_PANIC_KIND_STACK_OVERFLOW) {
        janus_panic(panic->message[0] != 0 ? panic->message : "a parallel call panicked");
    }
    jrt_panicked("its stack overflowed: spawn it with a larger stack_bytes");
    task->dirty = true;
    if (task->panic == JANUS_PANIC_KIND_NONE) {
        task->fault_data = panic->fault_address;
        task->fault_code = panic->code_address;
    }
    task->panic = JANUS_PANIC_KIND_STACK_OVERFLOW;
    jrt_task_break_off(task, JRT_ENDED_PANICKED);
}

void jrt_fork_cancel(struct jrt_fork *fork)
{
    if (fork->nursery != NULL)
        (void)jrt_nursery_cancel(fork->nursery, JANUS_CANCEL_REASON_SIBLING_ERROR);
}

void jrt_fork_join(struct jrt_fork *fork, struct jrt_fork_failure *failure)
{
    janus_nursery_result result = {.kind = JANUS_RESULT_KIND_SUCCESS};
    janus_status         status = jrt_nursery_end(fork->nursery, &result);
    if (status == JANUS_STATE) janus_panic("a parallel call returned with a nursery open");
    *failure = (struct jrt_fork_failure){result.error, result.task};
    if (result.kind != JANUS_RESULT_KIND_CHILD_FAILED || result.panic.kind == JANUS_PANIC_KIND_NONE)
        return;
    jrt_fork_free(fork);
    panic_too(&result.panic);
}

void jrt_fork_free(struct jrt_fork *fork)
{
    free(fork->nursery);
    fork->nursery = NULL;
}

void jrt_forks_drop(struct jrt_strand *strand, const struct jrt_task *task)
{
    while (strand->forks != &strand->no_fork && fork_of(strand->forks)->task == task) {
        if (strand->unsplit == strand->forks) strand->unsplit = strand->forks->outer;
        strand->forks = strand->forks->outer;
    }
}
