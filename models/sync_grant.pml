/* SPDX-License-Identifier: MIT */
/*
 * Tasks wait for a semaphore's permits, an outside thread gives them, and a cancel may end the
 * first task's wait: [sync-grant], [sync-last].
 *
 *   task      parks; under BUSY takes a permit, or joins the queue. Woken with OK, it was granted a
 *             permit and waits until BUSY is clear. Woken otherwise, it takes BUSY. If it is still
 *             in the queue, it leaves it with nothing. Otherwise it was granted a permit. Then it
 *             waits for something else.
 *   giver     under BUSY: takes the first off the queue and wakes it, or adds to the permits
 *
 * The last task to return frees the semaphore, when all permits have been given. Nothing touches
 * freed memory, no wake ends another wait, permits add up, and a task that is not cancelled gets a
 * permit. Otherwise the search ends where it must not.
 *
 *   run: ok    -DAS_IT_IS
 *   run: ok    -DTASKS=1
 * Why each part is there:
 *   run: error -DNO_LAST -DTASKS=1   BUSY is cleared in freed memory
 *   run: error -DBLIND_BACK          a cancelled task drops the permit it was granted
 *   run: error -DLATE_WAKE           a wake after BUSY is cleared ends the other wait
 *
 * checks: [sync-grant], [sync-last]
 */
#ifndef TASKS
#define TASKS 2
#endif

mtype = { AWAKE, PARKED, NOTHING, OK, CANCELLED, OTHER };

bool  busy, freed, queued[TASKS];
byte  order[TASKS], length;   /* the queue */
mtype park[TASKS] = AWAKE, status[TASKS] = NOTHING;
byte  wait[TASKS], got, permits, given, returned, over;

inline enter() { d_step { !busy -> assert(!freed); busy = true } }
inline leave() { d_step { assert(!freed && busy); busy = false } }

inline take_out(task)
{
    d_step {
        queued[task] = false;
        if
        :: length == 2 && order[0] == task -> order[0] = order[1]
        :: else
        fi;
        length--
    }
}

proctype waiter(byte me)
{
    d_step { wait[me] = 1; park[me] = PARKED };
    enter();
    if
    :: permits > 0 -> permits--; got++; park[me] = AWAKE; leave(); goto back
    :: else -> d_step { order[length] = me; length++; queued[me] = true }; leave()
    fi;
    park[me] == AWAKE;
    if
    :: status[me] == OK ->
#ifndef NO_LAST
        !busy;
#endif
        got++;
        goto back
    :: else
    fi;
    enter();
    if
    :: queued[me] -> take_out(me)
    :: else ->
#ifndef BLIND_BACK
        got++
#else
        skip
#endif
    fi;
    leave();
back:
    returned++;
    d_step { wait[me] = 2; status[me] = NOTHING; park[me] = PARKED };
    park[me] == AWAKE;
    assert(status[me] == OTHER);
    over++
}

inline wake(task)
{
    d_step {
        if
        :: park[task] == PARKED -> assert(wait[task] == 1); park[task] = AWAKE; status[task] = OK
        :: else
        fi
    }
}

proctype giver()
{
    byte first;
    do
    :: given < TASKS ->
        enter();
        given++;
        if
        :: length > 0 ->
            first = order[0];
            take_out(first);
#ifndef LATE_WAKE
            wake(first);
#endif
            leave();
#ifdef LATE_WAKE
            wake(first)
#endif
        :: else -> permits++; leave()
        fi
    :: else -> break
    od
}

/* Ends the first wait of task 0, which may be interrupted. The other waker ends the second. */
proctype canceller()
{
    if
    :: d_step { park[0] == PARKED && wait[0] == 1 -> park[0] = AWAKE; status[0] = CANCELLED }
    :: wait[0] == 2
    fi
}

proctype other_waker(byte task)
{
    d_step { park[task] == PARKED && wait[task] == 2 -> park[task] = AWAKE; status[task] = OTHER }
}

active proctype owner()
{
    byte task;
    do
    :: task < TASKS -> run waiter(task); task++
    :: else -> break
    od;
    run giver();
    run canceller();
    returned == TASKS && given == TASKS; /* the giver may still be on its way out */
    assert(TASKS > 1 || got + permits <= TASKS);
#if TASKS == 1
    if
    :: got == 1 -> freed = true /* by the task that got the last permit */
    :: else
    fi;
#else
    !busy;
    assert(got + permits == given);
#endif
    task = 0;
    do
    :: task < TASKS -> run other_waker(task); task++
    :: else -> break
    od;
    over == TASKS
}
