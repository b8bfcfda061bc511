/* SPDX-License-Identifier: MIT */
/*
 * The library knows four kinds of failure and has a word for each. All but
 * jrt_debug_invariant are on in release builds.
 *
 *   a status         what a correct program may meet; returned, never printed
 *   jrt_contract     the user's bug: the caller broke a rule of a public header
 *   jrt_demand       one room broke a rule of another room's header
 *   jrt_invariant    our bug: a promise that an essay makes under a label does not hold
 *   jrt_debug_invariant   the same bug, looked for in debug and sanitizer builds only
 *
 * A broken contract ends the calling task or fiber with a panic. If neither runs, it ends the
 * process. A call checks its contract before it changes anything, and while it holds no lock. The
 * other two words end the process: the library's own books are wrong.
 */
#ifndef JRT_BASE_ASSERT_H
#define JRT_BASE_ASSERT_H

#define jrt_likely(condition) __builtin_expect(!!(condition), 1)
#define jrt_unlikely(condition) __builtin_expect(!!(condition), 0)

/* Aligns a function, so that its speed does not depend on the place that the linker gives it. */
#define JRT_HOT __attribute__((aligned(64)))

/* This thread's handler for a failure; it does not return. NULL: jrt_die prints and aborts. */
extern _Thread_local void (*jrt_die_hook)(const char *kind, const char *what, const char *file,
                                          int line)
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Prints one line to stderr without stdio or allocation, then aborts. */
__attribute__((noreturn, cold)) void jrt_die(const char *kind, const char *what, const char *file,
                                             int line);

/* Ends the calling task or fiber with this sentence. If neither runs, ends the process. */
__attribute__((noreturn, cold)) void jrt_contract_broken(const char *what, const char *file,
                                                         int line);

/* Ends the running task or fiber. It returns only if neither runs. The fiber room sets it. */
extern _Atomic(void (*)(const char *what)) jrt_contract_hook;

#define jrt_contract(condition, what)                                                              \
    (jrt_likely(condition) ? (void)0 : jrt_contract_broken(what, __FILE__, __LINE__))

#define jrt_demand(condition, what)                                                                \
    (jrt_likely(condition) ? (void)0 : jrt_die("demand broken", what, __FILE__, __LINE__))

#define jrt_invariant(label, condition)                                                            \
    (jrt_likely(condition)                                                                         \
         ? (void)0                                                                                 \
         : jrt_die("invariant [" label "] broken", #condition, __FILE__, __LINE__))

/* Release builds compile the condition and never evaluate it. So it must have no side effect. */
#define jrt_debug_invariant(label, condition)                                                      \
    (JRT_DEBUG ? jrt_invariant(label, condition) : (void)0)

#endif
