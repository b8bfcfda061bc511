/* SPDX-License-Identifier: MIT */
/*
 * Watches: an actor learns that another has ended.
 *
 * [watch-once]  A watch is on two lists: of the watched place, and of the actor that made it. One
 *   lock guards all watches. The end of the watched incarnation takes it off both and makes it a
 *   notice. The end of the watcher, or janus_actor_unwatch, takes it off both and frees it. So a
 *   watch becomes at most one notice, and janus_actor_unwatch finds it there or on the lists.
 */
#include "actor/notice.h"
#include "actor/supervisor.h"

#include "means/call.h"
#include "means/ledger.h"

enum { TOLD_AT_ONCE = 32 };

static pthread_mutex_t watches_lock = PTHREAD_MUTEX_INITIALIZER;

static void unlink_watch(struct jrt_actor_watch *watch)
{
    if (watch->link != NULL) {
        *watch->link = watch->next;
        if (watch->next != NULL) watch->next->link = watch->link;
    }
    *watch->own_link = watch->own_next;
    if (watch->own_next != NULL) watch->own_next->own_link = watch->own_link;
    watch->watcher->rare->watch_count--;
}

static void link_watch(struct jrt_actor_watch *watch, struct jrt_actor_place *target)
{
    struct jrt_actor_rare *rare = watch->watcher->rare;
    watch->own_next = rare->watches;
    watch->own_link = &rare->watches;
    if (watch->own_next != NULL) watch->own_next->own_link = &watch->own_next;
    rare->watches = watch;
    rare->watch_count++;
    if (target == NULL) return;
    watch->next = target->rare->watched;
    watch->link = &target->rare->watched;
    if (watch->next != NULL) watch->next->link = &watch->next;
    target->rare->watched = watch;
}

/* The watched one has ended: the watch becomes a notice. Under the lock of watches. */
static void go_off(struct jrt_actor_watch *watch, const janus_end *end)
{
    struct jrt_actor_place *watcher = watch->watcher;
    unlink_watch(watch);
    watch->notice.end = *end;
    jrt_notice_push_to(watcher, watch->watcher_serial, watch->watcher_incarnation, &watch->notice);
}

void jrt_watches_collect(struct jrt_actor_place *place)
{
    struct jrt_actor_rare *rare = place->rare;
    if (rare == NULL) return;
    jrt_lock(&watches_lock);
    jrt_debug_invariant("watch-once", rare->watched_then == NULL);
    rare->watched_then = rare->watched;
    if (rare->watched_then != NULL) rare->watched_then->link = &rare->watched_then;
    rare->watched = NULL;
    jrt_unlock(&watches_lock);
}

void jrt_watches_tell(struct jrt_actor_place *place, const janus_end *end)
{
    struct jrt_actor_rare *rare = place->rare;
    if (rare == NULL) return;
    jrt_lock(&watches_lock);
    for (uint32_t told = 0;; told++) {
        struct jrt_actor_watch *watch = rare->watched_then;
        if (watch == NULL && end->final) watch = rare->watched;
        if (watch == NULL) break;
        go_off(watch, end);
        if (told % TOLD_AT_ONCE != TOLD_AT_ONCE - 1) continue;
        jrt_unlock(&watches_lock); /* it serves all actors of the process */
        jrt_lock(&watches_lock);
    }
    jrt_unlock(&watches_lock);
}

static janus_status add_watch(struct jrt_actor_place *self, struct jrt_actor_watch *watch,
                              janus_actor actor)
{
    janus_end    never = {.kind = JANUS_END_KIND_NEVER, .final = true};
    janus_status status;
    jrt_place_lock(self);
    struct jrt_actor_rare *rare = jrt_place_rare(self);
    bool                   full = rare != NULL && rare->watch_count >= JRT_ACTOR_WATCHES_MAX;
    if (rare != NULL) watch->number = ++rare->timer_number;
    jrt_place_unlock(self);
    if (rare == NULL || full) return full ? JANUS_FULL : JANUS_NO_MEMORY;
    jrt_lock(&watches_lock);
    struct jrt_actor_place *target = jrt_place_find(actor, JANUS_ACTOR_MAY_WATCH, &status);
    if (target != NULL) {
        status = jrt_place_rare(target) != NULL ? JANUS_OK : JANUS_NO_MEMORY;
        jrt_place_unlock(target); /* the lock of watches keeps it: [watch-once] */
    }
    if (status == JANUS_OK || status == JANUS_STALE) {
        link_watch(watch, target);
        if (target == NULL) (void)jrt_place_past(actor, JANUS_ACTOR_MAY_WATCH, &never);
        if (target == NULL) go_off(watch, &never);
        status = JANUS_OK;
    }
    jrt_unlock(&watches_lock);
    return status;
}

janus_status janus_actor_watch(janus_actor actor, uint64_t tag, janus_watch *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    struct jrt_ledger      *ledger;
    janus_status            status;
    if (self == NULL || jrt_place_behaviour(self) == NULL)
        return jrt_actor_outside("janus_actor_watch");
    struct jrt_actor_watch *watch = jrt_notice_room(sizeof *watch, &ledger, &status);
    if (watch == NULL) return status;
    watch->watcher = self;
    watch->watcher_serial = self->serial;
    watch->watcher_incarnation = self->incarnation;
    watch->notice.kind = JANUS_LETTER_KIND_DOWN;
    watch->notice.tag = tag;
    watch->notice.ledger = ledger;
    watch->notice.bytes = sizeof *watch;
    status = add_watch(self, watch, actor);
    if (status != JANUS_OK) {
        jrt_notice_free(&watch->notice);
        return jrt_actor_explain(status, "janus_actor_watch");
    }
    /* The watch may be gone by now; its number is not. */
    if (out != NULL) *out = (janus_watch){{self->rare->timer_number, self->incarnation}};
    return JANUS_OK;
}

janus_status janus_actor_unwatch(janus_watch watch)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    struct jrt_notice      *notice = NULL;
    if (self == NULL) return JANUS_STATE;
    if (watch.opaque[1] != self->incarnation || self->rare == NULL) return JANUS_STALE;
    jrt_lock(&watches_lock);
    uint32_t                steps = self->rare->watch_count;
    struct jrt_actor_watch *at = self->rare->watches;
    while (at != NULL && at->number != watch.opaque[0]) at = at->own_next;
    if (at != NULL) {
        unlink_watch(at);
        notice = &at->notice;
    }
    jrt_unlock(&watches_lock);
    if (notice == NULL) {
        jrt_place_lock(self);
        notice = jrt_notice_find(self, JANUS_LETTER_KIND_DOWN, watch.opaque[0], &steps);
        if (notice != NULL) (void)jrt_notice_take_out(self, notice);
        jrt_place_unlock(self);
    }
    jrt_notice_walked(steps);
    if (notice == NULL) return JANUS_STALE;
    jrt_notice_free(notice);
    return JANUS_OK;
}

void jrt_watches_end(struct jrt_actor_place *place)
{
    struct jrt_actor_rare *rare = place->rare;
    if (rare == NULL) return; /* only the actor could have made watches */
    jrt_lock(&watches_lock);
    while (rare->watches != NULL) {
        struct jrt_actor_watch *watch = rare->watches;
        unlink_watch(watch);
        jrt_notice_free(&watch->notice);
    }
    jrt_unlock(&watches_lock);
}
