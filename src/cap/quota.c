/* SPDX-License-Identifier: MIT */
/*
 * Quotas: how many places of a table the capabilities of one party take.
 *
 * [quota-count]  a capability that a party derives counts for the party's quota and for all quotas
 *   around it, until it is revoked or released. It counts for the deriver, not for the holder. So
 *   no party can use up another's quota by delegating.
 *
 * [quota-end]  when a party ends, everything that it derived is revoked. Otherwise parties that
 *   come and go would fill the table with forgotten capabilities.
 *
 * [quota-gone]  others may revoke what the party derived while the party ends. They write to its
 *   quota under the lock. So the end of a quota takes the lock after them. Only a quota that was
 *   never used ends without the lock: only the party's tasks write `used`. `live` may be 0 while
 *   another thread still writes.
 *
 * The table's lock guards everything here. Only `live` is also read without it.
 */
#include "cap/cap.h"
#include "fiber/ctx.h"

static void count(struct jrt_cap_quota *quota, uint32_t change)
{
    for (; quota != NULL; quota = quota->outer) {
        /* relaxed: under the lock. */
        jrt_debug_invariant("quota-count", change == 1 || jrt_load_relaxed(&quota->live) > 0);
        /* relaxed, both: under the lock. Others only read it. */
        jrt_store_relaxed(&quota->live, jrt_load_relaxed(&quota->live) + change);
    }
}

const struct jrt_cap_quota *jrt_cap_quota_full(const struct jrt_cap_quota *quota)
{
    /* relaxed: under the lock, or only for a report. */
    while (quota != NULL && jrt_load_relaxed(&quota->live) < quota->max) quota = quota->outer;
    return quota;
}

void jrt_cap_quota_enter(janus_cap_table *table, struct jrt_cap_quota *quota, uint32_t place)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    entry->quota = quota;
    entry->quota_prev = 0;
    if (quota == NULL) return;
    entry->quota_next = quota->first;
    if (quota->first != 0) jrt_cap_at(table, quota->first)->quota_prev = place;
    quota->first = place;
    count(quota, 1);
    for (; quota != NULL && !quota->used; quota = quota->outer) quota->used = true;
}

void jrt_cap_quota_leave(janus_cap_table *table, uint32_t place)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    struct jrt_cap_quota *quota = entry->quota;
    if (quota == NULL) return;
    if (entry->quota_next != 0)
        jrt_cap_at(table, entry->quota_next)->quota_prev = entry->quota_prev;
    if (entry->quota_prev != 0) {
        jrt_cap_at(table, entry->quota_prev)->quota_next = entry->quota_next;
    } else {
        quota->first = entry->quota_next;
    }
    entry->quota = NULL;
    count(quota, -1u);
}

void jrt_cap_quota_end(janus_cap_table *table, struct jrt_cap_quota *quota,
                       const struct jrt_cap_actor *actor)
{
    uint64_t revoked = 0;
    /* relaxed: nobody counts for a quota that was never used. */
    jrt_debug_invariant("quota-gone", quota->used || jrt_load_relaxed(&quota->live) == 0);
    if (!quota->used) return; /* the party's tasks have ended: [quota-gone] */
    jrt_ctx_probe();          /* a stack overflow must come before the lock */
    jrt_lock(&table->lock);
    while (quota->first != 0) revoked += jrt_cap_revoke_branch(table, quota->first);
    /* relaxed: under the lock. */
    jrt_debug_invariant("quota-end", jrt_load_relaxed(&quota->live) == 0);
    struct jrt_audit_writer *writer = revoked > 0 ? jrt_cap_writer(table, actor) : NULL;
    if (writer != NULL) {
        struct jrt_audit_event *event;
        (void)jrt_audit_begin(writer, false, &event); /* never refused, [audit-must] */
        event->what = JRT_AUDIT_REVOCATION;
        event->holder = actor->holder;
        event->count = revoked;
        jrt_audit_commit(writer);
    }
    jrt_unlock(&table->lock);
}
