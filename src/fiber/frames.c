/* SPDX-License-Identifier: MIT */
/*
 * The frames of the running call, for reports. The unwinder of the compiler's runtime walks them by
 * their tables. It allocates nothing. With glibc 2.35 and newer it takes no lock either, so it can
 * run in the handler of an overflow, on the alternate stack.
 */
#include "fiber/frames.h"

#include "fiber/ctx.h"

#include <janusrt/fiber.h>
#include <unwind.h>

enum { STEPS_MAX = 64 }; /* frames visited */

struct walk {
    const void **out;
    unsigned     room, count, steps;
    bool         from_signal; /* starts at the interrupted code, else behind janus_panic */
    bool         begun;
};

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    int          before = 0;
    uintptr_t    pc = (uintptr_t)_Unwind_GetIPInfo(context, &before);
    uintptr_t    function = (uintptr_t)_Unwind_GetRegionStart(context);
    if (pc == 0 || ++walk->steps > STEPS_MAX || walk->count == walk->room) return _URC_END_OF_STACK;
    if (function == (uintptr_t)jrt_ctx_call || function == (uintptr_t)jrt_ctx_entry) {
        return _URC_END_OF_STACK; /* below lies the worker's loop, or the task's runner */
    }
    if (!walk->begun) {
        bool panic = !walk->from_signal && function == (uintptr_t)janus_panic;
        walk->begun = panic || (walk->from_signal && before != 0);
        if (panic || !walk->begun) return _URC_NO_REASON;
    }
    /* A return address may belong to the next line or function, so the address before it counts. */
    walk->out[walk->count++] = (const void *)(before != 0 ? pc : pc - 1);
    return _URC_NO_REASON;
}

unsigned jrt_frames_of_panic(const void **out, unsigned room)
{
    struct walk walk = {.out = out, .room = room};
    (void)_Unwind_Backtrace(look, &walk);
    return walk.count;
}

unsigned jrt_frames_of_signal(const void **out, unsigned room)
{
    struct walk walk = {.out = out, .room = room, .from_signal = true};
    (void)_Unwind_Backtrace(look, &walk);
    return walk.count;
}
