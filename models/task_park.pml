/* SPDX-License-Identifier: MIT */
/*
 * A task that parks, and those that wake it.
 *
 *   task      state = PARKING; then show the waiter to the wakers; then leave the stack
 *   arriver   on the worker's own stack: PARKING -> PARKED; if that fails it is WOKEN: put it in
 *             the queue
 *   waker     PARKED -> READY and put it in the queue; or PARKING -> WOKEN and leave it to the
 *             arriver; else another was quicker
 *
 * One task parks ROUNDS times. Each time several wakers know of it (a sender, a timer, a
 * canceller). They may come late, when the task already waits for something else. Each wait must
 * end, by one wake, which one of its own wakers gave; the task is never run while its stack is in
 * use.
 *
 * A late waker is kept off in one of two ways:
 *   TICKET    the state word carries the number of the wait, and wakers compare it too
 *   CLAIM     each wait has a flag of its own; whoever sets it first wakes, the others go away
 *
 *   run: ok    -DBY=TICKET
 *   run: ok    -DBY=CLAIM
 *   run: ok    -DBY=TICKET -DWAKERS=3
 *   run: ok    -DBY=CLAIM -DWAKERS=3
 * Why each part is there:
 *   run: error -DBY=NOTHING                    a late waker ends the next wait
 *   run: error -DBY=TICKET -DSHOW_FIRST        a wake between showing and PARKING is lost
 *   run: error -DBY=CLAIM -DSHOW_FIRST
 *   run: error -DBY=CLAIM -DNO_WOKEN           a task queued while PARKING runs on two stacks
 *   run: error -DBY=CLAIM -DBLIND              PARKING -> PARKED must not overwrite WOKEN
 *
 * A waker reads the wait's ticket or flag from the waiter it was shown. CLAIM's flag must outlive
 * the slowest waker. So it cannot lie on the task's stack, unless every waker leaves its list
 * before the wait returns. TICKET touches only the state word, which lives as long as the task.
 *
 * checks: [task-park]
 */
#define NOTHING 0
#define TICKET 1
#define CLAIM 2
#ifndef WAKERS
#define WAKERS 2 /* for each round */
#endif
#define ROUNDS 2
#define WORKERS 2

mtype = { READY, RUNNING, PARKING, PARKED, WOKEN };

mtype state = READY;
byte  wait_number;       /* beside the state, in one word */
bool  shown[ROUNDS];     /* the waiter of this round can be found */
bool  claimed[ROUNDS];   /* CLAIM */
byte  queued = 1;        /* how often the task is in the run queue */
bool  stack_in_use, done;
byte  effects[ROUNDS];   /* wakes that took effect in this round */
byte  pc;                /* of the task: rounds parked so far */

proctype worker()
{
    bool requeue;
end_worker:
    do
    :: atomic { queued > 0 -> queued-- };
        assert(!stack_in_use);
        assert(state == READY);
        stack_in_use = true;
        state = RUNNING;

        /* The task runs. */
        if
        :: pc > 0 -> assert(effects[pc - 1] == 1)
        :: else
        fi;
        if
        :: pc == ROUNDS -> done = true; stack_in_use = false; goto next
        :: else
        fi;
#ifdef SHOW_FIRST
        shown[pc] = true;
        d_step { state = PARKING; wait_number = pc; pc++ };
#else
        d_step { state = PARKING; wait_number = pc; pc++ };
        shown[pc - 1] = true;
#endif

        /* It has left its stack; we are on ours. */
        stack_in_use = false;
#ifdef BLIND
        state = PARKED;
#else
        if
        :: atomic { state == PARKING -> state = PARKED }
        :: else ->
#ifndef NO_WOKEN
            assert(state == WOKEN);
            state = READY;
            queued++
#endif
        fi;
#endif
next:
        skip
    od
}

inline took_effect()
{
    assert(wait_number == round);
    effects[wait_number]++;
    assert(effects[wait_number] == 1)
}

#if BY == TICKET
#define MINE (wait_number == round)
#else
#define MINE true
#endif

proctype waker(byte round)
{
end_waker:
    shown[round];
#if BY == CLAIM
    if
    :: atomic { !claimed[round] -> claimed[round] = true }
    :: else -> goto quit
    fi;
#endif
    /* Each line is one compare-and-swap; a failed one is tried again with what was found. */
    if
    :: atomic { state == PARKED && MINE -> state = READY; took_effect() }; queued++
#ifdef NO_WOKEN
    :: atomic { state == PARKING && MINE -> state = READY; took_effect() }; queued++
#else
    :: atomic { state == PARKING && MINE -> state = WOKEN; took_effect() }
#endif
    :: else
    fi;
quit:
    skip
}

active proctype monitor()
{
    timeout;
    assert(done && queued == 0)
}

init
{
    byte i, j;
    atomic {
        do
        :: i < WORKERS -> run worker(); i++
        :: else -> i = 0; break
        od;
        do
        :: i < ROUNDS ->
            j = 0;
            do
            :: j < WAKERS -> run waker(i); j++
            :: else -> break
            od;
            i++
        :: else -> break
        od
    }
}
