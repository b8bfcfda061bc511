/* SPDX-License-Identifier: MIT */
/* Reading and writing, in all cases. The usual ones are in quick.c. */
#include "io/io.h"

#include "io/file.h"
#include "means/call.h"
#include "plat/net_unix.h"
#include "task/purse.h"
#include "task/worker.h"
#include "work/turn.h"

#include <errno.h>

static void count_bytes(struct jrt_io *io, enum jrt_ready_way way, ptrdiff_t bytes)
{
    /* relaxed, both: one writer at a time. Readers accept any value. */
    uint64_t before = jrt_load_relaxed(&io->bytes[way]);
    jrt_store_relaxed(&io->bytes[way], before + (uint64_t)bytes); /* relaxed: as above. */
}

static size_t length_of(const struct iovec *pieces, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pieces[i].iov_len;
    return bytes;
}

static janus_status late(const struct jrt_io *io, enum jrt_ready_way way)
{
    uint64_t deadline = jrt_load_acquire(&io->deadlines[way]); /* acquire: as in wait.c. */
    if (jrt_likely(deadline == JRT_NEVER)) return JANUS_OK;
    return jrt_clock_now_ns() >= deadline ? JANUS_DEADLINE : JANUS_OK;
}

/* *out_parted is set if a short read is no proof that nothing is left, [io-drained]. */
static inline ptrdiff_t receive(const struct jrt_io *io, const struct iovec *pieces, int count,
                                bool *out_parted)
{
    if (jrt_unlikely(io->local)) return jrt_unix_read(io->fd, pieces, count, out_parted);
    return jrt_net()->receive(io->fd, io->socket, pieces, count);
}

/* Receives or sends once. The caller has entered and paid. */
static janus_status transfer(struct jrt_io *io, enum jrt_ready_way way, const struct iovec *pieces,
                             int count, bool tries, size_t *out)
{
    size_t       wanted = count == 1 ? pieces->iov_len : length_of(pieces, count);
    janus_status status = late(io, way);
    bool         tried = false;
    while (status == JANUS_OK) {
        if (io->drained[way] == JRT_IO_UNKNOWN || jrt_io_worth_trying(io, way) ||
            (tries && !tried)) {
            bool      parted = false;
            ptrdiff_t done = way == JRT_READY_READ
                                 ? receive(io, pieces, count, &parted)
                                 : jrt_net()->send(io->fd, io->socket, pieces, count);
            tried = true;
            io->drained[way] = JRT_IO_UNKNOWN;
            if (done > 0) {
                bool is_short = (size_t)done < wanted && io->kind == JANUS_IO_KIND_STREAM;
                if (is_short && !parted) io->drained[way] = JRT_IO_SHORT;
                count_bytes(io, way, done);
                *out = (size_t)done;
                return JANUS_OK;
            }
            if (done == 0) { /* the end, or a datagram of no bytes */
                bool ends = way == JRT_READY_READ && io->kind != JANUS_IO_KIND_DATAGRAM;
                return ends ? JANUS_CLOSED : JANUS_OK;
            }
            if (done != -EAGAIN) return jrt_io_error((int)done);
            io->drained[way] = JRT_IO_EMPTY;
        }
        if (tries) return JANUS_WOULD_WAIT;
        status = jrt_io_await(io, way, way == JRT_READY_READ ? JRT_WAIT_READ : JRT_WAIT_WRITE);
    }
    return status;
}

/* Reading. */

/* Ends a read that has entered and paid. */
static janus_status end_read(struct jrt_io *io, janus_status status, size_t got)
{
    jrt_io_leave(io, JRT_IO_READER);
    jrt_io_toll(got);
    if (jrt_likely(status == JANUS_OK)) return JANUS_OK;
    if (status != JANUS_CLOSED) jrt_io_pay_back();
    return jrt_io_end(status);
}

static janus_status read_once(janus_io handle, const struct iovec *pieces, int count, bool tries,
                              size_t *out_got)
{
    struct jrt_io *io = NULL;
    *out_got = 0;
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return status;
    status = jrt_io_enter(handle, JANUS_IO_MAY_READ, JRT_IO_READER, &io);
    if (status != JANUS_OK) {
        jrt_io_pay_back();
        return jrt_io_end(status);
    }
    status = (io->helped ? jrt_file_transfer : transfer)(io, JRT_READY_READ, pieces, count, tries,
                                                         out_got);
    return end_read(io, status, *out_got);
}

janus_status jrt_io_read_on(struct jrt_io *io, void *to, size_t max, size_t *out_got,
                            janus_status status)
{
    struct iovec piece = {to, max};
    *out_got = 0;
    if (status == JANUS_OK) {
        status = (io->helped ? jrt_file_transfer : transfer)(io, JRT_READY_READ, &piece, 1, false,
                                                             out_got);
    }
    return jrt_io_told_by(end_read(io, status, *out_got), "janus_io_read");
}

janus_status jrt_io_read_slow(janus_io handle, void *to, size_t max, size_t *out_got)
{
    struct iovec piece = {to, max};
    jrt_stack_check(); /* [stack-reserve] */
    bool valid = to != NULL && max > 0 && max <= PTRDIFF_MAX && out_got != NULL;
    return jrt_io_told_by(valid ? read_once(handle, &piece, 1, false, out_got) : JANUS_INVALID,
                          "janus_io_read");
}

janus_status janus_io_try_read(janus_io io, void *to, size_t max, size_t *out_got)
{
    struct iovec piece = {to, max};
    jrt_stack_check(); /* [stack-reserve] */
    if (to == NULL || max == 0 || max > PTRDIFF_MAX || out_got == NULL)
        return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(read_once(io, &piece, 1, true, out_got));
}

janus_status janus_io_read_full(janus_io io, void *to, size_t count, size_t *out_got)
{
    size_t       all = 0;
    janus_status status = JANUS_OK;
    jrt_stack_check(); /* [stack-reserve] */
    if ((to == NULL && count > 0) || count > PTRDIFF_MAX) return jrt_io_told(JANUS_INVALID);
    if (out_got != NULL) *out_got = 0;
    while (all < count && status == JANUS_OK) {
        struct iovec piece = {(char *)to + all, count - all};
        size_t       got = 0;
        status = read_once(io, &piece, 1, false, &got);
        all += got;
        if (out_got != NULL) *out_got = all; /* also for a task that ends in the next call */
    }
    return jrt_io_told(status);
}

/* Copies pieces; the first of them begins at `from`. Returns how many have bytes. -1: too long. */
static int copy_pieces(const janus_io_piece *pieces, uint32_t count, size_t from,
                       struct iovec out[JANUS_IO_PIECES_MAX])
{
    int    filled = 0;
    size_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].count > PTRDIFF_MAX - all) return -1;
        if (pieces[i].bytes == NULL && pieces[i].count > 0) return -1;
        all += pieces[i].count;
        if (from >= pieces[i].count) {
            from -= pieces[i].count;
            continue;
        }
        out[filled].iov_base = (char *)pieces[i].bytes + from;
        out[filled++].iov_len = pieces[i].count - from;
        from = 0;
    }
    return filled;
}

janus_status janus_io_readv(janus_io io, const janus_io_piece *pieces, uint32_t count,
                            size_t *out_got)
{
    struct iovec vector[JANUS_IO_PIECES_MAX];
    jrt_stack_check(); /* [stack-reserve] */
    if (pieces == NULL || count > JANUS_IO_PIECES_MAX || out_got == NULL)
        return jrt_io_told(JANUS_INVALID);
    int filled = copy_pieces(pieces, count, 0, vector);
    if (filled <= 0) return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(read_once(io, vector, filled, false, out_got));
}

/* Writing. */

/* A write of several transfers: what is left of it. */
struct writing {
    janus_io              handle;
    const janus_io_piece *pieces;
    uint32_t              count;
    size_t                all, done;
    bool                  tries;
};

/* One transfer of what is left. Apart, because its array is large. */
__attribute__((noinline)) static janus_status write_many(struct jrt_io        *io,
                                                         const struct writing *writing,
                                                         size_t               *out_done)
{
    struct iovec vector[JANUS_IO_PIECES_MAX];
    int          filled = copy_pieces(writing->pieces, writing->count, writing->done, vector);
    return (io->helped ? jrt_file_transfer : transfer)(io, JRT_READY_WRITE, vector, filled,
                                                       writing->tries, out_done);
}

static janus_status write_one(struct jrt_io *io, const struct writing *writing, size_t *out_done)
{
    if (jrt_unlikely(writing->count != 1 || io->helped)) return write_many(io, writing, out_done);
    struct iovec piece = {(char *)writing->pieces->bytes + writing->done,
                          writing->all - writing->done};
    return transfer(io, JRT_READY_WRITE, &piece, 1, writing->tries, out_done);
}

/* Writes until all is done, or the task cannot pay at once. The caller has paid for the first
 * transfer and entered. */
static janus_status write_inside(struct jrt_io *io, struct writing *writing, bool *out_paid)
{
    for (;;) {
        size_t       done = 0;
        janus_status status = write_one(io, writing, &done);
        *out_paid = status != JANUS_OK;
        writing->done += done;
        if (status != JANUS_OK || writing->done == writing->all || writing->tries) return status;
        if (!jrt_io_pay_more(done)) return JANUS_OK;
        *out_paid = true;
    }
}

/* Writes as write_inside, and leaves. */
static janus_status write_and_leave(struct jrt_io *io, struct writing *writing, size_t *out_done)
{
    bool         unused = true;
    janus_status status = write_inside(io, writing, &unused);
    jrt_io_leave(io, JRT_IO_WRITER);
    if (out_done != NULL) *out_done = writing->done; /* before the task may end */
    if (unused) jrt_io_pay_back();
    return jrt_io_end(status);
}

static janus_status write_all(struct writing *writing, size_t *out_done)
{
    janus_status status = JANUS_OK;
    while (writing->done < writing->all && status == JANUS_OK) {
        struct jrt_io *io = NULL;
        status = jrt_io_pay(writing->all - writing->done);
        if (status != JANUS_OK) return status;
        status = jrt_io_enter(writing->handle, JANUS_IO_MAY_WRITE, JRT_IO_WRITER, &io);
        if (status != JANUS_OK) {
            jrt_io_pay_back();
            return jrt_io_end(status);
        }
        status = write_and_leave(io, writing, out_done);
        if (writing->tries) break;
    }
    return status;
}

janus_status jrt_io_write_on(janus_io handle, struct jrt_io *io, const void *from, size_t count,
                             size_t *out_done, ptrdiff_t sent)
{
    janus_io_piece piece = {(void *)from, count};
    struct writing writing = {.handle = handle, .pieces = &piece, .count = 1, .all = count};
    janus_status   status = JANUS_OK;
    if (out_done != NULL) *out_done = 0;
    if (sent > 0) { /* short: what is left is a transfer of its own */
        io->drained[JRT_READY_WRITE] = JRT_IO_SHORT;
        count_bytes(io, JRT_READY_WRITE, sent);
        writing.done = (size_t)sent;
        if (out_done != NULL) *out_done = writing.done; /* before the task may end */
        if (!jrt_io_pay_more(writing.done)) {
            jrt_io_leave(io, JRT_IO_WRITER);
            return jrt_io_told_by(write_all(&writing, out_done), "janus_io_write");
        }
    } else if (sent == -EAGAIN) {
        io->drained[JRT_READY_WRITE] = JRT_IO_EMPTY;
    } else if (sent < 0) {
        jrt_io_leave(io, JRT_IO_WRITER);
        jrt_io_pay_back();
        return jrt_io_told_by(jrt_io_error((int)sent), "janus_io_write");
    }
    status = write_and_leave(io, &writing, out_done);
    if (status == JANUS_OK) status = write_all(&writing, out_done);
    return jrt_io_told_by(status, "janus_io_write");
}

static janus_status write_pieces(janus_io io, const janus_io_piece *pieces, uint32_t count,
                                 bool tries, size_t *out_done)
{
    struct writing writing = {.handle = io, .pieces = pieces, .count = count, .tries = tries};
    if (out_done != NULL) *out_done = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].bytes == NULL && pieces[i].count > 0) return JANUS_INVALID;
        if (pieces[i].count > PTRDIFF_MAX - writing.all) return JANUS_INVALID;
        writing.all += pieces[i].count;
    }
    return write_all(&writing, out_done);
}

janus_status jrt_io_write_slow(janus_io handle, const void *from, size_t count, size_t *out_done)
{
    janus_io_piece piece = {(void *)from, count};
    jrt_stack_check(); /* [stack-reserve] */
    struct writing writing = {.handle = handle, .pieces = &piece, .count = 1, .all = count};
    if (out_done != NULL) *out_done = 0;
    bool valid = (from != NULL || count == 0) && count <= PTRDIFF_MAX;
    return jrt_io_told_by(valid ? write_all(&writing, out_done) : JANUS_INVALID, "janus_io_write");
}

janus_status janus_io_try_write(janus_io io, const void *from, size_t count, size_t *out_done)
{
    janus_io_piece piece = {(void *)from, count};
    jrt_stack_check(); /* [stack-reserve] */
    if (out_done == NULL) return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(write_pieces(io, &piece, 1, true, out_done));
}

janus_status janus_io_writev(janus_io io, const janus_io_piece *pieces, uint32_t count,
                             size_t *out_done)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (pieces == NULL || count > JANUS_IO_PIECES_MAX) return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(write_pieces(io, pieces, count, false, out_done));
}

/* Waiting. */

janus_status janus_io_wait(janus_io handle, uint32_t way)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (way != JANUS_IO_READ && way != JANUS_IO_WRITE) return jrt_io_told(JANUS_INVALID);
    bool               reads = way == JANUS_IO_READ;
    enum jrt_ready_way which = reads ? JRT_READY_READ : JRT_READY_WRITE;
    uint32_t           exclusive = reads ? JRT_IO_READER : JRT_IO_WRITER;
    janus_status       status = jrt_io_pay_op();
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    status = jrt_io_enter(handle, way, exclusive, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    status = late(io, which);
    enum jrt_wait why = reads ? JRT_WAIT_READ : JRT_WAIT_WRITE;
    if (status == JANUS_OK) {
        status = io->helped ? jrt_file_wait(io, which, why) : jrt_io_await_worth(io, which, why);
    }
    jrt_io_leave(io, exclusive);
    return jrt_io_told(jrt_io_end(status));
}
