/* SPDX-License-Identifier: MIT */
/*
 * Plugins that reach for the outside: descriptors, files, signals and processes. Each runs in a
 * pool of :sovereign, with the capabilities that its test names, and no others.
 */
#include "../task/caps.h"

#include <fcntl.h>
#include <janusrt/file.h>
#include <janusrt/net.h>
#include <janusrt/process.h>
#include <janusrt/signal.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const janus_io     nowhere;
static const janus_budget rich = {1 << 24, 1 << 20, 10, 1000, 10000};

/* What a host gives to a plugin. */
struct yard {
    const janus_authority *root;
    janus_cap              net, file, process;
    const janus_budget    *budget; /* NULL: rich */
};

/* Runs the plugin in a pool of its own, and says how it ended. */
static janus_status run_plugin(const struct yard *yard, janus_entry *plugin, void *argument)
{
    const janus_budget *budget = yard->budget != NULL ? yard->budget : &rich;
    janus_cap           spawn = caps_spawn(yard->root, 10);
    janus_cap           pool =
        caps_budget(yard->root, JANUS_RIGHT_BUDGET_REQUEST, UINT64_C(1) << 40, UINT64_C(1) << 40);
    janus_nursery        n;
    janus_nursery_result result = {0};
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .budget_cap = pool,
                                                          .budget = budget, .net_cap = yard->net,
                                                          .file_cap = yard->file,
                                                          .process_cap = yard->process)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, plugin, argument, JANUS_SPAWN_OPTIONS(.budget = budget), NULL),
             JANUS_OK);
    return janus_nursery_end(&n, &result) == JANUS_OK ? JANUS_OK : result.error;
}

static void in_sovereign(janus_entry *host)
{
    static const janus_budget first = {UINT64_C(1) << 40, UINT64_C(1) << 30, 1000, 1000000,
                                       1000000};
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .yield_interval = 512,
                                               .profile = JANUS_PROFILE_SOVEREIGN,
                                               .task_budget = &first, .max_budget = &first,
                                               .exhaustion = JANUS_EXHAUSTION_AUTO),
                       host, NULL, NULL),
             JANUS_OK);
}

static janus_cap net_cap(const janus_authority *root, const char *range, uint32_t rights)
{
    janus_cap_limits limits;
    CHECK_EQ(janus_net_limits_parse(range, 100, &limits.net), JANUS_OK);
    return caps_mint(root, JANUS_CAP_KIND_NET, rights, &limits);
}

static janus_cap file_cap(const janus_authority *root, uint64_t written)
{
    const janus_cap_limits limits = {.file = {10, written}};
    return caps_mint(root, JANUS_CAP_KIND_FILE, JANUS_RIGHTS_ALL, &limits);
}

static janus_cap process_cap(const janus_authority *root)
{
    const janus_cap_limits limits = {.process = {4}};
    return caps_mint(root, JANUS_CAP_KIND_PROCESS, JANUS_RIGHTS_ALL, &limits);
}

/* Descriptors. */

static int64_t release_and_pass(void *argument)
{
    janus_io ends[2], passed;
    int      fd = -1;
    (void)argument;
    CHECK_EQ(janus_io_pair(NULL, ends), JANUS_OK);
    CHECK_EQ(janus_io_release(ends[0], &fd), JANUS_NO_NET_CAP);
    CHECK_EQ(fd, -1);
    CHECK_EQ(janus_io_send_handle(ends[0], ends[1]), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_io_receive_handle(ends[1], NULL, &passed), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK); /* nothing happened to it */
    return 0;
}

static int64_t host_of_descriptors(void *argument)
{
    struct yard yard = {.root = caps_root()};
    (void)argument;
    CHECK_EQ(run_plugin(&yard, release_and_pass, NULL), JANUS_OK);
    return 0;
}

TEST("without net.adopt no descriptor leaves its handle or travels, where nothing would count it")
{
    RIG_REAL("there are no descriptors");
    in_sovereign(host_of_descriptors);
}

struct hoard {
    int          handles;
    janus_status last;
};

static int64_t hoard_pipes(void *argument)
{
    struct hoard *hoard = argument;
    janus_io      ends[2];
    while ((hoard->last = janus_io_pipe(NULL, ends)) == JANUS_OK) hoard->handles += 2;
    JANUS_IGNORE(janus_sleep(3600 * 1000 * rig_ms)); /* it keeps them */
    return 0;
}

static int64_t open_some(void *argument)
{
    const struct hoard *hoard = argument;
    janus_io            ends[2];
    while (hoard->last == JANUS_OK) CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_io_pipe(NULL, ends), JANUS_OK);
    return 0;
}

static int64_t host_of_hoard(void *argument)
{
    janus_nursery good, bad;
    CHECK_EQ(janus_nursery_open(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&bad, JANUS_NURSERY_OPTIONS(.budget = &rich)), JANUS_OK);
    CHECK_EQ(janus_spawn(&bad, hoard_pipes, argument), JANUS_OK);
    CHECK_EQ(janus_spawn(&good, open_some, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&bad), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&bad, NULL), JANUS_CANCELLED);
    return janus_nursery_end(&good, NULL);
}

TEST("a pool that opens all it can leaves most of the process's descriptors to others")
{
    enum { DESCRIPTORS = 400 };
    struct rlimit before, few = {DESCRIPTORS, DESCRIPTORS};
    struct hoard  hoard = {.handles = 0};
    RIG_REAL("there are no descriptors");
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), host_of_hoard, &hoard, NULL),
             JANUS_OK);
    CHECK_EQ(hoard.last, JANUS_HANDLE_LIMIT);
    CHECK_EQ(hoard.handles, DESCRIPTORS / 4);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Signals. */

static int64_t release_signal(void *argument)
{
    CHECK_EQ(janus_signal_release(SIGHUP), *(janus_status *)argument);
    return 0;
}

static bool is_caught(void)
{
    struct sigaction now;
    CHECK_EQ(sigaction(SIGHUP, NULL, &now), 0);
    return now.sa_handler != SIG_DFL;
}

static int64_t wait_for_signal(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_signal_wait(SIGHUP, JANUS_IO_NEVER), JANUS_CANCELLED);
    return 0;
}

static int64_t host_of_signals(void *argument)
{
    struct yard   yard = {.root = caps_root()};
    janus_status  refused = JANUS_NO_PROCESS_CAP, nobody = JANUS_STATE;
    janus_nursery outer, n;
    (void)argument;
    CHECK_EQ(run_plugin(&yard, release_signal, &refused), JANUS_OK);
    CHECK(is_caught());
    CHECK_EQ(
        janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(yard.root, 20),
                                                         .process_cap = process_cap(yard.root))),
        JANUS_OK);
    CHECK_EQ(janus_signal_release(SIGHUP), JANUS_OK); /* what the test caught */
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_for_signal, NULL), JANUS_OK);
    while (!is_caught()) JANUS_IGNORE(janus_yield());
    CHECK_EQ(run_plugin(&yard, release_signal, &nobody), JANUS_OK); /* with the right */
    CHECK(is_caught());
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return janus_nursery_end(&outer, NULL);
}

TEST("a plugin without process.signal releases no signal, and one with it ends nobody's wait")
{
    RIG_REAL("the handlers are the process's");
    CHECK_EQ(janus_signal_catch(SIGHUP, NULL), JANUS_OK);
    in_sovereign(host_of_signals);
    CHECK(!is_caught());
}

/* Addresses. */

struct letter {
    janus_io      from;
    janus_address to;
};

static int64_t send_letter(void *argument)
{
    struct letter *letter = argument;
    return janus_datagram_send(letter->from, "x", 1, &letter->to);
}

static janus_io open_at(unsigned port, janus_address *at)
{
    char     text[32];
    janus_io io;
    int      process = getpid();
    (void)snprintf(text, sizeof text, "127.%d.%d.%d:%u", 1 + process / 250 / 250 % 250,
                   process / 250 % 250, 1 + process % 250, port);
    CHECK_EQ(janus_address_parse(text, at), JANUS_OK);
    CHECK_EQ(janus_datagram_open(at, 0, NULL, &io), JANUS_OK);
    return io;
}

/* The sender lacks a syscall when its address was checked, and waits. */
static void send_changed(const janus_authority *root, struct letter *letter)
{
    const janus_budget pool = {1 << 20, 1 << 16, 1, 0, 10}, none = {.ops = 1000},
                       one = {.syscalls = 1};
    janus_exhausted child;
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(root, 9), .budget = &pool,
                                           .budget_cap = caps_budget(
                                               root, JANUS_RIGHT_BUDGET_REQUEST, 1 << 20, 1 << 20),
                                           .net_cap = net_cap(root, "127.0.0.0/8:8000-8999",
                                                              JANUS_RIGHTS_ALL),
                                           .exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, send_letter, letter, JANUS_SPAWN_OPTIONS(.budget = &none), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    letter->to.port = 9007;
    CHECK_EQ(janus_nursery_recharge(&n, child.task, one), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
}

static int64_t host_of_letters(void *argument)
{
    const janus_authority *root = caps_root();
    janus_nursery          outer;
    janus_address          allowed, forbidden;
    char                   byte = 0;
    size_t                 got = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &outer,
                 JANUS_NURSERY_OPTIONS(.net_cap = net_cap(root, "127.0.0.0/8", JANUS_RIGHTS_ALL))),
             JANUS_OK);
    janus_io      near = open_at(8007, &allowed), far = open_at(9007, &forbidden);
    struct letter letter = {.to = allowed};
    CHECK_EQ(janus_datagram_open(NULL, JANUS_FAMILY_IPV4, NULL, &letter.from), JANUS_OK);
    send_changed(root, &letter);
    CHECK_EQ(janus_io_set_deadline(far, JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_datagram_receive(far, &byte, 1, &got, NULL, NULL), JANUS_DEADLINE);
    CHECK_EQ(janus_datagram_receive(near, &byte, 1, &got, NULL, NULL), JANUS_OK);
    return janus_nursery_end(&outer, NULL);
}

TEST("an address that a plugin changes after its check is not used")
{
    if (rig_simulated()) SKIP("simulated: a datagram may be lost");
    in_sovereign(host_of_letters);
}

/* Budgets. */

static janus_io given[2], given_file, given_process;

static int64_t write_in_helper(void *argument)
{
    return *(janus_status *)argument = janus_io_write(given[0], "x", 1, NULL);
}

static void write_in_callback(void *argument) { (void)write_in_helper(argument); }

static int64_t write_elsewhere(void *argument)
{
    janus_status status = JANUS_OK;
    janus_token *token;
    int64_t      result;
    (void)argument;
    CHECK_EQ(janus_blocking(write_in_helper, &status, &result), JANUS_OK); /* the last syscall */
    CHECK_EQ(status, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, write_in_callback, &status, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(status, JANUS_STATE);
    janus_token_release(token);
    return 0;
}

static int64_t host_of_writers(void *argument)
{
    const janus_budget one = {1 << 24, 1 << 20, 10, 1000, 1};
    struct yard        yard = {.root = caps_root(), .budget = &one};
    char               byte;
    size_t             got;
    (void)argument;
    CHECK_EQ(janus_io_pair(NULL, given), JANUS_OK);
    CHECK_EQ(run_plugin(&yard, write_elsewhere, NULL), JANUS_OK);
    CHECK_EQ(janus_io_try_read(given[1], &byte, 1, &got), JANUS_WOULD_WAIT);
    return 0;
}

TEST("a plugin without syscalls writes nothing in a blocking call, and nothing in a callback")
{
    in_sovereign(host_of_writers);
}

/* A question to the system, or a deed. Each must be stopped by a budget without syscalls. */
#define QUESTIONS(X)                                                                               \
    X(janus_io_local(given[0], &address))                                                          \
    X(janus_io_peer(given[0], &address))                                                           \
    X(janus_io_credentials(given[0], &credentials))                                                \
    X(janus_io_standard(1, NULL, &io))                                                             \
    X(janus_io_adopt(1, NULL, &io))                                                                \
    X(janus_io_wait_fd(1, JANUS_IO_WRITE, 1, NULL))                                                \
    X(janus_io_pair(NULL, pair))                                                                   \
    X(janus_io_send_handle(given[0], given[1]))                                                    \
    X(janus_resolve("localhost", "80", &address, 1, &got))                                         \
    X(janus_datagram_open(NULL, JANUS_FAMILY_IPV4, NULL, &io))                                     \
    X(janus_file_seek(given_file, 0))                                                              \
    X(janus_file_inspect(given_file, &file))                                                       \
    X(janus_dir_inspect(nowhere, "/", &file))                                                      \
    X(janus_dir_make(nowhere, "/", 0))                                                             \
    X(janus_process_signal(given_process, 0))                                                      \
    X(janus_process_wait(given_process, &end))                                                     \
    X(janus_process_start("/bin/true", arguments, NULL, &io, NULL))                                \
    X(janus_signal_catch(SIGHUP, NULL))                                                            \
    X(janus_signal_raise(SIGURG))                                                                  \
    X(janus_signal_wait(SIGHUP, 1))

static const char *const arguments[] = {"sleep", "1000", NULL};

static int64_t ask(void *argument)
{
    janus_file_info   file = JANUS_FILE_INFO();
    janus_address     address;
    janus_credentials credentials;
    janus_process_end end;
    janus_io          io, pair[2];
    size_t            got;
    int               which = *(int *)argument, at = 0;
#define X(call)                                                                                    \
    if (at++ == which) {                                                                           \
        janus_status status = call;                                                                \
        printf("# %s returned %s\n", #call, janus_status_name(status));                            \
        return JANUS_OK;                                                                           \
    }
    QUESTIONS(X)
#undef X
    return JANUS_CLOSED; /* no more */
}

static int64_t host_of_questions(void *argument)
{
    const janus_budget     dry = {1 << 24, 1 << 20, 10, 1000, 0};
    const janus_authority *root = caps_root();
    struct yard            yard = {.root = root,
                                   .net = net_cap(root, "all", JANUS_RIGHTS_ALL),
                                   .file = file_cap(root, 100),
                                   .process = process_cap(root),
                                   .budget = &dry};
    janus_nursery          n;
    janus_status           status = JANUS_BUDGET_EXHAUSTED;
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.net_cap = yard.net, .file_cap = yard.file,
                                                     .process_cap = yard.process)),
        JANUS_OK);
    CHECK_EQ(janus_io_pair(NULL, given), JANUS_OK);
    CHECK_EQ(janus_file_open(nowhere, "/proc/self/stat", JANUS_OPEN_READ, NULL, &given_file),
             JANUS_OK);
    CHECK_EQ(janus_process_start("/bin/sleep", arguments, NULL, &given_process, NULL), JANUS_OK);
    int which = 0;
    for (; status == JANUS_BUDGET_EXHAUSTED; which++) status = run_plugin(&yard, ask, &which);
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK_EQ(which, 21);
    return janus_nursery_end(&n, NULL);
}

TEST("a plugin without syscalls is stopped at each call that asks the system")
{
    RIG_REAL("there are no descriptors and processes");
    in_sovereign(host_of_questions);
}

/* Files. */

static char folder[64];

static void write_file(const char *name, const char *text)
{
    char  path[128];
    FILE *file;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK((file = fopen(path, "we")) != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

static void open_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/janusrt-outside-%d", getpid());
    CHECK_EQ(mkdir(folder, 0700), 0);
}

static void remove_folder(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_EQ(system(command), 0);
}

static int64_t replace_file(void *argument)
{
    janus_io mine, theirs;
    (void)argument;
    CHECK_EQ(janus_dir_open(folder, JANUS_RIGHT_FILE_REMOVE, NULL, &mine), JANUS_OK);
    CHECK_EQ(janus_dir_open(folder, JANUS_RIGHT_FILE_CREATE, NULL, &theirs), JANUS_OK);
    CHECK_EQ(janus_file_remove(theirs, "precious"), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_rename(mine, "bad", theirs, "precious", false), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_file_rename(mine, "bad", theirs, "precious", true), JANUS_EXISTS);
    CHECK_EQ(janus_file_rename(mine, "bad", theirs, "new", true), JANUS_OK);
    return 0;
}

static janus_entry *files_plugin;

static int64_t host_of_files(void *argument)
{
    struct yard yard = {.root = caps_root()};
    (void)argument;
    yard.file = file_cap(yard.root, 8);
    CHECK_EQ(run_plugin(&yard, files_plugin, NULL), JANUS_OK);
    return 0;
}

TEST("a rename removes a file only with file.remove there")
{
    open_folder();
    write_file("precious", "p");
    write_file("bad", "b");
    files_plugin = replace_file;
    in_sovereign(host_of_files);
    remove_folder();
}

static int64_t write_to_output(void *argument)
{
    janus_io io;
    size_t   done = 0;
    (void)argument;
    CHECK_EQ(janus_io_standard(1, NULL, &io), JANUS_OK);
    CHECK_EQ(janus_io_write(io, "0123456", 7, &done), JANUS_OK);
    CHECK_EQ(janus_io_write(io, "0123456", 7, &done), JANUS_CAP_LIMIT);
    CHECK_EQ(done, 0);
    CHECK_EQ(janus_io_try_write(io, "01234", 5, &done), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_io_write(io, "012", 3, &done), JANUS_OK);
    return 0;
}

static int64_t host_of_output(void *argument)
{
    struct yard yard = {.root = caps_root()};
    (void)argument;
    yard.file = file_cap(yard.root, 10);
    CHECK_EQ(run_plugin(&yard, write_to_output, NULL), JANUS_OK);
    return 0;
}

TEST("bytes to a standard output that is a pipe count against max_written")
{
    int  ends[2], old = dup(1);
    char bytes[32];
    RIG_REAL("there are no descriptors");
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    (void)fflush(stdout);
    CHECK_EQ(dup2(ends[1], 1), 1);
    in_sovereign(host_of_output);
    CHECK_EQ(dup2(old, 1), 1);
    (void)close(old);
    (void)close(ends[1]);
    CHECK_EQ(read(ends[0], bytes, sizeof bytes), 10);
    (void)close(ends[0]);
}

static int64_t read_large(void *argument)
{
    static char    bytes[1 << 20];
    janus_io_piece pieces[64];
    janus_io       dir = *(janus_io *)argument, file;
    size_t         got = 0;
    for (int i = 0; i < 64; i++) pieces[i] = (janus_io_piece){bytes, sizeof bytes};
    CHECK_EQ(janus_file_open(dir, "large", JANUS_OPEN_READ, NULL, &file), JANUS_OK);
    CHECK_EQ(janus_io_read_full(file, bytes, sizeof bytes, &got), JANUS_OK); /* into memory */
    CHECK_EQ(janus_file_seek(file, 0), JANUS_OK);
    CHECK_EQ(janus_io_readv(file, pieces, 64, &got), JANUS_OK);
    CHECK(got <= 256 << 10);
    CHECK_EQ(janus_file_read_at(file, 0, bytes, sizeof bytes, &got), JANUS_OK);
    CHECK(got <= 256 << 10);
    return 0;
}

static int64_t host_of_reader(void *argument)
{
    struct yard   yard = {.root = caps_root()};
    janus_nursery n;
    janus_io      dir;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.file_cap = file_cap(yard.root, 0))),
             JANUS_OK);
    CHECK_EQ(janus_dir_open(folder, JANUS_RIGHT_FILE_READ, NULL, &dir), JANUS_OK);
    CHECK_EQ(run_plugin(&yard, read_large, &dir), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("one read copies at most a slice on its worker, however large the buffers are")
{
    char path[128];
    open_folder();
    write_file("large", "l");
    (void)snprintf(path, sizeof path, "%s/large", folder);
    CHECK_EQ(truncate(path, 1 << 20), 0);
    in_sovereign(host_of_reader);
    remove_folder();
}

static int64_t open_itself(void *argument)
{
    const uint32_t both = JANUS_OPEN_READ | JANUS_OPEN_WRITE;
    janus_io       file, dir;
    (void)argument;
    CHECK_EQ(janus_file_open(nowhere, "/proc/self/mem", both, NULL, &file), JANUS_DENIED);
    CHECK_EQ(janus_file_open(nowhere, "/dev/stdin", JANUS_OPEN_READ, NULL, &file), JANUS_DENIED);
    CHECK_EQ(janus_dir_open("/proc", JANUS_RIGHT_FILE_READ, NULL, &dir), JANUS_OK);
    CHECK_EQ(janus_file_open(dir, "self/mem", JANUS_OPEN_READ, NULL, &file), JANUS_DENIED);
    CHECK_EQ(janus_file_open(dir, "self/stat", JANUS_OPEN_READ, NULL, &file), JANUS_OK);
    return 0;
}

TEST("under a file capability the process's memory and descriptors are no files")
{
    files_plugin = open_itself;
    in_sovereign(host_of_files);
}

/* Processes. */

static int64_t start_detached(void *argument)
{
    janus_io process;
    (void)argument;
    CHECK_EQ(janus_process_start("/bin/true", arguments, JANUS_PROCESS_OPTIONS(.detached = true),
                                 &process, NULL),
             JANUS_CAP_LIMIT);
    return 0;
}

static int64_t host_of_detached(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &rich)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, start_detached, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("in a pool of :service no process is detached from the limit that counts it")
{
    RIG_REAL("there are no processes");
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), host_of_detached, NULL, NULL),
             JANUS_OK);
}
