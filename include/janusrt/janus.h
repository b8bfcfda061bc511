/* SPDX-License-Identifier: MIT */
/*
 * The whole of janusrt: include this one. The core headers come first, and most programs need
 * no other.
 *
 * Each word means one thing in the names of all headers:
 *   create, destroy  an object in the library's memory. Counted ones: retain, release
 *   open, end        a scope in the caller's memory, as a nursery
 *   init             an object in the caller's memory that needs no end, as a mutex
 *   begin, end       a stretch of one task's code, as a shield
 *   start, stop      what runs by itself: a scheduler's workers, an asynchronous call
 *   close            no more of it: of children, of values. Closing frees nothing
 *   cancel           asks tasks to end; they are told CANCELLED
 *   release          gives back what the caller holds: a permit, a capability
 *   await            until tasks that the caller started have ended: a nursery's children, a call
 *   wait             until something happens: an event, a turn at a barrier, an exhausted child
 *   wake             ends a wait of a waitpoint
 *   poll             takes the next notice if there is one, and never waits
 *   inspect          copies what is known now into a janus_..._info
 *   read, write      from and to a file descriptor
 *   current          the task, fiber or scheduler that the caller runs in
 *   try_X            X, but it never waits; try_ stands right before the verb
 *   X_until          X, at the latest until a deadline
 *   X_with           X with options, or with its whole result
 *   X_in             X in the scheduler or table that is named, not in the caller's own
 *   X_on             X once that happens: a signal, a token's cancel
 *   X_of, X_name, X_text   a part of a value; an enum's word; a sentence
 *   max_X            a limit, in options and parameters
 *
 * A constant of an enum is the enum's name in capitals and a word: janus_task_state,
 * JANUS_TASK_STATE_READY. Statuses alone are short: JANUS_OK, JANUS_CANCELLED.
 *
 * A struct that may grow begins with struct_bytes, and the macro of its name sets that:
 * JANUS_SPAWN_OPTIONS(.name = "reader"), janus_task_info info = JANUS_TASK_INFO(). See options.h.
 */
#ifndef JANUSRT_JANUS_H
#define JANUSRT_JANUS_H

/* Core: run a program of tasks, let them talk, bound what they may do. */
#include <janusrt/actor.h>      /* state that one message at a time changes */
#include <janusrt/budget.h>     /* what a task may spend, as numbers */
#include <janusrt/channel.h>    /* values from task to task, and select */
#include <janusrt/charge.h>     /* paying, exhaustion, supervisors */
#include <janusrt/explain.h>    /* why the last call was refused, in sentences */
#include <janusrt/file.h>       /* files and directories */
#include <janusrt/grant.h>      /* the current task's capabilities */
#include <janusrt/io.h>         /* bytes from and to the outside */
#include <janusrt/letter.h>     /* what an actor handles */
#include <janusrt/net.h>        /* sockets, addresses, names */
#include <janusrt/nursery.h>    /* scopes of tasks, spawn, join; includes block.h */
#include <janusrt/parallel.h>   /* two calls at once, loops, reductions */
#include <janusrt/scheduler.h>  /* janus_run, and schedulers */
#include <janusrt/status.h>     /* what calls return */
#include <janusrt/supervisor.h> /* starts actors and tasks, and starts them again */
#include <janusrt/sync.h>       /* mutex, semaphore, condition, event, group, once */
#include <janusrt/task.h>       /* yield, sleep, blocking calls, defer, shields */

/* Advanced: more ways to start, wait and end. */
#include <janusrt/async.h>     /* a call that runs beside its caller, and its value */
#include <janusrt/barrier.h>   /* a number of tasks meet */
#include <janusrt/counted.h>   /* what compiled checks call */
#include <janusrt/memory.h>    /* memory that ends with its task */
#include <janusrt/process.h>   /* child processes */
#include <janusrt/rest.h>      /* tasks without a stack while they wait */
#include <janusrt/rwlock.h>    /* many readers or one writer */
#include <janusrt/signal.h>    /* signals to wait for */
#include <janusrt/token.h>     /* cancels that cross scopes */
#include <janusrt/waitpoint.h> /* one task's place to wait, to build locks from */
#include <janusrt/yield.h>     /* checks in loops */

/* Advanced: look inside, test. */
#include <janusrt/dump.h>    /* trees of tasks, and infos */
#include <janusrt/explore.h> /* run under many schedules */
#include <janusrt/trace.h>   /* what happened when */

/* Advanced: rights in tables, their log, and four sets of defaults. */
#include <janusrt/audit.h>
#include <janusrt/cap.h>
#include <janusrt/profile.h>

/* Advanced: what lies below tasks, and plain functions for compilers. */
#include <janusrt/abi.h>
#include <janusrt/fiber.h>
#include <janusrt/stack.h>

/* The other headers include these. */
#include <janusrt/export.h>
#include <janusrt/version.h>

#endif
