/* SPDX-License-Identifier: MIT */
/*
 * Address space: reserve, guard, drop, release. Every other room asks for it here, so that a
 * simulated world can refuse it.
 */
#ifndef JRT_PLAT_MEMORY_H
#define JRT_PLAT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/* Bytes in a page, a power of two. */
size_t jrt_page_bytes(void);

/* Reserves zeroed memory that can be read and written. The kernel commits it page by page when it
 * is touched, never in huge pages. Returns NULL if the system refuses. */
void *jrt_map_reserve(size_t bytes);

/* Reserves a table of the process. No fault is injected: a later execution of a simulated system
 * finds the table made, and must not meet fewer faults for that. */
void *jrt_map_reserve_for_ever(size_t bytes);

/* Reserves as jrt_map_reserve, aligned to its size, a power of two. With `huge`, uses huge pages if
 * there are any. */
void *jrt_map_reserve_aligned(size_t bytes, bool huge);

/* Reserves as jrt_map_reserve. The first and the last page are inaccessible, if the system can do
 * that. */
void *jrt_map_reserve_fenced(size_t bytes);

/* Releases a reservation, or a whole-page part of one. */
void jrt_map_release(void *base, size_t bytes);

/* Release a whole reservation of the kind they name. It must read as zeros again, because it may be
 * kept for reuse. */
void jrt_map_release_aligned(void *base, size_t bytes);
void jrt_map_release_fenced(void *base, size_t bytes);

/* Drops the pages of every range. They read as zero afterwards, and guards in them stay. Returns
 * false if the system refuses, as it does for locked memory. Some pages may then have been
 * dropped. */
bool jrt_map_discard(const struct iovec *ranges, size_t count);

/* Installs guard markers on every range: any access faults, and no mapping is split. Returns 0,
 * ENOMEM, or another errno if this memory cannot have markers. On an error no range is guarded.
 * `count` is at most JRT_RANGES_MAX. */
int jrt_map_mark(const struct iovec *ranges, size_t count);

/* Makes a range inaccessible by splitting its mapping. Returns false if the system refuses. */
bool jrt_map_protect(void *base, size_t bytes);

/* Whether a page can be read and written. It asks the kernel and never faults. */
bool jrt_map_accessible(void *page);

/* Writes one byte for each page of the range; the lowest bit says that the page is resident.
 * Returns false on an error. */
bool jrt_map_resident(void *base, size_t bytes, unsigned char *out_pages);

/* How many mappings a process may have; 65530 if the system does not report it. */
size_t jrt_map_count_max(void);

enum { JRT_RANGES_MAX = 128 }; /* below UIO_MAXIOV; a slab has fewer stacks */

#endif
