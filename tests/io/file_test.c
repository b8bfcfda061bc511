/* SPDX-License-Identifier: MIT */
/* Files: what is read and written, positions, directories, and paths that lead outside. */
#include "../task/caps.h"
#include "host/file.h"
#include "wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

/* A folder of this process, empty when a test begins. */
static char folder[64];

static void run_shell(const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "%s '%s'", command, folder);
    CHECK_EQ(system(line), 0);
}

static void yard_open(void)
{
    snprintf(folder, sizeof folder, "/tmp/janusrt_file_test.%d", (int)getpid());
    run_shell("rm -rf");
    CHECK_EQ(mkdir(folder, 0700), 0);
}

static void yard_close(void) { run_shell("rm -rf"); }

enum {
    ALL = JANUS_RIGHT_FILE_READ | JANUS_RIGHT_FILE_WRITE | JANUS_RIGHT_FILE_CREATE |
          JANUS_RIGHT_FILE_LIST | JANUS_RIGHT_FILE_REMOVE,
    NEW = JANUS_OPEN_READ | JANUS_OPEN_WRITE | JANUS_OPEN_CREATE,
};

static const janus_io nowhere = {{0, 0}};

static janus_io open_yard(uint32_t rights)
{
    janus_io dir;
    CHECK_EQ(janus_dir_open(folder, rights, NULL, &dir), JANUS_OK);
    return dir;
}

static janus_io open_file(janus_io dir, const char *path, uint32_t how)
{
    janus_io file;
    CHECK_EQ(janus_file_open(dir, path, how, NULL, &file), JANUS_OK);
    return file;
}

static void put_file(janus_io dir, const char *path, const char *text)
{
    janus_io file = open_file(dir, path, NEW | JANUS_OPEN_TRUNCATE);
    wire_put(file, text, strlen(text));
    CHECK_EQ(janus_io_close(file), JANUS_OK);
}

static void check_file(janus_io dir, const char *path, const char *text)
{
    char     bytes[256];
    size_t   got = 0;
    janus_io file = open_file(dir, path, JANUS_OPEN_READ);
    CHECK_EQ(janus_io_read_full(file, bytes, strlen(text), &got), JANUS_OK);
    CHECK(memcmp(bytes, text, got) == 0);
    CHECK_EQ(janus_io_read(file, bytes, 1, &got), JANUS_CLOSED);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
}

/* In tasks of all sorts, and on a plain thread. */
static void everywhere(janus_entry *entry)
{
    yard_open();
    int before = wire_descriptors();
    rig_all(entry, NULL, 1);
    CHECK_EQ(entry(NULL), 0);
    CHECK(rig_simulated() || wire_descriptors() == before);
    yard_close();
}

/* Bytes. */

static int64_t write_and_read(void *argument)
{
    janus_io        dir = open_yard(ALL);
    janus_io        file = open_file(dir, "a", NEW | JANUS_OPEN_TRUNCATE);
    char            bytes[16];
    size_t          got = 0;
    janus_file_info info = JANUS_FILE_INFO();
    (void)argument;
    wire_put(file, "hello world", 11);
    CHECK_EQ(janus_io_read(file, bytes, sizeof bytes, &got), JANUS_CLOSED); /* one position */
    CHECK_EQ(janus_file_seek(file, 6), JANUS_OK);
    CHECK_EQ(janus_io_read(file, bytes, sizeof bytes, &got), JANUS_OK);
    CHECK_EQ(got, 5);
    CHECK(memcmp(bytes, "world", 5) == 0);
    CHECK_EQ(janus_file_read_at(file, 0, bytes, 5, &got), JANUS_OK);
    CHECK(got == 5 && memcmp(bytes, "hello", 5) == 0);
    CHECK_EQ(janus_file_write_at(file, 0, "HE", 2, &got), JANUS_OK);
    CHECK_EQ(got, 2);
    CHECK_EQ(janus_file_read_at(file, 11, bytes, 5, &got), JANUS_CLOSED);
    CHECK_EQ(got, 0);
    CHECK_EQ(janus_io_read(file, bytes, 1, &got), JANUS_CLOSED); /* the position stayed */
    CHECK_EQ(janus_file_sync(file, false), JANUS_OK);
    CHECK_EQ(janus_file_sync(file, true), JANUS_OK);
    CHECK_EQ(janus_file_truncate(file, 5), JANUS_OK);
    CHECK_EQ(janus_file_inspect(file, &info), JANUS_OK);
    CHECK_EQ(info.bytes, 5);
    CHECK_EQ(info.kind, JANUS_FILE_KIND_FILE);
    CHECK_EQ(janus_io_wait(file, JANUS_IO_READ), JANUS_OK);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    check_file(dir, "a", "HEllo");
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("what is written is read back, at the position and at a place") { everywhere(write_and_read); }

static int64_t large_file(void *argument)
{
    enum { BYTES = 3 << 20 };
    janus_io       dir = open_yard(ALL);
    janus_io       file = open_file(dir, "large", NEW | JANUS_OPEN_TRUNCATE);
    unsigned char *bytes = malloc(BYTES);
    size_t         got = 0;
    janus_io_info  info = JANUS_IO_INFO();
    (void)argument;
    wire_fill(bytes, BYTES, 0);
    janus_io_piece pieces[2] = {{bytes, 1000}, {bytes + 1000, BYTES - 1000}};
    CHECK_EQ(janus_io_writev(file, pieces, 2, &got), JANUS_OK);
    CHECK_EQ(got, BYTES);
    memset(bytes, 0, BYTES);
    CHECK_EQ(janus_file_seek(file, 0), JANUS_OK);
    CHECK_EQ(janus_io_read_full(file, bytes, BYTES, &got), JANUS_OK);
    wire_check(bytes, BYTES, 0);
    CHECK_EQ(janus_io_inspect(file, &info), JANUS_OK);
    CHECK_EQ(info.kind, JANUS_IO_KIND_FILE);
    CHECK_EQ(info.read_bytes, BYTES);
    CHECK_EQ(info.written_bytes, BYTES);
    free(bytes);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("a large file is written and read whole") { everywhere(large_file); }

static int64_t appended(void *argument)
{
    janus_io dir = open_yard(ALL), file;
    (void)argument;
    put_file(dir, "log", "one ");
    file = open_file(dir, "log", JANUS_OPEN_WRITE | JANUS_OPEN_APPEND);
    wire_put(file, "two ", 4);
    CHECK_EQ(janus_file_seek(file, 0), JANUS_OK);
    wire_put(file, "three", 5);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    check_file(dir, "log", "one two three");
    CHECK_EQ(janus_file_open(dir, "log", NEW | JANUS_OPEN_EXCLUSIVE, NULL, &file), JANUS_EXISTS);
    CHECK_EQ(janus_file_open(dir, "none", JANUS_OPEN_READ, NULL, &file), JANUS_NOT_FOUND);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("each write of a file that was opened to append goes to its end") { everywhere(appended); }

/* Directories. */

static int64_t walk_directory(void *argument)
{
    janus_io        dir = open_yard(ALL), inner;
    janus_dir_entry entries[3];
    size_t          count = 0, all = 0, directories = 0;
    janus_file_info info = JANUS_FILE_INFO();
    (void)argument;
    CHECK_EQ(janus_dir_make(dir, "sub", 0), JANUS_OK);
    CHECK_EQ(janus_dir_make(dir, "sub", 0), JANUS_EXISTS);
    for (int i = 0; i < 10; i++) {
        char path[16];
        snprintf(path, sizeof path, "sub/%d", i);
        put_file(dir, path, "x");
    }
    CHECK_EQ(janus_dir_make(dir, "sub/deep", 0700), JANUS_OK);
    CHECK_EQ(janus_dir_open_in(dir, "sub", NULL, &inner), JANUS_OK);
    check_file(inner, "3", "x");
    janus_status status;
    while ((status = janus_dir_list(inner, entries, 3, &count)) == JANUS_OK) {
        for (size_t i = 0; i < count; i++) {
            directories += entries[i].kind == JANUS_FILE_KIND_DIRECTORY;
        }
        all += count;
    }
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK_EQ(all, 11);
    CHECK_EQ(directories, 1);
    CHECK_EQ(janus_file_seek(inner, 0), JANUS_OK);
    CHECK_EQ(janus_dir_list(inner, entries, 1, &count), JANUS_OK);
    CHECK_EQ(count, 1);
    CHECK_EQ(janus_dir_inspect(dir, "sub/3", &info), JANUS_OK);
    CHECK_EQ(info.bytes, 1);
    CHECK_EQ(janus_dir_inspect(dir, "sub/none", &info), JANUS_NOT_FOUND);
    CHECK_EQ(janus_file_rename(dir, "sub/3", inner, "three", true), JANUS_OK);
    CHECK_EQ(janus_file_rename(dir, "sub/4", inner, "three", true), JANUS_EXISTS);
    CHECK_EQ(janus_file_rename(dir, "sub/4", inner, "three", false), JANUS_OK);
    CHECK_EQ(janus_file_remove(dir, "sub"), JANUS_STATE);
    CHECK_EQ(janus_dir_remove(dir, "sub"), JANUS_STATE); /* not empty */
    CHECK_EQ(janus_dir_remove(dir, "sub/three"), JANUS_STATE);
    CHECK_EQ(janus_file_remove(dir, "sub/three"), JANUS_OK);
    CHECK_EQ(janus_dir_remove(dir, "sub/deep/"), JANUS_OK);
    for (int i = 0; i < 10; i++) {
        char path[16];
        snprintf(path, sizeof path, "./sub//%d", i);
        CHECK_EQ(janus_file_remove(dir, path), i == 3 || i == 4 ? JANUS_NOT_FOUND : JANUS_OK);
    }
    CHECK_EQ(janus_dir_remove(dir, "sub"), JANUS_OK);
    CHECK_EQ(janus_io_close(inner), JANUS_OK);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("a directory is listed, filled and emptied") { everywhere(walk_directory); }

TEST("a kernel without openat2 makes no difference for paths without links")
{
    atomic_store(&jrt_file_walks, true);
    everywhere(walk_directory);
    everywhere(appended);
    atomic_store(&jrt_file_walks, false);
}

static const char *const outside[] = {"..",         "../x", "/etc/passwd", "sub/../../x",
                                      "out/passwd", "up",   "out/../etc",  "self/root/etc/passwd"};

static void make_links(void)
{
    char path[128];
    CHECK_EQ(chdir(folder), 0);
    CHECK_EQ(mkdir("sub", 0700), 0);
    CHECK_EQ(symlink("/etc", "out"), 0);
    CHECK_EQ(symlink("..", "up"), 0);
    CHECK_EQ(symlink("/proc/self", "self"), 0);
    CHECK_EQ(symlink("sub", "inside"), 0);
    snprintf(path, sizeof path, "%s/sub/file", folder);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("in", file);
    fclose(file);
    CHECK_EQ(chdir("/"), 0);
}

static int64_t stay_inside(void *argument)
{
    janus_io        dir = open_yard(ALL), file;
    janus_file_info info = JANUS_FILE_INFO();
    (void)argument;
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        const char *path = outside[i];
        CHECK_EQ(janus_file_open(dir, path, JANUS_OPEN_READ, NULL, &file), JANUS_DENIED);
        CHECK_EQ(janus_dir_open_in(dir, path, NULL, &file), JANUS_DENIED);
        CHECK_EQ(janus_dir_inspect(dir, path, &info), JANUS_DENIED);
        if (strcmp(path, "up") == 0) continue; /* the link itself is inside */
        CHECK_EQ(janus_file_rename(dir, "sub/file", dir, path, false), JANUS_DENIED);
        CHECK_EQ(janus_file_rename(dir, path, dir, "stolen", false), JANUS_DENIED);
        CHECK_EQ(janus_dir_make(dir, path, 0), JANUS_DENIED);
        CHECK_EQ(janus_file_remove(dir, path), JANUS_DENIED);
        CHECK_EQ(janus_dir_remove(dir, path), JANUS_DENIED);
        CHECK_EQ(janus_file_open(dir, path, NEW, NULL, &file), JANUS_DENIED);
    }
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

static int64_t follow_inside(void *argument)
{
    janus_io dir = open_yard(ALL);
    (void)argument;
    check_file(dir, "inside/file", "in");
    check_file(dir, "sub/../sub/./file", "in");
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("no path leads out of its directory: not by .., a link, a magic link or an absolute path")
{
    yard_open();
    make_links();
    rig_all(stay_inside, NULL, 1);
    rig_all(follow_inside, NULL, 1);
    atomic_store(&jrt_file_walks, true); /* no link at all, and no ".." */
    rig_all(stay_inside, NULL, 1);
    atomic_store(&jrt_file_walks, false);
    yard_close();
}

/* A thread moves the directory "mid" out and in again, for ever. */
static atomic_int racing;

static void *rename_for_ever(void *argument)
{
    char a[128], b[128];
    (void)argument;
    snprintf(a, sizeof a, "%s/in/mid", folder);
    snprintf(b, sizeof b, "%s/moved", folder);
    while (atomic_load(&racing)) {
        (void)rename(a, b);
        (void)rename(b, a);
    }
    return NULL;
}

static int64_t open_in_race(void *argument)
{
    char     path[128], byte;
    janus_io dir, file;
    size_t   got;
    int      denied = 0, found = 0;
    (void)argument;
    snprintf(path, sizeof path, "%s/in", folder);
    CHECK_EQ(janus_dir_open(path, ALL, NULL, &dir), JANUS_OK);
    for (int i = 0; i < 3000; i++) {
        /* If mid lies outside when ".." is walked, the path would lead to moved/../secret. */
        janus_status status = janus_file_open(dir, "mid/../secret", JANUS_OPEN_READ, NULL, &file);
        denied += status == JANUS_DENIED;
        if (status != JANUS_OK) continue;
        CHECK_EQ(janus_io_read(file, &byte, 1, &got), JANUS_OK);
        CHECK_EQ(byte, 'i'); /* never the one outside */
        CHECK_EQ(janus_io_close(file), JANUS_OK);
        found++;
    }
    printf("# %d found, %d denied\n", found, denied);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("a rename in the middle of an open leads nobody outside")
{
    RIG_REAL("another thread renames");
    char      path[256];
    pthread_t thread;
    yard_open();
    snprintf(path, sizeof path,
             "cd '%s' && mkdir in in/mid && echo i > in/secret && echo o > secret", folder);
    CHECK_EQ(system(path), 0);
    atomic_store(&racing, 1);
    CHECK_EQ(pthread_create(&thread, NULL, rename_for_ever, NULL), 0);
    rig_run(2, open_in_race, NULL, 1);
    atomic_store(&racing, 0);
    pthread_join(thread, NULL);
    yard_close();
}

/* Rights. */

static int64_t narrowed(void *argument)
{
    janus_io        dir = open_yard(ALL), slim, reader, file;
    janus_dir_entry entry;
    size_t          count;
    (void)argument;
    put_file(dir, "a", "text");
    CHECK_EQ(janus_io_attenuate(dir, JANUS_IO_MAY_READ, &slim), JANUS_OK);
    check_file(slim, "a", "text");
    CHECK_EQ(janus_dir_list(slim, &entry, 1, &count), JANUS_OK);
    CHECK_EQ(janus_file_open(slim, "a", JANUS_OPEN_WRITE, NULL, &file), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_open(slim, "b", NEW, NULL, &file), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_remove(slim, "a"), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_dir_make(slim, "c", 0), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_rename(slim, "a", dir, "b", false), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_rename(dir, "a", slim, "b", false), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_close(slim), JANUS_CAP_RIGHT);
    reader = open_yard(JANUS_RIGHT_FILE_READ | JANUS_RIGHT_FILE_WRITE);
    check_file(reader, "a", "text");
    CHECK_EQ(janus_dir_list(reader, &entry, 1, &count), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_open(reader, "b", NEW, NULL, &file), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_remove(reader, "a"), JANUS_CAP_RIGHT);
    file = open_file(reader, "a", JANUS_OPEN_WRITE);
    CHECK_EQ(janus_io_read(file, &entry, 1, &count), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    CHECK_EQ(janus_file_open(file, "a", JANUS_OPEN_READ, NULL, &file), JANUS_STALE);
    CHECK_EQ(janus_io_close(reader), JANUS_OK);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("a directory allows what it was opened for, and less when it is narrowed")
{
    everywhere(narrowed);
}

static int64_t invalid(void *argument)
{
    janus_io dir = open_yard(ALL), file = open_file(dir, "a", NEW);
    char     byte, long_one[5000];
    size_t   got;
    (void)argument;
    memset(long_one, 'a', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    CHECK_EQ(janus_dir_open(folder, 0, NULL, &dir), JANUS_INVALID);
    CHECK_EQ(janus_dir_open(NULL, ALL, NULL, &dir), JANUS_INVALID);
    CHECK_EQ(janus_dir_open(folder, JANUS_RIGHT_NET_LISTEN, NULL, &dir), JANUS_INVALID);
    CHECK_EQ(janus_file_open(dir, "", JANUS_OPEN_READ, NULL, &file), JANUS_INVALID);
    CHECK_EQ(janus_file_open(dir, long_one, JANUS_OPEN_READ, NULL, &file), JANUS_INVALID);
    CHECK_EQ(janus_file_open(dir, "a", 0, NULL, &file), JANUS_INVALID);
    CHECK_EQ(janus_file_open(dir, "a", 64, NULL, &file), JANUS_INVALID);
    CHECK_EQ(janus_file_open(dir, "a", JANUS_OPEN_READ | JANUS_OPEN_TRUNCATE, NULL, &file),
             JANUS_INVALID);
    CHECK_EQ(janus_file_open(file, "a", JANUS_OPEN_READ, NULL, &dir), JANUS_STATE);
    CHECK_EQ(janus_file_open(dir, "a/b", JANUS_OPEN_READ, NULL, &file), JANUS_STATE);
    CHECK_EQ(janus_file_open(dir, ".", JANUS_OPEN_READ, NULL, &file), JANUS_STATE);
    CHECK_EQ(janus_file_read_at(file, UINT64_MAX, &byte, 1, &got), JANUS_INVALID);
    CHECK_EQ(janus_file_read_at(dir, 0, &byte, 1, &got), JANUS_UNAVAILABLE);
    CHECK_EQ(janus_file_truncate(file, UINT64_MAX), JANUS_INVALID);
    CHECK_EQ(janus_file_seek(dir, 7), JANUS_INVALID);
    CHECK_EQ(janus_file_remove(dir, "."), JANUS_INVALID);
    CHECK_EQ(janus_file_sync(nowhere, true), JANUS_INVALID);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("calls that make no sense are refused, and nothing happens") { everywhere(invalid); }

static int64_t use_given(void *argument)
{
    janus_io    *dirs = argument, file;
    janus_status refused = janus_file_open(nowhere, "/etc/passwd", JANUS_OPEN_READ, NULL, &file);
    CHECK_EQ(refused, JANUS_NO_FILE_CAP);
    CHECK_EQ(janus_dir_open("/", JANUS_RIGHT_FILE_READ, NULL, &file), JANUS_NO_FILE_CAP);
    check_file(*dirs, "given", "1234567890");
    return 0;
}

static int64_t sovereign_files(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.file = {4, 15}};
    janus_cap              spawn = caps_spawn(root, 10);
    janus_cap              cap = caps_mint(root, JANUS_CAP_KIND_FILE, JANUS_RIGHTS_ALL, &limits);
    janus_nursery          n, children;
    janus_io               dir, file, more[3];
    size_t                 done = 0;
    (void)argument;
    CHECK_EQ(janus_dir_open(folder, ALL, NULL, &dir), JANUS_NO_FILE_CAP);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.file_cap = cap)), JANUS_OK);
    dir = open_yard(ALL);
    file = open_file(dir, "given", NEW | JANUS_OPEN_TRUNCATE);
    wire_put(file, "1234567890", 10);
    CHECK_EQ(janus_io_write(file, "123456", 6, &done), JANUS_CAP_LIMIT); /* 15 bytes in all */
    CHECK_EQ(done, 0);
    more[0] = open_file(dir, "given", JANUS_OPEN_READ);
    more[1] = open_file(dir, "given", JANUS_OPEN_READ);
    CHECK_EQ(janus_file_open(dir, "given", JANUS_OPEN_READ, NULL, &more[2]), JANUS_HANDLE_LIMIT);
    CHECK_EQ(janus_io_close(more[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(more[1]), JANUS_OK);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    caps_open(&children, spawn); /* without the capability, but with the handle */
    CHECK_EQ(janus_spawn(&children, use_given, &dir), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&children, NULL), JANUS_OK);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("in :sovereign a directory needs the capability, and a task that is given one needs none")
{
    yard_open();
    caps_all(sovereign_files, NULL);
    yard_close();
}

/* Cancels and ends. */

static int64_t write_cancelled(void *argument)
{
    janus_io     file = *(janus_io *)argument;
    size_t       done = 7;
    janus_status status = janus_io_write(file, "never", 5, &done);
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK_EQ(done, 0);
    return status;
}

static int64_t cancel_first(void *argument)
{
    janus_io        dir = open_yard(ALL), file = open_file(dir, "a", NEW | JANUS_OPEN_TRUNCATE);
    janus_nursery   n;
    janus_file_info info = JANUS_FILE_INFO();
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, write_cancelled, &file), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(janus_file_inspect(file, &info), JANUS_OK);
    CHECK_EQ(info.bytes, 0);
    CHECK_EQ(janus_io_close(file), JANUS_OK);
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("a cancelled task writes nothing")
{
    yard_open();
    rig_run(1, cancel_first, NULL, 1);
    yard_close();
}

static atomic_int written; /* of the writes below that returned OK */

static int64_t append_one(void *argument)
{
    janus_io file = *(janus_io *)argument;
    for (;;) {
        janus_status status = janus_file_write_at(file, 0, "x", 1, NULL);
        if (status != JANUS_OK) return status;
        atomic_fetch_add(&written, 1);
    }
}

static int64_t cancel_storm(void *argument)
{
    enum { WRITERS = 4 };
    janus_io        dir = open_yard(ALL);
    janus_file_info info = JANUS_FILE_INFO();
    (void)argument;
    for (uint64_t round = 0; round < rig_few(50); round++) {
        janus_io      file = open_file(dir, "log",
                                       JANUS_OPEN_WRITE | JANUS_OPEN_CREATE | JANUS_OPEN_TRUNCATE |
                                           JANUS_OPEN_APPEND);
        janus_nursery n;
        atomic_store(&written, 0);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int i = 0; i < WRITERS; i++) CHECK_EQ(janus_spawn(&n, append_one, &file), JANUS_OK);
        while (atomic_load(&written) < (int)round % 20) JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(janus_file_inspect(file, &info), JANUS_OK);
        CHECK_EQ(info.bytes, (uint64_t)atomic_load(&written)); /* OK exactly if it happened */
        CHECK_EQ(janus_io_close(file), JANUS_OK);
    }
    CHECK_EQ(janus_io_close(dir), JANUS_OK);
    return 0;
}

TEST("a cancelled write has happened exactly if it returned OK")
{
    yard_open();
    rig_all(cancel_storm, NULL, 1);
    yard_close();
}

static int64_t open_and_end(void *argument)
{
    janus_io dir = open_yard(ALL);
    (void)argument;
    (void)open_file(dir, "a", NEW);
    return 0;
}

TEST("a task's end closes its files and directories")
{
    yard_open();
    int before = wire_descriptors();
    rig_run(2, open_and_end, NULL, 5);
    CHECK_EQ(wire_descriptors(), before);
    yard_close();
}
