/* SPDX-License-Identifier: MIT */
/* Limits of control groups, in file trees that this test invents. */
#include "harness.h"
#include "plat/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

struct fake_file {
    const char *path, *text;
};

/* Ends with a NULL path. */
static bool read_fake(void *world, const char *path, char *out_text, size_t bytes)
{
    for (const struct fake_file *file = world; file->path != NULL; file++) {
        if (strcmp(file->path, path) != 0) continue;
        snprintf(out_text, bytes, "%s", file->text);
        return true;
    }
    return false;
}

#define TREE(...) ((struct fake_file[]){__VA_ARGS__, {NULL, NULL}})
#define V2 "/sys/fs/cgroup"

static unsigned limit(const char *cgroup, struct fake_file *tree)
{
    return jrt_cpus_from(cgroup, read_fake, tree);
}

/* The limit that a cpu.max with this text sets. */
static unsigned limit_of(const char *text)
{
    return limit("0::/a\n", TREE({V2 "/a/cpu.max", text}));
}

TEST("without any group file there is no limit")
{
    struct fake_file none[] = {{NULL, NULL}};
    CHECK(limit("0::/\n", none) == JRT_CPUS_UNLIMITED);
    CHECK(limit("0::/a/b/c\n", none) == JRT_CPUS_UNLIMITED);
    CHECK(limit("4:cpu,cpuacct:/a/b\n", none) == JRT_CPUS_UNLIMITED);
    CHECK(limit("", none) == JRT_CPUS_UNLIMITED);
}

TEST("a quota is rounded up to whole processors")
{
    CHECK_EQ(limit_of("200000 100000\n"), 2);
    CHECK_EQ(limit_of("150000 100000\n"), 2);
    CHECK_EQ(limit_of("200001 100000\n"), 3);
    CHECK_EQ(limit_of("1000 100000\n"), 1);
    CHECK_EQ(limit_of("40000 10000"), 4);
    CHECK_EQ(limit_of("300000\n"), 3); /* the default period is 100 ms */
}

TEST("a quota of max is no limit")
{
    CHECK(limit_of("max 100000\n") == JRT_CPUS_UNLIMITED);
    CHECK(limit_of("max\n") == JRT_CPUS_UNLIMITED);
}

TEST("a file that cannot be parsed is no limit")
{
    static const char *const texts[] = {"",       "\n",         " ",      "cpu",
                                        "-1 100", "12x 100000", "100 0",  "0 100000",
                                        "100 x",  "100000 -5",  "\xff\n", "99999999999999999999 1",
                                        "1e9 1",  "0x10 1",     "100 ",   "100000000000000000 1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK(limit_of(texts[i]) == JRT_CPUS_UNLIMITED);
    }
    struct fake_file *tree = TREE({V2 "/a/cpu.max", "100000 100000\n"});
    CHECK(limit("::\n\n:::\n0:\n0\n0::a\n0::\n", tree) == JRT_CPUS_UNLIMITED);
    CHECK_EQ(limit("nonsense\n0::/a", tree), 1);
}

TEST("a limit that only a parent has counts, and of several limits the smallest")
{
    struct fake_file *parent =
        TREE({V2 "/a/cpu.max", "300000 100000\n"}, {V2 "/a/b/cpu.max", "max 100000\n"});
    CHECK_EQ(limit("0::/a/b/c\n", parent), 3);
    struct fake_file *several =
        TREE({V2 "/a/cpu.max", "300000 100000\n"}, {V2 "/a/b/cpu.max", "800000 100000\n"},
             {V2 "/a/b/c/cpu.max", "500000 100000\n"}, {V2 "/a/x/cpu.max", "1 100000\n"});
    CHECK_EQ(limit("0::/a/b/c\n", several), 3);
    CHECK_EQ(limit("0::/a/b/c/\n", several), 3);
}

TEST("the root of the mount counts, wherever the process's path is")
{
    struct fake_file *tree = TREE({V2 "/cpu.max", "200000 100000\n"});
    CHECK_EQ(limit("0::/\n", tree), 2);
    CHECK_EQ(limit("0::/docker/0123/deep\n", tree), 2);
    CHECK_EQ(limit("0::/../sibling\n", tree), 2);
}

TEST("a path that leads out of the mount is not followed")
{
    struct fake_file *tree = TREE({"/sys/fs/cgroup/../sibling/cpu.max", "100000 100000\n"},
                                  {"/sys/fs/cpu.max", "100000 100000\n"});
    CHECK(limit("0::/../sibling\n", tree) == JRT_CPUS_UNLIMITED);
}

#define V1 "/sys/fs/cgroup/cpu"

TEST("version 1 counts too, under either name of its directory, and on a parent")
{
    struct fake_file *one =
        TREE({V1 "/a/cpu.cfs_quota_us", "250000\n"}, {V1 "/a/cpu.cfs_period_us", "100000\n"},
             {V1 "/a/b/cpu.cfs_quota_us", "-1\n"}, {V1 "/a/b/cpu.cfs_period_us", "100000\n"});
    CHECK_EQ(limit("9:cpuset:/\n4:cpu,cpuacct:/a/b\n0::/a/b\n", one), 3);
    CHECK_EQ(limit("4:cpu:/a/b\n", one), 3);
    CHECK(limit("4:cpuacct,cpuset:/a/b\n", one) == JRT_CPUS_UNLIMITED);
    struct fake_file *both = TREE({V1 ",cpuacct/cpu.cfs_quota_us", "100000\n"},
                                  {V1 ",cpuacct/cpu.cfs_period_us", "100000\n"});
    CHECK_EQ(limit("4:cpu,cpuacct:/docker/0123\n", both), 1);
    struct fake_file *half = TREE({V1 "/cpu.cfs_quota_us", "100000\n"});
    CHECK(limit("4:cpu:/\n", half) == JRT_CPUS_UNLIMITED);
}

TEST("if both versions set a limit, the smaller one counts")
{
    struct fake_file *tree =
        TREE({V1 "/cpu.cfs_quota_us", "400000\n"}, {V1 "/cpu.cfs_period_us", "100000\n"},
             {V2 "/a/cpu.max", "200000 100000\n"});
    CHECK_EQ(limit("1:cpu:/\n0::/a\n", tree), 2);
}

TEST("a path that is too long ends the search, not the program")
{
    static char       cgroup[9000];
    struct fake_file *tree = TREE({V2 "/cpu.max", "200000 100000\n"});
    memset(cgroup, 'x', sizeof cgroup - 1);
    memcpy(cgroup, "0::/", 4);
    CHECK_EQ(limit(cgroup, tree), 2);
    for (size_t i = 4; i < sizeof cgroup - 1; i++) cgroup[i] = i % 2 == 0 ? '/' : 'x';
    CHECK_EQ(limit(cgroup, tree), 2);
    memset(cgroup + 4, ',', sizeof cgroup - 5);
    memcpy(cgroup, "1:cpu", 5);
    CHECK(limit(cgroup, tree) == JRT_CPUS_UNLIMITED);
}

TEST("this process may use at least one processor and no more than its mask has")
{
    cpu_set_t mask, one;
    CPU_ZERO(&mask);
    CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0);
    unsigned available = jrt_cpus_available();
    CHECK(available >= 1 && available <= (unsigned)CPU_COUNT(&mask));

    size_t first = 0;
    while (!CPU_ISSET(first, &mask)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_EQ(jrt_cpus_available(), 1);
    CHECK(sched_setaffinity(0, sizeof mask, &mask) == 0);
}
