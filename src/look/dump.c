/* SPDX-License-Identifier: MIT */
/*
 * Dumps.
 *
 * The dump collects its text in memory of a fixed size while it holds locks, and writes it when it
 * holds none. So a process that does not read the other end stops only the dumping thread.
 *
 * [dump-walk]  The walk goes from the roots down, without recursion: a dump may be called on a
 *   small stack. It holds the locks of the nurseries on its way down, as cancel_below does. A
 *   nursery that it has left exists until it releases the lock of the nursery above. The reason: a
 *   nursery takes itself off the list above under that lock before it ends.
 *
 * Order of locks: roots_lock, then nurseries' from the top down.
 */
#include "look/dump.h"

#include "base/outside.h"
#include "cancel/wait.h"
#include "look/cycle.h"
#include "look/peek.h"
#include "look/places.h"
#include "means/holder.h"
#include "means/purse.h"
#include "nursery/nursery.h"
#include "plat/signal.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <janusrt/dump.h>
#include <janusrt/explain.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INDENT_MAX = 60,    /* columns */
    TRAILER_BYTES = 96, /* reserved for the last line */
};

const char *janus_nursery_state_name(janus_nursery_state state)
{
    static const char *const names[] = {"open", "closing", "cancelling", "closed", "cancelled"};
    return (unsigned)state <= JANUS_NURSERY_STATE_CANCELLED ? names[state] : "?";
}

const char *janus_cancel_reason_text(janus_cancel_reason reason)
{
    static const char *const texts[] = {
        [JANUS_CANCEL_REASON_NONE] = "not cancelled",
        [JANUS_CANCEL_REASON_EXPLICIT] = "a task or thread called cancel",
        [JANUS_CANCEL_REASON_PARENT] = "the task that owns the nursery was cancelled",
        [JANUS_CANCEL_REASON_SIBLING_ERROR] = "another child of the nursery failed",
        [JANUS_CANCEL_REASON_DEADLINE] = "its deadline passed",
        [JANUS_CANCEL_REASON_SHUTDOWN] = "the scheduler is being stopped",
    };
    return (unsigned)reason <= JANUS_CANCEL_REASON_SHUTDOWN ? texts[reason] : "?";
}

const char *janus_result_kind_text(janus_result_kind kind)
{
    static const char *const texts[] = {
        [JANUS_RESULT_KIND_SUCCESS] = "success",
        [JANUS_RESULT_KIND_CHILD_FAILED] = "a child failed",
        [JANUS_RESULT_KIND_CANCELLED] = "cancelled",
        [JANUS_RESULT_KIND_PENDING] = "children are still running",
    };
    return (unsigned)kind <= JANUS_RESULT_KIND_PENDING ? texts[kind] : "?";
}

/* Text of a bounded size. */

struct text {
    char  *bytes;
    size_t used, room;
    bool   full;

    struct jrt_places places; /* channels at which tasks wait */
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    if (text->full) return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->used, text->room - text->used, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= text->room - text->used) {
        text->full = true; /* the line is left out as a whole */
    } else {
        text->used += (size_t)length;
    }
}

static bool text_open(struct text *text)
{
    *text = (struct text){.bytes = jrt_malloc(JANUS_DUMP_BYTES_MAX)};
    text->room = JANUS_DUMP_BYTES_MAX - TRAILER_BYTES;
    if (text->bytes != NULL) jrt_places_collect(&text->places);
    return text->bytes != NULL;
}

static bool text_close(struct text *text, int fd)
{
    if (text->full) {
        text->full = false;
        text->room += TRAILER_BYTES;
        put(text, "janusrt: the dump is cut after %zu bytes\n", text->used);
    } else {
        text->room += TRAILER_BYTES;
        put(text, "janusrt: end of dump\n");
    }
    bool written = jrt_write_all(fd, text->bytes, text->used);
    free(text->bytes);
    jrt_places_free(&text->places);
    return written;
}

/* Lines. */

static void put_worker(struct text *text, const janus_scheduler *scheduler, uint32_t index)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    JANUS_IGNORE(janus_worker_inspect(scheduler, index, &stats)); /* there is such a worker */
    if (stats.task != 0) {
        put(text, "worker %u: task %#llx", index, (unsigned long long)stats.task);
    } else {
        put(text, "worker %u: idle", index);
    }
    put(text, ", executed %llu (%llu in place), skipped %llu, stolen %llu, failed steals %llu",
        (unsigned long long)stats.tasks_executed, (unsigned long long)stats.tasks_in_place,
        (unsigned long long)stats.tasks_cancelled, (unsigned long long)stats.tasks_stolen,
        (unsigned long long)stats.steals_failed);
    put(text, ", switches %llu, parks %llu, yields %llu", (unsigned long long)stats.switches,
        (unsigned long long)stats.parks, (unsigned long long)stats.yields);
    if (stats.restarts > 0) put(text, ", restarts %llu", (unsigned long long)stats.restarts);
    put(text, "\n");
}

static void put_seat(void *argument, uint32_t number, janus_task_id id)
{
    if (id != 0) {
        put(argument, "thread %u: task %#llx\n", number, (unsigned long long)id);
    } else {
        put(argument, "thread %u: its task waits\n", number);
    }
}

static int indent(unsigned depth) { return depth * 2 < INDENT_MAX ? (int)depth * 2 : INDENT_MAX; }

static void put_nursery(struct text *text, const struct jrt_nursery *n, unsigned depth)
{
    long long           children = jrt_peek_children(n);
    janus_nursery_state state = jrt_nursery_seen((struct jrt_nursery *)(uintptr_t)n);
    put(text, "%*snursery \"%s\"%s: %s, %lld %s\n", indent(depth), "", jrt_nursery_name(n),
        n->owner == NULL ? " of a thread" : "", janus_nursery_state_name(state), children,
        children == 1 ? "child" : "children");
}

/* Shows for how long, and where; see [peek-time]. */
static void put_time(struct text *text, const struct jrt_sight *sight)
{
    unsigned long long ms = sight->state_ns / 1000000;
    if (sight->state_ns != 0) {
        put(text, ", for %s", sight->at_most ? "at most " : "");
        if (ms < 1000) put(text, "%llu ms", ms);
        if (ms >= 1000) put(text, "%llu.%llu s", ms / 1000, ms / 100 % 10);
    }
    if (sight->worker == UINT32_MAX) return;
    bool runs = sight->state == JANUS_TASK_STATE_RUNNING;
    put(text, ", %sworker %u", runs ? "on " : "last on ", sight->worker);
}

/* Shows a channel, as: channel "orders" to receive from. */
static void put_channel(struct text *text, enum jrt_wait kind, bool rests, const char *name)
{
    if (kind == JRT_WAIT_SELECT) {
        put(text, "one of several channels, \"%s\" among them", name);
    } else {
        put(text, "channel \"%s\" to %s%s", name,
            kind == JRT_WAIT_SEND ? "send to" : "receive from", rests ? ", without a stack" : "");
    }
}

/* Shows a handle, as: bytes to read from 127.0.0.1:80. */
static void put_handle(struct text *text, const struct jrt_sight *sight, const char *name)
{
    bool accepts = sight->kind == JRT_WAIT_ACCEPT;
    put(text, "%s %s %s%s", jrt_wait_text(sight->kind),
        accepts                        ? "at"
        : sight->kind == JRT_WAIT_READ ? "from"
                                       : "to",
        name, sight->rests ? ", without a stack" : "");
}

/* Shows what a task waits for, as: mutex "accounts" held by task "teller" 0x200000001
 * (bank.c:40). */
static void put_wait(struct text *text, const struct jrt_task *task, const struct jrt_sight *sight)
{
    struct jrt_want want;
    struct jrt_seen seen;
    char            name[JANUS_NAME_BYTES];
    put(text, ", waits for ");
    const char *channel = jrt_places_find(&text->places, task);
    bool        at_channel = sight->kind >= JRT_WAIT_SEND && sight->kind <= JRT_WAIT_SELECT;
    if (channel != NULL && at_channel) {
        put_channel(text, sight->kind, sight->rests, channel);
        return;
    }
    bool at_handle = sight->kind >= JRT_WAIT_READ && sight->kind <= JRT_WAIT_CONNECT;
    if (channel != NULL && at_handle) {
        put_handle(text, sight, channel);
        return;
    }
    bool object = sight->kind >= JRT_WAIT_MUTEX && sight->kind <= JRT_WAIT_RWLOCK;
    if (!object || !jrt_holder_look(task, &want, name, sizeof name, &seen)) {
        put(text, "%s", sight->wait);
        return;
    }
    if (want.name == NULL) put(text, "%s", sight->wait);
    if (want.name != NULL) put(text, "%s \"%s\"", want.what, name);
    if (!seen.held) return;
    if (seen.task == 0) {
        put(text, " held by a %s", seen.thread ? "thread" : "task of another scheduler");
        return;
    }
    put(text, " held by task \"%s\" %#llx", seen.name, (unsigned long long)seen.task);
    if (seen.line != 0) put(text, " (%s:%d)", seen.file, seen.line);
    if (seen.count > 1) put(text, " and %u more", seen.count - 1);
}

static void put_task(struct text *text, const struct jrt_task *task, unsigned depth)
{
    struct jrt_sight sight;
    jrt_peek_task(task, &sight);
    put(text, "%*stask \"%s\" %#llx: %s", indent(depth), "", jrt_task_name(task),
        (unsigned long long)jrt_task_id(task), janus_task_state_name(sight.state));
    bool exhausted = sight.state == JANUS_TASK_STATE_BUDGET_EXHAUSTED;
    if (sight.state == JANUS_TASK_STATE_BLOCKED || exhausted) put_wait(text, task, &sight);
    janus_component lacks;
    janus_budget    left;
    if (exhausted && jrt_exhausted_read(task, &left, &lacks)) {
        put(text, " (%s)", janus_component_name(lacks));
    }
    put_time(text, &sight);
    const janus_site *site = jrt_task_site(task);
    if (site != NULL) put(text, ", %.200s:%d", site->file, site->line);
    put(text, "\n");
}

/*
 * A crowd of actors or tasks at rest, or of exhausted children, would fill the dump with lines that
 * differ in the id alone. The dump shows the first SHOWN of such a run, and counts the others.
 */
enum { SHOWN = 3 };

struct fold {
    const struct jrt_task *like;  /* the first of the run; NULL: none */
    unsigned               count; /* of the run so far */
};

/* Whether two tasks, both without nurseries, have lines that differ in the id alone. */
static bool are_alike(const struct jrt_task *a, const struct jrt_task *b)
{
    struct jrt_sight one, other;
    if (strcmp(jrt_task_name(a), jrt_task_name(b)) != 0) return false;
    jrt_peek_task(a, &one);
    jrt_peek_task(b, &other);
    bool rests = one.rests && other.rests;
    bool exhausted = one.state == JANUS_TASK_STATE_BUDGET_EXHAUSTED;
    return (rests || exhausted) && one.state == other.state && one.kind == other.kind;
}

/* The run has ended. */
static void put_folded(struct text *text, struct fold *fold, unsigned depth)
{
    if (fold->count > SHOWN) {
        put(text, "%*sand %u more like it\n", indent(depth), "", fold->count - SHOWN);
    }
    *fold = (struct fold){.like = NULL};
}

/* Shows the task, or counts it as one of a run. */
static void put_or_fold(struct text *text, struct fold *fold, const struct jrt_task *task,
                        unsigned depth)
{
    bool lone = jrt_list_empty(&task->nurseries);
    if (lone && fold->like != NULL && are_alike(fold->like, task)) {
        if (++fold->count > SHOWN) return;
    } else {
        put_folded(text, fold, depth);
        if (lone) *fold = (struct fold){.like = task, .count = 1};
    }
    put_task(text, task, depth);
}

/* Counts, after a nursery's listed children, those that are on no list. */
static void put_rest(struct text *text, struct jrt_nursery *n, unsigned depth)
{
    if (text->full) return;
    long long rest = jrt_peek_children(n);
    /* The listed children fit into the dump, so they are few. */
    struct jrt_list_node *node = n->children.next;
    for (; node != &n->children; node = node->next) rest--;
    if (rest <= 0) return;
    put(text, "%*sand %lld more that are queued, running, or never waited\n", indent(depth), "",
        rest);
}

/* The first nursery below a task that the dump shows; NULL: none. */
static struct jrt_nursery *descend(struct text *text, struct jrt_task *task, unsigned depth)
{
    if (jrt_list_empty(&task->nurseries)) return NULL;
    if (depth >= JANUS_DUMP_DEPTH_MAX) {
        put(text, "%*sand more below, not shown\n", indent(depth), "");
        return NULL;
    }
    return jrt_list_entry(task->nurseries.next, struct jrt_nursery, link);
}

/* Shows one root, [dump-walk]. */
static void put_tree(struct text *text, struct jrt_nursery *root)
{
    struct jrt_nursery   *n = root;
    unsigned              depth = 0; /* depth of n */
    struct jrt_list_node *node = NULL;
    struct fold           fold = {.like = NULL}; /* of n's children */
    for (;;) {
        if (node == NULL) { /* arriving in n */
            jrt_nursery_lock(n);
            put_nursery(text, n, depth * 2);
            node = n->children.next;
        }
        if (node != &n->children && !text->full) {
            struct jrt_task *task = jrt_list_entry(node, struct jrt_task, sibling);
            /* relaxed: under the lock. */
            jrt_debug_invariant("dump-peek", jrt_load_relaxed(&task->linked));
            put_or_fold(text, &fold, task, depth * 2 + 1);
            struct jrt_nursery *below = descend(text, task, depth + 1);
            node = below != NULL ? NULL : node->next;
            depth += below != NULL;
            if (below != NULL) n = below;
            continue;
        }
        put_folded(text, &fold, depth * 2 + 1);
        put_rest(text, n, depth * 2 + 1);
        jrt_nursery_unlock(n);
        if (n == root) return;
        /* relaxed: under the lock of the nursery above. */
        jrt_debug_invariant("dump-walk", jrt_load_relaxed(&n->registered));
        struct jrt_task      *owner = n->owner;
        struct jrt_list_node *next = n->link.next;
        if (next != &owner->nurseries && !text->full) { /* the owner's next nursery */
            n = jrt_list_entry(next, struct jrt_nursery, link);
            node = NULL;
        } else { /* the owner is done */
            n = owner->nursery;
            node = owner->sibling.next;
            depth--;
        }
    }
}

static void put_roots(struct text *text, janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->roots_lock);
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots && !text->full; node = node->next) {
        put_tree(text, jrt_list_entry(node, struct jrt_nursery, link));
    }
    jrt_unlock(&scheduler->roots_lock);
}

janus_status janus_scheduler_dump(janus_scheduler *scheduler, int fd)
{
    jrt_outside_call_long(); /* [turn-call] */
    struct text text;
    if (scheduler == NULL) return JANUS_INVALID;
    if (!text_open(&text)) return JANUS_NO_MEMORY;
    jrt_point();
    put(&text, "janusrt: scheduler %p: %u workers\n", (void *)scheduler, scheduler->worker_count);
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        put_worker(&text, scheduler, i);
    }
    jrt_seats_show(scheduler, put_seat, &text);
    put_roots(&text, scheduler);
    return text_close(&text, fd) ? JANUS_OK : JANUS_INVALID;
}

static void put_line(void *text, const char *line) { put(text, "%s", line); }

char *jrt_dump_deadlock(janus_scheduler *scheduler, const char *heading)
{
    struct text text;
    char       *copy = NULL;
    if (!text_open(&text)) { /* at least the heading */
        (void)jrt_write_all(STDERR_FILENO, heading, strlen(heading));
        return NULL;
    }
    put(&text, "%s", heading);
    (void)jrt_cycles_tell(scheduler, put_line, &text);
    put_roots(&text, scheduler);
    if (scheduler->books != NULL) copy = jrt_strndup(text.bytes, JANUS_RUN_DEADLOCK_BYTES);
    (void)text_close(&text, STDERR_FILENO);
    return copy;
}

/* On a signal. */

static void dump_now(void *subject) { (void)janus_scheduler_dump(subject, STDERR_FILENO); }

/* Sets the watch; NULL forgets it. False: another watch is set. */
static bool set_watch(janus_scheduler *scheduler, struct jrt_signal_watch *watch)
{
    jrt_lock(&scheduler->roots_lock);
    bool set = watch == NULL || scheduler->dump_watch == NULL;
    if (set) scheduler->dump_watch = watch;
    jrt_unlock(&scheduler->roots_lock);
    return set;
}

janus_status janus_scheduler_dump_on(janus_scheduler *scheduler, int signal_number)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (scheduler == NULL) return JANUS_INVALID;
    janus_status may = jrt_outside_ask();
    if (may != JANUS_OK) return may;
    struct jrt_signal_watch *watch = jrt_malloc(sizeof *watch);
    if (watch == NULL) return JANUS_NO_MEMORY;
    *watch = (struct jrt_signal_watch){NULL, signal_number, dump_now, scheduler};
    if (!set_watch(scheduler, watch)) {
        free(watch);
        return JANUS_STATE;
    }
    janus_status status = jrt_signal_watch_add(watch); /* not under the lock, which dumps take */
    if (status != JANUS_OK) {
        (void)set_watch(scheduler, NULL);
        free(watch);
    }
    return status;
}

void jrt_dump_off(janus_scheduler *scheduler)
{
    if (scheduler->dump_watch == NULL) return;
    jrt_signal_watch_remove(scheduler->dump_watch);
    free(scheduler->dump_watch);
    scheduler->dump_watch = NULL;
}
