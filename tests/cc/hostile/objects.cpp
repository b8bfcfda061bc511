// SPDX-License-Identifier: MIT
// C++: exceptions, destructors, virtual calls and containers.
#include "hostile.h"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

struct Counted {
    uint64_t &sum;
    ~Counted() { sum = sum * 3 + 1; }
};

__attribute__((noinline)) uint64_t may_throw(uint64_t i)
{
    if (i % 4 == 0) throw std::runtime_error("four");
    if (i % 4 == 1) throw i;
    return i;
}

uint64_t exceptions(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        try {
            Counted counted{sum};
            for (int j = 0; j < 100; j++) sum += may_throw(4 * i + 2) ^ static_cast<uint64_t>(j);
            sum += may_throw(i);
        } catch (const std::exception &error) {
            sum += static_cast<uint8_t>(error.what()[0]);
        } catch (uint64_t value) {
            sum ^= value;
        }
    }
    return sum;
}

uint64_t endless_handler(uint64_t n)
{
    try {
        may_throw(n & 0);
    } catch (const std::exception &) {
        for (;;) TICK();
    }
    return 0;
}

struct Endless {
    uint64_t *ticks;
    ~Endless()
    {
        while (hostile_one) TICK();
    }
};

uint64_t endless_destructor(uint64_t n)
{
    Endless endless{&n};
    return n;
}

struct Shape {
    virtual ~Shape() = default;
    virtual uint64_t area() const = 0;
};
struct Square : Shape {
    explicit Square(uint64_t side) : side(side) {}
    uint64_t area() const override { return side * side; }
    uint64_t side;
};
struct Strip : Shape {
    explicit Strip(uint64_t side) : side(side) {}
    uint64_t area() const override { return side; }
    uint64_t side;
};

uint64_t virtual_calls(uint64_t n)
{
    Square       square(3);
    Strip        strip(5);
    const Shape *shapes[] = {&square, &strip};
    uint64_t     sum = 0;
    for (uint64_t i = 0; i < n; i++) sum = sum * 3 + shapes[sum & 1]->area();
    return sum;
}

uint64_t containers(uint64_t n)
{
    std::map<uint64_t, std::string> map;
    uint64_t                        sum = 0;
    for (uint64_t i = 0; i < n; i++) map[i * 7919 % 1009] += static_cast<char>('a' + i % 26);
    for (const auto &[key, text] : map) sum = sum * 3 + key + text.size();
    return sum;
}

uint64_t sorting(uint64_t n)
{
    std::vector<uint32_t> list(n);
    uint64_t              sum = 0;
    for (uint64_t i = 0; i < n; i++) list[i] = static_cast<uint32_t>(i) * 2654435761u;
    std::sort(list.begin(), list.end());
    for (uint32_t number : list) sum = sum * 3 + number;
    return sum;
}

uint64_t closures(uint64_t n)
{
    uint64_t                          sum = 0;
    std::function<uint64_t(uint64_t)> add = [&sum](uint64_t i) { return sum += i; };
    for (uint64_t i = 0; i < n; i++) sum ^= add(i);
    return sum;
}

} // namespace

const struct hostile hostile_cxx[] = {
    {"exceptions", exceptions, 6000, 0},
    {"endless_handler", endless_handler, HOSTILE_ENDLESS, 1},
    {"endless_destructor", endless_destructor, HOSTILE_ENDLESS, 1},
    {"virtual_calls", virtual_calls, 700000, 0},
    {"containers", containers, 30000, 0},
    {"sorting", sorting, 10000, 0},
    {"closures", closures, 100000, 0},
    {},
};
