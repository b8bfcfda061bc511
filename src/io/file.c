/* SPDX-License-Identifier: MIT */
#include "io/file.h"

janus_status jrt_file_transfer(struct jrt_io *io, enum jrt_ready_way way,
                               const struct iovec *pieces, int count, size_t *out)
{
    (void)io, (void)way, (void)pieces, (void)count, (void)out;
    return JANUS_UNAVAILABLE;
}
