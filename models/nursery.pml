/* SPDX-License-Identifier: MIT */
/*
 * How a nursery ends: children complete while the owner closes and awaits it, while others cancel
 * it and spawn into it.
 *
 *   state    OPEN -> CLOSING -> CLOSED; OPEN or CLOSING -> CANCELLING -> CANCELLED
 *   pending  children that were accepted and have not completed
 *   waiter   NOBODY, WAITING (the owner is parked) or OVER
 *
 * The party that finds the nursery no longer OPEN and nothing pending makes the terminal
 * transition. Exactly one party does, and no accepted child is left then. After it waiter = OVER by
 * an exchange, and if the owner was WAITING, one wake. await goes from NOBODY to WAITING and parks,
 * or finds OVER. When await has returned, the owner frees the nursery: nobody may touch it any
 * more.
 *
 * WORD, how state and pending are kept:
 *   PACKED    in one word; spawn, completion, close and cancel are one compare-and-swap each, the
 *             terminal transition included
 *   TOKEN     apart; being OPEN counts as one pending, and leaving OPEN gives it back. spawn adds
 *             one unless pending is zero; a second look at the state (cancel.pml needs it) finds
 *             the nursery closed meanwhile and completes at once
 *   APART     apart; whoever takes pending to zero, and whoever leaves OPEN, looks at the other
 *
 *   run: ok    -DWORD=PACKED
 *   run: ok    -DWORD=TOKEN
 *   run: ok    -DWORD=TOKEN -DNO_SECOND_LOOK
 *   run: ok    -DWORD=APART -DSPAWN_INSIDE
 * Why each part is there:
 *   run: error -DWORD=APART                  a spawn from outside slips in behind the end
 *   run: error -DWORD=TOKEN -DNO_CHECK_ZERO  a spawn revives what has ended
 *   run: error -DWORD=PACKED -DAWAIT_STATE   an await that trusts the state frees it too early:
 *   run: error -DWORD=TOKEN -DAWAIT_STATE    the last child has yet to exchange the waiter
 *   run: error -DWORD=PACKED -DNO_EXCHANGE   reading and then writing the waiter loses the owner
 *
 * SPAWN_INSIDE: only children and the owner spawn. A child is pending itself while it spawns.
 *
 * checks: [nursery-moves], [nursery-count]
 */
#define PACKED 0
#define TOKEN 1
#define APART 2

mtype = { OPEN, CLOSING, CANCELLING, CLOSED, CANCELLED, NOBODY, WAITING, OVER };

mtype state = OPEN;
#if WORD == TOKEN
short pending = 1;
#else
short pending;
#endif
mtype waiter = NOBODY;
bool  woken, freed, awaited;
byte  terminals;
byte  live;    /* children that run, for the checks */
byte  guests;  /* others that hold the nursery: the canceller, the spawner from outside */

#define ENDING (state == CLOSING || state == CANCELLING)
#define ENDED (state == CLOSED || state == CANCELLED)

inline touch() { assert(!freed) }

inline end_now()
{
    assert(ENDING);
    state = (state == CLOSING -> CLOSED : CANCELLED);
    terminals++;
    assert(terminals == 1);
    assert(live == 0)
}

/* After the terminal transition. */
inline release_waiter()
{
    touch();
#ifdef NO_EXCHANGE
    was = waiter;
    touch();
    waiter = OVER;
#else
    atomic { was = waiter; waiter = OVER };
#endif
    if
    :: was == WAITING -> assert(!woken); woken = true /* the owner's task, not the nursery */
    :: else
    fi;
    was = 0
}

/* Nothing may be pending any more: end it, if it is not open. */
inline try_end()
{
    last = false;
    if
    :: atomic {
        ENDING && (WORD == TOKEN || pending == 0) -> touch(); end_now(); last = true
       }
    :: else
    fi;
    if
    :: last -> last = false; release_waiter()
    :: else
    fi
}

inline complete()
{
#if WORD == PACKED
    atomic {
        touch();
        live--;
        pending--;
        if
        :: pending == 0 && ENDING -> end_now(); last = true
        :: else
        fi
    };
    if
    :: last -> last = false; release_waiter()
    :: else
    fi
#else
    atomic { touch(); live--; pending--; last = (pending == 0) };
    if
    :: last -> try_end()
    :: else
    fi
#endif
}

/* accepted: a child was started. */
inline spawn()
{
    accepted = false;
#if WORD == PACKED
    atomic {
        touch();
        if
        :: state == OPEN -> pending++; live++; accepted = true
        :: else
        fi
    };
#else
    touch();
    if
    :: state == OPEN ->
        atomic {
            touch();
            if
#if WORD == TOKEN && !defined(NO_CHECK_ZERO)
            :: pending == 0
#endif
            :: else -> pending++; live++; accepted = true; assert(!ENDED)
            fi
        }
    :: else
    fi;
#if WORD == TOKEN && !defined(NO_SECOND_LOOK)
    if
    :: accepted && state != OPEN -> accepted = false; complete()
    :: else
    fi;
#endif
#endif
    if
    :: accepted -> accepted = false; run child()
    :: else
    fi
}

/* close and cancel. */
inline leave_open(to)
{
#if WORD == PACKED
    atomic {
        touch();
        if
        :: state == OPEN || (state == CLOSING && to == CANCELLING) ->
            state = to;
            if
            :: pending == 0 -> end_now(); last = true
            :: else
            fi
        :: else
        fi
    };
    if
    :: last -> last = false; release_waiter()
    :: else
    fi
#else
    if
    :: atomic { state == OPEN -> touch(); state = to };
#if WORD == TOKEN
        atomic { touch(); pending--; last = (pending == 0) };
        if
        :: last -> try_end()
        :: else
        fi
#else
        try_end()
#endif
    :: atomic { state == CLOSING && to == CANCELLING -> touch(); state = to }
#if WORD == APART
        ; try_end()
#endif
    :: else
    fi
#endif
}

proctype child()
{
    mtype was;
    bool  last;
    complete()
}

/* A child that spawns another. */
proctype parent_child()
{
    mtype was;
    bool  last, accepted;
    spawn();
    complete()
}

proctype canceller()
{
    mtype was;
    bool  last;
    leave_open(CANCELLING);
    guests--
}

proctype spawner()
{
    mtype was;
    bool  last, accepted;
    spawn();
    guests--
}

active proctype owner()
{
    mtype was;
    bool  last;
    atomic {
        pending++;
        live++;
        run parent_child();
        guests++;
        run canceller();
#ifndef SPAWN_INSIDE
        guests++;
        run spawner()
#endif
    };
    leave_open(CLOSING);

    /* await */
#ifdef AWAIT_STATE
    if
    :: ENDED -> goto ended
    :: else
    fi;
#endif
    if
    :: atomic { waiter == NOBODY -> waiter = WAITING }; woken
    :: waiter == OVER
    fi;
ended:
    awaited = true;
    guests == 0; /* the caller's duty */
    freed = true
}

active proctype monitor()
{
    timeout;
    assert(freed && terminals == 1 && live == 0)
}
