/* SPDX-License-Identifier: MIT */
/* How many processors this process may keep busy. */
#ifndef JRT_PLAT_CPUS_H
#define JRT_PLAT_CPUS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The smaller of what the affinity mask of the calling thread allows and what the control groups
 * pay for, rounded up; at least 1. Reads a few files: ask once. Not on a fiber's stack. */
unsigned jrt_cpus_available(void);

/* No group limits the process. */
#define JRT_CPUS_UNLIMITED UINT_MAX

/* Reads a file: at most bytes - 1 of it, with a 0 behind. False when it is not there. */
typedef bool jrt_cpus_reader(void *world, const char *path, char *out_text, size_t bytes);

/*
 * What the control groups named in `proc_self_cgroup`, the text of /proc/self/cgroup, pay for:
 * processors, rounded up, at least 1, or JRT_CPUS_UNLIMITED. Apart from the files, so that a test
 * can invent them.
 */
unsigned jrt_cpus_from(const char *proc_self_cgroup, jrt_cpus_reader *read, void *world);

#endif
