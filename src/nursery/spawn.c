/* SPDX-License-Identifier: MIT */
/*
 * Spawning: a record, a count, a queue, in this order, so that a refusal leaves nothing behind.
 */
#include "base/options.h"
#include "fiber/fiber.h"
#include "means/call.h"
#include "means/purse.h"
#include "means/room.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/crowd.h"
#include "nursery/executor.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "task/note.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/limit.h"
#include "work/seat.h"
#include "work/turn.h"
#include "work/work.h"

#include <string.h>

#include <stdlib.h>

/* Refused before anybody paid, [turn-call]. */
static janus_status unpaid(janus_status status)
{
    jrt_stack_check();
    return status;
}

static const char first_name[] = "main";

/* Whether a record has nothing but zeros from `any_flag` on. */
static bool is_clean(const struct jrt_task *task)
{
    static const struct jrt_task zeros;
    size_t                       from = offsetof(struct jrt_task, any_flag);
    return memcmp((const char *)task + from, (const char *)&zeros + from, sizeof zeros - from) == 0;
}

/* Writes the few words that make a clean record a task, [task-clean]. */
static inline void fill(struct jrt_task *task, struct jrt_nursery *n, janus_entry *entry,
                        void *argument, const janus_site *site)
{
    /* relaxed: nobody knows the task yet. */
    jrt_debug_invariant("task-clean", jrt_load_relaxed(&task->record.holder) == NULL);
    jrt_debug_invariant("task-clean", is_clean(task));
    task->entry = entry;
    task->argument = argument;
    task->nursery = n;
    task->site = site;
    task->beginning = n->initial; /* `any_flag` stays 0 */
    jrt_debug_invariant("spawn-high", n->internal || task->lane == JRT_LANE_NORMAL);
}

/* Counts a child of a task's nursery, [nursery-count]. */
static void count_one(struct jrt_nursery *n, const struct jrt_worker *worker)
{
    if (worker != NULL && worker->current == n->owner && !n->merged) {
        n->local++;
    } else {
        /* relaxed: a living child starts it, so the count cannot reach zero here. */
        jrt_fetch_add_relaxed(&n->pending, (int64_t)1);
    }
}

static void leave(struct jrt_nursery *n, struct jrt_worker *worker);

/* Counts a child that is about to start. False: the nursery has been closed. */
static bool enter(struct jrt_nursery *n, struct jrt_worker *worker)
{
    if (jrt_likely(n->owner != NULL)) {
        count_one(n, worker);
        jrt_fence_light_seq_cst(); /* seq_cst: [nursery-seen]. */
        /* relaxed: after the fence. */
        if (jrt_likely(jrt_load_relaxed(&n->state) == JANUS_NURSERY_STATE_OPEN)) return true;
        leave(n, worker);
        return false;
    }
    /* A root: [sched-stop] changes the state and then reads the count. This code does the reverse.
     * seq_cst: one of the two sees the other. */
    jrt_fetch_add_seq_cst(&n->pending, (int64_t)1);
    uint8_t state = jrt_load_seq_cst(&n->state); /* seq_cst: as above. */
    if (jrt_likely(state == JANUS_NURSERY_STATE_OPEN)) return true;
    jrt_nursery_count_off(n);
    return false;
}

/* Undoes `enter`, on the same worker and before anything else. */
static void leave(struct jrt_nursery *n, struct jrt_worker *worker)
{
    if (n->owner != NULL && worker != NULL && worker->current == n->owner && !n->merged) {
        n->local--;
    } else {
        jrt_nursery_count_off(n);
    }
}

/* Charges the spawner one op. A pool pays for the spawn itself, but an overdue turn ends here in
 * any case. OK, CANCELLED. */
static janus_status pay(const struct jrt_nursery *n, struct jrt_worker *worker)
{
    bool pool_pays = n->terms != NULL && n->terms->account != NULL;
    if (worker == NULL || worker->current == NULL) return JANUS_OK;
    if (pool_pays ? !jrt_turn_is_over(worker) : jrt_fuel_one()) return JANUS_OK;
    return jrt_pay_ops(worker->current, pool_pays ? 0 : 1);
}

/* Writes the options into the record. */
static void equip(struct jrt_task *task, const janus_spawn_options *options)
{
    const struct jrt_worker *worker = jrt_worker_self();
    if (options->drop != NULL) {
        task->dirty = true;
        task->drop = options->drop;
    }
    if (options->inherit_local && worker != NULL && worker->current != NULL) {
        task->dirty = true;
        task->local = worker->current->local;
    }
    if (options->stack_bytes != 0) {
        task->stack_class = (uint8_t)jrt_pool_stack_class(options->stack_bytes);
    }
    if (options->priority != JANUS_PRIORITY_DEFAULT) task->lane = (uint8_t)(options->priority - 1);
    if (options->cancel != JANUS_CANCEL_MODE_RETURN) task->cancel_mode = (uint8_t)options->cancel;
}

/*
 * Sets the child's name, [name-clean]. Each task has at most one, of JANUS_NAME_BYTES, so the
 * limit of tasks also bounds the memory of names. False: memory was refused.
 */
static bool christen(struct jrt_task *task, const char *given)
{
    char name[JANUS_NAME_BYTES];
    if (jrt_likely(given == NULL)) return true;
    task->dirty = true;
    task->name = given;
    if (given == first_name) return true;
    (void)jrt_name_copy(name, sizeof name, given);
    bool own = false;
    task->name = jrt_name_keep(name, &own);
    task->owns_name = own;
    return task->name != NULL;
}

/* Makes a child with all that it needs, and counts it. On any error, all of it is returned. */
static janus_status make_child(struct jrt_nursery *n, janus_entry *entry, void *argument,
                               const janus_site *site, const janus_spawn_options *options,
                               const struct jrt_taken *taken, struct jrt_task **out)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = jrt_task_alloc(n->scheduler, worker);
    janus_status       status = JANUS_OK;
    if (task != NULL) fill(task, n, entry, argument, site);
    if (task == NULL || !jrt_taken_endow(task, taken) || !christen(task, options->name))
        status = JANUS_NO_MEMORY;
    if (status == JANUS_OK && !enter(n, worker)) status = JANUS_CLOSED;
    if (status != JANUS_OK) {
        jrt_taken_return(n, worker, task, taken);
        return status;
    }
    equip(task, options);
    *out = task;
    return JANUS_OK;
}

/* Starts a child. */
static janus_status start_child(struct jrt_nursery *n, janus_entry *entry, void *argument,
                                const janus_spawn_options *options, const struct jrt_taken *taken,
                                janus_task_id *out)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task;
    struct jrt_launch  launch;
    janus_status status = make_child(n, entry, argument, options->site, options, taken, &task);
    if (status != JANUS_OK) return status;
    status = jrt_launch_prepare(&launch, n, worker, task);
    if (status != JANUS_OK) {
        leave(n, worker);
        jrt_taken_return(n, worker, task, taken);
        return status;
    }
    if (out != NULL) {
        task->joinable = !options->unjoinable;
        *out = jrt_task_id(task);
    }
    jrt_note_by_caller(n->scheduler, JRT_TRACE_SPAWN, jrt_task_id(task), 0);
    jrt_launch(&launch, n, worker, task);
    return JANUS_OK;
}

/* Starts a resident child. */
static janus_status start_resident(struct jrt_nursery *n, struct jrt_resident *resident,
                                   const char *name, const janus_spawn_options *options,
                                   const struct jrt_taken *taken, bool at_rest)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task;
    janus_status       status =
        make_child(n, resident->rules->entry, resident, &resident->site, options, taken, &task);
    if (status != JANUS_OK) return status;
    task->dirty = task->resident = true;
    task->name = name;
    resident->rules->begins(resident, task);
    jrt_note_by_caller(n->scheduler, JRT_TRACE_SPAWN, jrt_task_id(task), 0);
    if (worker == NULL || worker->scheduler != n->scheduler) {
        jrt_submit_outside(n->scheduler, task);
    } else if (at_rest) {
        jrt_rest_first(worker, task);
    } else {
        jrt_submit_fresh(worker, task);
    }
    return JANUS_OK;
}

janus_status jrt_spawn_resident(struct jrt_nursery *n, struct jrt_resident *resident,
                                const char *name, const janus_spawn_options *options, bool at_rest)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *current = worker != NULL ? worker->current : NULL;
    struct jrt_taken   taken = {.terms = NULL};
    if (jrt_nursery_state(n) != JANUS_NURSERY_STATE_OPEN) return JANUS_CLOSED;
    if (worker != NULL) worker->current = NULL; /* neither its terms nor its count matter here */
    janus_status status = jrt_terms_take_child(n, worker, options->budget, &taken.admission);
    if (status == JANUS_OK) status = jrt_taken_stack(n, options, &taken);
    if (status == JANUS_OK) {
        status = start_resident(n, resident, name, options, &taken, at_rest);
    }
    if (worker != NULL) worker->current = current;
    return status;
}

/* Like jrt_stack_check, but without a toll: a spawn pays. */
static void look_at_stack(void)
{
    const struct jrt_worker *worker = jrt_worker_self();
    worker == NULL ? jrt_plain_check(1) : jrt_worker_stack_check(worker);
}

/* Does what may yield, end the spawner, or refuse: pays, and takes what the child needs. */
static inline __attribute__((always_inline)) janus_status admit(struct jrt_nursery        *n,
                                                                janus_entry               *entry,
                                                                const janus_spawn_options *options,
                                                                struct jrt_taken          *taken)
{
    look_at_stack();
    if (entry == NULL) return unpaid(JANUS_INVALID);
    /* Only a supervisor starts children in its nursery. */
    if (jrt_unlikely(n->on_heap == JRT_SUPERVISED)) return unpaid(JANUS_STATE);
    if (jrt_nursery_state(n) != JANUS_NURSERY_STATE_OPEN) return unpaid(JANUS_CLOSED);
    if (jrt_unlikely(jrt_crowd_is_there(jrt_worker_self()))) jrt_crowd_give_way(jrt_worker_self());
    janus_status status = pay(n, jrt_worker_self());
    if (status == JANUS_OK) status = jrt_taken_take(n, options, taken);
    return status == JANUS_OK ? status : unpaid(status);
}

static janus_status spawn(struct jrt_nursery *n, janus_entry *entry, void *argument,
                          const janus_spawn_options *options, janus_task_id *out)
{
    struct jrt_taken taken;
    janus_status     status = admit(n, entry, options, &taken);
    if (status != JANUS_OK) return status;
    return start_child(n, entry, argument, options, &taken, out);
}

/* Spawns from elsewhere than the owner, into a nursery that counts apart, or without a spare
 * record. */
__attribute__((noinline)) static janus_status spawn_slow(struct jrt_nursery *n, janus_entry *entry,
                                                         void *argument, const janus_site *site)
{
    const janus_spawn_options options = {.site = site};
    return spawn(n, entry, argument, &options, NULL);
}

__attribute__((cold, noinline)) static janus_status over_limit(struct jrt_worker *worker)
{
    jrt_count(&worker->stats.refusals);
    jrt_turn_toll(worker, JRT_TOLL_REFUSED);
    return jrt_terms_full(worker->scheduler, worker);
}

/*
 * The plainest path, which is also the most frequent. It keeps nothing across a call: rare cases
 * are the last thing it does. So it needs no frame, and no room on the stack. That holds where the
 * compiler inlines, and no sanitizer adds calls.
 */
#if JRT_DEBUG || JRT_ASAN || JRT_TSAN
enum { LEAF = false };
#else
enum { LEAF = true };
#endif

/* Makes a task of the first free record, which is `task`. */
static inline void make(struct jrt_worker *worker, struct jrt_task *task, struct jrt_nursery *n,
                        janus_entry *entry, void *argument, const janus_site *site)
{
    jrt_debug_invariant("terms-inside", !n->beyond);
    worker->free = jrt_task_next(task);
    worker->free_room++;
    fill(task, n, entry, argument, site);
}

/* Finishes a spawn for which only the worker's own quota had no room. */
__attribute__((noinline)) static janus_status spawn_without_quota(struct jrt_nursery *n,
                                                                  janus_entry        *entry,
                                                                  void               *argument,
                                                                  const janus_site   *site)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->free;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    if (jrt_unlikely(!jrt_limit_take_slow(worker))) return over_limit(worker);
    if (!enter(n, worker)) {
        jrt_quota_give(&worker->quota);
        return JANUS_CLOSED;
    }
    make(worker, task, n, entry, argument, site);
    if (jrt_unlikely(worker->trace != NULL)) {
        jrt_note_by_caller(worker->scheduler, JRT_TRACE_SPAWN, jrt_task_id(task), 0);
    }
    jrt_submit_fresh(worker, task);
    return JANUS_OK;
}

/* Gives the child to an idle worker. If it took the last spare record, the worker takes new records
 * now, while the child starts. Otherwise the next child would wait for that. */
__attribute__((noinline)) static janus_status feed(struct jrt_worker *worker)
{
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    jrt_idle_feed(worker);
    /* A crowd goes on without records: then the next spawn gives way, [crowd-way]. */
    if (worker->free == NULL && !jrt_crowd_is_there(worker)) (void)jrt_worker_free_refill(worker);
    /* Its last task may have ended elsewhere. */
    if (worker->free != NULL) __builtin_prefetch(worker->free, 1);
    return JANUS_OK;
}

/* Whether the owner starts a child, in a nursery that only counts. The mark of a waiting
 * owner, [nursery-closing], does not matter here: an owner that set it is in its end. */
static inline bool is_owners(const struct jrt_nursery *n, const struct jrt_worker *worker)
{
    return worker->current == n->owner && !jrt_nursery_is_apart(n);
}

/* The quota had no room, or the count in the nursery came too late, [nursery-seen]. */
__attribute__((noinline)) static janus_status take_back(struct jrt_nursery *n, bool room,
                                                        janus_entry *entry, void *argument,
                                                        const janus_site *site)
{
    n->local--;
    if (!room) return spawn_without_quota(n, entry, argument, site);
    jrt_quota_give(&jrt_worker_self()->quota);
    return spawn_slow(n, entry, argument, site); /* it reports why */
}

static inline bool is_plain(const struct jrt_worker *worker, bool full)
{
    bool told = worker->trace != NULL || worker->scheduler->world != NULL;
    return !told && (full || jrt_fences_are_light());
}

/* `full` and `traced` are constants, [worker-plain]. */
static inline __attribute__((always_inline)) janus_status
spawn_as(struct jrt_nursery *n, struct jrt_worker *worker, janus_entry *entry, void *argument,
         const janus_site *site, bool full, bool traced)
{
    jrt_debug_invariant("worker-plain", traced || is_plain(worker, full));
    /* Otherwise the caller has done this, [stack-reserve]. */
    if (!LEAF && !traced) jrt_worker_stack_check(worker);
    struct jrt_task  *task = worker->free;
    struct jrt_shelf *shelf = &worker->fresh_shelf; /* no option asked for another lane */
    uint64_t          newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    if (jrt_unlikely(!is_owners(n, worker) || task == NULL || entry == NULL ||
                     newest == shelf->room || !jrt_fuel_one())) {
        return spawn_slow(n, entry, argument, site);
    }
    n->local++;
    if (!JRT_CHECKED) jrt_fence_light_as_seq_cst(full);    /* seq_cst: [nursery-seen]. */
    bool room = jrt_quota_take_fast(&worker->quota, full); /* includes that fence */
    /* acquire: what led to it. */
    if (jrt_unlikely(!room || jrt_load_acquire(&n->state) != JANUS_NURSERY_STATE_OPEN)) {
        return take_back(n, room, entry, argument, site);
    }
    make(worker, task, n, entry, argument, site);
    if (traced && worker->trace != NULL) {
        jrt_note_by_caller(worker->scheduler, JRT_TRACE_SPAWN, jrt_task_id(task), 0);
    }
    jrt_shelf_place(shelf, newest, task);
    /* A read first: stores are the main cost of a fork and join. */
    if (!(worker->lanes & JRT_IN_NORMAL)) worker->lanes |= JRT_IN_NORMAL;
    if (jrt_unlikely(jrt_idle_somebody(worker, full))) return feed(worker);
    return JANUS_OK;
}

__attribute__((noinline)) static janus_status spawn_not_plain(struct jrt_nursery *n,
                                                              janus_entry *entry, void *argument,
                                                              const janus_site *site)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (n == NULL) return unpaid(JANUS_INVALID);
    if (worker == NULL) return spawn_slow(n, entry, argument, site);
    if (worker->plain != JRT_NOT_PLAIN) {
        return spawn_as(n, worker, entry, argument, site, true, false);
    }
    jrt_worker_stack_check(worker); /* [stack-reserve]; in a world, others may go on */
    return spawn_as(n, worker, entry, argument, site, true, true);
}

JRT_HOT janus_status janus_spawn_at(janus_nursery *nursery, janus_entry *entry, void *argument,
                                    const janus_site *site)
{
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    struct jrt_worker  *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL || worker->plain != JRT_PLAIN || nursery == NULL)) {
        return spawn_not_plain(n, entry, argument, site);
    }
    return spawn_as(n, worker, entry, argument, site, false, false);
}

bool jrt_spawn_piece(struct jrt_nursery *n, struct jrt_worker *worker, janus_entry *entry,
                     void *argument, const char *name)
{
    struct jrt_task *task = jrt_task_alloc(n->scheduler, worker);
    if (task == NULL) return false;
    if (!jrt_quota_take_meekly(&worker->quota, worker)) {
        jrt_task_free_here(worker, task);
        return false;
    }
    fill(task, n, entry, argument, NULL);
    task->dirty = true;
    task->name = name;
    count_one(n, worker);
    if (jrt_unlikely(worker->trace != NULL)) {
        jrt_note_by_caller(worker->scheduler, JRT_TRACE_SPAWN, jrt_task_id(task), 0);
    }
    jrt_submit_fresh(worker, task);
    return true;
}

static janus_status decode(const janus_spawn_options *given, janus_spawn_options *options)
{
    memset(options, 0, sizeof *options);
    if (given == NULL) return JANUS_OK;
    if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
    memcpy(options, given, given->struct_bytes);
    if ((unsigned)options->priority > JANUS_PRIORITY_LOW) return JANUS_INVALID;
    if ((unsigned)options->cancel > JANUS_CANCEL_MODE_UNWIND) return JANUS_INVALID;
    if ((unsigned)options->when_full > JANUS_WHEN_FULL_WAIT) return JANUS_INVALID;
    bool stack_known =
        options->stack_bytes == 0 || jrt_pool_stack_class(options->stack_bytes) < JRT_STACK_CLASSES;
    return stack_known ? JANUS_OK : JANUS_INVALID;
}

/* The runtime itself starts this task, so it needs no capability. Where nothing is implicit, the
 * task holds everything, and only it gives anything to others. */
janus_status jrt_spawn_first(janus_nursery *nursery, janus_entry *entry, void *argument)
{
    struct jrt_nursery       *n = jrt_nursery_of(nursery);
    const janus_spawn_options options = {.name = first_name};
    struct jrt_taken          taken = {.terms = NULL};
    if (n->terms == NULL) return spawn(n, entry, argument, &options, NULL);
    taken.all = true;
    return start_child(n, entry, argument, &options, &taken, NULL);
}

/*
 * [spawn-high]  Tasks of HIGH priority come before all others. A restricted task must not start
 *   them, because its neighbours would get only what they leave. It may if it was started as one
 *   itself, or holds the right executor.configure.
 */
static janus_status may_hurry(const janus_spawn_options *options)
{
    const struct jrt_worker *worker = jrt_worker_self();
    if (options->priority != JANUS_PRIORITY_HIGH) return JANUS_OK;
    if (worker != NULL && worker->current != NULL) {
        unsigned lane = worker->current->lane & ~(unsigned)JRT_LANE_SEATED;
        if (lane == JANUS_PRIORITY_HIGH - 1) return JANUS_OK;
    }
    return jrt_terms_outside();
}

/* Checks the options of a spawn. */
static janus_status read_options(const janus_nursery *nursery, const janus_spawn_options *given,
                                 janus_spawn_options *options)
{
    if (nursery == NULL || decode(given, options) != JANUS_OK) return unpaid(JANUS_INVALID);
    return may_hurry(options); /* [spawn-high] */
}

janus_status janus_spawn_with(janus_nursery *nursery, janus_entry *entry, void *argument,
                              const janus_spawn_options *given, janus_task_id *out)
{
    look_at_stack();
    janus_spawn_options options;
    janus_status        status = read_options(nursery, given, &options);
    if (jrt_unlikely(status != JANUS_OK)) return status;
    return spawn(jrt_nursery_of(nursery), entry, argument, &options, out);
}

janus_status jrt_spawn_made(janus_nursery *nursery, janus_entry *entry, jrt_argument_maker *maker,
                            const void *recipe, const janus_spawn_options *given,
                            janus_task_id *out)
{
    look_at_stack();
    janus_spawn_options options;
    struct jrt_taken    taken;
    janus_status        status = read_options(nursery, given, &options);
    if (status != JANUS_OK) return status;
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    status = admit(n, entry, &options, &taken);
    if (status != JANUS_OK) return status;
    void *argument = maker(recipe);
    if (argument == NULL) {
        jrt_taken_return(n, jrt_worker_self(), NULL, &taken);
        return JANUS_NO_MEMORY;
    }
    status = start_child(n, entry, argument, &options, &taken, out);
    if (status != JANUS_OK) free(argument);
    return status;
}

janus_status janus_spawn_wait_at(janus_nursery *nursery, janus_entry *entry, void *argument,
                                 const janus_site *site)
{
    look_at_stack();
    const janus_spawn_options options = {.site = site, .when_full = JANUS_WHEN_FULL_WAIT};
    if (nursery == NULL) return unpaid(JANUS_INVALID);
    return spawn(jrt_nursery_of(nursery), entry, argument, &options, NULL);
}
