/* SPDX-License-Identifier: MIT */
/*
 * A task that rests between letters, [task-rest] in rest.c, and the lock of the place where its
 * letters lie.
 *
 *   sender   under the lock: a letter; if the task rests: it does not rest, PARKED -> AWAKE.
 *            Without the lock: queue the task, if this waker ended the rest
 *   cancel   cancelled = true; without the lock: PARKED -> AWAKE and queue the task, or
 *            PARKING -> AWAKE
 *   entry    under the lock: the task does not rest. Then take letters, one by one, or end
 *   rest     PARKING; if it is not cancelled, under the lock: if there is no letter, the task
 *            rests, and PARKING -> PARKED. Whatever fails, the task is queued again
 *   end      under the lock: how it ended. It waits for something else, which no sender knows.
 *            Then under the lock: no task
 *   again    the second task begins at rest: PARKED; if it is cancelled, a claim as a sender's.
 *            Then under the lock: it rests, if it is still PARKED; if there are letters, a claim
 *
 * What a fence makes visible is in cancel.pml; here all see all at once.
 *
 * No letter lies there while the task rests. A waker ends no wait but the rest. The task is queued
 * once, and never while it runs. A task that is cancelled ends.
 *
 *   run: ok    -DSENDERS=2
 *   run: ok    -DSENDERS=2 -DCANCEL=1
 *   run: ok    -DSENDERS=1 -DCANCEL=2
 *   run: ok    -DSENDERS=2 -DCANCEL=2
 * Why each part is there:
 *   run: error -DSENDERS=1 -DNO_SECOND_LOOK              a letter between the last look and the rest
 *   run: error -DSENDERS=1 -DUNLOCKED                    the same, if the look has its own lock
 *   run: error -DSENDERS=2 -DQUEUE_ALWAYS -DCANCEL=1     a cancel was first, and queues it, too
 *   run: error -DSENDERS=1 -DBLIND -DCANCEL=1            PARKED overwrites the wake of a cancel
 *   run: error -DSENDERS=1 -DNO_CANCEL_LOOK -DCANCEL=1   a cancel before PARKING wakes nobody
 *   run: error -DSENDERS=1 -DNO_CLEAR -DCANCEL=1         a sender ends the wait of a task that ends
 *   run: error -DSENDERS=1 -DTOUCH_LATE                  its worker is not done with it yet
 *   run: error -DSENDERS=1 -DAGAIN_NO_LOOK -DCANCEL=1    a letter that came while there was no task
 *   run: error -DSENDERS=1 -DAGAIN_BLIND -DCANCEL=2      a cancel has woken the second task before
 *   run: error -DSENDERS=1 -DNO_LAST_LOCK -DCANCEL=2     the same, and its next wait looks like rest
 *
 * checks: [task-rest]
 */
#ifndef CANCEL
#define CANCEL 0 /* how many of the two tasks are cancelled */
#endif
#define WORKERS 2

mtype = { AWAKE, PARKING, PARKED };

mtype park = AWAKE;
byte  life = 1;          /* which task sits there */
bool  task = true;       /* one does */
bool  begun = true;      /* its place knows that it has begun */
byte  queued = 1;        /* how often the task is in a queue */
bool  in_use;            /* a worker uses the record */
bool  elsewhere;         /* the task waits for something that is no letter */
bool  locked, steps;     /* the locks of the place and of the supervisor */
bool  resting;
byte  letters;
bool  cancelled[3], ended[3];
bool  visited;           /* by a cancel; then the record stays */

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* Under the lock: ends the rest. */
inline claim()
{
    atomic {
        assert(park == AWAKE || !elsewhere);
        if
        :: park == PARKED -> park = AWAKE; claimed = true
        :: park == PARKING -> park = AWAKE
        :: else
        fi
    }
}

inline queue()
{
    atomic { queued++; assert(queued == 1); claimed = false }
}

inline queue_if_claimed()
{
    if
    :: claimed -> queue()
    :: else
    fi
}

/* Starts the second task. Under the supervisor's lock. */
inline start_again()
{
    d_step { life = 2; task = true; begun = false; park = PARKED };
    if
    :: cancelled[2] -> claim(); queue_if_claimed()
    :: else
    fi;
    lock();
    begun = true;
#ifdef AGAIN_BLIND
    resting = true;
#else
    resting = task && park == PARKED;
#endif
#ifndef AGAIN_NO_LOOK
    if
    :: letters > 0 && resting -> resting = false; claim()
    :: else
    fi;
#endif
    unlock();
    queue_if_claimed()
}

proctype worker()
{
    byte mine;
    bool claimed, found;
end_worker:
    do
    :: atomic { queued > 0 -> queued--; assert(!in_use && park == AWAKE); in_use = true;
                mine = life };
        lock();
#ifndef NO_CLEAR
        resting = false;
#endif
        unlock();
take:
        if
        :: cancelled[mine] -> goto finish
        :: else
        fi;
        lock();
        atomic { found = letters > 0; letters = (found -> letters - 1 : letters) };
        unlock();
        if
        :: found -> found = false; goto take
        :: else
        fi;
        park = PARKING;
#ifndef TOUCH_LATE
        in_use = false;
#endif
#ifndef NO_CANCEL_LOOK
        if
        :: cancelled[mine] -> goto undo
        :: else
        fi;
#endif
        lock();
#ifdef UNLOCKED
        found = letters > 0;
        unlock();
        lock();
#elif !defined(NO_SECOND_LOOK)
        found = letters > 0;
#endif
        if
        :: found -> found = false; unlock(); goto undo
        :: else
        fi;
        resting = true;
#ifdef BLIND
        atomic { park = PARKED; assert(letters == 0) };
        unlock();
        goto next;
#else
        if
        :: atomic { park == PARKING -> park = PARKED; assert(letters == 0) };
            unlock();
#ifdef TOUCH_LATE
            in_use = false;
#endif
            goto next
        :: else -> resting = false; unlock()
        fi;
#endif
undo:
#ifdef TOUCH_LATE
        in_use = false;
#endif
        atomic { assert(park != PARKED); park = AWAKE };
        queue();
        goto next;
finish:
        if
        :: begun ->
#ifndef NO_LAST_LOCK
            lock();
            unlock();
#endif
            atomic { elsewhere = true; park = PARKED };
            atomic { assert(park == PARKED); park = AWAKE; elsewhere = false }
        :: else /* it has not begun, and has nothing to end */
        fi;
        lock();
        d_step { task = false; resting = false };
        unlock();
        atomic { !visited -> ended[mine] = true; in_use = false };
        atomic { !steps -> steps = true };
        if
        :: mine == 1 -> start_again()
        :: else
        fi;
        steps = false;
next:
        mine = 0
    od
}

proctype sender()
{
    bool claimed;
    lock();
    letters++;
    if
    :: resting ->
        resting = false;
        claim();
#ifdef QUEUE_ALWAYS
        claimed = true
#endif
    :: else
    fi;
    unlock();
    queue_if_claimed()
}

proctype canceller(byte which)
{
    bool claimed;
    cancelled[which] = true;
    if
    :: atomic { life == which && !ended[which] -> visited = true };
        atomic {
            if
            :: park == PARKED && !elsewhere -> park = AWAKE; claimed = true
            :: park == PARKING -> park = AWAKE
            :: else
            fi
        };
        queue_if_claimed();
        visited = false
    :: else /* it has ended, or is not there yet */
    fi
}

active proctype monitor()
{
    timeout;
    assert(queued == 0 && !locked);
    assert(ended[2] || (letters == 0 && resting && park == PARKED));
    assert(!cancelled[1] || ended[1]);
    assert(!cancelled[2] || !ended[1] || ended[2])
}

init
{
    atomic {
        byte i = 0;
        do
        :: i < WORKERS -> run worker(); i++
        :: else -> i = 0; break
        od;
        do
        :: i < SENDERS -> run sender(); i++
        :: else -> break
        od;
        i = 1;
        do
        :: i <= CANCEL -> run canceller(i); i++
        :: else -> break
        od
    }
}
