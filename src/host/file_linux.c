/* SPDX-License-Identifier: MIT */
/*
 * Files of Linux.
 *
 * [file-beneath]  A path below a directory must stay below it, also if it meets links, and if
 *   somebody renames directories meanwhile. openat2 with RESOLVE_BENEATH promises that. Kernels
 *   before 5.6, and some sandboxes, do not have it (ENOSYS). There, this file walks the path part
 *   by part and follows no link at all. So a link inside is refused there, and a link outside is
 *   refused everywhere. No open is ever weaker.
 *   unlink, mkdir and rename have no such flag. They open the directory above the last part in the
 *   same way, and then use the last part alone, which is no path.
 *
 * Some paths of /proc are no files but the process itself: its memory, and what its descriptors
 * name. A capability for files is not meant for these. So a task that a capability or a pool bounds
 * opens neither. Kernels without openat2 refuse the memory alone.
 */
#include "host/file.h"

#include "plat/seam.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif

_Static_assert(JRT_FILE_ANYWHERE == AT_FDCWD, "the system's number");

enum {
    AGAINS = 64, /* openat2 reports a race with a rename: tried again so often */
    DIRECTORY = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

_Atomic(bool) jrt_file_walks;

/* Opening. */

static int is_link(int dir, const char *part)
{
    struct stat status;
    return fstatat(dir, part, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

/* Opens one part of a path, and no link. */
static int open_part(int dir, const char *part, int flags, uint32_t permissions)
{
    if (strcmp(part, "..") == 0) return -EXDEV;
    int fd = openat(dir, part, flags | O_NOFOLLOW | O_CLOEXEC, permissions);
    if (fd < 0) return errno == ENOTDIR && is_link(dir, part) ? -ELOOP : -errno;
    if ((flags & O_PATH) != 0 && is_link(dir, part)) {
        (void)close(fd);
        return -ELOOP;
    }
    return fd;
}

/* Walks a path that the caller owns and this function changes, [file-beneath]. */
static int walk(int dir, char *path, int flags, uint32_t permissions)
{
    int   at = dir;
    char *part = path;
    jrt_debug_invariant("file-beneath", dir >= 0);
    if (path[0] == '/') return -EXDEV;
    for (;;) {
        size_t length = strcspn(part, "/");
        char  *next = part + length;
        while (*next == '/') *next++ = '\0';
        bool last = *next == '\0', trails = last && next > part + length;
        int  fd = last ? open_part(at, part, flags | (trails ? O_DIRECTORY : 0), permissions)
                       : open_part(at, part, DIRECTORY, 0);
        if (at != dir) (void)close(at);
        if (last || fd < 0) return fd;
        at = fd;
        part = next;
    }
}

static int open_by_kernel(int dir, const char *path, int flags, uint32_t permissions,
                          uint64_t resolve)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                           .mode = (flags & O_CREAT) != 0 ? permissions : 0,
                           .resolve = resolve};
    for (int i = 0; i < AGAINS; i++) {
        int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0) return fd;
        if (errno != EAGAIN && errno != EINTR) return -errno;
    }
    return -EXDEV; /* others rename without end: refused */
}

int jrt_file_open(int dir, const char *path, int flags, uint32_t permissions)
{
    if (dir == JRT_FILE_ANYWHERE) {
        int fd;
        do fd = openat(dir, path, flags | O_CLOEXEC, permissions);
        while (fd < 0 && errno == EINTR);
        return fd >= 0 ? fd : -errno;
    }
    if (!jrt_load_relaxed(&jrt_file_walks)) { /* relaxed: learned again at worst. */
        int fd =
            open_by_kernel(dir, path, flags, permissions, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
        if (fd != -ENOSYS) return fd;
        jrt_store_relaxed(&jrt_file_walks, true); /* relaxed: as above. */
    }
    char *copy = jrt_strndup(path, PATH_MAX);
    if (copy == NULL) return -ENOMEM;
    int fd = walk(dir, copy, flags, permissions);
    free(copy);
    return fd;
}

/* Whether it is the memory of a process. */
static bool is_memory(int fd)
{
    char          link[32], path[PATH_MAX];
    struct statfs where;
    if (fstatfs(fd, &where) != 0 || where.f_type != PROC_SUPER_MAGIC) return false;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return true; /* it cannot be known */
    path[length] = '\0';
    const char *slash = strrchr(path, '/');
    return slash != NULL && strcmp(slash, "/mem") == 0;
}

int jrt_file_open_strictly(int dir, const char *path, int flags, uint32_t permissions)
{
    int fd = -ENOSYS;
    if (dir == JRT_FILE_ANYWHERE) {
        fd = open_by_kernel(dir, path, flags, permissions, RESOLVE_NO_MAGICLINKS);
    }
    if (fd == -ENOSYS) fd = jrt_file_open(dir, path, flags, permissions);
    if (fd < 0 || !is_memory(fd)) return fd;
    (void)close(fd);
    return -EACCES;
}

/* Changing directories. */

/* The directory above the last part of a path, and that part. */
struct above {
    int   fd;
    char *path; /* owned */
    char *last; /* owned */
};

static int open_above(int dir, const char *path, struct above *out)
{
    *out = (struct above){.fd = -EINVAL, .path = jrt_strndup(path, PATH_MAX)};
    if (out->path == NULL) return -ENOMEM;
    size_t length = strlen(out->path);
    while (length > 1 && out->path[length - 1] == '/') out->path[--length] = '\0';
    char       *slash = strrchr(out->path, '/');
    const char *last = slash != NULL ? slash + 1 : out->path;
    if (strcmp(last, "..") == 0) {
        out->fd = -EXDEV;
    } else if (last[0] != '\0' && strcmp(last, ".") != 0) {
        const char *above = slash == NULL ? "." : slash == out->path ? "/" : out->path;
        out->last = jrt_strndup(last, PATH_MAX); /* the next line cuts it off */
        if (slash != NULL && slash != out->path) *slash = '\0';
        out->fd = out->last != NULL ? jrt_file_open(dir, above, DIRECTORY, 0) : -ENOMEM;
    }
    if (out->fd >= 0) return 0;
    free(out->last);
    free(out->path);
    return out->fd;
}

static int leave_above(struct above *above, int result)
{
    int error = result < 0 ? -errno : 0;
    (void)close(above->fd);
    free(above->last);
    free(above->path);
    return error;
}

int jrt_file_make_directory(int dir, const char *path, uint32_t permissions)
{
    struct above above;
    int          error = open_above(dir, path, &above);
    if (error != 0) return error;
    return leave_above(&above, mkdirat(above.fd, above.last, permissions));
}

int jrt_file_remove(int dir, const char *path, bool directory)
{
    struct above above;
    int          error = open_above(dir, path, &above);
    if (error != 0) return error;
    return leave_above(&above, unlinkat(above.fd, above.last, directory ? AT_REMOVEDIR : 0));
}

int jrt_file_rename(int from_dir, const char *from, int to_dir, const char *to, bool exclusive)
{
    struct above old, new;
    int          error = open_above(from_dir, from, &old);
    if (error != 0) return error;
    error = open_above(to_dir, to, &new);
    if (error != 0) {
        (void)leave_above(&old, 0);
        return error;
    }
    int result = exclusive ? renameat2(old.fd, old.last, new.fd, new.last, RENAME_NOREPLACE)
                           : renameat(old.fd, old.last, new.fd, new.last);
    error = leave_above(&new, result);
    (void)leave_above(&old, 0);
    return exclusive && error == -EINVAL ? -EOPNOTSUPP : error;
}

/* What there is. */

static janus_file_kind kind_of_mode(mode_t mode)
{
    if (S_ISREG(mode)) return JANUS_FILE_KIND_FILE;
    if (S_ISDIR(mode)) return JANUS_FILE_KIND_DIRECTORY;
    return S_ISLNK(mode) ? JANUS_FILE_KIND_LINK : JANUS_FILE_KIND_OTHER;
}

int jrt_file_inspect(int fd, janus_file_info *out)
{
    struct stat status;
    if (fstat(fd, &status) != 0) return -errno;
    *out = (janus_file_info){
        .kind = kind_of_mode(status.st_mode),
        .permissions = status.st_mode & 07777,
        .user = status.st_uid,
        .group = status.st_gid,
        .bytes = (uint64_t)status.st_size,
        .links = status.st_nlink,
        .device = status.st_dev,
        .inode = status.st_ino,
        .modified_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec,
    };
    return 0;
}

static janus_file_kind kind_of_type(unsigned char type)
{
    switch (type) {
    case DT_REG: return JANUS_FILE_KIND_FILE;
    case DT_DIR: return JANUS_FILE_KIND_DIRECTORY;
    case DT_LNK: return JANUS_FILE_KIND_LINK;
    default: return JANUS_FILE_KIND_OTHER;
    }
}

/* Copies an entry. False: it is "." or "..". */
static bool copy_entry(const struct dirent64 *from, janus_dir_entry *to)
{
    const char *name = from->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return false;
    *to = (janus_dir_entry){.inode = from->d_ino, .kind = kind_of_type(from->d_type)};
    (void)snprintf(to->name, sizeof to->name, "%s", name);
    return true;
}

int jrt_file_list(int fd, janus_dir_entry *out, size_t max)
{
    _Alignas(struct dirent64) char buffer[8192];
    if (max > INT_MAX) max = INT_MAX;
    for (;;) {
        ssize_t got = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
        if (got <= 0) return got == 0 ? 0 : -errno;
        size_t count = 0;
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(void *)(buffer + at);
            at += entry->d_reclen;
            count += copy_entry(entry, &out[count]);
            if (count < max || at >= got) continue;
            /* The rest is for the next call. */
            if (lseek(fd, entry->d_off, SEEK_SET) < 0) return -errno;
            break;
        }
        if (count > 0) return (int)count;
    }
}

/* Transfers. */

static ptrdiff_t transfer(bool reads, int fd, const struct iovec *pieces, int count,
                          uint64_t offset, int flags)
{
    off_t     at = offset == JRT_FILE_POSITION ? -1 : (off_t)offset;
    ptrdiff_t done;
    do {
        done =
            reads ? preadv2(fd, pieces, count, at, flags) : pwritev2(fd, pieces, count, at, flags);
    } while (done < 0 && errno == EINTR);
    return done >= 0 ? done : -errno;
}

ptrdiff_t jrt_file_try_read(int fd, const struct iovec *to, int count, uint64_t offset)
{
    return transfer(true, fd, to, count, offset, RWF_NOWAIT);
}

ptrdiff_t jrt_file_read(int fd, const struct iovec *to, int count, uint64_t offset)
{
    return transfer(true, fd, to, count, offset, 0);
}

ptrdiff_t jrt_file_write(int fd, const struct iovec *from, int count, uint64_t offset)
{
    return transfer(false, fd, from, count, offset, 0);
}

int jrt_file_seek(int fd, uint64_t offset)
{
    if (offset > INT64_MAX) return -EINVAL;
    return lseek(fd, (off_t)offset, SEEK_SET) >= 0 ? 0 : -errno;
}

int jrt_file_sync(int fd, bool everything)
{
    return (everything ? fsync(fd) : fdatasync(fd)) == 0 ? 0 : -errno;
}

int jrt_file_truncate(int fd, uint64_t bytes)
{
    int error;
    if (bytes > INT64_MAX) return -EINVAL;
    do error = ftruncate(fd, (off_t)bytes);
    while (error != 0 && errno == EINTR);
    return error == 0 ? 0 : -errno;
}

/* Descriptors. */

int jrt_descriptor_poll(int fd, uint32_t ways, uint64_t deadline_ns)
{
    const short read = POLLIN | POLLRDHUP | POLLPRI, always = POLLERR | POLLHUP;
    const int   wanted =
        ((ways & JANUS_IO_READ) != 0 ? read : 0) | ((ways & JANUS_IO_WRITE) != 0 ? POLLOUT : 0);
    struct pollfd polled = {.fd = fd, .events = (short)wanted};
    for (;;) {
        uint64_t        now = deadline_ns == 0 || deadline_ns == JRT_NEVER ? 0 : jrt_clock_now_ns();
        uint64_t        left = deadline_ns > now ? deadline_ns - now : 0;
        struct timespec time = {.tv_sec = (time_t)(left / 1000000000),
                                .tv_nsec = (long)(left % 1000000000)};
        int             found = ppoll(&polled, 1, deadline_ns == JRT_NEVER ? NULL : &time, NULL);
        if (found < 0 && errno == EINTR) continue;
        if (found < 0) return -errno;
        break;
    }
    if ((polled.revents & POLLNVAL) != 0) return -EBADF;
    int ready = 0;
    if ((polled.revents & (read | always)) != 0) ready |= JANUS_IO_READ;
    if ((polled.revents & (POLLOUT | always)) != 0) ready |= JANUS_IO_WRITE;
    return ready & (int)ways;
}

int jrt_descriptor_copy(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return copy >= 0 ? copy : -errno;
}

int jrt_descriptor_rights(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0) return -EBADF;
    switch (flags & O_ACCMODE) {
    case O_RDONLY: return JANUS_IO_MAY_READ;
    case O_WRONLY: return JANUS_IO_MAY_WRITE;
    default: return JANUS_IO_MAY_READ | JANUS_IO_MAY_WRITE;
    }
}

bool jrt_descriptor_is_nonblocking(int fd) { return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

uint64_t jrt_descriptors_max(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

int jrt_descriptor_hide(int fd) { return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : -errno; }
