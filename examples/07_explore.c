/* SPDX-License-Identifier: MIT */
/*
 * Exploring: janus_explore runs a function under many schedules until one of them breaks it. The
 * program then replays that schedule and gets the same failure again.
 */
#include <janusrt/janus.h>
#include <stdio.h>
#include <stdlib.h>

static int left, right;

/* Reads, then writes what it read. If another task runs between the two, ten are lost. */
static int64_t move_ten(void *argument)
{
    (void)argument;
    int seen = left;
    janus_point();
    left = seen - 10;
    right += 10;
    return 0;
}

static int64_t transfer(void *argument)
{
    (void)argument;
    left = 100;
    right = 0;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        JANUS_EXPECT(janus_spawn(n, move_ten, NULL) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, move_ten, NULL) == JANUS_OK);
    }
    JANUS_EXPECT(ended == JANUS_OK);
    JANUS_EXPECT(left + right == 100);
    return 0;
}

int main(void)
{
    janus_explore_result found = JANUS_EXPLORE_RESULT();
    janus_explore_result again = JANUS_EXPLORE_RESULT();
    janus_status         status =
        janus_explore(JANUS_EXPLORE_OPTIONS(.quiet = true), transfer, NULL, &found);
    printf("%s: %s\n", janus_status_name(status), found.message);
    if (status == JANUS_OK) return 1;
    JANUS_IGNORE(janus_explore(JANUS_EXPLORE_OPTIONS(.quiet = true, .replay = found.replay),
                               transfer, NULL, &again));
    printf("%s\n", again.hash == found.hash ? "again, and the same" : "something else");
    free(found.replay);
    free(again.replay);
    return 0;
}

/* Prints:
 * JANUS_CHILD_FAILED: left + right == 100 (examples/07_explore.c:35)
 * again, and the same
 */
