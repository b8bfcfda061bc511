/* SPDX-License-Identifier: MIT */
#include "plat/memory.h"

#include "base/atomic.h"
#include "plat/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel headers of Debian 12 are older. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_GUARD_REMOVE
#define MADV_GUARD_REMOVE 103
#endif
#ifndef PIDFD_SELF_THREAD /* Linux 6.14 */
#define PIDFD_SELF_THREAD (-10000)
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

size_t jrt_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *jrt_map_reserve_for_ever(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    /* One touched page must cost one page. This fails only on systems without huge pages. */
    (void)madvise(base, bytes, MADV_NOHUGEPAGE);
    return base;
}

void *jrt_map_reserve(size_t bytes)
{
    return jrt_fails(JRT_FAULT_MAPPING) ? NULL : jrt_map_reserve_for_ever(bytes);
}

void *jrt_map_reserve_aligned(size_t bytes, bool huge)
{
    if (jrt_fails(JRT_FAULT_MAPPING)) return NULL;
    char *kept = jrt_spare_take(JRT_SPARE_ALIGNED, bytes);
    if (kept != NULL) return kept;
    char *base = mmap(NULL, bytes * 2, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)base & (bytes - 1);
    if (before > 0) jrt_map_release(base, before);
    base += before;
    jrt_map_release(base + bytes, bytes - before);
    (void)madvise(base, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* fails only on systems
                                                                         * without huge pages */
    return base;
}

void *jrt_map_reserve_fenced(size_t bytes)
{
    char *kept = jrt_spare_take(JRT_SPARE_FENCED, bytes);
    if (kept != NULL) return kept;
    char  *base = jrt_map_reserve(bytes);
    size_t page = jrt_page_bytes();
    if (base == NULL) return NULL;
    (void)jrt_map_protect(base, page);
    (void)jrt_map_protect(base + bytes - page, page);
    return base;
}

void jrt_map_release_aligned(void *base, size_t bytes)
{
    if (!jrt_spare_give(JRT_SPARE_ALIGNED, base, bytes)) jrt_map_release(base, bytes);
}

void jrt_map_release_fenced(void *base, size_t bytes)
{
    if (!jrt_spare_give(JRT_SPARE_FENCED, base, bytes)) jrt_map_release(base, bytes);
}

void *jrt_spare_take(enum jrt_spare_kind kind, size_t bytes)
{
    struct jrt_spare *spare = jrt_world_now() != NULL ? jrt_world_now()->spare : NULL;
    for (unsigned i = 0; spare != NULL && i < JRT_SPARES; i++) {
        if (spare->maps[i].kind != kind || spare->maps[i].bytes != bytes) continue;
        spare->maps[i].kind = JRT_SPARE_NONE;
        return spare->maps[i].base;
    }
    return NULL;
}

bool jrt_spare_give(enum jrt_spare_kind kind, void *base, size_t bytes)
{
    struct jrt_spare *spare = jrt_world_now() != NULL ? jrt_world_now()->spare : NULL;
    for (unsigned i = 0; spare != NULL && i < JRT_SPARES; i++) {
        if (spare->maps[i].kind != JRT_SPARE_NONE) continue;
        spare->maps[i].base = base;
        spare->maps[i].bytes = bytes;
        spare->maps[i].kind = kind;
        return true;
    }
    return false;
}

void jrt_map_release(void *base, size_t bytes)
{
    if (munmap(base, bytes) == 0) return;
    /* The kernel would have to split a mapping and refuses. Return the memory at least. */
    (void)madvise(base, bytes, MADV_DONTNEED);
}

/* Returns how many bytes were advised, or -1 and errno. By syscall, not by name: close() is a
 * cancellation point, and callers hold locks. */
static long advise_us(const struct iovec *ranges, size_t count, int advice)
{
    static _Atomic(bool) nameless; /* this kernel needs a descriptor even for the calling process */
    if (!jrt_load_relaxed(&nameless)) { /* relaxed: a hint that only saves the attempt. */
        long advised = syscall(SYS_process_madvise, PIDFD_SELF_THREAD, ranges, count, advice, 0);
        if (advised >= 0 || errno != EBADF) return advised;
        jrt_store_relaxed(&nameless, true); /* relaxed: a hint. */
    }
    /* Opened anew each time: after a fork, a kept descriptor would name the parent. */
    long self = syscall(SYS_pidfd_open, getpid(), 0);
    if (self < 0) return -1;
    long advised = syscall(SYS_process_madvise, self, ranges, count, advice, 0);
    int  error = errno;
    (void)syscall(SYS_close, self);
    errno = error;
    return advised;
}

/* One system call for all ranges. Returns false if the kernel does not know the call, or did not
 * advise all of them. */
static bool advise_all(const struct iovec *ranges, size_t count, int advice)
{
    static _Atomic(bool) unknown;
    size_t               bytes = 0;
    if (jrt_load_relaxed(&unknown)) return false; /* relaxed: a hint that only saves the attempt. */
    for (size_t i = 0; i < count; i++) bytes += ranges[i].iov_len;
    long advised = advise_us(ranges, count, advice);
    /* relaxed: a hint. */
    if (advised < 0 && errno == ENOSYS) jrt_store_relaxed(&unknown, true);
    return advised == (long)bytes;
}

/* Returns 0 or an errno. If the single call advised only some ranges, all are advised again. Every
 * advice used here may be given twice. */
static int advise(const struct iovec *ranges, size_t count, int advice)
{
    if (count > 1 && advise_all(ranges, count, advice)) return 0;
    for (size_t i = 0; i < count; i++) {
        while (madvise(ranges[i].iov_base, ranges[i].iov_len, advice) != 0) {
            if (errno != EINTR) return errno;
        }
    }
    return 0;
}

bool jrt_map_discard(const struct iovec *ranges, size_t count)
{
    return advise(ranges, count, MADV_DONTNEED) == 0;
}

int jrt_map_mark(const struct iovec *ranges, size_t count)
{
    int error = advise(ranges, count, MADV_GUARD_INSTALL);
    if (error != 0) (void)advise(ranges, count, MADV_GUARD_REMOVE);
    return error;
}

bool jrt_map_protect(void *base, size_t bytes) { return mprotect(base, bytes, PROT_NONE) == 0; }

bool jrt_map_accessible(void *page)
{
    /* The kernel writes one byte to the page, or fails with EFAULT. */
    return syscall(SYS_getrandom, page, 1, GRND_NONBLOCK) == 1 || errno != EFAULT;
}

bool jrt_map_resident(void *base, size_t bytes, unsigned char *out_pages)
{
    return mincore(base, bytes, out_pages) == 0;
}

size_t jrt_map_count_max(void)
{
    /* By syscall: the functions of the C library are cancellation points. */
    char text[24] = "";
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (syscall(SYS_read, file, text, sizeof text - 1) <= 0) text[0] = '\0';
        (void)syscall(SYS_close, file);
    }
    unsigned long count = strtoul(text, NULL, 10);
    return count > 0 ? (size_t)count : 65530;
}
