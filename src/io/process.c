/* SPDX-License-Identifier: MIT */
/*
 * Child processes as handles.
 *
 * [process-held]  A handle owns a struct jrt_process. A wait asks the system whether the child has
 *   ended, and then waits for an edge of the pidfd. The answer stays in the record, so that the
 *   next wait gets it, too. Closing abandons the record: the child is killed, unless it is
 *   detached, and collected by host/process_linux.c.
 */
#include "io/io.h"

#include "base/options.h"
#include "host/process.h"
#include "means/call.h"
#include "means/trouble.h"

#include <errno.h>
#include <string.h>

enum { HANDLE_BYTES = 1024 }; /* memory charged for a process */

struct start {
    janus_process_options   options;
    struct jrt_process_plan plan;
    struct jrt_process     *process;
    struct jrt_io          *shared[3], *directory; /* entered */
    struct jrt_handle_toll  toll, pipe_tolls[3];
    bool                    pipes[3];
    int                     ours[3], childs[3]; /* of new pipes */
    int                     error;
};

static bool is_pipe(const struct start *start, int i)
{
    return start->options.streams[i] == JANUS_PROCESS_STREAM_PIPE;
}

static bool is_sane(const char *path, const char *const *arguments, const struct start *start,
                    const janus_io *out, const janus_io *out_pipes)
{
    if (path == NULL || path[0] == '\0' || arguments == NULL || arguments[0] == NULL) return false;
    for (int i = 0; i < 3; i++) {
        if ((unsigned)start->options.streams[i] > JANUS_PROCESS_STREAM_HANDLE) return false;
        if (is_pipe(start, i) && out_pipes == NULL) return false;
    }
    return out != NULL;
}

/* The tolls. */

static void return_tolls(struct start *start)
{
    jrt_handle_closed(&start->toll);
    for (int i = 0; i < 3; i++) {
        if (start->pipes[i]) jrt_handle_closed(&start->pipe_tolls[i]);
    }
}

static janus_status take_tolls(struct start *start)
{
    struct jrt_handle_ask ask = {.name = start->plan.path, .bytes = HANDLE_BYTES};
    struct jrt_handle_ask pipe = {.bytes = HANDLE_BYTES / 2};
    bool                  kept = start->options.kept;
    janus_status status = jrt_handle_may_open(JANUS_CAP_KIND_PROCESS, JANUS_RIGHT_PROCESS_SPAWN,
                                              &ask, kept, &start->toll);
    if (status != JANUS_OK) return status;
    if (start->options.detached && jrt_handle_is_bounded(&start->toll)) status = JANUS_CAP_LIMIT;
    for (int i = 0; i < 3 && status == JANUS_OK; i++) {
        if (!is_pipe(start, i)) continue;
        status = jrt_handle_may_open(JANUS_CAP_KIND_NET, 0, &pipe, kept, &start->pipe_tolls[i]);
        start->pipes[i] = status == JANUS_OK;
    }
    if (status != JANUS_OK) return_tolls(start);
    return status;
}

/* The caller's handles. */

static void leave_handles(const struct start *start)
{
    for (int i = 0; i < 3; i++) {
        if (start->shared[i] != NULL) jrt_io_leave(start->shared[i], 0);
    }
    if (start->directory != NULL) jrt_io_leave(start->directory, 0);
}

static janus_status enter_stream(struct start *start, int i)
{
    uint32_t way = i == 0 ? JANUS_IO_MAY_READ : JANUS_IO_MAY_WRITE;
    switch (start->options.streams[i]) {
    case JANUS_PROCESS_STREAM_INHERITED: start->plan.streams[i] = JRT_PROCESS_INHERITED; break;
    case JANUS_PROCESS_STREAM_HANDLE: {
        janus_status status = jrt_io_enter(start->options.handles[i], way, 0, &start->shared[i]);
        if (status != JANUS_OK) return status;
        start->plan.streams[i] = start->shared[i]->fd;
        /* relaxed: read when all have left, handle.c. */
        jrt_store_relaxed(&start->shared[i]->shared, true);
        break;
    }
    default: start->plan.streams[i] = JRT_PROCESS_NOWHERE; break;
    }
    return JANUS_OK;
}

static janus_status enter_handles(struct start *start)
{
    janus_status status = JANUS_OK;
    start->plan.directory = -1;
    for (int i = 0; i < 3 && status == JANUS_OK; i++) status = enter_stream(start, i);
    if (status == JANUS_OK && !jrt_io_is_none(start->options.directory)) {
        status = jrt_io_enter(start->options.directory, 0, 0, &start->directory);
        if (status == JANUS_OK) {
            start->plan.directory = start->directory->fd;
            if (start->directory->kind != JANUS_IO_KIND_DIRECTORY) status = JANUS_STATE;
        }
    }
    if (status != JANUS_OK) leave_handles(start);
    return status;
}

/* Starting. */

static void close_pipes(struct start *start, bool ours)
{
    for (int i = 0; i < 3; i++) {
        if (start->childs[i] >= 0) (void)jrt_net_real.close(start->childs[i]);
        if (ours && start->ours[i] >= 0) (void)jrt_net_real.close(start->ours[i]);
        start->childs[i] = -1;
    }
}

static void run_start(void *argument)
{
    struct start *start = argument;
    start->error = 0;
    for (int i = 0; i < 3; i++) start->ours[i] = start->childs[i] = -1;
    for (int i = 0; i < 3 && start->error == 0; i++) {
        if (!is_pipe(start, i)) continue;
        start->error = jrt_process_pipe(i == 0, &start->ours[i], &start->childs[i]);
        start->plan.streams[i] = start->childs[i];
    }
    if (start->error == 0) start->error = jrt_process_start(&start->plan, &start->process);
    close_pipes(start, start->error != 0);
}

/* Gives names to our ends. On an error closes them all. */
static janus_status name_pipes(struct start *start, janus_io out[3])
{
    janus_status status = JANUS_OK;
    for (int i = 0; i < 3; i++) {
        if (!start->pipes[i]) continue;
        struct jrt_io_plan plan = {.kind = JANUS_IO_KIND_PIPE,
                                   .fd = start->ours[i],
                                   .rights = (i == 0 ? JANUS_IO_MAY_WRITE : JANUS_IO_MAY_READ) |
                                             JANUS_IO_MAY_CLOSE,
                                   .kept = start->options.kept,
                                   .name = start->options.name};
        if (status == JANUS_OK) {
            status = jrt_io_make(&plan, &start->pipe_tolls[i], &out[i]);
        } else {
            jrt_handle_closed(&start->pipe_tolls[i]);
        }
        if (status != JANUS_OK) (void)jrt_net_real.close(start->ours[i]);
    }
    for (int i = 0; i < 3 && status != JANUS_OK; i++) (void)janus_io_close(out[i]);
    return status;
}

static janus_status name_process(struct start *start, janus_io *out, janus_io *out_pipes)
{
    janus_io           pipes[3] = {{{0, 0}}};
    struct jrt_io_plan plan = {.kind = JANUS_IO_KIND_PROCESS,
                               .fd = start->process->fd,
                               .helped = true,
                               .shared = true, /* the reaper keeps it open */
                               .process = start->process,
                               .detached = start->options.detached,
                               .kept = start->options.kept,
                               .name = start->options.name};
    janus_status       status = name_pipes(start, pipes);
    if (status != JANUS_OK) {
        jrt_handle_closed(&start->toll);
    } else {
        status = jrt_io_make(&plan, &start->toll, out);
        for (int i = 0; i < 3 && status != JANUS_OK; i++) (void)janus_io_close(pipes[i]);
    }
    if (status != JANUS_OK) {
        jrt_process_abandon(start->process, true);
        return status;
    }
    if (out_pipes != NULL) memcpy(out_pipes, pipes, sizeof pipes);
    return JANUS_OK;
}

static janus_status start_it(struct start *start, janus_io *out, janus_io *out_pipes)
{
    janus_status status = take_tolls(start);
    if (status != JANUS_OK) return status;
    status = enter_handles(start);
    if (status == JANUS_OK) {
        status = jrt_io_help(run_start, start);
        leave_handles(start);
        if (status == JANUS_OK && start->error != 0) status = jrt_io_error(start->error);
    }
    if (status != JANUS_OK) {
        return_tolls(start);
        return status;
    }
    return name_process(start, out, out_pipes);
}

janus_status janus_process_start(const char *path, const char *const *arguments,
                                 const janus_process_options *given, janus_io *out,
                                 janus_io *out_pipes)
{
    struct start start;
    jrt_stack_check(); /* [stack-reserve] */
    memset(&start, 0, sizeof start);
    if (!jrt_io_options_read(given, &start.options, sizeof start.options) ||
        !is_sane(path, arguments, &start, out, out_pipes)) {
        return jrt_io_told(JANUS_INVALID);
    }
    if (jrt_world_now() != NULL) return jrt_io_told(jrt_trouble_simulated("child processes"));
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    start.plan.path = path;
    start.plan.arguments = arguments;
    start.plan.environment = start.options.environment;
    start.plan.search = start.options.search;
    status = start_it(&start, out, out_pipes);
    if (status < 0) (void)jrt_trouble_about(status, JRT_SUBJECT_PATH, path);
    if (status == JANUS_CANCELLED) jrt_io_pay_back();
    return jrt_io_told(jrt_io_end(status));
}

/* Using. */

/* Leaves a handle that is no process. */
static janus_status check_kind(struct jrt_io *io, uint32_t exclusive)
{
    if (io->kind == JANUS_IO_KIND_PROCESS) return JANUS_OK;
    jrt_io_leave(io, exclusive);
    return JANUS_STATE;
}

static janus_status pay_and_enter(janus_io handle, uint32_t right, uint32_t exclusive,
                                  struct jrt_io **out)
{
    janus_status status = jrt_io_pay_and_enter(handle, right, exclusive, out);
    if (status != JANUS_OK) return status;
    status = check_kind(*out, exclusive);
    if (status != JANUS_OK) jrt_io_pay_back();
    return status;
}

static janus_status await_end(struct jrt_io *io, janus_process_end *out)
{
    struct jrt_process *process = io->cold->process;
    jrt_debug_invariant("process-held", process != NULL && process->fd == io->fd);
    for (;;) {
        (void)jrt_ready_take(&io->ready, JRT_READY_READ); /* [ready-try], [process-held] */
        jrt_io_lock(io->cold); /* janus_process_inspect and janus_process_signal look, too */
        int ended = jrt_process_look(process);
        *out = process->end;
        jrt_io_unlock(io->cold);
        if (ended < 0) return jrt_io_error(ended);
        if (ended > 0) return JANUS_OK;
        janus_status status = jrt_io_await(io, JRT_READY_READ, JRT_WAIT_PROCESS);
        if (status != JANUS_OK) return status;
    }
}

janus_status janus_process_wait(janus_io handle, janus_process_end *out)
{
    struct jrt_io    *io = NULL;
    janus_process_end end = {0, 0};
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL) return jrt_io_told(JANUS_INVALID);
    janus_status status = pay_and_enter(handle, JANUS_IO_MAY_READ, JRT_IO_READER, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    status = await_end(io, &end);
    jrt_io_leave(io, JRT_IO_READER);
    if (status == JANUS_OK) *out = end;
    return jrt_io_told(jrt_io_end(status));
}

janus_status janus_process_signal(janus_io handle, int number)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (number < 0 || number > 64) return jrt_io_told(JANUS_INVALID);
    janus_status status = pay_and_enter(handle, JANUS_IO_MAY_WRITE, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    jrt_io_lock(io->cold);
    int error = jrt_process_signal(io->cold->process, number);
    jrt_io_unlock(io->cold);
    if (error != 0) status = error == -ESRCH ? JANUS_CLOSED : jrt_io_error(error);
    jrt_io_leave(io, 0);
    return jrt_io_told(status);
}

janus_status janus_process_inspect(janus_io handle, janus_process_info *out)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out))
        return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_io_enter(handle, 0, 0, &io);
    if (status == JANUS_OK) status = check_kind(io, 0);
    if (status != JANUS_OK) return jrt_io_told(status);
    const struct jrt_process *process = io->cold->process;
    jrt_io_lock(io->cold);
    janus_process_info info = {.id = process->id, .ended = process->ended, .end = process->end};
    jrt_io_unlock(io->cold);
    jrt_io_leave(io, 0);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

void jrt_io_process_end(struct jrt_io_cold *cold)
{
    jrt_process_abandon(cold->process, !cold->detached);
}
