/* SPDX-License-Identifier: MIT */
/*
 * Rings of parties.
 *
 * [audit-party]  a party that fills a ring must not displace the events of others. Nor may it cause
 *   their refusal in a log that fails closed. A party is an outermost pool, or anything else that
 *   restricts tasks. It has a ring of its own, under a lock, because its tasks run on all workers.
 *   The ring is made for the party's first event. Events without room are lost to that party alone,
 *   and the gap names it.
 *
 * [audit-again]  when a party has ended, its ring serves the next one, after the consumer has
 *   reported everything in it. Otherwise the next party could begin with a full ring. There are at
 *   most PARTIES_MAX rings. Further parties share the ring of the threads that are not workers.
 */
#include "audit/audit.h"

#include <stdio.h>

enum { PARTIES_MAX = 1024 };

/* Whether the consumer has reported all events of a ring and the gaps between them. */
static bool is_told(const struct jrt_audit_writer *writer)
{
    uint64_t head = jrt_load_relaxed(&writer->head); /* relaxed: nothing writes it any more. */
    uint64_t lost = jrt_load_relaxed(&writer->lost); /* relaxed: nothing writes it any more. */
    /* acquire: the consumer is done with the ring. Pairs with its store. */
    return jrt_load_acquire(&writer->told) == head + lost;
}

/* The caller holds list_lock. */
static struct jrt_audit_writer *find_free(janus_audit *audit)
{
    if (audit->parties_free == 0) return NULL;
    struct jrt_audit_writer *writer = audit->writers;
    while (writer != NULL && (!writer->party || writer->in_use || !is_told(writer))) {
        writer = writer->next;
    }
    return writer;
}

struct jrt_audit_writer *jrt_audit_party_open(janus_audit *audit, const char *name)
{
    jrt_lock(&audit->list_lock);
    struct jrt_audit_writer *writer = find_free(audit);
    bool                     may_make = writer == NULL && audit->parties < PARTIES_MAX;
    if (writer != NULL) {
        writer->in_use = true;
        audit->parties_free--;
    } else if (may_make) {
        audit->parties++;
    }
    jrt_unlock(&audit->list_lock);
    if (writer == NULL && !may_make) return audit->shared;
    if (writer == NULL && jrt_audit_writer_create(audit, true, true, &writer) != JANUS_OK) {
        jrt_lock(&audit->list_lock);
        audit->parties--;
        jrt_unlock(&audit->list_lock);
        return audit->shared;
    }
    jrt_debug_invariant("audit-party", writer->party && writer->shared);
    jrt_lock(&writer->lock); /* the consumer reads it */
    (void)snprintf(writer->name, sizeof writer->name, "%s", name);
    jrt_unlock(&writer->lock);
    return writer;
}

void jrt_audit_party_close(struct jrt_audit_writer *writer)
{
    janus_audit *audit = writer->audit;
    if (!writer->party) return;    /* the shared one, used instead */
    (void)jrt_audit_flush(writer); /* without room, they stay for the next drain */
    jrt_lock(&audit->list_lock);
    jrt_debug_invariant("audit-again", writer->in_use && audit->parties_free < audit->parties);
    writer->in_use = false;
    audit->parties_free++;
    jrt_unlock(&audit->list_lock);
}
