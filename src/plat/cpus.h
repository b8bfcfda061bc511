/* SPDX-License-Identifier: MIT */
/* How many processors this process may keep busy. */
#ifndef JRT_PLAT_CPUS_H
#define JRT_PLAT_CPUS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the smaller of two numbers: the affinity mask of the calling thread, and the limit of the
 * control groups, rounded up. At least 1. It reads a few files, so ask once, and not on a fiber's
 * stack. */
unsigned jrt_cpus_available(void);

/* No group limits the process. */
#define JRT_CPUS_UNLIMITED UINT_MAX

/* Reads at most bytes - 1 of a file and appends a 0. Returns false if the file does not exist. */
typedef bool jrt_cpus_reader(void *world, const char *path, char *out_text, size_t bytes);

/*
 * Returns the limit of the control groups that the text of /proc/self/cgroup names: processors,
 * rounded up, at least 1, or JRT_CPUS_UNLIMITED. Tests pass files of their own.
 */
unsigned jrt_cpus_from(const char *proc_self_cgroup, jrt_cpus_reader *read, void *world);

#endif
