// SPDX-License-Identifier: MIT
/* The headers of actors and supervisors in C++17: the same words as in C. A11.18. */
#include <cstdint>
#include <janusrt/actor.h>
#include <janusrt/janus.h>
#include <janusrt/supervisor.h>

extern "C" {
#include "harness.h"
}

namespace
{

struct add {
    int64_t amount;
};

JANUS_ACTOR_TYPE(counter, add, int64_t);

int64_t count(void *state, janus_letter *letter)
{
    auto       *sum = static_cast<int64_t *>(state);
    const auto *message = static_cast<const add *>(letter->message);
    if (message == nullptr) return JANUS_ACTOR_GO_ON;
    *sum += message->amount;
    if (janus_letter_is_call(letter)) CHECK_EQ(janus_reply(letter, sum), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

const janus_behaviour behaviour =
    JANUS_BEHAVIOUR(.name = "counter", .state_bytes = sizeof(int64_t), .message_bytes = sizeof(add),
                    .reply_bytes = sizeof(int64_t), .handle = count);

int64_t shop(void *)
{
    // It must outlive the child's macro.
    const janus_actor_options options = *JANUS_ACTOR_OPTIONS(.max_messages = 8);
    janus_supervisor         *supervisor = nullptr;
    counter_actor             actor = counter_actor();
    int64_t                   sum = 0;
    janus_supervisor_result   result = JANUS_SUPERVISOR_RESULT();
    janus_actor_info          info = JANUS_ACTOR_INFO();
    CHECK_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name = "shop", .max_restarts = 3),
                                   &supervisor),
             JANUS_OK);
    CHECK_EQ(janus_supervisor_add(
                 supervisor,
                 JANUS_CHILD(.id = "till", .behaviour = &behaviour, .options = &options),
                 &actor.actor),
             JANUS_OK);
    const add one = {1}, two = {2};
    CHECK_EQ(counter_cast(actor, &one), JANUS_OK);
    CHECK_EQ(counter_try_cast(actor, &one), JANUS_OK);
    CHECK_EQ(janus_cast_with(actor.actor, &two, JANUS_CAST_OPTIONS(.refuses = true)), JANUS_OK);
    CHECK_EQ(counter_call(actor, &two, &sum, janus_now_ns() + 3600 * JANUS_SECONDS), JANUS_OK);
    CHECK_EQ(sum, 6);
    CHECK_EQ(janus_actor_inspect(actor.actor, &info), JANUS_OK);
    CHECK_EQ(info.handled, 4);
    CHECK_EQ(janus_supervisor_end(supervisor, &result), JANUS_OK);
    CHECK_EQ(result.handled, 4);
    return 0;
}

} // namespace

TEST("C++17 opens a supervisor, adds a typed actor, casts and calls")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), shop, nullptr, nullptr),
             JANUS_OK);
}
