/* SPDX-License-Identifier: MIT */
/*
 * The C++ exceptions that a thread is handling belong to the thread: the Itanium C++ ABI keeps a
 * list and a count there. A fiber that suspends inside a catch block takes its own along, and its
 * resumer finds its own again. This works only with a C++ runtime. In C programs the symbol is
 * absent and nothing happens.
 */
#ifndef JRT_FIBER_EXCEPTION_H
#define JRT_FIBER_EXCEPTION_H

/* __cxa_eh_globals of the Itanium C++ ABI, 2.2.2. */
struct jrt_exceptions {
    void    *caught;
    unsigned uncaught;
};

__attribute__((weak)) struct jrt_exceptions *__cxa_get_globals(void);

static inline int jrt_exceptions_exist(void) { return __cxa_get_globals != 0; }

/* Takes the exceptions that the thread is handling. */
static inline struct jrt_exceptions jrt_exceptions_take(void)
{
    struct jrt_exceptions *of_thread = __cxa_get_globals();
    struct jrt_exceptions  taken = *of_thread;
    *of_thread = (struct jrt_exceptions){0, 0};
    return taken;
}

__attribute__((weak)) void __cxa_end_catch(void);

/* Frees the exceptions of handlers that will never be left. */
static inline void jrt_exceptions_drop(void)
{
    if (__cxa_end_catch == 0) return;
    while (__cxa_get_globals()->caught != 0) __cxa_end_catch();
}

/* Gives the exceptions to the current thread. */
static inline void jrt_exceptions_put(struct jrt_exceptions taken) { *__cxa_get_globals() = taken; }

#endif
