/* SPDX-License-Identifier: MIT */
/* Reading and writing: what arrives, in which pieces, and how streams end. */
#include "wire.h"

#include <sys/socket.h>

static void (*const makers[])(janus_io out[2]) = {wire_tcp, wire_pair};

enum { MAKERS = 2 };

static int64_t reads_what_was_written(void *argument)
{
    (void)argument;
    for (int i = 0; i < MAKERS; i++) {
        janus_io ends[2];
        char     bytes[16];
        size_t   got = 0;
        makers[i](ends);
        wire_put(ends[0], "hello", 5);
        CHECK_EQ(janus_io_read(ends[1], bytes, sizeof bytes, &got), JANUS_OK);
        CHECK(got >= 1 && got <= 5); /* a simulated network gives less */
        size_t rest = 5 - got;
        if (rest > 0) CHECK_EQ(janus_io_read_full(ends[1], bytes + got, rest, &got), JANUS_OK);
        CHECK(memcmp(bytes, "hello", 5) == 0);
        wire_close(ends);
    }
    return 0;
}

TEST("a read returns what the other end wrote") { rig_all(reads_what_was_written, NULL, 20); }

static int64_t one_byte_at_a_time(void *argument)
{
    (void)argument;
    janus_io      ends[2];
    unsigned char bytes[300];
    wire_tcp(ends);
    wire_fill(bytes, sizeof bytes, 0);
    wire_put(ends[0], bytes, sizeof bytes);
    for (unsigned i = 0; i < sizeof bytes; i++) CHECK_EQ(wire_get(ends[1]), wire_byte(i));
    wire_close(ends);
    return 0;
}

TEST("reads of one byte take a stream apart without losing a byte")
{
    rig_all(one_byte_at_a_time, NULL, 5);
}

struct echo {
    janus_io io;
    uint64_t rounds;
};

static int64_t echo(void *argument)
{
    struct echo *self = argument;
    for (uint64_t i = 0; i < self->rounds; i++) {
        unsigned char byte = (unsigned char)wire_get(self->io);
        wire_put(self->io, &byte, 1);
    }
    return 0;
}

static int64_t ping_pong(void *argument)
{
    (void)argument;
    for (int i = 0; i < MAKERS; i++) {
        janus_io     ends[2];
        janus_status status;
        makers[i](ends);
        struct echo self = {ends[1], 200};
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn(n, echo, &self), JANUS_OK);
            for (uint64_t k = 0; k < self.rounds; k++) {
                unsigned char byte = wire_byte(k);
                wire_put(ends[0], &byte, 1);
                CHECK_EQ(wire_get(ends[0]), byte);
            }
        }
        CHECK_EQ(status, JANUS_OK);
        wire_close(ends);
    }
    return 0;
}

TEST("two tasks answer each other over one connection") { rig_all(ping_pong, NULL, 5); }

/* K1: the end comes with the data, and the system tells one edge only. */
static int64_t data_and_end(void *argument)
{
    (void)argument;
    for (int i = 0; i < MAKERS; i++) {
        janus_io ends[2];
        char     bytes[64];
        size_t   got = 0, all = 0;
        makers[i](ends);
        wire_put(ends[0], "x", 1); /* registers the reader's end below */
        CHECK_EQ(wire_get(ends[1]), 'x');
        CHECK_EQ(janus_io_try_read(ends[1], bytes, sizeof bytes, &got), JANUS_WOULD_WAIT);
        wire_put(ends[0], "last words", 10);
        CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
        while (all < 10) {
            CHECK_EQ(janus_io_read(ends[1], bytes + all, sizeof bytes - all, &got), JANUS_OK);
            all += got;
        }
        CHECK(memcmp(bytes, "last words", 10) == 0);
        for (int k = 0; k < 3; k++) {
            got = 7;
            CHECK_EQ(janus_io_read(ends[1], bytes, sizeof bytes, &got), JANUS_CLOSED);
            CHECK_EQ(got, 0);
        }
        CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    }
    return 0;
}

TEST("data and the end in one segment: a large read gets the bytes, the next one CLOSED")
{
    rig_all(data_and_end, NULL, 20);
}

static int64_t wait_then_read_all(void *argument)
{
    const janus_io *io = argument;
    char            bytes[64];
    size_t          got = 0;
    int64_t         all = 0;
    janus_status    status;
    while ((status = janus_io_read(*io, bytes, sizeof bytes, &got)) == JANUS_OK) {
        all += (int64_t)got;
    }
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK_EQ(got, 0);
    return all;
}

/* The reader already waits when the data and the end come. */
static int64_t end_under_a_waiter(void *argument)
{
    (void)argument;
    for (int i = 0; i < MAKERS; i++) {
        janus_io      ends[2];
        janus_task_id reader;
        int64_t       all = 0;
        janus_status  status;
        makers[i](ends);
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn_with(n, wait_then_read_all, &ends[1], NULL, &reader), JANUS_OK);
            wire_await_waiter(ends[1], JANUS_IO_READ);
            wire_put(ends[0], "abcdef", 6);
            CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
            CHECK_EQ(janus_join(n, reader, &all), JANUS_OK);
        }
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(all, 6);
        CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    }
    return 0;
}

TEST("a reader that waits gets the last bytes and then the end")
{
    rig_all(end_under_a_waiter, NULL, 20);
}

/* A close with unread bytes resets the connection: the RST is behind the data. */
static int64_t reset_behind_data(void *argument)
{
    (void)argument;
    janus_io     ends[2];
    char         bytes[64];
    size_t       got = 0, all = 0;
    janus_status status;
    wire_tcp(ends);
    CHECK_EQ(janus_io_try_read(ends[1], bytes, sizeof bytes, &got), JANUS_WOULD_WAIT);
    wire_put(ends[1], "never read", 10);
    wire_put(ends[0], "data", 4);
    CHECK_EQ(janus_io_wait(ends[0], JANUS_IO_READ), JANUS_OK); /* it has arrived */
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    while ((status = janus_io_read(ends[1], bytes, sizeof bytes, &got)) == JANUS_OK) all += got;
    CHECK_EQ(status, JANUS_RESET);
    CHECK(all <= 4); /* the system may throw them away with the reset */
    status = janus_io_write(ends[1], "x", 1, NULL);
    CHECK(status == JANUS_BROKEN || status == JANUS_RESET);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    return 0;
}

TEST("a reset behind data is reported, and the reader does not hang")
{
    rig_all(reset_behind_data, NULL, 20);
}

static int64_t half_close(void *argument)
{
    (void)argument;
    enum { BYTES = 10 << 20 };
    const size_t  bytes = rig_few(BYTES);
    janus_io      ends[2];
    janus_task_id reader;
    int64_t       all = 0;
    char          byte;
    size_t        got;
    janus_status  status;
    char         *block = calloc(1, bytes);
    CHECK(block != NULL);
    wire_tcp(ends);
    CHECK_EQ(janus_io_shutdown(ends[0], JANUS_IO_WRITE), JANUS_OK);
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_CLOSED);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn_with(n, wait_then_read_all, &ends[0], NULL, &reader), JANUS_OK);
        wire_put(ends[1], block, bytes);
        CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_CLOSED);
        CHECK_EQ(janus_io_shutdown(ends[1], JANUS_IO_WRITE), JANUS_OK);
        CHECK_EQ(janus_join(n, reader, &all), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(all, (int64_t)bytes);
    CHECK_EQ(janus_io_write(ends[0], "x", 1, NULL), JANUS_BROKEN);
    wire_close(ends);
    free(block);
    return 0;
}

TEST("after a half-close reading has ended, and 10 MiB can still be written")
{
    rig_all(half_close, NULL, 1);
}

/* Full duplex. */

struct stream {
    janus_io io;
    uint64_t bytes;
};

static int64_t pour(void *argument)
{
    struct stream *self = argument;
    unsigned char  block[16384];
    for (uint64_t done = 0; done < self->bytes;) {
        uint64_t count = self->bytes - done;
        if (count > sizeof block - done % 7) count = sizeof block - done % 7;
        wire_fill(block, count, done);
        wire_put(self->io, block, count);
        done += count;
    }
    return 0;
}

static int64_t drink(void *argument)
{
    struct stream *self = argument;
    unsigned char  block[10000];
    for (uint64_t done = 0; done < self->bytes;) {
        size_t got = 0;
        CHECK_EQ(janus_io_read(self->io, block, sizeof block, &got), JANUS_OK);
        CHECK(got >= 1 && done + got <= self->bytes);
        wire_check(block, got, done);
        done += got;
    }
    return 0;
}

static int64_t full_duplex(void *argument)
{
    janus_io     ends[2];
    janus_status status;
    wire_tcp(ends);
    struct stream streams[2] = {{ends[0], *(uint64_t *)argument}, {ends[1], *(uint64_t *)argument}};
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 2; i++) {
            const janus_spawn_options *room = JANUS_SPAWN_OPTIONS(.stack_bytes = 64 << 10);
            CHECK_EQ(janus_spawn_with(n, pour, &streams[i], room, NULL), JANUS_OK);
            CHECK_EQ(janus_spawn_with(n, drink, &streams[i], room, NULL), JANUS_OK);
        }
    }
    CHECK_EQ(status, JANUS_OK);
    wire_close(ends);
    return 0;
}

TEST("a reader and a writer on each end move 64 MiB each way, and every byte is right")
{
    uint64_t bytes = rig_few(RIG_SLOW ? 4 << 20 : 64 << 20);
    rig_run(2, full_duplex, &bytes, 1);
    bytes = rig_few(4 << 20);
    rig_run(1, full_duplex, &bytes, 1);
    rig_run(8, full_duplex, &bytes, 1);
}

/* Two at one end. */

static int64_t read_one(void *argument) { return wire_get(*(janus_io *)argument); }

static int64_t second_reader(void *argument)
{
    (void)argument;
    janus_io      ends[2];
    janus_task_id first;
    janus_status  status;
    int64_t       byte = 0;
    wire_tcp(ends);
    JANUS_NURSERY(n, status)
    {
        char   bytes[4];
        size_t got;
        CHECK_EQ(janus_spawn_with(n, read_one, &ends[1], NULL, &first), JANUS_OK);
        wire_await_waiter(ends[1], JANUS_IO_READ);
        CHECK_EQ(janus_io_read(ends[1], bytes, 4, &got), JANUS_STATE);
        CHECK_EQ(janus_io_try_read(ends[1], bytes, 4, &got), JANUS_STATE);
        CHECK_EQ(janus_io_wait(ends[1], JANUS_IO_READ), JANUS_STATE);
        CHECK_EQ(got, 0);
        wire_put(ends[1], "w", 1); /* writing is another direction */
        CHECK_EQ(wire_get(ends[0]), 'w');
        wire_put(ends[0], "r", 1);
        CHECK_EQ(janus_join(n, first, &byte), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(byte, 'r');
    wire_close(ends);
    return 0;
}

TEST("a second reader gets STATE at once, and the first goes on")
{
    rig_all(second_reader, NULL, 20);
}

/* Pieces, tries, waits. */

static int64_t pieces(void *argument)
{
    (void)argument;
    janus_io       ends[2];
    char           bytes[8] = "";
    size_t         done = 0, got = 0, all = 0;
    janus_io_piece out[] = {{(void *)"ab", 2}, {NULL, 0}, {(void *)"cdef", 4}};
    janus_io_piece in[] = {{bytes, 3}, {NULL, 0}, {bytes + 3, 4}};
    wire_tcp(ends);
    CHECK_EQ(janus_io_writev(ends[0], out, 3, &done), JANUS_OK);
    CHECK_EQ(done, 6);
    CHECK_EQ(janus_io_readv(ends[1], in, 3, &got), JANUS_OK);
    CHECK(got >= 1 && got <= 6);
    all = got;
    if (all < 6) CHECK_EQ(janus_io_read_full(ends[1], bytes + all, 6 - all, &got), JANUS_OK);
    CHECK_STR(bytes, "abcdef");
    janus_io_piece many[JANUS_IO_PIECES_MAX + 1];
    for (int i = 0; i <= JANUS_IO_PIECES_MAX; i++) many[i] = (janus_io_piece){bytes, 1};
    CHECK_EQ(janus_io_readv(ends[1], many, JANUS_IO_PIECES_MAX + 1, &got), JANUS_INVALID);
    CHECK_EQ(janus_io_writev(ends[1], many, JANUS_IO_PIECES_MAX + 1, &got), JANUS_INVALID);
    CHECK_EQ(janus_io_readv(ends[1], in + 1, 1, &got), JANUS_INVALID);
    CHECK_EQ(janus_io_writev(ends[0], many, JANUS_IO_PIECES_MAX, &done), JANUS_OK);
    CHECK_EQ(done, JANUS_IO_PIECES_MAX);
    wire_close(ends);
    return 0;
}

TEST("vectored calls fill and empty their pieces in order, and refuse too many")
{
    rig_all(pieces, NULL, 5);
}

static int64_t tries(void *argument)
{
    (void)argument;
    janus_io ends[2];
    char     byte;
    size_t   got = 5, all = 0;
    char    *block = calloc(1, 1 << 16);
    wire_tcp(ends);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_io_try_read(ends[1], &byte, 1, &got), JANUS_WOULD_WAIT);
        CHECK_EQ(got, 0);
    }
    janus_status status;
    while ((status = janus_io_try_write(ends[0], block, 1 << 16, &got)) == JANUS_OK) all += got;
    CHECK_EQ(status, JANUS_WOULD_WAIT);
    CHECK_EQ(got, 0);
    CHECK(all > 0);
    for (size_t left = all; left > 0; left -= got) {
        size_t max = left < 1 << 16 ? left : 1 << 16;
        CHECK_EQ(janus_io_read(ends[1], block, max, &got), JANUS_OK);
    }
    CHECK_EQ(janus_io_wait(ends[0], JANUS_IO_WRITE), JANUS_OK);
    CHECK_EQ(janus_io_write(ends[0], "y", 1, NULL), JANUS_OK);
    CHECK_EQ(janus_io_wait(ends[1], JANUS_IO_READ), JANUS_OK);
    CHECK_EQ(wire_get(ends[1]), 'y');
    wire_close(ends);
    free(block);
    return 0;
}

TEST("tries never wait, and what they wrote is what the other end reads")
{
    rig_all(tries, NULL, 5);
}

static int64_t wait_and_read(void *argument)
{
    const janus_io *io = argument;
    char            byte;
    size_t          got;
    CHECK_EQ(janus_io_wait(*io, JANUS_IO_READ), JANUS_OK);
    CHECK_EQ(janus_io_try_read(*io, &byte, 1, &got), JANUS_OK);
    return byte;
}

static int64_t waits(void *argument)
{
    (void)argument;
    janus_io      ends[2];
    janus_task_id task;
    janus_status  status;
    int64_t       byte = 0;
    wire_tcp(ends);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 3; i++) {
            char letter = (char)('a' + i);
            CHECK_EQ(janus_spawn_with(n, wait_and_read, &ends[1], NULL, &task), JANUS_OK);
            wire_await_waiter(ends[1], JANUS_IO_READ);
            wire_put(ends[0], &letter, 1);
            CHECK_EQ(janus_join(n, task, &byte), JANUS_OK);
            CHECK_EQ(byte, letter);
            char   none;
            size_t got;
            CHECK_EQ(janus_io_try_read(ends[1], &none, 1, &got), JANUS_WOULD_WAIT);
        }
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    CHECK_EQ(janus_io_wait(ends[1], JANUS_IO_READ), JANUS_OK); /* the end is worth a try */
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    return 0;
}

TEST("a wait returns when a try succeeds, and takes no byte") { rig_all(waits, NULL, 10); }

static int64_t refuses(void *argument)
{
    (void)argument;
    janus_io ends[2], none = {{0, 0}};
    char     byte;
    size_t   got;
    wire_tcp(ends);
    CHECK_EQ(janus_io_read(none, &byte, 1, &got), JANUS_INVALID);
    CHECK_EQ(janus_io_read(ends[0], NULL, 1, &got), JANUS_INVALID);
    CHECK_EQ(janus_io_read(ends[0], &byte, 0, &got), JANUS_INVALID);
    CHECK_EQ(janus_io_read(ends[0], &byte, 1, NULL), JANUS_INVALID);
    CHECK_EQ(janus_io_write(ends[0], NULL, 1, &got), JANUS_INVALID);
    CHECK_EQ(janus_io_write(ends[0], NULL, 0, &got), JANUS_OK);
    CHECK_EQ(janus_io_wait(ends[0], JANUS_IO_BOTH), JANUS_INVALID);
    CHECK_EQ(janus_io_wait(ends[0], 0), JANUS_INVALID);
    CHECK_EQ(janus_io_shutdown(ends[0], 4), JANUS_INVALID);
    CHECK_EQ(janus_io_set_deadline(ends[0], 0, 1), JANUS_INVALID);
    CHECK_EQ(janus_accept(ends[0], &none, NULL), JANUS_CAP_RIGHT);
    wire_close(ends);
    return 0;
}

TEST("bad arguments get INVALID, and a stream cannot accept") { rig_all(refuses, NULL, 2); }
