/* SPDX-License-Identifier: MIT */
/*
 * Three counters are actors in the profile :cluster, and a supervisor starts them. One of them
 * fails. The supervisor starts it again in the same place, with a fresh count. Its handle stays
 * valid, and the messages that wait for it are not lost.
 */
#include <janusrt/janus.h>
#include <stdio.h>

enum { COUNTERS = 3, BROKEN = -100 };

enum verb { INCREMENT, GET, BREAK };

struct counter {
    int64_t count; /* no lock: an actor handles one message at a time */
};

static int64_t handle(void *state, janus_letter *letter)
{
    struct counter  *self = state;
    const enum verb *verb = letter->message;
    if (verb == NULL) return JANUS_ACTOR_GO_ON; /* a notice */
    if (*verb == BREAK) return BROKEN;          /* a negative number: this actor has failed */
    if (*verb == INCREMENT) self->count++;
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &self->count));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour counter = {.struct_bytes = sizeof counter,
                                        .name = "counter",
                                        .state_bytes = sizeof(struct counter),
                                        .message_bytes = sizeof(enum verb),
                                        .reply_bytes = sizeof(int64_t),
                                        .handle = handle};

JANUS_ACTOR_TYPE(counter, enum verb, int64_t);

static janus_status increment(counter_actor to, int times)
{
    janus_status status = JANUS_OK;
    for (int i = 0; i < times && status == JANUS_OK; i++)
        status = counter_cast(to, &(enum verb){INCREMENT}); /* waits if the mailbox is full */
    return status;
}

static void show(const char *when, const counter_actor *counters)
{
    int64_t count[COUNTERS] = {0};
    for (int i = 0; i < COUNTERS; i++) {
        uint64_t soon = janus_now_ns() + 60 * JANUS_SECONDS;
        if (counter_call(counters[i], &(enum verb){GET}, &count[i], soon) != JANUS_OK)
            count[i] = -1;
    }
    printf("%s: %d %d %d\n", when, (int)count[0], (int)count[1], (int)count[2]);
}

static int64_t first_task(void *argument)
{
    janus_supervisor       *supervisor;
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    counter_actor           counters[COUNTERS];
    (void)argument;
    janus_status status =
        janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name = "counters"), &supervisor);
    if (status != JANUS_OK) return status;
    for (int i = 0; i < COUNTERS && status == JANUS_OK; i++) {
        status = janus_supervisor_add(supervisor, JANUS_CHILD(.behaviour = &counter),
                                      &counters[i].actor);
        if (status == JANUS_OK) status = increment(counters[i], 100 * (i + 1));
    }
    if (status == JANUS_OK) {
        show("after increments", counters);
        status = counter_cast(counters[1], &(enum verb){BREAK});
    }
    if (status == JANUS_OK) status = increment(counters[1], 5); /* to the next incarnation */
    if (status == JANUS_OK) show("after a restart", counters);
    janus_status ended = janus_supervisor_end(supervisor, &result); /* all actors have ended here */
    printf("%d messages, %d handled, %d restart: %s\n", (int)result.sent, (int)result.handled,
           (int)result.restarts, janus_status_name(ended));
    return status != JANUS_OK ? status : ended;
}

int main(void)
{
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER, .quiet_panics = true),
                  first_task, NULL, NULL);
    return status == JANUS_OK ? 0 : 1;
}

/* Prints:
 * after increments: 100 200 300
 * after a restart: 100 5 300
 * 612 messages, 612 handled, 1 restart: JANUS_OK
 */
