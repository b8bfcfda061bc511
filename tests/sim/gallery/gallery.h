/* SPDX-License-Identifier: MIT */
/*
 * Programs with one bug each, of kinds that live long because hardly any run shows them. Each is
 * written as its author would have: against the public headers, and without regard to testing. The
 * entry makes everything it needs. With NULL it has the bug. With GALLERY_MENDED it is the same
 * program with the bug mended, and never fails.
 */
#ifndef JANUSRT_TESTS_SIM_GALLERY_H
#define JANUSRT_TESTS_SIM_GALLERY_H

#include <janusrt/explore.h>
#include <janusrt/janus.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gallery_bug {
    const char  *name;
    const char  *text; /* the bug, in a line */
    janus_entry *entry;
};

#define GALLERY_MENDED ((void *)"mended")

/* All bugs, by the names of their files. */
#define GALLERY(X)                                                                                 \
    X(lost_wakeup)                                                                                 \
    X(stolen_wakeup)                                                                               \
    X(aba)                                                                                         \
    X(double_complete)                                                                             \
    X(check_then_act)                                                                              \
    X(lock_order)                                                                                  \
    X(close_race)                                                                                  \
    X(cancel_complete)                                                                             \
    X(forgotten_await)                                                                             \
    X(use_after_end)                                                                               \
    X(unfair_select)                                                                               \
    X(double_refund)                                                                               \
    X(torn_update)                                                                                 \
    X(late_release)                                                                                \
    X(new_mailbox)                                                                                 \
    X(early_down)                                                                                  \
    X(late_watch)                                                                                  \
    X(late_reply)                                                                                  \
    X(two_deciders)                                                                                \
    X(stop_in_delay)                                                                               \
    X(two_restarts)                                                                                \
    X(deaf_sender)                                                                                 \
    X(adopted_twice)                                                                               \
    X(paid_twice)                                                                                  \
    X(ignored_place)                                                                               \
    X(lost_credit)                                                                                 \
    GALLERY_COUNTED(X)

/* Bugs in loops that make no call. The loops have checks, as compiled code has. */
#define GALLERY_COUNTED(X)                                                                         \
    X(lost_sum)                                                                                    \
    X(half_copy)                                                                                   \
    X(early_flag)                                                                                  \
    X(moved_entry)                                                                                 \
    X(overdraft)

#define GALLERY_DECLARE(name) extern const struct gallery_bug gallery_##name;
GALLERY(GALLERY_DECLARE)
#undef GALLERY_DECLARE

/* The options of the scheduler that a bug is explored with. */
static inline const janus_scheduler_options *gallery_options(const struct gallery_bug *bug)
{
    static const janus_scheduler_options counted = {.struct_bytes = sizeof counted,
                                                    .preempt_checks = true};
    bool                                 is_counted = false;
#define GALLERY_IS(name) is_counted |= bug == &gallery_##name;
    GALLERY_COUNTED(GALLERY_IS)
#undef GALLERY_IS
    return is_counted ? &counted : NULL;
}

/* Runs two tasks beside each other until both have ended. Returns the status of their nursery. */
static inline janus_status gallery_both(janus_entry *one, janus_entry *other, void *argument)
{
    janus_nursery nursery;
    JANUS_EXPECT(janus_nursery_open(&nursery, NULL) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, one, argument) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&nursery, other, argument) == JANUS_OK);
    return janus_nursery_end(&nursery, NULL);
}

#endif
