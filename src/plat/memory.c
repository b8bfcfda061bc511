/* SPDX-License-Identifier: MIT */
#include "plat/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the kernel headers of Debian 12. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

size_t jrt_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *jrt_map_reserve(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    /* One touched page must cost one page. Fails only where there are no huge pages. */
    (void)madvise(base, bytes, MADV_NOHUGEPAGE);
    return base;
}

void jrt_map_release(void *base, size_t bytes) { (void)munmap(base, bytes); }

/*
 * One system call for all ranges where the kernel allows it on oneself, else one for each. The
 * pidfd is opened anew each time, not kept: a kept one would name the parent after a fork.
 */
static bool advise(const struct iovec *ranges, size_t count, int advice)
{
    size_t done = 0;
    if (count > 1) {
        int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
        if (self >= 0) {
            size_t bytes = 0;
            for (size_t i = 0; i < count; i++) bytes += ranges[i].iov_len;
            long advised = syscall(SYS_process_madvise, self, ranges, count, advice, 0);
            (void)close(self);
            if (advised == (long)bytes) done = count;
        }
    }
    /* Every advice used here may be given twice, so what was half done is done again. */
    for (; done < count; done++) {
        int result;
        do result = madvise(ranges[done].iov_base, ranges[done].iov_len, advice);
        while (result != 0 && errno == EINTR);
        if (result != 0) return false;
    }
    return true;
}

void jrt_map_discard(const struct iovec *ranges, size_t count)
{
    (void)advise(ranges, count, MADV_DONTNEED);
}

bool jrt_map_mark(const struct iovec *ranges, size_t count)
{
    return advise(ranges, count, MADV_GUARD_INSTALL);
}

bool jrt_map_protect(void *base, size_t bytes) { return mprotect(base, bytes, PROT_NONE) == 0; }

bool jrt_map_accessible(void *page)
{
    /* The kernel writes one byte there, or says EFAULT. */
    return getrandom(page, 1, GRND_NONBLOCK) == 1 || errno != EFAULT;
}

bool jrt_map_resident(void *base, size_t bytes, unsigned char *out_pages)
{
    return mincore(base, bytes, out_pages) == 0;
}

size_t jrt_map_count_max(void)
{
    char    text[24];
    int     file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    ssize_t length = -1;
    if (file >= 0) {
        length = read(file, text, sizeof text - 1);
        (void)close(file);
    }
    if (length <= 0) return 65530;
    text[length] = '\0';
    unsigned long count = strtoul(text, NULL, 10);
    return count > 0 ? (size_t)count : 65530;
}
