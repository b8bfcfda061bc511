/* SPDX-License-Identifier: MIT */
/*
 * Makes capabilities: from the authority, or from another capability.
 *
 * First decode, then perform. The ticket between them describes the new capability. When it is
 * complete, only a full table and a full audit log can still refuse. Both are asked before anything
 * changes ([audit-must]).
 *
 * [derive-narrow]  a derived capability has a subset of the original's rights, and no higher
 *   limits. Its delegation depth is not higher (attenuated), or lower (delegated). The original is
 *   alive at that moment, and a later revocation finds the new one below it: both hold the lock.
 */
#include "base/options.h"
#include "base/outside.h"
#include "cap/cap.h"
#include "fiber/ctx.h"

#include <string.h>

struct ticket {
    enum jrt_audit_what what;
    janus_cap_kind      kind;
    uint32_t            rights;
    janus_cap_limits    limits;
    uint32_t            delegation_depth, depth;
    uint64_t            holder;
    uint32_t            parent; /* a place; 0: minted */
    uint64_t            origin; /* its id */
    const char         *name;
};

/* Copies the caller's grant, which may be shorter than ours. */
static janus_status grant_copy(const janus_cap_grant *given, janus_cap_grant *grant)
{
    *grant = (janus_cap_grant){0};
    if (given == NULL || !jrt_struct_sane(given->struct_bytes, sizeof *grant)) {
        return JANUS_INVALID;
    }
    memcpy(grant, given, given->struct_bytes);
    return grant->rights == 0 ? JANUS_INVALID : JANUS_OK;
}

/* Keeps the words that this kind uses, and zeroes the others. Of a prefix it keeps no byte behind
 * the zero. */
static janus_cap_limits limits_of_kind(janus_cap_kind kind, const janus_cap_limits *given)
{
    janus_cap_limits limits = {.words = {0}};
    if (kind == JANUS_CAP_KIND_NAME) {
        memcpy(limits.name.prefix, given->name.prefix,
               strnlen(given->name.prefix, sizeof limits.name.prefix));
        return limits;
    }
    memcpy(limits.words, given->words, jrt_cap_kind_words(kind) * sizeof(uint64_t));
    return limits;
}

static void link_below(janus_cap_table *table, uint32_t place, uint32_t parent)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    entry->parent = parent;
    entry->prev = entry->next = 0;
    if (parent == 0) return;
    struct jrt_cap_entry *above = jrt_cap_at(table, parent);
    entry->next = above->child;
    if (above->child != 0) jrt_cap_at(table, above->child)->prev = place;
    above->child = place;
}

static void record(struct jrt_audit_event *event, const struct ticket *ticket, uint64_t holder,
                   janus_cap cap)
{
    event->what = (uint8_t)ticket->what;
    event->cap = jrt_cap_id(cap);
    event->origin = ticket->origin;
    event->kind = (uint8_t)ticket->kind;
    event->rights = ticket->rights;
    event->holder = holder;
    event->to_holder = ticket->what == JRT_AUDIT_DELEGATION ? ticket->holder : 0;
    jrt_audit_name(event, ticket->name);
}

/* Whether what the ticket asks for is within its original, which is alive. Under the lock. */
static bool is_narrow(janus_cap_table *table, const struct ticket *ticket)
{
    if (ticket->parent == 0) return true;
    const struct jrt_cap_entry *above = jrt_cap_at(table, ticket->parent);
    uint32_t phase = (uint32_t)jrt_load_relaxed(&above->state);  /* relaxed: under the lock. */
    uint32_t rights = (uint32_t)jrt_load_relaxed(&above->scope); /* relaxed: under the lock. */
    return phase == JRT_CAP_LIVE && (ticket->rights & ~rights) == 0 &&
           ticket->delegation_depth <= above->delegation_depth;
}

/* The caller holds the lock. */
static janus_status perform(janus_cap_table *table, const struct jrt_cap_actor *actor,
                            const struct ticket *ticket, janus_cap *out)
{
    struct jrt_cap_slot     slot;
    struct jrt_audit_event *event = NULL;
    janus_status            status = jrt_cap_slot_find(table, &slot);
    /* The last quarter is reserved for minting: tasks that derive cannot block the authority. */
    bool derived = ticket->what != JRT_AUDIT_CREATION;
    if (derived && table->stats.live >= (uint64_t)table->slots_max / 8 * 3) status = JANUS_FULL;
    if (derived && jrt_cap_quota_full(actor->quota) != NULL) status = JANUS_FULL;
    if (status != JANUS_OK) return status;
    struct jrt_audit_writer *writer = jrt_cap_writer(table, actor);
    if (writer != NULL) status = jrt_audit_begin(writer, true, &event);
    if (status != JANUS_OK) {
        jrt_cap_count(table, JRT_CAP_REFUSED_AUDIT);
        return status;
    }
    jrt_debug_invariant("derive-narrow", is_narrow(table, ticket));
    jrt_cap_slot_take(table, &slot);
    struct jrt_cap_entry *entry = jrt_cap_at(table, slot.place);
    entry->child = 0;
    entry->ghost = false;
    entry->depth = ticket->depth;
    entry->delegation_depth = ticket->delegation_depth;
    link_below(table, slot.place, ticket->parent);
    jrt_cap_quota_enter(table, derived ? actor->quota : NULL, slot.place);
    jrt_cap_entry_publish(entry, slot.generation, slot.nonce,
                          jrt_cap_scope(ticket->kind, ticket->rights), ticket->holder,
                          &ticket->limits);
    *out = (janus_cap){.slot = slot.place - 1, .generation = slot.generation, .nonce = slot.nonce};
    table->stats.minted += ticket->what == JRT_AUDIT_CREATION;
    table->stats.attenuated += ticket->what == JRT_AUDIT_ATTENUATION;
    table->stats.delegated += ticket->what == JRT_AUDIT_DELEGATION;
    if (writer != NULL) {
        record(event, ticket, actor->holder, *out);
        jrt_audit_commit(writer);
    }
    return JANUS_OK;
}

/* Whether the profile allows this capability to be minted. */
static bool profile_allows(janus_profile profile, const struct ticket *ticket)
{
    if (profile == JANUS_PROFILE_SOVEREIGN) return true;
    const janus_cap_defaults *defaults = janus_profile_cap_defaults(profile);
    if ((defaults->kinds & 1u << ticket->kind) == 0) return false;
    if (ticket->kind != JANUS_CAP_KIND_EXECUTOR) return true;
    return (ticket->limits.executor.allowed_backends & ~defaults->executor.allowed_backends) == 0;
}

/* Returns INVALID, or a ticket for a possible capability. */
static janus_status decode_mint(const janus_cap_grant *given, uint64_t holder,
                                struct ticket *ticket)
{
    janus_cap_grant grant;
    janus_status    status = grant_copy(given, &grant);
    uint32_t        all = janus_cap_kind_rights(grant.kind);
    if (status != JANUS_OK || all == 0 || holder == 0 || grant.limits == NULL) {
        return JANUS_INVALID;
    }
    if (grant.rights == JANUS_RIGHTS_ALL) grant.rights = all;
    if ((grant.rights & ~all) != 0) return JANUS_INVALID;
    *ticket = (struct ticket){.what = JRT_AUDIT_CREATION,
                              .kind = grant.kind,
                              .rights = grant.rights,
                              .limits = limits_of_kind(grant.kind, grant.limits),
                              .delegation_depth = grant.delegation_depth,
                              .holder = holder,
                              .name = grant.name};
    return jrt_cap_limits_sane(grant.kind, &ticket->limits) ? JANUS_OK : JANUS_INVALID;
}

janus_status jrt_cap_mint(janus_cap_table *table, const janus_authority *authority,
                          const struct jrt_cap_actor *actor, const janus_cap_grant *grant,
                          janus_cap *out)
{
    struct ticket ticket;
    if (table == NULL || out == NULL) return JANUS_INVALID;
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    if (authority == NULL || authority != table->authority) { /* a wrong one is not dereferenced */
        jrt_cap_count(table, JRT_CAP_REFUSED_AUTHORITY);
        return jrt_cap_deny(table, actor, (janus_cap){0}, JANUS_CAP_KIND_NONE, 0,
                            JANUS_NO_AUTHORITY);
    }
    janus_status status = decode_mint(grant, actor->holder, &ticket);
    if (status != JANUS_OK) return status;
    if (!profile_allows(table->profile, &ticket)) {
        return jrt_cap_deny(table, actor, (janus_cap){0}, ticket.kind, ticket.rights,
                            JANUS_PROFILE);
    }
    jrt_lock(&table->lock);
    status = perform(table, actor, &ticket, out);
    jrt_unlock(&table->lock);
    return status;
}

/* By [derive-narrow], for a live capability, under the lock. */
static janus_status narrow(janus_cap_table *table, const struct jrt_cap_entry *entry,
                           const janus_cap_grant *grant, struct ticket *ticket)
{
    uint32_t         most = entry->delegation_depth;
    uint64_t         scope = jrt_load_relaxed(&entry->scope); /* relaxed: under the lock. */
    janus_cap_limits limits = {.words = {0}};
    for (int i = 0; i < jrt_cap_scope_words(scope); i++) {
        limits.words[i] = jrt_load_relaxed(&entry->words[i]); /* relaxed: under the lock. */
    }
    ticket->kind = (janus_cap_kind)(scope >> 32);
    ticket->rights = grant->rights == JANUS_RIGHTS_ALL ? (uint32_t)scope : grant->rights;
    ticket->limits = grant->limits != NULL ? limits_of_kind(ticket->kind, grant->limits) : limits;
    ticket->delegation_depth = grant->delegation_depth;
    ticket->depth = entry->depth + 1;
    if (grant->kind != JANUS_CAP_KIND_NONE && grant->kind != ticket->kind) return JANUS_INVALID;
    bool has_form = ticket->kind == JANUS_CAP_KIND_NET || ticket->kind == JANUS_CAP_KIND_NAME;
    if (has_form && !jrt_cap_limits_sane(ticket->kind, &ticket->limits)) return JANUS_INVALID;
    if (ticket->what == JRT_AUDIT_DELEGATION) {
        if (most == 0) {
            jrt_cap_count(table, JRT_CAP_REFUSED_DELEGATION);
            return JANUS_NOT_DELEGATABLE;
        }
        if (most != JANUS_DELEGATION_UNLIMITED) most--;
    }
    if ((ticket->rights & ~(uint32_t)scope) != 0 || ticket->delegation_depth > most ||
        !jrt_cap_limits_within(ticket->kind, &ticket->limits, &limits)) {
        jrt_cap_count(table, JRT_CAP_REFUSED_WIDENS);
        return JANUS_CAP_WIDENS;
    }
    return JANUS_OK;
}

static janus_status derive(janus_cap_table *table, janus_cap cap, const struct jrt_cap_actor *actor,
                           const janus_cap_grant *given, struct ticket *ticket, janus_cap *out)
{
    janus_cap_grant grant;
    janus_status    status = grant_copy(given, &grant);
    if (status != JANUS_OK || table == NULL || out == NULL) return JANUS_INVALID;
    ticket->name = grant.name;
    ticket->origin = jrt_cap_id(cap);
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&table->lock);
    struct jrt_cap_view view = jrt_cap_look(table, cap, NULL);
    janus_cap_kind      kind = (janus_cap_kind)(view.scope >> 32);
    if (jrt_cap_view_allows(&view, cap, kind, 0, actor->holder)) {
        ticket->parent = cap.slot + 1;
        status = narrow(table, &table->entries[cap.slot], &grant, ticket);
        if (status == JANUS_OK) status = perform(table, actor, ticket, out);
    } else {
        kind = grant.kind; /* the kind is not what is wrong */
        status = jrt_cap_refuse(table, cap, view, kind, 0, actor->holder);
    }
    jrt_unlock(&table->lock);
    if (status == JANUS_OK || status == JANUS_INVALID || status == JANUS_FULL ||
        status == JANUS_UNAVAILABLE || status == JANUS_AUDIT_FULL) {
        return status;
    }
    return jrt_cap_deny(table, actor, cap, kind, grant.rights, status);
}

janus_status jrt_cap_attenuate(janus_cap_table *table, janus_cap cap,
                               const struct jrt_cap_actor *actor, const janus_cap_grant *grant,
                               janus_cap *out)
{
    struct ticket ticket = {.what = JRT_AUDIT_ATTENUATION, .holder = actor->holder};
    return derive(table, cap, actor, grant, &ticket, out);
}

janus_status jrt_cap_delegate(janus_cap_table *table, janus_cap cap,
                              const struct jrt_cap_actor *actor, uint64_t to_holder,
                              const janus_cap_grant *grant, janus_cap *out)
{
    static const janus_cap_grant whole = {.struct_bytes = sizeof whole, .rights = JANUS_RIGHTS_ALL};
    struct ticket                ticket = {.what = JRT_AUDIT_DELEGATION, .holder = to_holder};
    if (to_holder == 0) return JANUS_INVALID;
    return derive(table, cap, actor, grant != NULL ? grant : &whole, &ticket, out);
}

janus_status janus_cap_mint_in(janus_cap_table *table, const janus_authority *authority,
                               uint64_t holder, const janus_cap_grant *grant, janus_cap *out)
{
    jrt_outside_call(); /* [turn-call] */
    struct jrt_cap_actor actor = {.holder = holder};
    return jrt_cap_mint(table, authority, &actor, grant, out);
}

janus_status janus_cap_attenuate_in(janus_cap_table *table, janus_cap cap, uint64_t holder,
                                    const janus_cap_grant *grant, janus_cap *out)
{
    jrt_outside_call(); /* [turn-call] */
    struct jrt_cap_actor actor = {.holder = holder};
    return jrt_cap_attenuate(table, cap, &actor, grant, out);
}

janus_status janus_cap_delegate_in(janus_cap_table *table, janus_cap cap, uint64_t holder,
                                   uint64_t to_holder, const janus_cap_grant *grant, janus_cap *out)
{
    jrt_outside_call(); /* [turn-call] */
    struct jrt_cap_actor actor = {.holder = holder};
    return jrt_cap_delegate(table, cap, &actor, to_holder, grant, out);
}
