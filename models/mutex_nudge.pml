/* SPDX-License-Identifier: MIT */
/*
 * Three tasks lock a mutex, the first one twice. The second may be cancelled while it
 * waits: [mutex-nudge].
 *
 *   lock      free: the task takes it, also with a queue. Otherwise it joins the queue and parks.
 *             A nudged task tries again, under BUSY. If the mutex is free, it takes it and leaves
 *             the queue. Otherwise it has lost, and parks again. A cancelled task leaves the queue
 *             and, if the mutex is free, nudges the next.
 *   unlock    with a queue: hands it to the first task if that has lost. Otherwise it is free, and
 *             the first task is nudged, unless it is on its way already
 *
 * One task at a time has the mutex. No task waits for ever. A task that has lost is not overtaken
 * again. A wake never ends another wait. Every step under BUSY is one step here:
 * tests/sync/queue_model.c checks that nothing else is touched.
 *
 *   run: ok    -DAS_IT_IS
 * Why each part is there:
 *   run: error -DNO_PASSING_ON   the cancelled task was nudged: the others are never woken
 *   run: error -DNO_HANDING      a task that has lost is overtaken again
 *   run: error -DPARK_LATE       it sets PARKING after it has looked: a nudge is lost
 *
 * checks: [mutex-nudge]
 */
#define NOBODY 9

mtype = { AWAKE, PARKED, QUEUED, GRANTED, NUDGED };

mtype park[3] = AWAKE, woken[3] = QUEUED;
bool  cancelled[3], lost[3], waits[3];
byte  holder = NOBODY, order[3] = NOBODY, length, inside, over;

inline wake(task)
{
    if
    :: park[task] == PARKED -> assert(waits[task]); park[task] = AWAKE
    :: else
    fi
}

inline nudge()
{
    if
    :: length > 0 && woken[order[0]] == QUEUED -> woken[order[0]] = NUDGED; wake(order[0])
    :: else
    fi
}

inline take_out(task)
{
    if
    :: order[0] == task -> order[0] = order[1]; order[1] = order[2]
    :: order[0] != task && order[1] == task -> order[1] = order[2]
    :: else
    fi;
    order[2] = NOBODY;
    length--
}

inline grab(task)
{
    assert(length == 0 || order[0] == task || !lost[order[0]]); /* a loser is next */
    holder = task
}

proctype task(byte me; byte rounds)
{
    bool got;
again:
    skip;
    d_step {
        got = false;
        woken[me] = QUEUED;
        lost[me] = false;
        if
        :: holder == NOBODY -> grab(me); got = true
        :: else -> waits[me] = true; park[me] = PARKED; order[length] = me; length++
        fi
    };
    do
    :: got -> break
    :: !got ->
        d_step { park[me] == AWAKE || cancelled[me] -> park[me] = AWAKE };
        if
        :: cancelled[me] && woken[me] != GRANTED -> break
        :: else
        fi;
#ifdef PARK_LATE
        d_step {
            if
            :: woken[me] == GRANTED -> got = true
            :: woken[me] != GRANTED && holder == NOBODY -> grab(me); take_out(me); got = true
            :: else -> woken[me] = QUEUED; lost[me] = true
            fi
        };
        if
        :: !got -> park[me] = PARKED
        :: else
        fi
#else
        d_step {
            if
            :: woken[me] == GRANTED -> got = true
            :: woken[me] != GRANTED && holder == NOBODY -> grab(me); take_out(me); got = true
            :: else -> woken[me] = QUEUED; lost[me] = true; park[me] = PARKED
            fi
        }
#endif
    od;
    skip;
    d_step {
        if
        :: !got && woken[me] == GRANTED -> got = true /* at the same moment */
        :: !got && woken[me] != GRANTED ->
            take_out(me);
#ifndef NO_PASSING_ON
            if
            :: holder == NOBODY -> nudge()
            :: else
            fi
#endif
        :: else
        fi;
        waits[me] = false
    };
    if
    :: got ->
        inside++;
        assert(inside == 1 && holder == me);
        inside--;
        d_step {
            holder = NOBODY;
            if
            :: length == 0
#ifndef NO_HANDING
            :: length > 0 && lost[order[0]] ->
                holder = order[0];
                woken[holder] = GRANTED;
                take_out(holder);
                wake(holder)
            :: length > 0 && !lost[order[0]] -> nudge()
#else
            :: length > 0 -> nudge()
#endif
            fi
        }
    :: else
    fi;
    rounds--;
    if
    :: rounds > 0 -> goto again
    :: else -> over++
    fi
}

/* A cancel ends only the wait. A task that tries at that moment finds the cancel when it parks. */
proctype canceller()
{
    d_step { cancelled[1] = true; wake(1) }
}

active proctype watch()
{
    atomic { run task(0, 2); run task(1, 1); run task(2, 1); run canceller() };
    if
    :: over == 3
    :: timeout -> assert(over == 3)
    fi
}
