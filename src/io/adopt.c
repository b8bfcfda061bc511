/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that the program or another library has opened.
 *
 * [adopt-copy]  Standard streams and descriptors of other libraries are copied (dup), and the copy
 *   is closed with the handle. So the number in a worker's set belongs to one handle alone, and the
 *   program may close its own number at any time. Flags of the open file (O_NONBLOCK) stay as they
 *   are, because others share them.
 */
#include "io/io.h"

#include "host/file.h"
#include "means/call.h"
#include "means/trouble.h"

#include <errno.h>

enum { HANDLE_BYTES = 512 }; /* memory charged for a handle */

/* Makes a handle for `fd`, which it owns if OK. */
static janus_status make(int fd, uint32_t rights, const janus_io_options *options,
                         struct jrt_handle_toll *toll, janus_io *out)
{
    struct jrt_io_plan plan = {
        .fd = fd, .shared = true, .kept = options->kept, .name = options->name};
    jrt_io_classify(&plan);
    bool listens = plan.kind == JANUS_IO_KIND_LISTENER;
    if (listens && !jrt_descriptor_is_nonblocking(fd)) {
        jrt_handle_closed(toll);
        return JANUS_INVALID;
    }
    plan.rights = jrt_io_rights_of(plan.kind) & (rights | JANUS_IO_MAY_CLOSE | JANUS_IO_MAY_ACCEPT);
    return jrt_io_make(&plan, toll, out);
}

janus_status janus_io_adopt(int fd, const janus_io_options *given, janus_io *out)
{
    janus_io_options       options;
    struct jrt_handle_toll toll;
    struct jrt_handle_ask  ask = {.bytes = HANDLE_BYTES};
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !jrt_io_options_read(given, &options, sizeof options))
        return jrt_io_told(JANUS_INVALID);
    if (jrt_world_now() != NULL) return jrt_io_told(jrt_trouble_simulated("raw descriptors"));
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    int rights = jrt_descriptor_rights(fd);
    if (rights < 0) return jrt_io_told(JANUS_INVALID);
    status =
        jrt_handle_may_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_ADOPT, &ask, options.kept, &toll);
    if (status != JANUS_OK) return jrt_io_told(status);
    status = make(fd, (uint32_t)rights, &options, &toll, out);
    if (status == JANUS_OK) (void)jrt_descriptor_hide(fd); /* it is ours: no child gets it */
    return jrt_io_told(status);
}

janus_status janus_io_standard(int which, const janus_io_options *given, janus_io *out)
{
    janus_io_options       options;
    struct jrt_handle_toll toll;
    struct jrt_handle_ask  ask = {.name = which == 0   ? "the standard input"
                                          : which == 1 ? "the standard output"
                                                       : "the standard error",
                                  .bytes = HANDLE_BYTES};
    jrt_stack_check(); /* [stack-reserve] */
    if (which < 0 || which > 2 || out == NULL ||
        !jrt_io_options_read(given, &options, sizeof options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    if (jrt_world_now() != NULL) return jrt_io_told(jrt_trouble_simulated("standard streams"));
    uint32_t     right = which == 0 ? JANUS_RIGHT_FILE_READ : JANUS_RIGHT_FILE_WRITE;
    uint32_t     way = which == 0 ? JANUS_IO_MAY_READ : JANUS_IO_MAY_WRITE;
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    status = jrt_handle_may_open(JANUS_CAP_KIND_FILE, right, &ask, options.kept, &toll);
    if (status != JANUS_OK) return jrt_io_told(status);
    int fd = jrt_descriptor_copy(which); /* [adopt-copy] */
    int rights = fd >= 0 ? jrt_descriptor_rights(fd) : fd;
    if (fd < 0 || rights < 0 || ((uint32_t)rights & way) == 0) {
        jrt_handle_closed(&toll);
        if (fd >= 0) (void)jrt_net_real.close(fd);
        return jrt_io_told(fd < 0 ? jrt_io_error(fd) : JANUS_INVALID);
    }
    status = make(fd, way, &options, &toll, out);
    if (status != JANUS_OK) (void)jrt_net_real.close(fd);
    return jrt_io_told(status);
}

/* Foreign descriptors. */

static janus_status await_ready(struct jrt_io *io, uint32_t ways, uint64_t deadline_ns,
                                uint32_t *out_ready)
{
    struct jrt_io_spot spots[JRT_READY_WAYS];
    uint32_t           count = 0;
    for (int way = 0; way < JRT_READY_WAYS; way++) {
        if ((ways >> way & 1u) == 0) continue;
        spots[count++] = (struct jrt_io_spot){io, (enum jrt_ready_way)way};
    }
    for (;;) {
        for (uint32_t i = 0; i < count; i++) {
            (void)jrt_ready_take(&io->ready, spots[i].way); /* [ready-try] */
        }
        int ready = jrt_descriptor_poll(io->fd, ways, 0);
        if (ready < 0) return jrt_io_error(ready);
        *out_ready = (uint32_t)ready;
        if (ready > 0) return JANUS_OK;
        janus_status status = jrt_io_await_any(spots, count, deadline_ns, JRT_WAIT_READ);
        if (status != JANUS_OK) return status;
    }
}

/* A plain thread polls itself. */
static janus_status poll_as_thread(int fd, uint32_t ways, uint64_t deadline_ns, uint32_t *out_ready)
{
    if (jrt_thread_self()->calls_back) return JANUS_STATE;
    int ready = jrt_descriptor_poll(fd, ways, deadline_ns);
    if (ready < 0) return jrt_io_error(ready);
    *out_ready = (uint32_t)ready;
    return ready > 0 ? JANUS_OK : JANUS_DEADLINE;
}

/* Waits with a handle that nobody else knows. */
static janus_status wait_for_copy(int fd, uint32_t ways, uint64_t deadline_ns, uint32_t *out_ready)
{
    struct jrt_handle_toll toll;
    struct jrt_handle_ask  ask = {.bytes = HANDLE_BYTES};
    struct jrt_io         *io = NULL;
    janus_io               made;
    janus_status           status =
        jrt_handle_may_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_ADOPT, &ask, false, &toll);
    if (status != JANUS_OK) return status;
    int copy = jrt_descriptor_copy(fd); /* [adopt-copy] */
    if (copy < 0) {
        jrt_handle_closed(&toll);
        return jrt_io_error(copy);
    }
    jrt_debug_invariant("adopt-copy", copy > 2 && copy != fd);
    struct jrt_io_plan plan = {
        .kind = JANUS_IO_KIND_OTHER, .fd = copy, .shared = true, .name = "wait_fd"};
    status = jrt_io_make(&plan, &toll, &made);
    if (status != JANUS_OK) {
        (void)jrt_net_real.close(copy);
        return status;
    }
    status = jrt_io_enter(made, 0, 0, &io);
    if (status == JANUS_OK) {
        status = await_ready(io, ways, deadline_ns, out_ready);
        jrt_io_leave(io, 0);
    }
    (void)janus_io_close(made);
    return status;
}

janus_status janus_io_wait_fd(int fd, uint32_t ways, uint64_t deadline_ns, uint32_t *out_ready)
{
    uint32_t ready = 0;
    jrt_stack_check(); /* [stack-reserve] */
    if (ways == 0 || (ways & ~(uint32_t)JANUS_IO_BOTH) != 0) return jrt_io_told(JANUS_INVALID);
    if (jrt_world_now() != NULL) return jrt_io_told(jrt_trouble_simulated("raw descriptors"));
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    status = jrt_worker_self() == NULL ? poll_as_thread(fd, ways, deadline_ns, &ready)
                                       : wait_for_copy(fd, ways, deadline_ns, &ready);
    if (out_ready != NULL) *out_ready = ready;
    if (status == JANUS_CANCELLED) jrt_io_pay_back();
    return jrt_io_told(jrt_io_end(status));
}
