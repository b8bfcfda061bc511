/* SPDX-License-Identifier: MIT */
#include "base/outside.h"

_Atomic(janus_status (*)(void)) jrt_outside_hook;
_Atomic(void (*)(bool))         jrt_outside_turn_hook;
