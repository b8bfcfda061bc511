/* SPDX-License-Identifier: MIT */
/*
 * How the macros of structs work (JANUS_NURSERY_OPTIONS, JANUS_TASK_INFO, JANUS_BUDGET and their
 * kin). Nothing in this header is for direct use.
 *
 * Each struct of options, each info and the result of a run or an exploration begin with
 * `struct_bytes`, so that they can grow. The macro with the struct's name in capitals sets it.
 * Every call checks the number in the same way. It must be at least the size of the field itself,
 * at most what the library knows, and a multiple of 8. Otherwise the call returns INVALID, and
 * nothing happened. A program that was built with an older header has a shorter struct. Options
 * that it does not know have their defaults, and it gets the beginning of an info.
 *
 * A caller names the fields it wants, in C11 and in C++17 alike:
 *
 *     janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_tasks = 500),
 *                                 &scheduler);
 *     janus_task_info info = JANUS_TASK_INFO();
 *
 * In C the options live until the enclosing block ends. In C++ they live until the full expression
 * ends, so pass them to the call directly and do not keep the pointer. In C++ the macros need a
 * function around them and take up to 32 fields. A value in braces must not contain a comma there.
 */
#ifndef JANUSRT_OPTIONS_H
#define JANUSRT_OPTIONS_H

#include <janusrt/export.h>

/* The number of arguments, from 1 to 33. */
#define JANUS_COUNT_(...)                                                                          \
    JANUS_COUNT_AT_(__VA_ARGS__, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,   \
                    17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define JANUS_COUNT_AT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, \
                        z, a2, b2, c2, d2, e2, f2, g2, count, ...)                                 \
    count

/* ONE for one argument, MANY for up to 33. */
#define JANUS_ONE_OR_MANY_(...)                                                                    \
    JANUS_COUNT_AT_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
                    MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
                    MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, ONE, 0)

#define JANUS_PASTE_(a, b) JANUS_PASTE_AGAIN_(a, b)
#define JANUS_PASTE_AGAIN_(a, b) a##b

#ifndef __cplusplus

#define JANUS_OPTIONS_(type, ...) (&(type){.struct_bytes = sizeof(type), __VA_ARGS__})
#define JANUS_SIZED_(type) ((type){.struct_bytes = sizeof(type)})
#define JANUS_INITIAL_(type, ...) {.struct_bytes = sizeof(type), __VA_ARGS__}

#else

/* Holds options for the length of a full expression. */
template <class T> struct janus_options_ {
    T value;
    template <class F> explicit janus_options_(F fill) : value()
    {
        value.struct_bytes = sizeof(T);
        fill(value);
    }
    operator const T *() const { return &value; }
};

/* A struct that the library is to fill. */
template <class T> inline T janus_sized_()
{
    T value = T();
    value.struct_bytes = sizeof(T);
    return value;
}
#define JANUS_SIZED_(type) (janus_sized_<type>())

/* `x` is ".field = value"; the object's name before it makes that an assignment. */
#define JANUS_SET_(o, x) static_cast<void>(o x);
#define JANUS_SET_1_(o, x) JANUS_SET_(o, x)
#define JANUS_SET_2_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_1_(o, __VA_ARGS__)
#define JANUS_SET_3_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_2_(o, __VA_ARGS__)
#define JANUS_SET_4_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_3_(o, __VA_ARGS__)
#define JANUS_SET_5_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_4_(o, __VA_ARGS__)
#define JANUS_SET_6_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_5_(o, __VA_ARGS__)
#define JANUS_SET_7_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_6_(o, __VA_ARGS__)
#define JANUS_SET_8_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_7_(o, __VA_ARGS__)
#define JANUS_SET_9_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_8_(o, __VA_ARGS__)
#define JANUS_SET_10_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_9_(o, __VA_ARGS__)
#define JANUS_SET_11_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_10_(o, __VA_ARGS__)
#define JANUS_SET_12_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_11_(o, __VA_ARGS__)
#define JANUS_SET_13_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_12_(o, __VA_ARGS__)
#define JANUS_SET_14_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_13_(o, __VA_ARGS__)
#define JANUS_SET_15_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_14_(o, __VA_ARGS__)
#define JANUS_SET_16_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_15_(o, __VA_ARGS__)
#define JANUS_SET_17_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_16_(o, __VA_ARGS__)
#define JANUS_SET_18_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_17_(o, __VA_ARGS__)
#define JANUS_SET_19_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_18_(o, __VA_ARGS__)
#define JANUS_SET_20_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_19_(o, __VA_ARGS__)
#define JANUS_SET_21_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_20_(o, __VA_ARGS__)
#define JANUS_SET_22_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_21_(o, __VA_ARGS__)
#define JANUS_SET_23_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_22_(o, __VA_ARGS__)
#define JANUS_SET_24_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_23_(o, __VA_ARGS__)
#define JANUS_SET_25_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_24_(o, __VA_ARGS__)
#define JANUS_SET_26_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_25_(o, __VA_ARGS__)
#define JANUS_SET_27_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_26_(o, __VA_ARGS__)
#define JANUS_SET_28_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_27_(o, __VA_ARGS__)
#define JANUS_SET_29_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_28_(o, __VA_ARGS__)
#define JANUS_SET_30_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_29_(o, __VA_ARGS__)
#define JANUS_SET_31_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_30_(o, __VA_ARGS__)
#define JANUS_SET_32_(o, x, ...) JANUS_SET_(o, x) JANUS_SET_31_(o, __VA_ARGS__)
#define JANUS_SET_ALL_(o, ...)                                                                     \
    JANUS_PASTE_(JANUS_PASTE_(JANUS_SET_, JANUS_COUNT_(__VA_ARGS__)), _)(o, __VA_ARGS__)

/* The initial value of a variable, also of one outside of functions. */
template <class T, class F> inline T janus_initial_(F fill)
{
    T value = T();
    value.struct_bytes = sizeof(T);
    fill(value);
    return value;
}
#define JANUS_INITIAL_(type, ...)                                                                  \
    janus_initial_<type>([](type &type##_set_) { JANUS_SET_ALL_(type##_set_, __VA_ARGS__) })

#define JANUS_OPTIONS_(type, ...)                                                                  \
    static_cast<const type *>(                                                                     \
        janus_options_<type>([&](type &type##_set_) { JANUS_SET_ALL_(type##_set_, __VA_ARGS__) }))

#endif

#endif
