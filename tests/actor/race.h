/* SPDX-License-Identifier: MIT */
/* Scenes in which two things happen to a supervisor at once, on a clock that jumps. */
#ifndef JANUSRT_TESTS_ACTOR_RACE_H
#define JANUSRT_TESTS_ACTOR_RACE_H

#include "stage.h"

enum { RACE_SCHEDULES = STAGE_SCHEDULES / 2 };

#define SUPERVISED(...) JANUS_SUPERVISOR_OPTIONS(__VA_ARGS__)

static inline void race_at(int line, const char *file, janus_entry *scene)
{
    if (rig_simulated()) {
        rig_run(2, scene, NULL, 1);
        return;
    }
    stage_explore(file, line, scene, JANUS_STRATEGY_RANDOM, RACE_SCHEDULES);
    stage_explore(file, line, scene, JANUS_STRATEGY_PCT, RACE_SCHEDULES / 4);
}

#define race(scene) race_at(__LINE__, __FILE__, (scene))

/* After this, everything has happened that can. */
static inline void race_is_over(void) { EXPECT_EQ(janus_sleep(stage_while()), JANUS_OK); }

#endif
