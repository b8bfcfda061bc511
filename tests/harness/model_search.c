/* SPDX-License-Identifier: MIT */
/*
 * The engine of model.h.
 *
 * An *actor* is a thread or one buffered store of a thread. Each actor has at most one next step,
 * and the engine knows whether it may be taken. A run is a stack of steps. Each step remembers
 * three sets of actors:
 *
 * - `enabled`: could have gone instead
 * - `backtrack`: to be tried, because its step races with a later one
 * - `sleep`: need not be tried, because its action was seen
 *
 *     run:     repeat the first `prefix` choices of the stack, then choose freely to the end
 *     branch:  drop steps from the top until one has an actor left to try; try it
 *
 * A step *comes before* a later one if a chain of dependent steps, and of one thread's own steps,
 * leads from it to the other. Clocks record this: clock[a] of a step is the number of the last step
 * of actor a that comes before it. Two dependent steps of different actors race if no other step
 * comes between them in this sense. Then the reverse order is worth trying. source-DPOR (Abdulla
 * and others 2014) chooses the actor to try. A first version with the simpler rule of Flanagan and
 * Godefroid (2005) and sleep sets lost outcomes; model_test.c compares.
 *
 * Each store is an actor of its own, not its thread's buffer. So its identity does not depend on
 * the order of steps.
 */
#include "model_engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 64 * 1024 };

static actor_set sleeping;  /* of the current state */
static bool      redundant; /* from step redundant_from on */
static int       redundant_from;

static char  text[TEXT_BYTES];
static char *text_end;

/* Reporting. */

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    va_list arguments;
    size_t  left = (size_t)(text + TEXT_BYTES - text_end);
    va_start(arguments, format);
    int length = vsnprintf(text_end, left, format, arguments);
    va_end(arguments);
    text_end += (size_t)length < left ? (size_t)length : left - 1;
}

static const char *name_of(int thread)
{
    static const char *const plain[] = {"thread 0", "thread 1", "thread 2", "thread 3"};
    return model.scenario->names[thread] != NULL ? model.scenario->names[thread] : plain[thread];
}

static void tell_steps(void)
{
    for (int i = 0; i < model.depth; i++) {
        const struct step *step = &model.steps[i];
        const char        *name = name_of((int)(owner_of(step->actor) - model.threads));
        bool               buffered = step->actor >= MODEL_THREADS_MAX;
        tell("#   %-10s %s%s", name, buffered ? "  ... seen by all: " : "", step->action.at.what);
        if (step->choices != 0) tell(" %u of %u", step->choice, step->choices);
        tell("   %s:%d\n", step->action.at.file, step->action.at.line);
    }
}

void model_note(const char *what, const char *file, int line)
{
    model.failed = true;
    text_end = text;
    tell("%s (%s:%d), after these steps:\n", what, file, line);
    tell_steps();
}

/* The search. */

static int lowest(actor_set set) { return __builtin_ctzll(set); }

static bool dependent(const struct action *one, const struct action *other)
{
    if (model.scenario->every || one->access == MODEL_ANY || other->access == MODEL_ANY)
        return true;
    if (one->access == MODEL_LOCAL || other->access == MODEL_LOCAL) return false;
    return one->object == other->object &&
           (one->access == MODEL_WRITE || other->access == MODEL_WRITE);
}

static bool comes_before(int earlier, int later)
{
    return earlier + 1 <= model.steps[later].clock.last[model.steps[earlier].actor];
}

/*
 * Step `last` could have come before step `first`. So at `first` an actor must try a way that leads
 * there. That way is everything since `first` that does not depend on it, then `last`. Any actor
 * whose first step in the way depends on no other step of it will do.
 */
static void add_backtrack(int first, int last)
{
    struct step *step = &model.steps[first];
    actor_set    seen = 0, fit = 0;
    for (int i = first + 1; i <= last; i++) {
        int actor = model.steps[i].actor;
        if (model.steps[i].choices != 0 || (i != last && comes_before(first, i))) continue;
        bool alone = (seen & bit(actor)) == 0;
        for (int j = first + 1; j < i && alone; j++) {
            if (model.steps[j].choices != 0 || comes_before(first, j)) continue;
            alone = !comes_before(j, i);
        }
        if (alone) fit |= bit(actor);
        seen |= bit(actor);
    }
    fit &= step->enabled;
    if (fit == 0)
        step->backtrack |= step->enabled;
    else if ((fit & step->backtrack) == 0)
        step->backtrack |= bit(lowest(fit));
}

/* Fills in the step at `depth`, unless an earlier run did. */
static void choose(actor_set enabled, int last)
{
    struct step *step = &model.steps[model.depth];
    if (model.depth < model.prefix) {
        CHECK(step->enabled == enabled && step->choices == 0); /* deterministic */
        return;
    }
    memset(step, 0, sizeof *step);
    actor_set wanted = enabled & ~sleeping;
    if (wanted == 0 && !redundant) { /* everything was seen; runs to the end anyway */
        redundant = true;
        redundant_from = model.depth;
    }
    if (redundant) wanted = enabled;
    step->enabled = enabled;
    step->sleep = sleeping;
    step->actor = last >= 0 && (wanted & bit(last)) != 0 ? last : lowest(wanted);
    step->backtrack = bit(step->actor);
}

/*
 * A step that may have had to wait. In the chain that leads to it, the step that let it go on hides
 * the step that had stopped it. It might have gone before that one. So it races with everything
 * that its own thread's steps do not need.
 */
static void add_waiter(int index)
{
    const struct clock *own = &model.known[model.steps[index].actor];
    for (int i = index - 1; i >= 0; i--) {
        const struct step *earlier = &model.steps[i];
        if (earlier->choices != 0 || i + 1 <= own->last[earlier->actor]) continue;
        add_backtrack(i, index);
    }
}

/* Finds what comes before the step and, in a run's new part, the steps that it races with. */
static void set_clock(int index)
{
    struct step *step = &model.steps[index];
    int          races[STEPS_MAX];
    int          count = 0;
    bool         is_new = !redundant && index + 1 >= model.prefix;
    if (index + 1 < model.prefix) { /* the run before has filled it in */
        model.known[step->actor] = step->clock;
        return;
    }
    step->clock = model.known[step->actor];
    if (step->actor < MODEL_THREADS_MAX && model.threads[step->actor].drains)
        join(&step->clock, &model.threads[step->actor].drained);
    for (int i = index - 1; i >= 0; i--) {
        const struct step *earlier = &model.steps[i];
        if (earlier->choices != 0 || comes_before(i, index)) continue;
        if (!dependent(&earlier->action, &step->action)) continue;
        if (earlier->actor != step->actor) races[count++] = i;
        join(&step->clock, &earlier->clock);
    }
    step->clock.last[step->actor] = (int16_t)(index + 1);
    if (is_new && step->action.waits) add_waiter(index);
    model.known[step->actor] = step->clock;
    if (!is_new) return;
    for (int i = 0; i < count; i++) add_backtrack(races[i], index);
}

static void take_step(void)
{
    int          index = model.depth;
    struct step *step = &model.steps[index];
    int          actor = step->actor;
    step->action = model.next[actor];
    sleeping = 0;
    for (actor_set set = step->sleep & ~bit(actor); set != 0; set &= set - 1) {
        if (!dependent(&model.next[lowest(set)], &step->action)) sleeping |= bit(lowest(set));
    }
    set_clock(index);
    model.depth++; /* the body may add choices */
    if (actor < MODEL_THREADS_MAX) {
        model.current = &model.threads[actor];
        model_enter(&model.threads[actor]);
    } else {
        model_store_step(owner_of(actor), (actor - MODEL_THREADS_MAX) % STORES_MAX);
    }
}

static void run_check(void *state, int self)
{
    (void)self;
    model.current = NULL;
    model.scenario->check(state);
}

static void run_begin(void)
{
    model.depth = 0;
    sleeping = 0;
    redundant = false;
    memset(model.known, 0, sizeof model.known);
    if (model.scenario->setup != NULL) model.scenario->setup(model.scenario->state);
    for (int i = 0; i < model.thread_count && !model.failed; i++) {
        struct thread *thread = &model.threads[i];
        thread->job = model.scenario->bodies[i];
        thread->done = thread->drains = thread->asleep = false;
        thread->ready = NULL;
        thread->store_count = 0;
        thread->waiting = 0;
        memset(&thread->drained, 0, sizeof thread->drained);
        model.current = thread;
        model_enter(thread); /* to its first point */
    }
}

/* One execution. */
static void run(void)
{
    int last = -1;
    run_begin();
    while (!model.failed) {
        actor_set enabled = model_enabled();
        if (enabled == 0) break;
        if (model.depth == STEPS_MAX) {
            model_note("a thread goes on for ever", __FILE__, __LINE__);
            break;
        }
        choose(enabled, last);
        last = model.steps[model.depth].actor;
        take_step();
    }
    for (int i = 0; i < model.thread_count && !model.failed; i++) {
        if (!model.threads[i].done)
            model_note("nobody can go on", model.next[i].at.file, model.next[i].at.line);
    }
    if (!model.failed && model.scenario->check != NULL) {
        model.threads[0].job = run_check;
        model_enter(&model.threads[0]);
    }
    if (model.scenario->teardown != NULL) model.scenario->teardown(model.scenario->state);
}

/* Makes the stack the beginning of the next run. False: there are no more. */
static bool branch(void)
{
    for (int i = (redundant ? redundant_from : model.depth) - 1; i >= 0; i--) {
        struct step *step = &model.steps[i];
        model.prefix = i + 1;
        if (step->choices != 0) {
            if (++step->choice < step->choices) return true;
            continue;
        }
        step->sleep |= bit(step->actor);
        actor_set wanted = step->backtrack & ~step->sleep;
        if (wanted == 0) continue;
        step->actor = lowest(wanted);
        return true;
    }
    return false;
}

struct model_result model_explore(const struct model_scenario *given)
{
    struct model_result result = {0};
    model.scenario = given;
    model.failed = false;
    model.prefix = 0;
    model.thread_count = 0;
    while (model.thread_count < MODEL_THREADS_MAX && given->bodies[model.thread_count] != NULL)
        model.thread_count++;
    model_threads_make();
    do {
        run();
        result.executions++;
        result.redundant += redundant;
        result.steps += (uint64_t)model.depth;
    } while (!model.failed && branch());
    model_threads_drop();
    model.scenario = NULL;
    result.failure = model.failed ? text : NULL;
    return result;
}

void model_pass(const struct model_scenario *given)
{
    struct model_result result = model_explore(given);
    printf("# %s: %llu executions, %llu redundant, %llu steps\n", given->name,
           (unsigned long long)result.executions, (unsigned long long)result.redundant,
           (unsigned long long)result.steps);
    if (result.failure == NULL) return;
    printf("# %s: %s", given->name, result.failure);
    fflush(stdout);
    harness_fail(__FILE__, __LINE__, "no execution fails");
}

void model_find(const struct model_scenario *given, const char *word)
{
    struct model_result result = model_explore(given);
    if (result.failure == NULL) harness_fail(given->name, 0, "some execution fails");
    printf("# %s: found by execution %llu\n", given->name, (unsigned long long)result.executions);
    if (strstr(result.failure, word) != NULL) return;
    printf("# %s", result.failure);
    fflush(stdout);
    harness_fail_str(given->name, 0, "it fails as expected", result.failure, word);
}
