/* SPDX-License-Identifier: MIT */
/*
 * Memory of the current task: its heap, charged to its purse. The call pays first (one op, the
 * bytes), so that a failed charge takes no memory. The heap asks for the bytes itself and learns
 * that they are paid.
 */
#include "base/options.h"
#include "means/call.h"
#include "means/holder.h"
#include "means/ledger.h"
#include "means/purse.h"
#include "means/trouble.h"
#include "means/ward.h"
#include "nursery/pay.h"
#include "rt/inside.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

#include <janusrt/memory.h>
#include <string.h>

/* The heap asks for bytes, or returns them, on behalf of the task. */
static bool may(void *owner, size_t bytes)
{
    struct jrt_task *task = owner;
    if (task->purse->left.memory < bytes) return false;
    task->purse->left.memory -= bytes;
    return true;
}

static void back(void *owner, size_t bytes)
{
    struct jrt_task *task = owner;
    task->purse->left.memory = janus_units_add(task->purse->left.memory, bytes);
}

static const struct jrt_heap_rules plain = {.may = may, .back = back};
static const struct jrt_heap_rules scrubbed = {.may = may, .back = back, .scrub = true};

static struct jrt_task *current(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return NULL;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    return worker->current;
}

/* NULL: the thread is no worker. */
static struct jrt_heap_cache *cache(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? &worker->heaps : NULL;
}

/* The task's heap; NULL: no memory. */
static struct jrt_heap *heap_of(struct jrt_task *task)
{
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return NULL;
    if (purse->heap == NULL) {
        bool scrub = task->nursery->scheduler->profile == JANUS_PROFILE_SOVEREIGN;
        purse->heap = jrt_heap_open(cache(), scrub ? &scrubbed : &plain, task);
    }
    return purse->heap;
}

/* Memory may be new, and cost a fault for every page: [turn-toll]. */
static void toll(size_t bytes)
{
    size_t pages = bytes / 4096;
    if (pages > JRT_TOLLS) pages = JRT_TOLLS;
    jrt_turn_toll(jrt_worker_self(), (uint32_t)(pages * JRT_TOLL_PAGE + bytes % 4096 / 256));
}

/* Takes an op, and makes sure that the task has this many bytes, which it does not take yet. May
 * recharge the task. OK, CANCELLED. */
static janus_status afford(struct jrt_task *task, size_t bytes)
{
    if (!jrt_fuel_one()) {
        janus_status status = jrt_pay_ops(task, 1);
        if (status != JANUS_OK) return status;
    }
    if (jrt_unlikely(task->purse->left.memory < bytes)) jrt_wards_collect(task->purse);
    while (jrt_unlikely(task->purse->left.memory < bytes)) {
        jrt_ledger_settle(task->purse);
        if (task->purse->left.memory >= bytes) break;
        janus_status status = jrt_exhaust(task, JANUS_COMPONENT_MEMORY, bytes);
        if (status != JANUS_OK) return status;
    }
    toll(bytes);
    return JANUS_OK;
}

/* Takes an op if the task has it and this many bytes now; otherwise nothing. */
static janus_component afford_now(struct jrt_task *task, size_t bytes)
{
    const janus_budget op = janus_price_call();
    if (task->purse->left.memory < bytes) jrt_wards_collect(task->purse);
    if (jrt_unlikely(task->purse->left.memory < bytes)) jrt_ledger_settle(task->purse);
    if (task->purse->left.memory < bytes) return JANUS_COMPONENT_MEMORY;
    toll(bytes);
    return jrt_pay_now(task, &op);
}

/* The cost of a request; SIZE_MAX: more than can exist. */
static size_t cost_of(size_t size) { return size > SIZE_MAX / 2 ? SIZE_MAX : jrt_heap_cost(size); }

/* Refuses a request that can never be met. The caller has not paid, so this check ends an overdue
 * turn. */
__attribute__((noinline, cold)) static void *refuse(void)
{
    jrt_stack_check(); /* [turn-call] */
    return NULL;
}

void *janus_alloc(size_t size)
{
    struct jrt_task *task = current();
    struct jrt_heap *heap = task != NULL ? heap_of(task) : NULL;
    if (heap == NULL || afford(task, cost_of(size)) != JANUS_OK) return NULL;
    return jrt_heap_alloc(heap, cache(), size);
}

void *janus_alloc_zeroed(size_t count, size_t size)
{
    struct jrt_task *task = current();
    struct jrt_heap *heap = task != NULL ? heap_of(task) : NULL;
    size_t           bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return refuse();
    if (heap == NULL || afford(task, cost_of(bytes)) != JANUS_OK) return NULL;
    return jrt_heap_alloc_zeroed(heap, cache(), bytes);
}

void *janus_alloc_aligned(size_t alignment, size_t size)
{
    struct jrt_task *task = current();
    struct jrt_heap *heap = task != NULL ? heap_of(task) : NULL;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) return refuse();
    if (alignment > 16 && __builtin_add_overflow(size, alignment - 16, &size)) return refuse();
    if (heap == NULL || afford(task, cost_of(size)) != JANUS_OK) return NULL;
    return jrt_heap_alloc_aligned(heap, cache(), alignment, size);
}

static janus_status short_of(const struct jrt_task *task, janus_component lacks)
{
    uint64_t limit = janus_budget_get(&task->purse->granted, lacks);
    uint64_t left = janus_budget_get(&task->purse->left, lacks);
    return jrt_trouble(JANUS_BUDGET_EXHAUSTED, lacks, limit > left ? limit - left : 0, limit);
}

janus_status janus_try_alloc(size_t size, void **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = current();
    if (out == NULL) return JANUS_INVALID;
    if (task == NULL) return JANUS_STATE;
    struct jrt_heap *heap = heap_of(task);
    if (heap == NULL) return JANUS_NO_MEMORY;
    janus_component lacks = afford_now(task, cost_of(size));
    if (lacks != JANUS_COMPONENT_NONE) return short_of(task, lacks);
    void *block = jrt_heap_alloc(heap, cache(), size);
    if (block == NULL) return JANUS_NO_MEMORY;
    *out = block;
    return JANUS_OK;
}

void *janus_realloc(void *block, size_t size)
{
    struct jrt_task *task = current();
    if (block == NULL) return janus_alloc(size);
    if (task == NULL || task->purse == NULL || task->purse->heap == NULL) return refuse();
    struct jrt_heap *heap = task->purse->heap;
    size_t           had = jrt_heap_cost(jrt_heap_usable(heap, block)), wants = cost_of(size);
    if (afford(task, wants > had ? wants - had : 0) != JANUS_OK) return NULL;
    return jrt_heap_realloc(heap, cache(), block, size);
}

/* The heap of the task, which must own the block. */
static struct jrt_heap *owner_of(const void *block)
{
    struct jrt_task *task = current();
    (void)block;
    jrt_contract(task != NULL && task->purse != NULL && task->purse->heap != NULL,
                 "janus_free or janus_detach of a block that this task does not own");
    return task->purse->heap;
}

void janus_free(void *block)
{
    if (block != NULL) jrt_heap_free(owner_of(block), cache(), block);
}

/*
 * A detached block stays on the account of the task that detached it, until it is adopted or
 * discarded (ledger.c). A small block would keep its whole chunk alive, so it first moves into
 * memory of its own.
 */
void *janus_detach(void *block)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (block == NULL) return NULL;
    struct jrt_heap   *heap = owner_of(block);
    struct jrt_task   *task = current();
    size_t             cost = jrt_heap_block_cost(heap, block);
    struct jrt_ledger *ledger;
    if (jrt_ledger_take_over(task, cost, &ledger) != JANUS_OK) return NULL;
    void *apart = jrt_heap_set_apart(heap, cache(), block);
    if (apart == NULL) {
        jrt_ledger_forgo(task, ledger, cost);
        (void)jrt_trouble(JANUS_NO_MEMORY, JANUS_COMPONENT_NONE, 0, 0);
        return NULL;
    }
    toll(cost);
    jrt_heap_detach(heap, apart);
    task->purse->left.memory -= cost; /* it has just come back */
    *jrt_heap_tab(apart) = ledger;
    return apart;
}

/*
 * [block-post]  A detached block that lies in a mailbox has a mark in its tab, beside the ledger
 *   that pays for it. Only the mailbox takes it out again. So the sender can neither send it twice
 *   nor adopt or discard it meanwhile.
 */
#define POSTED ((uintptr_t)1)

static bool is_posted(void *block)
{
    _Atomic(uintptr_t) *tab = (_Atomic(uintptr_t) *)(void *)jrt_heap_tab(block);
    return (jrt_load_relaxed(tab) & POSTED) != 0; /* relaxed: a caller's mistake, not a race. */
}

static void demand_free(void *block)
{
    jrt_contract(!is_posted(block), "this block travels with a message: it belongs to the mailbox");
}

size_t jrt_block_post(void *block)
{
    _Atomic(uintptr_t) *tab = (_Atomic(uintptr_t) *)(void *)jrt_heap_tab(block);
    size_t              cost = jrt_heap_detached_cost(block);
    uintptr_t           ledger = jrt_load_relaxed(tab); /* relaxed: the cas decides. */
    demand_free(block);
    /* relaxed: the mailbox's lock orders the rest. */
    bool mine = jrt_cas_relaxed(tab, &ledger, ledger | POSTED);
    jrt_contract(mine, "this block travels with a message: it belongs to the mailbox");
    return cost;
}

void jrt_block_unpost(void *block)
{
    _Atomic(uintptr_t) *tab = (_Atomic(uintptr_t) *)(void *)jrt_heap_tab(block);
    uintptr_t           ledger = jrt_load_relaxed(tab); /* relaxed, both: its own now. */
    jrt_debug_invariant("block-post", (ledger & POSTED) != 0);
    jrt_store_relaxed(tab, ledger & ~POSTED); /* relaxed: as above. */
}

janus_status janus_adopt(void *block)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = current();
    if (task == NULL) return JANUS_STATE;
    if (block == NULL) return JANUS_OK;
    struct jrt_heap *heap = heap_of(task);
    if (heap == NULL) return JANUS_NO_MEMORY;
    (void)jrt_heap_detached_cost(block); /* it was detached */
    demand_free(block);
    struct jrt_ledger *ledger = *jrt_heap_tab(block);
    size_t             cost = jrt_heap_detached_cost(block);
    /* The task has already paid. */
    uint64_t own = ledger == task->purse->ledger ? cost : 0;
    task->purse->left.memory += own;
    /* This pays the op; the heap asks for the bytes. */
    janus_component lacks = afford_now(task, cost);
    bool            taken = lacks == JANUS_COMPONENT_NONE && jrt_heap_adopt(heap, block);
    if (!taken) {
        task->purse->left.memory -= own;
        if (lacks != JANUS_COMPONENT_NONE) return short_of(task, lacks);
        jrt_fuel_set(jrt_fuel_get() + 1); /* nothing happened */
        return JANUS_NO_MEMORY;
    }
    task->purse->held -= own;
    jrt_ledger_refund(ledger, cost);
    return JANUS_OK;
}

void jrt_block_discard(void *block)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_ledger *ledger = *jrt_heap_tab(block);
    size_t             cost = jrt_heap_detached_cost(block);
    jrt_heap_discard(worker != NULL ? &worker->heaps : NULL, block);
    jrt_ledger_refund(ledger, cost);
}

void janus_discard(void *block)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (block == NULL) return;
    (void)jrt_heap_detached_cost(block); /* it was detached */
    demand_free(block);
    jrt_block_discard(block);
}

/* How many locks the task holds. */
static size_t locks_of(const struct jrt_task *task)
{
    /* relaxed: its own. */
    const struct jrt_holder *holder = jrt_load_relaxed(&task->record.holder);
    if (jrt_likely(holder == NULL)) return 0;
    size_t count = holder->held;
    for (const struct jrt_share *at = holder->shares; at != NULL; at = at->next) count++;
    return count;
}

janus_status janus_memory_inspect(janus_memory_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = current();
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    if (task == NULL) return JANUS_STATE;
    const janus_scheduler        *scheduler = task->nursery->scheduler;
    const struct jrt_stack_class *classes = scheduler->depot->classes;
    struct jrt_purse             *purse = task->purse;
    janus_memory_info             info = {.stack_bytes = classes[task->stack_class].promised_bytes,
                                          .record_bytes = sizeof *task,
                                          .left_bytes = scheduler->task_budget.memory,
                                          .lock_count = locks_of(task)};
    for (const struct jrt_defer *defer = task->defers; defer != NULL; defer = defer->next) {
        info.record_bytes += sizeof *defer;
    }
    for (struct jrt_nursery *n = task->innermost; n != NULL; n = jrt_nursery_outer(n)) {
        info.record_bytes += sizeof(janus_nursery);
        info.frame_count++;
    }
    uint16_t shields = jrt_load_relaxed(&task->shield); /* relaxed: only the task writes it. */
    info.record_bytes += shields * sizeof(janus_shield);
    info.frame_count += shields > 0 && task->bounds != NULL;
    if (purse != NULL) {
        jrt_ledger_settle(purse);
        info.record_bytes += sizeof *purse;
        info.left_bytes = purse->left.memory;
    }
    if (purse != NULL && purse->heap != NULL) {
        struct jrt_heap_stats stats;
        jrt_heap_read(purse->heap, &stats);
        info.live_bytes = stats.live_bytes;
        info.held_bytes = stats.held_bytes;
    }
    if (jrt_likely(out->struct_bytes == sizeof info)) { /* without a call */
        info.struct_bytes = sizeof info;
        *out = info;
    } else {
        jrt_struct_give(out, &info);
    }
    return JANUS_OK;
}
