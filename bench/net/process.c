/* SPDX-License-Identifier: MIT */
#include "process.h"

#include "protocol.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void process_choose_cores(unsigned workers, cpu_set_t *server, cpu_set_t *client)
{
    static cpu_set_t allowed;
    int              found = 0;
    if (CPU_COUNT(&allowed) == 0) {
        net_need(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "cannot see the cores");
    }
    *server = *client = allowed;
    if (workers > 1) return;
    CPU_ZERO(server);
    CPU_ZERO(client);
    for (size_t core = 0; core < CPU_SETSIZE && found < 2; core++) {
        if (CPU_ISSET(core, &allowed)) CPU_SET(core, found++ == 0 ? server : client);
    }
    net_need(found == 2, "two cores");
}

/* In the child. */
static void become(const char *path, const char *mode, unsigned workers, const cpu_set_t *cores,
                   int out)
{
    char count[16];
    snprintf(count, sizeof count, "%u", workers);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && sched_setaffinity(0, sizeof *cores, cores) == 0 &&
        dup2(out, STDOUT_FILENO) == STDOUT_FILENO) {
        execl(path, path, mode, count, (char *)NULL);
    }
    perror(path);
    _exit(1);
}

void process_start(struct process *process, const char *path, const char *mode, unsigned workers,
                   const cpu_set_t *cores)
{
    int ends[2];
    memset(process, 0, sizeof *process);
    net_need(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    process->pid = fork();
    net_need(process->pid >= 0, "fork");
    if (process->pid == 0) become(path, mode, workers, cores, ends[1]);
    close(ends[1]);
    FILE    *line = fdopen(ends[0], "r");
    unsigned port = 0;
    net_need(line != NULL, "fdopen");
    if (fscanf(line, "%u %31s %31s", &port, process->name, process->version) != 3) {
        fprintf(stderr, "%s does not start\n", path);
        exit(1);
    }
    fclose(line);
    process->port = (uint16_t)port;
    for (char *c = process->name; *c != 0; c++) {
        if (*c == '_') *c = ' ';
    }
    net_need(clock_getcpuclockid(process->pid, &process->clock) == 0, "clock_getcpuclockid");
}

void process_stop(struct process *process)
{
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
}

uint64_t process_cpu_ns(const struct process *process)
{
    struct timespec spent;
    net_need(clock_gettime(process->clock, &spent) == 0, "the CPU time of a server that ended");
    return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

double process_footprint(const struct process *process)
{
    char   path[64], line[256];
    size_t kib = 0, sum = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process->pid);
    FILE *file = fopen(path, "r");
    net_need(file != NULL, path);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmRSS: %zu", &kib) == 1) sum += kib;
        if (sscanf(line, "VmPTE: %zu", &kib) == 1) sum += kib;
    }
    fclose(file);
    return (double)sum * 1024;
}

/* The kernel's number of the tracepoint, or 0. */
static uint64_t tracepoint(void)
{
    static const char *const paths[] = {
        "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
        "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
    };
    unsigned id = 0;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0] && id == 0; i++) {
        FILE *file = fopen(paths[i], "r");
        if (file == NULL) continue;
        if (fscanf(file, "%u", &id) != 1) id = 0;
        fclose(file);
    }
    return id;
}

bool process_count_calls(struct process *process)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof attr};
    char                   path[64];
    attr.config = tracepoint();
    attr.inherit = 1;
    if (attr.config == 0) return false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    DIR *threads = opendir(path);
    net_need(threads != NULL, path);
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        if (entry->d_name[0] == '.' || process->counters == PROCESS_THREADS_MAX) continue;
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        int   fd = (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0) process->counter[process->counters++] = fd;
    }
    closedir(threads);
    return process->counters > 0;
}

uint64_t process_calls(struct process *process)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < process->counters; i++) {
        uint64_t count = 0;
        net_need(read(process->counter[i], &count, sizeof count) == sizeof count, "perf event");
        sum += count;
        close(process->counter[i]);
    }
    process->counters = 0;
    return sum;
}
