/* SPDX-License-Identifier: MIT */
/*
 * A nurse waits for the end of a patient. She looks whether the patient is alive, and then enters
 * herself where the patient's end looks. If the patient ends in between, nobody tells her.
 */
#include "gallery.h"

struct ward {
    janus_actor   patient, nurse;
    atomic_bool   entered, ended;
    janus_channel told;
    bool          mended;
};

static int64_t enter(void *state, void *argument)
{
    *(struct ward **)state = argument;
    return JANUS_ACTOR_GO_ON;
}

static int64_t end(void *state, janus_letter *letter)
{
    (void)state, (void)letter;
    return JANUS_ACTOR_STOP;
}

static void tell(void *state, const janus_end *how)
{
    struct ward *ward = *(struct ward **)state;
    (void)how;
    if (ward->mended) return;
    atomic_store(&ward->ended, true);
    janus_point();
    if (atomic_load(&ward->entered)) JANUS_IGNORE(janus_cast(ward->nurse, NULL));
}

static const janus_behaviour patient = {.struct_bytes = sizeof patient,
                                        .name = "patient",
                                        .state_bytes = sizeof(struct ward *),
                                        .init = enter,
                                        .handle = end,
                                        .terminate = tell};

/* The first message: watch. A later one, or the notice: the patient has ended. */
static int64_t watch(void *state, janus_letter *letter)
{
    struct ward *ward = *(struct ward **)state;
    int          yes = 1;
    if (letter->kind == JANUS_LETTER_KIND_DOWN || atomic_load(&ward->entered)) {
        return janus_channel_send(ward->told, &yes);
    }
    if (ward->mended) return janus_actor_watch(ward->patient, 0, NULL);
    if (atomic_load(&ward->ended)) return janus_channel_send(ward->told, &yes);
    janus_point();
    atomic_store(&ward->entered, true);
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour nurse = {.struct_bytes = sizeof nurse,
                                      .name = "nurse",
                                      .state_bytes = sizeof(struct ward *),
                                      .init = enter,
                                      .handle = watch};

static int64_t late_watch(void *mended)
{
    struct ward       ward = {.mended = mended != NULL};
    janus_supervisor *supervisor;
    int               yes = 0;
    JANUS_EXPECT(janus_channel_create(sizeof yes, 1, NULL, &ward.told) == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_open(NULL, &supervisor) == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_add(supervisor,
                                      JANUS_CHILD(.behaviour = &patient, .argument = &ward,
                                                  .restart = JANUS_RESTART_TRANSIENT),
                                      &ward.patient) == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_add(supervisor,
                                      JANUS_CHILD(.behaviour = &nurse, .argument = &ward),
                                      &ward.nurse) == JANUS_OK);
    JANUS_EXPECT(janus_cast(ward.nurse, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_cast(ward.patient, NULL) == JANUS_OK);
    janus_status status = janus_channel_recv(ward.told, &yes);
    JANUS_EXPECT(janus_supervisor_end(supervisor, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_channel_destroy(ward.told) == JANUS_OK);
    return status;
}

const struct gallery_bug gallery_late_watch = {
    "late_watch", "a watcher enters itself after it looked, and misses the end between",
    late_watch};
