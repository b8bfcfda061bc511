/* SPDX-License-Identifier: MIT */
/*
 * The word of one direction of a descriptor: a reader, tellers of edges, and what else ends a wait.
 *
 *   peer      sends bytes and then the end; each raises an edge
 *   teller    takes the edge, if something is there by then; notes an end in `seen`;
 *             NOTHING -> EDGE, or a waiter -> NOTHING, and wakes the waiter. If the wake did
 *             nothing, or the waiter is a thread, it sets `let_go`
 *   reader    takes the note; tries, unless the last transfer was short and no end was seen;
 *             nothing there: it parks, NOTHING -> itself, looks at the deadline once more, waits.
 *             Woken otherwise: itself -> NOTHING, or it waits for `let_go` and leaves EDGE
 *   canceller, closer, kicker: end the wait at any moment. The closer tells. The kicker has set a
 *             deadline anew: the waiter looks again, but does not try
 *
 * No wake meets another wait than its own. A call returns one status, for a reason that exists. When
 * nobody can move, the reader is not one that waits although there is a byte, an end or a reason.
 * No byte is lost: what was sent was read, or is still there. How the task gets off its stack is
 * task_park.pml's business.
 *
 *   run: ok    -DAS_IT_IS -DCANCEL
 *   run: ok    -DAS_IT_IS -DCLOSE
 *   run: ok    -DAS_IT_IS -DKICK
 *   run: ok    -DAS_IT_IS -DTELLERS=2 -DCANCEL
 *   run: ok    -DTHREAD -DCLOSE
 *   run: ok    -DTHREAD -DKICK -DTELLERS=2
 *   long: ok   -DAS_IT_IS -DCANCEL -DCLOSE -DKICK
 *   long: ok   -DAS_IT_IS -DCANCEL -DCLOSE -DKICK -DTELLERS=2 -DBYTES=3
 *   long: ok   -DTHREAD -DCLOSE -DKICK -DTELLERS=2 -DBYTES=3
 * Why each part is there:
 *   run: error -DTAKE_LATE                 the note is taken before the try, not after it
 *   run: error -DNOT_STICKY                an end that came with bytes is remembered
 *   run: error -DNO_NOTE                   a teller that finds nobody leaves a note
 *   run: error -DNO_LET_GO -DCANCEL        a waiter stays until the teller has let go
 *   run: error -DBLIND_BACK -DCANCEL       a waiter looks whether a teller was first
 *   run: error -DNO_EDGE_BACK -DCANCEL     the edge of a wake that did nothing is left as a note
 *   run: error -DNO_LOOK -DKICK            a waiter looks at the deadline after it has joined
 *   run: error -DSPIN_BACK -DKICK          a teller that was first wakes the waiter: it must park
 *   run: error -DKICK_FIRST -DKICK         the deadline is set before the word is read
 *   run: error -DCLOSE_LOOKS -DCLOSE       a close leaves a note for a reader that does not wait yet
 *
 * checks: [ready-word], [ready-try], [ready-last], [ready-look], [io-drained]
 */
#ifndef BYTES
#define BYTES 2
#endif
#ifndef TELLERS
#define TELLERS 1
#endif
#define CALLS (BYTES + 2)

mtype = { NOTHING, EDGE, WAITER, AWAKE, PARKED, OK, CANCELLED, CLOSED, DEADLINE, UNKNOWN, SHORT,
          EMPTY, LOOK };

mtype word = NOTHING, park = AWAKE, status = OK;
byte  wait;              /* the number of the reader's wait */
bool  let_go, bell;
bool  seen;              /* an end was told */
byte  there, sent, got;  /* bytes in the system, sent, read */
bool  end, edge;
bool  closing, cancelled, late;
bool  shielded, over, ended; /* the reader obeys a cancel once; it stopped; it saw the end */

/* The waker's step: AWAKE with a status, unless the wait is over. */
inline serve(why, won)
{
    if
    :: d_step { park == PARKED -> assert(wait == mine); park = AWAKE; status = why; won = true }
    :: else -> won = false
    fi
}

/* jrt_ready_tell */
inline tell()
{
    do
    :: word == EDGE -> break
#ifdef NO_NOTE
    :: word == NOTHING -> break
#else
    :: d_step { word == NOTHING -> word = EDGE }; break
#endif
    :: d_step { word == WAITER -> word = NOTHING; mine = wait };
#ifdef THREAD
        bell = true;
        let_go = true;
#else
        serve(OK, won);
        if
        :: won
        :: else -> let_go = true
        fi;
#endif
        break
    od
}

/* jrt_ready_kick */
inline kick()
{
    if
    :: d_step { word == WAITER -> word = NOTHING; mine = wait };
#ifdef THREAD
        bell = true;
        let_go = true
#else
        serve(LOOK, won);
        if
        :: won
        :: else -> let_go = true
        fi
#endif
    :: else
    fi
}

proctype teller()
{
    byte mine;
    bool won, some, last;
end_teller:
    do
    :: d_step { edge -> edge = false; some = there > 0 || end; last = end };
#ifndef NOT_STICKY
        if
        :: last -> seen = true
        :: else
        fi;
#endif
        if
        :: some -> tell()
        :: else
        fi
    od
}

active proctype peer()
{
    do
    :: true -> break /* it says no more */
    :: sent < BYTES - 1 -> d_step { sent++; there++; edge = true }
    :: sent == BYTES - 1 -> d_step { sent++; there++; end = true; edge = true }; break /* K1 */
    od
}

#ifdef CANCEL
active proctype canceller()
{
    cancelled = true;
    if
    :: d_step { park == PARKED && !shielded -> park = AWAKE; status = CANCELLED }
    :: else
    fi
}
#endif

#ifdef CLOSE
active proctype closer()
{
    byte mine;
    bool won;
    closing = true;
#ifdef CLOSE_LOOKS
    if
    :: word == WAITER -> tell()
    :: else
    fi
#else
    tell()
#endif
}
#endif

#ifdef KICK
active proctype kicker()
{
    byte mine;
    bool won;
#ifdef KICK_FIRST
    kick();
    late = true
#else
    late = true;
    kick()
#endif
}
#endif

/* jrt_ready_leave */
inline leave()
{
    if
    :: d_step { word == WAITER -> word = NOTHING }
    :: word != WAITER ->
#ifdef BLIND_BACK
        skip
#else
#ifndef NO_LET_GO
        let_go;
        let_go = false;
#endif
#ifndef NO_EDGE_BACK
        if
        :: d_step { word == NOTHING -> word = EDGE }
        :: else
        fi
#endif
#endif
    fi
}

/* jrt_io_await: the result is OK (try again), or why not. */
inline await()
{
    skip;
look:
    if
    :: closing -> result = CLOSED; goto returned
    :: else
    fi;
    if
    :: late -> result = DEADLINE; goto returned
    :: else
    fi;
    if
    :: cancelled && !shielded -> result = CANCELLED; goto returned
    :: else
    fi;
    d_step { wait++; park = PARKED; status = OK; bell = false };
    if
    :: d_step { word == NOTHING -> assert(!let_go); word = WAITER }
    :: d_step { word == EDGE -> word = NOTHING; park = AWAKE }; result = OK; goto waited
    fi;
#ifndef NO_LOOK
    if
    :: late ->
#if defined(THREAD) || defined(SPIN_BACK)
        leave();
        park = AWAKE;
        result = OK;
        goto waited
#else
        if
        :: d_step { word == WAITER -> word = NOTHING; park = AWAKE }; result = LOOK; goto waited
        :: word != WAITER /* a teller was first: its wake comes */
        fi
#endif
    :: else
    fi;
#endif
#ifdef THREAD
end_thread:
    (bell || there > 0 || end);
    park = AWAKE;
    leave();
    result = OK;
#else
    if
    :: cancelled && !shielded -> /* [cancel-park] */
        if
        :: d_step { park == PARKED -> park = AWAKE; status = CANCELLED }
        :: else
        fi
    :: else
    fi;
end_task:
    park == AWAKE;
    result = status;
    if
    :: result == OK || result == LOOK
    :: else -> leave()
    fi;
#endif
waited:
    if
    :: closing -> result = (result == CANCELLED -> CANCELLED : CLOSED)
    :: else
    fi;
    if
    :: result == OK -> drained = UNKNOWN
    :: result == LOOK -> result = OK; goto look
    :: else
    fi;
returned:
    skip
}

active proctype reader()
{
    mtype result;
    mtype drained = UNKNOWN;
    bool  try;
    byte  i;
    byte  mine;
    bool  won;
    for (i : 1 .. TELLERS) { run teller() }
call:
    if
    :: late -> result = DEADLINE; goto done
    :: else
    fi;
    result = OK;
    do
    :: result != OK -> goto done
    :: else ->
        try = false;
#ifdef TAKE_LATE
        try = true;
#else
        if
        :: d_step { word == EDGE -> word = NOTHING; try = true }
        :: else -> try = (drained == UNKNOWN || (drained == SHORT && seen))
        fi;
#endif
        if
        :: try ->
            if
            :: d_step { there > 0 -> got = got + there; there = 0; drained = SHORT }; goto call
            :: d_step { there == 0 && end -> ended = true }; goto done
            :: d_step { there == 0 && !end -> drained = EMPTY }
            fi;
#ifdef TAKE_LATE
            if
            :: d_step { word == EDGE -> word = NOTHING }
            :: else
            fi
#endif
        :: else
        fi;
        await()
    od;
done:
    if
    :: result == CANCELLED -> assert(cancelled); shielded = true; result = OK; goto call
    :: result == CLOSED -> assert(closing)
    :: result == DEADLINE -> assert(late)
    :: else -> assert(ended)
    fi;
    over = true
}

active proctype monitor()
{
    timeout;
    assert(over || (there == 0 && !end && !closing && !late && (!cancelled || shielded)));
    assert(got + there == sent)
}
