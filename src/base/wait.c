/* SPDX-License-Identifier: MIT */
#include "base/wait.h"

const char *jrt_wait_text(uint64_t wait)
{
    static const char *const texts[] = {
#define X(name, text) [JRT_WAIT_##name] = text,
        JRT_WAIT_MAP(X)
#undef X
    };
    return wait < sizeof texts / sizeof *texts ? texts[wait] : "?";
}
