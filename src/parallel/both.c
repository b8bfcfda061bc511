/* SPDX-License-Identifier: MIT */
/* Two calls. The worker may split off the second one meanwhile: nursery/fork.c. */
#include "means/call.h"
#include "nursery/fork.h"
#include "nursery/pay.h"
#include "parallel/failure.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

/* Ends a call in which something was split off, or f failed. `first` is what f returned, and *fork
 * is off the list. */
__attribute__((noinline)) static int64_t finish(struct jrt_fork *fork, int64_t first,
                                                janus_parallel_failure *out)
{
    janus_task_id task = jrt_task_id(fork->task);
    janus_task_id second_task = task;
    int64_t       second = 0;
    if (fork->nursery != NULL) {
        if (first < 0) jrt_fork_cancel(fork);
        struct jrt_fork_failure failure;
        jrt_fork_join(fork, &failure);
        const struct jrt_both_piece *piece = fork->piece;
        bool                         started = piece != NULL;
        if (started) {
            second = piece->result;
            second_task = piece->task;
            if (second == JRT_NOT_RETURNED) second = jrt_fork_error(&failure, second_task);
        }
        jrt_fork_free(fork);
        if (!started && first >= 0) second = fork->second(fork->argument);
    }
    /* Reports the first call that failed by itself. A call that returns CANCELLED only obeyed. */
    bool obeyed = first == JANUS_CANCELLED && second < 0;
    if (first < 0 && !obeyed) return jrt_failure(out, first, 0, 1, task);
    return second < 0 ? jrt_failure(out, second, 1, 2, second_task) : 0;
}

/* Runs both calls here: nothing can be split off. */
static inline int64_t one_after_other(janus_entry *f, void *a, janus_entry *g, void *b,
                                      janus_parallel_failure *out)
{
    int64_t first = f(a);
    if (jrt_unlikely(first < 0)) return jrt_failure(out, first, 0, 1, janus_task_current_id());
    int64_t second = g(b);
    if (jrt_likely(second >= 0)) return 0;
    return jrt_failure(out, second, 1, 2, janus_task_current_id());
}

/* The op is paid. After the first call everything needed is read from the fork. So only the strand
 * is kept in a register and saved for that. */
static inline __attribute__((always_inline)) int64_t divisible(struct jrt_worker *worker,
                                                               janus_entry *f, void *a,
                                                               janus_entry *g, void *b, bool look,
                                                               janus_parallel_failure *out)
{
    struct jrt_strand *strand = worker->strand; /* this frame lies on it and stays there */
    struct jrt_fork    fork;
    fork.task = worker->current;
    fork.around = fork.task->innermost;
    fork.nursery = NULL;
    fork.split = NULL;
    fork.second = g;
    fork.argument = b;
    jrt_fork_push(strand, &fork);
    if (look) jrt_fork_look(worker);
    int64_t first = f(a);
    if (jrt_unlikely(first < 0 || fork.nursery != NULL)) {
        jrt_fork_pop_any(strand, &fork);
        return finish(&fork, first, out);
    }
    jrt_fork_pop(strand, &fork);
    int64_t second = fork.second(fork.argument);
    if (jrt_likely(second >= 0)) return 0;
    return jrt_failure(out, second, 1, 2, janus_task_current_id());
}

/* The slow path, for everything but the most frequent cases. */
__attribute__((noinline)) static int64_t both_slow(janus_entry *f, void *a, janus_entry *g, void *b,
                                                   janus_parallel_failure *out)
{
    if (f == NULL || g == NULL) {
        jrt_stack_check(); /* [turn-call] */
        return JANUS_INVALID;
    }
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || worker->current == NULL) return one_after_other(f, a, g, b, out);
    jrt_worker_stack_check(worker); /* [stack-reserve]; in a world, another part may run */
    if (jrt_unlikely(!jrt_fuel_one())) {
        janus_status status = jrt_pay_ops(worker->current, 1);
        if (status != JANUS_OK) return jrt_failure(out, status, 0, 0, janus_task_current_id());
        worker = jrt_worker_self(); /* [worker-again] */
    }
    if (!jrt_fork_possible(worker)) return one_after_other(f, a, g, b, out);
    return divisible(worker, f, a, g, b, true, out);
}

/* For a worker that is alone. */
__attribute__((noinline)) static int64_t both_alone(janus_entry *f, void *a, janus_entry *g,
                                                    void *b)
{
    if (jrt_unlikely(!jrt_fuel_one())) return both_slow(f, a, g, b, NULL);
    return one_after_other(f, a, g, b, NULL);
}

/* Rare cases end in a tail call, so that nothing is kept for them. */
int64_t janus_both(janus_entry *f, void *a, janus_entry *g, void *b)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL || f == NULL || g == NULL)) {
        return both_slow(f, a, g, b, NULL);
    }
    if (worker->forks == JRT_FORKS_NEVER) return both_alone(f, a, g, b);
    if (jrt_unlikely(!jrt_fork_possible(worker) || jrt_fork_is_time(worker) || !jrt_fuel_one())) {
        return both_slow(f, a, g, b, NULL);
    }
    return divisible(worker, f, a, g, b, false, NULL);
}

int64_t janus_both_with(janus_entry *f, void *a, janus_entry *g, void *b,
                        janus_parallel_failure *out)
{
    if (out != NULL) *out = (janus_parallel_failure){.error = 0};
    return both_slow(f, a, g, b, out);
}
