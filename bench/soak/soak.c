/* SPDX-License-Identifier: MIT */
/*
 * A soak: requests of all kinds by chance (talk.h), and the server's memory, descriptors and tasks
 * must not grow.
 *
 *     soak MINUTES SEED
 *
 * The run has rounds. After each round the client closes all connections and waits until the server
 * is at rest. Then it reads the memory (VmRSS + VmPTE), the descriptors, and the lines of a dump of
 * all tasks. The first rounds, for one minute or a quarter of the run, warm up. The last rest must
 * not have more descriptors or tasks than the first rest after them, and at most 2 % and 256 KiB
 * more memory. At the end a SIGTERM must stop the server.
 *
 * A day of 1000 requests a second has 86.4 million. The last line says which share of it this was.
 * The exit status is 0 if nothing grew.
 */
#include "talk.h"

#include "../bench.h"
#include "../net/process.h"
#include "../net/protocol.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 16,
    ROUNDS = 12,
    WORKERS = 2,
    SPARE_BYTES = 256 * 1024,
    SPARE_LINES = 4, /* of the server's own tasks, which come and go */
};

#define SECOND_NS UINT64_C(1000000000)
#define DAY 86.4e6

struct rest {
    double memory;
    long   descriptors, tasks;
};

static struct talk    talks[THREADS];
static uint64_t       until;
static struct process server;

static void *run_thread(void *argument)
{
    struct talk *talk = argument;
    while (bench_now_ns() < until) talk_act(talk);
    talk_close(talk);
    return NULL;
}

static void run_round(uint64_t ns)
{
    pthread_t threads[THREADS];
    until = bench_now_ns() + ns;
    for (int i = 0; i < THREADS; i++) {
        net_need(pthread_create(&threads[i], NULL, run_thread, &talks[i]) == 0, "pthread_create");
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static long count_descriptors(void)
{
    char path[64];
    long count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)server.pid);
    DIR *folder = opendir(path);
    net_need(folder != NULL, path);
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count - 2;
}

/* Waits until the server has used next to no CPU time for two seconds, or half a minute. */
static struct rest take_rest(void)
{
    struct timespec second = {.tv_sec = 1};
    uint64_t        before = process_cpu_ns(&server), now;
    struct rest     rest;
    for (int i = 0, calm = 0; i < 30 && calm < 4; i++, before = now) {
        nanosleep(&second, NULL);
        now = process_cpu_ns(&server);
        calm = now - before < SECOND_NS / 100 ? calm + 1 : 0;
    }
    rest.descriptors = count_descriptors();
    rest.memory = process_footprint(&server);
    rest.tasks = talk_ask(&talks[0], "/tasks");
    return rest;
}

static uint64_t sum_requests(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < THREADS; i++) sum += talks[i].requests;
    return sum;
}

static void tell_acts(void)
{
    uint64_t connections = 0, resets = 0;
    printf("acts:");
    for (int k = 0; talk_names[k] != NULL; k++) {
        uint64_t sum = 0;
        for (int i = 0; i < THREADS; i++) sum += talks[i].acts[k];
        printf(" %s %llu%s", talk_names[k], (unsigned long long)sum,
               talk_names[k + 1] == NULL ? "\n" : ",");
    }
    for (int i = 0; i < THREADS; i++) {
        connections += talks[i].connections;
        resets += talks[i].resets;
    }
    printf("connections: %llu, of which the client reset %llu\n", (unsigned long long)connections,
           (unsigned long long)resets);
}

/* Whether nothing grew. */
static bool judge(const struct rest *first, const struct rest *last)
{
    bool grew = false;
    if (last->descriptors > first->descriptors) {
        printf("descriptors grew from %ld to %ld\n", first->descriptors, last->descriptors);
        grew = true;
    }
    if (last->tasks > first->tasks + SPARE_LINES) {
        printf("tasks grew from %ld to %ld lines of a dump\n", first->tasks, last->tasks);
        grew = true;
    }
    if (last->memory > first->memory * 1.02 + SPARE_BYTES) {
        printf("memory grew from %.0f to %.0f KiB\n", first->memory / 1024, last->memory / 1024);
        grew = true;
    }
    return !grew;
}

/* Whether a SIGTERM ends the server, and nothing was wrong. A sanitizer tells leaks that way. */
static bool stops(void)
{
    int status = 0;
    net_need(kill(server.pid, SIGTERM) == 0, "kill");
    net_need(waitpid(server.pid, &status, 0) == server.pid, "waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    printf("the server ended with status %d\n", status);
    return false;
}

static void prepare(const char *folder)
{
    char          path[128];
    struct rlimit limit;
    cpu_set_t     cores;
    net_need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    net_need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    snprintf(path, sizeof path, "%s/a.bin", folder);
    FILE *file = fopen(path, "w");
    net_need(file != NULL && ftruncate(fileno(file), TALK_FILE_BYTES) == 0 && fclose(file) == 0,
             path);
    net_need(setenv("SOAK_FOLDER", folder, 1) == 0, "setenv");
    net_need(sched_getaffinity(0, sizeof cores, &cores) == 0, "sched_getaffinity");
    process_start(&server, SOAK_SERVER, "http", WORKERS, &cores);
}

static bool run_all(double minutes)
{
    uint64_t    round_ns = (uint64_t)(minutes * 60 / ROUNDS * (double)SECOND_NS);
    double      warm_ns = 60 * (double)SECOND_NS, all_ns = minutes * 60 * (double)SECOND_NS;
    struct rest first = {.tasks = 0}, last = {.tasks = 0};
    int         warm = 0;
    if (warm_ns > all_ns / 4) warm_ns = all_ns / 4;
    printf("  seconds    requests  KiB at rest  descriptors  lines of tasks\n");
    for (int i = 0; i < ROUNDS; i++) {
        run_round(round_ns);
        last = take_rest();
        if (warm == 0 && (double)round_ns * (i + 1) >= warm_ns) {
            first = last;
            warm = i + 1;
        }
        printf("%9.0f %11llu %12.0f %12ld %15ld%s\n",
               (double)round_ns * (i + 1) / (double)SECOND_NS, (unsigned long long)sum_requests(),
               last.memory / 1024, last.descriptors, last.tasks,
               warm == i + 1 ? "  from here on nothing may grow" : "");
        fflush(stdout);
    }
    return judge(&first, &last);
}

int main(int argc, char **argv)
{
    char   folder[] = "/tmp/soak.XXXXXX", path[128];
    double minutes = argc == 3 ? strtod(argv[1], NULL) : 0;
    if (minutes <= 0) {
        fprintf(stderr, "usage: %s MINUTES SEED\n", argv[0]);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    net_need(mkdtemp(folder) != NULL, folder);
    prepare(folder);
    for (unsigned i = 0; i < THREADS; i++) {
        talk_open(&talks[i], server.port, strtoull(argv[2], NULL, 10) * THREADS + i);
    }
    bool is_good = run_all(minutes);
    tell_acts();
    is_good = stops() && is_good;
    snprintf(path, sizeof path, "%s/a.bin", folder);
    unlink(path);
    rmdir(folder);
    double requests = (double)sum_requests();
    printf("soak: %.2f million requests, %.1f %% of a day of 1000 a second: %s\n", requests / 1e6,
           requests / DAY * 100, is_good ? "nothing grew" : "FAILED");
    return is_good ? 0 : 1;
}
