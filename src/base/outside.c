/* SPDX-License-Identifier: MIT */
#include "base/outside.h"

_Atomic(janus_status (*)(void)) jrt_outside_hook;
