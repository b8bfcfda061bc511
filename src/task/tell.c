/* SPDX-License-Identifier: MIT */
/*
 * Reports. The library reports a panic when it happens, before the task's nurseries and defers
 * end. So a program whose supervisor never asks has seen it. The line is made here, once, for
 * stderr and for the scheduler's own callback.
 */
#include "task/tell.h"

#include "plat/signal.h"
#include "task/task.h"
#include "task/worker.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct line {
    char   bytes[1024];
    size_t used;
};

/* Cuts what does not fit. The last byte is reserved for a newline. */
__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
    size_t  room = sizeof line->bytes - 1 - line->used;
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(line->bytes + line->used, room, format, arguments);
    va_end(arguments);
    if (wrote > 0) line->used += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

/* A message is the user's text: what could break the line is escaped. */
static void put_message(struct line *line, const char *message)
{
    size_t room = sizeof line->bytes - 1 - line->used;
    line->used += jrt_text_copy(line->bytes + line->used, room, message);
}

/* "parse+0x1c" if the program exports its functions, otherwise "prog+0x11a9", for addr2line. */
static void put_frame(struct line *line, const void *address)
{
    Dl_info     info;
    const char *at = address;
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        put(line, "%p", address);
        return;
    }
    if (info.dli_sname != NULL) {
        put(line, "%s+%#tx", info.dli_sname, at - (const char *)info.dli_saddr);
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    put(line, "%s+%#tx", slash != NULL ? slash + 1 : info.dli_fname,
        at - (const char *)info.dli_fbase);
}

/*
 * [tell-rate]  A plugin that panics without end must not fill a disk. So stderr gets at most
 *   LINES_A_SECOND lines in a second of the clock. The first line of a later second says how many
 *   lines were left out. The word holds the second, and in its low half the number of lines in it.
 *   stderr belongs to the process, so the word does, too.
 */
enum { LINES_A_SECOND = 20 };

static _Atomic(uint64_t) rate;

/* Whether this line may be printed. *left_out: the number of lines left out in the last second. */
static bool may_print(uint32_t *left_out)
{
    uint64_t second = jrt_clock_now_ns() / 1000000000 << 32, next;
    uint64_t seen = jrt_load_relaxed(&rate); /* relaxed: only the numbers count, here and below. */
    do {
        bool     same = seen >> 32 == second >> 32;
        uint32_t lines = (uint32_t)seen;
        *left_out = !same && lines > LINES_A_SECOND ? lines - LINES_A_SECOND : 0;
        next = same ? seen + (lines < UINT32_MAX) : second + 1;
    } while (!jrt_cas_relaxed(&rate, &seen, next)); /* relaxed: as above. */
    jrt_debug_invariant("tell-rate", *left_out == 0 || (uint32_t)next == 1);
    return (uint32_t)next <= LINES_A_SECOND;
}

/* Sends the line to the callback, or to stderr. */
static void tell(janus_scheduler *scheduler, struct line *line, janus_panic_report *report)
{
    if (scheduler != NULL && scheduler->on_panic != NULL) {
        report->text = line->bytes + strlen("janusrt: ");
        scheduler->on_panic(scheduler->on_panic_argument, report);
        return;
    }
    if (scheduler != NULL && scheduler->quiet_panics) return;
    uint32_t left_out;
    if (!may_print(&left_out)) return; /* [tell-rate] */
    if (left_out > 0) {
        struct line note = {.used = 0};
        put(&note, "janusrt: %u panics are not shown: the limit is %d lines a second", left_out,
            LINES_A_SECOND);
        note.bytes[note.used++] = '\n';
        (void)jrt_write_all(STDERR_FILENO, note.bytes, note.used);
    }
    line->bytes[line->used++] = '\n';
    (void)jrt_write_all(STDERR_FILENO, line->bytes, line->used);
}

void jrt_tell_panic(const struct jrt_task *task, janus_panic_kind kind, const char *message,
                    const void *const *frames, unsigned frame_count)
{
    struct line        line = {.used = 0};
    janus_scheduler   *scheduler = jrt_worker_self()->scheduler;
    janus_panic_report report = {.task = jrt_task_id(task),
                                 .kind = kind,
                                 .message = message,
                                 .frames = frames,
                                 .frame_count = frame_count};
    jrt_name_again(report.name, sizeof report.name, jrt_task_name(task));
    if (task->site != NULL) {
        report.file = task->site->file;
        report.line = task->site->line;
    }
    if (scheduler->on_panic == NULL && scheduler->quiet_panics) return;
    put(&line, "janusrt: task %#llx \"%s\"", (unsigned long long)report.task, report.name);
    if (report.file != NULL) put(&line, " (%s:%d)", report.file, report.line);
    put(&line, " panicked: ");
    put_message(&line, message);
    for (unsigned i = 0; i < frame_count; i++) {
        put(&line, i == 0 ? "; at " : ", ");
        put_frame(&line, frames[i]);
    }
    tell(scheduler, &line, &report);
}

void jrt_tell_line(const janus_scheduler *scheduler, const char *who, const char *what)
{
    struct line line = {.used = 0};
    uint32_t    left_out;
    if (scheduler->quiet_panics || scheduler->on_panic != NULL || scheduler->world != NULL) return;
    if (!may_print(&left_out)) return; /* [tell-rate] */
    put(&line, "janusrt: %s: %s", who, what);
    line.bytes[line.used++] = '\n';
    (void)jrt_write_all(STDERR_FILENO, line.bytes, line.used);
}

void jrt_tell_callback(const char *what, const char *why)
{
    struct line        line = {.used = 0};
    struct jrt_worker *worker = jrt_worker_self();
    janus_panic_report report = {.kind = JANUS_PANIC_KIND_EXPLICIT, .message = why};
    jrt_name_again(report.name, sizeof report.name, what);
    put(&line, "janusrt: %s panicked: ", what);
    put_message(&line, why);
    tell(worker != NULL ? worker->scheduler : NULL, &line, &report);
}
