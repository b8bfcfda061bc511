/* SPDX-License-Identifier: MIT */
/* Tasks, nurseries, calls under way and defers. */
#include "host/record.h"

#include <stdlib.h>
#include <string.h>

/* A call under way, with its value behind it. It is memory of the task that began it. */
struct jl_call {
    struct jl_call        *next;
    struct jl_nursery     *nursery;
    const struct jl_shape *shape;
    janus_task_id          task;
    int64_t                error;
    bool                   is_over;   /* it was awaited */
    bool                   is_packed; /* the value is there, and belongs to nobody */
    uint64_t               pad;
};

_Static_assert(sizeof(struct jl_scope) <= sizeof((struct jl_nursery *)0)->opaque,
               "struct jl_nursery has room for its scope");
_Static_assert(sizeof(struct jl_call) % 16 == 8 || sizeof(struct jl_call) % 16 == 0, "aligned");
enum { CALL_BYTES = (sizeof(struct jl_call) + 15) / 16 * 16 };

struct jl_scope *jl_scope_of(struct jl_nursery *nursery)
{
    return (struct jl_scope *)(void *)nursery->opaque;
}

struct jl_nursery *jl_nursery_of(struct jl_scope *scope)
{
    return (struct jl_nursery *)(void *)((char *)scope - offsetof(struct jl_nursery, opaque));
}

/* Places of spawns, kept for ever: dumps show them, and the library borrows them. */
const janus_site *jl_site(struct jl_world *world, uint64_t place)
{
    uint64_t hash = place * UINT64_C(0x9E3779B97F4A7C15) >> 40;
    int      line = (int)(place >> 32);
    for (uint64_t i = 0; i < 8; i++) {
        _Atomic(janus_site *) *slot = &world->sites[(hash + i) % JL_SITES];
        janus_site            *site = atomic_load_explicit(slot, memory_order_acquire);
        if (!site) {
            janus_site *made = malloc(sizeof *made);
            if (!made) return NULL;
            *made = (janus_site){world->program->source, line};
            if (atomic_compare_exchange_strong(slot, &site, made)) return made;
            free(made);
        }
        if (site->line == line) return site;
    }
    return NULL;
}

/* The first child that fails says where its error began. */
static void tell_parent(struct jl_scope *scope, const struct jl_task *task, int64_t error)
{
    if (!scope) return;
    while (atomic_flag_test_and_set_explicit(&scope->lock, memory_order_acquire)) {
    }
    if (scope->origin.error == 0) {
        scope->origin = task->origin;
        scope->origin.error = error;
    }
    atomic_flag_clear_explicit(&scope->lock, memory_order_release);
}

static struct jl_call *call_of_value(void *value)
{
    return (struct jl_call *)(void *)((char *)value - CALL_BYTES);
}

static int64_t task_begin(void *arguments)
{
    struct jl_record *record = jl_record_of(arguments);
    struct jl_scope  *scope = record->scope;
    struct jl_task    task;
    task.world = record->world;
    task.parent = record->parent;
    task.name = record->name;
    task.place = record->place;
    task.scope = NULL;
    task.defers = NULL;
    task.slots = NULL;
    task.drains = NULL;
    task.home = record;
    task.origin.error = 0;
    struct jl_task *before = jl_become(&task);
    int64_t         status = jl_guard_task(&task, record->entry, arguments);
    if (status < 0) {
        jl_note_origin(&task, status, task.place, false);
        tell_parent(scope, &task, status);
    }
    if (status >= 0 && record->value) call_of_value(record->value)->is_packed = true;
    (void)jl_become(before);
    if (record->owned) jl_records_free(record);
    jl_record_back(task.parent->home, record);
    return status;
}

static struct jl_record *prepare(struct jl_nursery *nursery, janus_entry *entry, void *arguments,
                                 const char *name, uint64_t place)
{
    struct jl_record *record = jl_record_of(arguments);
    struct jl_task   *self = jl_self();
    record->entry = entry;
    record->world = self->world;
    record->parent = self;
    record->scope = jl_scope_of(nursery);
    record->name = name;
    record->place = place;
    return record;
}

/* The short way takes a tenth of the time of a spawn with options. Dumps show the place of such a
 * task, and our own messages its name. */
static janus_status start_short(struct jl_nursery *nursery, struct jl_record *record, bool wait)
{
    const janus_site *site = jl_site(record->world, record->place);
    janus_status      status = janus_spawn_at(&nursery->nursery, task_begin, record + 1, site);
    if (status != JANUS_TASK_LIMIT || !wait) return status;
    return janus_spawn_wait_at(&nursery->nursery, task_begin, record + 1, site);
}

static janus_status start(struct jl_nursery *nursery, struct jl_record *record,
                          const janus_cap *cap, bool wait, janus_task_id *out)
{
    janus_status status;
    if (!cap && !out) {
        status = start_short(nursery, record, wait);
    } else {
        janus_spawn_options options = {
            .struct_bytes = sizeof options,
            .site = jl_site(record->world, record->place),
            .when_full = wait ? JANUS_WHEN_FULL_WAIT : JANUS_WHEN_FULL_REFUSE,
        };
        if (cap) options.spawn_cap = jl_cap_here(*cap);
        status = janus_spawn_with(&nursery->nursery, task_begin, record + 1, &options, out);
    }
    if (status != JANUS_OK) jl_record_back(record->parent->home, record);
    return status;
}

/* A spawn that cannot report its refusal. True: the program has cancelled the nursery itself, and
 * the child counts as cancelled. */
static bool refused(struct jl_nursery *nursery, janus_status status, uint64_t place)
{
    struct jl_task *self = jl_self();
    if (status == JANUS_NO_SPAWN_CAP && self->world->program->profile == JL_PROFILE_SERVICE) {
        static const char text[] = "this nursery has no capability to start tasks";
        jl_panic((struct jl_text){text, sizeof text - 1}, place);
    }
    if (jl_scope_of(nursery)->own_cancel) return true;
    jl_end_task(status, place);
}

int64_t jl_spawn(struct jl_nursery *nursery, janus_entry *entry, void *record, const char *name,
                 uint64_t place, const janus_cap *cap, bool wait)
{
    struct jl_record *made = prepare(nursery, entry, record, name, place);
    janus_status      status = start(nursery, made, cap, wait, NULL);
    if (status != JANUS_OK && wait) (void)refused(nursery, status, place);
    return wait ? 0 : status;
}

struct jl_call *jl_async(struct jl_nursery *nursery, janus_entry *entry, void *record,
                         size_t value_bytes, const struct jl_shape *shape, const char *name,
                         uint64_t place)
{
    struct jl_scope  *scope = jl_scope_of(nursery);
    struct jl_record *made = prepare(nursery, entry, record, name, place);
    struct jl_call   *call = jl_task_memory(CALL_BYTES + value_bytes);
    memset(call, 0, CALL_BYTES + value_bytes);
    call->nursery = nursery;
    call->shape = shape;
    made->value = (char *)call + CALL_BYTES;
    janus_status status = start(nursery, made, NULL, true, &call->task);
    if (status != JANUS_OK) {
        (void)refused(nursery, status, place);
        call->is_over = true;
        call->error = JANUS_CANCELLED;
    }
    call->next = scope->calls;
    scope->calls = call;
    return call;
}

void *jl_call_value_of(void *record) { return jl_record_of(record)->value; }

static void take_origin(struct jl_scope *scope, int64_t error)
{
    struct jl_task *self = jl_self();
    while (atomic_flag_test_and_set_explicit(&scope->lock, memory_order_acquire)) {
    }
    if (scope->origin.error == error) self->origin = scope->origin;
    atomic_flag_clear_explicit(&scope->lock, memory_order_release);
}

int64_t jl_await(struct jl_call *call, const void **value)
{
    *value = (char *)call + CALL_BYTES;
    if (call->is_over) return call->error;
    int64_t      result = 0;
    janus_status status = janus_join(&call->nursery->nursery, call->task, &result);
    if (status == JANUS_CANCELLED) return status; /* this task is: it can be awaited again */
    call->is_over = true;
    if (status == JANUS_OK) {
        call->is_packed = false;
        jl_unpack((char *)call + CALL_BYTES, call->shape);
        return 0;
    }
    call->error = status;
    if (status == JANUS_CHILD_FAILED && result != INT64_MIN) call->error = result;
    if (status == JANUS_CHILD_CANCELLED) call->error = JANUS_CANCELLED;
    take_origin(jl_scope_of(call->nursery), call->error);
    return call->error;
}

void jl_nursery_begin(struct jl_nursery *nursery, const janus_cap *cap, bool scope, uint64_t place)
{
    struct jl_task  *self = jl_self();
    struct jl_scope *made = jl_scope_of(nursery);
    janus_status     status;
    if (cap) {
        status = janus_nursery_open(
            &nursery->nursery,
            JANUS_NURSERY_OPTIONS(.spawn_cap = jl_cap_here(*cap), .scope = scope));
    } else {
        status = janus_nursery_open(&nursery->nursery, NULL);
    }
    if (status != JANUS_OK) jl_end_task(status, place);
    made->outer = self->scope;
    made->defers = self->defers;
    made->calls = NULL;
    made->supervisors = NULL;
    made->place = place;
    atomic_flag_clear_explicit(&made->lock, memory_order_relaxed);
    made->own_cancel = false;
    made->origin.error = 0;
    self->scope = made;
}

static int64_t error_of(const struct jl_scope *scope, janus_status status,
                        const janus_nursery_result *result)
{
    if (status == JANUS_CHILD_FAILED) {
        bool panicked = result->panic.kind != JANUS_PANIC_KIND_NONE;
        return panicked || result->error >= 0 ? JANUS_CHILD_FAILED : result->error;
    }
    if (status == JANUS_CANCELLED) {
        if (scope->own_cancel) return 0;
        return result->reason == JANUS_CANCEL_REASON_DEADLINE ? JANUS_DEADLINE : JANUS_CANCELLED;
    }
    return status;
}

int64_t jl_nursery_end(struct jl_nursery *nursery)
{
    struct jl_task      *self = jl_self();
    struct jl_scope     *scope = jl_scope_of(nursery);
    janus_nursery_result result;
    int64_t              supervised = 0;
    if (scope->supervisors) {
        /* Tasks may still send to the actors, so the tasks end first (C38). */
        (void)!janus_nursery_await_with(&nursery->nursery, &result);
        supervised = jl_supervisors_end(scope);
    }
    janus_status status = janus_nursery_end(&nursery->nursery, &result);
    self->scope = scope->outer;
    for (struct jl_call *next, *call = scope->calls; call; call = next) {
        next = call->next;
        if (call->is_packed) jl_unpack_drop((char *)call + CALL_BYTES, call->shape);
        janus_free(call);
    }
    if (status == JANUS_OK) return supervised;
    int64_t error = error_of(scope, status, &result);
    if (error != 0) take_origin(scope, error);
    return error;
}

void jl_nursery_cancel(struct jl_nursery *nursery)
{
    jl_scope_of(nursery)->own_cancel = true;
    (void)janus_nursery_cancel(&nursery->nursery);
}

void jl_yield(void)
{
    if (jl_core_task || janus_yield() != JANUS_CANCELLED) return;
    /* In a nursery that the task itself has cancelled, it goes on to the end. */
    for (const struct jl_scope *scope = jl_self()->scope; scope; scope = scope->outer) {
        if (scope->own_cancel) return;
    }
    jl_end_task(JANUS_CANCELLED, 0);
}

static void call_defer(struct jl_defer defer)
{
    if (defer.function_of)
        defer.function_of(defer.context, defer.environment);
    else
        defer.function(defer.environment);
}

/* The task was broken off: its frames are gone, and the library runs its defers. */
static void run_defer(void *argument)
{
    struct jl_defer *defer = argument;
    struct jl_record home = {.world = defer->world};
    struct jl_task   task = {.world = defer->world, .name = "defer", .home = &home};
    struct jl_task  *before = jl_become(&task);
    if (_setjmp(task.jump) == 0) call_defer(*defer);
    (void)jl_become(before);
    jl_records_free(&home);
    free(defer);
}

static void push_defer(struct jl_defer pushed)
{
    struct jl_task  *self = jl_self();
    struct jl_defer *defer = malloc(sizeof *defer);
    janus_status     status = defer ? JANUS_OK : JANUS_NO_MEMORY;
    if (status == JANUS_OK && !jl_core_task) status = janus_defer(run_defer, defer);
    if (status != JANUS_OK) {
        free(defer);
        jl_end_task(status, 0);
    }
    *defer = pushed;
    defer->next = self->defers;
    defer->world = self->world;
    self->defers = defer;
}

void jl_defer_push(void (*function)(void *environment), void *environment)
{
    push_defer((struct jl_defer){.function = function, .environment = environment});
}

void jl_defer_push_of(void (*function)(const void *context, void *environment), const void *context,
                      void *environment)
{
    push_defer(
        (struct jl_defer){.function_of = function, .context = context, .environment = environment});
}

void jl_defer_pop(uint32_t count)
{
    struct jl_task *self = jl_self();
    for (; count > 0 && self->defers; count--) {
        struct jl_defer *defer = self->defers, copy = *defer;
        self->defers = defer->next;
        if (!jl_core_task) (void)!janus_undefer(run_defer, defer);
        free(defer);
        call_defer(copy);
    }
}
