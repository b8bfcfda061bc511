/* SPDX-License-Identifier: MIT */
/*
 * What do our channels cost: to meet, to buffer, to share, to select from, to close?
 *
 * Timed:
 *        pingpong  two tasks, two channels without room; for each round trip
 *        buffered  one sender, one receiver, room for 128; for each message
 *        mpmc      four senders, four receivers, room for 128; for each message
 *        select    one receiver selects over eight channels without room, with a sender at each;
 *                  for each message
 *        crowd     1,000,000 tasks receive from one channel, which is then closed: until the last
 *                  has returned
 * Moves it: the lock of the channel, parking and waking, whether the pair stays on one worker.
 * Expect: 65 ns a round trip and 15 to 20 ns a message with one worker, and no slower with two.
 */
#include "runner.h"

#include <janusrt/janus.h>

enum { ROOM = 128, CROWD = 1000000, SELECTED = 8 };

static int messages(void) { return runner.quick ? 200000 : 1000000; }

static inline void need(janus_status status)
{
    if (status != JANUS_OK) runner_need(false, janus_status_text(status));
}

static janus_channel open_channel(uint64_t capacity)
{
    janus_channel channel;
    need(janus_channel_create(sizeof(int64_t), capacity, NULL, &channel));
    return channel;
}

static void destroy(janus_channel channel) { need(janus_channel_destroy(channel)); }

struct pair {
    janus_channel there, back;
};

static int64_t answer(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    while (janus_channel_recv(pair->there, &value) == JANUS_OK) {
        value++;
        need(janus_channel_send(pair->back, &value));
    }
    return 0;
}

static int64_t ask(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    for (int i = 0; i < messages(); i++) {
        need(janus_channel_send(pair->there, &value));
        need(janus_channel_recv(pair->back, &value));
    }
    runner_need(value == messages(), "an answer is missing");
    need(janus_channel_close(pair->there));
    return 0;
}

static double pingpong(void)
{
    struct pair  pair = {open_channel(0), open_channel(0)};
    uint64_t     start = bench_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        JANUS_IGNORE(janus_spawn(n, answer, &pair));
        JANUS_IGNORE(janus_spawn(n, ask, &pair));
    }
    need(ended);
    uint64_t spent = bench_now_ns() - start;
    destroy(pair.there);
    destroy(pair.back);
    return (double)spent / messages();
}

/* Some send, some receive. The last sender closes. */
struct traffic {
    janus_channel    channel;
    int              each; /* of each sender */
    _Atomic(int)     senders;
    _Atomic(int64_t) sum;
};

static int64_t produce(void *argument)
{
    struct traffic *traffic = argument;
    for (int64_t i = 1; i <= traffic->each; i++) need(janus_channel_send(traffic->channel, &i));
    if (--traffic->senders == 0) need(janus_channel_close(traffic->channel));
    return 0;
}

static int64_t consume(void *argument)
{
    struct traffic *traffic = argument;
    int64_t         value = 0, sum = 0;
    while (janus_channel_recv(traffic->channel, &value) == JANUS_OK) sum += value;
    traffic->sum += sum;
    return 0;
}

static double flow(int parties)
{
    struct traffic traffic = {.channel = open_channel(ROOM), .each = messages() / parties};
    traffic.senders = parties;
    uint64_t     start = bench_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < parties; i++) {
            JANUS_IGNORE(janus_spawn(n, consume, &traffic));
            JANUS_IGNORE(janus_spawn(n, produce, &traffic));
        }
    }
    need(ended);
    uint64_t spent = bench_now_ns() - start;
    int64_t  each = traffic.each;
    runner_need(traffic.sum == parties * (each * (each + 1) / 2), "a message is missing");
    destroy(traffic.channel);
    return (double)spent / ((double)each * parties);
}

static double buffered(void) { return flow(1); }
static double mpmc(void) { return flow(4); }

struct source {
    janus_channel channel;
    int           each;
};

static int64_t feed(void *argument)
{
    struct source *source = argument;
    for (int64_t i = 0; i < source->each; i++) need(janus_channel_send(source->channel, &i));
    return 0;
}

static double selects(void)
{
    struct source     sources[SELECTED];
    janus_select_case cases[SELECTED];
    int64_t           value = 0;
    int               each = messages() / SELECTED;
    for (int i = 0; i < SELECTED; i++) {
        sources[i] = (struct source){open_channel(0), each};
        cases[i] = (janus_select_case){.channel = sources[i].channel, .value = &value};
    }
    uint64_t     start = bench_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < SELECTED; i++) JANUS_IGNORE(janus_spawn(n, feed, &sources[i]));
        for (int i = 0; i < each * SELECTED; i++) {
            size_t chosen = 0;
            need(janus_select(cases, SELECTED, &chosen));
        }
    }
    need(ended);
    uint64_t spent = bench_now_ns() - start;
    for (int i = 0; i < SELECTED; i++) destroy(sources[i].channel);
    return (double)spent / (double)(each * SELECTED);
}

struct crowd {
    janus_channel channel;
    _Atomic(int)  told;
};

static int64_t stand(void *argument)
{
    struct crowd *crowd = argument;
    int64_t       value = 0;
    if (janus_channel_recv(crowd->channel, &value) == JANUS_CLOSED) crowd->told++;
    return 0;
}

static int64_t gather(void *argument)
{
    struct crowd       crowd = {.channel = open_channel(0)};
    int                count = runner.quick ? CROWD / 10 : CROWD;
    janus_channel_info info = JANUS_CHANNEL_INFO();
    uint64_t           start = bench_now_ns(), closed = 0;
    janus_status       ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < count; i++) need(janus_spawn(n, stand, &crowd));
        do {
            need(janus_yield());
            need(janus_channel_inspect(crowd.channel, &info));
        } while (info.receivers < (uint64_t)count);
        runner_say("a task, until it waits", "ns", (double)(bench_now_ns() - start) / count);
        closed = bench_now_ns();
        need(janus_channel_close(crowd.channel));
    }
    need(ended);
    runner_say("a task, told CLOSED and ended", "ns", (double)(bench_now_ns() - closed) / count);
    runner_need(crowd.told == count, "somebody was not told");
    destroy(crowd.channel);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_pingpong(void *argument)
{
    runner_turns("a round trip", "ns", pingpong);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_buffered(void *argument)
{
    runner_turns("a message, 1 to 1, room for 128", "ns", buffered);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_mpmc(void *argument)
{
    runner_turns("a message, 4 to 4, room for 128", "ns", mpmc);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_select(void *argument)
{
    runner_turns("a message, select over 8", "ns", selects);
    return argument == NULL ? 0 : -1;
}

static void in_scheduler(janus_entry *entry)
{
    /* An explicit limit, because the default is less than a crowd. */
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers, .max_tasks = 2 * CROWD),
                   entry, NULL, NULL));
}

static void run_pingpong(void) { in_scheduler(turns_pingpong); }
static void run_buffered(void) { in_scheduler(turns_buffered); }
static void run_mpmc(void) { in_scheduler(turns_mpmc); }
static void run_select(void) { in_scheduler(turns_select); }
static void run_crowd(void) { in_scheduler(gather); }

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"pingpong", 0, run_pingpong}, {"buffered", 0, run_buffered}, {"mpmc", 0, run_mpmc},
        {"select", 0, run_select},     {"crowd", 0, run_crowd},       {NULL, 0, NULL},
    };
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}
