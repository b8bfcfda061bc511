/* SPDX-License-Identifier: MIT */
/*
 * Unix sockets: credentials of the other end, and handles as messages.
 *
 * A handle travels as a descriptor with one byte, which holds the rights of the handle. So a
 * narrowed handle arrives narrowed.
 *
 * Nothing counts a descriptor on its way. A file that arrives counts no longer under the capability
 * that opened it. So both ends need net.adopt, as for raw descriptors.
 */
#include "base/options.h"
#include "host/file.h"
#include "io/io.h"
#include "means/call.h"
#include "plat/net_unix.h"

#include <errno.h>
#include <janusrt/net.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HANDLE_BYTES = 512 };

janus_status janus_io_credentials(janus_io handle, janus_credentials *out)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL) return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_io_pay_and_enter(handle, 0, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    int error = -EOPNOTSUPP;
    if (io->socket && !jrt_net_is_simulated(io->fd)) error = jrt_unix_credentials(io->fd, out);
    jrt_io_leave(io, 0);
    return jrt_io_told(error == 0 ? JANUS_OK : jrt_io_error(error));
}

static bool is_unix_stream(const struct jrt_io *io)
{
    janus_credentials who;
    return io->kind == JANUS_IO_KIND_STREAM && !jrt_net_is_simulated(io->fd) &&
           jrt_unix_credentials(io->fd, &who) == 0;
}

static janus_status send_inside(struct jrt_io *io, struct jrt_io *passed, uint32_t rights)
{
    if (!is_unix_stream(io) || jrt_net_is_simulated(passed->fd)) return JANUS_UNAVAILABLE;
    /* The message has room for read and write alone, [dir-may]. The library collects processes. */
    bool widens =
        passed->kind == JANUS_IO_KIND_DIRECTORY && (jrt_dir_may(rights) & ~passed->cold->may) != 0;
    if (widens || passed->cold->process != NULL) return JANUS_UNAVAILABLE;
    jrt_store_relaxed(&passed->shared, true); /* relaxed: read when all have left, handle.c. */
    for (;;) {
        jrt_io_take_note(io, JRT_READY_WRITE);
        int error = jrt_unix_send(io->fd, passed->fd, (uint8_t)rights);
        if (error == 0) return JANUS_OK;
        if (error != -EAGAIN) return jrt_io_error(error);
        janus_status status = jrt_io_await(io, JRT_READY_WRITE, JRT_WAIT_WRITE);
        if (status != JANUS_OK) return status;
    }
}

janus_status janus_io_send_handle(janus_io handle, janus_io given)
{
    struct jrt_io *io = NULL, *passed = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_ADOPT, NULL);
    if (status != JANUS_OK) return jrt_io_told(status);
    status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    status = jrt_io_enter(handle, JANUS_IO_MAY_WRITE, JRT_IO_WRITER, &io);
    if (status == JANUS_OK) {
        status = jrt_io_enter(given, 0, 0, &passed);
        if (status == JANUS_OK) {
            status = send_inside(io, passed, jrt_io_rights(given));
            jrt_io_leave(passed, 0);
        }
        jrt_io_leave(io, JRT_IO_WRITER);
    }
    if (status != JANUS_OK) jrt_io_pay_back();
    return jrt_io_told(jrt_io_end(status));
}

static janus_status receive_inside(struct jrt_io *io, int *out_fd, uint8_t *out_rights)
{
    if (!is_unix_stream(io)) return JANUS_UNAVAILABLE;
    for (;;) {
        jrt_io_take_note(io, JRT_READY_READ);
        int got = jrt_unix_receive(io->fd, out_fd, out_rights);
        if (got == 0) return JANUS_CLOSED;
        if (got > 0) return *out_fd >= 0 ? JANUS_OK : JANUS_STATE;
        if (got != -EAGAIN) return jrt_io_error(got);
        janus_status status = jrt_io_await(io, JRT_READY_READ, JRT_WAIT_READ);
        if (status != JANUS_OK) return status;
    }
}

static janus_status receive_one(janus_io handle, int *out_fd, uint8_t *out_rights)
{
    struct jrt_io *io = NULL;
    janus_status   status = jrt_io_enter(handle, JANUS_IO_MAY_READ, JRT_IO_READER, &io);
    if (status != JANUS_OK) return status;
    status = receive_inside(io, out_fd, out_rights);
    jrt_io_leave(io, JRT_IO_READER);
    return status;
}

janus_status janus_io_receive_handle(janus_io handle, const janus_io_options *given, janus_io *out)
{
    janus_io_options       options = {.struct_bytes = sizeof options};
    struct jrt_handle_toll toll;
    struct jrt_handle_ask  ask = {.bytes = HANDLE_BYTES};
    int                    fd = -1;
    uint8_t                rights = 0;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL) return jrt_io_told(JANUS_INVALID);
    if (given != NULL && !jrt_struct_sane(given->struct_bytes, sizeof options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    if (given != NULL) memcpy(&options, given, given->struct_bytes);
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    status =
        jrt_handle_may_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_ADOPT, &ask, options.kept, &toll);
    if (status != JANUS_OK) return jrt_io_told(status);
    status = receive_one(handle, &fd, &rights);
    if (status != JANUS_OK) {
        jrt_handle_closed(&toll);
        jrt_io_pay_back();
        return jrt_io_told(jrt_io_end(status));
    }
    struct jrt_io_plan plan = {
        .fd = fd, .shared = true, .kept = options.kept, .name = options.name};
    jrt_io_classify(&plan);
    if (plan.kind == JANUS_IO_KIND_LISTENER && !jrt_descriptor_is_nonblocking(fd)) {
        jrt_handle_closed(&toll); /* as janus_io_adopt: an accept would block its worker */
        (void)jrt_net()->close(fd);
        return jrt_io_told(JANUS_INVALID);
    }
    plan.rights = rights & jrt_io_rights_of(plan.kind);
    if (plan.rights == 0) plan.rights = JANUS_IO_MAY_CLOSE;
    status = jrt_io_make(&plan, &toll, out);
    if (status != JANUS_OK) (void)jrt_net()->close(fd);
    return jrt_io_told(status);
}
