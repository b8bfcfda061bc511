/* SPDX-License-Identifier: MIT */
/*
 * Loops.
 *
 * The task that calls janus_for runs the body over the range, strip after strip. Between strips it
 * pays, checks for a cancel, and checks whether a thief would find work. If a thief would find
 * none, the upper half of the rest becomes a piece: a child that does the same with its part. So a
 * range of n strips is divided about log2(n) times if no thief comes.
 *
 * [loop-strip]  with an automatic grain the clock decides how long a strip is: about strip_ns. That
 *   is short beside a turn, and long beside the work between strips. The first strip is one index,
 *   which may take a second. Each next strip is at most 8 times as long. In a world, where the
 *   clock stands still, a strip is a sixteenth of the range.
 *
 * [loop-piece]  pieces lie in the block of their nursery. Their number is bounded, because each
 *   takes about half of the rest. A piece of less than a quarter of a strip is not split off.
 */
#include "cancel/cancel.h"
#include "means/call.h"
#include "nursery/fork.h"
#include "nursery/nursery.h"
#include "parallel/failure.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <string.h>

enum { PIECES = 64, GROWTH = 8, WORLD_STRIPS = 16 };

static const uint64_t strip_ns = 10000;

struct loop;

struct piece {
    struct loop           *loop; /* the loop it was split off from */
    uint64_t               begin, end, strip;
    void                  *local; /* the caller's, at the split */
    bool                   returned;
    janus_task_id          task; /* the task that runs it; 0: not begun */
    janus_parallel_failure failure;
};

struct pieces {
    janus_nursery nursery;
    uint32_t      count;
    struct piece  piece[PIECES];
};

struct loop {
    struct jrt_fork        fork; /* first */
    janus_body            *body;
    void                  *argument;
    uint64_t               next, end;
    uint64_t               grain; /* 0: automatic */
    uint64_t               strip;
    janus_parallel_failure failure; /* of this task's own calls */
};

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

static int64_t run_piece(void *argument);

static enum jrt_division split(struct jrt_fork *fork, struct jrt_worker *worker)
{
    struct loop *loop = (struct loop *)fork;
    uint64_t     unit = loop->grain;
    if (unit == 0) unit = loop->strip / 4 > 0 ? loop->strip / 4 : 1; /* [loop-piece] */
    uint64_t left = loop->end - loop->next;
    uint64_t units = left / unit + (left % unit != 0);
    if (units < 2) return JRT_INDIVISIBLE;
    bool           fresh = fork->nursery == NULL;
    struct pieces *pieces = (struct pieces *)(void *)jrt_fork_open(fork, worker, sizeof *pieces);
    if (pieces == NULL) return JRT_DIVISION_REFUSED;
    if (fresh) pieces->count = 0;
    if (pieces->count == PIECES) return JRT_INDIVISIBLE;
    struct piece *piece = &pieces->piece[pieces->count];
    uint64_t      middle = loop->next + (units - units / 2) * unit;
    jrt_debug_invariant("loop-piece", loop->next < middle && middle < loop->end);
    *piece = (struct piece){.loop = loop,
                            .begin = middle,
                            .end = loop->end,
                            .strip = loop->strip,
                            .local = fork->task->dirty ? fork->task->local : NULL};
    if (!jrt_fork_start(fork, worker, run_piece, piece, "part of a loop")) {
        return JRT_DIVISION_REFUSED;
    }
    pieces->count++;
    loop->end = middle;
    return JRT_DIVIDED_MORE;
}

/* Pays one op for each index. OK. CANCELLED: the loop must end here. */
static janus_status pay(const struct loop *loop, uint64_t count)
{
    while (count > 0) {
        uint64_t     part = min_u64(count, JANUS_SLICE);
        janus_status status = janus_check_n((uint32_t)part);
        if (status != JANUS_OK) return status;
        count -= part;
    }
    const struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || worker->current == NULL) return JANUS_OK;
    if (jrt_fork_is_over(&loop->fork)) return JANUS_CANCELLED;
    if (jrt_likely(jrt_task_cancel_reason(worker->current) == JANUS_CANCEL_REASON_NONE))
        return JANUS_OK;
    return jrt_task_cancelled_or_end(worker->current);
}

/* The length of the next strip, after a strip of `count` indices that took
 * `took_ns`, [loop-strip]. */
static uint64_t next_strip(uint64_t count, uint64_t took_ns)
{
    uint64_t most = min_u64(count * GROWTH, JANUS_SLICE);
    uint64_t fits = count * strip_ns / (took_ns > 0 ? took_ns : 1);
    return fits == 0 ? 1 : min_u64(fits, most);
}

/* Runs the rest of a loop in the current task, or on a plain thread. */
static void run(struct loop *loop, bool divisible)
{
    bool timed = loop->grain == 0 && jrt_world_now() == NULL;
    while (loop->next < loop->end) {
        struct jrt_worker *worker = jrt_worker_self();
        if (divisible && jrt_fork_is_time(worker)) jrt_fork_look(worker); /* changes the end */
        jrt_debug_invariant("loop-strip", !timed || loop->strip - 1 < JANUS_SLICE);
        uint64_t     begin = loop->next;
        uint64_t     end = begin + min_u64(loop->strip, loop->end - begin);
        janus_status status = pay(loop, end - begin);
        if (status != JANUS_OK) {
            (void)jrt_failure(&loop->failure, status, begin, begin, janus_task_current_id());
            return;
        }
        loop->next = end;
        uint64_t then = timed ? jrt_clock_now_ns() : 0;
        int64_t  result = loop->body(loop->argument, begin, end);
        if (jrt_unlikely(result < 0)) {
            (void)jrt_failure(&loop->failure, result, begin, end, janus_task_current_id());
            return;
        }
        if (timed) loop->strip = next_strip(end - begin, jrt_clock_now_ns() - then);
    }
}

/* Chooses the failure to report. A failure by itself comes before a cancel, then the lower index
 * counts. */
static void prefer(janus_parallel_failure *best, const janus_parallel_failure *other)
{
    bool obeyed = best->error == JANUS_CANCELLED && other->error != JANUS_CANCELLED;
    bool obeys = best->error != JANUS_CANCELLED && other->error == JANUS_CANCELLED;
    bool first = !obeys && other->begin < best->begin;
    if (other->error < 0 && (best->error == 0 || obeyed || first)) *best = *other;
}

/* Waits for the pieces of a loop and adds their failures. */
static void join(struct loop *loop)
{
    if (loop->failure.error < 0) jrt_fork_cancel(&loop->fork);
    struct jrt_fork_failure first;
    jrt_fork_join(&loop->fork, &first);
    const struct pieces *pieces = (const struct pieces *)(const void *)loop->fork.nursery;
    for (uint32_t i = 0; i < pieces->count; i++) {
        const struct piece    *piece = &pieces->piece[i];
        janus_parallel_failure failure = piece->failure;
        if (!piece->returned) {
            (void)jrt_failure(&failure, jrt_fork_error(&first, piece->task), piece->begin,
                              piece->begin, piece->task);
        }
        prefer(&loop->failure, &failure);
    }
    jrt_fork_free(&loop->fork);
}

/* Runs a loop in the current task, and splits off pieces for thieves. */
static void run_divisibly(struct loop *loop, struct jrt_worker *worker)
{
    struct jrt_strand *strand = worker->strand; /* the loop lies on it and stays there */
    loop->fork = (struct jrt_fork){
        .task = worker->current, .around = worker->current->innermost, .split = split};
    jrt_fork_push(strand, &loop->fork);
    run(loop, true);
    jrt_fork_pop_any(strand, &loop->fork);
    if (loop->fork.nursery != NULL) join(loop);
}

static int64_t run_piece(void *argument)
{
    struct piece      *piece = argument;
    const struct loop *whole = piece->loop;
    struct jrt_worker *worker = jrt_worker_self();
    struct loop        part = {.body = whole->body,
                               .argument = whole->argument,
                               .next = piece->begin,
                               .end = piece->end,
                               .grain = whole->grain,
                               .strip = piece->strip};
    if (piece->local != NULL) {
        worker->current->local = piece->local;
        worker->current->dirty = true;
    }
    piece->task = jrt_task_id(worker->current);
    run_divisibly(&part, worker);
    piece->failure = part.failure;
    piece->returned = true;
    return part.failure.error;
}

int64_t janus_for_with(janus_range range, janus_body *body, void *argument,
                       janus_parallel_failure *out)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct loop        loop = {.body = body,
                               .argument = argument,
                               .next = range.begin,
                               .end = range.end,
                               .grain = range.grain,
                               .strip = range.grain != 0 ? range.grain : 1};
    if (out != NULL) *out = (janus_parallel_failure){.error = 0};
    if (body == NULL) return JANUS_INVALID;
    if (worker != NULL) jrt_worker_stack_check(worker); /* [stack-reserve] */
    if (range.begin >= range.end) {
        jrt_stack_check(); /* [turn-call] */
        return 0;
    }
    if (range.grain == 0 && jrt_world_now() != NULL) { /* [loop-strip] */
        loop.strip = (range.end - range.begin - 1) / WORLD_STRIPS + 1;
    }
    if (worker != NULL && jrt_fork_possible(worker)) {
        run_divisibly(&loop, worker);
    } else {
        run(&loop, false);
    }
    if (out != NULL) *out = loop.failure;
    return loop.failure.error;
}

int64_t janus_for(janus_range range, janus_body *body, void *argument)
{
    return janus_for_with(range, body, argument, NULL);
}
