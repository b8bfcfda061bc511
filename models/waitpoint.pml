/* SPDX-License-Identifier: MIT */
/*
 * A task waits at a waitpoint, an outside thread opens it, and a canceller cancels the wait.
 *
 *   task      parks; CLOSED -> itself, or it is OPEN. Woken otherwise than by the waker: itself
 *             -> CLOSED; if that fails it waits for `let_go`. Frees the waitpoint as soon as it may,
 *             waits for something else, ends; its scheduler is closed.
 *   waker    anything -> OPEN; if a task was there, counts as a guest, wakes it, and sets `let_go`
 *             if the wake did nothing
 *
 * Nothing touches a freed waitpoint or a closed scheduler, and no wake ends the other wait. An
 * opening is never lost, and the wait returns OK only after one. How the task gets off its stack is
 * task_park.pml's business: here it is parked in one step.
 *
 *   run: ok    -DAS_IT_IS
 * Why each part is there:
 *   run: error -DNO_DONE       the late wake ends the other wait
 *   run: error -DALWAYS_DONE   `let_go` is written into what was freed
 *   run: error -DBLIND_BACK    stepping back without looking loses an opening
 *   run: error -DNO_GUEST      the waker looks for a sleeping worker of a closed scheduler
 *
 * checks: [point-word], [point-last], [point-guest]
 */
mtype = { CLOSED, TASK, OPEN, AWAKE, PARKED, NOTHING, OK, CANCELLED, OTHER };

mtype word = CLOSED, park = AWAKE, status = NOTHING;
byte  wait;   /* which of its waits the task is in */
bool  let_go, freed, ended, gone, sched_closed;
byte  guests;

proctype task()
{
    mtype result;
    d_step { wait = 1; park = PARKED };
    if
    :: d_step { word == CLOSED -> word = TASK }
    :: d_step { word == OPEN -> park = AWAKE; result = OK }; goto open
    fi;
    park == AWAKE;
    result = status;
    if
    :: result == OK -> goto open
    :: else
    fi;
#ifdef BLIND_BACK
    word = CLOSED;
    goto closed;
#else
    if
    :: d_step { word == TASK -> word = CLOSED }; goto closed
    :: word == OPEN
    fi;
#endif
#ifndef NO_DONE
    let_go;
#endif
    result = OK;
    goto open;
closed:
    gone; /* a waker may still come: kept until none can */
    assert(word == OPEN);
open:
    freed = true;
    assert(result == CANCELLED || gone || word == OPEN);
    d_step { wait = 2; status = NOTHING; park = PARKED };
    park == AWAKE;
    assert(status == OTHER);
    ended = true
}

proctype waker()
{
    mtype old;
    bool  won;
    d_step { assert(!freed); old = word; word = OPEN };
    if
    :: old == TASK ->
#ifndef NO_GUEST
        guests++;
#endif
        if
        :: d_step { park == PARKED -> assert(wait == 1); park = AWAKE; status = OK; won = true }
        :: else -> won = false
        fi;
#ifdef ALWAYS_DONE
        won = false;
#endif
        if
        :: !won -> d_step { assert(!freed); let_go = true }
        :: else
        fi;
        assert(!sched_closed); /* a sleeping worker? */
#ifndef NO_GUEST
        guests--
#endif
    :: else
    fi;
    gone = true
}

/* Ends the first wait only: it may be interrupted, the other is the other waker's. */
proctype canceller()
{
    if
    :: d_step { park == PARKED && wait == 1 -> park = AWAKE; status = CANCELLED }
    :: park == AWAKE || wait == 2
    fi
}

proctype other_waker()
{
    d_step { park == PARKED && wait == 2 -> park = AWAKE; status = OTHER }
}

active proctype closer()
{
    run task();
    run waker();
    run canceller();
    run other_waker();
    ended;
    guests == 0;
    sched_closed = true
}
