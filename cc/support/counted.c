/* SPDX-License-Identifier: MIT */
/* Says that the program has counted code, so that explored schedules may stop it at each check. The
 * driver asks the linker for janus_cc_counted, because no code does. */
#include "cc/support/support.h"

extern const char janus_cc_counted;
const char        janus_cc_counted = 1;

__attribute__((constructor)) static void say_so(void) { janus_counted_code(); }
