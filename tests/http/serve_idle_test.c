/* SPDX-License-Identifier: MIT */
/* What the server keeps for idle connections, measured by the kernel. */
#include "talk.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef __OPTIMIZE__
enum { OPTIMISED = 1 };
#else
enum { OPTIMISED = 0 };
#endif

enum { FEW = 160, MANY = 480, BATCH = 32, EACH_MAX = 5120 };

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, NULL, "Hello!", 6);
}

/* The resident bytes of this process. Other files of /proc show numbers that are not exact. */
static size_t resident(void)
{
    char   line[256];
    size_t kib = 0;
    FILE  *file = fopen("/proc/self/smaps_rollup", "r");
    CHECK(file != NULL);
    while (kib == 0 && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Rss: %zu", &kib) != 1) kib = 0;
    }
    CHECK_EQ(fclose(file), 0);
    return kib * 1024;
}

/* The client's ends are plain descriptors, so that the client has no memory for each. */
static void open_more(struct talk *talk, int *fds, int from, int to)
{
    for (int first = from; first < to; first += BATCH) {
        janus_io ios[BATCH];
        for (int i = 0; i < BATCH; i++) {
            ios[i] = talk_open(talk);
            talk_put(ios[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        for (int i = 0; i < BATCH; i++) {
            CHECK(strstr(talk_until(talk, ios[i], "Hello!"), "200") != NULL);
            CHECK_EQ(janus_io_release(ios[i], &fds[first + i]), JANUS_OK);
        }
    }
}

/* How many stacks are in use. Those of idle connections stay, those of their children do not. */
static size_t stacks(void)
{
    janus_scheduler_stacks_info info = JANUS_SCHEDULER_STACKS_INFO();
    CHECK_EQ(janus_scheduler_stacks_inspect(janus_scheduler_current(), &info), JANUS_OK);
    return info.stacks_used;
}

static void idle(struct talk *talk)
{
    int      fds[MANY];
    uint64_t limit = janus_now_ns() + rig_patience;
    open_more(talk, fds, 0, FEW);
    while (stacks() > FEW + BATCH + 16) {
        CHECK(janus_now_ns() < limit);
        CHECK_EQ(janus_sleep(20 * rig_ms), JANUS_OK);
    }
    size_t before = resident();
    open_more(talk, fds, FEW, MANY);
    while (resident() > before + (size_t)(MANY - FEW) * EACH_MAX) {
        CHECK(janus_now_ns() < limit);
        CHECK_EQ(janus_sleep(20 * rig_ms), JANUS_OK);
    }
    for (int i = 0; i < MANY; i++) CHECK_EQ(close(fds[i]), 0);
}

TEST("an idle connection that has had a request holds at most 5 KiB")
{
    struct rlimit descriptors;
    RIG_REAL("the kernel counts the pages");
    if (RIG_SLOW || !OPTIMISED) SKIP("frames are larger");
    if (sysconf(_SC_PAGESIZE) != 4096) SKIP("a page has more than 4 KiB");
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    descriptors.rlim_cur = descriptors.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    if (descriptors.rlim_cur < 2 * MANY + 64) SKIP("too few descriptors");
    static struct talk talk = {.handler = greet, .client = idle};
    talk.options = JANUS_HTTP_OPTIONS(.max_connections = MANY);
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_tasks = JANUS_UNLIMITED,
                                         .max_handles = JANUS_UNLIMITED));
    rig_do(scheduler, talk_first, &talk);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}
