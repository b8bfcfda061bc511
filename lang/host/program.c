/* SPDX-License-Identifier: MIT */
/* A program from its begin to its exit status. */
#include "host/prelude.h"
#include "host/record.h"
#include "type/error_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_ERROR = 1, EXIT_EXHAUSTED = 3, EXIT_DEADLOCK = 4 };

/* More than any program spends, with room for sums. */
static const uint64_t plenty = UINT64_C(1) << 56;

struct run {
    const struct jl_program *program;
    struct jl_world         *world;
    janus_budget             pool;
    bool                     has_pool, tells_stats;
    janus_budget             spent;
    int64_t                  error, value;
    struct jl_origin         origin;
    struct jl_record         home;     /* of main; main may be broken off and leave records in it */
    char                     why[512]; /* of an exhausted program */
};

static const struct {
    int         status;
    const char *name;
} status_names[] = {
#define ROW(name, status) {status, #name},
    JL_ERROR_NAMES(ROW)
#undef ROW
};

const char *jl_error_name(const struct jl_program *program, int64_t error)
{
    int64_t index = -100 - error;
    if (index >= 0 && program && index < program->error_count) return program->error_names[index];
    for (size_t i = 0; i < sizeof status_names / sizeof status_names[0]; i++) {
        if (status_names[i].status == error) return status_names[i].name;
    }
    return "Unknown";
}

static int64_t call_main(void *argument)
{
    struct run *run = argument;
    return run->program->main(run->program->context, &run->value);
}

static int64_t main_task(void *argument)
{
    struct run *run = argument;
    jl_records_free(&run->home);
    run->home = (struct jl_record){.world = run->world};
    struct jl_task  task = {.world = run->world, .name = "main", .home = &run->home};
    struct jl_task *before = jl_become(&task);
    run->error = jl_guard_task(&task, call_main, run);
    if (run->error < 0) jl_note_origin(&task, run->error, 0, false);
    run->origin = task.origin;
    (void)jl_become(before);
    return run->error < 0 ? run->error : 0;
}

static void take_stats(struct run *run, janus_nursery *nursery)
{
    janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
    if (run->has_pool && janus_nursery_pool_inspect(nursery, &info) == JANUS_OK) {
        run->spent = info.spent;
        run->spent.ops -= run->spent.ops > 0; /* main's own spawn */
    }
}

static void explain(struct run *run, janus_nursery *nursery, const janus_nursery_result *result)
{
    janus_failure first;
    if (janus_nursery_failures(nursery, &first, 1) == 0) return;
    run->error = result->panic.kind != JANUS_PANIC_KIND_NONE ? JANUS_CHILD_FAILED : first.error;
    if (first.error == JANUS_BUDGET_EXHAUSTED) {
        (void)janus_failure_text(nursery, &first, run->why, sizeof run->why);
    }
}

/* Main is a child: of a pool, or of what the root of :sovereign gives it. */
static int64_t main_in_nursery(struct run *run, const janus_nursery_options *options)
{
    janus_nursery        nursery;
    janus_nursery_result result;
    const janus_site     begin = {run->program->source, 1};
    janus_status         status = janus_nursery_open(&nursery, options);
    if (status != JANUS_OK) return status;
    /* In a pool main begins with a small share, and draws more. The rest is for others. */
    const janus_budget share = janus_budget_default();
    status = janus_spawn_with(&nursery, main_task, run,
                              JANUS_SPAWN_OPTIONS(.name = "main", .site = &begin,
                                                  .budget = run->has_pool ? &share : NULL),
                              NULL);
    janus_status ended = janus_nursery_await_with(&nursery, &result);
    take_stats(run, &nursery);
    if (ended == JANUS_CHILD_FAILED) explain(run, &nursery, &result);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    return status;
}

/* The root gives main the right to start tasks and to make channels. What main's functions may do
 * with it the checker decides by their capabilities. */
static janus_status mint_all(const janus_authority *authority, janus_cap_kind kind, janus_cap *out)
{
    janus_cap_limits limits;
    memset(&limits, 0, sizeof limits);
    if (kind == JANUS_CAP_KIND_SPAWN) {
        limits.spawn.max_tasks = plenty;
        limits.spawn.task_budget = janus_budget_of(plenty, plenty, plenty, plenty, plenty);
    } else if (kind == JANUS_CAP_KIND_BUDGET) {
        limits.budget = (janus_budget_limits){plenty, plenty, plenty, plenty, plenty};
    } else {
        limits.channel = (janus_channel_limits){plenty, plenty};
    }
    return janus_cap_mint(authority, 0,
                          JANUS_CAP_GRANT(.kind = kind, .rights = JANUS_RIGHTS_ALL,
                                          .limits = &limits,
                                          .delegation_depth = JANUS_DELEGATION_UNLIMITED),
                          out);
}

static int64_t root_task(void *argument)
{
    struct run      *run = argument;
    janus_authority *authority = NULL;
    janus_status     status = janus_authority_take(NULL, &authority);
    run->error = 0; /* an exploration runs it again and again */
    run->value = 0;
    run->origin.error = 0;
    run->why[0] = '\0';
    atomic_store(&run->world->panics, 0);
    run->world->authority = status == JANUS_OK ? authority : NULL;
    run->world->scheduler = janus_scheduler_current();
    bool sovereign = run->program->profile == JL_PROFILE_SOVEREIGN;
    if (!sovereign && !run->has_pool) return main_task(run);
    janus_nursery_options options = {.struct_bytes = sizeof options, .name = "program"};
    if (run->has_pool) {
        options.budget = &run->pool;
        options.exhaustion = JANUS_EXHAUSTION_END;
    }
    status = JANUS_OK;
    if (sovereign) status = mint_all(authority, JANUS_CAP_KIND_SPAWN, &options.spawn_cap);
    if (sovereign && status == JANUS_OK) {
        status = mint_all(authority, JANUS_CAP_KIND_CHANNEL, &options.channel_cap);
    }
    if (sovereign && run->has_pool && status == JANUS_OK) {
        status = mint_all(authority, JANUS_CAP_KIND_BUDGET, &options.budget_cap);
    }
    if (status == JANUS_OK) status = (janus_status)main_in_nursery(run, &options);
    if (status != JANUS_OK && run->error == 0) run->error = status;
    return run->error < 0 ? run->error : 0;
}

static _Thread_local const janus_budget *given_budget;

void jl_set_budget(const janus_budget *budget) { given_budget = budget; }

static uint64_t number_in(const char *text, const char *name, uint64_t otherwise)
{
    const char *at = text ? strstr(text, name) : NULL;
    return at ? strtoull(at + strlen(name), NULL, 10) : otherwise;
}

static void read_environment(struct run *run, janus_scheduler_options *options)
{
    const char *budget = secure_getenv("JANUS_BUDGET"),
               *stats = secure_getenv("JANUSRT_LANG_REPORT");
    options->worker_count = (uint32_t)number_in(secure_getenv("JANUS_WORKERS"), "", 0);
    run->tells_stats = stats && strcmp(stats, "1") == 0;
    run->world->reports = run->tells_stats;
    if (!budget && !given_budget && !run->tells_stats) return;
    run->has_pool = true;
    if (given_budget) {
        run->pool = *given_budget;
        run->pool.ops += run->pool.ops < plenty;
        run->pool.spawn_count += run->pool.spawn_count < plenty;
        return;
    }
    /* One operation and one spawn more: the pool pays for main's own. */
    run->pool = janus_budget_of(
        number_in(budget, "ops=", plenty) + 1, number_in(budget, "memory=", plenty),
        number_in(budget, "spawn_count=", plenty) + 1, number_in(budget, "channel_ops=", plenty),
        number_in(budget, "syscalls=", plenty));
}

static void tell_error(const struct run *run)
{
    if (run->error == JANUS_CHILD_FAILED && atomic_load(&run->world->panics) > 0) return;
    const struct jl_origin *origin = &run->origin;
    uint64_t                place = origin->error == run->error ? origin->place : 0;
    fprintf(stderr, "janusrt: %s:", run->program->source);
    if (place != 0) fprintf(stderr, "%" PRIu64 ":%" PRIu64 ":", place >> 32, place & UINT32_MAX);
    fprintf(stderr, " error.%s: main ended with it", jl_error_name(run->program, run->error));
    if (run->error > -100) {
        fprintf(stderr, " (%s)", janus_status_text((janus_status)run->error));
    }
    fputc('\n', stderr);
    if (origin->path[0] && strcmp(origin->path, "main") != 0) {
        fprintf(stderr, "    it began in task %s\n", origin->path);
    }
}

/* The library's sentence names the task by its id, and calls of C. This one is for Janus. */
static void tell_exhausted(const struct run *run, const janus_run_result *result)
{
    static const char before[] = "gives more: ", after[] = " (JANUS_";
    const char       *text = result->failures > 0 ? result->first.text : run->why;
    const char       *begin = strstr(text, before), *end = begin ? strstr(begin, after) : NULL;
    bool              is_main = result->failures == 0 || strcmp(result->first.name, "main") == 0;
    fprintf(stderr, "janusrt: %s: ", run->program->source);
    if (is_main) {
        fputs("main has used up its budget", stderr);
    } else {
        fprintf(stderr, "the task started in line %d has used up its budget", result->first.line);
    }
    if (end) {
        begin += sizeof before - 1;
        fprintf(stderr, ": %.*s", (int)(end - begin), begin);
    }
    fputc('\n', stderr);
}

static int outcome(struct run *run, janus_status status, const janus_run_result *result)
{
    if (result->deadlock) {
        fprintf(stderr, "janusrt: %s: deadlock: every task waits, and no event can come\n",
                run->program->source);
        return EXIT_DEADLOCK;
    }
    if (run->error == 0 && status != JANUS_OK) run->error = status;
    if (run->error == 0) return (int)(run->value & 255);
    if (run->error == JANUS_BUDGET_EXHAUSTED) {
        tell_exhausted(run, result);
        return EXIT_EXHAUSTED;
    }
    tell_error(run);
    return EXIT_ERROR;
}

static void tell_stats(const struct run *run, uint64_t hash)
{
    fprintf(stderr, "janusrt: ops %" PRIu64 " memory %" PRIu64 " trace %016" PRIx64 "\n",
            run->spent.ops, (uint64_t)atomic_load(&run->world->allocated), hash);
}

static int run_scheduled(struct run *run)
{
    static const janus_profile profiles[] = {JANUS_PROFILE_CORE, JANUS_PROFILE_SERVICE,
                                             JANUS_PROFILE_CLUSTER, JANUS_PROFILE_SOVEREIGN};
    static const janus_budget  all = {UINT64_C(1) << 56, UINT64_C(1) << 56, UINT64_C(1) << 56,
                                      UINT64_C(1) << 56, UINT64_C(1) << 56};
    janus_scheduler_options    options = {
           .struct_bytes = sizeof options,
           .profile = profiles[run->program->profile & 3],
           .yield_interval = run->program->interval ? run->program->interval : 1024,
           .preempt_checks = true, /* as in programs with counted code: the same order in all */
           .on_panic = jl_on_panic,
           .on_panic_argument = run->world,
    };
    janus_run_result result = JANUS_RUN_RESULT();
    janus_trace     *trace = NULL;
    uint64_t         hash = 0;
    read_environment(run, &options);
    if (run->has_pool) options.max_budget = &all;
    if (run->tells_stats && secure_getenv("JANUSRT_SEED") &&
        janus_trace_create(JANUS_TRACE_OPTIONS(.ring_events = 64), &trace) == JANUS_OK) {
        options.trace = trace;
    }
    janus_status status = janus_run_with(&options, root_task, run, &result);
    int          code = outcome(run, status, &result);
    if (trace) {
        janus_trace_info info = JANUS_TRACE_INFO();
        if (janus_trace_inspect(trace, &info) == JANUS_OK) hash = info.hash;
        (void)janus_trace_destroy(trace);
    }
    (void)fflush(stdout);
    if (run->tells_stats) tell_stats(run, hash);
    return code;
}

/* :core has no scheduler: main runs on this thread. */
static int run_core(struct run *run)
{
    struct jl_task task = {.world = run->world, .name = "main"};
    jl_core_task = &task;
    run->error = jl_guard_task(&task, call_main, run);
    if (run->error < 0) jl_note_origin(&task, run->error, 0, false);
    run->origin = task.origin;
    jl_core_task = NULL;
    jl_blocks_free(run->world);
    if (run->error == 0) return (int)(run->value & 255);
    tell_error(run);
    return EXIT_ERROR;
}

int jl_run_program(const struct jl_program *program)
{
    struct jl_world *world = calloc(1, sizeof *world);
    if (!world) {
        fprintf(stderr, "janusrt: there is no memory to begin with\n");
        return EXIT_ERROR;
    }
    const char *slash = strrchr(program->source, '/');
    world->program = program;
    world->source = slash ? slash + 1 : program->source;
    struct run run = {.program = program, .world = world};
    int        code = program->profile == JL_PROFILE_CORE ? run_core(&run) : run_scheduled(&run);
    (void)fflush(stdout);
    jl_records_free(&run.home);
    jl_held_free(world);
    jl_supervisors_free(world);
    for (uint32_t i = 0; i < JL_SITES; i++) free(atomic_load(&world->sites[i]));
    free(world);
    return code;
}
