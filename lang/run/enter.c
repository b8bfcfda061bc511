/* SPDX-License-Identifier: MIT */
/*
 * Entries: tasks, actors, defers and main. Each takes the register stack from the stack of its
 * task, in one block that is touched only as far as calls go. So it vanishes with the task, however
 * that ends. Calls of the host run below it, in what is left.
 */
#include "run/code.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    KIB = 1024,
    LEFT = 64 * KIB, /* for the host, the runtime and defers */
    DEFER_BYTES = 16 * KIB,
    PLAIN_LEFT = 512 * KIB,
    PLAIN_MAX = 6 * 1024 * KIB,
};

/* What a thread's stack has left below this frame. The main thread's stack grows up to its limit;
 * its address would cost a look at /proc, and it is used a little when main begins. */
static size_t left_here(void)
{
    pthread_attr_t attributes;
    struct rlimit  limit;
    void          *low;
    size_t         size, left = 0;
    const char    *here = __builtin_frame_address(0);
    if (syscall(SYS_gettid) == getpid())
        return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < PLAIN_MAX + PLAIN_LEFT
                   ? (size_t)limit.rlim_cur
                   : (size_t)PLAIN_MAX + PLAIN_LEFT;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) left = (size_t)(here - (char *)low);
    pthread_attr_destroy(&attributes);
    return left;
}

static size_t plain_bytes(void)
{
    size_t left = left_here();
    if (left < (size_t)PLAIN_LEFT + LEFT) return LEFT;
    left -= PLAIN_LEFT;
    return left < PLAIN_MAX ? left : PLAIN_MAX;
}

/* A task has at least the stack that its profile promises. */
static size_t stack_bytes(const struct jl_code *code)
{
    switch (code->module->profile) {
    case JL_PROFILE_CORE: return plain_bytes();
    case JL_PROFILE_SOVEREIGN: return JANUS_STACK_BYTES_SOVEREIGN - LEFT;
    default: return JANUS_STACK_BYTES_SERVICE - LEFT;
    }
}

#define NARROW(name, type)                                                                         \
    case name: {                                                                                   \
        type v;                                                                                    \
        memcpy(&v, from, sizeof v);                                                                \
        to->i = v;                                                                                 \
        break;                                                                                     \
    }

void jl_run_load(union slot *to, const void *from, const struct field *f)
{
    switch (f->width) {
        NARROW(W_I8, int8_t) /* NOLINT(bugprone-signed-char-misuse): a small number */
        NARROW(W_U8, uint8_t)
        NARROW(W_I16, int16_t)
        NARROW(W_U16, uint16_t)
        NARROW(W_I32, int32_t)
        NARROW(W_U32, uint32_t)
    case W_NONE: break;
    default: memmove(to, from, f->bytes);
    }
}

void jl_run_store(void *to, const union slot *from, const struct field *f)
{
    memcpy(to, from, f->bytes);
}

/* Runs a function whose arguments lie at r + 1. Its result comes to r. */
static void enter(struct machine *m, const struct fn *fn, union slot *r)
{
    static const char text[] = "the stack of the task is too small";
    r[0].c = fn->code->cells + fn->code->stub;
    if (r + 1 + fn->frame > m->limit) jl_panic((struct jl_text){text, sizeof text - 1}, 0);
    jl_run_step(m, fn->entry, r + 1, NULL);
}

/* Opens a register stack of `bytes` in the caller's frame. */
#define OPEN_STACK(m, r, its_code, its_state, bytes)                                               \
    size_t         stack_size = (bytes);                                                           \
    union slot    *r = __builtin_alloca(stack_size);                                               \
    struct machine m = {its_code, r + stack_size / sizeof *r, its_state}

static bool has_room(const struct machine *m, const union slot *r, const struct fn *fn)
{
    return r + 1 + fn->frame + fn->result.words < m->limit;
}

/* Arguments of a record lie as in the frame. */
static void copy_arguments(struct machine *m, union slot *r, const struct task_record *record)
{
    const struct fn *fn = record->fn;
    if (!has_room(m, r, fn)) return; /* enter() says so */
    for (uint32_t i = 0; i < fn->param_count; i++)
        memcpy(r + 1 + fn->params[i].slot, record->slots + fn->params[i].slot,
               8 * (size_t)fn->params[i].words);
}

static int64_t status_of(const struct fn *fn, const union slot *r)
{
    return fn->fails && r->i < 0 ? r->i : 0;
}

__attribute__((noinline)) int64_t jl_run_task(void *argument)
{
    struct task_record *record = argument;
    const struct fn    *fn = record->fn;
    OPEN_STACK(m, r, fn->code, NULL, stack_bytes(fn->code));
    copy_arguments(&m, r, record);
    jl_record_done(record);
    enter(&m, fn, r);
    return status_of(fn, r);
}

__attribute__((noinline)) int64_t jl_run_async(void *argument)
{
    struct task_record *record = argument;
    const struct fn    *fn = record->fn;
    void               *value = jl_call_value_of(record);
    OPEN_STACK(m, r, fn->code, NULL, stack_bytes(fn->code));
    copy_arguments(&m, r, record);
    jl_record_done(record);
    enter(&m, fn, r);
    int64_t status = status_of(fn, r);
    if (status == 0 && fn->result.width != W_NONE) {
        jl_run_store(value, r + (fn->fails ? 1 : 0), &fn->result);
        jl_pack(value, fn->result_shape);
    }
    return status;
}

__attribute__((noinline)) void jl_run_defer(const void *context, void *environment)
{
    const struct fn *fn = context;
    void            *state = NULL;
    if (fn->in_actor) memcpy(&state, environment, sizeof state);
    size_t bytes = DEFER_BYTES + (size_t)fn->frame * sizeof(union slot);
    OPEN_STACK(m, r, fn->code, state, bytes < LEFT / 2 ? bytes : LEFT / 2);
    if (has_room(&m, r, fn))
        for (uint32_t i = 0; i < fn->param_count; i++)
            jl_run_load(r + 1 + fn->params[i].slot,
                        (const char *)environment + fn->deferred[i].offset, &fn->params[i]);
    enter(&m, fn, r);
}

__attribute__((noinline)) int64_t jl_run_init(void *state, const void *context)
{
    const struct actor *actor = context;
    const struct fn    *fn = actor->init;
    OPEN_STACK(m, r, fn->code, state, stack_bytes(fn->code));
    enter(&m, fn, r);
    return status_of(fn, r);
}

__attribute__((noinline)) int64_t jl_run_handle(void *state, uint32_t method, const void *arguments,
                                                void *reply, const void *context)
{
    const struct actor *actor = context;
    const struct fn    *fn = actor->methods[method];
    OPEN_STACK(m, r, fn->code, state, stack_bytes(fn->code));
    if (has_room(&m, r, fn))
        for (uint32_t i = 0; i < fn->param_count; i++)
            jl_run_load(r + 1 + fn->params[i].slot, (const char *)arguments + fn->params[i].offset,
                        &fn->params[i]);
    enter(&m, fn, r);
    int64_t status = status_of(fn, r);
    if (status == 0 && reply != NULL) jl_run_store(reply, r + (fn->fails ? 1 : 0), &fn->result);
    return status;
}

static __attribute__((noinline)) int64_t run_main(void *context, int64_t *value)
{
    const struct jl_code *code = context;
    const struct fn      *fn = &code->functions[code->module->main - 1];
    OPEN_STACK(m, r, code, NULL, stack_bytes(code));
    enter(&m, fn, r);
    int64_t status = status_of(fn, r);
    *value = fn->result.width == W_NONE || status < 0 ? 0 : r[fn->fails ? 1 : 0].i;
    return status;
}

/* The names of -100, -101, ... as far as they are known. */
static const char *const *error_names(const struct jl_code *code, uint32_t *count)
{
    const struct qt_module *module = code->module;
    const char **names = jl_new(code->arena, ((size_t)module->error_count + 1) * sizeof *names);
    *count = 0;
    for (uint32_t i = 0; i < module->error_count; i++) names[i] = "error";
    for (uint32_t i = 0; i < module->error_count; i++) {
        int64_t index = -100 - module->errors[i].number;
        if (index < 0 || index >= module->error_count) continue;
        names[index] = module->errors[i].name;
        if (index >= *count) *count = (uint32_t)index + 1;
    }
    return names;
}

int jl_code_run(struct jl_code *code)
{
    struct jl_program program = {.source = code->module->source,
                                 .profile = code->module->profile,
                                 .main = run_main,
                                 .context = code,
                                 .interval = code->module->interval};
    program.error_names = error_names(code, &program.error_count);
    if (code->module->main == 0) return 0;
    return jl_run_program(&program);
}

/* Actors. */

/* The shape of the arguments: those of its parameters, each at its offset. */
static const struct jl_shape *shape_of(struct jl_code *code, const struct fn *fn,
                                       const jl_type *params)
{
    struct jl_part *parts = NULL;
    uint32_t        count = 0, room = 0;
    for (uint32_t i = 0; i < fn->param_count; i++) {
        const struct jl_shape *shape = jl_shape_of(code->module->types, params[i]);
        for (uint32_t k = 0; shape != NULL && k < shape->part_count; k++) {
            struct jl_part *part = &JL_PUSH(code->arena, parts, count, room);
            *part = shape->parts[k];
            part->offset += fn->params[i].offset;
        }
    }
    if (count == 0) return NULL;
    struct jl_shape *made = jl_new(code->arena, sizeof *made);
    *made = (struct jl_shape){fn->argument_bytes, count, parts};
    return made;
}

static void make_actor(struct jl_code *code, const struct qt_actor *from, struct actor *to)
{
    const struct jl_type_info *info = jl_info(code->module->types, from->type);
    uint32_t                   count = from->method_count;
    struct jl_actor_method    *methods = jl_new(code->arena, ((size_t)count + 1) * sizeof *methods);
    to->init = &code->functions[from->init];
    to->methods = jl_new(code->arena, ((size_t)count + 1) * sizeof *to->methods);
    to->type = (struct jl_actor_type){.name = info->name,
                                      .state_bytes = info->state_size,
                                      .methods = methods,
                                      .method_count = count,
                                      .init = jl_run_init,
                                      .handle = jl_run_handle,
                                      .context = to};
    for (uint32_t i = 0; i < count; i++) {
        const struct fn          *fn = &code->functions[from->methods[i]];
        const struct qt_function *f = &code->module->functions[from->methods[i]];
        to->methods[i] = fn;
        methods[i] = (struct jl_actor_method){.arguments = shape_of(code, fn, f->params),
                                              .reply = jl_shape_of(code->module->types, f->result),
                                              .argument_bytes = fn->argument_bytes,
                                              .reply_bytes = fn->result.bytes};
    }
}

bool jl_run_make_actors(struct jl_code *code)
{
    uint32_t count = code->module->actor_count;
    code->actors = jl_new(code->arena, ((size_t)count + 1) * sizeof *code->actors);
    for (uint32_t i = 0; i < count; i++)
        make_actor(code, &code->module->actors[i], &code->actors[i]);
    return true;
}
