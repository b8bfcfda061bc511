/* SPDX-License-Identifier: MIT */
/* Datagrams: each transfer is whole. Several tasks take turns, [io-turn]. Addresses are copied, as
 * in socket.c. */
#include "base/options.h"
#include "io/io.h"
#include "means/call.h"
#include "plat/address.h"

#include <errno.h>
#include <janusrt/net.h>
#include <string.h>
#include <sys/socket.h>

enum { HANDLE_BYTES = 512 };

/* Any address of a family, with port 0. */
static bool any_address(janus_family family, janus_address *out)
{
    *out = (janus_address){.family = (uint8_t)family};
    if (family == JANUS_FAMILY_IPV4) out->count = 4;
    if (family == JANUS_FAMILY_IPV6) out->count = 16;
    return out->count != 0;
}

janus_status janus_datagram_open(const janus_address *at, janus_family family,
                                 const janus_io_options *given, janus_io *out)
{
    janus_io_options       options = {.struct_bytes = sizeof options};
    janus_address          any, copy;
    struct jrt_handle_toll toll;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL) return jrt_io_told(JANUS_INVALID);
    if (given != NULL && !jrt_struct_sane(given->struct_bytes, sizeof options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    if (given != NULL) memcpy(&options, given, given->struct_bytes);
    if (at != NULL) copy = *at;
    if (at != NULL) at = &copy;
    bool named = family == JANUS_FAMILY_UNIX || family == JANUS_FAMILY_ABSTRACT;
    if (at == NULL && !named && !any_address(family, &any)) return jrt_io_told(JANUS_INVALID);
    const janus_address *bound = at != NULL ? at : named ? NULL : &any;
    janus_status         status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    /* A socket without an address of its own may be bound anywhere; sending is checked. */
    struct jrt_handle_ask ask = {.address = at, .bytes = HANDLE_BYTES};
    status = jrt_handle_may_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_DATAGRAM, &ask, options.kept,
                                 &toll);
    if (status != JANUS_OK) return jrt_io_told(status);
    int fd = jrt_net()->socket(at != NULL ? (janus_family)at->family : family, SOCK_DGRAM);
    int error = fd < 0 ? fd : bound != NULL ? jrt_net()->bind(fd, bound) : 0;
    if (error < 0) {
        status = jrt_io_error(error);
        if (bound != NULL) status = jrt_io_about(status, bound);
        jrt_handle_closed(&toll);
    } else {
        struct jrt_io_plan plan = {.kind = JANUS_IO_KIND_DATAGRAM,
                                   .fd = fd,
                                   .socket = true,
                                   .kept = options.kept,
                                   .name = options.name};
        status = jrt_io_make(&plan, &toll, out);
    }
    if (status != JANUS_OK && fd >= 0) (void)jrt_net()->close(fd);
    return jrt_io_told(status);
}

/* One datagram, in or out. */
struct datagram {
    enum jrt_ready_way   way;
    struct iovec         piece;
    const janus_address *to;
    janus_address        from;
    bool                 cut;
    ptrdiff_t            done;
};

static janus_status transfer(struct jrt_io *io, struct datagram *datagram)
{
    enum jrt_ready_way way = datagram->way;
    enum jrt_wait      why = way == JRT_READY_READ ? JRT_WAIT_READ : JRT_WAIT_WRITE;
    for (;;) {
        jrt_io_take_note(io, way);
        datagram->done =
            way == JRT_READY_READ
                ? jrt_net()->receive_from(io->fd, &datagram->piece, &datagram->from, &datagram->cut)
                : jrt_net()->send_to(io->fd, &datagram->piece, datagram->to);
        if (datagram->done >= 0) return JANUS_OK;
        if (datagram->done != -EAGAIN) {
            janus_status status = jrt_io_error((int)datagram->done);
            return datagram->to != NULL ? jrt_io_about(status, datagram->to) : status;
        }
        janus_status status = jrt_io_await(io, way, why);
        if (status != JANUS_OK) return status;
    }
}

/* Transfers, unless a call such as janus_io_read has the socket for itself. One word has room for
 * one waiter. */
static janus_status transfer_alone(struct jrt_io *io, struct datagram *datagram)
{
    uint32_t exclusive = datagram->way == JRT_READY_READ ? JRT_IO_READER : JRT_IO_WRITER;
    if (!jrt_io_claim(io, exclusive)) return JANUS_STATE;
    janus_status status = transfer(io, datagram);
    jrt_io_unclaim(io, exclusive);
    return status;
}

static janus_status transfer_in_turn(janus_io handle, struct datagram *datagram)
{
    struct jrt_io *io = NULL;
    bool           reads = datagram->way == JRT_READY_READ;
    janus_status   status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_end(status);
    status = jrt_io_enter(handle, reads ? JANUS_IO_MAY_READ : JANUS_IO_MAY_WRITE, 0, &io);
    if (status == JANUS_OK) {
        enum jrt_wait why = reads ? JRT_WAIT_READ : JRT_WAIT_WRITE;
        bool          fits = io->kind == JANUS_IO_KIND_DATAGRAM;
        status = fits ? jrt_io_turn_take(io, datagram->way, why) : JANUS_STATE;
        if (status == JANUS_OK) {
            status = transfer_alone(io, datagram);
            jrt_io_turn_pass(io, datagram->way);
        }
        if (status != JANUS_OK && status != JANUS_CANCELLED && jrt_io_is_closing(io)) {
            status = JANUS_CLOSED;
        }
        if (status == JANUS_OK) {
            /* relaxed: a number to show. */
            jrt_fetch_add_relaxed(&io->bytes[datagram->way], (uint64_t)datagram->done);
            jrt_io_toll((size_t)datagram->done);
        }
        jrt_io_leave(io, 0);
    }
    if (status != JANUS_OK) jrt_io_pay_back();
    return jrt_io_end(status);
}

janus_status janus_datagram_send(janus_io io, const void *from, size_t count,
                                 const janus_address *to)
{
    jrt_stack_check(); /* [stack-reserve] */
    if ((from == NULL && count > 0) || to == NULL || count > PTRDIFF_MAX)
        return jrt_io_told(JANUS_INVALID);
    const janus_address   address = *to; /* it may change meanwhile */
    struct jrt_handle_ask ask = {.address = &address};
    janus_status status = jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_DATAGRAM, &ask);
    if (status != JANUS_OK) return jrt_io_told(status);
    struct datagram datagram = {
        .way = JRT_READY_WRITE, .piece = {(void *)from, count}, .to = &address};
    return jrt_io_told(transfer_in_turn(io, &datagram));
}

janus_status janus_datagram_receive(janus_io io, void *to, size_t max, size_t *out_got,
                                    janus_address *out_from, bool *out_cut)
{
    jrt_stack_check(); /* [stack-reserve] */
    if ((to == NULL && max > 0) || out_got == NULL || max > PTRDIFF_MAX)
        return jrt_io_told(JANUS_INVALID);
    struct datagram datagram = {.way = JRT_READY_READ, .piece = {to, max}};
    *out_got = 0;
    janus_status status = transfer_in_turn(io, &datagram);
    if (status != JANUS_OK) return jrt_io_told(status);
    *out_got = (size_t)datagram.done;
    if (out_from != NULL) *out_from = datagram.from;
    if (out_cut != NULL) *out_cut = datagram.cut;
    return JANUS_OK;
}
