/* SPDX-License-Identifier: MIT */
/* Files: transfers that never wait for an edge. */
#ifndef JRT_IO_FILE_H
#define JRT_IO_FILE_H

#include "io/io.h"

/* Reads or writes at the file's position, at once if the data is in memory, else on a helper. The
 * caller has entered and paid. */
janus_status jrt_file_transfer(struct jrt_io *io, enum jrt_ready_way way,
                               const struct iovec *pieces, int count, size_t *out);

#endif
