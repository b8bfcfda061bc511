/* SPDX-License-Identifier: MIT */
/*
 * Reading memory that may not be there: a pointer that a task hands us, a name that its owner may
 * have freed.
 *
 * [peek-fault]  both functions are one load and a return, in assembly. The SIGSEGV handler of the
 *   fiber room knows the two loads by their addresses: a fault there goes on behind the load, and
 *   the function returns JRT_PEEK_NOTHING. So a good pointer costs a call and nothing else.
 *   Without that handler (JANUS_FAULT_MANUAL, and the program passes nothing on) it is a fault.
 */
#ifndef JRT_PLAT_PEEK_H
#define JRT_PLAT_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JRT_PEEK_NOTHING (-1)

/* The eight bytes there, which may also happen to be JRT_PEEK_NOTHING. */
int64_t jrt_peek_word(const void *at);

/* The byte there, 0 to 255. */
int64_t jrt_peek_byte(const void *at);

/* The instructions that may fault, and the one behind them; for the next function. */
extern const char jrt_peek_word_load[] __attribute__((visibility("hidden")));
extern const char jrt_peek_byte_load[] __attribute__((visibility("hidden")));
extern const char jrt_peek_done[] __attribute__((visibility("hidden")));

/* Whether the interrupted code (a ucontext_t) is such a load; then it goes on behind it. From
 * cpu_<cpu>.c; for signal handlers. */
bool jrt_peek_recover(void *interrupted);

#endif
