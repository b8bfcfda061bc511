/* SPDX-License-Identifier: MIT */
/*
 * What do our actors cost: a message, a call, a life, a crash?
 *
 * Timed:
 *        cast     numbers to one actor with room for 128, from one task and from four; a message
 *        call     a call and its answer, without a deadline and with one of 5 s
 *        ring     one number goes round among 1000 actors; a hop
 *        actors   one actor after the other is started, stopped and awaited; from the end of an
 *                 actor to the handler that gets DOWN; a supervisor with 10,000 children ends, its
 *                 children in reverse order or together; the memory of one of 1,000,000 idle
 *                 actors (quick: 100,000), then a call to each until all have answered, and the
 *                 memory again, because some things are made for the first message only
 *        restart  from the cast that makes an actor fail to the answer of its next incarnation
 * All actors have a supervisor, and the implicit budgets of :service. As "janusrt own budget", idle
 * actors have explicit ones. Each crowd runs in a process of its own, so that memory starts from
 * nothing. The memory is that of the whole process, with page tables, but without the array of
 * handles.
 * Moves it: the lock of the mailbox, whether actor and sender stay on one worker, the record of an
 *        actor at rest.
 */
#include "peer.h"

#include <janusrt/actor.h>
#include <janusrt/janus.h>
#include <janusrt/supervisor.h>
#include <sys/wait.h>

enum { ROOM = 128, IDLE_ROOM = 16, RING = 1000, CHILDREN = 10000, DOWNS = 1000 };
enum { TASKS_MAX = 2000000 };

#define NO_DEADLINE UINT64_MAX

static int messages(void) { return runner.quick ? 200000 : 1000000; }

static inline void need(janus_status status)
{
    if (status != JANUS_OK) runner_need(false, janus_status_text(status));
}

static void in_scheduler(janus_entry *entry)
{
    /* Explicit limits, because the defaults are less than a crowd. The records of children count as
     * memory of the task that has opened their supervisor. */
    janus_budget budget = janus_budget_default();
    budget.memory = UINT64_C(1) << 32;
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers, .max_tasks = TASKS_MAX,
                                           .task_budget = &budget, .max_budget = &budget),
                   entry, NULL, NULL));
}

static janus_supervisor *open_supervisor(void)
{
    janus_supervisor *supervisor = NULL;
    need(janus_supervisor_open(NULL, &supervisor));
    return supervisor;
}

static janus_actor add(janus_supervisor *supervisor, const janus_behaviour *behaviour,
                       void *argument)
{
    janus_actor actor;
    need(janus_supervisor_add(supervisor,
                              JANUS_CHILD(.behaviour = behaviour, .argument = argument,
                                          .options = JANUS_ACTOR_OPTIONS(.max_messages = ROOM)),
                              &actor));
    return actor;
}

static void end(janus_supervisor *supervisor) { need(janus_supervisor_end(supervisor, NULL)); }

/* Adds up what it gets, and answers a call with the sum so far. */

struct adder {
    int64_t sum;
};

static int64_t add_up(void *state, janus_letter *letter)
{
    struct adder *self = state;
    if (letter->message == NULL) return JANUS_ACTOR_GO_ON;
    self->sum += *(const int64_t *)letter->message;
    if (janus_letter_is_call(letter)) need(janus_reply(letter, &self->sum));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour adder = {.struct_bytes = sizeof adder,
                                      .name = "adder",
                                      .state_bytes = sizeof(struct adder),
                                      .message_bytes = sizeof(int64_t),
                                      .reply_bytes = sizeof(int64_t),
                                      .handle = add_up};

/* Messages. */

struct traffic {
    janus_actor to;
    int64_t     each; /* of each sender */
};

static int64_t produce(void *argument)
{
    const struct traffic *traffic = argument;
    for (int64_t i = 1; i <= traffic->each; i++) need(janus_cast(traffic->to, &i));
    return 0;
}

static double cast_from(int senders)
{
    janus_supervisor *supervisor = open_supervisor();
    struct traffic    traffic = {add(supervisor, &adder, NULL), messages() / senders};
    int64_t           nothing = 0, sum = 0;
    janus_status      ended;
    uint64_t          start = bench_now_ns();
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < senders; i++) need(janus_spawn(n, produce, &traffic));
    }
    need(ended);
    need(janus_call(traffic.to, &nothing, &sum, NO_DEADLINE)); /* all messages are before it */
    uint64_t spent = bench_now_ns() - start;
    runner_need(sum == senders * (traffic.each * (traffic.each + 1) / 2), "a message is missing");
    end(supervisor);
    return (double)spent / ((double)traffic.each * senders);
}

static double cast_one(void) { return cast_from(1); }
static double cast_four(void) { return cast_from(4); }

static int calls(void) { return runner.quick ? 100000 : 500000; }

static double calls_within(uint64_t within_ns)
{
    janus_supervisor *supervisor = open_supervisor();
    janus_actor       to = add(supervisor, &adder, NULL);
    int64_t           one = 1, sum = 0;
    uint64_t          start = bench_now_ns();
    for (int i = 0; i < calls(); i++) {
        uint64_t deadline = within_ns == 0 ? NO_DEADLINE : janus_now_ns() + within_ns;
        need(janus_call(to, &one, &sum, deadline));
    }
    uint64_t spent = bench_now_ns() - start;
    runner_need(sum == calls(), "an answer is missing");
    end(supervisor);
    return (double)spent / calls();
}

static double call_any_time(void) { return calls_within(0); }
static double call_deadline(void) { return calls_within(5 * JANUS_SECONDS); }

/* One number goes round until it is zero. A channel then tells the task that sent it. */

struct ring {
    janus_actor   members[RING];
    janus_channel over;
    struct ring_seat {
        struct ring *ring;
        int          next;
    } seats[RING];
};

static int64_t sit(void *state, void *argument)
{
    *(struct ring_seat **)state = argument;
    return JANUS_ACTOR_GO_ON;
}

static int64_t pass_on(void *state, janus_letter *letter)
{
    const struct ring_seat *seat = *(struct ring_seat **)state;
    if (letter->message == NULL) return JANUS_ACTOR_GO_ON;
    int64_t hops = *(const int64_t *)letter->message - 1;
    if (hops >= 0) {
        need(janus_cast(seat->ring->members[seat->next], &hops));
    } else {
        need(janus_channel_send(seat->ring->over, &hops));
    }
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour member = {.struct_bytes = sizeof member,
                                       .name = "member",
                                       .state_bytes = sizeof(struct ring_seat *),
                                       .message_bytes = sizeof(int64_t),
                                       .init = sit,
                                       .handle = pass_on};

static void go_round(struct ring *ring, int64_t hops)
{
    int64_t none = 0;
    need(janus_cast(ring->members[0], &hops));
    need(janus_channel_recv(ring->over, &none));
}

static double ring(void)
{
    static struct ring ring;
    janus_supervisor  *supervisor = open_supervisor();
    need(janus_channel_create(sizeof(int64_t), 1, NULL, &ring.over));
    for (int i = 0; i < RING; i++) {
        ring.seats[i] = (struct ring_seat){&ring, (i + 1) % RING};
        ring.members[i] = add(supervisor, &member, &ring.seats[i]);
    }
    go_round(&ring, RING); /* each runs once */
    uint64_t start = bench_now_ns();
    go_round(&ring, messages());
    uint64_t spent = bench_now_ns() - start;
    end(supervisor);
    need(janus_channel_destroy(ring.over));
    return (double)spent / messages();
}

/* Lives. */

static double start_stop(void)
{
    int               count = runner.quick ? 20000 : 100000;
    janus_supervisor *supervisor = open_supervisor();
    uint64_t          start = bench_now_ns();
    for (int i = 0; i < count; i++) {
        janus_actor actor;
        need(janus_supervisor_add(
            supervisor, JANUS_CHILD(.behaviour = &adder, .restart = JANUS_RESTART_TEMPORARY),
            &actor));
        need(janus_actor_stop(actor, JANUS_STOP_HOW_AFTER_THIS, 0));
        janus_status ended = janus_actor_await(actor, NULL, NO_DEADLINE);
        if (ended != JANUS_STALE) need(ended); /* STALE: it ended before */
    }
    uint64_t spent = bench_now_ns() - start;
    end(supervisor);
    return (double)spent / count;
}

/* A call names the actor that the watcher watches and tells to end. DOWN answers the call. */

static uint64_t ended_ns; /* of one actor at a time; its end orders the accesses */

static int64_t finish(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->message == NULL) return JANUS_ACTOR_GO_ON;
    ended_ns = bench_now_ns();
    return JANUS_ACTOR_STOP;
}

static const janus_behaviour mortal = {.struct_bytes = sizeof mortal,
                                       .name = "mortal",
                                       .message_bytes = sizeof(int64_t),
                                       .handle = finish};

struct watcher {
    janus_kept_reply asked;
};

static int64_t watch(void *state, janus_letter *letter)
{
    struct watcher *self = state;
    if (letter->kind == JANUS_LETTER_KIND_DOWN) {
        uint64_t spent = bench_now_ns() - ended_ns;
        need(janus_reply_to(self->asked, &spent));
    } else if (letter->message != NULL) {
        const janus_actor *watched = letter->message;
        int64_t            now = 0;
        need(janus_reply_keep(letter, &self->asked));
        need(janus_actor_watch(*watched, 0, NULL));
        need(janus_cast(*watched, &now));
    }
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour watcher = {.struct_bytes = sizeof watcher,
                                        .name = "watcher",
                                        .state_bytes = sizeof(struct watcher),
                                        .message_bytes = sizeof(janus_actor),
                                        .reply_bytes = sizeof(uint64_t),
                                        .handle = watch};

static double down(void)
{
    static double     samples[DOWNS];
    janus_supervisor *supervisor = open_supervisor();
    janus_actor       who = add(supervisor, &watcher, NULL);
    for (int i = 0; i < DOWNS; i++) {
        uint64_t    spent = 0;
        janus_actor actor;
        need(janus_supervisor_add(
            supervisor, JANUS_CHILD(.behaviour = &mortal, .restart = JANUS_RESTART_TEMPORARY),
            &actor));
        need(janus_call(who, &actor, &spent, NO_DEADLINE));
        samples[i] = (double)spent;
    }
    end(supervisor);
    qsort(samples, DOWNS, sizeof samples[0], bench_compare);
    return samples[(DOWNS - 1) / 2];
}

static double stop_supervisor(bool together)
{
    janus_supervisor *supervisor = NULL;
    need(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.stop_together = together), &supervisor));
    for (int i = 0; i < CHILDREN; i++) (void)add(supervisor, &adder, NULL);
    uint64_t start = bench_now_ns();
    end(supervisor);
    return (double)(bench_now_ns() - start) / 1e6;
}

static double stop_in_order(void) { return stop_supervisor(false); }
static double stop_together(void) { return stop_supervisor(true); }

/* Crowds. The calls are made in groups as large as janus_call_all takes. */

enum { GROUP = 4096 };

static const janus_budget *own_budget;

static void rest(janus_supervisor *supervisor, janus_actor *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        need(janus_supervisor_add(
            supervisor,
            JANUS_CHILD(.behaviour = &adder,
                        .options =
                            JANUS_ACTOR_OPTIONS(.max_messages = IDLE_ROOM, .budget = own_budget)),
            &out[i]));
    }
}

static void call_each(const janus_actor *actors, size_t count)
{
    static int64_t      replies[GROUP];
    static janus_status statuses[GROUP];
    int64_t             one = 1;
    for (size_t done = 0; done < count; done += GROUP) {
        size_t some = count - done < GROUP ? count - done : GROUP;
        need(janus_call_all(actors + done, some, &one, replies, sizeof replies[0], statuses,
                            NO_DEADLINE));
        for (size_t i = 0; i < some; i++) {
            need(statuses[i]);
            runner_need(replies[i] == 1, "an answer is wrong");
        }
    }
}

static int64_t gather(void *argument)
{
    size_t            count = runner.quick ? 100000 : 1000000;
    janus_supervisor *supervisor = open_supervisor();
    janus_actor      *all = malloc(count * sizeof all[0]);
    runner_need(all != NULL, "no memory");
    memset(all, 1, count * sizeof all[0]); /* its pages are there */
    double base = runner_footprint();
    rest(supervisor, all, count);
    runner_say("an idle actor", "B", (runner_footprint() - base) / (double)count);
    uint64_t start = bench_now_ns();
    call_each(all, count);
    runner_say("a message to each idle actor, all answer", "ns",
               (double)(bench_now_ns() - start) / (double)count);
    runner_say("an idle actor that has answered", "B", (runner_footprint() - base) / (double)count);
    start = bench_now_ns();
    end(supervisor);
    runner_say("a child of a crowd, when its supervisor ends", "ns",
               (double)(bench_now_ns() - start) / (double)count);
    free(all);
    return argument == NULL ? 0 : -1;
}

static void gather_as(const char *system, const janus_budget *budget)
{
    int   status = 0;
    pid_t child = fork();
    runner_need(child >= 0, "cannot fork");
    if (child == 0) {
        runner.system = system;
        own_budget = budget;
        in_scheduler(gather);
        exit(0);
    }
    runner_need(waitpid(child, &status, 0) == child && status == 0, "a run failed");
}

/* Restarts. A negative number makes it fail. */

static int64_t fail_or_answer(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->message == NULL) return JANUS_ACTOR_GO_ON;
    int64_t value = *(const int64_t *)letter->message;
    if (value < 0) return value;
    value++;
    if (janus_letter_is_call(letter)) need(janus_reply(letter, &value));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour worker = {.struct_bytes = sizeof worker,
                                       .name = "worker",
                                       .state_bytes = sizeof(int64_t),
                                       .message_bytes = sizeof(int64_t),
                                       .reply_bytes = sizeof(int64_t),
                                       .handle = fail_or_answer};

/* The call waits in the mailbox, which outlives the crash. */
static double crash(janus_actor actor)
{
    int64_t  failure = -1, one = 1, reply = 0;
    uint64_t start = bench_now_ns();
    need(janus_cast(actor, &failure));
    need(janus_call(actor, &one, &reply, NO_DEADLINE));
    uint64_t spent = bench_now_ns() - start;
    runner_need(reply == 2, "the answer is wrong");
    return (double)spent;
}

static int64_t restarts(void *argument)
{
    static double     samples[PEER_ROUNDS_FULL];
    janus_supervisor *supervisor = NULL;
    need(janus_supervisor_open(
        JANUS_SUPERVISOR_OPTIONS(.max_restarts = 1000000, .period_ns = JANUS_SECONDS),
        &supervisor));
    janus_actor actor = add(supervisor, &worker, NULL);
    for (int i = 0; i < PEER_WARM; i++) (void)crash(actor);
    for (int i = 0; i < peer_rounds(); i++) samples[i] = crash(actor);
    end(supervisor);
    peer_tell("from the crash to an answer", samples);
    return argument == NULL ? 0 : -1;
}

/* The works. */

static int64_t turns_cast(void *argument)
{
    runner_turns("a message, 1 to 1", "ns", cast_one);
    runner_turns("a message, 4 to 1", "ns", cast_four);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_call(void *argument)
{
    runner_turns("a call without a deadline", "ns", call_any_time);
    runner_turns("a call with a deadline of 5 s", "ns", call_deadline);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_ring(void *argument)
{
    runner_turns("a hop, 1000 actors", "ns", ring);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_lives(void *argument)
{
    runner_turns("start, stop and await an actor", "ns", start_stop);
    runner_turns("an actor's end until DOWN, p50", "ns", down);
    runner_turns("stop of a supervisor with 10000 children, in order", "ms", stop_in_order);
    runner_turns("stop of a supervisor with 10000 children, together", "ms", stop_together);
    return argument == NULL ? 0 : -1;
}

static void run_cast(void) { in_scheduler(turns_cast); }
static void run_call(void) { in_scheduler(turns_call); }
static void run_ring(void) { in_scheduler(turns_ring); }
static void run_restart(void) { in_scheduler(restarts); }

static void run_actors(void)
{
    const janus_budget budget = janus_budget_default();
    gather_as("janusrt", NULL);
    gather_as("janusrt own budget", &budget);
    in_scheduler(turns_lives);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"cast", 0, run_cast},     {"call", 0, run_call},       {"ring", 0, run_ring},
        {"actors", 0, run_actors}, {"restart", 0, run_restart}, {NULL, 0, NULL},
    };
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}
