/* SPDX-License-Identifier: MIT */
/*
 * Circles of tasks that wait for each other: the part of a deadlock that explains it.
 *
 * The search first copies the waiting tasks, and what they wait for, out of the tree. It takes the
 * same locks as a dump ([dump-walk]) and then holds none. A task may wait for:
 * - the holder of a mutex;
 * - holders of a reader-writer lock, at most JRT_SEEN_MAX of them;
 * - the child that it joins;
 * - all children of nurseries that it closes: each of them keeps it waiting.
 *
 * A task that any of several others can wake (at a semaphore, an event, a waitpoint) is no part of
 * a circle. The report shows every circle once, up to JRT_CYCLES_TOLD.
 *
 * [cycle-search]  The search is depth first, without recursion. A task is unseen, on the way, or
 *   done. If the search comes to a task that is on the way, the end of the way from there is a
 *   circle. Each task keeps its next step. The way is a list: back through `before`, and forth
 *   through `after` up to where the search is.
 */
#include "look/cycle.h"

#include "look/peek.h"
#include "means/holder.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = -1, FIRST_ROOM = 64 };

enum colour { UNSEEN, ON_THE_WAY, DONE };

/* A copy of one waiting task. */
struct node {
    janus_task_id id;
    janus_task_id targets[JRT_SEEN_MAX]; /* it waits for all of these; 0: none, or its children */
    int           child, sibling;        /* the first child it waits for; its parent's next child */
    int           before, after;         /* its neighbours on the way */
    int           step;                  /* the next node to try: a child, or NOBODY */
    enum colour   colour;
    int           tried;                                      /* number of targets */
    char          name[JANUS_NAME_BYTES], file[64], text[96]; /* text: what it waits for */
    int           line;
    const char   *link;   /* words before the next task of a circle; a literal */
    bool          awaits; /* it waits for all its children */
};

struct crowd {
    struct node *nodes;
    int          count, room;
    bool         short_of_memory;
};

static struct node *add(struct crowd *crowd)
{
    if (crowd->count == crowd->room) {
        int          room = crowd->room > 0 ? crowd->room * 2 : FIRST_ROOM;
        struct node *larger = jrt_realloc(crowd->nodes, (size_t)room * sizeof *larger);
        if (larger == NULL) {
            crowd->short_of_memory = true;
            return NULL;
        }
        crowd->nodes = larger;
        crowd->room = room;
    }
    struct node *node = &crowd->nodes[crowd->count++];
    *node = (struct node){.child = NOBODY, .sibling = NOBODY, .before = NOBODY, .step = NOBODY};
    return node;
}

/* The child that a task joins; 0: none. Under the nurseries' locks. */
static janus_task_id joined_by(const struct jrt_task *task)
{
    if (!jrt_load_relaxed(&task->linked)) return 0; /* relaxed: under the lock. */
    const struct jrt_list_node *node = task->nurseries.next;
    for (; node != &task->nurseries; node = node->next) {
        struct jrt_nursery *n =
            jrt_list_entry((struct jrt_list_node *)(uintptr_t)node, struct jrt_nursery, link);
        jrt_nursery_lock(n);
        janus_task_id id = n->joining;
        jrt_nursery_unlock(n);
        if (id != 0) return id;
    }
    return 0;
}

/* Copies a waiting task, under the lock of its nursery. NOBODY: it does not wait. */
static int copy(struct crowd *crowd, const struct jrt_task *task)
{
    struct jrt_sight sight;
    struct jrt_seen  seen;
    struct jrt_want  want;
    char             name[JANUS_NAME_BYTES];
    jrt_peek_task(task, &sight);
    if (sight.state != JANUS_TASK_STATE_BLOCKED) return NOBODY;
    struct node *node = add(crowd);
    if (node == NULL) return NOBODY;
    node->id = jrt_task_id(task);
    jrt_name_again(node->name, sizeof node->name, jrt_task_name(task));
    const janus_site *site = jrt_task_site(task);
    if (site != NULL) {
        (void)snprintf(node->file, sizeof node->file, "%s", site->file);
        node->line = site->line;
    }
    (void)snprintf(node->text, sizeof node->text, "%.80s", sight.wait);
    node->link = ":";
    node->awaits = sight.kind == JRT_WAIT_NURSERY;
    if (node->awaits) {
        node->link = ", among them:";
    } else if (sight.kind == JRT_WAIT_JOIN) {
        node->targets[0] = joined_by(task);
    } else if (jrt_holder_look(task, &want, name, sizeof name, &seen)) {
        node->targets[0] = seen.task;
        memcpy(&node->targets[1], seen.others, sizeof seen.others);
        if (seen.held) node->link = ", held by:";
        if (want.name != NULL) {
            (void)snprintf(node->text, sizeof node->text, "%.24s \"%s\"", want.what, name);
        }
    }
    return crowd->count - 1;
}

/* Whether the owner of a nursery waits for all its children. */
static bool is_awaited(const struct jrt_nursery *n)
{
    return n->owner != NULL && jrt_nursery_state(n) != JANUS_NURSERY_STATE_OPEN;
}

static void adopt(struct crowd *crowd, int parent, int child)
{
    if (parent == NOBODY || child == NOBODY || !crowd->nodes[parent].awaits) return;
    crowd->nodes[child].sibling = crowd->nodes[parent].child;
    crowd->nodes[parent].child = child;
}

/* Copies one root's tree, as put_tree walks it ([dump-walk]). Tasks deeper than DEPTH_MAX are left
 * out. */
static void copy_tree(struct crowd *crowd, struct jrt_nursery *root)
{
    enum { DEPTH_MAX = 256 };
    struct jrt_nursery   *n = root;
    struct jrt_list_node *node = NULL;
    /* Nodes that own the nurseries on the way. */
    int owners[DEPTH_MAX] = {NOBODY};
    int depth = 0; /* depth of n */
    for (;;) {
        if (node == NULL) {
            jrt_nursery_lock(n);
            node = n->children.next;
        }
        if (node != &n->children && !crowd->short_of_memory) {
            struct jrt_task *task = jrt_list_entry(node, struct jrt_task, sibling);
            int              index = copy(crowd, task);
            if (is_awaited(n)) adopt(crowd, owners[depth], index);
            node = node->next;
            if (jrt_list_empty(&task->nurseries) || depth + 1 == DEPTH_MAX) continue;
            owners[++depth] = index;
            n = jrt_list_entry(task->nurseries.next, struct jrt_nursery, link);
            node = NULL;
            continue;
        }
        jrt_nursery_unlock(n);
        if (n == root) return;
        struct jrt_task      *owner = n->owner;
        struct jrt_list_node *next = n->link.next;
        if (next != &owner->nurseries && !crowd->short_of_memory) {
            n = jrt_list_entry(next, struct jrt_nursery, link);
            node = NULL;
        } else {
            n = owner->nursery;
            node = owner->sibling.next;
            depth--;
        }
    }
}

/* By id. */

static int compare(const void *a, const void *b)
{
    const struct node *one = *(const struct node *const *)a, *two = *(const struct node *const *)b;
    return one->id < two->id ? -1 : one->id > two->id;
}

static int find(struct node **sorted, const struct crowd *crowd, janus_task_id id)
{
    const struct node   key = {.id = id}, *at = &key;
    struct node *const *found = NULL;
    if (id != 0) found = bsearch(&at, sorted, (size_t)crowd->count, sizeof *sorted, compare);
    return found != NULL ? (int)(*found - crowd->nodes) : NOBODY;
}

/* The search, [cycle-search]. */

static int next_of(struct node **sorted, const struct crowd *crowd, struct node *node)
{
    if (node->tried == 0) node->step = node->targets[0] == 0 ? node->child : NOBODY;
    while (node->tried < JRT_SEEN_MAX) {
        int found = find(sorted, crowd, node->targets[node->tried++]);
        if (found != NOBODY) return found;
    }
    int next = node->step;
    if (next != NOBODY) node->step = crowd->nodes[next].sibling;
    return next;
}

static void tell_one(const struct node *node, bool waits,
                     void (*line)(void *subject, const char *text), void *subject)
{
    char text[512], site[80] = "";
    if (node->line != 0) (void)snprintf(site, sizeof site, " (%s:%d)", node->file, node->line);
    (void)snprintf(text, sizeof text, "  task \"%s\" %#llx%s%s%s%s\n", node->name,
                   (unsigned long long)node->id, site, waits ? " waits for " : "",
                   waits ? node->text : "", waits ? node->link : "");
    line(subject, text);
}

/* Reports the circle from `first` to `last`, which waits for `first`. */
static void tell(const struct crowd *crowd, int first, int last,
                 void (*line)(void *subject, const char *text), void *subject)
{
    const struct node *nodes = crowd->nodes;
    char               text[128];
    int                length = 1;
    for (int at = first; at != last; at = nodes[at].after) length++;
    (void)snprintf(text, sizeof text,
                   length == 1 ? "janusrt: a task waits for itself:\n"
                               : "janusrt: %d tasks wait for each other in a circle:\n",
                   length);
    line(subject, text);
    for (int at = first; at != last; at = nodes[at].after) {
        tell_one(&nodes[at], true, line, subject);
    }
    tell_one(&nodes[last], true, line, subject);
    tell_one(&nodes[first], false, line, subject);
}

/* Whether the way leads from `first` to `last`. */
static bool is_way(const struct crowd *crowd, int first, int last)
{
    while (last != first && last != NOBODY && crowd->nodes[last].colour == ON_THE_WAY) {
        int before = crowd->nodes[last].before;
        if (before != NOBODY && crowd->nodes[before].after != last) return false;
        last = before;
    }
    return last == first;
}

static unsigned search(struct crowd *crowd, struct node **sorted,
                       void (*line)(void *subject, const char *text), void *subject)
{
    unsigned told = 0;
    for (int start = 0; start < crowd->count && told < JRT_CYCLES_TOLD; start++) {
        int at = crowd->nodes[start].colour == UNSEEN ? start : NOBODY;
        if (at != NOBODY) crowd->nodes[at].colour = ON_THE_WAY;
        while (at != NOBODY && told < JRT_CYCLES_TOLD) {
            int next = next_of(sorted, crowd, &crowd->nodes[at]);
            if (next == NOBODY) {
                crowd->nodes[at].colour = DONE;
                at = crowd->nodes[at].before;
            } else if (crowd->nodes[next].colour == ON_THE_WAY) {
                jrt_debug_invariant("cycle-search", is_way(crowd, next, at));
                tell(crowd, next, at, line, subject);
                told++;
            } else if (crowd->nodes[next].colour == UNSEEN) {
                crowd->nodes[next].colour = ON_THE_WAY;
                crowd->nodes[next].before = at;
                crowd->nodes[at].after = next;
                at = next;
            }
        }
    }
    return told;
}

unsigned jrt_cycles_tell(janus_scheduler *scheduler, void (*line)(void *subject, const char *text),
                         void *subject)
{
    struct crowd crowd = {.count = 0};
    unsigned     told = 0;
    jrt_lock(&scheduler->roots_lock);
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots; node = node->next) {
        copy_tree(&crowd, jrt_list_entry(node, struct jrt_nursery, link));
    }
    jrt_unlock(&scheduler->roots_lock);
    struct node **sorted = jrt_calloc((size_t)crowd.count + 1, sizeof(struct node *));
    if (sorted != NULL) {
        for (int i = 0; i < crowd.count; i++) sorted[i] = &crowd.nodes[i];
        qsort(sorted, (size_t)crowd.count, sizeof(struct node *), compare);
        told = search(&crowd, sorted, line, subject);
    }
    free(sorted);
    free(crowd.nodes);
    return told;
}
