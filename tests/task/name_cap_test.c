/* SPDX-License-Identifier: MIT */
/* What a task needs to register and to find names: rights, and a prefix. */
#include "caps.h"
#include "means/terms.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdio.h>
#include <string.h>

static janus_status may_register(const char *name)
{
    return jrt_terms_name(jrt_task_current(), JANUS_RIGHT_NAME_REGISTER, name);
}

static janus_status may_find(const char *name)
{
    return jrt_terms_name(jrt_task_current(), JANUS_RIGHT_NAME_FIND, name);
}

static janus_scheduler *here(void) { return jrt_worker_self()->scheduler; }

static bool said(const char *what)
{
    char text[512];
    (void)janus_explain(text, sizeof text);
    if (strstr(text, what) != NULL) return true;
    printf("# it says: %s\n", text);
    return false;
}

static janus_cap names(const janus_authority *root, uint32_t rights, const char *prefix)
{
    janus_cap_limits limits = {.words = {0}};
    (void)snprintf(limits.name.prefix, sizeof limits.name.prefix, "%s", prefix);
    return caps_mint(root, JANUS_CAP_KIND_NAME, rights, &limits);
}

static void open_with(janus_nursery *n, janus_cap cap)
{
    CHECK_EQ(janus_nursery_open(n, JANUS_NURSERY_OPTIONS(.name_cap = cap)), JANUS_OK);
}

/* Profiles. */

static int64_t use_every_name(void *argument)
{
    (void)argument;
    CHECK_EQ(may_register("db"), JANUS_OK);
    CHECK_EQ(may_find("anything at all"), JANUS_OK);
    return 0;
}

TEST("in :service and :cluster a task registers and finds every name without a capability")
{
    CHECK_EQ(janus_run(NULL, use_every_name, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER), use_every_name,
                       NULL, NULL),
             JANUS_OK);
}

static int64_t use_no_name(void *argument)
{
    uint64_t before = caps_stats(here()).refused_none;
    (void)argument;
    CHECK_EQ(may_register("db"), JANUS_NO_NAME_CAP);
    CHECK(said("name.register \"db\" (JANUS_NO_NAME_CAP)"));
    CHECK(said("janus_nursery_options.name_cap"));
    CHECK_EQ(may_find("db"), JANUS_NO_NAME_CAP);
    CHECK(said("name.find \"db\""));
    CHECK_EQ(caps_stats(here()).refused_none, before + 2);
    return 0;
}

TEST("in :sovereign a task without a capability uses no name, and learns what it lacks")
{
    caps_all(use_no_name, NULL);
}

TEST("a plain thread needs no right for a name")
{
    CHECK_EQ(jrt_terms_name(NULL, JANUS_RIGHT_NAME_REGISTER, "db"), JANUS_OK);
    CHECK_EQ(jrt_terms_name(NULL, JANUS_RIGHT_NAME_FIND, "db"), JANUS_OK);
}

/* Prefixes. */

static int64_t use_a_prefix(void *argument)
{
    const janus_authority *root = caps_root();
    uint64_t               before = caps_stats(here()).refused_limit;
    janus_nursery          n;
    (void)argument;
    open_with(&n, names(root, JANUS_RIGHTS_ALL, "web."));
    CHECK_EQ(may_register("web.log"), JANUS_OK);
    CHECK_EQ(may_find("web."), JANUS_OK);
    CHECK_EQ(may_register("db.main"), JANUS_CAP_LIMIT);
    CHECK(said("name.register \"db.main\"; allowed: names that begin with \"web.\""));
    CHECK(said("(JANUS_CAP_LIMIT). Use a name that is allowed"));
    CHECK_EQ(may_find("web"), JANUS_CAP_LIMIT);
    CHECK(said("name.find \"web\"; allowed"));
    CHECK_EQ(may_find("x.web.log"), JANUS_CAP_LIMIT);
    CHECK_EQ(may_find("\033[2Jweb."), JANUS_CAP_LIMIT);
    CHECK(said("\"?[2Jweb.\""));
    CHECK_EQ(caps_stats(here()).refused_limit, before + 4);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    open_with(&n, names(root, JANUS_RIGHTS_ALL, ""));
    CHECK_EQ(may_register("db.main"), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("a capability reaches the names with its prefix, and janus_explain names name and prefix")
{
    caps_all(use_a_prefix, NULL);
}

static int64_t explain_long_names(void *argument)
{
    char          name[64], prefix[64];
    janus_nursery n;
    (void)argument;
    memset(name, 'n', sizeof name);
    memset(prefix, 'p', sizeof prefix);
    name[63] = prefix[63] = '\0';
    open_with(&n, names(caps_root(), JANUS_RIGHTS_ALL, prefix));
    CHECK_EQ(may_find(prefix), JANUS_OK);
    CHECK_EQ(may_find(name), JANUS_CAP_LIMIT);
    CHECK(said(name));
    CHECK(said(prefix));
    return janus_nursery_end(&n, NULL);
}

TEST("janus_explain shows a name and a prefix of 63 bytes in full")
{
    caps_sovereign(1, explain_long_names, NULL);
}

static int64_t lack_a_right(void *argument)
{
    const janus_authority *root = caps_root();
    uint64_t               before = caps_stats(here()).refused_right;
    janus_nursery          n;
    (void)argument;
    open_with(&n, names(root, JANUS_RIGHT_NAME_FIND, "web."));
    CHECK_EQ(may_find("web.log"), JANUS_OK);
    CHECK_EQ(may_register("web.log"), JANUS_CAP_RIGHT);
    CHECK(said("name.register \"web.log\" (JANUS_CAP_RIGHT)"));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    open_with(&n, names(root, JANUS_RIGHT_NAME_REGISTER, "web."));
    CHECK_EQ(may_register("web.log"), JANUS_OK);
    CHECK_EQ(may_find("web.log"), JANUS_CAP_RIGHT);
    CHECK_EQ(caps_stats(here()).refused_right, before + 2);
    return janus_nursery_end(&n, NULL);
}

TEST("registering and finding are two rights, and each works alone")
{
    caps_all(lack_a_right, NULL);
}

static int64_t bind_inside(void *argument)
{
    const janus_authority   *root = caps_root();
    static const char *const wider[] = {"", "web", "web/", "db.", "Web."};
    janus_nursery            outer, inner;
    janus_cap                find_only = names(root, JANUS_RIGHT_NAME_FIND, "web.");
    (void)argument;
    open_with(&outer, names(root, JANUS_RIGHTS_ALL, "web."));
    for (size_t i = 0; i < sizeof wider / sizeof wider[0]; i++) {
        janus_cap cap = names(root, JANUS_RIGHTS_ALL, wider[i]);
        CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.name_cap = cap)),
                 JANUS_CAP_WIDENS);
    }
    open_with(&inner, names(root, JANUS_RIGHTS_ALL, "web.a."));
    CHECK_EQ(may_register("web.a.x"), JANUS_OK);
    CHECK_EQ(may_register("web.b.x"), JANUS_CAP_LIMIT);
    CHECK(said("\"web.a.\""));
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    open_with(&inner, find_only);
    CHECK_EQ(janus_nursery_open(
                 &(janus_nursery){0},
                 JANUS_NURSERY_OPTIONS(.name_cap = names(root, JANUS_RIGHTS_ALL, "web."))),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    return janus_nursery_end(&outer, NULL);
}

TEST("a prefix bound inside a prefix begins with it") { caps_all(bind_inside, NULL); }

static int64_t revoke_outside(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              wide = names(root, JANUS_RIGHTS_ALL, "web.");
    janus_nursery          outer, inner;
    (void)argument;
    open_with(&outer, wide);
    open_with(&inner, names(root, JANUS_RIGHTS_ALL, "web.a."));
    CHECK_EQ(may_find("web.a.x"), JANUS_OK);
    CHECK_EQ(janus_cap_revoke(wide, wide), JANUS_OK); /* further out */
    CHECK_EQ(may_find("web.a.x"), JANUS_CAP_REVOKED);
    CHECK(said("Names that are registered stay"));
    CHECK_EQ(may_register("web.a.x"), JANUS_CAP_REVOKED);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(may_register("web.a.x"), JANUS_CAP_REVOKED);
    return janus_nursery_end(&outer, NULL);
}

TEST("a name capability that was revoked, also further out, allows nothing")
{
    caps_all(revoke_outside, NULL);
}

/* Pools and sandboxes. */

static const janus_budget pool = {50000, 1 << 20, 20, 20, 20};

static int64_t squat(void *argument)
{
    janus_nursery inner;
    (void)argument;
    CHECK_EQ(may_find("db"), JANUS_OK);
    CHECK_EQ(may_register("db"), JANUS_NO_NAME_CAP);
    CHECK(said("name_cap"));
    /* Nor in a nursery of its own, with or without a pool. */
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(may_register("db"), JANUS_NO_NAME_CAP);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    const janus_budget part = janus_budget_of(10, 0, 0, 0, 0);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.budget = &part)), JANUS_OK);
    CHECK_EQ(may_register("db"), JANUS_NO_NAME_CAP);
    return janus_nursery_end(&inner, NULL);
}

static int64_t register_own(void *argument)
{
    CHECK_EQ(may_register("plugin.1.log"), JANUS_OK);
    CHECK_EQ(may_register("plugin.2.log"), JANUS_CAP_LIMIT);
    CHECK_EQ(may_register("db"), JANUS_CAP_LIMIT);
    CHECK_EQ(may_find("db"), JANUS_CAP_LIMIT);
    return argument == NULL ? 0 : -100;
}

static int64_t host_pools(void *argument)
{
    const janus_authority *root = caps_root();
    janus_nursery          n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, squat, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(may_register("db"), JANUS_OK); /* outside of the pool */
    janus_cap own = names(root, JANUS_RIGHTS_ALL, "plugin.1.");
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool, .name_cap = own)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, register_own, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    /* One child of the pool alone. */
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, register_own, NULL, JANUS_SPAWN_OPTIONS(.name_cap = own), NULL),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, squat, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("in a pool a task finds names, and registers none without a capability, even in :service")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), host_pools, NULL, NULL),
            JANUS_OK);
    }
}

static int64_t be_shut_out(void *argument)
{
    (void)argument;
    CHECK_EQ(may_find("db"), JANUS_CAP_LIMIT);
    CHECK_EQ(may_register("db"), JANUS_CAP_RIGHT);
    return 0;
}

static int64_t shut_out(void *argument)
{
    janus_nursery n;
    (void)argument;
    open_with(&n, names(caps_root(), JANUS_RIGHT_NAME_FIND, "no such name"));
    CHECK_EQ(janus_spawn(&n, be_shut_out, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("in :service a prefix that no name has shuts children out of names")
{
    CHECK_EQ(janus_run(NULL, shut_out, NULL, NULL), JANUS_OK);
}

static int64_t steal_a_handle(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name_cap = *(janus_cap *)argument)),
             JANUS_CAP_FOREIGN);
    CHECK_EQ(may_register("web.log"), JANUS_NO_NAME_CAP);
    return 0;
}

static int64_t sandbox(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              mine = names(root, JANUS_RIGHTS_ALL, "web.");
    janus_cap              spawn = caps_spawn(root, 3);
    janus_nursery          n;
    (void)argument;
    caps_open(&n, spawn);
    CHECK_EQ(janus_spawn(&n, steal_a_handle, &mine), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&(janus_nursery){0}, JANUS_NURSERY_OPTIONS(.name_cap = spawn)),
             JANUS_CAP_KIND);
    return janus_nursery_end(&n, NULL);
}

TEST("a task in a sandbox cannot use the name capability of its host") { caps_all(sandbox, NULL); }

/* Callbacks, other tasks, blocking calls. */

static void ask_in_callback(void *argument)
{
    janus_status *out = argument;
    out[0] = may_find("db");
    out[1] = jrt_terms_name(NULL, JANUS_RIGHT_NAME_REGISTER, "db");
}

static int64_t cancel_a_token(void *argument)
{
    janus_token *token;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, ask_in_callback, argument, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(token);
    return 0;
}

TEST("a callback uses no name")
{
    janus_status got[2] = {JANUS_OK, JANUS_OK};
    CHECK_EQ(janus_run(NULL, cancel_a_token, got, NULL), JANUS_OK);
    CHECK_EQ(got[0], JANUS_STATE);
    CHECK_EQ(got[1], JANUS_STATE);
}

struct other {
    struct jrt_task *task;
    struct gate      gate;
    atomic_int       ready;
};

static int64_t be_asked_for(void *argument)
{
    struct other *other = argument;
    other->task = jrt_task_current();
    atomic_store(&other->ready, 1);
    return at_gate(&other->gate);
}

static int64_t ask_in_blocking(void *argument)
{
    const struct other *other = argument;
    return jrt_terms_name(other->task, JANUS_RIGHT_NAME_REGISTER, "db");
}

static int64_t ask_for_another(void *argument)
{
    struct other  other = {.ready = 0};
    int64_t       result = JANUS_OK;
    janus_cap     cap = names(caps_root(), JANUS_RIGHTS_ALL, "web.");
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, be_asked_for, &other, JANUS_SPAWN_OPTIONS(.name_cap = cap), NULL),
             JANUS_OK);
    CHECK(rig_wait(&other.ready));
    CHECK_EQ(may_register("web.log"), JANUS_NO_NAME_CAP);
    CHECK_EQ(jrt_terms_name(other.task, JANUS_RIGHT_NAME_REGISTER, "web.log"), JANUS_OK);
    CHECK_EQ(jrt_terms_name(other.task, JANUS_RIGHT_NAME_REGISTER, "db"), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_blocking(ask_in_blocking, &other, &result), JANUS_OK);
    CHECK_EQ(result, JANUS_CAP_LIMIT);
    atomic_store(&other.gate.open, 1);
    return janus_nursery_end(&n, NULL);
}

TEST("the terms of the task that is asked for count, not those of the caller")
{
    CHECK_EQ(janus_run(NULL, ask_for_another, NULL, NULL), JANUS_OK);
}

/* The context, and older programs. */

static int64_t see_name(void *argument)
{
    janus_context_info info = caps_context();
    CHECK_EQ(info.kinds, 1 << JANUS_CAP_KIND_SPAWN | 1 << JANUS_CAP_KIND_NAME);
    CHECK_EQ(info.cap_ids[JANUS_CAP_KIND_NAME], caps_id(*(janus_cap *)argument));
    for (int kind = JANUS_CAP_KIND_NAME + 1; kind < JANUS_CAP_KINDS; kind++) {
        CHECK_EQ(info.cap_ids[kind], 0);
    }
    return 0;
}

static int64_t hold_a_name(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              cap = names(root, JANUS_RIGHTS_ALL, "web.");
    janus_nursery          n, inner;
    (void)argument;
    caps_open(&n, caps_spawn(root, 4));
    open_with(&inner, cap);
    CHECK_EQ(janus_spawn(&inner, see_name, &cap), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, see_name, &cap, JANUS_SPAWN_OPTIONS(.name_cap = cap), NULL),
             JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("children have the name capability of the nursery or of their spawn")
{
    caps_all(hold_a_name, NULL);
}

static int64_t use_older_options(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              cap = names(root, JANUS_RIGHTS_ALL, "web.");
    janus_nursery_options  options = {.struct_bytes = offsetof(janus_nursery_options, name_cap),
                                      .name_cap = cap};
    janus_spawn_options    spawn = {.struct_bytes = offsetof(janus_spawn_options, name_cap),
                                    .name_cap = cap};
    janus_nursery          n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, &options), JANUS_OK); /* shorter: the field is not read */
    CHECK_EQ(caps_context().cap_ids[JANUS_CAP_KIND_NAME], 0);
    CHECK_EQ(janus_spawn_with(&n, use_every_name, NULL, &spawn, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("a program whose options do not have name_cap yet opens and spawns as before")
{
    CHECK_EQ(janus_run(NULL, use_older_options, NULL, NULL), JANUS_OK);
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

/* Whether some line contains both. */
static bool has_line(const char *one, const char *two)
{
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t bytes = (size_t)(end - line);
        if (memmem(line, bytes, one, strlen(one)) == NULL) continue;
        if (memmem(line, bytes, two, strlen(two)) != NULL) return true;
    }
    return false;
}

static int64_t be_recorded(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(may_find("nothing"), JANUS_NO_NAME_CAP);
    open_with(&n, names(caps_root(), JANUS_RIGHTS_ALL, "web."));
    CHECK_EQ(may_register("web.log"), JANUS_OK);
    CHECK_EQ(may_register("db.main"), JANUS_CAP_LIMIT);
    return janus_nursery_end(&n, NULL);
}

TEST("the audit log has the use of a name capability, and each denial with the name")
{
    janus_audit *audit = NULL;
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = keep), &audit), JANUS_OK);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.audit = audit, .yield_interval = 512,
                                               .profile = JANUS_PROFILE_SOVEREIGN),
                       be_recorded, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK(has_line("\"event\":\"creation\"", "\"kind\":\"name\""));
    CHECK(has_line("\"event\":\"use\"", "name.register"));
    CHECK(has_line("\"event\":\"denial\"", "\"name\":\"nothing\""));
    CHECK(has_line("\"wanted\":\"name.find\"", "\"name\":\"nothing\""));
    CHECK(has_line("\"wanted\":\"name.register\"", "\"name\":\"db.main\""));
}
