/* SPDX-License-Identifier: MIT */
/* Fills every register the ABI lets a callee keep, switches, looks at them again. */
#ifndef JANUSRT_TESTS_REGISTERS_H
#define JANUSRT_TESTS_REGISTERS_H

#include <stdint.h>

/* Writes a pattern that begins with `seed` to each callee-saved register, integer and floating
 * point, calls jrt_ctx_switch(save_sp, load_sp, message), and returns the number of registers that
 * then hold something else. The caller's own are put back. */
uint64_t registers_lost(void **save_sp, void **load_sp, uint64_t seed);

#endif
