/* SPDX-License-Identifier: MIT */
/* Helpers for tests of descriptors: connections over loopback, and bytes that can be checked. */
#ifndef JANUSRT_TESTS_IO_WIRE_H
#define JANUSRT_TESTS_IO_WIRE_H

#include "../task/rig.h"

#include <dirent.h>
#include <janusrt/net.h>
#include <string.h>

/* A listener on a port that the system chooses. */
static inline janus_io wire_listen(janus_address *out_at)
{
    janus_address at;
    janus_io      listener;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
    CHECK_EQ(janus_listen(&at, NULL, &listener), JANUS_OK);
    CHECK_EQ(janus_io_local(listener, out_at), JANUS_OK);
    return listener;
}

/* Two ends of a TCP connection. The calling task owns both. */
static inline void wire_tcp(janus_io out[2])
{
    janus_address at;
    janus_io      listener = wire_listen(&at);
    CHECK_EQ(janus_connect(&at, NULL, &out[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &out[1], NULL), JANUS_OK);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
}

static inline void wire_pair(janus_io out[2]) { CHECK_EQ(janus_io_pair(NULL, out), JANUS_OK); }

static inline void wire_close(const janus_io ends[2])
{
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
}

/* Writes everything. */
static inline void wire_put(janus_io io, const void *bytes, size_t count)
{
    size_t done = 0;
    CHECK_EQ(janus_io_write(io, bytes, count, &done), JANUS_OK);
    CHECK_EQ(done, count);
}

/* Reads one byte. */
static inline int wire_get(janus_io io)
{
    unsigned char byte = 0;
    size_t        got = 0;
    CHECK_EQ(janus_io_read(io, &byte, 1, &got), JANUS_OK);
    CHECK_EQ(got, 1);
    return byte;
}

/* The n-th byte of a stream. */
static inline unsigned char wire_byte(uint64_t n)
{
    n ^= n >> 9;
    return (unsigned char)(n * 31 + (n >> 8) * 7 + 3);
}

static inline void wire_fill(unsigned char *bytes, size_t count, uint64_t from)
{
    for (size_t i = 0; i < count; i++) bytes[i] = wire_byte(from + i);
}

static inline void wire_check(const unsigned char *bytes, size_t count, uint64_t from)
{
    for (size_t i = 0; i < count; i++) CHECK_EQ(bytes[i], wire_byte(from + i));
}

/* Yields until somebody waits there, in these directions. Shielded as rig_wait. */
static inline void wire_await_waiter(janus_io io, uint32_t ways)
{
    uint64_t      limit = janus_now_ns() + rig_patience;
    janus_io_info info = JANUS_IO_INFO();
    janus_shield_begin();
    do {
        JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_io_inspect(io, &info), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    } while ((info.waits & ways) != ways);
    janus_shield_end();
}

/* The number of open descriptors of the process. */
static inline int wire_descriptors(void)
{
    int  count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count - 3; /* ".", ".." and the folder */
}

/* The number of open sockets: without the sets of workers, which come and go. */
static inline int wire_sockets(void)
{
    int            count = 0;
    DIR           *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        char    target[16] = {0};
        ssize_t got = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        count += got > 0 && strncmp(target, "socket:", 7) == 0;
    }
    closedir(folder);
    return count;
}

/* Serves a listener until it is closed: gives back every byte. */
static inline int64_t wire_echo(janus_io io, void *argument)
{
    char   byte;
    size_t got;
    (void)argument;
    while (janus_io_read(io, &byte, 1, &got) == JANUS_OK) {
        if (janus_io_write(io, &byte, 1, NULL) != JANUS_OK) break;
    }
    return 0;
}

static inline int64_t wire_serve_echo(void *listener)
{
    return janus_serve(*(janus_io *)listener, wire_echo, NULL, NULL, NULL);
}

#endif
