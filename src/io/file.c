/* SPDX-License-Identifier: MIT */
/*
 * Files: transfers that no edge announces.
 *
 * [file-helped]  A file is always ready, and reading it may wait for a disk. So a read first asks
 *   for what is in memory (RWF_NOWAIT). If that is nothing, and for every write, a helper makes the
 *   call. The kernel keeps the position, because other processes may share it.
 *
 * [file-polled]  Terminals and some devices can be polled, but know no RWF_NOWAIT. The call polls
 *   first, without waiting. If nothing is there, it waits for an edge, as a socket does, and a
 *   cancel ends that wait. Then a helper transfers. Somebody else may take the bytes in between.
 *   Then the helper waits for the next ones, and no cancel ends that.
 *
 * [file-written]  A write takes its bytes from what the capability allows, before it begins, and
 *   gives back what was not written. Another task may take the handle meanwhile. So the write holds
 *   the terms that it took from. A pipe or a socket that was opened under such a capability (the
 *   standard output) also comes here. No helper is needed for it.
 *
 * [file-slices]  A worker copies at most SLICE bytes from memory in one call, some 50 us. A longer
 *   read gets fewer bytes than it asked for.
 */
#include "io/file.h"

#include "base/options.h"
#include "host/file.h"
#include "means/call.h"

#include <errno.h>
#include <string.h>

enum { SLICE = 256 << 10 }; /* [file-slices] */

static janus_status late(const struct jrt_io *io, enum jrt_ready_way way)
{
    uint64_t deadline = jrt_load_acquire(&io->deadlines[way]); /* acquire: as in wait.c. */
    if (jrt_likely(deadline == JRT_NEVER)) return JANUS_OK;
    return jrt_clock_now_ns() >= deadline ? JANUS_DEADLINE : JANUS_OK;
}

static bool is_polled(const struct jrt_io *io)
{
    return io->kind != JANUS_IO_KIND_FILE && io->kind != JANUS_IO_KIND_DIRECTORY;
}

/* Helpers. */

static void run_job(void *argument)
{
    struct jrt_file_job *job = argument;
    job->result = job->run(job->argument);
}

janus_status jrt_file_help(ptrdiff_t (*run)(void *argument), void *argument, ptrdiff_t *out)
{
    struct jrt_file_job job = {.run = run, .argument = argument};
    janus_status        status = jrt_io_help(run_job, &job);
    if (status != JANUS_OK) return status;
    if (job.result < 0) return jrt_io_error((int)job.result);
    if (out != NULL) *out = job.result;
    return JANUS_OK;
}

janus_status jrt_file_call(janus_io handle, uint32_t right, uint32_t exclusive,
                           janus_status (*inside)(struct jrt_io *io, void *argument),
                           void        *argument)
{
    struct jrt_io *io = NULL;
    janus_status   status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_end(status);
    if (!jrt_io_is_none(handle)) status = jrt_io_enter(handle, right, exclusive, &io);
    if (status == JANUS_OK) {
        status = inside(io, argument);
        if (io != NULL) jrt_io_leave(io, exclusive);
    }
    if (status == JANUS_CANCELLED) jrt_io_pay_back();
    return jrt_io_end(status);
}

/* Transfers. */

struct transfer {
    int                 fd;
    bool                reads;
    const struct iovec *pieces;
    int                 count;
    uint64_t            offset;
};

static ptrdiff_t run_transfer(void *argument)
{
    struct transfer *transfer = argument;
    return transfer->reads
               ? jrt_file_read(transfer->fd, transfer->pieces, transfer->count, transfer->offset)
               : jrt_file_write(transfer->fd, transfer->pieces, transfer->count, transfer->offset);
}

static size_t length_of(const struct iovec *pieces, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pieces[i].iov_len;
    return bytes;
}

/* Takes bytes from what the handle's terms allow, and holds these, [file-written]. */
static janus_status take_bytes(struct jrt_io *io, uint64_t wanted, struct jrt_handle_toll *out)
{
    jrt_io_lock(io->cold);
    jrt_handle_hold(&io->cold->toll, out);
    jrt_io_unlock(io->cold);
    janus_status status = jrt_handle_take_bytes(out, wanted);
    if (status != JANUS_OK) jrt_handle_let_go(out);
    return status;
}

static void give_bytes(const struct jrt_handle_toll *held, uint64_t bytes)
{
    jrt_handle_give_bytes(held, bytes);
    jrt_handle_let_go(held);
}

static janus_status write_on_helper(struct jrt_io *io, struct transfer *transfer, size_t *out)
{
    struct jrt_handle_toll toll;
    uint64_t               wanted = length_of(transfer->pieces, transfer->count);
    ptrdiff_t              done = 0;
    janus_status           status = take_bytes(io, wanted, &toll);
    if (status != JANUS_OK) return status;
    status = jrt_file_help(run_transfer, transfer, &done);
    jrt_debug_invariant("file-written", (uint64_t)done <= wanted);
    give_bytes(&toll, wanted - (uint64_t)done);
    *out = (size_t)done;
    return status;
}

/* Reads what is in memory, [file-slices]. */
static ptrdiff_t read_slice(const struct transfer *transfer)
{
    struct iovec first = {transfer->pieces->iov_base, SLICE};
    size_t       bytes = 0;
    int          count = 0;
    while (count < transfer->count && transfer->pieces[count].iov_len <= SLICE - bytes) {
        bytes += transfer->pieces[count++].iov_len;
    }
    jrt_debug_invariant("file-slices", bytes <= SLICE);
    return jrt_file_try_read(transfer->fd, count > 0 ? transfer->pieces : &first,
                             count > 0 ? count : 1, transfer->offset);
}

static janus_status read_file(struct transfer *transfer, bool tries, size_t *out)
{
    ptrdiff_t done = read_slice(transfer); /* [file-helped] */
    if (done == -EAGAIN || done == -EOPNOTSUPP || done == -ENOSYS) {
        if (tries) return JANUS_WOULD_WAIT;
        janus_status status = jrt_file_help(run_transfer, transfer, &done);
        if (status != JANUS_OK) return status;
    }
    if (done < 0) return jrt_io_error((int)done);
    jrt_debug_invariant("file-helped",
                        (size_t)done <= length_of(transfer->pieces, transfer->count));
    *out = (size_t)done;
    return JANUS_OK;
}

static void count_bytes(struct jrt_io *io, enum jrt_ready_way way, size_t bytes)
{
    jrt_fetch_add_relaxed(&io->bytes[way], (uint64_t)bytes); /* relaxed: a number to show. */
}

/* One transfer of a file at an offset. */
static janus_status transfer_at(struct jrt_io *io, enum jrt_ready_way way,
                                const struct iovec *pieces, int count, uint64_t offset, bool tries,
                                size_t *out)
{
    bool            reads = way == JRT_READY_READ;
    struct transfer transfer = {io->fd, reads, pieces, count, offset};
    janus_status    status = late(io, way);
    if (status != JANUS_OK) return status;
    status = reads ? read_file(&transfer, tries, out) : write_on_helper(io, &transfer, out);
    if (status != JANUS_OK) return status;
    if (reads && *out == 0) return JANUS_CLOSED;
    count_bytes(io, way, *out);
    return JANUS_OK;
}

janus_status jrt_file_look(struct jrt_io *io, enum jrt_ready_way way)
{
    if (!is_polled(io)) return JANUS_OK;
    janus_status status = late(io, way);
    if (status != JANUS_OK) return status;
    (void)jrt_ready_take(&io->ready, way); /* [ready-try], [file-polled] */
    int ready = jrt_descriptor_poll(io->fd, 1u << way, 0);
    if (ready == 0) return JANUS_WOULD_WAIT;
    return ready > 0 ? JANUS_OK : jrt_io_error(ready);
}

janus_status jrt_file_wait(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why)
{
    for (;;) {
        janus_status status = jrt_file_look(io, way);
        if (status != JANUS_WOULD_WAIT) return status;
        status = jrt_io_await(io, way, why);
        if (status != JANUS_OK) return status;
    }
}

static janus_status transfer_polled(struct jrt_io *io, enum jrt_ready_way way,
                                    const struct iovec *pieces, int count, bool tries, size_t *out)
{
    bool            reads = way == JRT_READY_READ;
    struct transfer transfer = {io->fd, reads, pieces, count, JRT_FILE_POSITION};
    ptrdiff_t       done = 0;
    janus_status    status = JANUS_OK;
    if (tries && jrt_descriptor_poll(io->fd, 1u << way, 0) == 0) return JANUS_WOULD_WAIT;
    if (!tries) status = jrt_file_wait(io, way, reads ? JRT_WAIT_READ : JRT_WAIT_WRITE);
    if (status != JANUS_OK) return status;
    jrt_debug_invariant("file-polled", io->helped && is_polled(io));
    if (!reads) return write_on_helper(io, &transfer, out);
    status = jrt_file_help(run_transfer, &transfer, &done);
    *out = (size_t)done;
    return status == JANUS_OK && done == 0 ? JANUS_CLOSED : status;
}

/* Writes once to a pipe or a socket, as far as the capability allows, [file-written]. */
static ptrdiff_t send_metered(struct jrt_io *io, const struct iovec *pieces, int count,
                              janus_status *out_status)
{
    struct jrt_handle_toll toll;
    uint64_t               wanted = length_of(pieces, count);
    *out_status = take_bytes(io, wanted, &toll);
    if (*out_status != JANUS_OK) return 0;
    ptrdiff_t done = jrt_net_real.send(io->fd, io->socket, pieces, count);
    give_bytes(&toll, wanted - (uint64_t)(done > 0 ? done : 0));
    return done;
}

static janus_status transfer_metered(struct jrt_io *io, enum jrt_ready_way way,
                                     const struct iovec *pieces, int count, bool tries, size_t *out)
{
    bool reads = way == JRT_READY_READ;
    for (;;) {
        janus_status status = late(io, way);
        if (status != JANUS_OK) return status;
        jrt_io_take_note(io, way);
        ptrdiff_t done = reads ? jrt_net_real.receive(io->fd, io->socket, pieces, count)
                               : send_metered(io, pieces, count, &status);
        if (status != JANUS_OK) return status;
        if (done >= 0) {
            *out = (size_t)done;
            return reads && done == 0 ? JANUS_CLOSED : JANUS_OK;
        }
        if (done != -EAGAIN) return jrt_io_error((int)done);
        if (tries) return JANUS_WOULD_WAIT;
        status = jrt_io_await(io, way, reads ? JRT_WAIT_READ : JRT_WAIT_WRITE);
        if (status != JANUS_OK) return status;
    }
}

janus_status jrt_file_transfer(struct jrt_io *io, enum jrt_ready_way way,
                               const struct iovec *pieces, int count, bool tries, size_t *out)
{
    *out = 0;
    if (io->kind == JANUS_IO_KIND_PROCESS) return JANUS_UNAVAILABLE;
    if (!is_polled(io)) return transfer_at(io, way, pieces, count, JRT_FILE_POSITION, tries, out);
    bool         streams = io->socket || io->kind == JANUS_IO_KIND_PIPE; /* [file-written] */
    janus_status status =
        (streams ? transfer_metered : transfer_polled)(io, way, pieces, count, tries, out);
    count_bytes(io, way, *out);
    return status;
}

/* At a place. */

struct at {
    struct iovec piece;
    uint64_t     offset;
    size_t       done;
};

static bool is_place(uint64_t offset, size_t bytes)
{
    return offset <= INT64_MAX && bytes <= INT64_MAX - offset;
}

static janus_status read_inside(struct jrt_io *io, void *argument)
{
    struct at *at = argument;
    if (io->kind != JANUS_IO_KIND_FILE) return JANUS_UNAVAILABLE;
    return transfer_at(io, JRT_READY_READ, &at->piece, 1, at->offset, false, &at->done);
}

janus_status janus_file_read_at(janus_io file, uint64_t offset, void *to, size_t max,
                                size_t *out_got)
{
    struct at at = {.piece = {to, max}, .offset = offset};
    jrt_stack_check(); /* [stack-reserve] */
    if (to == NULL || max == 0 || out_got == NULL || !is_place(offset, max))
        return jrt_io_told(JANUS_INVALID);
    *out_got = 0;
    if (jrt_io_is_none(file)) return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_file_call(file, JANUS_IO_MAY_READ, 0, read_inside, &at);
    jrt_io_toll(at.done);
    *out_got = at.done;
    return jrt_io_told(status);
}

static janus_status write_inside(struct jrt_io *io, void *argument)
{
    struct at   *at = argument;
    janus_status status = JANUS_OK;
    if (io->kind != JANUS_IO_KIND_FILE) return JANUS_UNAVAILABLE;
    while (at->piece.iov_len > 0 && status == JANUS_OK) {
        size_t done = 0;
        status = transfer_at(io, JRT_READY_WRITE, &at->piece, 1, at->offset, false, &done);
        at->piece.iov_base = (char *)at->piece.iov_base + done;
        at->piece.iov_len -= done;
        at->offset += done;
        at->done += done;
        if (status == JANUS_OK && done == 0) status = JANUS_FULL;
    }
    return status;
}

janus_status janus_file_write_at(janus_io file, uint64_t offset, const void *from, size_t count,
                                 size_t *out_done)
{
    struct at at = {.piece = {(void *)from, count}, .offset = offset};
    jrt_stack_check(); /* [stack-reserve] */
    if (out_done != NULL) *out_done = 0;
    if ((from == NULL && count > 0) || !is_place(offset, count)) return jrt_io_told(JANUS_INVALID);
    if (jrt_io_is_none(file)) return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_file_call(file, JANUS_IO_MAY_WRITE, 0, write_inside, &at);
    if (out_done != NULL) *out_done = at.done;
    return jrt_io_told(status);
}

/* Other calls. */

janus_status janus_file_seek(janus_io file, uint64_t offset)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = jrt_io_pay_and_enter(file, 0, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    bool directory = io->kind == JANUS_IO_KIND_DIRECTORY;
    if (directory && offset != 0) {
        status = JANUS_INVALID;
    } else if (!directory && io->kind != JANUS_IO_KIND_FILE) {
        status = JANUS_UNAVAILABLE;
    } else {
        int error = jrt_file_seek(io->fd, offset);
        if (error != 0) status = jrt_io_error(error);
    }
    jrt_io_leave(io, 0);
    return jrt_io_told(status);
}

/* What a helper does with a descriptor. */
struct change {
    int              fd;
    bool             everything;
    uint64_t         bytes;
    janus_file_info *info;
};

static ptrdiff_t run_sync(void *argument)
{
    struct change *change = argument;
    return jrt_file_sync(change->fd, change->everything);
}

static janus_status sync_inside(struct jrt_io *io, void *argument)
{
    ((struct change *)argument)->fd = io->fd;
    if (!io->helped) return JANUS_UNAVAILABLE;
    janus_status status = jrt_file_help(run_sync, argument, NULL);
    return status == JANUS_INVALID ? JANUS_UNAVAILABLE : status; /* EINVAL: it has no disk */
}

janus_status janus_file_sync(janus_io file, bool everything)
{
    struct change change = {.everything = everything};
    jrt_stack_check(); /* [stack-reserve] */
    if (jrt_io_is_none(file)) return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(jrt_file_call(file, JANUS_IO_MAY_WRITE, 0, sync_inside, &change));
}

static ptrdiff_t run_truncate(void *argument)
{
    struct change *change = argument;
    return jrt_file_truncate(change->fd, change->bytes);
}

static janus_status truncate_inside(struct jrt_io *io, void *argument)
{
    ((struct change *)argument)->fd = io->fd;
    if (io->kind != JANUS_IO_KIND_FILE) return JANUS_UNAVAILABLE;
    struct jrt_handle_toll toll;
    janus_status           status = take_bytes(io, 1, &toll);
    if (status != JANUS_OK) return status;
    status = jrt_file_help(run_truncate, argument, NULL);
    give_bytes(&toll, status == JANUS_OK ? 0 : 1);
    return status;
}

janus_status janus_file_truncate(janus_io file, uint64_t bytes)
{
    struct change change = {.bytes = bytes};
    jrt_stack_check(); /* [stack-reserve] */
    if (jrt_io_is_none(file) || bytes > INT64_MAX) return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(jrt_file_call(file, JANUS_IO_MAY_WRITE, 0, truncate_inside, &change));
}

static ptrdiff_t run_inspect(void *argument)
{
    struct change *change = argument;
    return jrt_file_inspect(change->fd, change->info);
}

static janus_status inspect_inside(struct jrt_io *io, void *argument)
{
    ((struct change *)argument)->fd = io->fd;
    if (jrt_net_is_simulated(io->fd)) return JANUS_UNAVAILABLE;
    return jrt_file_help(run_inspect, argument, NULL);
}

janus_status janus_file_inspect(janus_io file, janus_file_info *out)
{
    janus_file_info info;
    struct change   change = {.info = &info};
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out))
        return jrt_io_told(JANUS_INVALID);
    if (jrt_io_is_none(file)) return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_file_call(file, 0, 0, inspect_inside, &change);
    if (status == JANUS_OK) jrt_struct_give(out, &info);
    return jrt_io_told(status);
}
