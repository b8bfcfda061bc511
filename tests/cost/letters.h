/* SPDX-License-Identifier: MIT */
/*
 * The paths `cast`, `castbusy` and `handle` of cost_paths.c. Sending and handling take turns on one
 * worker, in batches that are shorter than a slice. Callgrind counts only one of the two.
 */
#ifndef JANUSRT_COST_LETTERS_H
#define JANUSRT_COST_LETTERS_H

#include <janusrt/actor.h>
#include <janusrt/supervisor.h>

static uint64_t letters_handled;

static int64_t handle_nothing(void *state, janus_letter *letter)
{
    (void)state;
    (void)letter;
    letters_handled++;
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour handler = {.struct_bytes = sizeof handler,
                                        .name = "handler",
                                        .message_bytes = sizeof(int64_t),
                                        .handle = handle_nothing};

static janus_supervisor *open_actors(janus_actor *out, int count)
{
    janus_supervisor *supervisor = NULL;
    need(janus_supervisor_open(NULL, &supervisor));
    for (int i = 0; i < count; i++) {
        need(janus_supervisor_add(
            supervisor,
            JANUS_CHILD(.behaviour = &handler,
                        .options = JANUS_ACTOR_OPTIONS(.max_messages = count > 1 ? 0 : BATCH)),
            &out[i]));
    }
    letters_handled = 0;
    return supervisor;
}

/* Callgrind stops counting, or goes on. */
static inline void toggle_count(void) { CALLGRIND_TOGGLE_COLLECT; }

static void until_handled(uint64_t count)
{
    while (letters_handled < count) need(janus_yield());
}

/* Each actor rests and gets one message. */
static uint64_t walk_cast(uint64_t size)
{
    static janus_actor actors[BATCH];
    janus_supervisor  *supervisor = open_actors(actors, BATCH);
    int64_t            value = 0;
    for (uint64_t done = 0; done < size; done += BATCH) {
        for (int i = 0; i < BATCH; i++) need(janus_cast(actors[i], &value));
        toggle_count();
        until_handled(done + BATCH);
        toggle_count();
    }
    need(janus_supervisor_end(supervisor, NULL));
    return size;
}

/* One actor gets a batch. If `counts_handling`, the handling counts, otherwise all casts but the
 * first, which finds the actor at rest. */
static uint64_t walk_batches(uint64_t size, bool counts_handling)
{
    janus_actor       actor;
    janus_supervisor *supervisor = open_actors(&actor, 1);
    int64_t           value = 0;
    for (uint64_t done = 0; done < size; done += BATCH) {
        toggle_count();
        need(janus_cast(actor, &value));
        if (!counts_handling) toggle_count();
        for (int i = 1; i < BATCH; i++) need(janus_cast(actor, &value));
        toggle_count();
        until_handled(done + BATCH);
        if (!counts_handling) toggle_count();
    }
    need(janus_supervisor_end(supervisor, NULL));
    return counts_handling ? size : size - size / BATCH;
}

static uint64_t walk_castbusy(uint64_t size) { return walk_batches(size, false); }
static uint64_t walk_handle(uint64_t size) { return walk_batches(size, true); }

#endif
