/* SPDX-License-Identifier: MIT */
/* The system's troubles: no descriptors left, SIGPIPE, fork, exec. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* SIGPIPE. */

static atomic_int signals;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

static void break_all(void)
{
    for (int i = 0; i < 3; i++) {
        janus_io     ends[2];
        janus_status status = JANUS_OK;
        if (i == 0) wire_tcp(ends);
        if (i == 1) wire_pair(ends);
        if (i == 2) CHECK_EQ(janus_io_pipe(NULL, ends), JANUS_OK);
        CHECK_EQ(janus_io_close(ends[0]), JANUS_OK); /* of a pipe the reader */
        for (int k = 0; k < 1000 && status == JANUS_OK; k++) {
            status = janus_io_write(ends[1], "x", 1, NULL);
            if (rig_simulated()) JANUS_IGNORE(janus_sleep(rig_ms)); /* a reset travels */
        }
        CHECK(status == JANUS_BROKEN || status == JANUS_RESET);
        CHECK_EQ(janus_io_write(ends[1], "x", 1, NULL), JANUS_BROKEN);
        CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    }
}

static int64_t break_in_task(void *argument)
{
    (void)argument;
    break_all();
    return 0;
}

static void *break_in_thread(void *argument)
{
    break_all();
    return argument;
}

TEST("a write that nobody reads returns BROKEN, and SIGPIPE never comes")
{
    struct sigaction action = {.sa_handler = count_signal}, before;
    pthread_t        thread;
    CHECK_EQ(sigaction(SIGPIPE, &action, &before), 0);
    rig_all(break_in_task, NULL, 10);
    if (!rig_simulated()) {
        break_all();
        CHECK_EQ(pthread_create(&thread, NULL, break_in_thread, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_EQ(atomic_load(&signals), 0);
    CHECK_EQ(sigaction(SIGPIPE, &before, NULL), 0);
}

/* No descriptors left. */

enum { SPARE = 256 };

struct shortage {
    janus_address at;
    janus_io      listener;
    int           hoard[SPARE];
    int           hoarded, client;
    atomic_int    accepted, done;
    struct rlimit before;
};

static int raw_connect(const janus_address *at)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(at->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void use_up(struct shortage *all)
{
    struct rlimit less;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &all->before), 0);
    less = all->before;
    less.rlim_cur = (rlim_t)wire_descriptors() + SPARE / 2;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
    all->hoarded = 0;
    int fd;
    while (all->hoarded < SPARE && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        all->hoard[all->hoarded++] = fd;
    }
    CHECK(all->hoarded < SPARE);
    CHECK_EQ(errno, EMFILE);
}

static void give_back(struct shortage *all)
{
    while (all->hoarded > 0) close(all->hoard[--all->hoarded]);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &all->before), 0);
}

static int64_t accept_in_need(void *argument)
{
    struct shortage *all = argument;
    janus_io         made;
    CHECK_EQ(janus_accept(all->listener, &made, NULL), JANUS_OK);
    atomic_store(&all->accepted, 1);
    CHECK_EQ(janus_io_close(made), JANUS_OK);
    return 0;
}

static uint64_t cpu_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int64_t run_out(void *argument)
{
    struct shortage *all = argument;
    janus_status     status;
    janus_io         own[2];
    wire_pair(own);
    all->listener = wire_listen(&all->at);
    /* The acceptor waits once before, so that its worker has a set. */
    CHECK_EQ(janus_io_set_deadline(all->listener, JANUS_IO_READ, janus_now_ns() + rig_ms),
             JANUS_OK);
    janus_io made;
    CHECK_EQ(janus_accept(all->listener, &made, NULL), JANUS_DEADLINE);
    CHECK_EQ(janus_io_set_deadline(all->listener, JANUS_IO_READ, JANUS_IO_NEVER), JANUS_OK);
    for (int round = 0; round < 2; round++) {
        atomic_store(&all->accepted, 0);
        all->client = raw_connect(&all->at);
        use_up(all);
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn(n, accept_in_need, all), JANUS_OK);
            uint64_t cpu = cpu_time();
            CHECK_EQ(janus_sleep(250 * rig_ms), JANUS_OK); /* it tries twice or so, and waits */
            CHECK(cpu_time() - cpu < 100 * rig_ms);
            CHECK_EQ(atomic_load(&all->accepted), 0);
            wire_put(own[0], "o", 1); /* other connections go on */
            CHECK_EQ(wire_get(own[1]), 'o');
            if (round == 0) {
                close(all->hoard[--all->hoarded]); /* nobody tells: it tries again by itself */
            } else {
                CHECK_EQ(janus_io_close(own[1]), JANUS_OK); /* wakes it */
            }
        }
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(atomic_load(&all->accepted), 1);
        give_back(all);
        close(all->client);
    }
    CHECK_EQ(janus_io_close(own[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(all->listener), JANUS_OK);
    return 0;
}

TEST("an accept without descriptors waits, and goes on after a close or by itself")
{
    RIG_REAL("the process's limit of descriptors");
    static struct shortage all;
    if (RIG_SLOW) SKIP("sanitizers need descriptors");
    rig_run(1, run_out, &all, 1);
    rig_run(2, run_out, &all, 1);
}

static void *accept_in_thread(void *argument)
{
    struct shortage *all = argument;
    janus_io         made;
    janus_status     told = janus_accept(all->listener, &made, NULL);
    if (told == JANUS_OK) CHECK_EQ(janus_io_close(made), JANUS_OK);
    atomic_store(&all->accepted, told == JANUS_OK ? 1 : told == JANUS_CLOSED ? 2 : 3);
    return NULL;
}

TEST("an accept of a plain thread without descriptors waits until one is free, or the close")
{
    RIG_REAL("the process's limit of descriptors");
    static struct shortage all;
    if (RIG_SLOW) SKIP("sanitizers need descriptors");
    for (int round = 0; round < 2; round++) {
        pthread_t     thread;
        janus_io      own[2];
        janus_io_info info = JANUS_IO_INFO();
        uint64_t      limit = janus_now_ns() + rig_patience;
        wire_pair(own);
        all.listener = wire_listen(&all.at);
        all.client = raw_connect(&all.at);
        use_up(&all);
        CHECK_EQ(pthread_create(&thread, NULL, accept_in_thread, &all), 0);
        do {
            CHECK_EQ(janus_io_inspect(all.listener, &info), JANUS_OK);
            CHECK(janus_now_ns() < limit);
        } while (info.waits != JANUS_IO_READ);
        CHECK_EQ(janus_io_close(round == 0 ? all.listener : own[1]), JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(atomic_load(&all.accepted), round == 0 ? 2 : 1);
        give_back(&all);
        close(all.client);
        if (round == 0) CHECK_EQ(janus_io_close(own[1]), JANUS_OK);
        if (round == 1) CHECK_EQ(janus_io_close(all.listener), JANUS_OK);
        CHECK_EQ(janus_io_close(own[0]), JANUS_OK);
    }
}

static int64_t makes_nothing(void *argument)
{
    struct shortage *all = argument;
    janus_address    at;
    janus_io         made = {{0, 0}}, ends[2];
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
    use_up(all);
    CHECK_EQ(janus_listen(&at, NULL, &made), JANUS_FULL);
    CHECK_EQ(janus_connect(&at, NULL, &made), JANUS_FULL);
    CHECK_EQ(janus_io_pair(NULL, ends), JANUS_FULL);
    CHECK_EQ(janus_io_pipe(NULL, ends), JANUS_FULL);
    give_back(all);
    CHECK_EQ(made.opaque[0], 0);
    CHECK_EQ(janus_listen(&at, NULL, &made), JANUS_OK);
    return janus_io_close(made);
}

TEST("without descriptors listen, connect, pair and pipe return FULL and leave nothing")
{
    RIG_REAL("the process's limit of descriptors");
    static struct shortage all;
    if (RIG_SLOW) SKIP("sanitizers need descriptors");
    int before = wire_descriptors();
    rig_all(makes_nothing, &all, 1);
    CHECK_EQ(wire_descriptors(), before);
}

/* Fork. */

static int64_t forks(void *argument)
{
    (void)argument;
    janus_io ends[2];
    char     byte;
    size_t   got;
    wire_tcp(ends);
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_DEADLINE); /* it is in a set */
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ, JANUS_IO_NEVER), JANUS_OK);
    pid_t child = fork();
    if (child == 0) {
        janus_address at;
        janus_io      other;
        CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_STATE);
        CHECK_EQ(janus_io_write(ends[1], "x", 1, NULL), JANUS_STATE);
        CHECK_EQ(janus_io_wait(ends[1], JANUS_IO_READ), JANUS_STATE);
        CHECK_EQ(janus_io_close(ends[1]), JANUS_STATE);
        CHECK_EQ(janus_address_parse("127.0.0.1:0", &at), JANUS_OK);
        CHECK_EQ(janus_listen(&at, NULL, &other), JANUS_STATE);
        _exit(0);
    }
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    wire_put(ends[0], "p", 1); /* the parent is undisturbed */
    CHECK_EQ(wire_get(ends[1]), 'p');
    wire_close(ends);
    return 0;
}

TEST("in the child of a fork every call returns STATE, and the parent goes on")
{
    RIG_REAL("processes");
    if (RIG_SLOW) SKIP("sanitizers dislike forks of many threads");
    rig_all(forks, NULL, 3);
}

/* Exec: nothing of ours is inherited. `argument`: descriptors that were there before. */
static int64_t closed_by_exec(void *argument)
{
    const bool *others = argument;
    janus_io    ends[2], pipe[2];
    char        byte;
    size_t      got;
    wire_tcp(ends);
    CHECK_EQ(janus_io_pipe(NULL, pipe), JANUS_OK);
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_DEADLINE); /* sets exist */
    DIR           *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        char path[300], target[256];
        int  fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd >= SPARE || others[fd]) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = 0;
        bool ours = strstr(target, "socket:") != NULL || strstr(target, "pipe:") != NULL ||
                    strstr(target, "eventpoll") != NULL || strstr(target, "eventfd") != NULL;
        if (ours) CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    }
    closedir(folder);
    wire_close(ends);
    wire_close(pipe);
    return 0;
}

TEST("every descriptor of the library is closed by exec")
{
    RIG_REAL("descriptors of the system");
    bool others[SPARE];
    for (int fd = 0; fd < SPARE; fd++) others[fd] = fcntl(fd, F_GETFD) >= 0;
    rig_all(closed_by_exec, others, 1);
}

static int64_t no_descriptors(void *argument)
{
    *(int *)argument = wire_descriptors();
    return 0;
}

TEST("a program without I/O has no set")
{
    RIG_REAL("descriptors of the system");
    int inside = 0, before = wire_descriptors();
    rig_run(2, no_descriptors, &inside, 1);
    CHECK_EQ(inside, before);
}

/* As many handles as may live. */

static void ask(int fd, char byte)
{
    char got = 0;
    CHECK_EQ(send(fd, &byte, 1, 0), 1);
    CHECK_EQ(recv(fd, &got, 1, 0), 1);
    CHECK_EQ(got, byte);
}

static void *visit_all(void *argument)
{
    enum { VISITORS = 8 };
    const janus_address *at = argument;
    int                  fds[VISITORS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < VISITORS; i++) fds[i] = raw_connect(at);
        for (int i = 0; i < VISITORS; i++) { /* some of them wait in the backlog */
            ask(fds[i], 'a');
            close(fds[i]);
        }
    }
    return NULL;
}

static int64_t serve_many(void *argument)
{
    janus_address at;
    janus_io      listener = wire_listen(&at);
    janus_status  status;
    pthread_t     thread;
    (void)argument;
    CHECK_EQ(pthread_create(&thread, NULL, visit_all, &at), 0);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, wire_serve_echo, &listener), JANUS_OK);
        while (pthread_tryjoin_np(thread, NULL) != 0) JANUS_IGNORE(janus_sleep(rig_ms));
        CHECK_EQ(janus_io_close(listener), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

TEST("a server with as many connections as handles may live goes on when one ends")
{
    RIG_REAL("the clients use the system's calls");
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_handles = 3));
        rig_do(scheduler, serve_many, NULL);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}
