/* SPDX-License-Identifier: MIT */
/* Names of channels: copied, clean, and shown where a task waits. */
#include "../task/dumped.h"
#include "channels.h"

#include <string.h>
#include <sys/mman.h>

/* Dumps until the words appear. */
static void check_dump_says(janus_scheduler *scheduler, const char *words)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    for (;;) {
        char *text = dumped(scheduler);
        bool  there = strstr(text, words) != NULL;
        if (!there && janus_now_ns() > limit) CHECK_STR(text, words);
        free(text);
        if (there) return;
        JANUS_IGNORE(janus_yield());
    }
}

struct scene {
    janus_scheduler *scheduler;
    janus_channel    orders, replies, plain;
};

static int64_t receive(void *argument)
{
    struct scene *scene = argument;
    int64_t       value;
    return janus_channel_recv(scene->orders, &value) == JANUS_CLOSED ? 0 : -1;
}

static int64_t send(void *argument)
{
    struct scene *scene = argument;
    int64_t       value = 7;
    return janus_channel_send(scene->replies, &value) == JANUS_CLOSED ? 0 : -1;
}

static int64_t receive_plainly(void *argument)
{
    struct scene *scene = argument;
    int64_t       value;
    return janus_channel_recv(scene->plain, &value) == JANUS_CLOSED ? 0 : -1;
}

static int64_t choose(void *argument)
{
    struct scene     *scene = argument;
    int64_t           value;
    size_t            chosen;
    janus_select_case cases[2] = {janus_case_recv(scene->plain, &value),
                                  janus_case_recv(scene->orders, &value)};
    return janus_select(cases, 2, &chosen) == JANUS_CLOSED ? 0 : -1;
}

static janus_channel open_named(const char *name)
{
    janus_channel channel;
    CHECK_EQ(janus_channel_create(8, 0, JANUS_CHANNEL_OPTIONS(.name = name), &channel), JANUS_OK);
    return channel;
}

static int64_t watch(void *argument)
{
    struct scene *scene = argument;
    janus_nursery n;
    scene->orders = open_named("orders\n");
    scene->replies = open_named("replies");
    scene->plain = open_named(NULL);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, receive, scene), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, send, scene), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, receive_plainly, scene), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, choose, scene), JANUS_OK);
    check_dump_says(scene->scheduler, "waits for channel \"orders\\n\" to receive from");
    check_dump_says(scene->scheduler, "waits for channel \"replies\" to send to");
    check_dump_says(scene->scheduler, "waits for a channel to receive from");
    check_dump_says(scene->scheduler,
                    "waits for one of several channels, \"orders\\n\" among them");
    CHECK_EQ(janus_channel_close(scene->orders), JANUS_OK);
    CHECK_EQ(janus_channel_close(scene->replies), JANUS_OK);
    CHECK_EQ(janus_channel_close(scene->plain), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static void play(uint32_t workers)
{
    struct scene scene = {.scheduler = NULL};
    scene.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    rig_do(scene.scheduler, watch, &scene);
    CHECK_EQ(janus_scheduler_destroy(scene.scheduler), JANUS_OK);
}

TEST("a dump names the channel that a task waits at")
{
    play(1);
    play(2);
    play(8);
}

static int64_t name_wildly(void *argument)
{
    size_t             page = (size_t)sysconf(_SC_PAGESIZE);
    janus_channel_info info = JANUS_CHANNEL_INFO();
    (void)argument;
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK_EQ(mprotect(pages + page, page, PROT_NONE), 0);
    memcpy(pages + page - 8, "a\n\x1b\"\\\xff\xc3\xa4", 8); /* without a zero */
    janus_channel channel = open_named(pages + page - 8);
    CHECK_EQ(munmap(pages, 2 * page), 0);
    CHECK_EQ(janus_channel_inspect(channel, &info), JANUS_OK);
    CHECK_STR(info.name, "a\\n\\x1b\\\"\\\\\\xff\xc3\xa4");
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a channel's name is escaped, and ends before unmapped memory")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer delays the handler of the fault");
    rig_run(1, name_wildly, NULL, 1);
}
