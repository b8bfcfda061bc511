/* SPDX-License-Identifier: MIT */
#include "guild.h"
