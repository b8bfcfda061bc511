/* SPDX-License-Identifier: MIT */
/*
 * Ends capabilities: a branch by revocation, a single one by release.
 *
 * Capabilities form a tree: above each stands the one it was derived from. The table's lock guards
 * the tree. Checks read only the state of their own entry, never the tree.
 *
 * [tree-revoke]  revoke marks the whole branch from the top down before it returns. From then on no
 *   check of any of them succeeds ([entry-gone]). Nothing can be derived in between, because that
 *   needs the lock too.
 *
 * [tree-ghost]  what was derived from a released capability stays revocable from above. If the
 *   released one has one child, that child takes its place. If it has more, the entry stays in the
 *   tree as a ghost, which no handle names, until one child is left. So a ghost has at least two
 *   children, and there are fewer ghosts than capabilities. A program that derives and releases for
 *   ever keeps no chain of dead ones.
 *
 * No walk recurses: branches can be as deep as the table is large.
 */
#include "base/outside.h"
#include "cap/cap.h"
#include "fiber/ctx.h"

/* Puts `instead` in the place of `place` among its siblings; 0: removes it. */
static void replace(janus_cap_table *table, uint32_t place, uint32_t instead)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    uint32_t              next = instead != 0 ? instead : entry->next;
    uint32_t              prev = instead != 0 ? instead : entry->prev;
    if (entry->next != 0) jrt_cap_at(table, entry->next)->prev = prev;
    if (entry->prev != 0) {
        jrt_cap_at(table, entry->prev)->next = next;
    } else if (entry->parent != 0) {
        jrt_cap_at(table, entry->parent)->child = next;
    }
    if (instead == 0) return;
    struct jrt_cap_entry *other = jrt_cap_at(table, instead);
    other->parent = entry->parent;
    other->next = entry->next;
    other->prev = entry->prev;
}

static bool has_one_child(janus_cap_table *table, const struct jrt_cap_entry *entry)
{
    return entry->child != 0 && jrt_cap_at(table, entry->child)->next == 0;
}

/* Takes a place and everything below it out of the tree, and restores [tree-ghost]. */
static void unlink_branch(janus_cap_table *table, uint32_t place)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    uint32_t              above = entry->parent;
    replace(table, place, 0);
    entry->parent = entry->next = entry->prev = 0;
    if (above == 0 || !jrt_cap_at(table, above)->ghost) return;
    jrt_invariant("tree-ghost", jrt_cap_at(table, above)->child != 0);
    if (!has_one_child(table, jrt_cap_at(table, above))) return;
    replace(table, above, jrt_cap_at(table, above)->child);
    jrt_cap_slot_give(table, above);
}

/* The entry after `place` in a visit of `root` and everything below it. Originals come before what
 * was derived from them. 0: that was the last. */
static uint32_t visit_next(janus_cap_table *table, uint32_t root, uint32_t place)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    if (entry->child != 0) return entry->child;
    while (place != root) {
        entry = jrt_cap_at(table, place);
        if (entry->next != 0) return entry->next;
        place = entry->parent;
    }
    return 0;
}

/* Frees the places of a branch that is out of the tree, leaves first. */
static void give_branch(janus_cap_table *table, uint32_t root)
{
    uint32_t place = root;
    for (;;) {
        struct jrt_cap_entry *entry = jrt_cap_at(table, place);
        if (entry->child != 0) {
            place = entry->child;
            continue;
        }
        uint32_t above = entry->parent;
        if (place != root) jrt_cap_at(table, above)->child = entry->next;
        jrt_cap_slot_give(table, place);
        if (place == root) return;
        place = above;
    }
}

static uint32_t generation_of(const struct jrt_cap_entry *entry)
{
    return (uint32_t)(jrt_load_relaxed(&entry->state) >> 32); /* relaxed: under the lock. */
}

/* Revokes by [tree-revoke]. Returns how many. */
uint64_t jrt_cap_revoke_branch(janus_cap_table *table, uint32_t root)
{
    uint64_t count = 0;
    for (uint32_t place = root; place != 0; place = visit_next(table, root, place)) {
        struct jrt_cap_entry *entry = jrt_cap_at(table, place);
        if (entry->ghost) continue;
        jrt_cap_entry_end(entry, generation_of(entry), JRT_CAP_REVOKED);
        jrt_cap_quota_leave(table, place);
        count++;
    }
    unlink_branch(table, root);
    give_branch(table, root);
    table->stats.live -= count;
    table->stats.revoked += count;
    return count;
}

static bool comes_from(janus_cap_table *table, uint32_t place, uint32_t origin)
{
    while (place != 0 && place != origin) place = jrt_cap_at(table, place)->parent;
    return place != 0;
}

/* Whether the handle names a live capability of any holder. Under the lock. */
static janus_status alive(janus_cap_table *table, janus_cap cap, uint64_t *out_holder)
{
    struct jrt_cap_view view = jrt_cap_look(table, cap, NULL);
    janus_cap_kind      kind = (janus_cap_kind)(view.scope >> 32);
    *out_holder = view.holder;
    if (jrt_cap_view_allows(&view, cap, kind, 0, view.holder)) return JANUS_OK;
    return jrt_cap_refuse(table, cap, view, JANUS_CAP_KIND_NONE, 0, view.holder);
}

/* Whether the handle names a live capability of this holder. Under the lock. */
static janus_status alive_of(janus_cap_table *table, janus_cap cap, uint64_t holder)
{
    struct jrt_cap_view view = jrt_cap_look(table, cap, NULL);
    janus_cap_kind      kind = (janus_cap_kind)(view.scope >> 32);
    if (jrt_cap_view_allows(&view, cap, kind, 0, holder)) return JANUS_OK;
    return jrt_cap_refuse(table, cap, view, JANUS_CAP_KIND_NONE, 0, holder);
}

/* Under the lock. The log should record it, but a full log does not refuse it, [audit-must]. */
static void perform_revoke(janus_cap_table *table, const struct jrt_cap_actor *actor,
                           janus_cap victim, uint64_t with, uint64_t victim_holder)
{
    struct jrt_audit_writer *writer = jrt_cap_writer(table, actor);
    struct jrt_audit_event  *event = NULL;
    uint64_t                 count = jrt_cap_revoke_branch(table, victim.slot + 1);
    if (writer == NULL) return;
    (void)jrt_audit_begin(writer, false, &event);
    event->what = JRT_AUDIT_REVOCATION;
    event->cap = jrt_cap_id(victim);
    event->origin = with;
    event->holder = actor->holder;
    event->to_holder = victim_holder;
    event->count = count;
    jrt_audit_commit(writer);
}

janus_status jrt_cap_revoke(janus_cap_table *table, janus_cap victim, janus_cap with,
                            const struct jrt_cap_actor *actor)
{
    uint64_t  holder;
    janus_cap culprit = with;
    if (table == NULL) return JANUS_INVALID;
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&table->lock);
    janus_status status = alive_of(table, with, actor->holder);
    if (status == JANUS_OK) {
        culprit = victim;
        status = alive(table, victim, &holder);
    }
    if (status == JANUS_OK && !comes_from(table, victim.slot + 1, with.slot + 1)) {
        jrt_cap_count(table, JRT_CAP_REFUSED_FOREIGN);
        status = JANUS_CAP_FOREIGN;
    }
    if (status == JANUS_OK) {
        perform_revoke(table, actor, victim, jrt_cap_id(with), holder);
    }
    jrt_unlock(&table->lock);
    return status == JANUS_OK ? status
                              : jrt_cap_deny(table, actor, culprit, JANUS_CAP_KIND_NONE, 0, status);
}

janus_status janus_authority_revoke(janus_cap_table *table, const janus_authority *authority,
                                    janus_cap victim)
{
    jrt_outside_call(); /* [turn-call] */
    struct jrt_cap_actor actor = {.holder = 0};
    uint64_t             holder;
    if (table == NULL) return JANUS_INVALID;
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    if (authority == NULL || authority != table->authority) {
        jrt_cap_count(table, JRT_CAP_REFUSED_AUTHORITY);
        return jrt_cap_deny(table, &actor, victim, JANUS_CAP_KIND_NONE, 0, JANUS_NO_AUTHORITY);
    }
    jrt_lock(&table->lock);
    janus_status status = alive(table, victim, &holder);
    if (status == JANUS_OK) perform_revoke(table, &actor, victim, 0, holder);
    jrt_unlock(&table->lock);
    return status == JANUS_OK ? status
                              : jrt_cap_deny(table, &actor, victim, JANUS_CAP_KIND_NONE, 0, status);
}

/* The caller holds the lock. */
static void perform_release(janus_cap_table *table, uint32_t place)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    jrt_cap_entry_end(entry, generation_of(entry), JRT_CAP_FREE);
    jrt_cap_quota_leave(table, place);
    table->stats.live--;
    table->stats.released++;
    if (entry->child == 0) {
        unlink_branch(table, place);
        jrt_cap_slot_give(table, place);
    } else if (has_one_child(table, entry)) {
        replace(table, place, entry->child);
        jrt_cap_slot_give(table, place);
    } else {
        entry->ghost = true;
    }
}

janus_status jrt_cap_release(janus_cap_table *table, janus_cap cap,
                             const struct jrt_cap_actor *actor)
{
    struct jrt_audit_event *event;
    if (table == NULL) return JANUS_INVALID;
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&table->lock);
    janus_status status = alive_of(table, cap, actor->holder);
    if (status == JANUS_OK) {
        struct jrt_audit_writer *writer = jrt_cap_writer(table, actor);
        perform_release(table, cap.slot + 1);
        if (writer != NULL) {
            (void)jrt_audit_begin(writer, false, &event);
            event->what = JRT_AUDIT_RELEASE;
            event->cap = jrt_cap_id(cap);
            event->holder = actor->holder;
            jrt_audit_commit(writer);
        }
    }
    jrt_unlock(&table->lock);
    /* Releasing a revoked capability is not an attack, so no denial is recorded. */
    if (status == JANUS_OK || status == JANUS_CAP_REVOKED) return status;
    return jrt_cap_deny(table, actor, cap, JANUS_CAP_KIND_NONE, 0, status);
}

janus_status janus_cap_revoke_in(janus_cap_table *table, janus_cap victim, janus_cap with,
                                 uint64_t holder)
{
    jrt_outside_call(); /* [turn-call] */
    struct jrt_cap_actor actor = {.holder = holder};
    return jrt_cap_revoke(table, victim, with, &actor);
}

janus_status janus_cap_release_in(janus_cap_table *table, janus_cap cap, uint64_t holder)
{
    jrt_outside_call(); /* [turn-call] */
    struct jrt_cap_actor actor = {.holder = holder};
    return jrt_cap_release(table, cap, &actor);
}
