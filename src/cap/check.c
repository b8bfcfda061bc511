/* SPDX-License-Identifier: MIT */
/*
 * Checks: what is wrong with a refused handle, and what the audit log records.
 *
 * [check-order]  the order of the questions is part of the answer. Without the right nonce the
 *   caller learns only that the handle is bad. FORGED: its generation is the place's current one,
 *   or was never reached. STALE: its generation is past. Then its nonce is gone, and the table
 *   cannot know whether it was ever right.
 */
#include "base/options.h"
#include "base/outside.h"
#include "cap/cap.h"
#include "fiber/ctx.h"

#include <string.h>

janus_status jrt_cap_none(janus_cap_kind kind)
{
    switch (kind) {
    case JANUS_CAP_KIND_SPAWN: return JANUS_NO_SPAWN_CAP;
    case JANUS_CAP_KIND_BUDGET: return JANUS_NO_BUDGET_CAP;
    case JANUS_CAP_KIND_CHANNEL: return JANUS_NO_CHANNEL_CAP;
    case JANUS_CAP_KIND_EXECUTOR: return JANUS_NO_EXECUTOR_CAP;
    case JANUS_CAP_KIND_NET: return JANUS_NO_NET_CAP;
    case JANUS_CAP_KIND_FILE: return JANUS_NO_FILE_CAP;
    case JANUS_CAP_KIND_PROCESS: return JANUS_NO_PROCESS_CAP;
    case JANUS_CAP_KIND_NAME: return JANUS_NO_NAME_CAP;
    case JANUS_CAP_KIND_NONE: break;
    }
    return JANUS_CAP_FORGED;
}

static janus_status refused(janus_cap_table *table, enum jrt_cap_refusal refusal,
                            janus_status status)
{
    jrt_cap_count(table, refusal);
    return status;
}

/* Asks in the order of [check-order]. */
janus_status jrt_cap_refuse(janus_cap_table *table, janus_cap cap, struct jrt_cap_view view,
                            janus_cap_kind kind, uint32_t rights, uint64_t holder)
{
    uint32_t generation = (uint32_t)(view.state >> 32);
    uint32_t phase = (uint32_t)view.state;
    if (cap.slot == 0 && cap.generation == 0 && cap.nonce == 0) {
        return refused(table, JRT_CAP_REFUSED_NONE, jrt_cap_none(kind));
    }
    if (cap.generation == 0 || cap.generation > generation) {
        return refused(table, JRT_CAP_REFUSED_FORGED, JANUS_CAP_FORGED);
    }
    if (cap.generation < generation) {
        return jrt_stale(refused(table, JRT_CAP_REFUSED_STALE, JANUS_CAP_STALE), __func__);
    }
    if (cap.nonce != view.nonce) {
        return refused(table, JRT_CAP_REFUSED_FORGED, JANUS_CAP_FORGED);
    }
    if (phase == JRT_CAP_REVOKED) {
        return refused(table, JRT_CAP_REFUSED_REVOKED, JANUS_CAP_REVOKED);
    }
    if (phase != JRT_CAP_LIVE)
        return jrt_stale(refused(table, JRT_CAP_REFUSED_STALE, JANUS_CAP_STALE), __func__);
    if (view.holder != holder) {
        return refused(table, JRT_CAP_REFUSED_FOREIGN, JANUS_CAP_FOREIGN);
    }
    if (view.scope >> 32 != (uint64_t)kind) {
        return refused(table, JRT_CAP_REFUSED_KIND, JANUS_CAP_KIND);
    }
    jrt_invariant("check-order", (~view.scope & rights) != 0);
    return refused(table, JRT_CAP_REFUSED_RIGHT, JANUS_CAP_RIGHT);
}

janus_status jrt_cap_deny(janus_cap_table *table, const struct jrt_cap_actor *actor, janus_cap cap,
                          janus_cap_kind kind, uint32_t wanted, janus_status status)
{
    return jrt_cap_deny_at(table, actor, cap, kind, wanted, status, NULL);
}

janus_status jrt_cap_deny_at(janus_cap_table *table, const struct jrt_cap_actor *actor,
                             janus_cap cap, janus_cap_kind kind, uint32_t wanted,
                             janus_status status, const struct jrt_cap_target *target)
{
    struct jrt_audit_writer *writer = jrt_cap_writer(table, actor);
    struct jrt_audit_event  *event;
    if (writer == NULL) return status;
    (void)jrt_audit_begin(writer, false, &event); /* never refused, [audit-must] */
    event->what = JRT_AUDIT_DENIAL;
    event->cap = jrt_cap_id(cap);
    event->kind = (uint8_t)kind;
    event->holder = actor->holder;
    event->wanted = wanted == JANUS_RIGHTS_ALL ? 0 : wanted;
    event->status = status;
    if (target != NULL) {
        event->after = target->has_port ? (uint64_t)target->port + 1 : 0;
        jrt_audit_name(event, target->name);
    }
    jrt_audit_commit(writer);
    return status;
}

janus_status jrt_cap_check_limits(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                                  uint32_t rights, uint64_t holder, janus_cap_limits *out)
{
    struct jrt_cap_view view = jrt_cap_look(table, cap, out);
    if (jrt_likely(jrt_cap_view_allows(&view, cap, kind, rights, holder))) return JANUS_OK;
    return jrt_cap_refuse(table, cap, view, kind, rights, holder);
}

janus_status jrt_cap_use_right(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                               uint32_t rights, const struct jrt_cap_actor *actor,
                               janus_cap_limits *out)
{
    janus_status status = out == NULL
                              ? jrt_cap_check(table, cap, kind, rights, actor->holder)
                              : jrt_cap_check_limits(table, cap, kind, rights, actor->holder, out);
    if (jrt_unlikely(status != JANUS_OK)) {
        return jrt_cap_deny(table, actor, cap, kind, rights, status);
    }
    return jrt_cap_used(table, cap, kind, rights, actor);
}

janus_status jrt_cap_used(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                          uint32_t rights, const struct jrt_cap_actor *actor)
{
    struct jrt_audit_writer *writer = jrt_cap_writer(table, actor);
    if (writer == NULL) return JANUS_OK;
    struct jrt_audit_use use = {
        .cap = jrt_cap_id(cap), .holder = actor->holder, .rights = rights, .kind = kind};
    janus_status status = jrt_audit_used(writer, &use);
    if (jrt_unlikely(status != JANUS_OK)) jrt_cap_count(table, JRT_CAP_REFUSED_AUDIT);
    return status;
}

/* With an audit log, and for handles that the first look refused. The second look decides. */
__attribute__((noinline)) static janus_status check_slow(janus_cap_table *table, janus_cap cap,
                                                         janus_cap_kind kind, uint32_t rights,
                                                         uint64_t holder)
{
    if (table == NULL) return JANUS_INVALID;
    if (table->audit == NULL) return jrt_cap_check(table, cap, kind, rights, holder);
    struct jrt_cap_actor actor = {.holder = holder};
    jrt_outside_call(); /* [turn-call] */
    jrt_ctx_probe();    /* a stack overflow must come before the log's lock */
    return jrt_cap_use_right(table, cap, kind, rights, &actor, NULL);
}

/* Rare cases end in a tail call, so that no register is saved for them. */
janus_status janus_cap_check_in(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                                uint32_t rights, uint64_t holder)
{
    if (jrt_likely(table != NULL && cap.slot < table->slots_unlogged)) {
        struct jrt_cap_view view = jrt_cap_entry_read(&table->entries[cap.slot], NULL);
        if (jrt_likely(jrt_cap_view_allows(&view, cap, kind, rights, holder))) return JANUS_OK;
    }
    return check_slow(table, cap, kind, rights, holder);
}

janus_status janus_cap_inspect_in(janus_cap_table *table, janus_cap cap, uint64_t holder,
                                  janus_cap_info *out)
{
    jrt_outside_call(); /* [turn-call] */
    janus_cap_info info = {0};
    if (table == NULL || out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out)) {
        return JANUS_INVALID;
    }
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&table->lock);
    struct jrt_cap_view view = jrt_cap_look(table, cap, &info.limits);
    info.kind = (janus_cap_kind)(view.scope >> 32);
    bool allowed = jrt_cap_view_allows(&view, cap, info.kind, 0, holder);
    if (allowed) {
        const struct jrt_cap_entry *entry = &table->entries[cap.slot];
        info.rights = (uint32_t)view.scope;
        info.delegation_depth = entry->delegation_depth;
        info.depth = entry->depth;
    }
    jrt_unlock(&table->lock);
    if (!allowed) {
        struct jrt_cap_actor actor = {.holder = holder};
        janus_status status = jrt_cap_refuse(table, cap, view, JANUS_CAP_KIND_NONE, 0, holder);
        return jrt_cap_deny(table, &actor, cap, JANUS_CAP_KIND_NONE, 0, status);
    }
    jrt_struct_give(out, &info);
    return JANUS_OK;
}
