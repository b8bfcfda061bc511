/* SPDX-License-Identifier: MIT */
/* Instructions that are calls of C functions. The comments name the fields of struct slow. */
#ifndef JANUSRT_LANG_RUN_SLOW_H
#define JANUSRT_LANG_RUN_SLOW_H

#include "run/code.h"

/* clang-format off */
#define RUN_SLOW(X) \
    X(rem) X(negate) X(equal) X(text_of) X(cut) X(concat) \
    X(slice_new) X(slice_of) X(slice_part) X(text_part) X(element_get) X(element_set) \
    X(closure) X(state_get) X(state_set) X(host_value) X(host_call) \
    X(budget_get) X(budget_with) X(budget_new) X(cap_new) X(cap_budget) \
    X(panic) X(fail) X(end_task) \
    X(nursery_begin) X(nursery_end) X(nursery_cancel) X(spawn) X(async) X(await) X(yield) \
    X(defer_push) X(defer_pop) X(channel_new) X(channel_send) X(channel_recv) X(channel_close) \
    X(supervisor_new) X(supervisor_spawn) X(actor_send) X(actor_call) X(to_interface) \
    X(interface_call)
/* clang-format on */

#define RUN_DECLARE(name)                                                                          \
    void jl_slow_##name(struct machine *m, union slot *r, const struct slow *s);
RUN_SLOW(RUN_DECLARE)
#undef RUN_DECLARE

/* `slots` into a record as `fields` say, and the panic of a handle that was never set. */
void jl_slow_fill(char *record, const union slot *r, const uint16_t *slots,
                  const struct field *fields, uint32_t count);
void jl_slow_need(const struct slow *s, const void *pointer, const char *text);

#endif
