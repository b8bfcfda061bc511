/* SPDX-License-Identifier: MIT */
/*
 * Making, using and closing handles.
 *
 * [io-use]  One word counts the calls inside, and says whether one reads, one writes, and whether
 *   the handle is being closed. A call enters by a compare-and-swap, and then compares the key once
 *   more: the place may have changed hands in between. Closing sets CLOSING, takes the key away and
 *   tells both directions. So no other call enters, and those that wait return. The last call that
 *   leaves closes the descriptor. So a call never meets a descriptor number that already names
 *   something else.
 *
 * [io-world]  A kept handle may outlive its simulated run, and a later run uses the same numbers
 *   for its descriptors. So the world closes all handles of its descriptors when it ends. If the
 *   world was given up in the middle, it only takes the keys away: then the handles are stale.
 *
 * Closing a descriptor takes it out of its set, unless another descriptor, of any process,
 * names the same. So only a descriptor that came from elsewhere, or was passed on, is removed by a
 * call of its own. If a fork keeps one alive, its events have an old generation: see [ready-tag].
 */
#include "io/io.h"

#include "base/options.h"
#include "means/call.h"
#include "means/trouble.h"
#include "plat/address.h"
#include "plat/name.h"
#include "plat/net_unix.h"
#include "sim/net.h"
#include "work/work.h"

#include <string.h>

uint32_t jrt_io_rights_of(janus_io_kind kind)
{
    switch (kind) {
    case JANUS_IO_KIND_LISTENER: return JANUS_IO_MAY_ACCEPT | JANUS_IO_MAY_CLOSE;
    default: return JANUS_IO_MAY_READ | JANUS_IO_MAY_WRITE | JANUS_IO_MAY_CLOSE;
    }
}

static void fill(struct jrt_io *io, const struct jrt_io_plan *plan)
{
    struct jrt_ready *ready = &io->ready;
    /* relaxed, all: nobody knows the handle yet. */
    jrt_fetch_add_relaxed(&ready->generation, 1u);
    for (int way = 0; way < JRT_READY_WAYS; way++) {
        jrt_store_relaxed(&ready->words[way], (uint64_t)JRT_READY_NOTHING); /* relaxed: as above. */
        jrt_store_relaxed(&ready->let_go[way], 0u);                         /* relaxed: as above. */
        jrt_store_relaxed(&io->deadlines[way], JRT_NEVER);                  /* relaxed: as above. */
        jrt_store_relaxed(&io->bytes[way], (uint64_t)0);                    /* relaxed: as above. */
        io->drained[way] = JRT_IO_UNKNOWN;
    }
    jrt_store_relaxed(&ready->seen, 0u); /* relaxed: as above. */
    io->fd = plan->fd;
    io->kind = (uint8_t)plan->kind;
    uint32_t rights = plan->rights != 0 ? plan->rights : jrt_io_rights_of(plan->kind);
    jrt_store_relaxed(&io->rights, (uint8_t)rights); /* relaxed: as above. */
    io->socket = plan->socket;
    io->borrowed = plan->borrowed;
    jrt_store_relaxed(&io->shared, plan->shared);                        /* relaxed: as above. */
    io->helped = plan->helped || jrt_handle_is_metered(&io->cold->toll); /* [file-written] */
    io->usual = plan->socket && plan->kind == JANUS_IO_KIND_STREAM && !io->helped;
    io->local = plan->local;
    jrt_store_relaxed(&io->at.poller, NULL); /* relaxed: as above. */
    jrt_store_relaxed(&io->use, 0u);         /* relaxed: as above. */
}

static void end_by_name(const uint64_t name[2]);

janus_status jrt_io_make(const struct jrt_io_plan *plan, struct jrt_handle_toll *toll,
                         janus_io *out)
{
    struct jrt_io      *io = NULL;
    size_t              name_bytes = plan->name != NULL ? sizeof((janus_io_info *)NULL)->name : 0;
    struct jrt_io_cold *cold = jrt_calloc(1, sizeof *cold + name_bytes);
    janus_status        status = cold != NULL ? jrt_io_place_take(&io) : JANUS_NO_MEMORY;
    if (status != JANUS_OK) {
        free(cold);
        jrt_handle_closed(toll);
        return status;
    }
    cold->toll = *toll;
    cold->name = "";
    if (plan->name != NULL) {
        char *name = (char *)(cold + 1);
        (void)jrt_name_copy(name, name_bytes, plan->name);
        cold->name = name;
    }
    io->cold = cold;
    fill(io, plan);
    cold->may = plan->may != 0 ? plan->may : jrt_dir_may(jrt_io_first_rights(io));
    cold->process = plan->process;
    cold->detached = plan->detached;
    const struct jrt_worker *worker = jrt_worker_self();
    bool                     homely = worker != NULL && worker->seat == NULL && !plan->kept;
    /* release: the serial number, [io-home]. */
    jrt_store_release(&io->home, homely ? worker->scheduler : NULL);
    if (jrt_unlikely(jrt_net_is_simulated(plan->fd))) jrt_io_label(plan);
    *out = jrt_io_name(io);
    if (jrt_unlikely(jrt_net_is_simulated(plan->fd))) jrt_sim_note_handle(plan->fd, out->opaque);
    jrt_handle_opened(&cold->toll, out->opaque, end_by_name); /* no other thread knows it yet */
    return JANUS_OK;
}

void jrt_io_classify(struct jrt_io_plan *plan)
{
    plan->kind = jrt_descriptor_kind(plan->fd);
    plan->socket = plan->kind == JANUS_IO_KIND_STREAM || plan->kind == JANUS_IO_KIND_LISTENER ||
                   plan->kind == JANUS_IO_KIND_DATAGRAM;
    plan->helped = !plan->socket && plan->kind != JANUS_IO_KIND_PIPE; /* [file-polled] */
    plan->local = plan->socket && jrt_unix_is(plan->fd);
}

/*
 * [io-lock]  The lock of a handle is a word, because a handle that idles has little else. 0 means
 *   free, 1 held, 2 held while somebody may sleep. In a world, as with every lock, a part that
 *   finds it taken lets its holder run.
 */
static bool try_lock(struct jrt_io_cold *cold)
{
    uint32_t none = 0;
    return jrt_cas_acquire(&cold->lock, &none, 1u); /* acquire: what the last holder did. */
}

void jrt_io_lock(struct jrt_io_cold *cold)
{
    struct jrt_world *world = jrt_world_now();
    if (!try_lock(cold)) {
        if (world != NULL) {
            while (!try_lock(cold)) world->pass(world);
        } else {
            /* acquire: as above. */
            while (jrt_exchange_acquire(&cold->lock, 2u) != 0) {
                (void)jrt_futex_wait_until(&cold->lock, 2, JRT_NEVER);
            }
        }
    }
    if (JRT_DEBUG) jrt_locks_count(1);
}

void jrt_io_unlock(struct jrt_io_cold *cold)
{
    if (JRT_DEBUG) jrt_locks_count(-1);
    uint32_t held = jrt_exchange_release(&cold->lock, 0u); /* release: what this holder did. */
    jrt_debug_invariant("io-lock", held != 0);
    if (held == 2) jrt_futex_wake(&cold->lock, 1);
}

/* Using. */

/* Whether a call that needs this right may wait inside. Such calls leave room for those that close
 * the handle. */
static bool may_wait(uint32_t right) { return (right & ~(uint32_t)JANUS_IO_MAY_CLOSE) != 0; }

/* Notes what the handle lacks, for janus_explain. */
__attribute__((noinline, cold)) static janus_status lacks(janus_io handle, janus_status status,
                                                          uint32_t rights)
{
    char           name[sizeof((janus_io_info *)NULL)->name] = "";
    struct jrt_io *io = NULL;
    if (status == JANUS_STALE) return jrt_trouble_lacks(status, 0, jrt_io_remembered(handle));
    if (jrt_io_enter(handle, 0, 0, &io) == JANUS_OK) {
        jrt_name_again(name, sizeof name, io->cold->name);
        jrt_io_leave(io, 0);
    }
    return jrt_trouble_lacks(status, rights, name);
}

janus_status jrt_io_enter(janus_io handle, uint32_t right, uint32_t exclusive, struct jrt_io **out)
{
    struct jrt_io *io = jrt_io_of(handle);
    if (jrt_unlikely(io == NULL)) {
        return jrt_io_is_none(handle) ? JANUS_INVALID : lacks(handle, JANUS_STALE, 0);
    }
    if (jrt_unlikely((jrt_io_rights(handle) & right) != right)) {
        return lacks(handle, JANUS_CAP_RIGHT, right & ~jrt_io_rights(handle));
    }
    /* relaxed: set where only one thread was, [poller-fork]. */
    if (jrt_unlikely(jrt_load_relaxed(&jrt_poller_forked))) return JANUS_STATE;
    uint32_t use = jrt_load_relaxed(&io->use); /* relaxed: the cas decides. */
    uint32_t most = may_wait(right) ? JRT_IO_WAITERS : JRT_IO_COUNT;
    do {
        if (jrt_unlikely((use & JRT_IO_CLOSING) != 0)) return lacks(handle, JANUS_STALE, 0);
        if (jrt_unlikely((use & exclusive) != 0)) return JANUS_STATE;
        if (jrt_unlikely((use & JRT_IO_COUNT) >= most)) return JANUS_FULL;
        /* acq_rel: [io-use], what the last caller wrote. */
    } while (jrt_unlikely(!jrt_cas_acq_rel(&io->use, &use, (use + 1) | exclusive)));
    /* acquire: as jrt_io_of, which asks again if the handle has fewer rights. */
    bool same = jrt_load_acquire(&io->key) == (handle.opaque[0] ^ handle.opaque[1]);
    if (jrt_unlikely(!same) && jrt_io_of(handle) != io) { /* it changed hands meanwhile */
        jrt_io_leave(io, exclusive);
        return lacks(handle, JANUS_STALE, 0);
    }
    *out = io;
    return JANUS_OK;
}

/* Nobody is inside, and nobody can enter. */
void jrt_io_left(struct jrt_io *io)
{
    struct jrt_io_cold *cold = io->cold;
    jrt_io_leave_home(io);
    bool shared = jrt_load_relaxed(&io->shared); /* relaxed: all calls that set it have left. */
    bool freed = cold->process != NULL;
    jrt_poller_leave(&io->at, io->fd, io->borrowed || shared);
    if (jrt_unlikely(jrt_world_now() != NULL)) jrt_io_remember(io);
    if (cold->process != NULL) {
        jrt_io_process_end(cold);
    } else if (io->fd >= 0 && !io->borrowed) {
        bool simulated = jrt_net_is_simulated(io->fd); /* files are real in a world, too */
        (void)(simulated ? jrt_net() : &jrt_net_real)->close(io->fd);
        freed = true;
    }
    io->fd = -1;
    io->cold = NULL;
    jrt_io_place_give(io);
    jrt_handle_closed(&cold->toll);
    free(jrt_load_relaxed(&cold->alarms)); /* relaxed: nobody else is left. */
    free(cold);
    if (freed) jrt_io_descriptor_freed(); /* after the toll: a server may wait for that */
}

void jrt_io_leave(struct jrt_io *io, uint32_t exclusive)
{
    /* acq_rel: [io-use]; the last one sees what all others did. */
    uint32_t use = jrt_fetch_sub_acq_rel(&io->use, 1u | exclusive);
    jrt_debug_invariant("io-use", (use & JRT_IO_COUNT) > 0 && (use & exclusive) == exclusive);
    if (jrt_unlikely((use & JRT_IO_CLOSING) != 0 && (use & JRT_IO_COUNT) == 1)) jrt_io_left(io);
}

bool jrt_io_claim(struct jrt_io *io, uint32_t exclusive)
{
    uint32_t use = jrt_load_relaxed(&io->use); /* relaxed: the cas decides. */
    do {
        if ((use & exclusive) != 0) return false;
        /* acq_rel: [io-use], what the last caller wrote. */
    } while (!jrt_cas_acq_rel(&io->use, &use, use | exclusive));
    return true;
}

void jrt_io_unclaim(struct jrt_io *io, uint32_t exclusive)
{
    uint32_t use = jrt_fetch_sub_acq_rel(&io->use, exclusive); /* acq_rel: as jrt_io_leave. */
    jrt_debug_invariant("io-use", (use & exclusive) == exclusive);
}

/* Closing. */

/* Keeps everybody else out. The caller is inside. */
static bool begin_closing(struct jrt_io *io)
{
    /* seq_cst: [io-use]; the key is taken away after it, and both words are read. */
    uint32_t use = jrt_fetch_or_seq_cst(&io->use, JRT_IO_CLOSING);
    if ((use & JRT_IO_CLOSING) != 0) return false;
    jrt_store_relaxed(&io->key, (uint64_t)0); /* relaxed: CLOSING decides. */
    return true;
}

void jrt_io_orphaned(const uint64_t name[2], bool left)
{
    struct jrt_io *io = NULL;
    janus_io       handle = {{name[0], name[1]}};
    if (left) { /* calls stay inside for ever: its place is lost, [io-world] */
        io = jrt_io_of(handle);
        if (io != NULL && begin_closing(io)) jrt_io_starved_forget(io);
    } else if (jrt_io_enter(handle, 0, 0, &io) == JANUS_OK) {
        bool ends = begin_closing(io);
        jrt_debug_invariant("io-world", ends && jrt_net_is_simulated(io->fd));
        (void)ends;
        jrt_io_leave(io, 0);
    }
}

janus_status jrt_io_close(janus_io handle)
{
    struct jrt_io *io = NULL;
    if (jrt_io_is_none(handle)) return JANUS_OK;
    janus_status status = jrt_io_enter(handle, JANUS_IO_MAY_CLOSE, 0, &io);
    if (status != JANUS_OK) return status;
    if (begin_closing(io)) {
        jrt_ready_tell(&io->ready, JRT_READY_READ);
        jrt_ready_tell(&io->ready, JRT_READY_WRITE);
    } else {
        status = lacks(handle, JANUS_STALE, 0);
    }
    jrt_io_leave(io, 0);
    return status;
}

janus_status janus_io_close(janus_io handle)
{
    jrt_stack_check(); /* [stack-reserve] */
    return jrt_io_told(jrt_io_close(handle));
}

/* The owner has ended. If another task has taken the handle meanwhile, it goes on. */
static void end_by_name(const uint64_t name[2])
{
    struct jrt_io *io = NULL;
    janus_io       handle = {{name[0], name[1]}};
    if (jrt_io_enter(handle, 0, 0, &io) != JANUS_OK) {
        jrt_io_leave_home_by_name(handle); /* another thread closes it */
        return;
    }
    jrt_io_lock(io->cold);
    bool owned = jrt_handle_is_owned(&io->cold->toll);
    bool ends = !owned && begin_closing(io);
    if (!owned) jrt_io_leave_home(io);
    jrt_io_unlock(io->cold);
    if (ends) {
        jrt_ready_tell(&io->ready, JRT_READY_READ);
        jrt_ready_tell(&io->ready, JRT_READY_WRITE);
    }
    jrt_io_leave(io, 0);
}

janus_status janus_io_release(janus_io handle, int *out_fd)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (out_fd == NULL) return jrt_io_told(JANUS_INVALID);
    if (jrt_world_now() != NULL) return jrt_io_told(jrt_trouble_simulated("raw descriptors"));
    /* Nothing counts a released descriptor any more. */
    janus_status status = jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_ADOPT, NULL);
    if (status != JANUS_OK) return jrt_io_told(status);
    status = jrt_io_enter(handle, JANUS_IO_MAY_CLOSE, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    if (io->cold->process != NULL) { /* the library collects it */
        jrt_io_leave(io, 0);
        return jrt_io_told(JANUS_UNAVAILABLE);
    }
    uint32_t alone = 1;
    /* acq_rel: as begin_closing, if nobody else is inside. */
    if (jrt_cas_acq_rel(&io->use, &alone, 1u | JRT_IO_CLOSING)) {
        jrt_store_relaxed(&io->key, (uint64_t)0); /* relaxed: CLOSING decides. */
        jrt_poller_leave(&io->at, io->fd, true);
        *out_fd = io->fd;
        io->borrowed = true;
    } else {
        status = (alone & JRT_IO_CLOSING) != 0 ? JANUS_STALE : JANUS_STATE;
    }
    jrt_io_leave(io, 0);
    return jrt_io_told(status);
}

janus_status janus_io_attenuate(janus_io handle, uint32_t rights, janus_io *out)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || rights == 0 || (rights & ~(uint32_t)JANUS_IO_MAY_ALL) != 0) {
        return jrt_io_told(JANUS_INVALID);
    }
    janus_status status = jrt_io_enter(handle, 0, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    if ((rights & ~jrt_io_rights(handle)) != 0) {
        status = JANUS_CAP_WIDENS;
    } else {
        *out = jrt_io_name_with(io, rights);
    }
    jrt_io_leave(io, 0);
    return jrt_io_told(status);
}

janus_status janus_io_take(janus_io handle)
{
    struct jrt_io     *io = NULL;
    struct jrt_worker *worker = jrt_worker_self();
    jrt_stack_check(); /* [stack-reserve] */
    if (worker == NULL) return jrt_io_told(JANUS_STATE);
    janus_status status = jrt_io_enter(handle, JANUS_IO_MAY_CLOSE, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    jrt_io_lock(io->cold);
    bool moves = jrt_io_home(io) != worker->scheduler; /* under the lock: others may take it, too */
    if (moves) jrt_io_leave_home(io);                  /* if the move fails, alarms are in frames */
    status = jrt_handle_move(&io->cold->toll);
    if (status == JANUS_OK && moves && worker->seat == NULL) {
        jrt_io_set_home(io, worker->scheduler);
    }
    jrt_io_unlock(io->cold);
    if (moves) { /* tasks that wait there may have lost their alarm, and look again, [io-lazy] */
        jrt_fence_seq_cst(); /* seq_cst: the alarm is written before the word is read. */
        jrt_ready_kick(&io->ready, JRT_READY_READ);
        jrt_ready_kick(&io->ready, JRT_READY_WRITE);
    }
    jrt_io_leave(io, 0);
    return jrt_io_told(status);
}

janus_status janus_io_shutdown(janus_io handle, uint32_t ways)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (ways == 0 || (ways & ~(uint32_t)JANUS_IO_BOTH) != 0) return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_io_enter(handle, JANUS_IO_MAY_CLOSE, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    if (!io->socket) {
        status = JANUS_UNAVAILABLE;
    } else {
        int error = jrt_net()->shutdown(io->fd, ways);
        if (error != 0) status = jrt_io_error(error);
    }
    jrt_io_leave(io, 0);
    return jrt_io_told(status);
}

janus_status janus_io_set_deadline(janus_io handle, uint32_t ways, uint64_t deadline_ns)
{
    struct jrt_io *io = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    if (ways == 0 || (ways & ~(uint32_t)JANUS_IO_BOTH) != 0) return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_io_enter(handle, JANUS_IO_MAY_CLOSE, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    for (int way = 0; way < JRT_READY_WAYS; way++) {
        if ((ways >> way & 1u) == 0) continue;
        jrt_store_seq_cst(&io->deadlines[way], deadline_ns); /* seq_cst: [ready-look]. */
        jrt_ready_kick(&io->ready, (enum jrt_ready_way)way);
    }
    jrt_io_leave(io, 0);
    return JANUS_OK;
}

janus_status janus_io_inspect(janus_io handle, janus_io_info *out)
{
    struct jrt_io *io = NULL;
    janus_address  peer;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out))
        return jrt_io_told(JANUS_INVALID);
    janus_status status = jrt_io_enter(handle, 0, 0, &io);
    if (status != JANUS_OK) return jrt_io_told(status);
    janus_io_info info = {
        .kind = (janus_io_kind)io->kind, .rights = jrt_io_rights(handle), .descriptor = io->fd};
    for (int way = 0; way < JRT_READY_WAYS; way++) { /* relaxed, all: numbers to show. */
        if (jrt_load_relaxed(&io->ready.words[way]) > JRT_READY_EDGE) info.waits |= 1u << way;
    }
    info.read_bytes = jrt_load_relaxed(&io->bytes[JRT_READY_READ]);     /* relaxed: as above. */
    info.written_bytes = jrt_load_relaxed(&io->bytes[JRT_READY_WRITE]); /* relaxed: as above. */
    info.read_deadline = jrt_load_relaxed(&io->deadlines[0]);           /* relaxed: as above. */
    info.write_deadline = jrt_load_relaxed(&io->deadlines[1]);          /* relaxed: as above. */
    jrt_name_again(info.name, sizeof info.name, io->cold->name);
    if (io->socket && jrt_net()->peer(io->fd, &peer) == 0 && peer.family != JANUS_FAMILY_NONE) {
        (void)jrt_address_text(&peer, info.peer, sizeof info.peer);
    }
    jrt_io_leave(io, 0);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}
