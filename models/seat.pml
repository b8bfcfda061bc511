/* SPDX-License-Identifier: MIT */
/*
 * A seat: the thread of one task, the threads that hand it the task, and its end (src/work/seat.c).
 *
 *   hander    count outside; signal EMPTY -> HANDED, the last touch; finding GONE: queue for all
 *   thread    count off; wait for HANDED; EMPTY; run the task; again. The task is over: vacate
 *   lost      it ends in the middle: signal any -> GONE; what was handed is queued for all
 *   reaper    over and vacant: frees it
 *
 * The task waits ROUNDS times. It may end its thread once; the thread may be lost before it looks
 * for the first time. Nothing touches the seat when it is free. The task runs in one place and to
 * its end. While it is handed over or runs on the seat, one thread counts as able to act.
 *
 *   run: ok    -DROUNDS=2
 *   run: ok    -DROUNDS=4
 * Why each part is there:
 *   run: error -DTOUCH_LATE     a hander that touches the seat after the task can run on
 *   run: error -DCOUNT_LATE     counting after handing: a deadlock is seen that is none
 *   run: error -DBLIND          GONE without a look at what was handed
 *   run: error -DEARLY          freeing it when it is over, and not vacant yet
 *
 * checks: [seat-hand], [seat-outside], [seat-end]
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif

mtype = { EMPTY, HANDED, GONE };

mtype signal = EMPTY;
bool  over, vacant, freed;
bool  parked, running, on_seat, died;
byte  rounds, queued;
short outside = 1; /* its maker's */

inline touch() { assert(!freed) }

inline hand()
{
#ifndef COUNT_LATE
    outside++;
#endif
    touch();
    if
    :: atomic { signal == EMPTY -> signal = HANDED };
#ifdef COUNT_LATE
        outside++;
#endif
#ifdef TOUCH_LATE
        touch();
#endif
        skip
    :: else ->
        assert(signal == GONE);
        queued++;
        outside--
    fi
}

/* It ends, or waits. Its waker may come at once. */
inline run_task()
{
    assert(!running);
    running = true;
    if
    :: rounds == ROUNDS -> running = false; on_seat = false; touch(); over = true
    :: else -> rounds++; running = false; d_step { on_seat = false; parked = true }
    fi
}

proctype thread()
{
    mtype old;
    if
    :: goto lose /* no signal stack */
    :: skip
    fi;
idle:
    touch();
    outside--;
    if
    :: signal == HANDED
    :: signal == EMPTY && over -> goto vacate
    fi;
    touch();
    d_step { on_seat = true; signal = EMPTY };
    if
    :: !died && rounds < ROUNDS -> died = true; on_seat = false; hand(); goto lose
    :: run_task()
    fi;
    goto idle;
lose:
    touch();
#ifdef BLIND
    old = EMPTY;
    signal = GONE;
#else
    atomic { old = signal; signal = GONE };
#endif
    if
    :: old == HANDED -> queued++; outside--
    :: else
    fi;
    outside--;
vacate:
    touch();
    vacant = true
}

proctype worker()
{
end_worker:
    do
    :: atomic { queued > 0 -> queued-- }; run_task()
    od
}

proctype waker()
{
end_waker:
    do
    :: atomic { parked -> parked = false }; hand()
    od
}

proctype reaper()
{
#ifdef EARLY
    atomic { over -> freed = true }
#else
    atomic { over && vacant -> freed = true }
#endif
}

active proctype watch()
{
end_watch:
    atomic { outside <= 0 && (signal == HANDED || on_seat) -> assert(false) }
}

active proctype monitor()
{
    timeout;
    assert(freed && outside == 0 && queued == 0 && rounds == ROUNDS)
}

init
{
    atomic { run thread(); run worker(); run waker(); run reaper() };
    hand()
}
