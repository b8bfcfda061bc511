/* SPDX-License-Identifier: MIT */
/*
 * Many tasks: a million that wait, and a few well-behaved tasks beside some that misbehave.
 *
 * Timed:
 *        live        1,000,000 tasks (quick: 100,000), started until each waits for a channel; then
 *                    until each has received a byte and waits again; then until the channel is
 *                    closed and the last has ended; the memory of one. With the default stacks, as
 *                    "janusrt 16 KiB" with those, and as "janusrt resting" with tasks that have no
 *                    stack while they wait. Each in a process of its own, so that memory starts
 *                    from nothing.
 *        neighbours  four tasks that do unit after unit and yield in between: from one unit's end
 *                    to the next one's. Alone, and beside four that burn the CPU, start tasks or
 *                    allocate, all without end. Limits and budgets are the defaults of :service.
 *                    The attackers' loops have a check in each round, as generated code has. A loop
 *                    without checks would keep its worker: nothing here preempts.
 * Moves it: for live the first touch of a page, and page tables. For neighbours how long a turn of
 *        ten thousand operations takes, and how many tasks are ready.
 * Expect: 4.95 KiB for a task, 4.3 KiB with 16 KiB of stack, as for a sleeping task. To create and
 *        block one takes about twice the kernel's first touch of a page. To wake and end one takes
 *        a sixth of that. Less than 500 bytes for a resting task. Beside four hogs on one worker
 *        about twice the time alone. tasks_million_bench.c and neighbour_bench.c measure more.
 */
#include "runner.h"

#include <janusrt/janus.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void need(janus_status status)
{
    if (status != JANUS_OK) runner_need(false, janus_status_text(status));
}

/* The waiting tasks. */

static _Atomic(int) ended;

static bool resting; /* the tasks have no stack while they wait */
static char any;     /* what resting tasks receive: the value does not matter */

static int64_t stand(void *argument)
{
    const janus_channel *gate = argument;
    janus_status         status;
    char                 nothing;
    do status = janus_channel_recv(*gate, &nothing);
    while (status == JANUS_OK);
    runner_need(status == JANUS_CLOSED, "the gate did not close");
    ended++;
    return 0;
}

static janus_rest rest_on(void *state, janus_status woke)
{
    if (woke == JANUS_OK) return janus_rest_recv(*(const janus_channel *)state, &any);
    runner_need(woke == JANUS_CLOSED, "the gate did not close");
    ended++;
    return janus_rest_done(0);
}

static janus_status start(janus_nursery *n, janus_channel *gate)
{
    if (!resting) return janus_spawn(n, stand, gate);
    return janus_spawn_resting(n, janus_rest_recv(*gate, &any), rest_on, gate, NULL, NULL);
}

static void await_standing(janus_channel gate, int count)
{
    janus_channel_info info = JANUS_CHANNEL_INFO();
    do {
        need(janus_yield());
        need(janus_channel_inspect(gate, &info));
    } while (info.receivers < (uint64_t)count);
}

static int64_t gather(void *argument)
{
    janus_channel gate;
    int           count = runner.quick ? 100000 : 1000000;
    need(janus_channel_create(1, 0, NULL, &gate));
    double       base = runner_footprint();
    uint64_t     begun = bench_now_ns();
    janus_status said;
    JANUS_NURSERY(n, said)
    {
        for (int i = 0; i < count; i++) need(start(n, &gate));
        await_standing(gate, count);
        runner_say("create and block", "ns", (double)(bench_now_ns() - begun) / count);
        runner_say("bytes a task", "B", (runner_footprint() - base) / count);
        begun = bench_now_ns();
        for (int i = 0; i < count; i++) need(janus_channel_send(gate, &any));
        await_standing(gate, count);
        runner_say("wake and block again", "ns", (double)(bench_now_ns() - begun) / count);
        begun = bench_now_ns();
        need(janus_channel_close(gate));
    }
    need(said);
    runner_say("wake and end", "ns", (double)(bench_now_ns() - begun) / count);
    runner_need(ended == count, "not all ended");
    need(janus_channel_destroy(gate));
    return argument == NULL ? 0 : -1;
}

/* An explicit limit, above the number of tasks. */
enum { LIVE_MAX = 2000000 };

/* stack_bytes 0: the default. */
static void live_as(const char *system, size_t stack_bytes)
{
    int   status = 0;
    pid_t child = fork();
    runner_need(child >= 0, "cannot fork");
    if (child == 0) {
        runner.system = system;
        need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers,
                                               .max_tasks = LIVE_MAX, .stack_bytes = stack_bytes),
                       gather, NULL, NULL));
        exit(0);
    }
    runner_need(waitpid(child, &status, 0) == child && status == 0, "a run failed");
}

static void run_live(void)
{
    live_as("janusrt", 0);
    live_as("janusrt 16 KiB", (size_t)16 * 1024);
    resting = true;
    live_as("janusrt resting", 0);
    resting = false;
}

/* The well-behaved tasks. */

enum { CREW = 4, ATTACKERS = 4, UNIT_ROUNDS = 10000, SAMPLES = 1 << 17, BOMB_CHILDREN = 1000 };

static struct member {
    int    count;
    double samples[SAMPLES];
} crew[CREW];

static double            all[CREW * SAMPLES];
static _Atomic(bool)     stop;
static _Atomic(uint64_t) sink;

static bool over(void) { return atomic_load_explicit(&stop, memory_order_relaxed); }

static inline uint64_t step(uint64_t state, uint64_t i)
{
    state = (state ^ i) * UINT64_C(0x9e3779b97f4a7c15);
    return state ^ state >> 29;
}

static int64_t behave(void *argument)
{
    struct member *member = argument;
    uint64_t       state = 1, last = bench_now_ns();
    while (!over()) {
        for (uint64_t i = 0; i < UNIT_ROUNDS; i++) state = step(state, i);
        need(janus_yield());
        uint64_t this = bench_now_ns();
        if (member->count < SAMPLES) member->samples[member->count++] = (double)(this - last);
        last = this;
    }
    atomic_store_explicit(&sink, state, memory_order_relaxed);
    return 0;
}

/* The attackers. */

static int64_t hog(void *argument)
{
    uint64_t state = 1;
    while (!over()) {
        for (uint64_t i = 0; i < UNIT_ROUNDS && janus_check() == JANUS_OK; i++) {
            state = step(state, i);
        }
    }
    atomic_store_explicit(&sink, state, memory_order_relaxed);
    return argument == NULL ? 0 : -1;
}

static int64_t nothing(void *argument) { return argument == NULL ? 0 : -1; }

static int64_t spawn_bomb(void *argument)
{
    while (!over()) {
        janus_nursery n;
        need(janus_nursery_open(&n, NULL));
        for (int i = 0; i < BOMB_CHILDREN && janus_spawn(&n, nothing, NULL) == JANUS_OK; i++) {
            continue; /* until a spawn is refused */
        }
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    return argument == NULL ? 0 : -1;
}

static int64_t gobble(void *argument)
{
    for (;;) {
        char *block = janus_alloc(1000);
        if (block == NULL) return argument == NULL ? 0 : -1;
        block[0] = block[999] = 1;
    }
}

/* Takes all the memory a task may have, ends, and is started again. */
static int64_t allocation_bomb(void *argument)
{
    while (!over()) {
        janus_nursery n;
        need(janus_nursery_open(&n, NULL));
        JANUS_IGNORE(janus_spawn(&n, gobble, NULL));
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    return argument == NULL ? 0 : -1;
}

static int64_t open_window(void *argument)
{
    janus_entry  *attack = *(janus_entry **)argument;
    janus_nursery n;
    need(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)));
    atomic_store(&stop, false);
    for (int i = 0; i < CREW; i++) {
        crew[i].count = 0;
        need(janus_spawn(&n, behave, &crew[i]));
    }
    for (int i = 0; i < ATTACKERS && attack != NULL; i++) need(janus_spawn(&n, attack, NULL));
    need(janus_sleep(runner.quick ? 500000000 : 1500000000));
    atomic_store(&stop, true);
    need(janus_nursery_end(&n, NULL));
    return 0;
}

static void window(const char *metric, janus_entry *attack)
{
    size_t count = 0;
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers), open_window, &attack,
                   NULL));
    for (int i = 0; i < CREW; i++) {
        runner_need(crew[i].count > 1, "somebody got nothing done");
        /* The first sample began before all tasks ran. */
        for (int k = 1; k < crew[i].count; k++) all[count++] = crew[i].samples[k];
    }
    qsort(all, count, sizeof all[0], bench_compare);
    runner_say(metric, "us", all[(count - 1) * 99 / 100] / 1000);
}

static void run_neighbours(void)
{
    window("a unit of work alone, p99", NULL);
    window("a unit of work beside CPU hogs, p99", hog);
    window("a unit of work beside spawn bombs, p99", spawn_bomb);
    window("a unit of work beside allocation bombs, p99", allocation_bomb);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"live", 0, run_live},
        {"neighbours", 0, run_neighbours},
        {NULL, 0, NULL},
    };
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}
