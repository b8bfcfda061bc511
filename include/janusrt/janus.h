/* SPDX-License-Identifier: MIT */
/* The whole of janusrt: include this one. */
#ifndef JANUSRT_JANUS_H
#define JANUSRT_JANUS_H

#include <janusrt/abi.h>
#include <janusrt/async.h>
#include <janusrt/audit.h>
#include <janusrt/barrier.h>
#include <janusrt/budget.h>
#include <janusrt/cap.h>
#include <janusrt/channel.h>
#include <janusrt/charge.h>
#include <janusrt/dump.h>
#include <janusrt/explain.h>
#include <janusrt/explore.h>
#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/grant.h>
#include <janusrt/memory.h>
#include <janusrt/nursery.h>
#include <janusrt/parallel.h>
#include <janusrt/profile.h>
#include <janusrt/rwlock.h>
#include <janusrt/scheduler.h>
#include <janusrt/stack.h>
#include <janusrt/status.h>
#include <janusrt/sync.h>
#include <janusrt/task.h>
#include <janusrt/token.h>
#include <janusrt/trace.h>
#include <janusrt/version.h>
#include <janusrt/waitpoint.h>
#include <janusrt/yield.h>

#endif
