/* SPDX-License-Identifier: MIT */
/*
 * Dumps.
 *
 * The text is collected in memory of a fixed size while locks are held, and written when none is:
 * a reader of the other end who does not read stops only the thread that dumps.
 *
 * [dump-walk]  from the roots down, without recursion: a dump may be called on a small stack. The
 *   locks of the nurseries on the way down are held, as in cancel_below. A nursery that was left
 *   still exists until the lock of the one it hangs from is let go, because it takes itself off
 *   under that lock before it ends.
 *
 * [dump-peek]  what only a worker or an owner writes, the current task, children that are counted
 *   without atomics, is read as it lies, while it changes. Any value will do: numbers are
 *   printed, and a task's record stays readable when it is free. Its name does not, so only tasks
 *   in the tree are shown with theirs.
 *
 * Locks: roots_lock, then nurseries' from the top down.
 */
#include "task/dump.h"

#include "plat/signal.h"

#include <janusrt/dump.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INDENT_MAX = 60,    /* columns */
    TRAILER_BYTES = 96, /* kept free for what ends a dump */
};

static const char *const wait_texts[] = {
#define X(name, text) [JRT_WAIT_##name] = text,
    JRT_WAIT_MAP(X)
#undef X
};

const char *janus_task_state_name(janus_task_state state)
{
    static const char *const names[] = {"ready",     "running",  "blocked", "budget exhausted",
                                        "completed", "cancelled"};
    return (unsigned)state <= JANUS_TASK_CANCELLED ? names[state] : "?";
}

const char *janus_nursery_state_name(janus_nursery_state state)
{
    static const char *const names[] = {"open", "closing", "cancelling", "closed", "cancelled"};
    return (unsigned)state <= JANUS_NURSERY_CANCELLED ? names[state] : "?";
}

/* Text of a bounded size. */

struct text {
    char  *bytes;
    size_t used, room;
    bool   full;
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
    *text = (struct text){.bytes = malloc(JANUS_DUMP_BYTES_MAX)};
    text->room = JANUS_DUMP_BYTES_MAX - TRAILER_BYTES;
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
    return written;
}

/* Peeking, see [dump-peek]. */

__attribute__((noinline, no_sanitize("thread"))) static janus_task_id peek_current(
    const struct jrt_worker *worker)
{
    const struct jrt_task *task = *(struct jrt_task *const volatile *)&worker->current;
    if (task == NULL) return 0;
    uint32_t generation = jrt_load_relaxed(&task->record.generation); /* relaxed: [dump-peek]. */
    return (uint64_t)(*(const volatile uint32_t *)&task->record.index + 1) << 32 | generation;
}

__attribute__((noinline, no_sanitize("thread"))) static int64_t peek_signed(const int64_t *number)
{
    return *(const volatile int64_t *)number;
}

/* What a record says about itself: whether it is, for certain, a child that can be joined. */
__attribute__((noinline, no_sanitize("thread"))) bool jrt_task_peek_joinable(
    const struct jrt_task *task, const struct jrt_nursery *n, janus_task_id id)
{
    /* acquire: what the task was given came before its id. */
    if ((uint32_t)id != jrt_load_acquire(&task->record.generation)) return false;
    struct jrt_nursery *nursery = *(struct jrt_nursery *const volatile *)&task->nursery;
    bool                joinable = *(const volatile bool *)&task->joinable;
    jrt_fence_seq_cst(); /* seq_cst: the second look comes after what we read. */
    /* relaxed: after the fence. */
    if ((uint32_t)id != jrt_load_relaxed(&task->record.generation)) return false;
    return joinable && nursery == n;
}

/* Lines. */

static void put_worker(struct text *text, const janus_scheduler *scheduler, uint32_t index)
{
    janus_worker_stats stats = {.struct_bytes = sizeof stats};
    janus_task_id      id = peek_current(&scheduler->workers[index]);
    (void)janus_scheduler_stats(scheduler, index, &stats);
    if (id != 0) {
        put(text, "worker %u: task %#llx", index, (unsigned long long)id);
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

static int indent(unsigned depth) { return depth * 2 < INDENT_MAX ? (int)depth * 2 : INDENT_MAX; }

/* Children that have not ended, as far as one can know: [nursery-count]. */
static int64_t count_children(const struct jrt_nursery *n)
{
    int64_t pending = jrt_load_acquire(&n->pending); /* acquire: what they did. */
    if (pending > JRT_NURSERY_BIAS / 2) pending += peek_signed(&n->local) - JRT_NURSERY_BIAS;
    return pending > 0 ? pending : 0;
}

static void put_nursery(struct text *text, const struct jrt_nursery *n, unsigned depth)
{
    long long children = count_children(n);
    uint8_t   state = jrt_load_acquire(&n->state); /* acquire: what led to it. */
    put(text, "%*snursery \"%.64s\"%s: %s, %lld %s\n", indent(depth), "",
        n->name != NULL ? n->name : "nursery", n->owner == NULL ? " of a thread" : "",
        janus_nursery_state_name((janus_nursery_state)state), children,
        children == 1 ? "child" : "children");
}

static bool is_current(const struct jrt_task *task)
{
    const janus_scheduler *scheduler = task->nursery->scheduler;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        if (peek_current(&scheduler->workers[i]) == jrt_task_id(task)) return true;
    }
    return false;
}

/*
 * The state as it is meant, and what it waits for; under the lock of its nursery. A task that was
 * woken and is not on a CPU yet is ready. One that runs, has open nurseries that somebody waits
 * in, and is on no CPU, awaits them: it lies below a child that it runs in place.
 */
static janus_task_state state_of(const struct jrt_task *task, const char **out_wait)
{
    uint8_t  state = jrt_load_relaxed(&task->state);   /* relaxed, all: told as they are. */
    uint8_t  wait = jrt_load_relaxed(&task->wait);     /* relaxed: as above. */
    uint32_t park = jrt_load_relaxed(&task->park);     /* relaxed: as above. */
    bool     linked = jrt_load_relaxed(&task->linked); /* relaxed: under the lock. */
    if (state == JANUS_TASK_BLOCKED && (park & 0xff) == JRT_AWAKE) state = JANUS_TASK_READY;
    if (state == JANUS_TASK_RUNNING && linked && !jrt_list_empty(&task->nurseries) &&
        !is_current(task)) {
        state = JANUS_TASK_BLOCKED;
        wait = JRT_WAIT_NURSERY;
    }
    *out_wait = wait_texts[state == JANUS_TASK_BLOCKED ? wait : JRT_WAIT_NONE];
    return (janus_task_state)state;
}

static void put_task(struct text *text, const struct jrt_task *task, unsigned depth)
{
    const char      *wait;
    janus_task_state state = state_of(task, &wait);
    bool             blocked = state == JANUS_TASK_BLOCKED;
    put(text, "%*stask \"%.64s\" %#llx: %s%s%s", indent(depth), "",
        task->name != NULL ? task->name : "task", (unsigned long long)jrt_task_id(task),
        janus_task_state_name(state), blocked ? ", waits for " : "", blocked ? wait : "");
    if (task->site != NULL) put(text, ", %.200s:%d", task->site->file, task->site->line);
    put(text, "\n");
}

/* After a nursery's listed children: those that are in no list. */
static void put_rest(struct text *text, struct jrt_nursery *n, unsigned depth)
{
    if (text->full) return;
    long long             rest = count_children(n);
    struct jrt_list_node *node = n->children.next; /* all of them were put: not so many */
    for (; node != &n->children; node = node->next) rest--;
    if (rest <= 0) return;
    put(text, "%*sand %lld more that are queued, run, or never had to wait\n", indent(depth), "",
        rest);
}

/* The first nursery below a task that is to be shown; NULL: none. */
static struct jrt_nursery *descend(struct text *text, struct jrt_task *task, unsigned depth)
{
    if (jrt_list_empty(&task->nurseries)) return NULL;
    if (depth >= JANUS_DUMP_DEPTH_MAX) {
        put(text, "%*sand more below, not shown\n", indent(depth), "");
        return NULL;
    }
    return jrt_list_entry(task->nurseries.next, struct jrt_nursery, link);
}

/* One root; see [dump-walk]. */
static void put_tree(struct text *text, struct jrt_nursery *root)
{
    struct jrt_nursery   *n = root;
    unsigned              depth = 0; /* of n */
    struct jrt_list_node *node = NULL;
    for (;;) {
        if (node == NULL) { /* arriving in n */
            pthread_mutex_lock(&n->lock);
            put_nursery(text, n, depth * 2);
            node = n->children.next;
        }
        if (node != &n->children && !text->full) {
            struct jrt_task *task = jrt_list_entry(node, struct jrt_task, sibling);
            put_task(text, task, depth * 2 + 1);
            struct jrt_nursery *below = descend(text, task, depth + 1);
            node = below != NULL ? NULL : node->next;
            depth += below != NULL;
            if (below != NULL) n = below;
            continue;
        }
        put_rest(text, n, depth * 2 + 1);
        pthread_mutex_unlock(&n->lock);
        if (n == root) return;
        struct jrt_task      *owner = n->owner;
        struct jrt_list_node *next = n->link.next;
        if (next != &owner->nurseries && !text->full) { /* the owner's next one */
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
    pthread_mutex_lock(&scheduler->roots_lock);
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots && !text->full; node = node->next) {
        put_tree(text, jrt_list_entry(node, struct jrt_nursery, link));
    }
    pthread_mutex_unlock(&scheduler->roots_lock);
}

janus_status janus_scheduler_dump(janus_scheduler *scheduler, int fd)
{
    struct text text;
    if (scheduler == NULL) return JANUS_INVALID;
    if (!text_open(&text)) return JANUS_NO_MEMORY;
    put(&text, "janusrt: scheduler %p: %u workers\n", (void *)scheduler, scheduler->worker_count);
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        put_worker(&text, scheduler, i);
    }
    put_roots(&text, scheduler);
    return text_close(&text, fd) ? JANUS_OK : JANUS_INVALID;
}

void jrt_dump_deadlock(janus_scheduler *scheduler, const char *heading)
{
    struct text text;
    if (!text_open(&text)) { /* the heading at least */
        (void)jrt_write_all(STDERR_FILENO, heading, strlen(heading));
        return;
    }
    put(&text, "%s", heading);
    put_roots(&text, scheduler);
    (void)text_close(&text, STDERR_FILENO);
}

/* On a signal. */

static void dump_now(void *subject) { (void)janus_scheduler_dump(subject, STDERR_FILENO); }

/* Remembers the watch, or with NULL forgets it; false: there is one. */
static bool set_watch(janus_scheduler *scheduler, struct jrt_signal_watch *watch)
{
    pthread_mutex_lock(&scheduler->roots_lock);
    bool set = watch == NULL || scheduler->dump_watch == NULL;
    if (set) scheduler->dump_watch = watch;
    pthread_mutex_unlock(&scheduler->roots_lock);
    return set;
}

janus_status janus_scheduler_dump_on(janus_scheduler *scheduler, int signal_number)
{
    if (scheduler == NULL) return JANUS_INVALID;
    struct jrt_signal_watch *watch = malloc(sizeof *watch);
    if (watch == NULL) return JANUS_NO_MEMORY;
    *watch = (struct jrt_signal_watch){NULL, signal_number, dump_now, scheduler};
    if (!set_watch(scheduler, watch)) {
        free(watch);
        return JANUS_STATE;
    }
    janus_status status = jrt_signal_watch_add(watch); /* not under the lock: dumps take it */
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

/* One task. */

/* A child that can be found; under the nursery's lock. */
static struct jrt_task *find_child(struct jrt_nursery *n, janus_task_id id)
{
    uint32_t         index = (uint32_t)(id >> 32);
    struct jrt_task *task = NULL;
    if (index != 0) task = jrt_roster_find(&n->scheduler->roster, index - 1);
    if (task == NULL) return NULL;
    if (jrt_task_peek_joinable(task, n, id))
        return task; /* only its owner lets it go, and that is us */
    struct jrt_list_node *node = n->children.next;
    for (; node != &n->children; node = node->next) {
        task = jrt_list_entry(node, struct jrt_task, sibling);
        if (jrt_task_id(task) == id) return task;
    }
    return NULL;
}

janus_status janus_task_inspect(janus_nursery *nursery, janus_task_id id, janus_task_info *out)
{
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    if (out->struct_bytes < sizeof out->struct_bytes) return JANUS_INVALID;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    pthread_mutex_lock(&n->lock);
    struct jrt_task *task = find_child(n, id);
    janus_task_info  info = {.id = id};
    if (task != NULL) {
        info.state = state_of(task, &info.wait);
        info.name = task->name != NULL ? task->name : "task";
        if (task->site != NULL) info.site = *task->site;
    }
    pthread_mutex_unlock(&n->lock);
    if (task == NULL) return JANUS_STALE;
    info.struct_bytes = out->struct_bytes < sizeof info ? out->struct_bytes : sizeof info;
    memcpy(out, &info, info.struct_bytes);
    return JANUS_OK;
}
