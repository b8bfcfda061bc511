/* SPDX-License-Identifier: MIT */
/*
 * A service with a name tells its heir when it ends, from its terminate. The heir then wants the
 * name, but the service still has it. A watch gets its DOWN after the name is free.
 */
#include "gallery.h"

enum { NEWS_DOWN = 1, NEWS_WATCH, NEWS_END };

struct office {
    janus_supervisor *supervisor;
    janus_actor       service, heir;
    janus_channel     done;
    janus_event       closed;
    bool              mended;
};

struct heir {
    struct office *office;
};

static int64_t end(void *state, janus_letter *letter)
{
    (void)state, (void)letter;
    return JANUS_ACTOR_STOP;
}

static int64_t begin_service(void *state, void *argument)
{
    *(struct office **)state = argument;
    return JANUS_ACTOR_GO_ON;
}

static void end_service(void *state, const janus_end *how)
{
    struct office *office = *(struct office **)state;
    (void)how;
    if (!office->mended) JANUS_IGNORE(janus_cast(office->heir, &(int){NEWS_DOWN}));
    janus_event_set(&office->closed); /* its files */
}

static const janus_behaviour service = {.struct_bytes = sizeof service,
                                        .name = "service",
                                        .state_bytes = sizeof(struct office *),
                                        .message_bytes = sizeof(int),
                                        .init = begin_service,
                                        .handle = end,
                                        .terminate = end_service};

/* Starts a service under the same name. */
static janus_status take_over(struct office *office)
{
    return janus_supervisor_add(office->supervisor,
                                JANUS_CHILD(.behaviour = &service, .argument = office,
                                            .restart = JANUS_RESTART_TEMPORARY,
                                            .options = JANUS_ACTOR_OPTIONS(.name = "service")),
                                NULL);
}

static int64_t begin_heir(void *state, void *argument)
{
    ((struct heir *)state)->office = argument;
    return JANUS_ACTOR_GO_ON;
}

static int64_t inherit(void *state, janus_letter *letter)
{
    struct office *office = ((struct heir *)state)->office;
    const int     *news = letter->message;
    if (news != NULL && *news == NEWS_WATCH) {
        return office->mended ? janus_actor_watch(office->service, 0, NULL) : 0;
    }
    if (news != NULL && *news == NEWS_END) return JANUS_ACTOR_STOP;
    int status = take_over(office);
    return janus_channel_send(office->done, &status);
}

static const janus_behaviour heir = {.struct_bytes = sizeof heir,
                                     .name = "heir",
                                     .state_bytes = sizeof(struct heir),
                                     .message_bytes = sizeof(int),
                                     .init = begin_heir,
                                     .handle = inherit};

static int64_t early_down(void *mended)
{
    struct office office = {.mended = mended != NULL};
    int           status = 0;
    janus_event_init(&office.closed, JANUS_WAKER_TASKS, "closed");
    JANUS_EXPECT(janus_channel_create(sizeof status, 1, NULL, &office.done) == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_open(NULL, &office.supervisor) == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_add(office.supervisor,
                                      JANUS_CHILD(.behaviour = &heir, .argument = &office),
                                      &office.heir) == JANUS_OK);
    JANUS_EXPECT(
        janus_supervisor_add(office.supervisor,
                             JANUS_CHILD(.behaviour = &service, .argument = &office,
                                         .restart = JANUS_RESTART_TEMPORARY,
                                         .options = JANUS_ACTOR_OPTIONS(.name = "service")),
                             &office.service) == JANUS_OK);
    JANUS_EXPECT(janus_cast(office.heir, &(int){NEWS_WATCH}) == JANUS_OK);
    JANUS_EXPECT(janus_cast(office.service, &(int){0}) == JANUS_OK);
    JANUS_EXPECT(janus_channel_recv(office.done, &status) == JANUS_OK);
    JANUS_EXPECT(status == JANUS_OK);
    JANUS_EXPECT(janus_supervisor_end(office.supervisor, NULL) == JANUS_OK);
    return janus_channel_destroy(office.done);
}

const struct gallery_bug gallery_early_down = {
    "early_down", "an actor reports its end before its name is free", early_down};
