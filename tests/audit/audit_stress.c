/* SPDX-License-Identifier: MIT */
/*
 * Writers that never stop, small rings, and a consumer beside them. Every event is written once, in
 * order and unbroken, or counted in a gap.
 */
#include "cap/cap.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if JRT_TSAN || JRT_ASAN || defined(__aarch64__)
enum { EVENTS = 20000 };
#else
enum { EVENTS = 100000 };
#endif
enum { OWN = 2, FOREIGN = 2, WRITERS = OWN + 1 };

static janus_audit *audit;
static atomic_int   running;

/* The output by writer. Only the consumer touches it, under the log's lock. */
static struct {
    unsigned long long next_seq, events, lost, last_after[OWN + FOREIGN];
} seen[WRITERS];

static unsigned long long number(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    CHECK(at != NULL);
    return strtoull(at + strlen(key), NULL, 10);
}

static bool take(void *argument, const char *line, size_t bytes)
{
    (void)argument;
    CHECK(line[bytes - 2] == '}' && line[bytes - 1] == '\n');
    if (strstr(line, "\"begin\"") != NULL) return true;
    unsigned long long writer = number(line, "\"writer\":"), seq = number(line, "\"seq\":");
    CHECK(writer < WRITERS);
    CHECK_EQ(seq, seen[writer].next_seq);
    if (strstr(line, "\"gap\"") != NULL) {
        unsigned long long lost = number(line, "\"lost\":");
        seen[writer].lost += lost;
        seen[writer].next_seq += lost;
        return true;
    }
    unsigned long long holder = number(line, "\"holder\":\""), after = number(line, "\"after\":");
    CHECK(holder >= 1 && holder <= OWN + FOREIGN);
    CHECK_EQ(number(line, "\"before\":"), after * 3); /* not torn */
    CHECK(after > seen[writer].last_after[holder - 1]);
    seen[writer].last_after[holder - 1] = after;
    seen[writer].next_seq++;
    seen[writer].events++;
    return true;
}

static void *run_writer(void *argument)
{
    uint64_t                 holder = (uint64_t)(uintptr_t)argument;
    struct jrt_audit_writer *writer = audit->shared;
    if (holder <= OWN) CHECK_EQ(jrt_audit_writer_open(audit, &writer), JANUS_OK);
    for (uint64_t i = 1; i <= EVENTS; i++) {
        janus_status status;
        do {
            status = jrt_audit_budget(writer, JRT_AUDIT_RECHARGE, holder, JRT_AUDIT_OPS, i * 3, i,
                                      "stress");
            if (status == JANUS_AUDIT_FULL) sched_yield();
        } while (status == JANUS_AUDIT_FULL);
        CHECK_EQ(status, JANUS_OK);
    }
    if (holder <= OWN) jrt_audit_writer_close(writer);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void run(bool fail_closed, bool own_thread)
{
    pthread_t threads[OWN + FOREIGN];
    memset(seen, 0, sizeof seen);
    atomic_store(&running, OWN + FOREIGN);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = take, .ring_events = 64,
                                                    .fail_closed = fail_closed,
                                                    .interval_ns = own_thread ? 1000000 : 0),
                                &audit),
             JANUS_OK);
    for (int i = 0; i < OWN + FOREIGN; i++) {
        void *holder = (void *)(uintptr_t)(i + 1);
        CHECK_EQ(pthread_create(&threads[i], NULL, run_writer, holder), 0);
    }
    while (!own_thread && atomic_load(&running) > 0) {
        CHECK_EQ(janus_audit_drain(audit), JANUS_OK);
        sched_yield();
    }
    for (int i = 0; i < OWN + FOREIGN; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    unsigned long long events = 0, lost = 0;
    for (int i = 0; i < WRITERS; i++) {
        events += seen[i].events;
        lost += seen[i].lost;
    }
    CHECK_EQ(events + lost, (unsigned long long)(OWN + FOREIGN) * EVENTS);
    if (fail_closed) CHECK_EQ(lost, 0);
}

TEST("lost and written events together are all events") { run(false, false); }

TEST("a log that fails closed loses nothing") { run(true, false); }

TEST("the log's own thread drains beside the writers and wakes when a ring is half full")
{
    run(true, true);
}

/* Threads of both kinds use capabilities and are refused. Every use and every denial is counted. */

static struct {
    janus_cap_table   *table;
    janus_authority   *root;
    janus_cap          cap[OWN + FOREIGN];
    unsigned long long uses[OWN + FOREIGN], denials[OWN + FOREIGN];
} realm;

static bool take_use(void *argument, const char *line, size_t bytes)
{
    (void)argument, (void)bytes;
    CHECK(strstr(line, "\"gap\"") == NULL);
    if (strstr(line, "\"use\"") != NULL) {
        realm.uses[number(line, "\"holder\":\"") - 1] += number(line, "\"count\":");
    } else if (strstr(line, "\"denial\"") != NULL) {
        realm.denials[number(line, "\"holder\":\"") - 1]++;
    }
    return true;
}

static void *run_user(void *argument)
{
    struct jrt_cap_actor actor = {.holder = (uint64_t)(uintptr_t)argument};
    janus_cap            mine = realm.cap[actor.holder - 1];
    janus_cap            other = realm.cap[actor.holder % (OWN + FOREIGN)];
    if (actor.holder <= OWN) CHECK_EQ(jrt_audit_writer_open(audit, &actor.writer), JANUS_OK);
    for (int i = 0; i < EVENTS; i++) {
        while (jrt_cap_use_right(realm.table, mine, JANUS_CAP_KIND_SPAWN, 1, &actor, NULL) ==
               JANUS_AUDIT_FULL) {
            sched_yield();
        }
        if (i % 100 != 0) continue;
        CHECK_EQ(jrt_cap_use_right(realm.table, other, JANUS_CAP_KIND_SPAWN, 1, &actor, NULL),
                 JANUS_CAP_FOREIGN);
    }
    if (actor.holder <= OWN) jrt_audit_writer_close(actor.writer);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

TEST("every use and every denial of many threads is written, whichever thread drains")
{
    pthread_t              threads[OWN + FOREIGN];
    const janus_cap_limits limits = {.words = {1}};
    CHECK_EQ(janus_audit_create(
                 JANUS_AUDIT_OPTIONS(.sink = take_use, .ring_events = 1 << 14, .fail_closed = true),
                 &audit),
             JANUS_OK);
    CHECK_EQ(
        janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.audit = audit), &realm.table, &realm.root),
        JANUS_OK);
    for (uint64_t holder = 1; holder <= OWN + FOREIGN; holder++) {
        CHECK_EQ(janus_cap_mint_in(
                     realm.table, realm.root, holder,
                     JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = 1, .limits = &limits),
                     &realm.cap[holder - 1]),
                 JANUS_OK);
    }
    atomic_store(&running, OWN + FOREIGN);
    for (int i = 0; i < OWN + FOREIGN; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, run_user, (void *)(uintptr_t)(i + 1)), 0);
    }
    while (atomic_load(&running) > 0) {
        CHECK_EQ(janus_audit_drain(audit), JANUS_OK);
        sched_yield();
    }
    for (int i = 0; i < OWN + FOREIGN; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(janus_cap_table_destroy(realm.table, realm.root), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    for (int i = 0; i < OWN + FOREIGN; i++) {
        CHECK_EQ(realm.uses[i], EVENTS);
        CHECK_EQ(realm.denials[i], EVENTS / 100);
    }
}
