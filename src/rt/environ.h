/* SPDX-License-Identifier: MIT */
/* What the environment asks of schedulers: JANUSRT_SEED, JANUSRT_FAULTS. */
#ifndef JRT_RT_ENVIRON_H
#define JRT_RT_ENVIRON_H

#include <stdbool.h>
#include <stdint.h>

/* Faults that a simulated run injects. */
struct jrt_environ_faults {
    uint32_t faults; /* enum jrt_fault; 0: none */
    uint32_t every;  /* at one in this many opportunities */
};

/* Reads a seed for programs that name none. If the text is no seed, it prints why and returns
 * false. Without a text *out stays as it is. */
bool jrt_environ_seed(uint64_t *out);

/* Reads the faults of the network, as "reset,stall" or "network:20", in the same way. */
bool jrt_environ_faults(struct jrt_environ_faults *out);

/* Prints that the environment names faults, and no seed. */
void jrt_environ_complain(void);

#endif
