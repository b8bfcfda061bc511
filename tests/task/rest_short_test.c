/* SPDX-License-Identifier: MIT */
/* Resting tasks that come back where the system refuses stacks. */
#include "rests.h"

#include "stack/stack.h"
#include "task/worker.h"

enum {
    LARGE = 256 << 10,
    OCCUPANTS_MAX = 500, /* more than the stacks that a worker keeps */
    SETTLED = 20,        /* yields, after which all that can wait does */
};

/* What one test has: tasks that keep stacks until `over` is set. */
struct town {
    janus_scheduler *scheduler;
    janus_nursery    occupants;
    janus_event      over;
    atomic_int       refused; /* waits that got no memory */
};

static int64_t occupy(void *argument)
{
    struct town *town = argument;
    if (janus_event_wait(&town->over) == JANUS_NO_MEMORY) atomic_fetch_add(&town->refused, 1);
    return 0;
}

/* As if the process had as many mappings as it may have. */
static void refuse_stacks(janus_scheduler *scheduler, bool refuse)
{
    struct jrt_ladder *ladder = &scheduler->depot->ladder;
    jrt_lock(&scheduler->depot->lock);
    ladder->guarded_max = refuse ? ladder->guarded : ladder->process_max;
    jrt_unlock(&scheduler->depot->lock);
}

static void settle(void)
{
    for (int i = 0; i < SETTLED; i++) CHECK_EQ(janus_yield(), JANUS_OK);
}

static void open_town(struct town *town)
{
    atomic_store(&town->refused, 0);
    janus_event_init(&town->over, JANUS_WAKER_TASKS, NULL);
    CHECK_EQ(janus_nursery_open(&town->occupants,
                                JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
}

static void close_town(struct town *town)
{
    refuse_stacks(town->scheduler, false);
    janus_event_set(&town->over);
    JANUS_IGNORE(janus_nursery_end(&town->occupants, NULL));
}

/* A task on a large stack that holds a lock, and has a defer, while it rests. */

struct holder {
    janus_mutex   lock;
    janus_channel channel;
    int           item, steps, defers;
};

static void count_defer(void *argument) { ((struct holder *)argument)->defers++; }

static janus_rest lock_and_rest(void *state, janus_status woke)
{
    struct holder *self = state;
    CHECK_EQ(woke, JANUS_OK);
    CHECK_EQ(self->steps++, 0); /* there is no stack for another step */
    CHECK_EQ(janus_mutex_lock(&self->lock), JANUS_OK);
    CHECK_EQ(janus_defer(count_defer, self), JANUS_OK);
    return janus_rest_recv(self->channel, &self->item);
}

static int64_t try_the_lock(void *argument)
{
    struct holder *holder = argument;
    CHECK_EQ(janus_mutex_unlock(&holder->lock), JANUS_STATE); /* it holds nothing */
    return 0;
}

static int64_t refuse_a_step(void *argument)
{
    struct town          town = {.scheduler = argument};
    struct holder        holder = {.steps = 0};
    janus_nursery        n;
    janus_nursery_result result;
    int                  one = 1;
    janus_mutex_init(&holder.lock, "holder");
    CHECK_EQ(janus_channel_create(sizeof(int), 0, NULL, &holder.channel), JANUS_OK);
    open_town(&town);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), lock_and_rest, &holder,
                                 JANUS_SPAWN_OPTIONS(.stack_bytes = LARGE), NULL),
             JANUS_OK);
    while (holder.steps < 1) CHECK_EQ(janus_yield(), JANUS_OK);
    settle();
    refuse_stacks(town.scheduler, true);
    for (int i = 0; i < OCCUPANTS_MAX; i++) {
        JANUS_IGNORE(janus_spawn_with(&town.occupants, occupy, &town,
                                      JANUS_SPAWN_OPTIONS(.stack_bytes = LARGE), NULL));
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(janus_channel_send(holder.channel, &one), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_NO_MEMORY);
    CHECK_EQ(holder.defers, 1);
    refuse_stacks(town.scheduler, false);
    CHECK_EQ(janus_mutex_try_lock(&holder.lock), JANUS_OK); /* nobody else holds it */
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, try_the_lock, &holder), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&holder.lock), JANUS_OK);
    close_town(&town);
    CHECK_EQ(janus_channel_destroy(holder.channel), JANUS_OK);
    return 0;
}

static void with_few_stacks(janus_entry *entry)
{
    RIG_REAL("a world has other stacks");
    if (JRT_ASAN || JRT_TSAN) SKIP("sanitizers have larger stacks, and more mappings");
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_tasks = 2 * OCCUPANTS_MAX,
                                         .guard = JANUS_GUARD_MPROTECT, .stack_bytes = 32 << 10));
    rig_do(scheduler, entry, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a resting task without a stack for its step ends, runs its defers and leaves its locks")
{
    with_few_stacks(refuse_a_step);
}

/* Two resting tasks are woken before a task that has a stack. When that has ended, they have one,
 * too. */

struct sleepers {
    struct town   town;
    janus_event   wake;
    janus_channel channel;
    int           items[2];
    int           steps, ended;
    bool          last; /* the task with a stack is woken after the others */
};

static janus_rest end_at_once(void *state, janus_status woke)
{
    struct sleepers *self = state;
    CHECK_EQ(woke, JANUS_OK);
    self->steps++;
    return janus_rest_done(0);
}

static int64_t end_when_woken(void *argument)
{
    struct sleepers *self = argument;
    CHECK_EQ(janus_event_wait(&self->wake), JANUS_OK);
    self->ended++;
    return 0;
}

static int64_t wake_all(void *argument)
{
    struct sleepers *self = argument;
    struct script    script = {.rests[0] = janus_rest_done(0)};
    int              one = 1;
    if (!self->last) janus_event_set(&self->wake);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_channel_send(self->channel, &one), JANUS_OK);
    if (self->last) janus_event_set(&self->wake);
    return play(&script, janus_rest_sleep(rig_ms), NULL, NULL); /* its own wait needs a stack */
}

static void wait_for_a_stack(janus_scheduler *scheduler, bool last)
{
    struct sleepers self = {.town = {.scheduler = scheduler}, .last = last};
    janus_nursery   n;
    janus_event_init(&self.wake, JANUS_WAKER_TASKS, NULL);
    CHECK_EQ(janus_channel_create(sizeof(int), 0, NULL, &self.channel), JANUS_OK);
    open_town(&self.town);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&self.town.occupants, end_when_woken, &self), JANUS_OK);
    for (int i = 0; i < 2; i++) {
        janus_rest receive = janus_rest_recv(self.channel, &self.items[i]);
        CHECK_EQ(janus_spawn_resting(&n, receive, end_at_once, &self, NULL, NULL), JANUS_OK);
    }
    settle();
    refuse_stacks(scheduler, true);
    for (int i = 0; i < OCCUPANTS_MAX && atomic_load(&self.town.refused) == 0; i++) {
        JANUS_IGNORE(janus_spawn(&self.town.occupants, occupy, &self.town));
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK(atomic_load(&self.town.refused) > 0);
    CHECK_EQ(janus_spawn(&self.town.occupants, wake_all, &self), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(self.steps, 2);
    CHECK_EQ(self.ended, 1);
    close_town(&self.town);
    CHECK_EQ(janus_channel_destroy(self.channel), JANUS_OK);
}

static int64_t wait_for_stacks(void *argument)
{
    wait_for_a_stack(argument, true);
    wait_for_a_stack(argument, false);
    return 0;
}

TEST("resting tasks wait for the stack of a task that was woken after them")
{
    with_few_stacks(wait_for_stacks);
}
