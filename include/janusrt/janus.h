/* SPDX-License-Identifier: MIT */
/*
 * The whole of janusrt: include this one.
 *
 * Each word means one thing in all headers:
 *   await           until tasks that the caller started have ended: a nursery's children, a call
 *   wait            until something happens: an event, a turn at a barrier, an exhausted child
 *   open, end       a scope in the caller's memory
 *   create, destroy an object in the library's memory
 *   begin, end      a stretch of one task's code
 *   close           no more of it: of children, of values
 *   current         the task, fiber or scheduler that the caller runs in
 *   X_with          X with options, or with its whole result
 */
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
