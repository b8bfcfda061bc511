/* SPDX-License-Identifier: MIT */
/*
 * Address space, as the outside world offers it: reserve, guard, drop, release. Everything else
 * in the library asks here and nowhere else, so that a simulated world can refuse.
 */
#ifndef JRT_PLAT_MEMORY_H
#define JRT_PLAT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/* Bytes in a page, a power of two. */
size_t jrt_page_bytes(void);

/* Reserves zeroed, readable and writable memory that is committed page by page as it is touched;
 * never huge pages. NULL when the system refuses. */
void *jrt_map_reserve(size_t bytes);

/* The same for a table of the process. No fault is injected here: a later execution of a simulated
 * system finds the table made, and must not meet fewer faults for it. */
void *jrt_map_reserve_for_ever(size_t bytes);

/* As jrt_map_reserve, aligned to its size, a power of two; `huge`: in huge pages, if there are
 * any. */
void *jrt_map_reserve_aligned(size_t bytes, bool huge);

/* The same, unaligned, and its first and last page cannot be touched, if the system can do that. */
void *jrt_map_reserve_fenced(size_t bytes);

/* Gives a reservation, or a whole-page part of one, back. */
void jrt_map_release(void *base, size_t bytes);

/* The same for a whole one of the last two kinds that reads as zeros again: it may be kept. */
void jrt_map_release_aligned(void *base, size_t bytes);
void jrt_map_release_fenced(void *base, size_t bytes);

/* Drops the pages of every range; they read as zero afterwards, guards in them stay. False when
 * the system refuses, as it does for locked memory; some pages may have been dropped. */
bool jrt_map_discard(const struct iovec *ranges, size_t count);

/* Installs guard markers on every range: any access faults, no mapping is split. Returns 0, ENOMEM
 * or, when this memory cannot have them, another errno; then no range is guarded. `count` is at
 * most JRT_RANGES_MAX. */
int jrt_map_mark(const struct iovec *ranges, size_t count);

/* Makes a range inaccessible by splitting its mapping. False when the system refuses. */
bool jrt_map_protect(void *base, size_t bytes);

/* Whether a page can be read or written; found by asking the kernel, never by faulting. */
bool jrt_map_accessible(void *page);

/* For each page of the range one byte whose lowest bit says it is resident. False on error. */
bool jrt_map_resident(void *base, size_t bytes, unsigned char *out_pages);

/* How many mappings a process may have; 65530 where the system does not say. */
size_t jrt_map_count_max(void);

enum { JRT_RANGES_MAX = 128 }; /* below UIO_MAXIOV; a slab has fewer stacks */

#endif
