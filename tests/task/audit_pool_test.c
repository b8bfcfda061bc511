/* SPDX-License-Identifier: MIT */
/* The tasks of one pool try to fill the audit log: others lose nothing and are not refused. */
#include "caps.h"

#include <stdio.h>
#include <string.h>

/* What the sink has seen. */
static struct {
    int      greedy, modest, host; /* denials, by holder */
    uint64_t lost;                 /* of the pool "greedy" */
    int      other_gaps;           /* of tasks in no pool */
    int      writers;              /* the highest number */
} seen;

static _Atomic(uint64_t) greedy_id, modest_id;
static uint64_t          host_id;

static bool holder_is(const char *line, uint64_t id)
{
    char text[64];
    (void)snprintf(text, sizeof text, "\"holder\":\"%llu\"", (unsigned long long)id);
    return strstr(line, text) != NULL;
}

static bool sink(void *argument, const char *line, size_t bytes)
{
    int writer = 0;
    (void)argument, (void)bytes;
    if (sscanf(line, "{\"writer\":%d", &writer) == 1 && writer > seen.writers) {
        seen.writers = writer;
    }
    if (strstr(line, "\"event\":\"gap\"") != NULL) {
        unsigned long long lost = 0;
        const char        *at = strstr(line, "\"lost\":");
        CHECK(at != NULL && sscanf(at, "\"lost\":%llu", &lost) == 1);
        if (strstr(line, "\"pool\":\"greedy\"") != NULL) {
            seen.lost += lost;
        } else if (strstr(line, "\"pool\":\"modest\"") == NULL) {
            seen.other_gaps++;
        }
    }
    if (strstr(line, "\"event\":\"denial\"") == NULL) return true;
    seen.greedy += holder_is(line, atomic_load(&greedy_id));
    seen.modest += holder_is(line, atomic_load(&modest_id));
    seen.host += holder_is(line, host_id);
    return true;
}

static janus_authority *root;

/* Gets `argument` denials. */
static void be_denied(int times)
{
    const janus_cap none = {0};
    for (int i = 0; i < times; i++) {
        CHECK_EQ(janus_cap_check(none, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK),
                 JANUS_NO_SPAWN_CAP);
    }
}

static int64_t greedy(void *argument)
{
    (void)argument;
    atomic_store(&greedy_id, janus_task_current_id());
    be_denied(1000);
    return 0;
}

static int64_t modest(void *argument)
{
    (void)argument;
    atomic_store(&modest_id, janus_task_current_id());
    be_denied(3);
    return 0;
}

/* The entry as the child of a nursery with a pool. */
static void in_pool(const char *name, janus_entry *entry)
{
    janus_nursery      n;
    const janus_budget pool = janus_budget_of(100000, 1 << 20, 10, 0, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool, .name = name)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, entry, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
}

static janus_audit *begin_log(bool fail_closed)
{
    janus_audit *audit;
    memset(&seen, 0, sizeof seen);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = sink, .ring_events = 64,
                                                    .pool_events = 16, .fail_closed = fail_closed),
                                &audit),
             JANUS_OK);
    return audit;
}

static void run(janus_audit *audit, uint32_t workers, janus_entry *entry)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .audit = audit), entry,
                       audit, NULL),
             JANUS_OK);
}

static int64_t deny_beside(void *argument)
{
    (void)argument;
    host_id = janus_task_current_id();
    be_denied(5);
    in_pool("greedy", greedy);
    in_pool("modest", modest);
    be_denied(5);
    return 0;
}

TEST("a pool with too many denials loses only its own records, and the gap names it")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_audit *audit = begin_log(false);
        run(audit, workers, deny_beside);
        CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
        CHECK_EQ(seen.host, 10);
        CHECK_EQ(seen.modest, 3);
        CHECK_EQ(seen.greedy, 16);
        CHECK_EQ(seen.lost, 1000 - 16);
        CHECK_EQ(seen.other_gaps, 0);
    }
}

/* Derives until the log refuses. */
static int64_t derive_until_full(void *argument)
{
    janus_cap    own = caps_spawn(root, 10), out;
    janus_status status;
    (void)argument;
    do {
        status = janus_cap_attenuate(own, JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL), &out);
    } while (status == JANUS_OK);
    CHECK_EQ(status, JANUS_AUDIT_FULL);
    return 0;
}

static int64_t refuse_beside(void *argument)
{
    (void)argument;
    root = caps_root();
    in_pool("greedy", derive_until_full);
    in_pool("modest", derive_until_full); /* its ring is empty at first */
    janus_cap own = caps_spawn(root, 10), out;
    CHECK_EQ(janus_cap_attenuate(own, JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL), &out), JANUS_OK);
    return 0;
}

TEST("in a log that fails closed only the pool that fills its ring is refused")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_audit *audit = begin_log(true);
        run(audit, workers, refuse_beside);
        CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
        CHECK_EQ(seen.other_gaps, 0);
    }
}

static int64_t come_and_go(void *argument)
{
    (void)argument;
    for (int i = 0; i < 200; i++) {
        in_pool("modest", modest);
        if (i % 10 == 9) CHECK_EQ(janus_audit_drain(argument), JANUS_OK);
    }
    return 0;
}

TEST("pools that come and go reuse their rings once these are read")
{
    janus_audit *audit = begin_log(false);
    run(audit, 2, come_and_go);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK(seen.writers <= 3 + 10);
    CHECK_EQ(seen.other_gaps, 0);
}
