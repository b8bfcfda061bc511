/* SPDX-License-Identifier: MIT */
/* Sentences about what was refused: who, where, what is short, what to do. */
#include "task/trouble.h"

#include "task/nursery.h"
#include "task/purse.h"

#include <janusrt/explain.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void jrt_trouble_note(janus_status status, janus_component component, uint64_t used, uint64_t limit)
{
    struct jrt_thread  *thread = jrt_thread_self();
    struct jrt_trouble *last = &thread->trouble;
    struct jrt_worker  *worker = thread->worker;
    uint64_t            task = 0;
    if (worker != NULL && worker->current != NULL) task = jrt_task_id(worker->current);
    if (limit == 0 && last->status == status && last->task == task) return;
    *last = (struct jrt_trouble){status, (int32_t)component, used, limit, task};
}

/* A text that grows; `length` counts also what does not fit. */
struct text {
    char  *buffer;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    bool    room = text->length < text->size;
    va_start(arguments, format);
    int wrote = vsnprintf(room ? text->buffer + text->length : NULL,
                          room ? text->size - text->length : 0, format, arguments);
    va_end(arguments);
    if (wrote > 0) text->length += (size_t)wrote;
}

/* "main > plugins"; the path down to a nursery. Deep ones are cut in the middle. */
static void put_path(struct text *text, const struct jrt_nursery *n)
{
    enum { SHOWN = 6 };
    const struct jrt_nursery *path[SHOWN];
    unsigned                  depth = 0;
    for (; n != NULL; n = n->owner != NULL ? n->owner->nursery : NULL) {
        path[depth % SHOWN] = n;
        depth++;
    }
    unsigned shown = depth < SHOWN ? depth : SHOWN;
    if (depth > shown) put(text, "... > ");
    /* The last ones written are the outermost; walk from there inwards. */
    for (unsigned i = 0; i < shown; i++) {
        const struct jrt_nursery *at = path[(depth - 1 - i) % SHOWN];
        put(text, "%s%s", i > 0 ? " > " : "", jrt_nursery_name(at));
    }
}

static void put_who(struct text *text, const char *name, const janus_site *site, uint64_t id)
{
    put(text, "task %#llx \"%s\"", (unsigned long long)id, name);
    if (site != NULL && site->file != NULL) put(text, " (%s:%d)", site->file, site->line);
}

/* What to do about it. */
static const char *advice(janus_status status)
{
    switch (status) {
    case JANUS_TASK_LIMIT:
        return "Wait for some to end, raise janus_scheduler_options.max_tasks, or start them under "
               "a spawn capability that allows more.";
    case JANUS_FULL:
        return "Wait for some to end, or raise threads_max, the nursery's or the scheduler's; for "
               "blocking calls blocking_queue_max, of which tasks on terms get a share.";
    case JANUS_SPAWN_BUDGET:
        return "Give the nursery or the child a larger budget, ask for a smaller stack, or wait "
               "for children to end.";
    case JANUS_BUDGET_EXHAUSTED:
        return "Give it a larger budget, recharge it (janus_nursery_recharge), or let it do less.";
    case JANUS_NO_MEMORY:
        return "The system refused memory, also for the books of a budget: free some, or run fewer "
               "tasks. A larger budget does not help.";
    case JANUS_NO_SPAWN_CAP: return "Bind a spawn capability: janus_nursery_options.spawn_cap.";
    case JANUS_NO_BUDGET_CAP: return "Bind a budget capability: janus_nursery_options.budget_cap.";
    case JANUS_NO_CHANNEL_CAP:
        return "Bind a channel capability: janus_nursery_options.channel_cap.";
    case JANUS_NO_EXECUTOR_CAP:
        return "Bind an executor capability: janus_nursery_options.executor_cap.";
    case JANUS_CAP_FOREIGN: return "Have it delegated: copying a handle moves no right.";
    case JANUS_CAP_WIDENS: return "Ask for no more than is held around it.";
    case JANUS_CHANNEL_LIMIT:
        return "Destroy channels that are not used any more (closing frees none), raise "
               "janus_scheduler_options.max_channels, or bind a channel capability that allows "
               "more.";
    case JANUS_CAP_LIMIT:
        return "Ask for less, or for a capability that allows it; for channels with more values, "
               "also janus_scheduler_options.max_channel_values.";
    default: return "See janus_cap_check.";
    }
}

static void put_trouble(struct text *text, janus_status status, janus_component component,
                        uint64_t used, uint64_t limit)
{
    put(text, ": %s", janus_status_text(status));
    if (component != JANUS_COMPONENT_NONE) put(text, ": %s", janus_component_name(component));
    if (limit != 0) {
        put(text, "%s%llu of %llu used", component != JANUS_COMPONENT_NONE ? ", " : ": ",
            (unsigned long long)used, (unsigned long long)limit);
    }
    put(text, " (%s). %s", janus_status_name(status), advice(status));
}

size_t janus_explain(char *buffer, size_t size)
{
    struct text               text = {buffer, size, 0};
    const struct jrt_thread  *thread = jrt_thread_self();
    const struct jrt_worker  *worker = thread->worker;
    const struct jrt_trouble *last = &thread->trouble;
    const struct jrt_task    *task = worker != NULL ? worker->current : NULL;
    uint64_t                  id = task != NULL ? jrt_task_id(task) : 0;
    if (size > 0) buffer[0] = 0;
    if (last->status >= 0 || last->task != id) {
        jrt_stack_check(); /* [turn-call] */
        return 0;
    }
    if (task != NULL) {
        put_who(&text, jrt_task_name(task), task->site, id);
        put(&text, " in ");
        put_path(&text, task->innermost != NULL ? task->innermost : task->nursery);
    } else {
        put(&text, "a thread outside of tasks");
    }
    put_trouble(&text, (janus_status)last->status, (janus_component)last->component, last->used,
                last->limit);
    jrt_stack_check(); /* [turn-call]; last: another task's trouble would hide this one's */
    return text.length;
}

/* `why`: of a panic. */
static void put_failure(struct text *text, const struct jrt_nursery *n,
                        const janus_failure *failure, const char *why)
{
    put_who(text, failure->name, &failure->site, failure->task);
    put(text, " in ");
    put_path(text, n);
    if (failure->panic != JANUS_PANIC_NONE) {
        put(text, ": panic: %s", why);
    } else if (failure->error == JANUS_BUDGET_EXHAUSTED) {
        put_trouble(text, JANUS_BUDGET_EXHAUSTED, failure->lacks, failure->used, failure->limit);
    } else if (failure->error == JANUS_NO_MEMORY) {
        put_trouble(text, JANUS_NO_MEMORY, JANUS_COMPONENT_NONE, 0, 0);
    } else if (failure->error >= INT32_MIN &&
               strcmp(janus_status_name((janus_status)failure->error), "JANUS_?") != 0) {
        put(text, ": returned %lld: %s", (long long)failure->error,
            janus_status_text((janus_status)failure->error));
    } else {
        put(text, ": returned %lld", (long long)failure->error);
    }
}

void jrt_failure_sentence(struct jrt_nursery *n, const janus_failure *failure, const char *why,
                          char *buffer, size_t size)
{
    struct text text = {buffer, size, 0};
    put_failure(&text, n, failure, why);
}

size_t janus_failure_text(janus_nursery *nursery, const janus_failure *failure, char *buffer,
                          size_t size)
{
    struct text text = {buffer, size, 0};
    if (size > 0) buffer[0] = 0;
    if (nursery == NULL || failure == NULL) return 0;
    bool overflow = failure->panic == JANUS_PANIC_STACK_OVERFLOW;
    put_failure(&text, jrt_nursery_of(nursery), failure,
                overflow ? "its stack overflowed" : "janus_panic was called");
    jrt_stack_check(); /* [turn-call] */
    return text.length;
}
