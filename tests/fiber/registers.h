/* SPDX-License-Identifier: MIT */
/* Fills every register that a callee must preserve, switches, and checks them. */
#ifndef JANUSRT_TESTS_REGISTERS_H
#define JANUSRT_TESTS_REGISTERS_H

#include <stdint.h>

/* Writes a pattern that begins with `seed` to each callee-saved register, integer and floating
 * point. Calls jrt_ctx_switch(save_sp, load_sp, message), and returns how many registers then hold
 * something else. Restores the caller's registers. */
uint64_t registers_lost(void **save_sp, void **load_sp, uint64_t seed);

#endif
