/* SPDX-License-Identifier: MIT */
/*
 * What handles of sockets, files and processes need and cost, for the room that makes them. The
 * essay is in handles.c. Plain threads need nothing and pay nothing.
 *
 *     struct jrt_handle_ask ask = {.address = at, .bytes = sizeof(struct thing)};
 *     status = jrt_handle_may_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_LISTEN, &ask, kept,
 *                                  &thing->toll);
 *     if (status != JANUS_OK) return status;      // janus_explain has its sentence
 *     if (!make(thing)) return jrt_handle_closed(&thing->toll), JANUS_SYSTEM;
 *     jrt_handle_opened(&thing->toll, name, end);  // the task's end calls end(name)
 *     ...
 *     jrt_handle_closed(&thing->toll);             // once, by whoever ends the thing
 */
#ifndef JRT_MEANS_HANDLES_H
#define JRT_MEANS_HANDLES_H

#include "task/ward.h"

#include <janusrt/cap.h>
#include <janusrt/net.h>
#include <janusrt/status.h>

/* What is asked for. */
struct jrt_handle_ask {
    const janus_address *address; /* NET: of the other end, or to bind; NULL: none to check */
    const char          *name;    /* a path, a program, a host, for the log; NULL: none */
    uint64_t             bytes;   /* of memory, charged to the task */
};

/* What counts a handle, and what was charged for it. It stays in place. All zero: nothing. */
struct jrt_handle_toll {
    struct jrt_terms *terms; /* they count it, and exist until it is closed; NULL: nobody does */
    struct jrt_terms *place; /* in these and those around it has places; NULL: in none */
    struct jrt_ward   ward;
    uint64_t          bytes; /* what its owner pays */
    janus_cap_kind    kind;
};

/*
 * Asks for a handle. The calling task needs the right, a place under the limit of live handles, and
 * the memory. With right 0 it needs none, because the handle comes from another one (accept, pair),
 * but it still counts. `ask` may be NULL. On an error nothing happened, and the caller
 * returns the status as it is: a further jrt_trouble would replace the sentence.
 *
 * Returns as janus_cap_check_in. CAP_LIMIT: the address is outside. STATE: a callback.
 * HANDLE_LIMIT, BUDGET_EXHAUSTED, NO_MEMORY.
 */
janus_status jrt_handle_may_open(janus_cap_kind kind, uint32_t right,
                                 const struct jrt_handle_ask *ask, bool kept,
                                 struct jrt_handle_toll *out);

/* The handle was made. When its owner ends, end(name) ends it. */
void jrt_handle_opened(struct jrt_handle_toll *toll, const uint64_t name[2],
                       void (*end)(const uint64_t name[2]));

/* The handle was closed, or could not be made. Returns the place and the memory. Any thread. */
void jrt_handle_closed(struct jrt_handle_toll *toll);

/*
 * Moves an opened handle to the current task: owner, place and memory, all or nothing. It needs no
 * capability, but a place. The caller keeps others from closing the handle meanwhile. OK,
 * HANDLE_LIMIT, BUDGET_EXHAUSTED, NO_MEMORY, STATE: not in a task.
 */
janus_status jrt_handle_move(struct jrt_handle_toll *toll);

/*
 * Whether the handle has an owner that will end it. The end function of an owner that ends asks
 * this, under the lock that jrt_handle_move's callers hold. If so, another task has taken the
 * handle meanwhile, and it goes on.
 */
bool jrt_handle_is_owned(const struct jrt_handle_toll *toll);

/* Whether a capability or a pool bounds how many such handles live. Otherwise only the scheduler
 * does. */
bool jrt_handle_is_bounded(const struct jrt_handle_toll *toll);

/* Whether bytes that are written count against a limit, jrt_handle_take_bytes. */
bool jrt_handle_is_metered(const struct jrt_handle_toll *toll);

/* Asks for a right without making a handle: to send a datagram to ask->address, to look up a name.
 * As jrt_handle_may_open, without the limit of handles and without memory. */
janus_status jrt_handle_check(janus_cap_kind kind, uint32_t right,
                              const struct jrt_handle_ask *ask);

/* Holds what counts the bytes of a handle, for the next two functions, until it is let go. The
 * caller keeps others from moving the handle during the call. */
void jrt_handle_hold(const struct jrt_handle_toll *toll, struct jrt_handle_toll *out);
void jrt_handle_let_go(const struct jrt_handle_toll *held);

/* Before bytes are written to a file: takes them from what its capability may write in all.
 * CAP_LIMIT: it may write fewer, and none were taken. The second returns bytes that were not
 * written. */
janus_status jrt_handle_take_bytes(const struct jrt_handle_toll *toll, uint64_t bytes);
void         jrt_handle_give_bytes(const struct jrt_handle_toll *toll, uint64_t bytes);

#endif
