/* SPDX-License-Identifier: MIT */
/*
 * Scenes: PLAY runs a scene under many schedules, and for real. A scene is the entry of a task. It
 * makes all that it needs, and checks with MUST. play.h has the actors.
 */
#ifndef JANUSRT_TESTS_ACTOR_SCENE_H
#define JANUSRT_TESTS_ACTOR_SCENE_H

#include "../task/rig.h"

#include <janusrt/actor.h>
#include <janusrt/explore.h>
#include <janusrt/janus.h>
#include <janusrt/supervisor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLAY_SCHEDULES = JRT_ASAN || JRT_DEBUG ? 100 : 1000,
    PLAY_RACES = PLAY_SCHEDULES / 2,
    PLAY_ROUNDS = 5,
    PLAY_LOG = 96,
    PLAY_EVENTS = 256,
};

#define NEVER UINT64_MAX
#define AN_HOUR (3600 * JANUS_SECONDS)

/* Whether the explorer runs the scene. It prints the schedule of a failed check. */
static bool play_explored;

/* A check that may stand anywhere in a scene. In an actor it never looks like a failed actor. */
#define MUST(condition)                                                                            \
    (__builtin_expect(!!(condition), 1) ? (void)0 : play_failed(#condition, __FILE__, __LINE__))

/* A check that prints both numbers. */
#define MUST_EQ(left, right)                                                                       \
    do {                                                                                           \
        const long long must_left = (long long)(left);                                             \
        const long long must_right = (long long)(right);                                           \
        if (must_left != must_right)                                                               \
            play_differs(#left " == " #right, must_left, must_right, __FILE__, __LINE__);          \
    } while (0)

__attribute__((noreturn, cold)) static inline void play_failed(const char *text, const char *file,
                                                               int line)
{
    if (play_explored) janus_expect_failed(text, file, line);
    harness_fail(file, line, text);
}

__attribute__((noreturn, cold)) static inline void play_differs(const char *text, long long left,
                                                                long long right, const char *file,
                                                                int line)
{
    static char sentence[200];
    (void)snprintf(sentence, sizeof sentence, "%s: %lld, %lld", text, left, right);
    play_failed(sentence, file, line);
}

#define MUST_STR(found, wanted) play_same(__FILE__, __LINE__, (found), (wanted))

static inline void play_same(const char *file, int line, const char *found, const char *wanted)
{
    static char sentence[256];
    if (strcmp(found, wanted) == 0) return;
    (void)snprintf(sentence, sizeof sentence, "\"%.110s\" is not \"%.110s\"", found, wanted);
    play_failed(sentence, file, line);
}

/* Whether waiting takes no time: only such a scene judges durations. */
static inline bool play_is_virtual(void) { return play_explored || rig_simulated(); }

/* A while: longer than any default of a supervisor, on a clock that jumps. */
static inline uint64_t play_while(void)
{
    return play_is_virtual() ? 1000 * JANUS_SECONDS : 20 * JANUS_MS;
}

/* After this, everything has happened that can. */
static inline void play_out(void) { MUST_EQ(janus_sleep(play_while()), JANUS_OK); }

/* A scene, and how it is run. */
struct performance {
    janus_entry                   *entry;
    bool                           panics;    /* its tasks panic on purpose */
    bool                           timed;     /* it needs the simulated clock */
    uint64_t                       schedules; /* 0: PLAY_SCHEDULES */
    uint32_t                       workers;   /* explored; 0: 2 */
    uint32_t                       faults;    /* JANUS_FAULT_..., one in 30 chances */
    const janus_scheduler_options *scheduler; /* NULL: the defaults */
};

/* Runs a scene under many schedules, then for real on two workers: PLAY(scene, .panics = true). */
#define PLAY(...) play_all(&(struct performance){.entry = __VA_ARGS__})

static inline void play_schedules(const struct performance *play, janus_strategy strategy)
{
    janus_scheduler_options scheduler = {
        .struct_bytes = sizeof scheduler, .turn_ns = RIG_TURN_NS, .max_tasks = JANUS_UNLIMITED};
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    const char          *more = getenv("SCHEDULES");
    uint64_t             schedules = play->schedules;
    if (schedules == 0 || (schedules > PLAY_SCHEDULES && (JRT_ASAN || JRT_DEBUG)))
        schedules = PLAY_SCHEDULES;
    if (play->scheduler != NULL) scheduler = *play->scheduler;
    scheduler.quiet_panics = true;
    play_explored = true;
    janus_status status = janus_explore(
        JANUS_EXPLORE_OPTIONS(.strategy = strategy, .stale_allowed = true,
                              .worker_count = play->workers != 0 ? play->workers : 2,
                              .faults = play->faults, .faults_every = play->faults != 0 ? 30 : 0,
                              .schedules = more != NULL ? strtoull(more, NULL, 0) : schedules,
                              .panics_allowed = play->panics, .max_steps = 500000,
                              .max_time_ns = 400000 * JANUS_SECONDS, .scheduler = &scheduler,
                              .quiet = true),
        play->entry, NULL, &result);
    play_explored = false;
    if (status == JANUS_OK) return;
    printf("# JANUSRT_REPLAY='%s'\n", result.replay != NULL ? result.replay : "");
    (void)fflush(stdout);
    harness_fail(__FILE__, __LINE__,
                 result.failing != JANUS_FAILING_NOT ? result.message : janus_status_name(status));
}

static inline void play_for_real(const struct performance *play)
{
    janus_scheduler_options scheduler = {
        .struct_bytes = sizeof scheduler, .turn_ns = RIG_TURN_NS, .max_tasks = JANUS_UNLIMITED};
    janus_run_result run = JANUS_RUN_RESULT();
    if (play->scheduler != NULL) scheduler = *play->scheduler;
    scheduler.worker_count = 2;
    scheduler.quiet_panics = true;
    janus_status status = janus_run_with(&scheduler, play->entry, NULL, &run);
    if (status == JANUS_OK) return;
    if (run.deadlock) printf("# %s\n", run.deadlock_text);
    (void)fflush(stdout);
    harness_fail(__FILE__, __LINE__, run.failures > 0 ? run.first.text : janus_status_name(status));
}

/* Exploring uses one thread: ThreadSanitizer would find nothing, and be slow. */
static inline void play_all(const struct performance *play)
{
    if (rig_simulated()) {
        if (play->faults == 0) play_for_real(play); /* as the seed says */
        return;
    }
    if (!JRT_TSAN) {
        play_schedules(play, JANUS_STRATEGY_RANDOM);
        play_schedules(play, JANUS_STRATEGY_PCT);
    }
    for (int i = 0; i < PLAY_ROUNDS && !play->timed; i++) play_for_real(play);
}

/* A scene in which two things happen to a supervisor at once, on a clock that jumps. */
#define RACE(...) PLAY(__VA_ARGS__, .panics = true, .timed = true, .schedules = PLAY_RACES)

/* The log of a scene. Only its task reads it. */
struct play {
    janus_channel told;
    char          text[2 * PLAY_EVENTS + 1];
    size_t        length;
};

struct event {
    char what, who;
};

static inline void play_say(struct play *play, char what, char who)
{
    MUST_EQ(janus_channel_try_send(play->told, &(struct event){what, who}), JANUS_OK);
}

static inline void play_write(struct play *play, struct event event)
{
    MUST(play->length + 2 < sizeof play->text);
    play->text[play->length++] = event.what;
    play->text[play->length++] = event.who;
    play->text[play->length] = '\0';
}

/* How often an event has happened, of those in the text. '-' is n or s, '?' any player. */
static inline int play_count(const struct play *play, char what, char who)
{
    int count = 0;
    for (size_t i = 0; i < play->length; i += 2) {
        char is = play->text[i];
        if (what == '-' && (is == 'n' || is == 's')) is = '-';
        count += is == what && (who == '?' || play->text[i + 1] == who);
    }
    return count;
}

/* Waits until an event has happened so often. */
static inline void play_await(struct play *play, const char *event, int times)
{
    while (play_count(play, event[0], event[1]) < times) {
        struct event next;
        MUST_EQ(janus_channel_recv(play->told, &next), JANUS_OK);
        play_write(play, next);
    }
}

/* Takes all that has been logged so far. */
static inline void play_read(struct play *play)
{
    struct event next;
    while (janus_channel_try_recv(play->told, &next) == JANUS_OK) play_write(play, next);
}

/* The text, with - for the ends that are no failures. */
static inline const char *play_dashed(const struct play *play)
{
    static char dashed[sizeof play->text];
    memcpy(dashed, play->text, sizeof dashed);
    for (size_t i = 0; i < play->length; i += 2) {
        if (dashed[i] == 'n' || dashed[i] == 's') dashed[i] = '-';
    }
    return dashed;
}

#define MUST_LOG(play, wanted) MUST_STR(play_dashed(play), (wanted))

/* Makes an empty log. */
static inline void play_begin(struct play *play)
{
    *play = (struct play){.length = 0};
    MUST_EQ(janus_channel_create(sizeof(struct event), PLAY_EVENTS, NULL, &play->told), JANUS_OK);
}

/* Takes what is in the log, and frees the channel. The text stays. */
static inline void play_finish(struct play *play)
{
    play_read(play);
    MUST_EQ(janus_channel_destroy(play->told), JANUS_OK);
}

static inline janus_supervisor *play_open(struct play                    *play,
                                          const janus_supervisor_options *options)
{
    janus_supervisor *supervisor = NULL;
    play_begin(play);
    MUST_EQ(janus_supervisor_open(options, &supervisor), JANUS_OK);
    return supervisor;
}

/* Ends the supervisor, which returns `wanted`. */
static inline janus_supervisor_result play_end(struct play *play, janus_supervisor *supervisor,
                                               janus_status wanted)
{
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    MUST_EQ(janus_supervisor_end(supervisor, &result), wanted);
    MUST_EQ(result.status, wanted);
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    play_finish(play);
    return result;
}

#endif
