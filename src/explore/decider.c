/* SPDX-License-Identifier: MIT */
/*
 * Strategies: what decides in a schedule.
 *
 * [explore-usual]  every choice has a usual answer: the running part goes on, the first in order is
 *   taken, nothing fails. A schedule is the list of its other answers. If a part has gone on for
 *   very long while others could run, the usual answer is the next part. Otherwise a task that
 *   polls would keep all others from what it waits for.
 *
 * RANDOM draws every answer from the seed, in the order in which a world of that seed would. So
 * both give the same execution.
 *
 * PCT (Burckhardt and others, "A randomized scheduler with probabilistic guarantees of finding
 * bugs") gives parts random priorities, and the highest ready one runs. At depth - 1 random choices
 * the part that would run falls below all others. Only choices at which a task runs count. All
 * others are the scheduler's own: they are many and mean nothing to programs. A part that has gone
 * on for very long falls too, otherwise it would never give way. A part that passes draws a new
 * priority. Otherwise a searching worker would stay below those that have work for ever, and
 * nothing would be stolen. Answers that do not concern parts are drawn from the seed.
 *
 * SEARCH is depth-first. Each schedule repeats the one before up to the last place with another
 * answer, takes that answer, and continues as usual. Preempting a part that could go on costs one,
 * and so does a short slice, a fault, a short transfer or a delay. Paths that cost more than the
 * depth are left out.
 */
#include "explore/decider.h"

#include "explore/decider.h"
#include "sim/net.h"
#include "task/task.h"
#include "task/worker.h"

#include <string.h>

enum { PATIENCE = 500 }; /* choices in a row, [explore-usual] */

struct choice {
    enum jrt_choice kind;
    uint32_t        count;
    const uint32_t *who;            /* numbers of the parts */
    uint32_t        usual;          /* [explore-usual] */
    uint32_t        thread, number; /* as struct jrt_choice_made */
    bool            in_task;        /* a task makes it */
};

static uint32_t usual_of(const struct jrt_decider *decider, enum jrt_choice kind,
                         const uint32_t *who)
{
    bool long_since = kind == JRT_CHOOSE_THREAD && who[0] == decider->last;
    return long_since && decider->streak >= PATIENCE ? 1 : 0;
}

static void note_chosen(struct jrt_decider *decider, uint32_t who)
{
    decider->streak = who == decider->last ? decider->streak + 1 : 0;
    decider->last = who;
}

/* PCT. */

static int64_t *priority_of(struct jrt_decider *decider, uint32_t who)
{
    int64_t *priority = &decider->priorities[who % JRT_DECIDER_PARTS];
    if (*priority == 0) *priority = (int64_t)(jrt_rng_next(&decider->random) >> 2) + 1;
    return priority;
}

static uint32_t highest(struct jrt_decider *decider, uint32_t count, const uint32_t *who)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (*priority_of(decider, who[i]) > *priority_of(decider, who[best])) best = i;
    }
    return best;
}

static void fall(struct jrt_decider *decider, uint32_t who)
{
    decider->priorities[who % JRT_DECIDER_PARTS] = --decider->lowest;
}

static void passed(struct jrt_strategy *strategy, uint32_t who)
{
    struct jrt_decider *decider = (struct jrt_decider *)strategy;
    decider->priorities[who % JRT_DECIDER_PARTS] = 0; /* the next use draws a new one */
}

static uint32_t by_priority(struct jrt_decider *decider, const struct choice *choice)
{
    const uint32_t *who = choice->who;
    uint32_t        chosen = highest(decider, choice->count, who);
    bool            changes = decider->streak >= PATIENCE && who[chosen] == decider->last;
    for (uint32_t i = 0; i + 1 < decider->plan->depth && i < JRT_DEPTH_MAX; i++) {
        changes |= choice->in_task && decider->changes[i] == decider->log->threads;
    }
    if (!changes) return chosen;
    fall(decider, who[chosen]);
    return highest(decider, choice->count, who);
}

/* The others. */

static uint32_t as_listed(const struct jrt_decider *decider, const struct choice *choice)
{
    const struct jrt_choice_made *made =
        jrt_plan_find(decider->plan, choice->thread, choice->number);
    if (made == NULL) return choice->usual;
    if (choice->kind != JRT_CHOOSE_THREAD) {
        return made->value < choice->count ? made->value : choice->usual;
    }
    for (uint32_t i = 0; i < choice->count; i++) {
        if (choice->who[i] == made->value) return i;
    }
    return choice->usual; /* that part cannot run here */
}

static struct jrt_choice_made made_of(const struct choice *choice, uint32_t value)
{
    uint32_t named = choice->kind == JRT_CHOOSE_THREAD ? choice->who[value] : value;
    return (struct jrt_choice_made){choice->thread, choice->number, named};
}

/* Whether unusual answers cost: troubles of the system, and the end of a slice at a check. */
static bool is_trouble(enum jrt_choice kind)
{
    return kind == JRT_CHOOSE_FAULT || kind == JRT_CHOOSE_CUT || kind == JRT_CHOOSE_DELAY ||
           kind == JRT_CHOOSE_SLICE;
}

static uint32_t as_searched(struct jrt_decider *decider, const struct choice *choice)
{
    struct jrt_log *log = decider->log;
    uint32_t        count = choice->kind == JRT_CHOOSE_FAULT ? 2 : choice->count;
    if (log->choices >= JRT_LOG_ROOM) {
        log->full = true;
        return choice->usual;
    }
    struct jrt_log_step *step = &log->path[log->choices];
    bool                 known = log->choices < log->prefix;
    if (known && step->count != count) log->differs = true;
    uint32_t rank = known && step->rank < count ? step->rank : 0;
    uint32_t value = (choice->usual + rank) % count;
    bool     preempts =
        choice->kind == JRT_CHOOSE_THREAD && choice->usual == 0 && choice->who[0] == choice->thread;
    *step = (struct jrt_log_step){rank, count, preempts || is_trouble(choice->kind),
                                  made_of(choice, value)};
    log->kept = (uint32_t)log->choices + 1;
    return value;
}

/* What the log keeps. */

static void who_is(const struct jrt_world_view *view, struct jrt_log_who *out)
{
    const struct jrt_worker *worker = view->record->worker;
    const struct jrt_task   *task = worker != NULL ? worker->current : view->record->behalf;
    *out = (struct jrt_log_who){.task = task != NULL ? jrt_task_id(task) : 0};
    strncpy(out->thread, view->name, sizeof out->thread - 1);
    if (task != NULL && task->name != NULL) {
        jrt_name_again(out->name, sizeof out->name, task->name);
    }
}

static void tell(struct jrt_log *log, const struct choice *choice, uint32_t value)
{
    if (log->told_count == JRT_LOG_TOLD) return;
    struct jrt_log_told  *told = &log->told[log->told_count++];
    struct jrt_world_view view;
    bool                  fault = choice->kind == JRT_CHOOSE_FAULT;
    told->kind = (uint32_t)choice->kind;
    told->value = fault ? jrt_world_now()->fault : value;
    told->count = choice->count;
    told->words[0] = '\0';
    (void)jrt_sim_words(jrt_world_now(), choice->kind, value, told->words, sizeof told->words);
    if (jrt_world_look(jrt_world_now(), JRT_WORLD_CURRENT, &view)) who_is(&view, &told->left);
    told->step = view.steps;
    if (choice->who == NULL) return;
    if (jrt_world_look(jrt_world_now(), choice->who[choice->usual], &view)) {
        who_is(&view, &told->usual);
    }
    if (jrt_world_look(jrt_world_now(), choice->who[value], &view)) who_is(&view, &told->chosen);
}

static void keep(struct jrt_log *log, const struct choice *choice, uint32_t value)
{
    if (log->kept < JRT_LOG_ROOM) {
        log->made[log->kept++] = made_of(choice, value);
    } else {
        log->full = true;
    }
}

static uint32_t answer(struct jrt_decider *decider, const struct choice *choice)
{
    switch (decider->plan->kind) {
    case JRT_PLAN_PCT:
        if (choice->kind == JRT_CHOOSE_THREAD) return by_priority(decider, choice);
        break;
    case JRT_PLAN_CHOICES: return as_listed(decider, choice);
    case JRT_PLAN_SEARCH: return as_searched(decider, choice);
    case JRT_PLAN_RANDOM: break;
    }
    return jrt_rng_below(&decider->random, choice->count);
}

static uint32_t decide(struct jrt_strategy *strategy, enum jrt_choice kind, uint32_t count,
                       const uint32_t *who, bool must)
{
    struct jrt_decider   *decider = (struct jrt_decider *)strategy;
    struct jrt_log       *log = decider->log;
    struct jrt_world_view view;
    (void)must; /* then the running part is not among them */
    (void)jrt_world_look(jrt_world_now(), JRT_WORLD_CURRENT, &view);
    const struct jrt_worker *worker = view.record->worker;
    uint32_t                 thread = view.number, number;
    if (!jrt_sim_choice(jrt_world_now(), kind, &thread, &number)) {
        number = decider->numbers[view.number % JRT_DECIDER_PARTS]++;
    }
    struct choice choice = {.kind = kind,
                            .count = count,
                            .who = who,
                            .usual = usual_of(decider, kind, who),
                            .thread = thread,
                            .number = number,
                            .in_task = worker != NULL && worker->current != NULL};
    jrt_debug_invariant("explore-usual", choice.usual < count);
    if (kind == JRT_CHOOSE_THREAD && choice.in_task) log->threads++;
    uint32_t value = answer(decider, &choice);
    if (kind == JRT_CHOOSE_FAULT && value != 1) value = 0; /* all values but 1 mean the same */
    if (jrt_unlikely(decider->keeps) && value != choice.usual) {
        keep(log, &choice, value);
        if (decider->tells) tell(log, &choice, value);
    }
    if (kind == JRT_CHOOSE_THREAD) note_chosen(decider, who[value]);
    log->choices++;
    return value;
}

void jrt_decider_init(struct jrt_decider *decider, const struct jrt_plan *plan, struct jrt_log *log)
{
    *decider =
        (struct jrt_decider){.strategy = {.decide = decide, .faults_every = plan->faults_every},
                             .plan = plan,
                             .log = log};
    jrt_rng_seed(&decider->random, plan->seed);
    if (plan->kind != JRT_PLAN_PCT) return;
    decider->strategy.passed = passed;
    for (uint32_t i = 0; i + 1 < plan->depth && i < JRT_DEPTH_MAX; i++) {
        uint32_t length = plan->length < UINT32_MAX ? (uint32_t)plan->length : UINT32_MAX;
        decider->changes[i] =
            1 + (uint64_t)jrt_rng_below(&decider->random, length > 0 ? length : 1);
    }
}
