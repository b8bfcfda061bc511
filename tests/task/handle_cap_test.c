/* SPDX-License-Identifier: MIT */
/* What a task needs to make handles: rights, addresses, places under a limit, memory. */
#include "wharf.h"

static const struct {
    janus_cap_kind kind;
    uint32_t       right;
    janus_status   none;
    const char    *text;
} rights[] = {
    {JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, JANUS_NO_NET_CAP, "net.listen"},
    {JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_CONNECT, JANUS_NO_NET_CAP, "net.connect"},
    {JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_DATAGRAM, JANUS_NO_NET_CAP, "net.datagram"},
    {JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_RESOLVE, JANUS_NO_NET_CAP, "net.resolve"},
    {JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_ADOPT, JANUS_NO_NET_CAP, "net.adopt"},
    {JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_READ, JANUS_NO_FILE_CAP, "file.read"},
    {JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_WRITE, JANUS_NO_FILE_CAP, "file.write"},
    {JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_CREATE, JANUS_NO_FILE_CAP, "file.create"},
    {JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_LIST, JANUS_NO_FILE_CAP, "file.list"},
    {JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_REMOVE, JANUS_NO_FILE_CAP, "file.remove"},
    {JANUS_CAP_KIND_PROCESS, JANUS_RIGHT_PROCESS_SPAWN, JANUS_NO_PROCESS_CAP, "process.spawn"},
    {JANUS_CAP_KIND_PROCESS, JANUS_RIGHT_PROCESS_SIGNAL, JANUS_NO_PROCESS_CAP, "process.signal"},
};
enum { RIGHTS = sizeof rights / sizeof rights[0] };

/* Profiles. */

static int64_t open_every_kind(void *argument)
{
    const janus_address         anywhere = place_at("203.0.113.9", 4711);
    const struct jrt_handle_ask ask = {.address = &anywhere, .bytes = WHARF_BYTES};
    (void)argument;
    for (int i = 0; i < RIGHTS; i++) {
        struct berth *berth;
        CHECK_EQ(wharf_open(rights[i].kind, rights[i].right, &ask, false, &berth), JANUS_OK);
        CHECK_EQ(jrt_handle_check(rights[i].kind, rights[i].right, &ask), JANUS_OK);
        CHECK(wharf_close(berth));
    }
    return 0;
}

TEST("in :service and :cluster a task makes handles of every kind without a capability")
{
    CHECK_EQ(janus_run(NULL, open_every_kind, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER), open_every_kind,
                       NULL, NULL),
             JANUS_OK);
}

static int64_t open_nothing(void *argument)
{
    const janus_address         at = place_at("10.0.0.1", 80);
    const struct jrt_handle_ask ask = {.address = &at, .bytes = WHARF_BYTES};
    (void)argument;
    for (int i = 0; i < RIGHTS; i++) {
        uint64_t before = janus_budget_get_current().memory;
        CHECK_EQ(wharf_open(rights[i].kind, rights[i].right, &ask, false, NULL), rights[i].none);
        CHECK(wharf_said(rights[i].text));
        CHECK(wharf_said("10.0.0.1:80"));
        CHECK(wharf_said("_cap.")); /* what to bind */
        CHECK_EQ(jrt_handle_check(rights[i].kind, rights[i].right, &ask), rights[i].none);
        CHECK_EQ(janus_budget_get_current().memory, before);
    }
    return 0;
}

TEST("in :sovereign a task without capabilities makes no handle, and learns what it lacks")
{
    caps_all(open_nothing, NULL);
}

TEST("a plain thread needs no right, and pays nothing")
{
    open_every_kind(NULL);
    struct berth *berth;
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK(berth->toll.terms == NULL);
    CHECK(wharf_close(berth));
}

static int64_t be_shut_out(void *argument)
{
    (void)argument;
    for (int i = 0; i < RIGHTS; i++) {
        bool granted = rights[i].right == JANUS_RIGHT_NET_CONNECT ||
                       rights[i].right == JANUS_RIGHT_FILE_READ ||
                       rights[i].right == JANUS_RIGHT_PROCESS_SIGNAL;
        janus_status status = wharf_open(rights[i].kind, rights[i].right, NULL, false, NULL);
        CHECK_EQ(status, granted ? JANUS_HANDLE_LIMIT : JANUS_CAP_RIGHT);
        CHECK_EQ(wharf_open(rights[i].kind, 0, NULL, false, NULL), JANUS_HANDLE_LIMIT);
    }
    return 0;
}

static int64_t shut_out(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits none = {0};
    janus_nursery          n;
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.net_cap = caps_mint(root, JANUS_CAP_KIND_NET,
                                                           JANUS_RIGHT_NET_CONNECT, &none),
                                      .file_cap = caps_mint(root, JANUS_CAP_KIND_FILE,
                                                            JANUS_RIGHT_FILE_READ, &none),
                                      .process_cap = caps_mint(root, JANUS_CAP_KIND_PROCESS,
                                                               JANUS_RIGHT_PROCESS_SIGNAL, &none))),
        JANUS_OK);
    CHECK_EQ(janus_spawn(&n, be_shut_out, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("in :service limits of zeros shut children out of what the profile gives")
{
    CHECK_EQ(janus_run(NULL, shut_out, NULL, NULL), JANUS_OK);
}

/* Ranges. */

static janus_status listen_at(const char *at, uint16_t port)
{
    const janus_address         address = place_at(at, port);
    const struct jrt_handle_ask ask = {.address = &address, .bytes = WHARF_BYTES};
    struct berth               *berth;
    janus_status checked = jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, &ask);
    janus_status status =
        wharf_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, &ask, false, &berth);
    CHECK_EQ(status, checked);
    if (status == JANUS_OK) CHECK(wharf_close(berth));
    return status;
}

static int64_t listen_around(void *argument)
{
    const janus_authority *root = caps_root();
    janus_nursery          n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "127.0.0.0/8:8000-8999", 4))),
             JANUS_OK);
    CHECK_EQ(listen_at("127.0.0.1", 8000), JANUS_OK);
    CHECK_EQ(listen_at("::ffff:127.0.0.1", 8000), JANUS_OK);
    CHECK_EQ(listen_at("127.0.0.1", 9000), JANUS_CAP_LIMIT);
    CHECK(wharf_said("127.0.0.1:9000"));
    CHECK(wharf_said("127.0.0.0/8, ports 8000 to 8999"));
    CHECK_EQ(listen_at("10.0.0.1", 8000), JANUS_CAP_LIMIT);
    CHECK(wharf_said("net.listen 10.0.0.1:8000"));
    CHECK_EQ(listen_at("::ffff:10.0.0.1", 8000), JANUS_CAP_LIMIT);
    CHECK_EQ(listen_at("0.0.0.0", 8000), JANUS_CAP_LIMIT);
    CHECK_EQ(listen_at("::", 8000), JANUS_CAP_LIMIT);
    CHECK_EQ(listen_at("127.0.0.1", 0), JANUS_CAP_LIMIT);
    CHECK_EQ(listen_at("unix", 0), JANUS_CAP_LIMIT);
    CHECK(wharf_said("unix:/run/x"));
    return janus_nursery_end(&n, NULL);
}

TEST("a capability for one range reaches what is inside, and janus_explain names the range")
{
    caps_all(listen_around, NULL);
}

static int64_t lack_a_right(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.net = place_range("all", 9)};
    janus_cap     cap = caps_mint(root, JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_CONNECT, &limits);
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.net_cap = cap)), JANUS_OK);
    CHECK_EQ(listen_at("127.0.0.1", 8000), JANUS_CAP_RIGHT);
    CHECK(wharf_said("net.listen 127.0.0.1:8000"));
    struct berth *berth;
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK(wharf_close(berth));
    /* From another handle: no right is needed. */
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, 0, NULL, false, &berth), JANUS_OK);
    CHECK(wharf_close(berth));
    return janus_nursery_end(&n, NULL);
}

TEST("a capability without the right is refused, and a handle from a handle needs none")
{
    caps_all(lack_a_right, NULL);
}

static int64_t bind_inside(void *argument)
{
    const janus_authority *root = caps_root();
    janus_nursery          outer, inner;
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &outer, JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "10.0.0.0/8:80-90", 4))),
             JANUS_OK);
    static const char *const wider[] = {"10.0.0.0/7:80-90",
                                        "10.0.0.0/8:79-90",
                                        "10.0.0.0/8:80-91",
                                        "11.0.0.0/8:80-90",
                                        "all",
                                        "unix"};
    for (size_t i = 0; i < sizeof wider / sizeof wider[0]; i++) {
        janus_cap cap = wharf_net(root, wider[i], 4);
        CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.net_cap = cap)),
                 JANUS_CAP_WIDENS);
    }
    CHECK_EQ(janus_nursery_open(
                 &inner, JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "10.0.0.0/8:80-90", 5))),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(
                 &inner, JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "10.1.0.0/16:80", 3))),
             JANUS_OK);
    CHECK_EQ(caps_context().kinds, 1 << JANUS_CAP_KIND_NET);
    CHECK_EQ(listen_at("10.1.0.1", 80), JANUS_OK);
    CHECK_EQ(listen_at("10.2.0.1", 80), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    return janus_nursery_end(&outer, NULL);
}

TEST("a range bound inside a range lies within it") { caps_all(bind_inside, NULL); }

/* Counting. */

static atomic_int alive, most_alive, refused;

static int64_t open_often(void *argument)
{
    int rounds = (int)rig_few(400);
    (void)argument;
    for (int i = 0; i < rounds; i++) {
        struct berth *berth;
        janus_status  status = wharf_connect(&berth);
        if (status != JANUS_OK) {
            CHECK_EQ(status, JANUS_HANDLE_LIMIT);
            atomic_fetch_add(&refused, 1);
        } else {
            int now = atomic_fetch_add(&alive, 1) + 1;
            for (int seen = atomic_load(&most_alive); now > seen;) {
                if (atomic_compare_exchange_weak(&most_alive, &seen, now)) break;
            }
            CHECK_EQ(janus_yield(), JANUS_OK);
            atomic_fetch_sub(&alive, 1);
            CHECK(wharf_close(berth));
        }
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

enum { OPENERS = 16, LIMIT_IN = 5, LIMIT_OUT = 7 };

static int64_t count_in_sandboxes(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              spawn = caps_spawn(root, 100);
    janus_nursery          outer, inner;
    struct berth          *berths[LIMIT_OUT];
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &outer, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn,
                                               .net_cap = wharf_net(root, "all", LIMIT_OUT))),
             JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner,
                                JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "all", LIMIT_IN))),
             JANUS_OK);
    atomic_store(&most_alive, 0);
    atomic_store(&refused, 0);
    for (int i = 0; i < OPENERS; i++) CHECK_EQ(janus_spawn(&inner, open_often, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK(atomic_load(&most_alive) <= LIMIT_IN);
    CHECK(atomic_load(&refused) > 0);
    for (int i = 0; i < LIMIT_OUT; i++) CHECK_EQ(wharf_connect(&berths[i]), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT);
    CHECK(wharf_said("sockets of nursery"));
    CHECK(wharf_said("7 of 7 used"));
    CHECK_EQ(janus_nursery_open(&inner,
                                JANUS_NURSERY_OPTIONS(.net_cap = wharf_net(root, "all", LIMIT_IN))),
             JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT); /* full further out */
    CHECK(wharf_close(berths[0]));
    CHECK_EQ(wharf_connect(&berths[0]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    for (int i = 0; i < LIMIT_OUT; i++) CHECK(wharf_close(berths[i]));
    return janus_nursery_end(&outer, NULL);
}

TEST("handles count in every nursery around with a capability, exactly")
{
    caps_all(count_in_sandboxes, NULL);
    CHECK_EQ(atomic_load(&wharf_open_now), 0);
}

static int64_t count_implicit(void *argument)
{
    janus_nursery n;
    struct berth *a, *b, *file, *process;
    (void)argument;
    atomic_store(&most_alive, 0);
    atomic_store(&refused, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < OPENERS; i++) CHECK_EQ(janus_spawn(&n, open_often, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(atomic_load(&most_alive) <= 2);
    CHECK(atomic_load(&refused) > 0);
    CHECK_EQ(wharf_connect(&a), JANUS_OK);
    CHECK_EQ(wharf_connect(&b), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_HANDLE_LIMIT);
    CHECK(wharf_said("2 of 2 used"));
    CHECK(wharf_said("janus_scheduler_options.max_handles"));
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_READ, NULL, false, &file), JANUS_OK);
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_PROCESS, JANUS_RIGHT_PROCESS_SPAWN, NULL, false, &process),
             JANUS_OK);
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_PROCESS, JANUS_RIGHT_PROCESS_SPAWN, NULL, false, NULL),
             JANUS_HANDLE_LIMIT);
    CHECK(wharf_said("janus_scheduler_options.max_processes"));
    /* A pool counts for itself, so that others cannot use up its handles. */
    const janus_budget pool = janus_budget_of(1000, 100000, 10, 10, 10);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    struct berth *c;
    CHECK_EQ(wharf_connect(&c), JANUS_OK);
    CHECK(wharf_close(c));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(wharf_close(a) && wharf_close(b) && wharf_close(file) && wharf_close(process));
    return 0;
}

TEST("a scheduler's options limit handles and processes, exactly, outside of pools and in each")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_handles = 2,
                                                   .max_processes = 1),
                           count_implicit, NULL, NULL),
                 JANUS_OK);
    }
}

static int64_t count_without_right(void *argument)
{
    struct berth *a;
    (void)argument;
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, 0, NULL, false, &a), JANUS_OK);
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, 0, NULL, false, NULL), JANUS_HANDLE_LIMIT);
    CHECK(wharf_close(a));
    return 0;
}

TEST("a handle that needs no right counts, even where nothing is implicit")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN,
                                               .yield_interval = 512, .max_handles = 1),
                       count_without_right, NULL, NULL),
             JANUS_OK);
}

/* Memory. */

static int64_t pay_for_handles(void *argument)
{
    struct berth *a, *b;
    uint64_t      before = janus_budget_get_current().memory;
    (void)argument;
    CHECK_EQ(wharf_connect(&a), JANUS_OK);
    CHECK_EQ(janus_budget_get_current().memory, before - WHARF_BYTES);
    const struct jrt_handle_ask much = {.bytes = before};
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, &much, false, NULL),
             JANUS_BUDGET_EXHAUSTED);
    CHECK(wharf_said("memory"));
    const struct jrt_handle_ask rest = {.bytes = before - WHARF_BYTES};
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, &rest, false, &b), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_BUDGET_EXHAUSTED);
    CHECK(wharf_close(a) && wharf_close(b));
    CHECK_EQ(janus_budget_get_current().memory, before);
    return 0;
}

TEST("a task pays for its handles, and a refused one leaves no count behind")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.max_handles = 3), pay_for_handles, NULL, NULL),
             JANUS_OK);
}

/* Revocation. */

static int64_t revoke_while_open(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              cap = wharf_net(root, "all", 4);
    janus_nursery          n;
    struct berth          *berth;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.net_cap = cap)), JANUS_OK);
    CHECK_EQ(wharf_connect(&berth), JANUS_OK);
    CHECK_EQ(janus_cap_revoke(cap, cap), JANUS_OK);
    CHECK_EQ(wharf_connect(NULL), JANUS_CAP_REVOKED);
    CHECK(wharf_said("Handles that exist go on"));
    struct jrt_handle_ask ask = {.name = "a.txt"};
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, 0, &ask, false, NULL), JANUS_CAP_REVOKED);
    CHECK(wharf_said("the capability was revoked: a.txt ("));
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_NET, 0, NULL, false, NULL), JANUS_CAP_REVOKED); /* accept */
    CHECK(berth->open);
    CHECK(wharf_close(berth));
    return janus_nursery_end(&n, NULL);
}

TEST("a revoked capability makes no new handle, and live ones go on")
{
    caps_all(revoke_while_open, NULL);
}

/* Bytes of files. */

static int64_t write_files(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits wide = {.file = {4, 100}}, slim = {.file = {4, 60}};
    janus_nursery          outer, inner;
    struct berth          *a, *b;
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &outer, JANUS_NURSERY_OPTIONS(.file_cap = caps_mint(root, JANUS_CAP_KIND_FILE,
                                                                     JANUS_RIGHTS_ALL, &wide))),
             JANUS_OK);
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_WRITE, NULL, false, &a), JANUS_OK);
    CHECK_EQ(janus_nursery_open(
                 &inner, JANUS_NURSERY_OPTIONS(.file_cap = caps_mint(root, JANUS_CAP_KIND_FILE,
                                                                     JANUS_RIGHTS_ALL, &slim))),
             JANUS_OK);
    CHECK_EQ(wharf_open(JANUS_CAP_KIND_FILE, JANUS_RIGHT_FILE_WRITE, NULL, false, &b), JANUS_OK);
    CHECK_EQ(jrt_handle_take_bytes(&b->toll, 61), JANUS_CAP_LIMIT);
    CHECK_EQ(jrt_handle_take_bytes(&b->toll, 60), JANUS_OK);
    CHECK_EQ(jrt_handle_take_bytes(&b->toll, 1), JANUS_CAP_LIMIT);
    CHECK(wharf_said("bytes written to files"));
    CHECK(wharf_said("60 of 60 used"));
    CHECK_EQ(jrt_handle_take_bytes(&a->toll, 41), JANUS_CAP_LIMIT); /* 60 of the 100 */
    jrt_handle_give_bytes(&b->toll, 10);
    CHECK_EQ(jrt_handle_take_bytes(&a->toll, 50), JANUS_OK);
    CHECK_EQ(jrt_handle_take_bytes(&b->toll, 1), JANUS_CAP_LIMIT); /* full further out */
    CHECK(wharf_close(b));
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK(wharf_close(a));
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    return 0;
}

TEST("bytes written count in every nursery around, and do not come back")
{
    caps_all(write_files, NULL);
}

/* Callbacks, backends, context. */

static void open_in_callback(void *argument)
{
    janus_status *out = argument;
    out[0] = wharf_connect(NULL);
    out[1] = jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_RESOLVE, NULL);
}

static int64_t cancel_a_token(void *argument)
{
    janus_token *token;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, open_in_callback, argument, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(token);
    return 0;
}

TEST("a callback makes no handle")
{
    janus_status got[2] = {JANUS_OK, JANUS_OK};
    CHECK_EQ(janus_run(NULL, cancel_a_token, got, NULL), JANUS_OK);
    CHECK_EQ(got[0], JANUS_STATE);
    CHECK_EQ(got[1], JANUS_STATE);
}

static int64_t see_context(void *argument)
{
    const janus_context_info *mine = argument;
    janus_context_info        info = caps_context();
    for (int kind = 1; kind < JANUS_CAP_KINDS; kind++) {
        CHECK_EQ(info.cap_ids[kind], mine->cap_ids[kind]);
    }
    return info.kinds == mine->kinds ? 0 : -100;
}

static int64_t hold_three_more(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits file = {.file = {4, 100}}, process = {.process = {2}};
    janus_cap              net_cap = wharf_net(root, "all", 4);
    janus_cap              file_cap = caps_mint(root, JANUS_CAP_KIND_FILE, JANUS_RIGHTS_ALL, &file);
    janus_cap     process_cap = caps_mint(root, JANUS_CAP_KIND_PROCESS, JANUS_RIGHTS_ALL, &process);
    janus_cap     spawn = caps_spawn(root, 10);
    janus_nursery outer, n;
    (void)argument;
    caps_open(&outer, spawn);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.net_cap = net_cap, .file_cap = file_cap,
                                                          .process_cap = process_cap)),
             JANUS_OK);
    janus_context_info info = caps_context();
    CHECK_EQ(info.kinds, 1 << JANUS_CAP_KIND_SPAWN | 1 << JANUS_CAP_KIND_NET |
                             1 << JANUS_CAP_KIND_FILE | 1 << JANUS_CAP_KIND_PROCESS);
    CHECK_EQ(info.cap_ids[JANUS_CAP_KIND_NET], caps_id(net_cap));
    CHECK_EQ(info.cap_ids[JANUS_CAP_KIND_FILE], caps_id(file_cap));
    CHECK_EQ(info.cap_ids[JANUS_CAP_KIND_PROCESS], caps_id(process_cap));
    CHECK_EQ(janus_spawn(&n, see_context, &info), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    /* One child with its own. */
    CHECK_EQ(janus_spawn_with(&outer, see_context, &info,
                              JANUS_SPAWN_OPTIONS(.net_cap = net_cap, .file_cap = file_cap,
                                                  .process_cap = process_cap),
                              NULL),
             JANUS_OK);
    return janus_nursery_end(&outer, NULL);
}

TEST("children have the net, file and process capabilities of the nursery or of their spawn")
{
    caps_all(hold_three_more, NULL);
}
