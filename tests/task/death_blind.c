/* SPDX-License-Identifier: MIT */
/* For death_test.c. Compiled without unwind tables: no walk up the stack can pass it. */
#include <stdint.h>

enum way { EXIT, CANCEL };

int64_t end_blindly_by(void (*end)(enum way), enum way way);
int64_t end_blindly_by(void (*end)(enum way), enum way way)
{
    volatile int64_t after = 0; /* so that it is a call */
    end(way);
    return after;
}
