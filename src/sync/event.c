/* SPDX-License-Identifier: MIT */
/*
 * Events, wait groups and broadcasts: objects that release all waiters at once.
 *
 * [event-word]  the value of an event is 1 while it is set. The value of a group is the number of
 *   things that are not done. The value of a broadcast counts how often it was sent, and only
 *   grows. A thread whose change ends waits grants all of them while BUSY ([sync-grant]). So a
 *   queue means: the event is not set, the group is not 0, or all waiters have seen this number.
 */
#include "means/call.h"
#include "nursery/nursery.h"
#include "rt/source.h"
#include "sync/queue.h"
#include "task/task.h"

#include <janusrt/channel.h>
#include <janusrt/sync.h>

_Static_assert(sizeof(struct jrt_sync) <= sizeof(janus_event) &&
                   sizeof(struct jrt_sync) <= sizeof(janus_group) &&
                   sizeof(struct jrt_sync) <= sizeof(janus_broadcast),
               "they fit their storage");

static struct jrt_sync *inside(void *object) { return object; }

/* No thread is BUSY: the word is reliable, [sync-last]. */
static bool is_still(uint64_t word) { return (word & JRT_SYNC_BUSY) == 0; }

/* Grants all waiters, then leaves the object with that word. */
static void grant_all(struct jrt_sync *sync, uint64_t word)
{
    struct jrt_waiter *waiter;
    while ((waiter = jrt_sync_first(sync)) != NULL) { /* [event-word] */
        waiter->number = jrt_sync_value(word);
        jrt_sync_grant(sync, waiter, JANUS_OK);
    }
    jrt_sync_leave(sync, jrt_sync_marked(sync, word));
}

static uint64_t look_at(const struct jrt_sync *sync)
{
    return jrt_load_acquire(&sync->word); /* acquire: what was done before the change. */
}

/* Events. */

static bool take_set(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    (void)sync, (void)waiter;
    return jrt_sync_value(*word) != 0;
}

static const struct jrt_sync_kind event_kind = {
    .reason = JRT_WAIT_EVENT, .what = "event", .take = take_set};

void janus_event_init(janus_event *event, janus_waker waker, const char *name)
{
    jrt_contract(event != NULL, "janus_event_init: `event` is NULL");
    *event = (janus_event)JANUS_EVENT_INIT(waker, name);
}

janus_status janus_event_wait_until(janus_event *event, uint64_t deadline_ns)
{
    struct jrt_task *task = jrt_sync_begin();
    if (event == NULL) return JANUS_INVALID;
    if (jrt_sync_cancelled(task)) return jrt_task_cancelled_or_end(task);
    uint64_t word = look_at(inside(event));
    if (is_still(word) && jrt_sync_value(word) != 0) return JANUS_OK;
    return jrt_sync_wait_plain(inside(event), &event_kind, task, deadline_ns);
}

janus_status janus_event_wait(janus_event *event)
{
    return janus_event_wait_until(event, JRT_NEVER);
}

bool janus_event_is_set(const janus_event *event)
{
    jrt_point();
    if (event == NULL) return false;
    return jrt_sync_value(look_at((const struct jrt_sync *)(const void *)event)) != 0;
}

void janus_event_set(janus_event *event)
{
    jrt_stack_check(); /* [stack-reserve] */
    jrt_contract(event != NULL, "janus_event_set: `event` is NULL");
    uint64_t word = jrt_sync_enter(inside(event));
    grant_all(inside(event), (word & JRT_SYNC_FLAGS) | JRT_SYNC_ONE);
}

void janus_event_reset(janus_event *event)
{
    jrt_stack_check(); /* [stack-reserve] */
    jrt_contract(event != NULL, "janus_event_reset: `event` is NULL");
    uint64_t word = jrt_sync_enter(inside(event));
    jrt_sync_leave(inside(event), word & JRT_SYNC_FLAGS);
}

static bool event_ready(void *object) { return jrt_sync_value(look_at(object)) != 0; }

static bool event_join(void *object, struct jrt_lookout *lookout, bool *outside)
{
    return jrt_sync_join(object, &event_kind, lookout, outside);
}

static void quit(void *object, struct jrt_lookout *lookout) { jrt_sync_quit(object, lookout); }

static const struct janus_select_source events = {event_ready, event_join, quit};

janus_select_case janus_case_event(janus_event *event)
{
    janus_select_case made = janus_case_of(JANUS_SELECT_KIND_EVENT);
    made.value = event;
    made.source = &events;
    return made;
}

/* Groups. */

static bool take_none(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    (void)sync, (void)waiter;
    return jrt_sync_value(*word) == 0;
}

static const struct jrt_sync_kind group_kind = {
    .reason = JRT_WAIT_GROUP, .what = "wait group", .take = take_none};

void janus_group_init(janus_group *group, janus_waker waker, const char *name)
{
    jrt_contract(group != NULL, "janus_group_init: `group` is NULL");
    *group = (janus_group)JANUS_GROUP_INIT(waker, name);
}

janus_status janus_group_add(janus_group *group, uint32_t count)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (group == NULL) return JANUS_INVALID;
    struct jrt_sync *sync = inside(group);
    uint64_t         word = jrt_sync_enter(sync);
    bool             fits = jrt_sync_value(word) + count <= JANUS_GROUP_MAX;
    jrt_sync_leave(sync, fits ? word + count * JRT_SYNC_ONE : word);
    return fits ? JANUS_OK : JANUS_FULL;
}

janus_status janus_group_done(janus_group *group)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (group == NULL) return JANUS_INVALID;
    struct jrt_sync *sync = inside(group);
    uint64_t         word = jrt_sync_enter(sync);
    bool             open = jrt_sync_value(word) != 0;
    if (open) word -= JRT_SYNC_ONE;
    if (open && jrt_sync_value(word) == 0) {
        grant_all(sync, word);
    } else {
        jrt_sync_leave(sync, word);
    }
    return open ? JANUS_OK : JANUS_STATE;
}

janus_status janus_group_wait_until(janus_group *group, uint64_t deadline_ns)
{
    struct jrt_task *task = jrt_sync_begin();
    if (group == NULL) return JANUS_INVALID;
    if (jrt_sync_cancelled(task)) return jrt_task_cancelled_or_end(task);
    uint64_t word = look_at(inside(group));
    if (is_still(word) && jrt_sync_value(word) == 0) return JANUS_OK;
    return jrt_sync_wait_plain(inside(group), &group_kind, task, deadline_ns);
}

janus_status janus_group_wait(janus_group *group)
{
    return janus_group_wait_until(group, JRT_NEVER);
}

static bool group_ready(void *object) { return jrt_sync_value(look_at(object)) == 0; }

static bool group_join(void *object, struct jrt_lookout *lookout, bool *outside)
{
    return jrt_sync_join(object, &group_kind, lookout, outside);
}

static const struct janus_select_source groups = {group_ready, group_join, quit};

janus_select_case janus_case_group(janus_group *group)
{
    janus_select_case made = janus_case_of(JANUS_SELECT_KIND_EVENT);
    made.value = group;
    made.source = &groups;
    return made;
}

/* Broadcasts. */

static bool take_newer(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    uint64_t count = jrt_sync_value(*word);
    (void)sync;
    if (count == waiter->number) return false;
    if (count < waiter->number) waiter->outcome = JANUS_INVALID; /* the count was never that high */
    if (count > waiter->number) waiter->number = count;
    return true;
}

static const struct jrt_sync_kind broadcast_kind = {
    .reason = JRT_WAIT_BROADCAST, .what = "broadcast", .take = take_newer};

void janus_broadcast_init(janus_broadcast *broadcast, janus_waker waker, const char *name)
{
    jrt_contract(broadcast != NULL, "janus_broadcast_init: `broadcast` is NULL");
    *broadcast = (janus_broadcast)JANUS_BROADCAST_INIT(waker, name);
}

uint64_t janus_broadcast_count(const janus_broadcast *broadcast)
{
    jrt_point();
    if (broadcast == NULL) return 0;
    return jrt_sync_value(look_at((const struct jrt_sync *)(const void *)broadcast));
}

void janus_broadcast_send(janus_broadcast *broadcast)
{
    jrt_stack_check(); /* [stack-reserve] */
    jrt_contract(broadcast != NULL, "janus_broadcast_send: `broadcast` is NULL");
    uint64_t word = jrt_sync_enter(inside(broadcast));
    grant_all(inside(broadcast), word + JRT_SYNC_ONE); /* 2^58 sends take nine years at 1 ns */
}

janus_status janus_broadcast_wait_until(janus_broadcast *broadcast, uint64_t *seen,
                                        uint64_t deadline_ns)
{
    struct jrt_task *task = jrt_sync_begin();
    if (broadcast == NULL || seen == NULL) return JANUS_INVALID;
    if (jrt_sync_cancelled(task)) return jrt_task_cancelled_or_end(task);
    struct jrt_waiter    waiter = {.task = task, .number = *seen};
    struct jrt_sync_call call = {
        .sync = inside(broadcast), .kind = &broadcast_kind, .deadline_ns = deadline_ns};
    janus_status status = jrt_sync_wait(&call, &waiter);
    if (status == JANUS_OK) status = waiter.outcome;
    if (status == JANUS_OK) *seen = waiter.number;
    return jrt_sync_end(task, status);
}

janus_status janus_broadcast_wait(janus_broadcast *broadcast, uint64_t *seen)
{
    return janus_broadcast_wait_until(broadcast, seen, JRT_NEVER);
}
