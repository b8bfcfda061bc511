/* SPDX-License-Identifier: MIT */
/*
 * Where tasks wait for a worker, and in which order a worker looks.
 *
 * Fresh tasks come newest first, because their parent's data is warm. Tasks that ran before come
 * oldest first, so that yielding tasks take turns. Every 61st pick looks at the second kind and at
 * injected tasks first, so that neither starves. Lanes: HIGH before NORMAL before LOW, but every
 * 8th pick starts at NORMAL and every 32nd at LOW. A worker that finds nothing takes tasks from
 * others, steal.c.
 */
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/herd.h"
#include "work/poll.h"
#include "work/seat.h"
#include "work/turn.h"
#include "work/work.h"

enum {
    FIFO_EVERY = 61,
    NORMAL_EVERY = 8,
    LOW_EVERY = 32,
    PUBLISH_MAX = 32,
    FETCH_RECORD = 8, /* turns ahead */
    FETCH_STRAND = 4,
    RESCUE_EVERY = 64,  /* looks, for one of jrt_rescue */
    ROUND_MAX = 64,     /* tasks that owe rounds, in one pick */
    PILE = 64,          /* new tasks; more than tasks that divide work have */
    FETCH_FRAMES = 384, /* bytes of a task that waits in a library call */
};

static const uint64_t look_ns = 50000; /* [queue-pace] */

static const uint64_t patience_ns = 20000000; /* see move_oldest */

static struct jrt_task *as_task(struct jrt_record *record) { return (struct jrt_task *)record; }

/* The queue for all workers. */

void jrt_inject(janus_scheduler *scheduler, struct jrt_task *task)
{
    unsigned lane = task->lane & ~(unsigned)JRT_LANE_SEATED;
    task->record.next = NULL;
    jrt_lock(&scheduler->inject_lock);
    if (scheduler->inject_last[lane] == NULL) {
        scheduler->inject_first[lane] = task;
    } else {
        scheduler->inject_last[lane]->record.next = &task->record;
    }
    scheduler->inject_last[lane] = task;
    /* relaxed: a hint for a look without the lock; [idle-submit] orders it for sleepers. */
    jrt_fetch_add_relaxed(&scheduler->injected, 1u);
    jrt_unlock(&scheduler->inject_lock);
}

/* The lane that a pick looks at first. */
static unsigned first_lane(uint32_t tick)
{
    if (tick % LOW_EVERY == 0) return 2;
    return tick % NORMAL_EVERY == 0 ? 1 : 0;
}

static struct jrt_task *take_injected(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    struct jrt_task *task = NULL;
    if (jrt_load_relaxed(&scheduler->injected) == 0) return NULL; /* relaxed: a hint. */
    if (worker->seat != NULL) return NULL;                        /* it is for others */
    jrt_lock(&scheduler->inject_lock);
    uint32_t tick = ++scheduler->inject_tick;
    unsigned first = first_lane(tick);
    for (unsigned i = 0; i < JRT_LANES && task == NULL; i++) {
        unsigned lane = (first + i) % JRT_LANES;
        task = scheduler->inject_first[lane];
        if (task == NULL) continue;
        scheduler->inject_first[lane] = as_task(task->record.next);
        if (task->record.next == NULL) scheduler->inject_last[lane] = NULL;
        jrt_fetch_sub_relaxed(&scheduler->injected, 1u); /* relaxed: as in inject. */
    }
    jrt_unlock(&scheduler->inject_lock);
    return task;
}

/*
 * Submitting.
 *
 * [queue-shelf]  Tasks that a worker starts or resumes lie on its shelves first, where nobody else
 *   sees them. While a worker searches, the oldest go to the deques. A searcher that finds nothing
 *   there raids. Of each kind, tasks on the deque are older than tasks on the shelf.
 *
 * [queue-served]  Two tasks that take turns, where one waits for what the other sends, run best on
 *   one worker. So a task that another's send or receive woke, and that finds the shelf empty, is
 *   not given to searchers. They see it there and note that. If two looks, by any searchers, find
 *   the same lone task, its worker is busy: raid the shelf. Nobody falls asleep while the task is
 *   there. If all sleep, one worker is woken, as for every other task, and the task goes to the
 *   deque. A thread takes long to wake up. If the task's worker is free by then, it has taken the
 *   task back, and the pair stays together.
 *   A task that yields at the end of its turn to the only waiting task stays on its worker, too.
 *   Otherwise thieves would take half of such a pair every hundred channel operations. If the two
 *   are no pair, the other task runs for longer than two looks take. A task that calls janus_yield
 *   wants others to run, wherever they are.
 */

/* Queues on a deque. If there is no memory for it to grow, queues on the list, which needs none. */
void jrt_submit_slow(struct jrt_worker *worker, struct jrt_deque *deques, struct jrt_task *task)
{
    if (jrt_unlikely(jrt_task_is_seated(task) || worker->seat != NULL)) { /* [seat-lane] */
        jrt_submit_outside(worker->scheduler, task);
        return;
    }
    unsigned lane = task->lane; /* once pushed it may be stolen, ended and used again */
    worker->lanes |= 1u << lane;
    if (lane == JRT_LANE_NORMAL) worker->lanes |= JRT_IN_PUBLIC;
    if (!jrt_deque_push(&deques[lane], task)) jrt_inject(worker->scheduler, task);
    if (!worker->alone) jrt_idle_notify(worker->scheduler);
}

void jrt_submit_to_all(janus_scheduler *scheduler, struct jrt_task *task)
{
    jrt_inject(scheduler, task);
    jrt_idle_notify(scheduler);
}

void jrt_submit_outside(janus_scheduler *scheduler, struct jrt_task *task)
{
    if (jrt_unlikely(jrt_task_is_seated(task))) {
        jrt_seat_hand(task);
    } else {
        jrt_submit_to_all(scheduler, task);
    }
}

void jrt_submit_woken(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    janus_scheduler   *scheduler = task->nursery->scheduler;
    if (jrt_unlikely(worker == NULL || worker->scheduler != scheduler)) {
        jrt_submit_outside(scheduler, task);
    } else {
        jrt_submit_again(worker, task);
    }
}

static bool publish_from(struct jrt_shelf *shelf, struct jrt_deque *deque,
                         janus_scheduler *scheduler)
{
    void *tasks[PUBLISH_MAX];
    if (!jrt_deque_seems_empty(deque)) return false; /* searchers have something already */
    size_t count = jrt_shelf_pop_half(shelf, tasks, PUBLISH_MAX);
    for (size_t i = 0; i < count; i++) {
        jrt_debug_invariant("queue-shelf", as_task(tasks[i])->lane == JRT_LANE_NORMAL);
        if (!jrt_deque_push(deque, tasks[i])) jrt_inject(scheduler, tasks[i]);
    }
    return count > 0;
}

bool jrt_publish(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    bool old = publish_from(&worker->again_shelf, &worker->again[JRT_LANE_NORMAL], scheduler);
    bool fresh = publish_from(&worker->fresh_shelf, &worker->fresh[JRT_LANE_NORMAL], scheduler);
    if (old || fresh) worker->lanes |= JRT_IN_PUBLIC;
    return old || fresh;
}

/* Picking. */

/* In a crowd, the next task has left the caches long ago. So its record is prefetched some turns
 * ahead. Later, when the record shows where they are, its strand and the frames below follow. */
static void fetch_ahead(struct jrt_shelf *shelf)
{
    jrt_shelf_enter(shelf);
    const char            *later = jrt_shelf_see(shelf, FETCH_RECORD);
    const struct jrt_task *soon = jrt_shelf_see(shelf, FETCH_STRAND);
    if (later != NULL) { /* it was a crowd before jrt_shelf_enter */
        for (size_t i = 0; i < sizeof *soon; i += 64) __builtin_prefetch(later + i, 1);
    }
    if (soon != NULL && soon->strand != NULL) {
        const char *strand = (const char *)soon->strand;
        for (size_t i = 0; i <= FETCH_FRAMES; i += 64) __builtin_prefetch(strand - i, 1);
    }
    jrt_shelf_leave(shelf);
}

/* Takes the oldest task that ran before. Tasks on the deque are older. */
static struct jrt_task *take_oldest(struct jrt_worker *worker, unsigned lane)
{
    struct jrt_deque *deque = &worker->again[lane];
    if (!jrt_deque_seems_empty(deque)) { /* the owner's look is exact but for thieves */
        bool  lost = false;
        void *task;
        do task = jrt_deque_steal(deque, &lost);
        while (task == NULL && lost);
        if (task != NULL) return task;
    }
    if (lane != JRT_LANE_NORMAL) return NULL;
    struct jrt_shelf *shelf = &worker->again_shelf;
    if (jrt_unlikely(jrt_shelf_size(shelf) > JRT_FAR)) fetch_ahead(shelf);
    return jrt_shelf_pop_oldest(shelf);
}

/* Whether the bit of the NORMAL lane's deques may go: they are empty, and only the worker adds to
 * them. Otherwise no pick would be easy any more, once a task has been there. */
static bool public_is_over(const struct jrt_worker *worker)
{
    return !worker->herd.wanted && jrt_deque_seems_empty(&worker->again[JRT_LANE_NORMAL]) &&
           jrt_deque_seems_empty(&worker->fresh[JRT_LANE_NORMAL]);
}

/* A new task, while some have waited for long; see move_oldest. */
__attribute__((noinline)) static struct jrt_task *take_from_pile(struct jrt_worker *worker,
                                                                 unsigned           lane)
{
    if (jrt_shelf_size(&worker->fresh_shelf) <= PILE) worker->pile = 0;
    if (worker->pile != 0) worker->pile++;
    bool             oldest = lane == JRT_LANE_NORMAL && worker->pile % 2 != 0;
    struct jrt_task *task = oldest ? jrt_shelf_pop_oldest(&worker->fresh_shelf) : NULL;
    return task != NULL ? task : jrt_take_newest(worker, lane);
}

static inline struct jrt_task *pick_lane(struct jrt_worker *worker, unsigned lane,
                                         bool oldest_first)
{
    struct jrt_task *task = NULL;
    /* Where more and more tasks come to wait, the two kinds take turns. Otherwise the queue would
     * only grow. */
    if ((worker->tick & 1u) && jrt_count_again(worker, lane) > FIFO_EVERY) oldest_first = true;
    if (oldest_first) task = take_oldest(worker, lane);
    if (task == NULL) {
        task = jrt_unlikely(worker->pile != 0) ? take_from_pile(worker, lane)
                                               : jrt_take_newest(worker, lane);
    }
    if (task == NULL && !oldest_first) {
        if (jrt_unlikely(worker->stolen != 0) && lane == JRT_LANE_NORMAL) jrt_idle_judge(worker);
        task = take_oldest(worker, lane);
    }
    if (task == NULL) {
        worker->lanes &= ~(1u << lane);
        if (lane == JRT_LANE_NORMAL) worker->lanes &= ~(uint32_t)JRT_IN_PUBLIC;
    }
    return task;
}

/* Newest first means that an old task waits while new ones come. A task that has been the oldest
 * for some milliseconds joins those that take turns. It does so no sooner: a task that divides work
 * wants the old ones last. A neighbour's child may be anywhere in a pile of many tasks. From then
 * on every other pick of a new task takes the oldest, until the pile is small. */
static bool move_oldest(struct jrt_worker *worker, uint64_t now)
{
    uint64_t oldest = jrt_load_relaxed(&worker->fresh_shelf.oldest); /* relaxed: a hint. */
    if (oldest != worker->oldest_seen || jrt_shelf_size(&worker->fresh_shelf) == 0) {
        worker->oldest_seen = oldest;
        worker->oldest_since_ns = now;
        return false;
    }
    if (now < worker->oldest_since_ns + patience_ns) return false;
    if (worker->pile == 0) worker->pile = 2;
    struct jrt_task *task = jrt_shelf_pop_oldest(&worker->fresh_shelf);
    if (task == NULL) return false;
    jrt_submit_again(worker, task);
    return true;
}

/*
 * [queue-pace]  A worker looks at timers and at injected tasks once in `others_every` picks. How
 *   long these picks last depends on what the tasks do between two yields. If they lasted much
 *   longer than LOOK_NS, the next look comes after fewer picks, in proportion. If they were
 *   shorter, it comes after twice as many, up to FIFO_EVERY. Turns that are measured
 *   ([turn-measure]) end with a look each.
 */
static uint64_t look_at_timers(struct jrt_worker *worker)
{
    struct jrt_task *current = worker->current;
    if (jrt_unlikely(worker->trace != NULL)) worker->current = NULL; /* no task wakes by a timer */
    uint64_t now = jrt_sched_timers_fire(worker->scheduler);
    if (now == 0) now = jrt_clock_now_ns();
    /* A worker without a task has just looked. A lone task that yields has not. */
    if (worker->lanes != 0 || current != NULL) jrt_poll_glance(worker, now);
    worker->current = current;
    uint64_t lasted = now > worker->picked_ns ? now - worker->picked_ns : 0;
    uint64_t every = worker->others_every;
    worker->picked_ns = now;
    if (jrt_unlikely(lasted >= JRT_SAMPLE_NS || worker->turns.measured > 0)) {
        jrt_turn_sample(worker, lasted);
    }
    jrt_herd_look(worker, current, lasted, every);
    if (jrt_shelf_size(&worker->fresh_shelf) != 0) (void)move_oldest(worker, now);
    jrt_depot_look(worker->scheduler->depot, now);
    every = lasted > look_ns ? every * look_ns / lasted : every * 2;
    worker->turns.each = jrt_turn_measures(worker, now);
    if (worker->turns.each) every = 1;
    worker->others_every = every > FIFO_EVERY ? FIFO_EVERY : every > 0 ? (uint32_t)every : 1;
    worker->until_others = worker->others_every;
    return now;
}

static struct jrt_task *pick_from(struct jrt_worker *worker, bool others_first, bool oldest_first)
{
    struct jrt_task *task = NULL;
    unsigned         first = first_lane(worker->tick);
    if (jrt_unlikely(others_first)) task = take_injected(worker);
    for (unsigned i = 0; i < JRT_LANES && worker->lanes != 0 && task == NULL; i++) {
        unsigned lane = (first + i) % JRT_LANES;
        if (worker->lanes >> lane & 1u) task = pick_lane(worker, lane, oldest_first);
    }
    if ((worker->lanes & JRT_IN_PUBLIC) && public_is_over(worker))
        worker->lanes &= ~(uint32_t)JRT_IN_PUBLIC;
    return task != NULL ? task : take_injected(worker);
}

/* Whether the only task that ran before is a spawner that gave way, and its children have not had
 * a turn, [crowd-back]. */
static bool spawner_waits(const struct jrt_worker *worker, uint64_t now)
{
    if (worker->spawner_at == 0 || jrt_shelf_size(&worker->fresh_shelf) <= JRT_CROWD_LEFT)
        return false;
    uint64_t oldest = jrt_load_relaxed(&worker->again_shelf.oldest) + 1; /* relaxed: a hint. */
    if (oldest != worker->spawner_at || jrt_count_again(worker, JRT_LANE_NORMAL) != 1) return false;
    if ((worker->lanes & ~(uint32_t)JRT_IN_PUBLIC) != JRT_IN_NORMAL) return false;
    jrt_debug_invariant("crowd-back", worker->spawner_since_ns <= now);
    return now - worker->spawner_since_ns < worker->turns.limit_ns;
}

/* All tasks that wait owe rounds. Takes the first that owes no more than `least`, and all owe that
 * much less, [aside-least]. NULL: none was found, because thieves took some. */
static struct jrt_task *take_least(struct jrt_worker *worker, bool fresh_last, uint32_t least)
{
    struct jrt_task *found = NULL;
    uint64_t         count = 0;
    jrt_debug_invariant("aside-least", least > 0);
    for (unsigned lane = 0; lane < JRT_LANES; lane++) count += jrt_count_again(worker, lane);
    for (uint64_t i = 0; i < count && i < ROUND_MAX; i++) {
        struct jrt_task *task = pick_from(worker, false, fresh_last);
        if (task == NULL) break;
        jrt_aside_forgive(task, least);
        if (found == NULL && jrt_aside_rounds(task) == 0) {
            found = task;
        } else {
            jrt_submit_again(worker, task);
        }
    }
    return found;
}

/* Picks, and puts tasks that owe rounds back behind the others, [aside-owe], [aside-fresh]. Each
 * task that waits pays one round. */
static struct jrt_task *pick_fairly(struct jrt_worker *worker, bool stays, uint64_t now)
{
    bool     fresh_last = jrt_aside_fresh_last(worker, stays && !worker->gave_way, now);
    uint32_t own = stays ? jrt_aside_rounds(worker->current) : UINT32_MAX, least = own;
    const struct jrt_task *first = NULL;
    bool                   only = false, all = false;
    for (int i = 0; i < ROUND_MAX && !only && !all; i++) {
        struct jrt_task *task = pick_from(worker, worker->tick & 1u, fresh_last);
        if (task == NULL) return NULL;
        all = task == first; /* each has paid its round */
        if (!all && !jrt_aside_owes(worker, task, now)) return task;
        uint32_t rounds = jrt_aside_rounds(task);
        if (!all && rounds < least) least = rounds; /* a thief may have had it since */
        only = first == NULL && jrt_count_again(worker, JRT_LANE_NORMAL) == 0;
        if (first == NULL) first = task;
        jrt_submit_again(worker, task); /* a thief may have it now */
    }
    if (stays && own == least) return NULL;
    struct jrt_task *task = only && !stays ? NULL : take_least(worker, fresh_last, least);
    if (stays && task != NULL) jrt_aside_forgive(worker->current, least);
    if (stays) return task;
    return task != NULL ? task : pick_from(worker, false, fresh_last);
}

struct jrt_task *jrt_pick(struct jrt_worker *worker, bool stays)
{
    jrt_debug_invariant("queue-pace", worker->until_others - 1 < FIFO_EVERY);
    if (jrt_unlikely(worker->lanes & JRT_UNCOUNTED)) jrt_crowd_count(worker);
    if (jrt_unlikely(worker->herd.wanted) && !stays && jrt_herd_leaves(worker)) return NULL;
    worker->tick++;
    if (jrt_likely(--worker->until_others != 0)) return pick_from(worker, false, false);
    uint64_t now = look_at_timers(worker);
    if (jrt_unlikely(++worker->looks % RESCUE_EVERY == 0)) jrt_rescue(worker);
    jrt_turn_leave(worker, now);
    struct jrt_task *task = worker->turns.each
                                ? pick_fairly(worker, stays, now)
                                : pick_from(worker, true, !spawner_waits(worker, now));
    jrt_turn_begin_next(worker, task, jrt_clock_now_ns()); /* the look was no part of it */
    return task;
}

bool jrt_turn_wanted(struct jrt_worker *worker)
{
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        if (jrt_count_again(worker, lane) > 0) return true;
        /* New tasks of other lanes: a task that runs children in place looks only at NORMAL
         * ones. */
        if (lane != JRT_LANE_NORMAL && jrt_count_fresh(worker, lane) > 0) return true;
    }
    if (jrt_load_relaxed(&worker->scheduler->injected) != 0) return true; /* relaxed: a hint. */
    return move_oldest(worker, worker->turns.looked_ns);
}

/* Whether only one task waits, on the shelf or for a thief that was woken, and came since the last
 * look. The task that put it there is about to wait, or the lone task is still there next time.
 * Another turn in between would only tear a pair that takes turns apart, [queue-served]. */
static bool only_lone(struct jrt_worker *worker)
{
    if ((worker->lanes & ~(uint32_t)JRT_IN_PUBLIC) != JRT_IN_NORMAL) return false;
    if (jrt_count_again(worker, JRT_LANE_NORMAL) != 1) return false;
    if (jrt_count_fresh(worker, JRT_LANE_NORMAL) != 0) return false;
    if (jrt_load_relaxed(&worker->scheduler->injected) != 0) return false; /* relaxed: a hint. */
    /* relaxed, both: hints. Each task that leaves a queue changes the sum. */
    uint64_t place = jrt_load_relaxed(&worker->again_shelf.oldest) + 1;
    place += jrt_load_relaxed(&worker->again[JRT_LANE_NORMAL].top); /* relaxed: as above. */
    bool came = worker->lone_before != place;
    worker->lone_before = place;
    return came;
}

bool jrt_look_for_others(struct jrt_worker *worker)
{
    uint64_t now = look_at_timers(worker);
    /* Searchers may want some of these tasks. A lone task waits for this worker, [queue-served]. */
    if (jrt_shelf_size(&worker->again_shelf) != 1 || jrt_shelf_size(&worker->fresh_shelf) != 0) {
        jrt_idle_notify_shelf(worker);
    }
    if (only_lone(worker) || !jrt_turn_wanted(worker)) return false;
    /* Sixty tasks may take a microsecond, so a turn also has a shortest length. */
    uint64_t turn = jrt_turn_lasted(worker, now);
    if (turn >= jrt_turn_too_long(worker)) worker->until_others = 1; /* the next pick measures it */
    return turn >= worker->turns.limit_ns;
}

/* Whether there is anything that this worker could run. Workers ask before they sleep. */
bool jrt_work_for(const struct jrt_worker *worker)
{
    const janus_scheduler *scheduler = worker->scheduler;
    if (jrt_load_relaxed(&scheduler->injected) != 0) return true; /* relaxed: after a fence. */
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        if (!scheduler->stealing && i != worker->index) continue;
        for (unsigned lane = 0; lane < JRT_LANES; lane++) {
            if (jrt_count_fresh(&scheduler->workers[i], lane) > 0) return true;
            if (jrt_count_again(&scheduler->workers[i], lane) > 0) return true;
        }
    }
    return false;
}
