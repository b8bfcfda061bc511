/* SPDX-License-Identifier: MIT */
/*
 * Reads memory that may be unmapped: a pointer that a task passes, or a name that its owner may
 * have freed.
 *
 * [peek-fault]  both functions are one load and a return, in assembly. The SIGSEGV handler of the
 *   fiber room knows the addresses of the two loads. After a fault there, the handler continues
 *   behind the load, and the function returns JRT_PEEK_NOTHING. So a good pointer costs only a
 *   call. Without that handler (JANUS_SIGNAL_MODE_MANUAL, and the program forwards nothing) a bad
 *   pointer is an ordinary fault.
 */
#ifndef JRT_PLAT_PEEK_H
#define JRT_PLAT_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JRT_PEEK_NOTHING (-1)

/* Returns the eight bytes at `at`. They may happen to equal JRT_PEEK_NOTHING. */
int64_t jrt_peek_word(const void *at);

/* Returns the byte at `at`, 0 to 255. */
int64_t jrt_peek_byte(const void *at);

/* The instructions that may fault, and the instruction after them, for jrt_peek_recover. */
extern const char jrt_peek_word_load[] __attribute__((visibility("hidden")));
extern const char jrt_peek_byte_load[] __attribute__((visibility("hidden")));
extern const char jrt_peek_done[] __attribute__((visibility("hidden")));

/* For signal handlers; in cpu_<cpu>.c. If the interrupted code (a ucontext_t) is such a load,
 * continues behind it and returns true. */
bool jrt_peek_recover(void *interrupted);

#endif
