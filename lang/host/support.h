/* SPDX-License-Identifier: MIT */
/*
 * The support library: what running Janus programs call. The interpreter calls it, and so does the
 * C that `janusrt build` emits. So a nursery, a spawn or an allocation does and costs the same in
 * both. It stands on the installed headers of janusrt alone.
 *
 * A function that can fail returns 0 or an error below 0 (a janus_status, or one of the program's).
 * One that cannot report an error ends the task: with a panic if the program is at fault (an index
 * outside, an overflow), with that status if the system is.
 */
#ifndef JANUSRT_LANG_SUPPORT_H
#define JANUSRT_LANG_SUPPORT_H

#include <janusrt/janus.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values. A str is UTF-8, not ended by NUL. Its bytes never change. */
struct jl_text {
    const char *bytes;
    int64_t     length;
};
struct jl_slice {
    void   *items;
    int64_t length;
};
struct jl_closure {
    const void *code; /* built: a C function (environment, arguments); interpreted: a function */
    void       *environment;
};
struct jl_handle { /* of a host type */
    uint64_t word[2];
};

/* Traps: the task panics. The text is "index 7 is outside of a slice of 3 (x.jan:12:5)". `place` is
 * line << 32 | column, in the program's source. */
__attribute__((noreturn)) void jl_trap_index(int64_t index, int64_t length, uint64_t place);
__attribute__((noreturn)) void jl_trap_overflow(const char *what, uint64_t place); /* "+", "i8" */
__attribute__((noreturn)) void jl_trap_zero(uint64_t place);
__attribute__((noreturn)) void jl_panic(struct jl_text text, uint64_t place);
/* The task ends with an error: its defers run, and its parent sees the error. */
__attribute__((noreturn)) void jl_end_task(int64_t error, uint64_t place);

/* A function of the host without `!` returned an error. */
__attribute__((noreturn)) void jl_host_failed(const char *name, int64_t error, uint64_t place);

/* Memory of the task, as janus_alloc: 1 op and the bytes. It is given back when the task ends. */
struct jl_slice jl_slice_new(int64_t length, uint32_t element_bytes, uint64_t place); /* zeroed */
void           *jl_environment(size_t bytes);
struct jl_text  jl_concat(struct jl_text left, struct jl_text right);
struct jl_text  jl_text_of_i64(int64_t value);
struct jl_text  jl_text_of_u64(uint64_t value);
struct jl_text  jl_text_of_f64(double value); /* the shortest that reads back the same */
struct jl_text  jl_text_of_bool(bool value);  /* allocates nothing */
struct jl_text  jl_text_of_error(int64_t error);
bool            jl_text_equal(struct jl_text left, struct jl_text right);
double          jl_f64_of_bits(int64_t bits);
/* [from, to), without a copy; traps if it is not inside. */
struct jl_slice jl_slice_part(struct jl_slice slice, int64_t from, int64_t to,
                              uint32_t element_bytes, uint64_t place);
struct jl_text  jl_text_part(struct jl_text text, int64_t from, int64_t to, uint64_t place);
/* Budgets: their numbers are i64 in the language. A number below 0 counts as 0. */
janus_budget jl_budget_new(const int64_t numbers[5]);
int64_t      jl_budget_get(janus_budget budget, uint32_t field);
janus_budget jl_budget_with(janus_budget budget, uint32_t field, int64_t number);

/*
 * How a value goes from one task to another: its texts and slices are copied, because the memory of
 * a task ends with it. A shape lists them. NULL: the value has none, and its bytes are enough.
 */
struct jl_shape {
    uint32_t bytes, part_count;
    const struct jl_part {
        uint32_t               offset;        /* of a struct jl_text or a struct jl_slice */
        uint32_t               element_bytes; /* of a text: 1 */
        const struct jl_shape *element;       /* of each element; NULL: plain */
    } *parts;
};
void jl_pack(void *value, const struct jl_shape *shape);   /* in the task that gives it away */
void jl_unpack(void *value, const struct jl_shape *shape); /* in the task that gets it; it pays */

/* Errors that go up. `Fail` with an error that begins here, and with one that it passes on; both
 * return `error`. They note the place for the message about an error that nobody handles. */
int64_t jl_fail(int64_t error, uint64_t place);
int64_t jl_fail_on(int64_t error, uint64_t place);

/* Nurseries. An object lies in the frame of its function. */
struct jl_nursery {
    janus_nursery nursery;
    uint64_t      opaque[28];
};
/* `cap`: NULL, or a CapSpawn for the children. With `scope` it also binds the task itself until the
 * end (C37). If the nursery cannot be opened, the task ends. */
void jl_nursery_begin(struct jl_nursery *nursery, const janus_cap *cap, bool scope, uint64_t place);
int64_t jl_nursery_end(struct jl_nursery *nursery); /* joins; the first error, or 0 */
void    jl_nursery_cancel(struct jl_nursery *nursery);

/*
 * Tasks. A task's arguments are copied into a record, which jl_record gives. The entry copies them
 * to its own frame first, then calls jl_record_done, then runs:
 *
 *     static int64_t entry(void *argument)
 *     {
 *         struct arguments a = *(struct arguments *)argument;
 *         jl_record_done(argument);
 *         return f(a.x, a.y);          // 0, or an error
 *     }
 *
 * Records are not charged. The record of a task that never runs is found at the end.
 */
void *jl_record(struct jl_nursery *nursery, size_t bytes); /* aligned to 16 */
void  jl_record_done(void *record);
/* name: static text. wait: for room, and the result is 0: if the spawn is refused, the task ends.
 * Else a refused spawn returns an error. The record belongs to the task, or is given back. In a
 * nursery without a capability for its children the task panics in :service (C33). */
int64_t jl_spawn(struct jl_nursery *nursery, janus_entry *entry, void *record, const char *name,
                 uint64_t place, const janus_cap *cap, bool wait);

/* A call under way. It never returns NULL: if the spawn is refused, the task ends. It costs an
 * allocation of the task. */
struct jl_call;
struct jl_call *jl_async(struct jl_nursery *nursery, janus_entry *entry, void *record,
                         size_t value_bytes, const struct jl_shape *shape, const char *name,
                         uint64_t place);
/* The entry of an async call finds where to write its value, before jl_record_done. After it has
 * written the value, it calls jl_pack with the shape. */
void *jl_call_value_of(void *record);
/* Waits for it. The result is 0 or an error; *value stays valid until the nursery ends. A second
 * await gives the same. */
int64_t jl_await(struct jl_call *call, const void **value);

void jl_yield(void); /* a cancelled task ends here */
/* Defers of a scope: they run last first, at the pop or when the task is broken off. Then all
 * nurseries of the task have ended before. */
void jl_defer_push(void (*function)(void *environment), void *environment);
void jl_defer_push_of(void (*function)(const void *context, void *environment), const void *context,
                      void *environment); /* the interpreter's */
void jl_defer_pop(uint32_t count);

/* Channels. A channel lives as long as the task that made it, and what nobody has received ends
 * with it. `cap`: NULL, or the CapChannel under which it is made. */
janus_channel jl_channel_new(uint32_t element_bytes, const struct jl_shape *shape, int64_t capacity,
                             const janus_cap *cap, uint64_t place);
int64_t jl_channel_send(janus_channel channel, const void *value, const struct jl_shape *shape);
int64_t jl_channel_recv(janus_channel channel, void *value, const struct jl_shape *shape);
void    jl_channel_close(janus_channel channel);

/*
 * Actors. A message is {uint32_t method; uint32_t zero; arguments...}, as jl_actor_type says. The
 * handler gets the state and the message, and writes the reply if `reply` is not NULL. An error
 * that a method returns goes to its caller. After a cast it ends the actor, which its supervisor
 * starts again.
 */
struct jl_actor_method {
    const struct jl_shape *arguments; /* offsets from the beginning of the arguments */
    const struct jl_shape *reply;
    size_t                 argument_bytes, reply_bytes;
};
struct jl_actor_type {
    const char                   *name;
    size_t                        state_bytes;
    const struct jl_actor_method *methods;
    uint32_t                      method_count;
    int64_t                       (*init)(void *state, const void *context);
    int64_t     (*handle)(void *state, uint32_t method, const void *arguments, void *reply,
                      const void *context);
    const void *context; /* the interpreter's; built programs: NULL */
};
struct jl_supervisor;
struct jl_supervisor *jl_supervisor_new(
    void); /* opened by the first spawn, ended with its nursery */
int64_t jl_supervisor_spawn(struct jl_supervisor *supervisor, struct jl_nursery *nursery,
                            const struct jl_actor_type *type, janus_actor *out);
/* `arguments` as the handler gets them; NULL: there are none. */
int64_t jl_actor_send(janus_actor actor, const struct jl_actor_type *type, uint32_t method,
                      const void *arguments);
int64_t jl_actor_call(janus_actor actor, const struct jl_actor_type *type, uint32_t method,
                      const void *arguments, void *reply); /* within 5 s */

/* Capabilities. Limits that do not apply are ignored. A capability that would allow more than
 * `parent` makes the task panic. parent NULL: the root authority, which main holds. */
struct jl_cap_fields {
    int64_t      numbers[5]; /* SPAWN: max_tasks; BUDGET: five; CHANNEL: two; EXECUTOR: a set */
    janus_budget budget;     /* SPAWN: task_budget */
};
enum jl_cap_kind { JL_CAP_OF_SPAWN, JL_CAP_OF_BUDGET, JL_CAP_OF_CHANNEL, JL_CAP_OF_EXECUTOR };
janus_cap    jl_cap_new(enum jl_cap_kind kind, const struct jl_cap_fields *fields,
                        const janus_cap *parent, enum jl_cap_kind parent_kind, bool delegatable,
                        uint64_t place);
janus_budget jl_cap_to_budget(janus_cap cap, uint64_t place);

/*
 * Interfaces. `load_untrusted_plugin` returns a handle; the first use as an interface finds one
 * exported C function for each method. Values cross as integers, bool, f64, str and slices of
 * numbers; slices and texts are copied in and out.
 */
enum jl_cross { JL_CROSS_VOID, JL_CROSS_WORD, JL_CROSS_F64, JL_CROSS_SLICE }; /* str is a slice */
/* In `bytes` of a word: it has no sign. bool has none. */
enum { JL_CROSS_UNSIGNED = 128 };
struct jl_method {
    const char *name;
    uint32_t    param_count;
    struct {
        uint8_t cross, bytes; /* bytes: of a word or of an element */
    } params[8], result;
};
struct jl_interface_type {
    const char             *name;
    const struct jl_method *methods;
    uint32_t                method_count;
};
struct jl_instance;
struct jl_instance *jl_to_interface(struct jl_handle plugin, const struct jl_interface_type *type,
                                    uint64_t place);
int64_t             jl_interface_call(struct jl_instance *instance, uint32_t method,
                                      const void *const *arguments, void *result);

enum { JL_PROFILE_CORE, JL_PROFILE_SERVICE, JL_PROFILE_CLUSTER, JL_PROFILE_SOVEREIGN };

/* The whole program: makes a scheduler of the profile, runs main as its first task, and says on
 * stderr what went wrong. */
struct jl_program {
    const char *source;                                 /* path, for messages */
    int         profile;                                /* JL_PROFILE_..., as enum jl_profile */
    int64_t     (*main)(void *context, int64_t *value); /* 0 or an error; *value: main's number */
    void       *context;
    const char *const *error_names; /* of -100, -101, ... */
    uint32_t           error_count;
    uint32_t           interval;
};
/*
 * The exit status: 0, or main's number; 1 an error or a panic, 3 a budget is exhausted, 4 a
 * deadlock. The environment may have
 *
 *     JANUSRT_SEED=7         everything on one thread, in an order that the seed decides
 *     JANUS_WORKERS=2        threads
 *     JANUS_BUDGET=ops=1000,memory=1048576,spawn_count=,channel_ops=,syscalls=
 *                            a pool for the whole program; what is not named is unlimited
 *     JANUSRT_LANG_REPORT=1  the last line on stderr says what all tasks spent together:
 *                            "janusrt: ops 12 memory 64 trace 7aa1680d73000c7b". memory: the
 *                            bytes that the program allocated in all. trace: the trace hash of a
 *                            run with a seed, else 0. The program runs in a pool then
 */
int jl_run_program(const struct jl_program *program);
/* What args() gives: the words behind the program's name. They stay the caller's. */
void jl_set_arguments(int count, char **words);
/* What input_data is. The bytes stay the caller's. */
void jl_set_input(const void *bytes, size_t count);

#endif
