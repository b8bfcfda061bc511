/* SPDX-License-Identifier: MIT */
/*
 * The failed children that a nursery remembers: the first JANUS_FAILURES_KEPT.
 *
 * [failure-kept]  The list grows with the failures, 4, 16, 64, because a task can have hundreds of
 *   nurseries open. No budget pays for it: the child has ended, and the owner may run elsewhere.
 *   So all nurseries under the same terms together keep at most KEPT_MAX, about half a MiB. Beyond
 *   that the library only counts failures. Other terms are not affected.
 */
#include "books/books.h"
#include "means/terms.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>

enum { KEPT_FIRST = 4, KEPT_MAX = 4096 };

/* Returns room in the terms and around, up to `end`. */
static void give(struct jrt_terms *terms, const struct jrt_terms *end, uint32_t count)
{
    for (; terms != end; terms = terms->outer) {
        /* relaxed: only the number. */
        uint32_t kept = jrt_fetch_sub_relaxed(&terms->failures, count);
        jrt_debug_invariant("failure-kept", kept >= count);
    }
}

static bool take(struct jrt_nursery *n, uint32_t count)
{
    const struct jrt_terms *end = n->scheduler->terms; /* they restrict nobody */
    for (struct jrt_terms *at = n->terms; at != end && at != NULL; at = at->outer) {
        /* relaxed: only the number. */
        if (jrt_fetch_add_relaxed(&at->failures, count) + count <= KEPT_MAX) continue;
        give(n->terms, at->outer, count);
        return false;
    }
    return true;
}

/* Makes room for more. False: there is no room. Under the nursery's lock. */
static bool grow(struct jrt_nursery *n)
{
    struct jrt_failures *old = n->failures;
    uint32_t             room = old != NULL ? old->room : 0;
    uint32_t             more = room != 0 ? 4 * room : KEPT_FIRST;
    if (!take(n, more - room)) return false;
    struct jrt_failures *larger = jrt_realloc(old, sizeof *larger + more * sizeof larger->list[0]);
    if (larger == NULL) {
        struct jrt_terms *terms = n->terms != n->scheduler->terms ? n->terms : NULL;
        give(terms, terms != NULL ? n->scheduler->terms : NULL, more - room);
        return false;
    }
    if (old == NULL) larger->count = 0;
    larger->room = more;
    n->failures = larger;
    return true;
}

void jrt_failures_keep(struct jrt_nursery *n, const struct jrt_task *task)
{
    uint32_t count = n->failures != NULL ? n->failures->count : 0;
    /* An earlier failure was left out. */
    if (n->errors > JANUS_FAILURES_KEPT || count != n->errors - 1) return;
    if ((n->failures == NULL || count == n->failures->room) && !grow(n)) return;
    jrt_failure_describe(&n->failures->list[count], task);
    n->failures->count++;
}

void jrt_failures_free(struct jrt_nursery *n)
{
    if (n->failures == NULL) return;
    struct jrt_terms *terms = n->terms != n->scheduler->terms ? n->terms : NULL;
    give(terms, terms != NULL ? n->scheduler->terms : NULL, n->failures->room);
    free(n->failures);
}
