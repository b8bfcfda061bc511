/* SPDX-License-Identifier: MIT */
/* How a task ends before its function returns, and what is said about it. */
#include "host/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct jl_task *jl_core_task;

struct jl_task *jl_self(void)
{
    if (jl_core_task) return jl_core_task;
    void **local = janus_task_local();
    return local ? *local : NULL;
}

struct jl_task *jl_become(struct jl_task *task)
{
    void          **local = janus_task_local();
    struct jl_task *before = local ? *local : NULL;
    if (local) *local = task;
    return before;
}

int64_t jl_guard_task(struct jl_task *task, int64_t (*function)(void *), void *argument)
{
    if (_setjmp(task->jump) == 0) return function(argument);
    return task->ending;
}

void jl_place_text(uint64_t place, char *out, size_t size)
{
    const struct jl_task *self = jl_self();
    const char           *source = self ? self->world->source : "?";
    if (place == 0) {
        (void)snprintf(out, size, "%s", source);
    } else {
        (void)snprintf(out, size, "%s:%" PRIu64 ":%" PRIu64, source, place >> 32,
                       place & UINT32_MAX);
    }
}

void jl_path(const struct jl_task *task, char *out, size_t size)
{
    const char *names[16];
    uint32_t    count = 0;
    for (; task && count < 16; task = task->parent) names[count++] = task->name;
    size_t used = 0;
    out[0] = '\0';
    if (task) used = (size_t)snprintf(out, size, "...");
    while (count > 0 && used + 1 < size) {
        int wrote =
            snprintf(out + used, size - used, "%s%s", used > 0 ? " > " : "", names[--count]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

void jl_note_origin(struct jl_task *task, int64_t error, uint64_t place, bool begins)
{
    if (!begins && task->origin.error == error) return;
    task->origin.error = error;
    task->origin.place = place;
    jl_path(task, task->origin.path, sizeof task->origin.path);
}

int64_t jl_fail(int64_t error, uint64_t place)
{
    struct jl_task *self = jl_self();
    if (self) jl_note_origin(self, error, place, true);
    return error;
}

int64_t jl_fail_on(int64_t error, uint64_t place)
{
    struct jl_task *self = jl_self();
    if (self) jl_note_origin(self, error, place, false);
    return error;
}

/* Ends the scopes of the task, inner to outer, each followed by the defers of its body. The result
 * is the error that the task ends with: that of a child, if a child's end was the cause. */
static int64_t leave_scopes(struct jl_task *self, int64_t error)
{
    while (self->scope) {
        struct jl_scope *scope = self->scope;
        struct jl_defer *until = scope->defers;
        bool             told = error == JANUS_CANCELLED || error == JANUS_CLOSED;
        jl_nursery_cancel(jl_nursery_of(scope));
        scope->own_cancel = !told;
        int64_t cause = jl_nursery_end(jl_nursery_of(scope));
        if (told && cause != 0) error = cause;
        while (self->defers != until) jl_defer_pop(1);
    }
    while (self->defers) jl_defer_pop(1);
    return error;
}

void jl_end_task(int64_t error, uint64_t place)
{
    struct jl_task *self = jl_self();
    if (!self) {
        fprintf(stderr, "janusrt: code of Janus ran outside of a program\n");
        abort();
    }
    if (error >= 0) error = JANUS_INVALID;
    jl_note_origin(self, error, place, false);
    self->ending = leave_scopes(self, error);
    _longjmp(self->jump, 1);
}

void jl_finish_task(void)
{
    struct jl_task *self = jl_self();
    (void)leave_scopes(self, JANUS_CANCELLED);
    self->ending = 0;
    _longjmp(self->jump, 1);
}

static void panic_line(const struct jl_task *self, const char *text)
{
    char path[256];
    jl_path(self, path, sizeof path);
    fprintf(stderr, "janusrt: panic: %s\n    in task %s\n", text, path);
}

void jl_on_panic(void *world, const janus_panic_report *report)
{
    struct jl_task *self = jl_self();
    atomic_fetch_add(&((struct jl_world *)world)->panics, 1);
    if (self) {
        panic_line(self, report->message);
    } else {
        fprintf(stderr, "janusrt: %s\n", report->text);
    }
}

__attribute__((noreturn, format(printf, 2, 3))) static void panic_at(uint64_t    place,
                                                                     const char *format, ...)
{
    char    text[160], at[64];
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    jl_place_text(place, at, sizeof at);
    size_t room = sizeof text - strlen(at) - 4;
    if ((size_t)used > room) used = (int)room;
    (void)snprintf(text + used, sizeof text - (size_t)used, " (%s)", at);
    struct jl_task *self = jl_core_task;
    if (!self) janus_panic(text);
    atomic_fetch_add(&self->world->panics, 1);
    panic_line(self, text);
    self->ending = JANUS_CHILD_FAILED;
    _longjmp(self->jump, 1);
}

void jl_trap_index(int64_t index, int64_t length, uint64_t place)
{
    panic_at(place, "index %" PRId64 " is outside of a slice of %" PRId64, index, length);
}

void jl_trap_overflow(const char *what, uint64_t place)
{
    if (strchr("iuf", what[0])) panic_at(place, "the number does not fit into %s", what);
    panic_at(place, "the result of `%s` does not fit", what);
}

void jl_trap_zero(uint64_t place) { panic_at(place, "division by zero"); }

void jl_panic(struct jl_text text, uint64_t place)
{
    int shown = text.length > 120 ? 120 : (int)text.length;
    panic_at(place, "%.*s", shown, text.length > 0 ? text.bytes : "");
}

void jl_host_failed(const char *name, int64_t error, uint64_t place)
{
    const struct jl_task *self = jl_self();
    if (error == JANUS_CANCELLED) jl_end_task(error, place);
    const char *what = jl_error_name(self ? self->world->program : NULL, error);
    panic_at(place, "%s: error.%s", name, what);
}

struct jl_text jl_text_of_error(int64_t error)
{
    struct jl_task *self = jl_self();
    const char     *name = jl_error_name(self ? self->world->program : NULL, error);
    return (struct jl_text){name, (int64_t)strlen(name)};
}
