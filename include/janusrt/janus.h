/* SPDX-License-Identifier: MIT */
/* The whole of janusrt: include this one. */
#ifndef JANUSRT_JANUS_H
#define JANUSRT_JANUS_H

#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/profile.h>
#include <janusrt/stack.h>
#include <janusrt/status.h>
#include <janusrt/version.h>

#endif
