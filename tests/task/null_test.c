/* SPDX-License-Identifier: MIT */
/* Calls without a status get NULL for their object. Each has an answer, or ends the calling task
 * with a panic that names the call. */
#include "rig.h"

#include <janusrt/abi.h>
#include <string.h>

/* Calls that have an answer. */

static int64_t ask_about_nothing(void *argument)
{
    char text[64];
    (void)argument;
    CHECK_EQ(janus_nursery_state_of(NULL), JANUS_NURSERY_STATE_CLOSED);
    CHECK(!janus_nursery_is_cancelled(NULL));
    CHECK(!janus_nursery_try_await(NULL, NULL));
    CHECK(!janus_nursery_poll_exhausted(NULL, NULL));
    CHECK_EQ(janus_nursery_deadline(NULL), 0);
    CHECK_EQ(janus_nursery_failures(NULL, NULL, 0), 0);
    CHECK_EQ(janus_nursery_await(NULL).kind, JANUS_INVALID);
    CHECK_EQ(janus_nursery_propagate_cancel(NULL), JANUS_INVALID);
    CHECK(janus_nursery_create_in(NULL) == NULL);
    CHECK(janus_nursery_spawn(NULL, nothing, NULL) == NULL);
    CHECK_EQ(janus_async_task(NULL), 0);
    CHECK_EQ(janus_task_id_of(NULL), 0);
    CHECK_EQ(janus_broadcast_count(NULL), 0);
    CHECK_EQ(janus_semaphore_permits(NULL), 0);
    CHECK(!janus_event_is_set(NULL));
    CHECK(!janus_mutex_is_abandoned(NULL));
    CHECK(!janus_rwlock_is_abandoned(NULL));
    CHECK(!janus_token_is_cancelled(NULL));
    CHECK_EQ(janus_token_reason(NULL), JANUS_CANCEL_REASON_NONE);
    CHECK(janus_token_retain(NULL) == NULL);
    CHECK_EQ(janus_fiber_id(NULL), 0);
    CHECK(janus_fiber_name(NULL) == NULL);
    CHECK_EQ(janus_fiber_state_of(NULL), JANUS_FIBER_STATE_COMPLETED);
    CHECK_EQ(janus_fiber_pool_trim(NULL, 0), 0);
    CHECK_EQ(janus_panic_text(NULL, text, sizeof text), strlen("no panic"));
    CHECK_EQ(janus_scheduler_worker_count(NULL), 0);
    CHECK_EQ(janus_scheduler_trim(NULL, 0), 0);
    CHECK_EQ(janus_scheduler_trace_hash(NULL), 0);
    CHECK(!janus_letter_is_call(NULL));
    CHECK_EQ(janus_supervisor_children(NULL, NULL, 0), 0);
    CHECK_EQ(janus_supervisor_history(NULL, NULL, 0), 0);
    CHECK(janus_detach(NULL) == NULL);
    janus_token_release(NULL);
    janus_discard(NULL);
    janus_free(NULL);
    return 0;
}

TEST("a call that returns a value has an answer for NULL") { rig_all(ask_about_nothing, NULL, 1); }

/* Calls that have none. */

#define CALLS(X)                                                                                   \
    X(broadcast_init, (NULL, JANUS_WAKER_TASKS, NULL))                                             \
    X(broadcast_send, (NULL))                                                                      \
    X(condition_broadcast, (NULL))                                                                 \
    X(condition_init, (NULL, JANUS_WAKER_TASKS, NULL))                                             \
    X(condition_signal, (NULL))                                                                    \
    X(event_init, (NULL, JANUS_WAKER_TASKS, NULL))                                                 \
    X(event_reset, (NULL))                                                                         \
    X(event_set, (NULL))                                                                           \
    X(group_init, (NULL, JANUS_WAKER_TASKS, NULL))                                                 \
    X(mutex_init, (NULL, NULL))                                                                    \
    X(mutex_init_recursive, (NULL, NULL))                                                          \
    X(once_init, (NULL, NULL))                                                                     \
    X(semaphore_init, (NULL, 1, JANUS_WAKER_TASKS, NULL))                                          \
    X(shield_begin_until, (NULL, 0))                                                               \
    X(waitpoint_init, (NULL, JANUS_WAKER_TASKS))                                                   \
    X(waitpoint_wake, (NULL))

#define X(name, arguments)                                                                         \
    static int64_t name##_of_nothing(void *argument)                                               \
    {                                                                                              \
        (void)argument;                                                                            \
        janus_##name arguments;                                                                    \
        return 0;                                                                                  \
    }
CALLS(X)
#undef X

static const struct {
    janus_entry *entry;
    const char  *name;
} calls[] = {
#define X(name, arguments) {name##_of_nothing, "janus_" #name},
    CALLS(X)
#undef X
};

static int64_t call_each(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        janus_nursery        n;
        janus_nursery_result result;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, calls[i].entry, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
        CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
        CHECK(strstr(result.panic.message, calls[i].name) != NULL);
    }
    return 0;
}

TEST("a call without a value that gets NULL ends its task alone, with a panic that names the call")
{
    rig_all(call_each, NULL, 1);
}
