/* SPDX-License-Identifier: MIT */
/*
 * Connecting by name.
 *
 * [connect-race]  After RFC 8305: the addresses take turns by family. A connect to the next address
 *   begins when the last one has failed, or after 250 ms. The first connection that stands is kept,
 *   and the other sockets are closed. One task runs the whole race and waits for all sockets
 *   together, jrt_io_await_any. So a race needs no right to spawn, and no child.
 */
#include "io/io.h"
#include "io/resolve.h"
#include "means/call.h"

#include <errno.h>
#include <string.h>

static const uint64_t turn_ns = 250000000;

enum { RACERS = 8 }; /* addresses that are tried; the race lies on the task's stack */

struct race {
    janus_connect_options options;
    janus_address         addresses[RACERS];
    size_t                count, begun;
    uint64_t              next_ns;         /* when the next one may begin */
    janus_io              handles[RACERS]; /* of the live ones, as are the next two */
    struct jrt_io_spot    spots[RACERS];
    const janus_address  *to[RACERS];
    uint32_t              live;
    janus_status          first; /* the error of the first address */
};

/* Families in turn, beginning with that of the first address, by [connect-race]. Each keeps its
 * order. */
static void take_turns(janus_address *addresses, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        size_t at = i;
        while (at < count && addresses[at].family == addresses[i - 1].family) at++;
        if (at == count) return; /* the other family has no more */
        janus_address next = addresses[at];
        memmove(&addresses[i + 1], &addresses[i], (at - i) * sizeof addresses[0]);
        addresses[i] = next;
    }
}

static void note_error(struct race *race, size_t index, janus_status status)
{
    if (race->first == JANUS_OK || index == 0) race->first = status;
}

/* The last one takes the place. */
static void drop(struct race *race, uint32_t index)
{
    jrt_io_leave(race->spots[index].io, JRT_IO_WRITER);
    (void)janus_io_close(race->handles[index]);
    race->live--;
    race->handles[index] = race->handles[race->live];
    race->spots[index] = race->spots[race->live];
    race->to[index] = race->to[race->live];
}

static void begin_next(struct race *race)
{
    size_t               index = race->begun++;
    const janus_address *to = &race->addresses[index];
    struct jrt_io       *io = NULL;
    janus_io             made;
    janus_status         status = jrt_io_connect_prepare(to, &race->options, &made);
    race->next_ns = jrt_clock_now_ns() + turn_ns;
    if (status == JANUS_OK) {
        status = jrt_io_enter(made, 0, JRT_IO_WRITER, &io);
        if (status != JANUS_OK) (void)janus_io_close(made);
    }
    if (status != JANUS_OK) {
        note_error(race, index, status);
        race->next_ns = 0;
        return;
    }
    race->handles[race->live] = made;
    race->to[race->live] = to;
    race->spots[race->live++] = (struct jrt_io_spot){io, JRT_READY_WRITE};
}

/* Asks how the connects stand. True: one stands, and is now the first. */
static bool look(struct race *race)
{
    for (uint32_t i = 0; i < race->live;) {
        struct jrt_io *io = race->spots[i].io;
        (void)jrt_ready_take(&io->ready, JRT_READY_WRITE); /* [ready-try] */
        int error = jrt_net()->connect(io->fd, race->to[i]);
        if (error == 0) {
            janus_io winner = race->handles[i];
            race->handles[i] = race->handles[0];
            race->handles[0] = winner;
            struct jrt_io_spot spot = race->spots[i];
            race->spots[i] = race->spots[0];
            race->spots[0] = spot;
            return true;
        }
        if (error == -EINPROGRESS || error == -EAGAIN) {
            i++;
            continue;
        }
        note_error(race, (size_t)(race->to[i] - race->addresses),
                   jrt_io_about(jrt_io_error(error), race->to[i]));
        drop(race, i);
        race->next_ns = 0; /* the next one begins at once */
    }
    return false;
}

static janus_status run(struct race *race, uint64_t deadline_ns)
{
    for (;;) {
        bool more = race->begun < race->count;
        if (more && (race->live == 0 || jrt_clock_now_ns() >= race->next_ns)) {
            begin_next(race);
            more = race->begun < race->count;
        }
        if (look(race)) return JANUS_OK;
        if (more && race->next_ns == 0) continue;
        if (race->live == 0) return race->first;
        bool         first = more && race->next_ns < deadline_ns;
        janus_status status = jrt_io_await_any(
            race->spots, race->live, first ? race->next_ns : deadline_ns, JRT_WAIT_CONNECT);
        if (status == JANUS_DEADLINE && first) continue;
        if (status != JANUS_OK) return status;
    }
}

static janus_status connect_any(struct race *race, janus_io *out)
{
    uint64_t deadline = race->options.deadline_ns != 0 ? race->options.deadline_ns : JRT_NEVER;
    take_turns(race->addresses, race->count);
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return status;
    status = run(race, deadline);
    while (race->live > 1) drop(race, race->live - 1);
    jrt_debug_invariant("connect-race", status != JANUS_OK || race->live == 1);
    if (status == JANUS_OK) {
        jrt_io_leave(race->spots[0].io, JRT_IO_WRITER);
        *out = race->handles[0];
    } else if (race->live == 1) {
        drop(race, 0);
    }
    if (status == JANUS_CANCELLED) jrt_io_pay_back();
    return status;
}

janus_status janus_connect_name(const char *host, const char *service,
                                const janus_connect_options *given, janus_io *out)
{
    struct race race;
    jrt_stack_check(); /* [stack-reserve] */
    memset(&race, 0, sizeof race);
    if (service == NULL || out == NULL ||
        !jrt_io_options_read(given, &race.options, sizeof race.options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    uint64_t     deadline = race.options.deadline_ns != 0 ? race.options.deadline_ns : JRT_NEVER;
    janus_status status =
        jrt_resolve_until(host, service, race.addresses, RACERS, &race.count, deadline);
    if (status == JANUS_OK) status = connect_any(&race, out);
    return jrt_io_told(jrt_io_end(status));
}
