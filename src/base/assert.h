/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of failure, three words, all on in release.
 *
 *   a status         what a correct program may meet; returned, never printed
 *   jrt_contract     the caller's bug: it broke what the header asks of it
 *   jrt_invariant    our bug: something an essay promises by its label is not so
 *
 * Both words end the process. Going on would mean running on a stack, or freeing a record, that
 * somebody else believes to own.
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

#define jrt_contract(condition, what)                                                              \
    (jrt_likely(condition) ? (void)0 : jrt_die("contract broken", what, __FILE__, __LINE__))

#define jrt_invariant(label, condition)                                                            \
    (jrt_likely(condition)                                                                         \
         ? (void)0                                                                                 \
         : jrt_die("invariant [" label "] broken", #condition, __FILE__, __LINE__))

#endif
