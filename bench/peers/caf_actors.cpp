/* SPDX-License-Identifier: MIT */
/*
 * The works of janusrt_actors.c with CAF: event-based actors, the stealing scheduler.
 *
 * Timed: cast, call, ring, actors, restart. An actor drives each work and takes the times, so the
 *        main thread only waits for its end. A mailbox has no limit: senders never wait for room.
 *        CAF has no supervisor. The one of restart is written by hand: it watches the worker,
 *        spawns a new one, and sends the driver its handle. There is no intensity and no report.
 * Moves it: messages on the heap, a table of awaited replies, one lock-free list for each mailbox.
 */
#include "peer.h"

#include <atomic>
#include <caf/all.hpp>
#include <functional>
#include <future>
#include <memory>
#include <vector>

namespace
{

using caf::actor;
using caf::behavior;
using caf::event_based_actor;

constexpr int ring_actors = 1000;

caf::actor_system *actors;

int messages() { return runner.quick ? 200000 : 1000000; }

/* What the main thread waits for: the time at which a driver was done. */
using finish = std::shared_ptr<std::promise<uint64_t>>;

/* Calls `start` with a finish, and returns how long it took until somebody set it. Meanwhile it
 * keeps the handle of the actor that `start` returns. */
uint64_t timed(const std::function<actor(finish)> &start)
{
    finish   over = std::make_shared<std::promise<uint64_t>>();
    uint64_t begin = bench_now_ns();
    actor    kept = start(over);
    return over->get_future().get() - begin;
}

/* Messages. */

behavior adder(event_based_actor *self, int64_t left, int64_t want, const finish &over)
{
    auto sum = std::make_shared<int64_t>(0);
    auto rest = std::make_shared<int64_t>(left);
    return {[=](int64_t value) {
        *sum += value;
        if (--*rest > 0) return;
        runner_need(*sum == want, "a message is missing");
        over->set_value(bench_now_ns());
        self->quit();
    }};
}

double cast_from(int senders)
{
    int64_t  each = messages() / senders;
    uint64_t spent = timed([=](const finish &over) {
        actor to = actors->spawn(adder, each * senders, senders * (each * (each + 1) / 2), over);
        for (int i = 0; i < senders; i++) {
            actors->spawn([=](event_based_actor *self) {
                for (int64_t value = 1; value <= each; value++) self->send(to, value);
            });
        }
        return to;
    });
    return (double)spent / ((double)each * senders);
}

double cast_one() { return cast_from(1); }
double cast_four() { return cast_from(4); }

behavior answerer() /* also of crowds */
{
    return {[](int64_t value) { return value + 1; }};
}

int calls() { return runner.quick ? 50000 : 300000; }

void call(event_based_actor *self, const actor &to, caf::duration within, int64_t value,
          const finish &over)
{
    if (value == calls()) {
        over->set_value(bench_now_ns());
        return;
    }
    self->request(to, within, value)
        .then([=](int64_t answer) { call(self, to, within, answer, over); },
              [](caf::error &) { runner_need(false, "an answer is missing"); });
}

double calls_within(caf::duration within)
{
    uint64_t spent = timed([=](const finish &over) {
        actor to = actors->spawn(answerer);
        return actors->spawn([=](event_based_actor *self) { call(self, to, within, 0, over); });
    });
    return (double)spent / calls();
}

double call_any_time() { return calls_within(caf::infinite); }
double call_deadline() { return calls_within(caf::duration(std::chrono::seconds(5))); }

/* One number goes round until it is zero. */
struct link {
    actor  next;
    finish over;
};

behavior hop(event_based_actor *self, const std::shared_ptr<link> &link)
{
    return {[=](int64_t hops) {
        if (hops > 0) {
            self->send(link->next, hops - 1);
        } else {
            link->over->set_value(bench_now_ns());
        }
    }};
}

double ring()
{
    std::vector<std::shared_ptr<link>> links;
    std::vector<actor>                 members;
    for (int i = 0; i < ring_actors; i++) {
        links.push_back(std::make_shared<link>());
        members.push_back(actors->spawn(hop, links.back()));
    }
    for (int i = 0; i < ring_actors; i++) links[i]->next = members[(i + 1) % ring_actors];
    auto send = [&](int64_t hops) {
        return timed([&](const finish &over) {
            for (auto &link : links) link->over = over;
            caf::anon_send(members[0], hops);
            return members[0];
        });
    };
    send(ring_actors); /* each runs once */
    uint64_t spent = send(messages());
    for (auto &link : links) link->next = nullptr; /* breaks the circle of handles */
    return (double)spent / messages();
}

/* Lives. */

void start_stop_one(event_based_actor *self)
{
    actor made = self->spawn<caf::monitored>(answerer);
    self->send_exit(made, caf::exit_reason::user_shutdown);
}

double start_stop()
{
    int      count = runner.quick ? 5000 : 20000;
    uint64_t spent = timed([=](const finish &over) {
        return actors->spawn([=](event_based_actor *self) -> behavior {
            auto left = std::make_shared<int>(count);
            self->set_down_handler([=](caf::down_msg &) {
                if (--*left > 0) return start_stop_one(self);
                over->set_value(bench_now_ns());
                self->quit();
            });
            start_stop_one(self);
            return {[](int64_t) {}}; /* an actor without a behavior ends */
        });
    });
    return (double)spent / count;
}

uint64_t ended_ns; /* of one actor at a time; its messages order the accesses */

behavior mortal(event_based_actor *self)
{
    return {[=](int64_t) {
        ended_ns = bench_now_ns();
        self->quit();
    }};
}

double down()
{
    constexpr int count = 1000;
    auto          samples = std::make_shared<std::vector<double>>();
    timed([=](const finish &over) {
        return actors->spawn([=](event_based_actor *self) -> behavior {
            auto next = [=] { self->send(self->spawn<caf::monitored>(mortal), int64_t(1)); };
            self->set_down_handler([=](caf::down_msg &) {
                samples->push_back((double)(bench_now_ns() - ended_ns));
                if (samples->size() < count) return next();
                over->set_value(bench_now_ns());
                self->quit();
            });
            next();
            return {[](int64_t) {}};
        });
    });
    qsort(samples->data(), samples->size(), sizeof(double), bench_compare);
    return (*samples)[(samples->size() - 1) / 2];
}

void idle_actors()
{
    int64_t              count = runner.quick ? 100000 : 1000000;
    std::vector<actor>   all((size_t)count);
    std::atomic<int64_t> ready{0};
    double               base = runner_footprint();
    for (actor &one : all) {
        one = actors->spawn([&ready]() -> behavior {
            ready++;
            return answerer();
        });
    }
    while (ready < count) usleep(1000);
    runner_say("an idle actor", "B", (runner_footprint() - base) / (double)count);
    uint64_t spent = timed([&](const finish &over) {
        actor collector = actors->spawn(adder, count, 2 * count, over);
        actors->spawn([&all, collector](event_based_actor *) {
            for (actor &one : all) caf::send_as(collector, one, int64_t(1));
        });
        return collector;
    });
    runner_say("a message to each idle actor, all answer", "ns", (double)spent / (double)count);
    runner_say("an idle actor that has answered", "B", (runner_footprint() - base) / (double)count);
}

/* Restarts. */

struct crash_test {
    int                 left;
    std::vector<double> samples;
    uint64_t            begin;
    finish              over;
    actor               supervisor; /* an actor that nobody can name ends */
};

behavior worker(event_based_actor *self)
{
    return {[](int64_t value) { return value + 1; },
            [=](int32_t) { self->quit(caf::exit_reason::unhandled_exception); }};
}

behavior supervisor(event_based_actor *self, const actor &driver)
{
    auto kept = std::make_shared<actor>();
    auto start = [=] {
        *kept = self->spawn<caf::monitored>(worker);
        self->send(driver, *kept);
    };
    self->set_down_handler([=](caf::down_msg &) { start(); });
    start();
    return {[=](int32_t) { self->quit(); }};
}

void crash(event_based_actor *self, crash_test *test, const actor &made)
{
    test->begin = bench_now_ns();
    self->send(made, int32_t(0));
}

behavior crasher(event_based_actor *self, crash_test *test)
{
    test->supervisor = self->spawn(supervisor, actor(self));
    return {[=](const actor &made) { /* of the supervisor: a new one */
                                     if (test->begin == 0) return crash(self, test, made);
                                     self->request(made, caf::infinite, int64_t(1))
                                         .then([=](int64_t answer) {
                                             test->samples.push_back(
                                                 (double)(bench_now_ns() - test->begin));
                                             runner_need(answer == 2, "the answer is wrong");
                                             if (--test->left > 0) return crash(self, test, made);
                                             test->over->set_value(bench_now_ns());
                                         });
    }};
}

void restarts()
{
    crash_test test = {PEER_WARM + peer_rounds(), {}, 0, nullptr, {}};
    timed([&](const finish &over) {
        test.over = over;
        return actors->spawn(crasher, &test);
    });
    peer_tell("from the crash to an answer", test.samples.data() + PEER_WARM);
}

/* The program. */

template <void (*Work)()> void in_system()
{
    caf::actor_system_config config;
    config.set("scheduler.max-threads", (size_t)runner.workers);
    caf::actor_system system{config};
    actors = &system;
    Work();
    fflush(nullptr);
    _exit(0); /* actors that are still there need no farewell */
}

void run_cast()
{
    runner_turns("a message, 1 to 1", "ns", cast_one);
    runner_turns("a message, 4 to 1", "ns", cast_four);
}

void run_call()
{
    runner_turns("a call without a deadline", "ns", call_any_time);
    runner_turns("a call with a deadline of 5 s", "ns", call_deadline);
}

void run_ring() { runner_turns("a hop, 1000 actors", "ns", ring); }

void run_actors()
{
    idle_actors(); /* first, for the memory */
    runner_turns("start, stop and await an actor", "ns", start_stop);
    runner_turns("an actor's end until DOWN, p50", "ns", down);
}

} // namespace

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"cast", 0, in_system<run_cast>},    {"call", 0, in_system<run_call>},
        {"ring", 0, in_system<run_ring>},    {"actors", 0, in_system<run_actors>},
        {"restart", 0, in_system<restarts>}, {nullptr, 0, nullptr},
    };
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", CAF_MAJOR_VERSION, CAF_MINOR_VERSION,
             CAF_PATCH_VERSION);
    return runner_main(argc, argv, "CAF", version, works);
}
