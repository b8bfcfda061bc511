/* SPDX-License-Identifier: MIT */
/*
 * Select: does one of several cases, and none twice.
 *
 * First it tries the cases one by one, in an order that is drawn on the way. So all possible cases
 * are equally likely, and a case that is found early costs one draw. If no case was possible, it
 * locks all channels, by address, each once. Now it is certain. Either no case is possible at this
 * moment, which a try reports. Or it stands in all queues before any thread can change anything,
 * and waits.
 *
 * A claimer wakes it ([chan-claim]), or it gives up by the same change of `claimed`. Then it takes
 * its entries off the other queues, one lock at a time. Until then other threads may find the
 * entries and skip them. The entries lie in the caller's cases and the party in this frame, so the
 * call does not return before.
 *
 * [select-fair]  a waiting select may have several entries in one queue, and a step serves the
 *   first of them. So the entries stand in the drawn order. That order is complete, because a
 *   select waits only after it has tried every case. Each case is equally likely to be the first.
 *
 * [select-other]  a timer is a case without a channel. The select waits at most until the earliest
 *   timer. Woken by its alarm, it chooses among the timers that are due. A source (source.h), such
 *   as an event, is joined after the channels are unlocked and before the task parks. If it is
 *   ready then, the select claims itself, unless another thread was faster. It leaves all sources
 *   before it returns.
 *
 * [select-grow]  an unbounded channel that must grow may be found ready under all locks, where it
 *   cannot grow. Then the select starts again from the beginning, where it can.
 */
#include "base/rng.h"
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "chan/step.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "rt/source.h"
#include "task/note.h"
#include "task/task.h"
#include "task/worker.h"

#define CASES_MAX ((size_t)INT32_MAX)

/* What a case holds while it is in use. `drawn` and `sorted` are arrays over all cases. */
struct place {
    union {
        struct jrt_chan_entry entry;   /* of a channel */
        struct jrt_lookout    lookout; /* of a source */
    };
    struct jrt_chan *chan;   /* of this case; NULL: it has no channel */
    uint32_t         drawn;  /* index of the case that is tried at this place */
    uint32_t         sorted; /* index of the case at this place by address */
    bool             own;    /* how its channel was locked, if this is the channel's first case */
    bool             joined; /* a source */
    uint32_t         number; /* of its channel, for traces */
};

_Static_assert(sizeof(struct place) <= sizeof((janus_select_case *)0)->opaque, "it fits");

struct selection {
    janus_select_case    *cases;
    uint32_t              count;
    uint32_t              chosen;   /* or the case at fault */
    struct jrt_worker    *worker;   /* NULL: a plain thread; [worker-again] after a wait */
    uint64_t              first_ns; /* the earliest deadline of a timer; JRT_NEVER: no timers */
    uint64_t              now_ns;   /* read for timers, if there are any */
    bool                  sources;  /* there are sources */
    struct jrt_chan_party party;
    struct jrt_waiting    waiting;
};

static struct place *place_of(janus_select_case *at) { return (struct place *)(void *)at->opaque; }

static enum jrt_chan_kind kind_of(const janus_select_case *at)
{
    return (enum jrt_chan_kind)at->kind;
}

/* Decodes a case without a channel, [select-other]. */

static janus_status decode_other(struct selection *s, const janus_select_case *at)
{
    if (at->kind == JANUS_SELECT_KIND_TIMER) {
        if (at->deadline_ns < s->first_ns) s->first_ns = at->deadline_ns;
        return JANUS_OK;
    }
    s->sources = true;
    bool whole = at->kind == JANUS_SELECT_KIND_EVENT && at->source != NULL && at->value != NULL;
    return whole ? JANUS_OK : JANUS_INVALID;
}

static void look_at_clock(struct selection *s)
{
    if (jrt_unlikely(s->first_ns != JRT_NEVER)) s->now_ns = jrt_clock_now_ns();
}

/* OK: the case was possible, and is done. */
static janus_status try_other(const struct selection *s, const janus_select_case *at)
{
    bool ready = false;
    if (at->kind == JANUS_SELECT_KIND_TIMER) ready = s->now_ns >= at->deadline_ns;
    if (at->kind == JANUS_SELECT_KIND_EVENT) ready = at->source->is_ready(at->value);
    return ready ? JANUS_OK : JANUS_WOULD_WAIT;
}

/* A wait has ended with `status`. If that is DEADLINE, a timer may be due. */
static janus_status choose_timer(struct selection *s, janus_status status)
{
    if (status != JANUS_DEADLINE || s->first_ns == JRT_NEVER) return status;
    look_at_clock(s);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t now = place_of(&s->cases[i])->drawn;
        if (s->cases[now].kind != JANUS_SELECT_KIND_TIMER) continue;
        if (try_other(s, &s->cases[now]) != JANUS_OK) continue;
        s->chosen = now;
        return JANUS_OK;
    }
    return status;
}

static bool claim_case(struct jrt_lookout *lookout)
{
    struct jrt_chan_party *party = lookout->party;
    uint32_t               nobody = 0;
    /* acq_rel: as jrt_chan_claim. */
    if (!jrt_cas_acq_rel(&party->claimed, &nobody, lookout->index + 1)) return false;
    party->outcome = JANUS_OK;
    return true;
}

static void wake_case(struct jrt_lookout *lookout) { jrt_chan_wake(lookout->party); }

/* Joins all sources; the select stands in all queues already. False: a source is ready, and the
 * select has claimed itself for that case. True: it waits, or a claimer wakes it. */
static bool join_sources(struct selection *s, bool *out_outside)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t           now = place_of(&s->cases[i])->drawn;
        janus_select_case *at = &s->cases[now];
        struct place      *place = place_of(at);
        bool               outside = false;
        if (at->kind != JANUS_SELECT_KIND_EVENT) continue;
        place->lookout = (struct jrt_lookout){
            .claim = claim_case, .wake = wake_case, .party = &s->party, .index = now};
        place->joined = at->source->join(at->value, &place->lookout, &outside);
        *out_outside = *out_outside || outside;
        if (!place->joined) return !claim_case(&place->lookout);
    }
    return true;
}

static void leave_sources(struct selection *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        janus_select_case *at = &s->cases[i];
        if (at->kind != JANUS_SELECT_KIND_EVENT || !place_of(at)->joined) continue;
        at->source->leave(at->value, &place_of(at)->lookout);
        place_of(at)->joined = false;
    }
}

static bool has_left_all(const struct selection *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (place_of(&s->cases[i])->joined) return false;
    }
    return true;
}

/* Checks all cases before anything happens. */
static janus_status decode(struct selection *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        janus_select_case *at = &s->cases[i];
        struct jrt_chan   *chan = NULL;
        janus_status       status = JANUS_OK;
        if (jrt_unlikely((unsigned)at->kind > JANUS_SELECT_KIND_SEND)) {
            status = decode_other(s, at);
        } else if (!jrt_chan_is_none(at->channel)) {
            status = jrt_chan_decode(at->channel, jrt_chan_right_for(kind_of(at)), &chan);
        }
        s->chosen = i;
        if (jrt_unlikely(status != JANUS_OK)) return status;
        place_of(at)->chan = chan;
        place_of(at)->joined = false;
        place_of(at)->drawn = place_of(at)->sorted = i;
    }
    return JANUS_OK;
}

/* One by one. */

/* A random number below n. Threads that are not workers use a shared counter. */
static uint32_t draw(struct selection *s, uint32_t n)
{
    static _Atomic(uint64_t) draws;
    struct jrt_world        *world = jrt_world_now();
    if (jrt_unlikely(world != NULL)) return world->choose(world, JRT_CHOOSE_CASE, n);
    if (s->worker != NULL) return jrt_rng_below(&s->worker->choices, n);
    uint64_t       state = jrt_fetch_add_relaxed(&draws, (uint64_t)1); /* relaxed: a number. */
    struct jrt_rng rng;
    jrt_rng_seed(&rng, state);
    return jrt_rng_below(&rng, n);
}

/* In a select, a send waits for room even if a plain send would fail. */
static janus_status in_select(janus_status status)
{
    return status == JANUS_FULL ? JANUS_WOULD_WAIT : status;
}

static janus_status try_each(struct selection *s)
{
    janus_select_case *cases = s->cases;
    look_at_clock(s);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t other = s->count - i > 1 ? i + draw(s, s->count - i) : i;
        uint32_t now = place_of(&cases[other])->drawn;
        place_of(&cases[other])->drawn = place_of(&cases[i])->drawn;
        place_of(&cases[i])->drawn = now;
        janus_select_case *at = &cases[now];
        struct jrt_chan   *chan = place_of(at)->chan;
        janus_status       status = JANUS_WOULD_WAIT;
        if (jrt_unlikely(chan == NULL)) {
            status = try_other(s, at);
        } else {
            status = jrt_chan_attempt(chan, at->channel, s->worker, kind_of(at), at->value);
            status = in_select(status);
        }
        s->chosen = now;
        if (status != JANUS_WOULD_WAIT) return status;
    }
    return JANUS_WOULD_WAIT;
}

/* All at once. */

static struct jrt_chan *chan_at(const struct selection *s, uint32_t number)
{
    uint32_t index = place_of(&s->cases[number])->sorted;
    return place_of(&s->cases[index])->chan;
}

static void swap_sorted(struct selection *s, uint32_t left, uint32_t right)
{
    uint32_t index = place_of(&s->cases[left])->sorted;
    place_of(&s->cases[left])->sorted = place_of(&s->cases[right])->sorted;
    place_of(&s->cases[right])->sorted = index;
}

static void sift(struct selection *s, uint32_t from, uint32_t count)
{
    for (uint32_t child = 2 * from + 1; child < count; child = 2 * from + 1) {
        if (child + 1 < count && chan_at(s, child + 1) > chan_at(s, child)) child++;
        if (chan_at(s, from) >= chan_at(s, child)) return;
        swap_sorted(s, from, child);
        from = child;
    }
}

/* Sorts by address, in place and without recursion. */
static void sort(struct selection *s)
{
    for (uint32_t i = s->count / 2; i > 0; i--) sift(s, i - 1, s->count);
    for (uint32_t last = s->count; last > 1; last--) {
        swap_sorted(s, 0, last - 1);
        sift(s, 0, last - 1);
    }
}

/* Whether the case at this place by address is the first of its channel. */
static bool is_first(const struct selection *s, uint32_t number)
{
    struct jrt_chan *chan = chan_at(s, number);
    return chan != NULL && (number == 0 || chan_at(s, number - 1) != chan);
}

static bool *own_at(const struct selection *s, uint32_t number)
{
    return &place_of(&s->cases[place_of(&s->cases[number])->sorted])->own;
}

static void lock_all(struct selection *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (is_first(s, i)) *own_at(s, i) = jrt_chan_enter_more(chan_at(s, i), s->worker);
    }
}

static void unlock_all(struct selection *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (is_first(s, i)) jrt_chan_leave(chan_at(s, i), *own_at(s, i));
    }
}

/* Does the first possible case in the drawn order. All channels are locked. Returns as
 * jrt_chan_step_valid. */
static janus_status step_any(struct selection *s, struct jrt_chan_party **out_wake, char **out_free)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t           now = place_of(&s->cases[i])->drawn;
        janus_select_case *at = &s->cases[now];
        struct jrt_chan   *chan = place_of(at)->chan;
        s->chosen = now;
        if (jrt_unlikely(chan == NULL)) {
            if (try_other(s, at) == JANUS_OK) return JANUS_OK;
            continue;
        }
        janus_status status = in_select(
            jrt_chan_step_valid(chan, at->channel, kind_of(at), at->value, out_wake, out_free));
        jrt_chan_note(s->worker, kind_of(at), chan, status);
        if (status != JANUS_WOULD_WAIT) return status;
    }
    return JANUS_WOULD_WAIT;
}

/* Whether the drawn order has every case once: the sums of the numbers and squares are right. */
static bool is_complete(const struct selection *s)
{
    uint64_t sum = 0, squares = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t drawn = place_of(&s->cases[i])->drawn;
        sum += i - drawn;
        squares += (uint64_t)i * i - drawn * drawn;
    }
    return sum == 0 && squares == 0;
}

/* Enters all queues in the drawn order, [select-fair]. All channels are locked. Returns whether a
 * channel is also open to plain threads. */
static bool queue_all(struct selection *s)
{
    bool outside = false;
    jrt_debug_invariant("select-fair", is_complete(s));
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t           now = place_of(&s->cases[i])->drawn;
        janus_select_case *at = &s->cases[now];
        struct jrt_chan   *chan = place_of(at)->chan;
        if (chan == NULL) continue;
        struct jrt_chan_entry *entry = &place_of(at)->entry;
        *entry = (struct jrt_chan_entry){.party = &s->party, .value = at->value, .index = now};
        jrt_chan_enqueue(chan, kind_of(at), entry);
        place_of(at)->number = chan->number;
        outside = outside || chan->outside;
    }
    return outside;
}

static void dequeue_all(struct selection *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        janus_select_case *at = &s->cases[i];
        struct jrt_chan   *chan = place_of(at)->chan;
        if (chan == NULL) continue;
        bool                   own = jrt_chan_enter(chan, s->worker);
        struct jrt_chan_entry *entry = &place_of(at)->entry;
        if (entry->queue != NULL) jrt_chan_dequeue(entry->queue, entry);
        jrt_chan_leave(chan, own);
    }
}

/* With certainty, does one case or finds that none is possible. Then, if it `waits`, enters all
 * queues. */
static janus_status step_or_queue(struct selection *s, bool waits, bool *out_outside)
{
    struct jrt_chan_party *wake = NULL;
    char                  *large = NULL;
    sort(s);
    lock_all(s);
    janus_status status = step_any(s, &wake, &large);
    jrt_debug_invariant("select-grow", status != JRT_CHAN_GROW || (wake == NULL && large == NULL));
    if (status == JANUS_WOULD_WAIT && waits) *out_outside = queue_all(s);
    unlock_all(s);
    if (wake != NULL) jrt_chan_wake(wake);
    free(large);
    return status;
}

/* Waiting. */

/* Turns the end of a wait into the status to return. */
static janus_status come_back(struct selection *s, janus_status ended)
{
    uint32_t nobody = 0;
    /* acq_rel: [chan-claim]. On failure it sees the claimer's writes. */
    bool gave_up =
        ended != JANUS_OK && jrt_cas_acq_rel(&s->party.claimed, &nobody, JRT_CHAN_GAVE_UP);
    if (!gave_up && ended != JANUS_OK) jrt_chan_await_done(&s->party); /* [chan-last] */
    dequeue_all(s);
    if (jrt_unlikely(s->sources)) leave_sources(s);
    if (gave_up) return ended;
    s->chosen = jrt_load_acquire(&s->party.claimed) - 1; /* acquire: the claimer's writes. */
    janus_select_case *at = &s->cases[s->chosen];
    if (s->party.outcome == JANUS_OK && place_of(at)->chan != NULL) {
        jrt_chan_note_waited(s->worker, kind_of(at), place_of(at)->number);
    }
    return s->party.outcome;
}

static janus_status queue_at_all(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct selection *s = jrt_list_entry(waiting, struct selection, waiting);
    (void)task;
    janus_status status = step_or_queue(s, true, &waiting->outside);
    if (status != JANUS_WOULD_WAIT || !s->sources) return status;
    return join_sources(s, &waiting->outside) ? JANUS_WOULD_WAIT : come_back(s, JANUS_OK);
}

static janus_status leave_queues(struct jrt_waiting *waiting, struct jrt_task *task,
                                 janus_status ended)
{
    struct selection *s = jrt_list_entry(waiting, struct selection, waiting);
    (void)task;
    s->worker = jrt_worker_self(); /* [worker-again] */
    return come_back(s, ended);
}

static janus_status wait_as_task(struct selection *s, uint64_t deadline_ns)
{
    if (jrt_wait_is_late(deadline_ns)) return JANUS_DEADLINE;
    s->party = (struct jrt_chan_party){.task = s->worker->current, .selects = true};
    s->waiting = (struct jrt_waiting){.why = JRT_WAIT_SELECT,
                                      .deadline_ns = deadline_ns,
                                      .join = queue_at_all,
                                      .leave = leave_queues};
    return jrt_wait(s->worker, &s->waiting);
}

static janus_status wait_as_thread(struct selection *s, uint64_t deadline_ns)
{
    bool outside = false;
    s->party = (struct jrt_chan_party){.selects = true};
    janus_status status = step_or_queue(s, true, &outside);
    if (status != JANUS_WOULD_WAIT) return status;
    bool waits = !s->sources || join_sources(s, &outside);
    return come_back(s, waits ? jrt_wait_as_thread(&s->party.done, deadline_ns) : JANUS_OK);
}

static janus_status select_now(struct selection *s)
{
    bool         outside = false;
    janus_status status = JANUS_OK;
    do {
        status = try_each(s);
        if (status == JANUS_WOULD_WAIT) status = step_or_queue(s, false, &outside);
    } while (status == JRT_CHAN_GROW); /* [select-grow] */
    return status;
}

static janus_status select_until(struct selection *s, uint64_t deadline_ns)
{
    janus_status status = JANUS_OK;
    do {
        status = try_each(s);
        if (status != JANUS_WOULD_WAIT) {
            if (s->worker != NULL) jrt_chan_took_a_turn(s->worker);
            return status;
        }
        uint64_t until_ns = s->first_ns < deadline_ns ? s->first_ns : deadline_ns;
        status = s->worker != NULL ? wait_as_task(s, until_ns) : wait_as_thread(s, until_ns);
        status = choose_timer(s, status);
        jrt_debug_invariant("select-other", has_left_all(s));
    } while (status == JRT_CHAN_GROW); /* [select-grow] */
    return status;
}

/* The public calls. */

/* Whether one of the cases was done or is at fault. */
static bool names_case(janus_status status)
{
    return status == JANUS_OK || status == JANUS_CLOSED || status == JANUS_CAP_RIGHT ||
           status == JANUS_STALE || status == JANUS_INVALID;
}

static janus_status do_select(janus_select_case *cases, size_t count, size_t *out_chosen,
                              bool waits, uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    if ((cases == NULL && count > 0) || count > CASES_MAX) return JANUS_INVALID;
    struct selection s = {.cases = cases,
                          .count = (uint32_t)count,
                          .worker = jrt_worker_self(),
                          .first_ns = JRT_NEVER};
    struct jrt_task *task = s.worker != NULL ? s.worker->current : NULL;
    janus_status     status = decode(&s);
    bool             decoded = status == JANUS_OK;
    if (decoded && waits && task != NULL &&
        jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) {
        return jrt_task_cancelled_or_end(task);
    }
    if (decoded && task != NULL) status = jrt_chan_pay_cases(&s.worker, s.count);
    if (decoded && status != JANUS_OK) return status;
    if (decoded) status = waits ? select_until(&s, deadline_ns) : select_now(&s);
    if (decoded && task != NULL) (void)jrt_chan_settle(task, status);
    if (names_case(status) && out_chosen != NULL) *out_chosen = s.chosen;
    if (status == JANUS_OK && s.worker != NULL) {
        jrt_note(jrt_worker_self(), JRT_TRACE_SELECT, task, count, s.chosen); /* [worker-again] */
    }
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(task) : status;
}

janus_status janus_select(janus_select_case *cases, size_t count, size_t *out_chosen)
{
    return do_select(cases, count, out_chosen, true, JRT_NEVER);
}

janus_status janus_select_until(janus_select_case *cases, size_t count, size_t *out_chosen,
                                uint64_t deadline_ns)
{
    return do_select(cases, count, out_chosen, true, deadline_ns);
}

janus_status janus_try_select(janus_select_case *cases, size_t count, size_t *out_chosen)
{
    return do_select(cases, count, out_chosen, false, 0);
}
