// SPDX-License-Identifier: MIT
// Exceptions of tasks that are stopped while they handle one, and go on on another thread.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <janusrt/janus.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace
{

volatile int      zero;
std::atomic<long> moves, wrong, destroyed;

struct Counted {
    ~Counted() { destroyed++; }
};

void turn_over()
{
    uint64_t value = 1;
    for (int i = 0; i < 20000; i++) value = value * 3 + static_cast<uint64_t>(zero);
    if (value == 0) wrong++;
}

void throw_deep(int depth, int what)
{
    Counted counted;
    if (depth == 0) throw std::runtime_error(std::to_string(what));
    throw_deep(depth - 1, what);
}

int64_t handle(void *argument)
{
    auto mine = static_cast<int>(reinterpret_cast<intptr_t>(argument));
    for (int i = 0; i < 20; i++) {
        int thread = gettid();
        try {
            try {
                throw_deep(5, mine);
            } catch (const std::exception &) {
                turn_over(); // other tasks handle theirs meanwhile
                try {
                    throw_deep(3, mine + 1);
                } catch (const std::exception &inner) {
                    turn_over();
                    if (std::stoi(inner.what()) != mine + 1) wrong++;
                }
                throw; // the outer one
            }
        } catch (const std::exception &outer) {
            if (std::stoi(outer.what()) != mine) wrong++;
        }
        if (std::current_exception() != nullptr) wrong++;
        if (gettid() != thread) moves++;
    }
    return 0;
}

int64_t first(void *)
{
    janus_nursery n;
    JANUS_EXPECT(janus_nursery_open(&n, nullptr) == JANUS_OK);
    for (intptr_t i = 0; i < 9; i++)
        JANUS_EXPECT(janus_spawn(&n, handle, reinterpret_cast<void *>(i * 100)) == JANUS_OK);
    JANUS_EXPECT(janus_nursery_end(&n, nullptr) == JANUS_OK);
    return 0;
}

} // namespace

int main()
{
    janus_scheduler_options options{};
    options.struct_bytes = sizeof options;
    options.worker_count = 2;
    uint64_t limit = janus_now_ns() + 300 * JANUS_SECONDS;
    long     runs = 0;
    while (moves < 100 && wrong == 0 && janus_now_ns() < limit) {
        if (janus_run(&options, first, nullptr, nullptr) != JANUS_OK) return 2;
        runs++;
    }
    std::printf("moves %ld wrong %ld destroyed %ld of %ld\n", moves.load(), wrong.load(),
                destroyed.load(), runs * 9 * 20 * 10);
    return moves < 100 || wrong != 0 || destroyed != runs * 9 * 20 * 10;
}
