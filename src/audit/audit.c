/* SPDX-License-Identifier: MIT */
/*
 * The audit log: rings, one for each writer, and one consumer that makes lines of them.
 *
 *     worker ──► its ring ──┐
 *     worker ──► its ring ──┼──► drain ──► lines ──► fd or sink
 *     others ──► a ring under a lock ──┘        each pool: a ring under a lock (party.c)
 *
 * [audit-ring]  head counts the events put in, tail the events taken out. Event i lies in place i
 *   mod the size. The producer writes an event and then head. The consumer reads head, then events,
 *   then writes tail. Each side reads only the other's counter. The producer reads tail only if the
 *   ring was full at its last look. So an event costs it two stores.
 *
 * [audit-seq]  an event's number is head + lost when it begins. So events without room use numbers
 *   too, and the next event shows the hole. If no event follows, the consumer finds the hole: it
 *   reads lost *before* head. So it drains all events from before those losses. Numbers missing up
 *   to head + lost are lost for good.
 *
 * [audit-must]  an operation begins its event before it changes anything. If there is no room and
 *   the log fails closed, the operation is refused. Afterwards it cannot fail. Operations that take
 *   rights away are never refused: refusing a revocation because a log is full would be failing
 *   open. Their events can be lost, and the gap reports that.
 *
 * [audit-uses]  a producer counts uses in a small table of its own, with one place for each
 *   capability and right. A use that needs an occupied place writes the former count first. A drain
 *   raises `flush`, and producers write all counts at their next use. So the consumer never reads
 *   the table, and counting is an increment. Threads that are not workers may never return. So
 *   their table is under the lock, and the drain itself writes it.
 *
 * [audit-sink]  a line that the sink refused stays: its event is still in the ring, or its text in
 *   the buffer before the fd. Nothing behind it is taken out.
 *
 * Rejected:
 * - One ring for all: the producers would all write one cache line.
 * - Overwriting the oldest: an attacker wants to hide what comes before the noise.
 * - Sorting by time over all writers: readers can do that, because each line has its time.
 *
 * Locks: drain_lock, then list_lock. A shared writer's lock is held from begin to commit. Nothing
 * is locked inside, and the caller may hold a capability table's lock around it.
 */
#include "audit/audit.h"

#include "base/options.h"
#include "base/outside.h"
#include "fiber/ctx.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_EVENTS = 1024,
    EVENTS_MAX = 1 << 20,
    DEFAULT_USES = 65536,
    POOL_EVENTS_MIN = 8, /* a recharge is up to five events, all or none */
    BUFFER_BYTES = 32768,
};

static void poke(janus_audit *audit)
{
    if (audit->options.interval_ns == 0) return;
    /* relaxed: a hint. If it is old, the thread is awake and reads the rings anyway. */
    if (jrt_load_relaxed(&audit->poked) != 0) return;
    /* release: publishes what the thread must see. Pairs with its exchange. */
    if (jrt_exchange_release(&audit->poked, 1) == 0) jrt_futex_wake(&audit->poked, 1);
}

/* The producer. */

static void writer_lock(struct jrt_audit_writer *writer)
{
    if (writer->shared) jrt_lock(&writer->lock);
}

static void writer_unlock(struct jrt_audit_writer *writer)
{
    if (writer->shared) jrt_unlock(&writer->lock);
}

/* jrt_audit_begin, inside the lock, by [audit-ring]. */
static janus_status event_begin(struct jrt_audit_writer *writer, bool must)
{
    jrt_demand(writer->open == NULL, "an audit event was begun inside another");
    uint64_t head = jrt_load_relaxed(&writer->head); /* relaxed: only the producer writes it. */
    uint64_t lost = jrt_load_relaxed(&writer->lost); /* relaxed: only the producer writes it. */
    if (head - writer->tail_seen > writer->mask) {
        /* acquire: pairs with [tail-publish]. The consumer is done with the places below. */
        uint64_t tail = jrt_load_acquire(&writer->tail);
        jrt_debug_invariant("tail-publish", tail - writer->tail_seen <= head - writer->tail_seen);
        writer->tail_seen = tail;
    }
    jrt_debug_invariant("audit-ring", head - writer->tail_seen <= writer->mask + 1);
    bool full = head - writer->tail_seen > writer->mask;
    if (full && must && writer->audit->options.fail_closed) {
        /* relaxed, both: only the producer writes it. */
        jrt_store_relaxed(&writer->refused, jrt_load_relaxed(&writer->refused) + 1);
        poke(writer->audit);
        return JANUS_AUDIT_FULL;
    }
    writer->open = full ? &writer->spare : &writer->events[head & writer->mask];
    memset(writer->open, 0, sizeof *writer->open);
    writer->open->seq = head + lost; /* [audit-seq] */
    writer->open->mono_ns = jrt_clock_now_ns();
    return JANUS_OK;
}

/* jrt_audit_commit inside the lock. */
static void event_commit(struct jrt_audit_writer *writer)
{
    jrt_debug_invariant("audit-must", writer->open != NULL);
    /* relaxed, both: only the producer writes them. */
    uint64_t head = jrt_load_relaxed(&writer->head);
    uint64_t lost = jrt_load_relaxed(&writer->lost);
    if (writer->open == &writer->spare) {
        jrt_store_release(&writer->lost, lost + 1); /* release: after the head before it. */
    } else {
        /* release [head-publish]: a thread that sees the new head sees the event. */
        jrt_store_release(&writer->head, head + 1);
        if (jrt_unlikely(head + 1 - writer->tail_seen > writer->mask / 2)) {
            /* acquire: as in event_begin. */
            writer->tail_seen = jrt_load_acquire(&writer->tail);
            if (head + 1 - writer->tail_seen > writer->mask / 2) poke(writer->audit);
        }
    }
    writer->open = NULL;
}

janus_status jrt_audit_begin(struct jrt_audit_writer *writer, bool must,
                             struct jrt_audit_event **out)
{
    writer_lock(writer);
    janus_status status = event_begin(writer, must);
    if (status == JANUS_OK) {
        *out = writer->open;
    } else {
        writer_unlock(writer);
    }
    return status;
}

void jrt_audit_commit(struct jrt_audit_writer *writer)
{
    event_commit(writer);
    writer_unlock(writer);
}

void jrt_audit_abandon(struct jrt_audit_writer *writer)
{
    writer->open = NULL;
    writer_unlock(writer);
}

void jrt_audit_name(struct jrt_audit_event *event, const char *name)
{
    if (name == NULL) return;
    event->name_bytes = (uint8_t)strnlen(name, JRT_AUDIT_NAME_BYTES);
    memcpy(event->name, name, event->name_bytes);
}

janus_status jrt_audit_budget(struct jrt_audit_writer *writer, enum jrt_audit_what what,
                              uint64_t holder, enum jrt_audit_component component, uint64_t before,
                              uint64_t after, const char *name)
{
    struct jrt_audit_event *event;
    bool                    must = what == JRT_AUDIT_RECHARGE; /* [audit-must] */
    janus_status            status = jrt_audit_begin(writer, must, &event);
    if (status != JANUS_OK) return status;
    event->what = (uint8_t)what;
    event->holder = holder;
    event->component = (uint8_t)component;
    event->first = before;
    event->after = after;
    jrt_audit_name(event, name);
    jrt_audit_commit(writer);
    return JANUS_OK;
}

/* Whether this many events can be written. Always true if the log may lose some. Inside the
 * lock. */
static bool has_room(struct jrt_audit_writer *writer, uint64_t events)
{
    if (!writer->audit->options.fail_closed) return true;
    uint64_t head = jrt_load_relaxed(&writer->head); /* relaxed: only the producer writes it. */
    /* acquire: as in event_begin. */
    writer->tail_seen = jrt_load_acquire(&writer->tail);
    return head + events - writer->tail_seen <= writer->mask + 1;
}

janus_status jrt_audit_recharge(struct jrt_audit_writer *writer, uint64_t holder,
                                const janus_budget *before, const janus_budget *more,
                                const char *name)
{
    const uint64_t was[] = {before->ops, before->memory, before->spawn_count, before->channel_ops,
                            before->syscalls};
    const uint64_t got[] = {more->ops, more->memory, more->spawn_count, more->channel_ops,
                            more->syscalls};
    uint64_t       events = 0;
    for (unsigned i = JRT_AUDIT_OPS; i <= JRT_AUDIT_SYSCALLS; i++) events += got[i] != 0;
    writer_lock(writer);
    bool room = has_room(writer, events);
    if (!room) {
        /* relaxed, both: only the producer writes it. */
        jrt_store_relaxed(&writer->refused, jrt_load_relaxed(&writer->refused) + 1);
        poke(writer->audit);
    }
    for (unsigned i = JRT_AUDIT_OPS; room && i <= JRT_AUDIT_SYSCALLS; i++) {
        if (got[i] == 0) continue;
        (void)event_begin(writer, false); /* there is room, or the event may be lost */
        writer->open->what = JRT_AUDIT_RECHARGE;
        writer->open->holder = holder;
        writer->open->component = (uint8_t)i;
        writer->open->first = was[i];
        writer->open->after = janus_units_add(was[i], got[i]);
        jrt_audit_name(writer->open, name);
        event_commit(writer);
    }
    writer_unlock(writer);
    return room ? JANUS_OK : JANUS_AUDIT_FULL;
}

/* Writes the uses counted in one place, [audit-uses]. AUDIT_FULL: they stay. Inside the lock. */
static janus_status hand_in(struct jrt_audit_writer *writer, struct jrt_audit_use *use)
{
    if (use->cap == 0) return JANUS_OK;
    janus_status status = event_begin(writer, true);
    if (status != JANUS_OK) return status;
    struct jrt_audit_event *event = writer->open;
    event->what = JRT_AUDIT_USE;
    event->cap = use->cap;
    event->kind = (uint8_t)use->kind;
    event->holder = use->holder;
    event->wanted = use->rights;
    event->count = use->count;
    event->first = use->first_ns;
    use->cap = 0;
    event_commit(writer);
    return JANUS_OK;
}

/* jrt_audit_flush inside the lock. */
static janus_status hand_in_all(struct jrt_audit_writer *writer)
{
    /* relaxed: the next use notices a drain in between. */
    uint64_t flush = jrt_load_relaxed(&writer->audit->flush);
    for (int i = 0; i < JRT_AUDIT_USES; i++) {
        janus_status status = hand_in(writer, &writer->uses[i]);
        if (status != JANUS_OK) return status;
    }
    writer->flush_seen = flush;
    return JANUS_OK;
}

janus_status jrt_audit_flush(struct jrt_audit_writer *writer)
{
    writer_lock(writer);
    janus_status status = hand_in_all(writer);
    writer_unlock(writer);
    return status;
}

/* The slow path of jrt_audit_used, inside the lock. */
static janus_status count_use(struct jrt_audit_writer *writer, const struct jrt_audit_use *use)
{
    /* relaxed: as in jrt_audit_used. */
    if (jrt_load_relaxed(&writer->audit->flush) != writer->flush_seen) {
        janus_status status = hand_in_all(writer);
        if (status != JANUS_OK) return status;
    }
    struct jrt_audit_use *mine = jrt_audit_use_at(writer, use);
    bool                  same = mine->cap == use->cap && mine->rights == use->rights;
    if (!same || mine->count >= writer->audit->options.max_use_count) {
        janus_status status = hand_in(writer, mine);
        if (status != JANUS_OK) return status;
        *mine = *use;
        mine->count = 0;
        mine->first_ns = jrt_clock_now_ns();
    }
    mine->count++;
    jrt_debug_invariant("audit-uses", mine->count <= writer->audit->options.max_use_count);
    return JANUS_OK;
}

janus_status jrt_audit_used_slow(struct jrt_audit_writer *writer, const struct jrt_audit_use *use)
{
    writer_lock(writer);
    janus_status status = count_use(writer, use);
    writer_unlock(writer);
    return status;
}

/* The consumer; all under drain_lock. */

static bool buffer_flush(janus_audit *audit)
{
    size_t done = 0;
    while (done < audit->buffered) {
        ptrdiff_t took =
            jrt_fd_write(audit->options.fd, audit->buffer + done, audit->buffered - done);
        if (took <= 0) break;
        done += (size_t)took;
    }
    audit->buffered -= done;
    memmove(audit->buffer, audit->buffer + done, audit->buffered);
    return audit->buffered == 0;
}

/* Passes audit->line to the sink. False: the sink refused it, [audit-sink]. */
static bool emit(janus_audit *audit, size_t bytes)
{
    if (audit->options.sink != NULL) {
        if (!audit->options.sink(audit->options.argument, audit->line, bytes)) return false;
    } else {
        if (audit->buffered + bytes > BUFFER_BYTES) (void)buffer_flush(audit);
        if (audit->buffered + bytes > BUFFER_BYTES) return false;
        memcpy(audit->buffer + audit->buffered, audit->line, bytes);
        audit->buffered += bytes;
        jrt_debug_invariant("audit-sink", audit->buffered <= BUFFER_BYTES);
    }
    (void)jrt_fetch_add_relaxed(&audit->written, 1); /* relaxed: a statistic. */
    return true;
}

/* Reports missing numbers below `seq` as a gap. */
static bool emit_gap(janus_audit *audit, struct jrt_audit_writer *writer, uint64_t seq)
{
    if (seq <= writer->next_seq) return true;
    size_t bytes =
        jrt_audit_format_gap(audit->line, sizeof audit->line, writer, seq - writer->next_seq);
    if (!emit(audit, bytes)) return false;
    writer->next_seq = seq;
    return true;
}

static bool drain_writer(janus_audit *audit, struct jrt_audit_writer *writer)
{
    /* acquire: lost is read before head, [audit-seq]. */
    uint64_t lost = jrt_load_acquire(&writer->lost);
    /* acquire: pairs with [head-publish]. */
    uint64_t head = jrt_load_acquire(&writer->head);
    uint64_t tail = jrt_load_relaxed(&writer->tail); /* relaxed: only the consumer writes it. */
    for (; tail != head; tail++) {
        const struct jrt_audit_event *event = &writer->events[tail & writer->mask];
        jrt_debug_invariant("audit-seq", event->seq >= writer->next_seq);
        jrt_debug_invariant("head-publish", event->seq >= tail && event->mono_ns != 0);
        if (!emit_gap(audit, writer, event->seq)) return false;
        size_t bytes = jrt_audit_format(audit->line, sizeof audit->line, writer->id, event);
        if (!emit(audit, bytes)) return false;
        writer->next_seq = event->seq + 1;
        /* release [tail-publish]: the consumer is done with the place before it is filled again. */
        jrt_store_release(&writer->tail, tail + 1);
    }
    if (!emit_gap(audit, writer, head + lost)) return false;
    /* release: the consumer is done with the ring up to here, [audit-again]. */
    jrt_store_release(&writer->told, head + lost);
    return true;
}

static bool drain_begun(janus_audit *audit)
{
    if (audit->begun) return true;
    size_t bytes = jrt_audit_format_begin(audit->line, sizeof audit->line, jrt_clock_now_ns(),
                                          audit->options.fail_closed);
    audit->begun = emit(audit, bytes);
    return audit->begun;
}

janus_status janus_audit_drain(janus_audit *audit)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (audit == NULL) return JANUS_INVALID;
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&audit->drain_lock);
    bool taken = drain_begun(audit);
    jrt_lock(&audit->list_lock);
    struct jrt_audit_writer *writer = audit->writers; /* the list only grows, at its head */
    jrt_unlock(&audit->list_lock);
    for (; taken && writer != NULL; writer = writer->next) {
        if (writer->shared) (void)jrt_audit_flush(writer); /* without room, they stay */
        taken = drain_writer(audit, writer);
    }
    if (audit->options.sink == NULL && !buffer_flush(audit)) taken = false;
    jrt_unlock(&audit->drain_lock);
    (void)jrt_fetch_add_relaxed(&audit->flush, 1); /* relaxed: carries no data, [audit-uses] */
    return taken ? JANUS_OK : JANUS_UNAVAILABLE;
}

static void thread_main(void *argument)
{
    janus_audit *audit = argument;
    /* relaxed: the join orders what follows. The last drain is in destroy. */
    while (!jrt_load_relaxed(&audit->stopping)) {
        uint64_t deadline_ns = jrt_clock_now_ns() + audit->options.interval_ns;
        (void)jrt_futex_wait_until(&audit->poked, 0, deadline_ns);
        /* acquire: pairs with poke. The next round sees a later poke. */
        (void)jrt_exchange_acquire(&audit->poked, 0);
        JANUS_IGNORE(janus_audit_drain(audit));
    }
}

/* Writers, creating and destroying. */

janus_status jrt_audit_writer_create(janus_audit *audit, bool shared, bool party,
                                     struct jrt_audit_writer **out)
{
    uint32_t places = party ? audit->options.pool_events : audit->options.ring_events;
    struct jrt_audit_writer *writer = jrt_aligned_alloc(64, sizeof *writer);
    struct jrt_audit_event *events = jrt_aligned_alloc(64, places * sizeof(struct jrt_audit_event));
    if (writer == NULL || events == NULL) {
        free(writer);
        free(events);
        return JANUS_NO_MEMORY;
    }
    *writer = (struct jrt_audit_writer){.mask = places - 1,
                                        .events = events,
                                        .audit = audit,
                                        .shared = shared,
                                        .party = party,
                                        .in_use = true};
    (void)pthread_mutex_init(&writer->lock, NULL); /* cannot fail without attributes */
    jrt_lock(&audit->list_lock);
    writer->id = audit->writer_count++;
    writer->next = audit->writers;
    audit->writers = writer;
    jrt_unlock(&audit->list_lock);
    *out = writer;
    return JANUS_OK;
}

janus_status jrt_audit_writer_open(janus_audit *audit, struct jrt_audit_writer **out)
{
    jrt_lock(&audit->list_lock);
    struct jrt_audit_writer *writer = audit->writers;
    while (writer != NULL && (writer->in_use || writer->party)) writer = writer->next;
    if (writer != NULL) writer->in_use = true;
    jrt_unlock(&audit->list_lock);
    if (writer == NULL) return jrt_audit_writer_create(audit, false, false, out);
    *out = writer;
    return JANUS_OK;
}

void jrt_audit_writer_close(struct jrt_audit_writer *writer)
{
    jrt_demand(!writer->shared, "the shared audit writer must not be closed");
    janus_audit *audit = writer->audit;
    (void)jrt_audit_flush(writer); /* without room, they stay for the next owner, or for the end */
    jrt_lock(&audit->list_lock);
    writer->in_use = false;
    jrt_unlock(&audit->list_lock);
}

static uint32_t power_of_two(uint32_t wanted, uint32_t least)
{
    while (least < wanted) least *= 2;
    return least;
}

static janus_status options_fill(const janus_audit_options *given, janus_audit_options *options)
{
    *options = (janus_audit_options){0};
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
        memcpy(options, given, given->struct_bytes);
    }
    if (options->fd < 0 || options->ring_events > EVENTS_MAX) return JANUS_INVALID;
    if (options->pool_events > EVENTS_MAX) return JANUS_INVALID;
    if (options->fd == 0) options->fd = 2;
    if (options->ring_events == 0) options->ring_events = DEFAULT_EVENTS;
    if (options->max_use_count == 0) options->max_use_count = DEFAULT_USES;
    options->ring_events = power_of_two(options->ring_events, 2);
    if (options->pool_events == 0) options->pool_events = options->ring_events / 4;
    options->pool_events = power_of_two(options->pool_events, POOL_EVENTS_MIN);
    return JANUS_OK;
}

static void audit_free(janus_audit *audit)
{
    while (audit->writers != NULL) {
        struct jrt_audit_writer *writer = audit->writers;
        audit->writers = writer->next;
        pthread_mutex_destroy(&writer->lock);
        free(writer->events);
        free(writer);
    }
    pthread_mutex_destroy(&audit->list_lock);
    pthread_mutex_destroy(&audit->drain_lock);
    free(audit->buffer);
    free(audit);
}

janus_status janus_audit_create(const janus_audit_options *options, janus_audit **out)
{
    jrt_outside_call_long(); /* [turn-call] */
    janus_audit_options filled;
    if (out == NULL) return JANUS_INVALID;
    janus_status status = options_fill(options, &filled);
    if (status == JANUS_OK) status = jrt_outside_ask();
    if (status != JANUS_OK) return status;
    janus_audit *audit = jrt_aligned_alloc(64, sizeof *audit);
    char        *buffer = jrt_malloc(BUFFER_BYTES);
    if (audit == NULL || buffer == NULL) {
        free(audit);
        free(buffer);
        return JANUS_NO_MEMORY;
    }
    *audit = (janus_audit){.options = filled, .buffer = buffer};
    (void)pthread_mutex_init(&audit->list_lock, NULL); /* cannot fail without attributes */
    (void)pthread_mutex_init(&audit->drain_lock, NULL);
    status = jrt_audit_writer_create(audit, true, false, &audit->shared);
    if (status == JANUS_OK && filled.interval_ns > 0 &&
        !jrt_os_thread_start(&audit->thread, thread_main, audit, "janus-audit")) {
        status = JANUS_NO_MEMORY;
    }
    if (status != JANUS_OK) {
        audit_free(audit);
        return status;
    }
    *out = audit;
    return JANUS_OK;
}

janus_status janus_audit_inspect(janus_audit *audit, janus_audit_info *out)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (audit == NULL || out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out)) {
        return JANUS_INVALID;
    }
    janus_audit_info sum = {0};
    jrt_lock(&audit->list_lock);
    for (struct jrt_audit_writer *writer = audit->writers; writer != NULL; writer = writer->next) {
        sum.recorded += jrt_load_relaxed(&writer->head);   /* relaxed: it changes meanwhile. */
        sum.lost += jrt_load_relaxed(&writer->lost);       /* relaxed: it changes meanwhile. */
        sum.refused += jrt_load_relaxed(&writer->refused); /* relaxed: it changes meanwhile. */
    }
    jrt_unlock(&audit->list_lock);
    sum.written = jrt_load_relaxed(&audit->written); /* relaxed: it changes meanwhile. */
    jrt_struct_give(out, &sum);
    return JANUS_OK;
}

janus_status janus_audit_destroy(janus_audit *audit)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (audit == NULL) return JANUS_INVALID;
    if (audit->options.interval_ns > 0) {
        jrt_store_relaxed(&audit->stopping, true); /* relaxed: poke's release orders it. */
        jrt_exchange_release(&audit->poked, 1);    /* release: as in poke, but always. */
        jrt_futex_wake(&audit->poked, 1);
        jrt_os_thread_join(&audit->thread);
    }
    janus_status status = janus_audit_drain(audit);
    for (struct jrt_audit_writer *writer = audit->writers; writer != NULL; writer = writer->next) {
        (void)jrt_audit_flush(writer); /* now there is room, unless the sink takes nothing */
    }
    if (status == JANUS_OK) status = janus_audit_drain(audit);
    audit_free(audit);
    return status;
}
