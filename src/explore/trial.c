/* SPDX-License-Identifier: MIT */
/*
 * One schedule: a run of the scheduler in a world of its own, and the verdict on it.
 *
 * A failure in the middle of a run leaves the world at once through jrt_die, as a broken contract
 * does. So the place of the failure is the last event of the trace.
 */
#include "explore/trial.h"

#include "explore/trial.h"
#include "rt/run.h"

#include "base/hash.h"
#include "fiber/thread.h"
#include "sim/net.h"
#include "task/task.h"
#include "task/worker.h"
#include "trace/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char expectation[] = "expectation failed";
static const char deadlock[] = "deadlock";
static const char stale[] = "stale handle";

static const char panicked[] = "panic";

/* The message may lie in memory that is about to be forgotten. */
static void on_panic(const char *message)
{
    static _Thread_local char kept[192];
    snprintf(kept, sizeof kept, "%s", message);
    jrt_die(panicked, kept, __FILE__, __LINE__);
}

/* Names the call, and the task with the place where it was spawned. */
static void on_stale(const char *call)
{
    static _Thread_local char kept[192];
    const struct jrt_worker  *worker = jrt_worker_self();
    const struct jrt_task    *task = worker != NULL ? worker->current : NULL;
    const janus_site         *site = task != NULL ? jrt_task_site(task) : NULL;
    const char               *slash = site != NULL ? strrchr(site->file, '/') : NULL;
    int                       used = snprintf(kept, sizeof kept, "%s", call);
    if (task != NULL) {
        used += snprintf(kept + used, sizeof kept - (size_t)used, " by task \"%.31s\"",
                         jrt_task_name(task));
    }
    if (site != NULL) {
        (void)snprintf(kept + used, sizeof kept - (size_t)used, " of %.40s:%d",
                       slash != NULL ? slash + 1 : site->file, site->line);
    }
    jrt_die(stale, kept, __FILE__, __LINE__);
}

static void on_deadlock(void) { jrt_die(deadlock, "every task waits", __FILE__, __LINE__); }

/* Addresses differ from run to run and are useless afterwards: "0x7f12" becomes "0x". */
static void forget_addresses(char *text)
{
    char *out = text;
    while (*text != '\0') {
        bool address = text[0] == '0' && text[1] == 'x';
        *out++ = *text++;
        if (!address) continue;
        *out++ = *text++;
        text += strspn(text, "0123456789abcdef");
    }
    *out = '\0';
}

__attribute__((format(printf, 3, 4))) static void fail(struct jrt_log *log, janus_failing failing,
                                                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log->failing = failing;
    (void)vsnprintf(log->message, sizeof log->message, format, arguments);
    va_end(arguments);
    forget_addresses(log->message);
}

/* Faults begin with the entry: a scheduler that cannot be opened would show nothing. */
static int64_t run_entry(void *argument)
{
    const struct jrt_trial *trial = argument;
    trial->decider->strategy.faults = trial->decider->plan->faults;
    return trial->entry(trial->argument);
}

janus_scheduler_options jrt_trial_options(const struct jrt_trial *trial)
{
    const struct jrt_plan  *plan = trial->decider->plan;
    janus_scheduler_options options = {.struct_bytes = sizeof options};
    if (trial->scheduler != NULL) options = *trial->scheduler;
    options.worker_count = plan->worker_count;
    options.deterministic_seed = plan->seed;
    return options;
}

void jrt_trial_watch(const struct jrt_trial *trial)
{
    struct jrt_world *world = jrt_world_now();
    world->stale = trial->stale_allowed ? NULL : on_stale;
    world->panicked = trial->panics_allowed ? NULL : on_panic;
    world->deadlock = on_deadlock;
    world->audits = true;
    world->mute = !trial->loud;
}

static void run_scheduler(void *argument)
{
    struct jrt_trial             *trial = argument;
    struct jrt_log               *log = trial->decider->log;
    struct jrt_world             *world = jrt_world_now();
    char                          words[sizeof log->message];
    const janus_scheduler_options options = jrt_trial_options(trial);
    jrt_trial_watch(trial);
    log->status = jrt_run(&options, trial->entry != NULL ? run_entry : NULL, trial, &trial->end);
    if (trial->program) return;
    if (jrt_sim_leaks(world, words, sizeof words) > 0) fail(log, JANUS_FAILING_LEAK, "%s", words);
    if (world->channels > 0) {
        fail(log, JANUS_FAILING_LEAK, "%lld channels were opened and not destroyed",
             (long long)world->channels);
    }
}

/* Judges a run that reached its end. */
static void judge_result(const struct jrt_trial *trial, struct jrt_log *log)
{
    const janus_nursery_result *first = &trial->end.first;
    const char                 *name = "";
    if (log->status == JANUS_DEADLOCK) {
        fail(log, JANUS_FAILING_DEADLOCK, "all tasks wait, and no event can come");
    } else if (first->panic.kind == JANUS_PANIC_KIND_STACK_OVERFLOW) {
        fail(log, JANUS_FAILING_PANIC, "a task overflowed its stack");
    } else if (first->panic.kind != JANUS_PANIC_KIND_NONE) {
        fail(log, JANUS_FAILING_PANIC, "%s", first->panic.message);
    } else if (trial->end.began && trial->end.result < 0) {
        if (trial->end.result > INT32_MIN)
            name = janus_status_name((janus_status)trial->end.result);
        fail(log, JANUS_FAILING_RESULT, "the entry returned %lld (%s)",
             (long long)trial->end.result, name);
    } else if (trial->end.closed != JANUS_OK) {
        fail(log, JANUS_FAILING_LEAK, "a nursery of the scheduler was left open");
    }
}

static void judge_death(const struct jrt_world_run *run, struct jrt_log *log)
{
    if (run->what == expectation) {
        fail(log, JANUS_FAILING_EXPECTATION, "%s (%s:%d)", run->why, run->file, run->line);
    } else if (run->what == deadlock) {
        fail(log, JANUS_FAILING_DEADLOCK, "all tasks wait, and no event can come");
    } else if (run->what == panicked) {
        fail(log, JANUS_FAILING_PANIC, "a task panicked: %s", run->why);
    } else if (run->what == stale) {
        fail(log, JANUS_FAILING_STALE, "a handle was used after its end (%s)", run->why);
    } else if (strstr(run->what, "[bank-balance]") != NULL) {
        fail(log, JANUS_FAILING_LEAK, "budgets were left over: %s", run->why);
    } else {
        fail(log, JANUS_FAILING_CONTRACT, "%s: %s (%s:%d)", run->what, run->why, run->file,
             run->line);
    }
}

void jrt_trial_judge(const struct jrt_trial *trial, const struct jrt_world_run *run,
                     enum jrt_world_end end)
{
    struct jrt_log *log = trial->decider->log;
    log->steps += run->steps;
    log->hash = log->hash == 0 ? run->hash : jrt_hash_add(log->hash, run->hash);
    switch (end) {
    case JRT_WORLD_REFUSED: break;
    case JRT_WORLD_DIED: judge_death(run, log); break;
    case JRT_WORLD_STUCK: fail(log, JANUS_FAILING_DEADLOCK, "no task or thread can go on"); break;
    case JRT_WORLD_TOO_LONG:
        fail(log, JANUS_FAILING_STEPS,
             "the program did not end within %llu steps; raise --steps, or make the test smaller",
             (unsigned long long)trial->max_steps);
        break;
    case JRT_WORLD_TOO_LATE:
        fail(log, JANUS_FAILING_TIME, "the program did not end within %llu ms of simulated time",
             (unsigned long long)(trial->max_time_ns / 1000000));
        break;
    case JRT_WORLD_DONE:
        if (!trial->program) judge_result(trial, log);
        break;
    }
}

bool jrt_trial_run(struct jrt_trial *trial)
{
    struct jrt_world_run run = {.strategy = &trial->decider->strategy,
                                .spare = trial->spare,
                                .max_steps = trial->max_steps,
                                .max_time_ns = trial->max_time_ns,
                                .main = run_scheduler,
                                .argument = trial};
    enum jrt_world_end   end = jrt_world_run(&run);
    /* If the run was given up, its scheduler is not closed. Without a scheduler the run did not
     * begin. */
    bool cut = end != JRT_WORLD_DONE && end != JRT_WORLD_REFUSED;
    if (cut && trial->scheduler != NULL && trial->scheduler->trace != NULL) {
        jrt_trace_abandon(trial->scheduler->trace);
    }
    if (end == JRT_WORLD_REFUSED) return false;
    jrt_trial_judge(trial, &run, end);
    return true;
}

const char *jrt_failing_name(janus_failing failing)
{
    static const char *const names[] = {
        [JANUS_FAILING_NOT] = "nothing",        [JANUS_FAILING_EXPECTATION] = "expectation",
        [JANUS_FAILING_RESULT] = "result",      [JANUS_FAILING_PANIC] = "panic",
        [JANUS_FAILING_DEADLOCK] = "deadlock",  [JANUS_FAILING_STEPS] = "too many steps",
        [JANUS_FAILING_TIME] = "too much time", [JANUS_FAILING_CONTRACT] = "contract",
        [JANUS_FAILING_LEAK] = "leak",          [JANUS_FAILING_STALE] = "stale handle",
        [JANUS_FAILING_EXIT] = "exit",          [JANUS_FAILING_SIGNAL] = "signal",
    };
    return names[failing];
}

void janus_expect_failed(const char *text, const char *file, int line)
{
    char message[160]; /* as long as a panic's message */
    if (jrt_world_now() != NULL && jrt_world_now()->closed) jrt_die(expectation, text, file, line);
    struct jrt_thread *thread = jrt_thread_self();
    if (thread->current == NULL && thread->on_panic == NULL) jrt_die(expectation, text, file, line);
    (void)snprintf(message, sizeof message, "expectation failed: %s (%s:%d)", text, file, line);
    janus_panic(message);
}

void janus_point(void) { jrt_point(); }
