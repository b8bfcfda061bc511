/* SPDX-License-Identifier: MIT */
/*
 * Files and directories of the system. All return 0 or a number, or -errno. Most may block: rooms
 * above call them on helpers. There are no simulated files. The essay is in file_linux.c.
 */
#ifndef JRT_HOST_FILE_H
#define JRT_HOST_FILE_H

#include "base/atomic.h"

#include <janusrt/file.h>
#include <sys/uio.h>

/* A directory's number: paths are those of the process. */
enum { JRT_FILE_ANYWHERE = -100 };

/* Offset of a transfer: at the position, which it moves. */
#define JRT_FILE_POSITION UINT64_MAX

/* Whether paths are walked because the kernel has no openat2. Tests set it. */
extern _Atomic(bool) jrt_file_walks;

/* Opens what lies below `dir`, [file-beneath]. `flags` as for open(2). The descriptor. */
int jrt_file_open(int dir, const char *path, int flags, uint32_t permissions);

/* As jrt_file_open, without the doors of /proc to the process itself. */
int jrt_file_open_strictly(int dir, const char *path, int flags, uint32_t permissions);

int jrt_file_inspect(int fd, janus_file_info *out);
int jrt_file_make_directory(int dir, const char *path, uint32_t permissions);
int jrt_file_remove(int dir, const char *path, bool directory);
int jrt_file_rename(int from_dir, const char *from, int to_dir, const char *to, bool exclusive);

/* Reads the next entries. Returns how many; 0: no more. */
int jrt_file_list(int fd, janus_dir_entry *out, size_t max);

/* Transfers at an offset. The first two never wait: -EAGAIN, -EOPNOTSUPP if they would. */
ptrdiff_t jrt_file_try_read(int fd, const struct iovec *to, int count, uint64_t offset);
ptrdiff_t jrt_file_read(int fd, const struct iovec *to, int count, uint64_t offset);
ptrdiff_t jrt_file_write(int fd, const struct iovec *from, int count, uint64_t offset);

int jrt_file_seek(int fd, uint64_t offset);
int jrt_file_sync(int fd, bool everything);
int jrt_file_truncate(int fd, uint64_t bytes);

/* Any descriptor. */

/* Which of `ways` (JANUS_IO_ bits) are ready now, or by the deadline; 0: none. */
int jrt_descriptor_poll(int fd, uint32_t ways, uint64_t deadline_ns);

/* A second number for the same open file, closed by exec. */
int jrt_descriptor_copy(int fd);

/* The JANUS_IO_MAY_READ and JANUS_IO_MAY_WRITE that it was opened with. -EBADF: it is not open, or
 * only a path. */
int jrt_descriptor_rights(int fd);

/* Whether calls never block for it. */
bool jrt_descriptor_is_nonblocking(int fd);

/* Closes it at exec. */
int jrt_descriptor_hide(int fd);

/* How many descriptors the process can have. */
uint64_t jrt_descriptors_max(void);

#endif
