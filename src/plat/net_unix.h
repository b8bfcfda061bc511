/* SPDX-License-Identifier: MIT */
/* What only descriptors of the real system have: a kind, credentials of the other end, and the way
 * to travel as messages. */
#ifndef JRT_PLAT_NET_UNIX_H
#define JRT_PLAT_NET_UNIX_H

#include <janusrt/net.h>
#include <sys/uio.h>

/* 0, or -errno. */
int jrt_unix_credentials(int fd, janus_credentials *out);

/* Sends a descriptor with one byte. 0, or -errno. */
int jrt_unix_send(int fd, int passed, uint8_t byte);

/* Receives one byte, and the descriptor that came with it; *out_passed is -1 if none did. Further
 * descriptors are closed. 1: it came. 0: the end. -errno. */
int jrt_unix_receive(int fd, int *out_passed, uint8_t *out_byte);

/* Reads bytes of a Unix stream. *out_parted: a descriptor or credentials came with them, and were
 * dropped. The system ends a read behind such bytes, although more may be there. */
ptrdiff_t jrt_unix_read(int fd, const struct iovec *to, int count, bool *out_parted);

/* Whether it is a Unix socket. */
bool jrt_unix_is(int fd);

/* What an open descriptor is. */
janus_io_kind jrt_descriptor_kind(int fd);

#endif
