/* SPDX-License-Identifier: MIT */
/* What the support library knows about a running program, its tasks and their open scopes. */
#ifndef JANUSRT_LANG_HOST_STATE_H
#define JANUSRT_LANG_HOST_STATE_H

#include "host/support.h"

#include <setjmp.h>
#include <stdatomic.h>

enum { JL_PATH_BYTES = 96, JL_SITES = 1024, JL_HELD = 256 };

/* A capability that the program made, so that every task of the program can use its handle. */
struct jl_held {
    struct jl_held  *next;
    janus_cap        cap;
    janus_cap_kind   kind;
    uint32_t         depth;
    janus_cap_limits limits;
    _Atomic uint64_t channels; /* alive, made under it */
};

/* One run of a program. */
struct jl_world {
    const struct jl_program       *program;
    const char                    *source; /* the path without its folders, for short messages */
    const janus_authority         *authority;
    janus_scheduler               *scheduler;
    _Atomic uint64_t               panics;
    bool                           reports;         /* it counts what follows */
    _Atomic uint64_t               allocated;       /* bytes */
    struct jl_block               *blocks;          /* :core has no task whose memory it could be */
    _Atomic(janus_site *)          sites[JL_SITES]; /* by place; places that do not fit have none */
    _Atomic(struct jl_behaviour *) behaviours;      /* of actor types */
    atomic_flag                    held_lock;
    struct jl_held                *held[JL_HELD]; /* by slot */
};

/* Where an error began that nobody has handled yet. */
struct jl_origin {
    int64_t  error; /* 0: none */
    uint64_t place;
    char     path[JL_PATH_BYTES]; /* "main > worker" */
};

/* A defer that waits for its scope's end. Its memory is malloc's: it outlives the task's frames. */
struct jl_defer {
    struct jl_defer *next;
    struct jl_world *world;
    void             (*function)(void *environment);
    void             (*function_of)(const void *context, void *environment); /* or this one */
    const void      *context;
    void            *environment;
};

/* A task, in the first frame of its stack. janus_task_local points to it. */
struct jl_task {
    struct jl_world  *world;
    struct jl_task   *parent; /* it lives longer; NULL: main, or an actor */
    const char       *name;
    uint64_t          place; /* of the spawn */
    struct jl_scope  *scope; /* the innermost open nursery */
    struct jl_defer  *defers;
    struct jl_slot   *slots;  /* capabilities of others, for this task */
    struct jl_drains *drains; /* channels whose texts and slices the task's end gives back */
    struct jl_record *home;   /* keeps the records of its children */
    struct jl_origin  origin;
    int64_t           ending; /* the status after a jump */
    jmp_buf           jump;
};

/* The rest of a struct jl_nursery. */
struct jl_scope {
    struct jl_scope      *outer;
    struct jl_defer      *defers; /* of the task when the nursery began */
    struct jl_call       *calls;
    struct jl_supervisor *supervisors;
    uint64_t              place;
    atomic_flag           lock; /* of origin */
    bool                  own_cancel;
    bool                  is_open;
    struct jl_origin      origin; /* of the first child that failed */
};

/* The current task of the language; NULL: none. */
struct jl_task *jl_self(void);
/* Runs function(argument) as the outermost code of `task`: jl_end_task comes back here. */
int64_t jl_guard_task(struct jl_task *task, int64_t (*function)(void *), void *argument);
/* Ends the current task as if its function had returned 0. */
__attribute__((noreturn)) void jl_finish_task(void);
/* Sets the current task and returns the one before. */
struct jl_task                      *jl_become(struct jl_task *task);
extern _Thread_local struct jl_task *jl_core_task; /* of :core, which has no scheduler */

struct jl_nursery *jl_nursery_of(struct jl_scope *scope);
struct jl_scope   *jl_scope_of(struct jl_nursery *nursery);
/* Ends the supervisors of a nursery, whose tasks have ended. */
int64_t           jl_supervisors_end(struct jl_scope *scope);
void              jl_supervisors_free(struct jl_world *world);
void              jl_path(const struct jl_task *task, char *out, size_t size);
void              jl_note_origin(struct jl_task *task, int64_t error, uint64_t place, bool begins);
const janus_site *jl_site(struct jl_world *world, uint64_t place);
/* Memory of the task. It does not return NULL: a task that gets none ends. */
void *jl_task_memory(size_t bytes);
/* One operation for each 256 bytes that a call copies, compares or searches. */
void jl_pay_bytes(size_t bytes);
/* A handle of `cap` that this task may use; see caps.c. */
janus_cap       jl_cap_here(janus_cap cap);
struct jl_held *jl_held_of(struct jl_world *world, janus_cap cap);
void            jl_held_free(struct jl_world *world);
void            jl_blocks_free(struct jl_world *world);
/* Discards a packed value that nobody gets. */
void jl_unpack_drop(void *value, const struct jl_shape *shape);
void jl_on_panic(void *world, const janus_panic_report *report);
/* "error.Closed" without "error."; NULL program: the statuses only. */
const char *jl_error_name(const struct jl_program *program, int64_t error);
/* "x.jan:12:5" */
void jl_place_text(uint64_t place, char *out, size_t size);

#endif
