/* SPDX-License-Identifier: MIT */
/* Files, terminals and whatever else helpers transfer. The essay is in file.c. */
#ifndef JRT_IO_FILE_H
#define JRT_IO_FILE_H

#include "io/io.h"

/* Reads or writes at the position, at once if the data is in memory, else on a helper. `tries`:
 * WOULD_WAIT instead of a wait. The caller has entered and paid. */
janus_status jrt_file_transfer(struct jrt_io *io, enum jrt_ready_way way,
                               const struct iovec *pieces, int count, bool tries, size_t *out);

/* OK: a try is worth it. WOULD_WAIT: it is not. DEADLINE, or an error. The caller has entered. */
janus_status jrt_file_look(struct jrt_io *io, enum jrt_ready_way way);

/* Waits until a try is worth it. The caller has entered. */
janus_status jrt_file_wait(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why);

/* A call for one handle, or for none: pays, enters, calls inside(io, argument), leaves. A cancelled
 * call gets its syscall back. `exclusive` as for jrt_io_enter. */
janus_status jrt_file_call(janus_io handle, uint32_t right, uint32_t exclusive,
                           janus_status (*inside)(struct jrt_io *io, void *argument),
                           void        *argument);

/* Runs a function on a helper and makes its result a status. `out` gets a result of 0 or more, if
 * it is not NULL. */
struct jrt_file_job {
    ptrdiff_t (*run)(void *argument); /* a number, or -errno */
    void     *argument;
    ptrdiff_t result;
};
janus_status jrt_file_help(ptrdiff_t (*run)(void *argument), void *argument, ptrdiff_t *out);

#endif
