/* SPDX-License-Identifier: MIT */
/*
 * Sockets: listen, accept, connect, pairs and pipes.
 *
 * A call copies the address that it is given, and checks and uses the copy. The task may wait in
 * between, and another task may change the original.
 */
#include "base/options.h"
#include "io/io.h"
#include "means/call.h"
#include "plat/address.h"

#include <errno.h>
#include <janusrt/net.h>
#include <string.h>
#include <sys/socket.h>

enum {
    BACKLOG = 1024,
    HANDLE_BYTES = 512, /* memory charged for a handle */
};

/* Closes a descriptor that got no handle. */
static janus_status give_up(int fd, janus_status status)
{
    if (fd >= 0) (void)jrt_net()->close(fd);
    return status;
}

static janus_status may_open(uint32_t right, const janus_address *address, bool kept,
                             struct jrt_handle_toll *toll)
{
    struct jrt_handle_ask ask = {.address = address, .bytes = HANDLE_BYTES};
    return jrt_handle_may_open(JANUS_CAP_KIND_NET, right, &ask, kept, toll);
}

/* Whether it is a Unix socket of the system. */
static bool is_local(int fd, const janus_address *address)
{
    return jrt_address_domain((janus_family)address->family) == AF_UNIX &&
           !jrt_net_is_simulated(fd);
}

/* Listening. */

static int prepare_listener(int fd, const janus_address *at, const janus_listen_options *options)
{
    const struct jrt_net *net = jrt_net();
    bool                  unix_one = jrt_address_domain((janus_family)at->family) == AF_UNIX;
    int                   error = 0;
    if (!unix_one) error = net->option(fd, JRT_NET_REUSE_ADDRESS, 1);
    if (!unix_one && error == 0) error = net->option(fd, JRT_NET_NO_DELAY, 1); /* is inherited */
    if (error == 0 && options->reuse_port) error = net->option(fd, JRT_NET_REUSE_PORT, 1);
    if (error == 0 && at->family == JANUS_FAMILY_IPV6) {
        error = net->option(fd, JRT_NET_ONLY_V6, options->only_v6);
    }
    if (error == 0) error = net->bind(fd, at);
    uint32_t backlog = options->backlog != 0 ? options->backlog : BACKLOG;
    return error == 0 ? net->listen(fd, backlog) : error;
}

janus_status janus_listen(const janus_address *at, const janus_listen_options *given, janus_io *out)
{
    janus_listen_options   options;
    struct jrt_handle_toll toll;
    jrt_stack_check(); /* [stack-reserve] */
    if (at == NULL || out == NULL || !jrt_io_options_read(given, &options, sizeof options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    if (options.backlog > INT32_MAX) return jrt_io_told(JANUS_INVALID);
    const janus_address copy = *at; /* it may change while the task waits */
    at = &copy;
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    status = may_open(JANUS_RIGHT_NET_LISTEN, at, options.kept, &toll);
    if (status != JANUS_OK) return jrt_io_told(status);
    int fd = jrt_net()->socket((janus_family)at->family, SOCK_STREAM);
    int error = fd < 0 ? fd : prepare_listener(fd, at, &options);
    if (error < 0) {
        jrt_handle_closed(&toll);
        return jrt_io_told(jrt_io_about(give_up(fd, jrt_io_error(error)), at));
    }
    struct jrt_io_plan plan = {.kind = JANUS_IO_KIND_LISTENER,
                               .fd = fd,
                               .socket = true,
                               .local = is_local(fd, at),
                               .kept = options.kept,
                               .name = options.name};
    status = jrt_io_make(&plan, &toll, out);
    return jrt_io_told(status == JANUS_OK ? status : give_up(fd, status));
}

/* Accepting. */

static bool lacks_descriptor(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

/* As accept_next. *told: a descriptor was freed for this call, which has not used it. */
static janus_status try_and_wait(struct jrt_io *listener, int *out_fd, janus_address *out_peer,
                                 bool *told)
{
    const enum jrt_ready_way way = JRT_READY_READ;
    for (;;) {
        (void)jrt_ready_take(&listener->ready, way); /* [ready-try] */
        int fd = jrt_net()->accept(listener->fd, out_peer);
        if (fd >= 0) {
            *told = false;
            *out_fd = fd;
            return JANUS_OK;
        }
        janus_status status;
        if (lacks_descriptor(fd)) {
            status = jrt_io_await_descriptor(listener, told);
        } else if (fd == -EAGAIN) {
            if (*told) jrt_io_descriptor_freed();
            *told = false;
            status = jrt_io_await(listener, way, JRT_WAIT_ACCEPT);
            /* The wait itself needs a descriptor, for a set or a bell. */
            if (status == JANUS_FULL) status = jrt_io_await_descriptor(listener, told);
        } else {
            return jrt_io_is_closing(listener) ? JANUS_CLOSED : jrt_io_error(fd);
        }
        if (status != JANUS_OK) return status;
    }
}

/* Waits for a connection and takes it. The caller has the turn. */
static janus_status accept_next(struct jrt_io *listener, int *out_fd, janus_address *out_peer)
{
    bool         told = false;
    janus_status status = try_and_wait(listener, out_fd, out_peer, &told);
    if (jrt_unlikely(told)) jrt_io_descriptor_freed(); /* it is for the next one */
    return status;
}

/* Fills the plan of the connection. */
static janus_status accept_in_turn(janus_io handle, struct jrt_io_plan *plan,
                                   janus_address *out_peer)
{
    struct jrt_io *listener = NULL;
    janus_status   status = jrt_io_enter(handle, JANUS_IO_MAY_ACCEPT, 0, &listener);
    if (status != JANUS_OK) return status;
    if (listener->kind != JANUS_IO_KIND_LISTENER) {
        status = JANUS_STATE;
    } else {
        status = jrt_io_turn_take(listener, JRT_READY_READ, JRT_WAIT_ACCEPT);
        if (status == JANUS_OK) {
            plan->local = listener->local;
            status = accept_next(listener, &plan->fd, out_peer);
            jrt_io_turn_pass(listener, JRT_READY_READ);
        }
    }
    if (status != JANUS_OK && jrt_io_is_closing(listener) && status != JANUS_CANCELLED) {
        status = JANUS_CLOSED;
    }
    jrt_io_leave(listener, 0);
    return status;
}

static janus_status accept_one(janus_io listener, janus_io *out, janus_address *out_peer)
{
    struct jrt_handle_toll toll;
    struct jrt_io_plan     plan = {.kind = JANUS_IO_KIND_STREAM, .fd = -1, .socket = true};
    janus_status           status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_end(status);
    /* First the place for the handle: a connection that is taken can be kept. */
    status = may_open(0, NULL, false, &toll);
    if (status != JANUS_OK) {
        jrt_io_pay_back();
        return status;
    }
    status = accept_in_turn(listener, &plan, out_peer);
    if (status != JANUS_OK) {
        jrt_handle_closed(&toll);
        jrt_io_pay_back();
        return jrt_io_end(status);
    }
    status = jrt_io_make(&plan, &toll, out);
    return status == JANUS_OK ? status : give_up(plan.fd, status);
}

janus_status janus_accept(janus_io listener, janus_io *out, janus_address *out_peer)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL) return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(accept_one(listener, out, out_peer));
}

/* As many handles live as may. Waits until one is closed, as for a descriptor. */
static janus_status await_place(janus_io handle)
{
    struct jrt_io *listener = NULL;
    bool           told = false;
    janus_status   status = jrt_io_enter(handle, JANUS_IO_MAY_ACCEPT, 0, &listener);
    if (status != JANUS_OK) return status;
    status = jrt_io_turn_take(listener, JRT_READY_READ, JRT_WAIT_ACCEPT);
    if (status == JANUS_OK) {
        status = jrt_io_await_descriptor(listener, &told);
        jrt_io_turn_pass(listener, JRT_READY_READ);
    }
    if (told && status != JANUS_OK) jrt_io_descriptor_freed(); /* it is for the next one */
    jrt_io_leave(listener, 0);
    return jrt_io_end(status);
}

janus_status jrt_io_accept(janus_io listener, janus_io *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = accept_one(listener, out, NULL);
    while (status == JANUS_HANDLE_LIMIT) {
        status = await_place(listener);
        if (status == JANUS_OK) status = accept_one(listener, out, NULL);
    }
    return status == JANUS_STALE ? JANUS_CLOSED : status;
}

/* Connecting. */

/* The backlog of a Unix socket is full, and no edge will say when it is not. Waits a little. */
static janus_status pause_before(struct jrt_io *io, uint64_t *ns)
{
    struct jrt_ready nobody = {.seen = 0};
    uint64_t         until = jrt_clock_now_ns() + *ns;
    uint64_t deadline = jrt_load_relaxed(&io->deadlines[JRT_READY_WRITE]); /* relaxed: its own. */
    if (*ns < 64 * UINT64_C(1000000)) *ns *= 2;
    if (until >= deadline) return jrt_io_pause(&nobody, deadline, JRT_WAIT_CONNECT);
    janus_status status = jrt_io_pause(&nobody, until, JRT_WAIT_CONNECT);
    return status == JANUS_DEADLINE ? JANUS_OK : status;
}

/* A socket that is about to connect has a handle that nobody knows, so that the wait is like every
 * other. */
static janus_status await_connection(janus_io handle, const janus_address *to, uint64_t deadline_ns)
{
    struct jrt_io *io = NULL;
    janus_status   status = jrt_io_enter(handle, 0, JRT_IO_WRITER, &io);
    if (status != JANUS_OK) return status;
    jrt_store_relaxed(&io->deadlines[JRT_READY_WRITE], deadline_ns); /* relaxed: its only user. */
    uint64_t pause_ns = 1000000;
    int      error = jrt_net()->connect(io->fd, to);
    while (error == -EINPROGRESS || error == -EAGAIN) {
        (void)jrt_ready_take(&io->ready, JRT_READY_WRITE); /* [ready-try] */
        status = error == -EAGAIN ? pause_before(io, &pause_ns)
                                  : jrt_io_await(io, JRT_READY_WRITE, JRT_WAIT_CONNECT);
        if (status != JANUS_OK) break;
        /* The second call says how it stands; after an error, the pending one. */
        error = jrt_net()->connect(io->fd, to);
    }
    if (status == JANUS_OK && error != 0) status = jrt_io_error(error);
    jrt_store_relaxed(&io->deadlines[JRT_READY_WRITE], JRT_NEVER); /* relaxed: as above. */
    /* Registered before the first byte could come: an edge will tell of it, [io-drained]. */
    if (jrt_poller_has(&io->at)) io->drained[JRT_READY_READ] = JRT_IO_EMPTY;
    jrt_io_leave(io, JRT_IO_WRITER);
    return status;
}

/* The capability must allow the source, too. A port that the system chooses is allowed with every
 * destination, as it is without a source. */
static janus_status may_bind(const janus_address *from, const janus_address *to)
{
    if (from == NULL) return JANUS_OK;
    janus_address source = *from;
    if (source.port == 0) source.port = to->port;
    struct jrt_handle_ask ask = {.address = &source};
    return jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_CONNECT, &ask);
}

static int prepare_connection(int fd, const janus_connect_options *options,
                              const janus_address *from)
{
    if (!options->delays) (void)jrt_net()->option(fd, JRT_NET_NO_DELAY, 1);
    return from != NULL ? jrt_net()->bind(fd, from) : 0;
}

janus_status jrt_io_connect_prepare(const janus_address *to, const janus_connect_options *options,
                                    janus_io *out)
{
    struct jrt_handle_toll toll;
    janus_address          copy; /* the caller's may change after the check */
    if (options->from != NULL) copy = *options->from;
    const janus_address *from = options->from != NULL ? &copy : NULL;
    janus_status         status = may_bind(from, to);
    if (status == JANUS_OK) status = may_open(JANUS_RIGHT_NET_CONNECT, to, options->kept, &toll);
    if (status != JANUS_OK) return status;
    int fd = jrt_net()->socket((janus_family)to->family, SOCK_STREAM);
    int error = fd < 0 ? fd : prepare_connection(fd, options, from);
    if (error < 0) {
        jrt_handle_closed(&toll);
        return give_up(fd, jrt_io_error(error));
    }
    struct jrt_io_plan plan = {.kind = JANUS_IO_KIND_STREAM,
                               .fd = fd,
                               .socket = true,
                               .local = is_local(fd, to),
                               .kept = options->kept,
                               .name = options->name};
    status = jrt_io_make(&plan, &toll, out);
    return status == JANUS_OK ? status : give_up(fd, status);
}

static janus_status connect_with(const janus_address *to, const janus_connect_options *options,
                                 janus_io *out)
{
    janus_io     made;
    janus_status status = jrt_io_connect_prepare(to, options, &made);
    if (status != JANUS_OK) return status;
    uint64_t deadline = options->deadline_ns != 0 ? options->deadline_ns : JRT_NEVER;
    status = await_connection(made, to, deadline);
    if (status != JANUS_OK) {
        (void)janus_io_close(made);
        return status;
    }
    *out = made;
    return JANUS_OK;
}

janus_status janus_connect(const janus_address *to, const janus_connect_options *given,
                           janus_io *out)
{
    janus_connect_options options;
    jrt_stack_check(); /* [stack-reserve] */
    if (to == NULL || out == NULL || !jrt_io_options_read(given, &options, sizeof options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    const janus_address copy = *to; /* it may change while the task waits */
    janus_status        status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    status = connect_with(&copy, &options, out);
    if (status == JANUS_CANCELLED || status == JANUS_STATE) jrt_io_pay_back();
    return jrt_io_told(jrt_io_end(jrt_io_about(status, &copy)));
}

/* Pairs and pipes. */

struct two {
    janus_io_options       options;
    struct jrt_handle_toll tolls[2];
    struct jrt_io_plan     plans[2];
};

static janus_status may_open_two(struct two *two)
{
    janus_status status = may_open(0, NULL, two->options.kept, &two->tolls[0]);
    if (status != JANUS_OK) return status;
    status = may_open(0, NULL, two->options.kept, &two->tolls[1]);
    if (status != JANUS_OK) jrt_handle_closed(&two->tolls[0]);
    return status;
}

static void plan_two(struct two *two, bool socket, const int fds[2])
{
    for (int i = 0; i < 2; i++) {
        uint32_t way = i == 0 ? JANUS_IO_MAY_READ : JANUS_IO_MAY_WRITE;
        two->plans[i] = (struct jrt_io_plan){
            .kind = socket ? JANUS_IO_KIND_STREAM : JANUS_IO_KIND_PIPE,
            .fd = fds[i],
            .socket = socket,
            .local = socket && !jrt_net_is_simulated(fds[i]),
            .rights = socket ? 0 : way | JANUS_IO_MAY_CLOSE,
            .kept = two->options.kept,
            .name = two->options.name,
        };
    }
}

/* On an error both descriptors are closed. */
static janus_status name_two(struct two *two, janus_io out[2])
{
    janus_io     first, second;
    janus_status status = jrt_io_make(&two->plans[0], &two->tolls[0], &first);
    if (status != JANUS_OK) {
        jrt_handle_closed(&two->tolls[1]);
        (void)give_up(two->plans[1].fd, status);
        return give_up(two->plans[0].fd, status);
    }
    status = jrt_io_make(&two->plans[1], &two->tolls[1], &second);
    if (status != JANUS_OK) {
        (void)janus_io_close(first);
        return give_up(two->plans[1].fd, status);
    }
    out[0] = first;
    out[1] = second;
    return JANUS_OK;
}

static janus_status make_two(int (*make)(int out[2]), bool socket, const janus_io_options *given,
                             janus_io out[2])
{
    struct two two;
    int        fds[2];
    if (out == NULL || !jrt_io_options_read(given, &two.options, sizeof two.options))
        return JANUS_INVALID;
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_end(status);
    status = may_open_two(&two);
    if (status != JANUS_OK) return status;
    int error = make(fds);
    if (error != 0) {
        jrt_handle_closed(&two.tolls[0]);
        jrt_handle_closed(&two.tolls[1]);
        return jrt_io_error(error);
    }
    plan_two(&two, socket, fds);
    return name_two(&two, out);
}

janus_status janus_io_pair(const janus_io_options *options, janus_io out[2])
{
    jrt_stack_check(); /* [stack-reserve] */
    return jrt_io_told(make_two(jrt_net()->pair, true, options, out));
}

janus_status janus_io_pipe(const janus_io_options *options, janus_io out[2])
{
    jrt_stack_check(); /* [stack-reserve] */
    return jrt_io_told(make_two(jrt_net()->pipe, false, options, out));
}

/* Addresses. */

static janus_status ask(janus_io handle, int (*question)(int fd, janus_address *out),
                        janus_address *out)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL) return JANUS_INVALID;
    janus_status status = jrt_io_pay_and_enter(handle, 0, 0, &io);
    if (status != JANUS_OK) return status;
    int error = io->socket ? question(io->fd, out) : -ENOTSOCK;
    jrt_io_leave(io, 0);
    return error == 0 ? JANUS_OK : jrt_io_error(error);
}

janus_status janus_io_local(janus_io io, janus_address *out)
{
    return jrt_io_told(ask(io, jrt_net()->local, out));
}

janus_status janus_io_peer(janus_io io, janus_address *out)
{
    return jrt_io_told(ask(io, jrt_net()->peer, out));
}
