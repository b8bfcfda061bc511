/* SPDX-License-Identifier: MIT */
/* The owners of handles: their end, moves to other tasks, and the audit log. */
#include "wharf.h"

/* Ends. */

static int64_t forget_two(void *argument)
{
    struct berth **out = argument;
    CHECK_EQ(wharf_connect(&out[0]), JANUS_OK);
    const struct jrt_handle_ask ask = {.bytes = WHARF_BYTES};
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, &ask, true, &out[1]), JANUS_OK);
    return 0;
}

static int64_t outlive_children(void *argument)
{
    struct berth *berths[2];
    janus_nursery n;
    (void)argument;
    atomic_store(&wharf_ended, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, forget_two, berths), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&wharf_ended), 1);
    CHECK(!wharf_close(berths[0]));
    CHECK(wharf_close(berths[1])); /* kept */
    return 0;
}

TEST("a handle that a task forgot ends with the task, and a kept one does not")
{
    rig_all(outlive_children, NULL, 20);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
}

static int64_t keep_under_terms(void *argument)
{
    const janus_authority *root = caps_root();
    struct berth          *berths[2];
    janus_nursery          n;
    (void)argument;
    atomic_store(&wharf_ended, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(root, 4),
                                                          .net_cap = wharf_net(root, "all", 4))),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, forget_two, berths), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&wharf_ended), 2);
    return 0;
}

TEST("a kept handle ends with the nursery on whose terms it was made")
{
    caps_all(keep_under_terms, NULL);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
}

/* Moves. */

static int64_t take_it(void *argument)
{
    uint64_t before = janus_budget_get_current().memory;
    CHECK_EQ(wharf_take(argument), JANUS_OK);
    CHECK_EQ(janus_budget_get_current().memory, before - WHARF_BYTES);
    CHECK_EQ(wharf_take(argument), JANUS_OK); /* its own already */
    CHECK_EQ(janus_budget_get_current().memory, before - WHARF_BYTES);
    return 0;
}

static int64_t give_to_child(void *argument)
{
    struct berth *berth;
    janus_nursery n;
    uint64_t      before = janus_budget_get_current().memory;
    (void)argument;
    atomic_store(&wharf_ended, 0);
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, take_it, berth), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&wharf_ended), 1); /* with the child */
    CHECK(!wharf_close(berth));
    const struct jrt_handle_ask all = {.bytes = before}; /* finds what others returned */
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, &all, false, &berth), JANUS_OK);
    CHECK(wharf_close(berth));
    return 0;
}

TEST("a task that takes a handle pays for it, its end closes it, and the giver gets its memory")
{
    rig_all(give_to_child, NULL, 20);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.max_handles = 1), give_to_child, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
}

struct passing {
    struct berth *berth;
    janus_status  expected;
};

/* Places in nurseries. */

static int64_t open_one(void *argument)
{
    CHECK_EQ(wharf_connect(NULL), (janus_status)(intptr_t)argument);
    return 0;
}

static void open_in(janus_nursery *n, janus_status expected)
{
    janus_task_id task;
    int64_t       result;
    CHECK_EQ(janus_spawn_with(n, open_one, (void *)(intptr_t)expected, NULL, &task), JANUS_OK);
    CHECK_EQ(janus_join(n, task, &result), JANUS_OK);
}

static int64_t fill_places(void *argument)
{
    const janus_budget pool = JANUS_BUDGET(.ops = 100000, .memory = 100000, .spawn_count = 20);
    janus_nursery      outer, inner;
    struct berth      *berths[4];
    bool               pooled = argument != NULL;
    CHECK_EQ(wharf_connect(&berths[3]), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.max_handles = 3, .name = "three")),
             JANUS_OK);
    CHECK_EQ(janus_nursery_open(
                 &inner, JANUS_NURSERY_OPTIONS(.max_handles = 2, .budget = pooled ? &pool : NULL)),
             JANUS_OK);
    CHECK_EQ(wharf_connect(&berths[0]), JANUS_OK);
    CHECK_EQ(wharf_connect(&berths[1]), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT);
    CHECK(wharf_said("2 of 2 used"));
    CHECK_EQ(wharf_take(berths[3]), JANUS_OK); /* its own already, wherever it counts */
    open_in(&inner, JANUS_HANDLE_LIMIT);
    const struct jrt_handle_ask file = {.bytes = WHARF_BYTES};
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_FILE, 0, &file, false, &berths[2]), JANUS_OK);
    CHECK(wharf_close(berths[2])); /* files have places of their own */
    CHECK(wharf_close(berths[0]));
    open_in(&inner, JANUS_OK);
    CHECK_EQ(wharf_connect(&berths[0]), JANUS_OK); /* the child's has ended */
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(wharf_connect(&berths[2]), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT);
    CHECK(wharf_said("\"three\"") && wharf_said("3 of 3 used"));
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK(wharf_close(berths[i]));
    return 0;
}

TEST("a nursery with max_handles has that many below it, with and without a pool")
{
    rig_all(fill_places, NULL, 5);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), fill_places, &wharf, NULL),
             JANUS_OK);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
}

static int64_t take_as_expected(void *argument)
{
    struct passing *passing = argument;
    CHECK_EQ(wharf_take(passing->berth), passing->expected);
    if (passing->expected == JANUS_HANDLE_LIMIT) CHECK(wharf_said("1 of 1 used"));
    return 0;
}

static void pass(janus_nursery *n, struct berth *berth, janus_status expected)
{
    struct passing passing = {.berth = berth, .expected = expected};
    janus_task_id  task;
    int64_t        result;
    CHECK_EQ(janus_spawn_with(n, take_as_expected, &passing, NULL, &task), JANUS_OK);
    CHECK_EQ(janus_join(n, task, &result), JANUS_OK);
}

static int64_t move_between_places(void *argument)
{
    janus_nursery outer, inner;
    struct berth *first, *second;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.max_handles = 1)), JANUS_OK);
    CHECK_EQ(wharf_connect(&first), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.max_handles = 1)), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT);
    pass(&inner, first, JANUS_OK); /* inside of a full limit; the child's end closes it */
    CHECK_EQ(wharf_connect(&second), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    CHECK_EQ(wharf_connect(&first), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.max_handles = 1)), JANUS_OK);
    pass(&outer, first, JANUS_OK);
    CHECK_EQ(wharf_connect(&first), JANUS_OK);
    pass(&outer, second, JANUS_HANDLE_LIMIT);
    CHECK(wharf_close(first));
    pass(&outer, second, JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    return 0;
}

TEST("a handle that moves takes its place along")
{
    rig_all(move_between_places, NULL, 5);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
}

static int64_t move_between_limits(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              spawn = caps_spawn(root, 20);
    janus_nursery          outer, inner;
    struct berth          *a, *b;
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn,
                                                         .net_cap = wharf_net(root, "all", 2))),
        JANUS_OK);
    CHECK_EQ(wharf_connect(&a), JANUS_OK);
    CHECK_EQ(
        janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "all", 1))),
        JANUS_OK);
    CHECK_EQ(wharf_connect(&b), JANUS_OK); /* both limits are full */
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT);
    pass(&inner, a, JANUS_HANDLE_LIMIT);
    CHECK(a->open);
    pass(&inner, b, JANUS_OK); /* inside a full limit it moves, and ends with the child */
    CHECK(!wharf_close(b));
    pass(&inner, a, JANUS_OK);
    CHECK(!wharf_close(a));
    CHECK_EQ(wharf_connect(&a), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT); /* the inner limit, exactly */
    CHECK(wharf_close(a));
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    return janus_nursery_end(&outer, NULL);
}

TEST("inside a full limit a handle still moves, but not from outside into a full one")
{
    caps_all(move_between_limits, NULL);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
}

static int64_t take_without_memory(void *argument)
{
    uint64_t before = janus_budget_get_current().memory;
    CHECK_EQ(wharf_take(argument), JANUS_BUDGET_EXHAUSTED);
    CHECK(wharf_said("memory"));
    CHECK_EQ(janus_budget_get_current().memory, before);
    return 0;
}

static int64_t give_to_poor_child(void *argument)
{
    const janus_budget little = janus_budget_of(1000, WHARF_BYTES - 1, 0, 0, 0);
    struct berth      *berth;
    janus_nursery      n;
    (void)argument;
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, take_without_memory, berth,
                              JANUS_SPAWN_OPTIONS(.budget = &little), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(wharf_close(berth)); /* still the giver's */
    return 0;
}

TEST("a task without the memory does not get the handle, and nothing has changed")
{
    rig_all(give_to_poor_child, NULL, 20);
    CHECK_EQ(wharf_take(&wharf[0]), JANUS_STALE);
    struct berth *berth;
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK_EQ(wharf_take(berth), JANUS_STATE); /* a plain thread */
    CHECK(wharf_close(berth));
}

static int64_t take_revoked(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              cap = wharf_net(root, "all", 4);
    janus_nursery          outer, n;
    struct berth          *berth;
    (void)argument;
    caps_open(&outer, caps_spawn(root, 4));
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.net_cap = cap)), JANUS_OK);
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK_EQ(janus_cap_revoke(cap, cap), JANUS_OK);
    pass(&n, berth, JANUS_OK);
    CHECK(!wharf_close(berth));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    /* A task that holds nothing takes what it is given. */
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_FILE, 0, NULL, false, &berth), JANUS_OK);
    pass(&outer, berth, JANUS_OK);
    CHECK(!wharf_close(berth));
    return janus_nursery_end(&outer, NULL);
}

TEST("a move needs no capability, and works after a revocation") { caps_all(take_revoked, NULL); }

/* An owner ends while another task takes its handle. */

static _Atomic(struct berth *) offered;
static atomic_int              takers_ended;

static int64_t offer_and_end(void *argument)
{
    struct berth *berth;
    (void)argument;
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    atomic_store(&offered, berth);
    return 0;
}

static int64_t take_from_ending(void *argument)
{
    struct berth *berth;
    (void)argument;
    while ((berth = atomic_load(&offered)) == NULL) CHECK_EQ(janus_yield(), JANUS_OK);
    janus_status status = wharf_take(berth);
    CHECK(status == JANUS_OK || status == JANUS_STALE);
    if (status == JANUS_OK) {
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(berth->open); /* the old owner's end leaves it alone */
        CHECK(wharf_close(berth));
        atomic_fetch_add(&takers_ended, 1);
    }
    return 0;
}

static int64_t race_an_end(void *argument)
{
    janus_nursery n;
    (void)argument;
    atomic_store(&offered, NULL);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, offer_and_end, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, take_from_ending, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
    return 0;
}

TEST("a handle taken while its owner ends is the taker's, or closed, and counted once")
{
    rig_run(2, race_an_end, NULL, 2000);
    rig_run(8, race_an_end, NULL, 2000);
}

/* The owner's end has begun, and waits until the handle is taken. */

static atomic_int ending, taken, owner_gone;

static void wait_for_taker(void)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    atomic_store(&ending, 1);
    while (!atomic_load(&taken)) CHECK(janus_now_ns() < limit);
}

static int64_t take_at_the_end(void *argument)
{
    (void)argument;
    CHECK(rig_wait(&ending));
    struct berth *berth = atomic_load(&offered);
    CHECK_EQ(wharf_take(berth), JANUS_OK);
    wharf_before_end = NULL;
    atomic_store(&taken, 1);
    CHECK(rig_wait(&owner_gone));
    CHECK(berth->open);
    return 0;
}

static int64_t take_while_it_ends(void *argument)
{
    janus_nursery n;
    janus_task_id owner;
    int64_t       result;
    (void)argument;
    atomic_store(&wharf_ended, 0);
    wharf_before_end = wait_for_taker;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, take_at_the_end, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, offer_and_end, NULL, NULL, &owner), JANUS_OK);
    CHECK_EQ(janus_join(&n, owner, &result), JANUS_OK);
    atomic_store(&owner_gone, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&wharf_ended), 1); /* by the end of the taker alone */
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
    return 0;
}

TEST("the end of an owner leaves a handle alone that was taken meanwhile")
{
    RIG_REAL("one worker stands still while the other goes on");
    rig_run(2, take_while_it_ends, NULL, 1);
}

/* The log. */

static char   text[1 << 16];
static size_t text_bytes;

static bool keep(void *argument, const char *line, size_t bytes)
{
    (void)argument;
    CHECK(text_bytes + bytes < sizeof text);
    memcpy(text + text_bytes, line, bytes + 1);
    text_bytes += bytes;
    return true;
}

/* The number of lines with all these texts. */
static int lines(const char *one, const char *two, const char *three)
{
    int found = 0;
    for (char *line = text; *line != 0;) {
        char *end = strchr(line, '\n');
        *end = 0;
        found +=
            strstr(line, one) != NULL && strstr(line, two) != NULL && strstr(line, three) != NULL;
        *end = '\n';
        line = end + 1;
    }
    return found;
}

static int64_t be_denied(void *argument)
{
    const janus_authority *root = caps_root();
    janus_address          outside = place_at("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", 65535);
    janus_address          mapped = place_at("::ffff:10.0.0.1", 80), local = place_at("unix", 0);
    struct jrt_handle_ask  ask = {.address = &outside, .bytes = WHARF_BYTES};
    janus_nursery          n;
    struct berth          *berth;
    (void)argument;
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_CONNECT, &ask, false, NULL),
             JANUS_NO_NET_CAP);
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_READ,
                        &(struct jrt_handle_ask){.name = "/etc/\"x\"\n"}, false, NULL),
             JANUS_NO_FILE_CAP);
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "127.0.0.0/8:80", 1))),
             JANUS_OK);
    ask.address = &mapped;
    CHECK_EQ(jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_DATAGRAM, &ask), JANUS_CAP_LIMIT);
    ask.address = &local;
    CHECK_EQ(jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_CONNECT, &ask), JANUS_CAP_LIMIT);
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT);
    CHECK(wharf_close(berth));
    return janus_nursery_end(&n, NULL);
}

TEST("the log has a line for each denied handle, with its address and port")
{
    janus_audit *audit;
    text_bytes = 0;
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = keep), &audit), JANUS_OK);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN,
                                               .yield_interval = 512, .audit = audit),
                       be_denied, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(lines("\"event\":\"denial\"", "\"kind\":\"", ""), 5);
    CHECK_EQ(lines("\"wanted\":\"net.connect\",\"port\":65535", "\"status\":\"JANUS_NO_NET_CAP\"",
                   "\"name\":\"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff\""),
             1);
    CHECK_EQ(lines("\"wanted\":\"file.read\"", "JANUS_NO_FILE_CAP",
                   "\"name\":\"/etc/\\\"x\\\"\\u000a\""),
             1);
    CHECK_EQ(lines("\"wanted\":\"net.datagram\",\"port\":80", "JANUS_CAP_LIMIT",
                   "\"name\":\"10.0.0.1\""),
             1);
    CHECK_EQ(lines("\"wanted\":\"net.connect\",\"status\"", "JANUS_CAP_LIMIT",
                   "\"name\":\"unix:/run/x\""),
             1);
    CHECK_EQ(lines("\"wanted\":\"net.connect\"", "JANUS_HANDLE_LIMIT", "\"kind\":\"net\""), 1);
    CHECK_EQ(lines("\"event\":\"use\"", "\"kind\":\"net\"", "net.connect"), 1);
}
