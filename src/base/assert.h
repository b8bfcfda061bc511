/* SPDX-License-Identifier: MIT */
/*
 * Four kinds of failure, a word for each, all on in release.
 *
 *   a status         what a correct program may meet; returned, never printed
 *   jrt_contract     the user's bug: the caller broke what a public header asks of it
 *   jrt_demand       one room broke what another room's header asks of it
 *   jrt_invariant    our bug: something an essay promises by its label is not so
 *
 * A broken contract ends the task that called, or the fiber, with a panic. It ends the process
 * where neither runs. The call must not have changed anything yet, and must hold no lock.
 * The other two words end the process: the library's own books are wrong.
 */
#ifndef JRT_BASE_ASSERT_H
#define JRT_BASE_ASSERT_H

#define jrt_likely(condition) __builtin_expect(!!(condition), 1)
#define jrt_unlikely(condition) __builtin_expect(!!(condition), 0)

/* Who is told instead, on this thread, and does not return; NULL: nobody. */
extern _Thread_local void (*jrt_die_hook)(const char *kind, const char *what, const char *file,
                                          int line)
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Prints one line to stderr without stdio or allocation, then aborts. */
__attribute__((noreturn, cold)) void jrt_die(const char *kind, const char *what, const char *file,
                                             int line);

/* Ends the task or the fiber that called, with this sentence; without one, the process. */
__attribute__((noreturn, cold)) void jrt_contract_broken(const char *what, const char *file,
                                                         int line);

/* Who can end a task or a fiber. It returns only where neither runs. The fiber room sets it. */
extern _Atomic(void (*)(const char *what)) jrt_contract_hook;

#define jrt_contract(condition, what)                                                              \
    (jrt_likely(condition) ? (void)0 : jrt_contract_broken(what, __FILE__, __LINE__))

#define jrt_demand(condition, what)                                                                \
    (jrt_likely(condition) ? (void)0 : jrt_die("demand broken", what, __FILE__, __LINE__))

#define jrt_invariant(label, condition)                                                            \
    (jrt_likely(condition)                                                                         \
         ? (void)0                                                                                 \
         : jrt_die("invariant [" label "] broken", #condition, __FILE__, __LINE__))

#endif
