/* SPDX-License-Identifier: MIT */
/*
 * The test harness: one program per file, tests in the order they stand, TAP on stdout.
 *
 *     TEST("a new pool has no fibers")
 *     {
 *         CHECK_EQ(stats.fibers_live, 0);
 *     }
 *
 * A failed check prints `not ok`, the place and the expression, and ends the process at once. It
 * may stand anywhere: in a fiber with a small stack, on any thread, in a child. It allocates
 * nothing, uses no stdio and needs little stack.
 *
 * `x_test` runs everything, `x_test word` only tests whose sentence contains the word.
 * Exit: 0 all passed, 1 a check failed, 2 nothing matched, 77 every test was skipped.
 *
 * A program of several files (HARNESS_TOGETHER, tests/CMakeLists.txt) runs one of them:
 * `together fiber/ctx_test [word]`.
 */
#ifndef JANUSRT_TESTS_HARNESS_H
#define JANUSRT_TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

struct harness_test {
    const char          *sentence;
    void                 (*body)(void);
    const char          *file;
    int                  line;
    struct harness_test *next;
};

/* A sentence that can be false, then the body in braces. */
#define TEST(sentence) HARNESS_TEST_EXPAND(sentence, __COUNTER__)

/* Checks that `expression` is true. */
#define CHECK(expression)                                                                          \
    do {                                                                                           \
        if (!(expression)) harness_fail(__FILE__, __LINE__, #expression);                          \
    } while (0)

/* Checks that two integers, enums or pointers are equal. Compares and prints them as long long. */
#define CHECK_EQ(left, right)                                                                      \
    do {                                                                                           \
        const long long harness_left = (long long)(left);                                          \
        const long long harness_right = (long long)(right);                                        \
        if (harness_left != harness_right)                                                         \
            harness_fail_eq(__FILE__, __LINE__, #left " == " #right, harness_left, harness_right); \
    } while (0)

/* Checks that two strings are equal. NULL equals only NULL. */
#define CHECK_STR(left, right)                                                                     \
    do {                                                                                           \
        const char *harness_left = (left);                                                         \
        const char *harness_right = (right);                                                       \
        if (!harness_same(harness_left, harness_right))                                            \
            harness_fail_str(__FILE__, __LINE__, #left " is " #right, harness_left,                \
                             harness_right);                                                       \
    } while (0)

/* Ends the test here and reports it as skipped. Only in the body itself: it returns. */
#define SKIP(reason)                                                                               \
    do {                                                                                           \
        harness_skip(reason);                                                                      \
        return;                                                                                    \
    } while (0)

/*
 * Runs `body(argument)` in a forked child and waits for its end. For code that must die.
 * *out_status is as from waitpid: 0 if the body returned. Returns what the child wrote to stdout
 * and stderr, at most HARNESS_TEXT_BYTES - 1 of it. The buffer lives until the next call. The child
 * leaves no core file and dies with its parent. Call it while the process has one thread.
 */
const char *harness_child(void (*body)(void *argument), void *argument, int *out_status);

enum { HARNESS_TEXT_BYTES = 4096 };

/* For the macros. */
void harness_register(struct harness_test *test);
void harness_skip(const char *reason);
bool harness_same(const char *left, const char *right);

__attribute__((noreturn, cold)) void harness_fail(const char *file, int line, const char *what);
__attribute__((noreturn, cold)) void harness_fail_eq(const char *file, int line, const char *what,
                                                     long long left, long long right);
__attribute__((noreturn, cold)) void harness_fail_str(const char *file, int line, const char *what,
                                                      const char *left, const char *right);

#define HARNESS_TEST_EXPAND(sentence, number) HARNESS_TEST_DEFINE(sentence, number)
#define HARNESS_TEST_DEFINE(sentence_, number)                                                     \
    static void                              harness_body_##number(void);                          \
    __attribute__((constructor)) static void harness_enter_##number(void)                          \
    {                                                                                              \
        static struct harness_test test = {.sentence = sentence_,                                  \
                                           .body = harness_body_##number,                          \
                                           .file = __FILE__,                                       \
                                           .line = __LINE__};                                      \
        harness_register(&test);                                                                   \
    }                                                                                              \
    static void harness_body_##number(void)

#endif
