/* SPDX-License-Identifier: MIT */
/* Measurements: memory that stays flat, an idle scheduler that does nothing, few wake-ups. */
#include "rig.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Memory. */

static long resident_kib(void)
{
    long  total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%ld %ld", &total, &pages), 2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

enum { MILLION = RIG_SLOW ? 20000 : 1000000 };

static int64_t spawn_one_by_one(void *argument)
{
    atomic_int   *count = argument;
    long          before = 0;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < (int)rig_few(MILLION); i++) {
        if (i == (int)rig_few(MILLION / 10)) before = resident_kib();
        CHECK_EQ(janus_spawn(&n, count_me, count), JANUS_OK);
        while (atomic_load(count) <= i) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    long after = resident_kib();
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(after - before < (RIG_SLOW ? 16384 : 1024));
    return 0;
}

TEST("a million children one after another in one nursery need no more memory than a few")
{
#if JRT_TSAN
    SKIP("ThreadSanitizer's own memory grows with what it has seen");
#endif
    for (uint32_t workers = 1; workers <= 2; workers++) {
        atomic_int count = 0;
        rig_run(workers, spawn_one_by_one, &count, 1);
        CHECK_EQ(count, (int)rig_few(MILLION));
    }
}

static int64_t join_one_by_one(void *argument)
{
    (void)argument;
    long          before = 0;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < (int)rig_few(MILLION / 5); i++) {
        janus_task_id id;
        if (i == (int)rig_few(MILLION / 50)) before = resident_kib();
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    }
    long after = resident_kib();
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(after - before < (RIG_SLOW ? 16384 : 1024));
    return 0;
}

TEST("joined children leave no memory behind")
{
#if JRT_TSAN
    SKIP("ThreadSanitizer's own memory grows with what it has seen");
#endif
    rig_run(1, join_one_by_one, NULL, 1);
}

/* Idle. */

struct quiet {
    int  threads, asleep;
    long switches;
};

/* One worker's thread, by its /proc entry; others are left out. */
static void look_at(const char *id, struct quiet *quiet)
{
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    bool worker = false;
    while (fgets(line, sizeof line, file) != NULL) {
        long count;
        char state;
        int  number;
        if (sscanf(line, "Name: janus-%d", &number) == 1) worker = true;
        if (!worker) break;
        if (sscanf(line, "State: %c", &state) == 1) quiet->asleep += state == 'S';
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1) quiet->switches += count;
        if (sscanf(line, "nonvoluntary_ctxt_switches: %ld", &count) == 1) quiet->switches += count;
    }
    quiet->threads += worker;
    fclose(file);
}

static struct quiet look_at_all(void)
{
    struct quiet   quiet = {0};
    struct dirent *entry;
    DIR           *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') look_at(entry->d_name, &quiet);
    }
    closedir(folder);
    return quiet;
}

static uint64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int64_t some_work(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    CHECK_EQ(janus_blocking(nothing, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* A second without work: measured, not waited for. */
static void check_quiet(int workers)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    int      calm = 0;
    while (calm < 3 && janus_now_ns() < limit)
        calm = look_at_all().asleep == workers ? calm + 1 : 0;
    struct quiet before = look_at_all();
    uint64_t     cpu = cpu_ns();
    CHECK_EQ(before.threads, workers);
    CHECK_EQ(before.asleep, workers);
    CHECK_EQ(poll(NULL, 0, 1000), 0);
    cpu = cpu_ns() - cpu;
    struct quiet after = look_at_all();
    /* With more workers than processors, the last patrol may still have been under way. */
    CHECK(after.switches - before.switches <= (workers > 1 ? 1 : 0));
    if (!RIG_SLOW) CHECK(cpu < rig_ms);
}

TEST("idle workers are not switched to once in a second and use no time")
{
#if JRT_TSAN
    SKIP("with ThreadSanitizer waits are short, so that handlers of signals run");
#endif
    RIG_REAL("threads of the system are looked at");
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        for (int i = 0; i < 10; i++) rig_do(scheduler, some_work, NULL);
        check_quiet((int)workers);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

TEST("workers whose tasks all wait for a far deadline use no time")
{
#if JRT_TSAN
    SKIP("with ThreadSanitizer waits are short, so that handlers of signals run");
#endif
    RIG_REAL("threads of the system are looked at");
    atomic_int       asleep = 0;
    janus_nursery    n;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    for (int i = 0; i < 50; i++) CHECK_EQ(janus_spawn(&n, sleep_an_hour, &asleep), JANUS_OK);
    while (atomic_load(&asleep) < 50) rig_spin();
    check_quiet(2);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* While one worker has queued tasks that it alone may run, the other has nothing to do. */
static int64_t hold_with_queue(void *argument)
{
    struct gate  *gate = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    atomic_store(&gate->arrived, 1);
    while (!atomic_load(&gate->open)) (void)poll(NULL, 0, 10);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("without stealing a worker does not look at another's queue")
{
    RIG_REAL("threads of the system are looked at");
    if (RIG_SLOW) SKIP("measures time");
    struct gate      gate = {0};
    janus_nursery    n;
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .no_stealing = true));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, hold_with_queue, &gate), JANUS_OK);
    while (!atomic_load(&gate.arrived)) rig_spin();
    uint64_t cpu = cpu_ns();
    CHECK_EQ(poll(NULL, 0, 100), 0);
    cpu = cpu_ns() - cpu;
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK(cpu < 30 * rig_ms);
}

/* Wake-ups. */

static int64_t nap(void *argument)
{
    (void)argument;
    return janus_sleep(10 * rig_ms);
}

TEST("a thread that waits for a nursery is woken at most twice")
{
#if JRT_TSAN
    SKIP("with ThreadSanitizer waits are short, so that handlers of signals run");
#endif
    RIG_REAL("threads of the system are looked at");
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < 5; i++) {
        struct rusage before, after;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        for (int k = 0; k < 20; k++) CHECK_EQ(janus_spawn(&n, nap, NULL), JANUS_OK);
        getrusage(RUSAGE_THREAD, &before);
        CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
        getrusage(RUSAGE_THREAD, &after);
        CHECK(after.ru_nvcsw - before.ru_nvcsw <= 2);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}
