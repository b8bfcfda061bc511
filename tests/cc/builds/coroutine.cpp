// SPDX-License-Identifier: MIT
// A coroutine that suspends in a loop, and is destroyed before its end. Its caller pays between.
#include <coroutine>
#include <cstdio>

struct Numbers {
    struct promise_type {
        int                 value;
        Numbers             get_return_object() { return {Handle::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int number)
        {
            value = number;
            return {};
        }
        void unhandled_exception() {}
        void return_void() {}
    };
    using Handle = std::coroutine_handle<promise_type>;
    Handle handle;
};

static Numbers upTo(int end)
{
    for (int i = 0; i < end; i++) co_yield i;
}

static volatile long touched;

__attribute__((noinline)) static void work(int rounds)
{
    for (int i = 0; i < rounds; i++) touched = touched + 1;
}

int main()
{
    long    sum = 0;
    Numbers numbers = upTo(1000);
    for (int i = 0; i < 900; i++) {
        numbers.handle.resume();
        sum += numbers.handle.promise().value;
        work(50);
    }
    numbers.handle.destroy();
    std::printf("%ld\n", sum);
    return 0;
}
