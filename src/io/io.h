/* SPDX-License-Identifier: MIT */
/*
 * Handles of descriptors: the record behind a janus_io, its users, and how a call waits. The
 * essays are in table.c, handle.c and wait.c.
 */
#ifndef JRT_IO_IO_H
#define JRT_IO_IO_H

#include "means/handles.h"
#include "plat/net.h"
#include "sched/poller.h"
#include "sched/timer.h"
#include "work/ready.h"

#include <janusrt/io.h>

/* Bits of the word of [io-use]. Below them is the number of calls inside. */
#define JRT_IO_READER 0x10000u
#define JRT_IO_WRITER 0x20000u
#define JRT_IO_CLOSING 0x80000000u
#define JRT_IO_COUNT 0xffffu
#define JRT_IO_WAITERS 0xf000u /* at most this many calls that may wait */

/* Bits of a handle's name below the place. */
enum { JRT_IO_PLACE_AT = 8 };

/* What a transfer costs in tolls; pay.c. */
enum { JRT_IO_TOLLS = 32, JRT_IO_BYTES_FOR_A_TOLL = 256 };

/* What the last transfer of a direction showed: see [io-drained]. */
enum jrt_io_drained {
    JRT_IO_UNKNOWN,
    JRT_IO_SHORT, /* less was done than was asked for */
    JRT_IO_EMPTY, /* nothing was done */
};

/* A task or thread that waits for its turn, in its frame, [io-turn]. */
struct jrt_io_turn {
    struct jrt_ready    ready;
    struct jrt_io_turn *next;
};

/* A deadline's timer, kept armed across waits; [io-lazy]. */
struct jrt_io_alarm {
    struct jrt_alarm  alarm; /* first; the timers' lock */
    _Atomic(uint64_t) rings; /* when; JRT_NEVER: it is not armed */
};

/* Those of a handle. */
struct jrt_io_alarms {
    struct jrt_io_alarm of[JRT_READY_WAYS];
};

/* What only opening, closing, inspecting, deadlines and taking turns need. */
struct jrt_io_cold {
    struct jrt_handle_toll          toll; /* what counts it and pays for it */
    _Atomic(uint32_t)               lock; /* guards the turns, and moving the toll; [io-lock] */
    uint32_t                        may;  /* of a directory, [dir-may] */
    struct jrt_io_turn             *turns[JRT_READY_WAYS]; /* oldest first */
    bool                            taken[JRT_READY_WAYS]; /* somebody has the turn */
    bool                            detached;              /* the process outlives the handle */
    struct jrt_process             *process;               /* owned, [process-held]; NULL: none */
    const char                     *name;                  /* in the same block, or "" */
    _Atomic(struct jrt_io_alarms *) alarms; /* owned; NULL: no deadline yet, [io-home] */
};

/* Two cache lines. A transfer needs all but `home`, `serial` and `cold`. */
struct jrt_io {
    struct jrt_ready  ready; /* first, [ready-tag] */
    _Atomic(uint64_t) key;   /* of all its rights; 0: no handle lives here, [io-key] */
    _Atomic(uint32_t) use;   /* [io-use] */
    int               fd;
    uint8_t           kind;                    /* janus_io_kind */
    _Atomic(uint8_t)  rights;                  /* of the first handle */
    uint8_t           drained[JRT_READY_WAYS]; /* enum jrt_io_drained */
    bool              borrowed;                /* closing leaves the descriptor open */
    _Atomic(bool)     shared;                  /* others may have it open */
    /* Constant while a handle lives here. */
    bool                       socket : 1; /* recv and send, not read and write */
    bool                       helped : 1; /* file.c transfers */
    bool                       usual : 1;  /* a stream that is not helped, [io-quick] */
    bool                       local : 1;  /* a real Unix stream or its listener, [io-drained] */
    _Atomic(janus_scheduler *) home; /* its tasks may keep alarms armed; NULL: none, [io-home] */

    struct jrt_poller_at at; /* where it is registered */
    _Atomic(uint64_t)    deadlines[JRT_READY_WAYS];
    _Atomic(uint64_t)    bytes[JRT_READY_WAYS]; /* so far */
    _Atomic(uint64_t)    serial;                /* [io-key] */
    union {
        struct jrt_io_cold *cold;      /* owned */
        struct jrt_io      *next_free; /* of a place without a handle */
    };
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct jrt_io) == 128, "two lines");

/* Lock and unlock the cold part, [io-lock]; in handle.c. */
void jrt_io_lock(struct jrt_io_cold *cold);
void jrt_io_unlock(struct jrt_io_cold *cold);

/* The table, [io-table]. */

/* Takes a place for a new handle. OK, NO_MEMORY, FULL, UNAVAILABLE. */
janus_status jrt_io_place_take(struct jrt_io **out);
void         jrt_io_place_give(struct jrt_io *io);

/* Gives the place a key: from here on the handle is valid. */
janus_io jrt_io_name(struct jrt_io *io);

/* Its place in the table. */
uint32_t jrt_io_place(const struct jrt_io *io);

/* The handle with fewer rights. */
janus_io jrt_io_name_with(const struct jrt_io *io, uint32_t rights);

static inline uint32_t jrt_io_rights(janus_io io) { return (uint32_t)io.opaque[0] & 15u; }
/* A stale handle's lookup reads them while the place changes hands; the key decides, [io-key]. */
static inline uint32_t jrt_io_first_rights(const struct jrt_io *io)
{
    return jrt_load_relaxed(&io->rights); /* relaxed: see there. */
}

static inline bool jrt_io_is_none(janus_io io) { return (io.opaque[0] | io.opaque[1]) == 0; }

/* The record that a handle names, if it is valid now. NULL: it is not. */
struct jrt_io *jrt_io_of(janus_io handle);

/* The place that a handle names, which may be another's by now. The handle was valid. */
struct jrt_io *jrt_io_place_of(janus_io handle);

/* Whether the place is still that of a handle that may be closed. */
bool jrt_io_was(const struct jrt_io *io, janus_io handle);

/* Reports the tasks that wait at handles, [place-list]; in waits.c. */
void jrt_io_tell_waits(bool  (*told)(void *subject, const struct jrt_task *task, const char *name),
                       void *subject);

/* Making, using, closing: handle.c. */

/* What a new handle is. */
struct jrt_io_plan {
    janus_io_kind kind;
    int           fd;
    bool          socket, borrowed, shared, helped, local;
    uint32_t      rights; /* 0: those of the kind */
    uint32_t      may;    /* JANUS_RIGHT_FILE_ bits of a directory; 0: as its rights, [dir-may] */
    bool          kept;
    const char   *name;
    struct jrt_process *process; /* a process: the handle owns it */
    bool                detached;
};

/* The rights that a kind can have. */
uint32_t jrt_io_rights_of(janus_io_kind kind);

/* Names the task that opens the plan's simulated descriptor; label.c. */
void jrt_io_label(const struct jrt_io_plan *plan);

/* The world of a handle has ended, jrt_sim_orphaned. */
void jrt_io_orphaned(const uint64_t name[2], bool left);

/* Forgets a call that waits for a descriptor, and never returns. */
void jrt_io_starved_forget(const struct jrt_io *io);

/* Finds out what the plan's descriptor is. */
void jrt_io_classify(struct jrt_io_plan *plan);

/* Makes a handle for an open descriptor that `toll` has paid for. On an error the toll is returned,
 * and the descriptor stays the caller's. */
janus_status jrt_io_make(const struct jrt_io_plan *plan, struct jrt_handle_toll *toll,
                         janus_io *out);

/* Begins a call. `exclusive`: JRT_IO_READER, JRT_IO_WRITER or 0. OK, STALE, INVALID, CAP_RIGHT,
 * STATE. */
janus_status jrt_io_enter(janus_io handle, uint32_t right, uint32_t exclusive, struct jrt_io **out);

void jrt_io_leave(struct jrt_io *io, uint32_t exclusive);

/* The last call has left a handle that is being closed: closes the descriptor. */
void jrt_io_left(struct jrt_io *io);

/* A call that is inside becomes the reader or the writer. False: there is one. */
bool jrt_io_claim(struct jrt_io *io, uint32_t exclusive);
void jrt_io_unclaim(struct jrt_io *io, uint32_t exclusive);

static inline bool jrt_io_is_closing(const struct jrt_io *io)
{
    return (jrt_load_seq_cst(&io->use) & JRT_IO_CLOSING) != 0; /* seq_cst: after the word. */
}

/* The scheduler with its alarms: home.c. */

static inline janus_scheduler *jrt_io_home(const struct jrt_io *io)
{
    return jrt_load_relaxed(&io->home); /* relaxed: only the lock of [io-home] makes it last. */
}

/* Makes sure that an alarm rings by the deadline. The task has joined. WOULD_WAIT: one does.
 * DEADLINE: the handle has another home now. NO_MEMORY. */
janus_status jrt_io_arm(struct jrt_io *io, enum jrt_ready_way way, uint64_t deadline_ns);

/* Disarms all alarms, and takes the home away. The caller is inside, or the last user. */
void jrt_io_leave_home(struct jrt_io *io);

/* Leaves the home, if the place is still that of the handle, which is being closed. */
void jrt_io_leave_home_by_name(janus_io handle);

/* The handle has none. The caller is its only user. */
void jrt_io_set_home(struct jrt_io *io, janus_scheduler *home);

/* Waiting: wait.c. */

/* Waits until an edge of that direction, the close of the handle, a cancel or the deadline. OK:
 * try again. The caller has entered. */
janus_status jrt_io_await(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why);

/* Whether it is known that a try is worth it. A descriptor that waits first registers may be. */
bool jrt_io_is_worth(struct jrt_io *io, enum jrt_ready_way way);

/* Whether the handle's own alarm ends a wait here, [io-lazy]. */
bool jrt_io_keeps_alarm(const struct jrt_io *io, const struct jrt_worker *worker);

/* Waits as jrt_io_await, unless a try is worth it already. */
janus_status jrt_io_await_worth(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why);

/* Takes a turn, and passes it on, [io-turn]. */
janus_status jrt_io_turn_take(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why);
void         jrt_io_turn_pass(struct jrt_io *io, enum jrt_ready_way way);

/* Waits until `deadline_ns`, or until another task tells this readiness. */
janus_status jrt_io_pause(struct jrt_ready *ready, uint64_t deadline_ns, enum jrt_wait why);

/* Waits until another thread tells this readiness. No cancel ends the wait of the task, not even a
 * second one. */
void jrt_io_pause_to_end(struct jrt_ready *ready);

/* Registers the descriptor where the waiting task's scheduler looks, unless it is registered. */
janus_status jrt_io_register(struct jrt_io *io, struct jrt_worker *worker);

/* Counts tasks that wait for descriptors, [poll-stuck]. */
void jrt_io_count_wait(int more);

/* One direction of one handle, of several that a call waits for. */
struct jrt_io_spot {
    struct jrt_io     *io;
    enum jrt_ready_way way;
};

/* Waits until an edge of any of them, a cancel or the deadline. OK: try them all. The caller has
 * entered all of them, and is their only user. */
janus_status jrt_io_await_any(const struct jrt_io_spot *spots, uint32_t count, uint64_t deadline_ns,
                              enum jrt_wait why);

/* Runs a function that may block on a helper thread, and waits for it: helper.c. CANCELLED: it did
 * not begin. Once it has begun, nothing ends it, and the result is OK. FULL, NO_MEMORY: it did not
 * begin. */
janus_status jrt_io_help(void (*run)(void *argument), void *argument);

/* The handle of a process is closed: kills the process, unless it is detached. */
void jrt_io_process_end(struct jrt_io_cold *cold);

/* All JANUS_RIGHT_FILE_ bits that a directory's rights can cover, [dir-may]. */
uint32_t jrt_dir_may(uint32_t rights);

/* Whether a try is worth it; otherwise the caller waits first, [io-drained]. */
bool jrt_io_worth_trying(struct jrt_io *io, enum jrt_ready_way way);

/* Takes a note before a try, [ready-try]. Nobody else reads, or writes, there.
 * The note may have told of more than the try takes, [io-drained]. */
static inline void jrt_io_take_note(struct jrt_io *io, enum jrt_ready_way way)
{
    (void)jrt_ready_take(&io->ready, way);
    io->drained[way] = JRT_IO_UNKNOWN;
}

/* Accepts as janus_accept, but waits while as many handles live as may. A listener that was closed
 * is CLOSED, not STALE. In socket.c. */
janus_status jrt_io_accept(janus_io listener, janus_io *out);

/* Reading and writing: stream.c. The usual calls of tasks are in quick.c, [io-quick]. */

/* Whole calls. Their arguments are not checked yet. */
janus_status jrt_io_read_slow(janus_io handle, void *to, size_t max, size_t *out_got);
janus_status jrt_io_write_slow(janus_io handle, const void *from, size_t count, size_t *out_done);

/* Go on with a call that has paid and entered. `status` is what happened so far: OK, or how the
 * call ends. `sent` is what one transfer did, as the system told; 0 if there was none yet. */
janus_status jrt_io_read_on(struct jrt_io *io, void *to, size_t max, size_t *out_got,
                            janus_status status);
janus_status jrt_io_write_on(janus_io handle, struct jrt_io *io, const void *from, size_t count,
                             size_t *out_done, ptrdiff_t sent);

/* Paying and ending: pay.c. */

/* Pays for a transfer of the current task, before it enters. May wait, and may end the task.
 * `bytes`: for the toll. */
janus_status jrt_io_pay(size_t bytes);

/* Begins a call that asks the system something: pays, and enters. On an error nothing is paid. */
janus_status jrt_io_pay_and_enter(janus_io handle, uint32_t right, uint32_t exclusive,
                                  struct jrt_io **out);

/* Pays an op, for a call that only waits. */
janus_status jrt_io_pay_op(void);

/* Pays for one more transfer of a call that is inside. False: not at once. */
bool jrt_io_pay_more(size_t bytes);

/* Takes the toll for the transfer of that many bytes. */
void jrt_io_toll(size_t bytes);

/* The transfer did not happen: returns the syscall. */
void jrt_io_pay_back(void);

/* Ends a public call: a cancelled task obeys. */
janus_status jrt_io_end(janus_status status);

/* The slow path of jrt_io_told_by. */
janus_status jrt_io_tell(janus_status status, const char *call);

/* Every public call returns its status through this. An error is noted for janus_explain, so that
 * no sentence of an earlier call stays. A stale handle is reported to an explorer. */
static inline janus_status jrt_io_told_by(janus_status status, const char *call)
{
    return jrt_likely(status >= 0) ? status : jrt_io_tell(status, call);
}
#define jrt_io_told(status) jrt_io_told_by(status, __func__)

/* The error that was just noted is about this path or address. */
janus_status jrt_io_about(janus_status status, const janus_address *address);

/* Closes as janus_io_close. A stale handle is nobody's mistake. */
janus_status jrt_io_close(janus_io handle);

/* Remembers the name of a handle that is closed in a world, and finds it again; label.c. */
void        jrt_io_remember(const struct jrt_io *io);
const char *jrt_io_remembered(janus_io handle);

/* Copies as many options as the caller's struct has; NULL: defaults. False: it is no such
 * struct. */
bool jrt_io_options_read(const void *given, void *out, size_t bytes);

/* What an error of the system means. It is noted for janus_explain. */
janus_status jrt_io_error(int error);

/* Makes the handle of a socket that is about to connect, if the task may connect to `to`. */
janus_status jrt_io_connect_prepare(const janus_address *to, const janus_connect_options *options,
                                    janus_io *out);

/* Accepts that find no descriptor wait for one, [io-descriptors]. The caller has entered, and has
 * the turn. OK: try again. *out_told: one was freed for this caller. If the caller does not use it,
 * it reports it again. */
void         jrt_io_descriptor_freed(void);
janus_status jrt_io_await_descriptor(struct jrt_io *io, bool *out_told);

#endif
