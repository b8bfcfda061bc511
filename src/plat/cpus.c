/* SPDX-License-Identifier: MIT */
/*
 * How many processors a process may keep busy.
 *
 * The affinity mask says where the process may run; it includes cpusets. Control groups say for how
 * long: quota / period processors. Every group from the process's own up to the root may set a
 * limit. More workers than that only use up the quota sooner, and then all of them stop until the
 * next period. A quota of 1.5 counts as 2: with 1, half a processor would be lost.
 *
 * Version 2 has one tree, line "0::/path" of /proc/self/cgroup, and cpu.max with both numbers.
 * Version 1 has a tree for each controller, line "4:cpu,cpuacct:/path", and a file for each number.
 * Both may be mounted at once. Then the version that has the cpu controller has the files.
 *
 * The path is the path inside the namespace, and the mount may begin further down. So a missing
 * file does not end the search, which goes on upwards to the mount's root. A file that cannot be
 * read or parsed counts as no limit. At worst a scheduler then has too many workers.
 */
#include "plat/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, NUMBER_BYTES = 64, CGROUP_BYTES = 16384, CPUS_MAX = 1 << 16 };

/* A source of files: the system's, or a test's. */
struct view {
    jrt_cpus_reader *read;
    void            *world;
};

/* Reads the number at *text and advances *text past it. Returns false for a sign, a word, or too
 * many digits. */
static bool number_at(const char **text, uint64_t *out)
{
    uint64_t    value = 0;
    const char *at = *text;
    while (*at == ' ') at++;
    const char *digits = at;
    for (; *at >= '0' && *at <= '9'; at++) value = value * 10 + (uint64_t)(*at - '0');
    if (at == digits || at - digits > 18) return false;
    if (*at != '\0' && *at != ' ' && *at != '\n') return false;
    *text = at;
    *out = value;
    return true;
}

static unsigned processors(uint64_t quota, uint64_t period)
{
    if (quota == 0 || period == 0) return JRT_CPUS_UNLIMITED;
    uint64_t whole = quota / period + (quota % period != 0);
    return whole < CPUS_MAX ? (unsigned)whole : JRT_CPUS_UNLIMITED;
}

static bool read_in(const struct view *view, const char *group, const char *file, char *out_text)
{
    char path[PATH_BYTES];
    int  length = snprintf(path, sizeof path, "%s/%s", group, file);
    if (length < 0 || (size_t)length >= sizeof path) return false;
    return view->read(view->world, path, out_text, NUMBER_BYTES);
}

/* Version 2: "max 100000" or "150000 100000"; the period may be missing. */
static unsigned limit_v2(const struct view *view, const char *group)
{
    char        text[NUMBER_BYTES];
    uint64_t    quota, period = 100000;
    const char *at = text;
    if (!read_in(view, group, "cpu.max", text) || !number_at(&at, &quota)) {
        return JRT_CPUS_UNLIMITED;
    }
    if (*at == ' ' && !number_at(&at, &period)) return JRT_CPUS_UNLIMITED;
    return processors(quota, period);
}

/* Version 1: "-1" or "150000" in one file, "100000" in the other. */
static unsigned limit_v1(const struct view *view, const char *group)
{
    char        text[NUMBER_BYTES];
    uint64_t    quota, period;
    const char *at = text;
    if (!read_in(view, group, "cpu.cfs_quota_us", text) || !number_at(&at, &quota)) {
        return JRT_CPUS_UNLIMITED;
    }
    at = text;
    if (!read_in(view, group, "cpu.cfs_period_us", text) || !number_at(&at, &period)) {
        return JRT_CPUS_UNLIMITED;
    }
    return processors(quota, period);
}

/* The smallest limit from mount + path up to mount. */
static unsigned walk(const struct view *view, const char *mount, const char *path, size_t bytes,
                     unsigned (*limit)(const struct view *view, const char *group))
{
    char   group[PATH_BYTES];
    size_t root = strlen(mount);
    bool above = bytes >= 3 && memmem(path, bytes, "/..", 3) != NULL; /* the path leads outside the
                                                                       * mount */
    memcpy(group, mount, root + 1);
    if (!above && root + bytes < sizeof group) {
        memcpy(group + root, path, bytes);
        group[root + bytes] = '\0';
    }
    unsigned least = JRT_CPUS_UNLIMITED;
    for (size_t end = strlen(group);;) {
        while (end > root && group[end - 1] == '/') end--;
        group[end] = '\0';
        unsigned here = limit(view, group);
        if (here < least) least = here;
        if (end <= root) return least;
        while (end > root && group[end - 1] != '/') end--;
    }
}

/* Whether "cpu" is among "cpu,cpuacct". */
static bool names_cpu(const char *controllers, size_t bytes)
{
    const char *end = controllers + bytes;
    while (controllers < end) {
        const char *comma = memchr(controllers, ',', (size_t)(end - controllers));
        if (comma == NULL) comma = end;
        if (comma - controllers == 3 && memcmp(controllers, "cpu", 3) == 0) return true;
        controllers = comma < end ? comma + 1 : end;
    }
    return false;
}

/* One line, "number:controllers:/path". */
static unsigned limit_of_line(const struct view *view, const char *line, size_t bytes)
{
    const char *end = line + bytes;
    const char *controllers = memchr(line, ':', bytes);
    if (controllers == NULL) return JRT_CPUS_UNLIMITED;
    controllers++;
    const char *path = memchr(controllers, ':', (size_t)(end - controllers));
    if (path == NULL) return JRT_CPUS_UNLIMITED;
    size_t named = (size_t)(path - controllers);
    path++;
    size_t path_bytes = (size_t)(end - path);
    if (path_bytes == 0 || *path != '/') return JRT_CPUS_UNLIMITED;

    if (named == 0) return walk(view, "/sys/fs/cgroup", path, path_bytes, limit_v2);
    if (!names_cpu(controllers, named)) return JRT_CPUS_UNLIMITED;
    unsigned least = walk(view, "/sys/fs/cgroup/cpu", path, path_bytes, limit_v1);
    /* If there is no link "cpu", the directory is named after all its controllers. */
    char mount[NUMBER_BYTES * 2];
    int  length = snprintf(mount, sizeof mount, "/sys/fs/cgroup/%.*s", (int)named, controllers);
    if (least == JRT_CPUS_UNLIMITED && length > 0 && (size_t)length < sizeof mount) {
        least = walk(view, mount, path, path_bytes, limit_v1);
    }
    return least;
}

unsigned jrt_cpus_from(const char *proc_self_cgroup, jrt_cpus_reader *read, void *world)
{
    struct view view = {.read = read, .world = world};
    unsigned    least = JRT_CPUS_UNLIMITED;
    for (const char *line = proc_self_cgroup; *line != '\0';) {
        size_t   bytes = strcspn(line, "\n");
        unsigned here = limit_of_line(&view, line, bytes);
        if (here < least) least = here;
        line += bytes + (line[bytes] == '\n');
    }
    return least;
}

static bool read_file(void *world, const char *path, char *out_text, size_t bytes)
{
    (void)world;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    size_t  length = 0;
    ssize_t more;
    do {
        more = read(file, out_text + length, bytes - 1 - length);
        if (more > 0) length += (size_t)more;
    } while (more > 0 ? length < bytes - 1 : more < 0 && errno == EINTR);
    (void)close(file);
    out_text[length] = '\0';
    return more >= 0;
}

/* Processors in the affinity mask; 0 if the system does not report it. */
static unsigned in_mask(void)
{
    for (size_t cpus = 1024; cpus <= CPUS_MAX; cpus *= 2) { /* the kernel's mask must fit */
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL) return 0;
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        int    result = sched_getaffinity(0, bytes, set);
        int    error = errno;
        int    count = result == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (result == 0) return (unsigned)count;
        if (error != EINVAL) return 0;
    }
    return 0;
}

unsigned jrt_cpus_available(void)
{
    char     cgroup[CGROUP_BYTES];
    unsigned allowed = in_mask();
    unsigned paid = JRT_CPUS_UNLIMITED;
    if (allowed == 0) allowed = 1;
    if (read_file(NULL, "/proc/self/cgroup", cgroup, sizeof cgroup)) {
        paid = jrt_cpus_from(cgroup, read_file, NULL);
    }
    return paid < allowed ? paid : allowed;
}
