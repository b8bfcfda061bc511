/* SPDX-License-Identifier: MIT */
/* Nurseries, tasks, defers, channels, actors and interfaces. */
#include "run/slow.h"

#include <string.h>

/* Slots are aligned to 8, a nursery to 16: it has a word more. */
static struct jl_nursery *nursery_at(union slot *r, uint32_t slot)
{
    uintptr_t at = ((uintptr_t)(r + slot) + 15) & ~(uintptr_t)15;
    return (struct jl_nursery *)at;
}
_Static_assert(_Alignof(struct jl_nursery) <= 16, "a nursery's slots are aligned to 16");

/* a: nursery; b: CapSpawn; c: whether there is one; d: scope. */
void jl_slow_nursery_begin(struct machine *m, union slot *r, const struct slow *s)
{
    janus_cap cap;
    (void)m;
    if (s->c) memcpy(&cap, r + s->b, sizeof cap);
    jl_nursery_begin(nursery_at(r, s->a), s->c ? &cap : NULL, s->d != 0, s->place);
}

/* a: result; b: nursery. */
void jl_slow_nursery_end(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    int64_t error = jl_nursery_end(nursery_at(r, s->b));
    r[s->a].i = error < 0 ? error : 0;
}

void jl_slow_nursery_cancel(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    jl_nursery_cancel(nursery_at(r, s->b));
}

/* The arguments lie in the record as in the callee's frame. */
static struct task_record *record_of(union slot *r, const struct slow *s)
{
    const struct fn    *fn = s->p;
    struct task_record *record =
        jl_record(nursery_at(r, s->b), sizeof *record + (size_t)s->d * sizeof(union slot));
    record->fn = fn;
    for (uint32_t i = 0; i < fn->param_count; i++)
        memcpy(record->slots + fn->params[i].slot, r + s->slots[i],
               8 * (size_t)fn->params[i].words);
    return record;
}

/* a: result of `try`; b: nursery; c: CapSpawn; d: words of arguments; p: function; slots. */
void jl_slow_spawn(struct machine *m, union slot *r, const struct slow *s)
{
    const struct fn *fn = s->p;
    janus_cap        cap;
    bool             with = (s->flags & QT_F_WITH_CAP) != 0, try = (s->flags & QT_F_TRY) != 0;
    (void)m;
    struct task_record *record = record_of(r, s);
    if (with) memcpy(&cap, r + s->c, sizeof cap);
    int64_t error = jl_spawn(nursery_at(r, s->b), jl_run_task, record, fn->name, s->place,
                             with ? &cap : NULL, !try);
    if (try) r[s->a].i = error < 0 ? error : 0;
}

void jl_slow_async(struct machine *m, union slot *r, const struct slow *s)
{
    const struct fn *fn = s->p;
    (void)m;
    struct task_record *record = record_of(r, s);
    r[s->a].p = jl_async(nursery_at(r, s->b), jl_run_async, record, fn->result.bytes,
                         fn->result_shape, fn->name, s->place);
}

/* a: result; b: task; field: the value. */
void jl_slow_await(struct machine *m, union slot *r, const struct slow *s)
{
    const void *value = NULL;
    (void)m;
    jl_slow_need(s, r[s->b].p, "a task was awaited before it was started");
    int64_t error = jl_await(r[s->b].p, &value);
    if (error >= 0) jl_run_load(r + s->a + 1, value, &s->field);
    r[s->a].i = error < 0 ? error : 0;
}

void jl_slow_yield(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    (void)r;
    (void)s;
    jl_yield();
}

/* d: bytes of the environment: the state of an actor, captures. p: function; slots. */
void jl_slow_defer_push(struct machine *m, union slot *r, const struct slow *s)
{
    const struct fn *fn = s->p;
    char            *environment = NULL;
    if (s->d > 0) environment = jl_environment(s->d);
    if (fn->in_actor && environment) memcpy(environment, &m->state, sizeof m->state);
    jl_slow_fill(environment, r, s->slots, fn->deferred, s->count);
    jl_defer_push_of(jl_run_defer, fn, environment);
}

void jl_slow_defer_pop(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    (void)r;
    jl_defer_pop(s->a);
}

/* a: channel; b: capacity; c: CapChannel; d: whether there is one; field: an element. */
void jl_slow_channel_new(struct machine *m, union slot *r, const struct slow *s)
{
    janus_cap cap;
    (void)m;
    if (s->d) memcpy(&cap, r + s->c, sizeof cap);
    janus_channel channel =
        jl_channel_new(s->field.bytes, s->p, r[s->b].i, s->d ? &cap : NULL, s->place);
    memcpy(r + s->a, &channel, sizeof channel);
}

static janus_channel channel_at(const union slot *r)
{
    janus_channel channel;
    memcpy(&channel, r, sizeof channel);
    return channel;
}

/* a: result; b: channel; c: value; p: its shape. */
void jl_slow_channel_send(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    int64_t error = jl_channel_send(channel_at(r + s->b), r + s->c, s->p);
    r[s->a].i = error < 0 ? error : 0;
}

void jl_slow_channel_recv(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    memset(r + s->a, 0, 8 + 8 * (size_t)s->field.words);
    int64_t error = jl_channel_recv(channel_at(r + s->b), r + s->a + 1, s->p);
    jl_run_load(r + s->a + 1, r + s->a + 1, &s->field);
    r[s->a].i = error < 0 ? error : 0;
}

void jl_slow_channel_close(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    jl_channel_close(channel_at(r + s->b));
}

void jl_slow_supervisor_new(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    r[s->a].p = jl_supervisor_new();
}

static janus_actor actor_at(const union slot *r)
{
    janus_actor actor;
    memcpy(&actor, r, sizeof actor);
    return actor;
}

/* a: result; b: nursery; c: supervisor; p: struct actor. */
void jl_slow_supervisor_spawn(struct machine *m, union slot *r, const struct slow *s)
{
    const struct actor *actor = s->p;
    janus_actor         out;
    (void)m;
    memset(&out, 0, sizeof out);
    jl_slow_need(s, r[s->c].p, "a supervisor was used before it was made");
    int64_t error = jl_supervisor_spawn(r[s->c].p, nursery_at(r, s->b), &actor->type, &out);
    memcpy(r + s->a + 1, &out, sizeof out);
    r[s->a].i = error < 0 ? error : 0;
}

/* a: result; b: actor; c: method; d: bytes of arguments; p: struct actor; slots; field: reply. */

static int64_t ask(union slot *r, const struct slow *s, void *reply)
{
    const struct actor *actor = s->p;
    const struct fn    *fn = actor->methods[s->c];
    void               *message = __builtin_alloca(s->d + 8); /* at most RUN_MESSAGE_MAX */
    memset(message, 0, s->d);
    jl_slow_fill(message, r, s->slots, fn->params, s->count);
    const void *arguments = s->d > 0 ? message : NULL;
    if (reply == NULL) return jl_actor_send(actor_at(r + s->b), &actor->type, s->c, arguments);
    return jl_actor_call(actor_at(r + s->b), &actor->type, s->c, arguments, reply);
}

void jl_slow_actor_send(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    int64_t error = ask(r, s, NULL);
    r[s->a].i = error < 0 ? error : 0;
}

void jl_slow_actor_call(struct machine *m, union slot *r, const struct slow *s)
{
    (void)m;
    union slot  nothing[2];
    union slot *reply = s->field.width == W_NONE ? nothing : r + s->a + 1;
    if (s->field.width != W_NONE) memset(reply, 0, 8 * (size_t)s->field.words);
    int64_t error = ask(r, s, reply);
    jl_run_load(reply, reply, &s->field);
    r[s->a].i = error < 0 ? error : 0;
}

/* a: instance; b: handle; p: struct jl_interface_type. */
void jl_slow_to_interface(struct machine *m, union slot *r, const struct slow *s)
{
    struct jl_handle handle;
    (void)m;
    memcpy(&handle, r + s->b, sizeof handle);
    r[s->a].p = jl_to_interface(handle, s->p, s->place);
}

/* a: result; b: instance; c: method; slots: arguments; field: the value. */
void jl_slow_interface_call(struct machine *m, union slot *r, const struct slow *s)
{
    const void *arguments[9];
    union slot  nothing[2];
    (void)m;
    jl_slow_need(s, r[s->b].p, "an interface was used before it was set");
    for (uint32_t i = 0; i < s->count; i++) arguments[i] = r + s->slots[i];
    union slot *value = s->field.width == W_NONE ? nothing : r + s->a + 1;
    if (s->field.width != W_NONE) memset(value, 0, 8 * (size_t)s->field.words);
    int64_t error = jl_interface_call(r[s->b].p, s->c, arguments, value);
    jl_run_load(value, value, &s->field);
    r[s->a].i = error < 0 ? error : 0;
}
