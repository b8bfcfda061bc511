/* SPDX-License-Identifier: MIT */
/*
 * A keeper sleeps until the earliest deadline, while others arm earlier ones in sets of their own.
 *
 *   arm     next = deadline; light fence; unless nobody sleeps: under idle_lock, if there is a
 *           keeper that sleeps beyond the deadline, signal it
 *   sleep   count as asleep; heavy fence; under idle_lock become the keeper and read the next
 *           deadline of each set; sleep until the earliest or a signal
 *
 * Others see a store late, until a fence or a lock empties the armer's store buffer. FENCE pairs
 * the fences as in park_wake.pml. When nobody can move, the keeper must have been told of every
 * deadline, or know it.
 *
 *   run: ok    -DFENCE=FULL
 *   run: ok    -DFENCE=LIGHT
 *   run: error -DFENCE=NONE                 both fences
 *   run: error -DFENCE=LIGHT_FULL           a light fence needs the heavy one
 *   run: error -DFENCE=LIGHT -DNO_TELL      a keeper that was there first must be told
 *   run: error -DFENCE=LIGHT -DUNTIL_LATE   it notes under the lock how long it sleeps
 *
 * checks: [timer-keeper]
 */
#define NONE 0
#define FULL 1
#define LIGHT 2
#define LIGHT_FULL 3
#define NEVER 9
#define A 2 /* armers, each with a set */

byte next[A], late[A]; /* the deadline that all see, and the one in the store buffer */
byte deadline[A];
byte asleep, until;
byte wakes; /* when the keeper's sleep ends by itself */
bool locked, keeper, signalled, sleeps;

inline lock(me) { atomic { !locked -> locked = true } }

inline flush(me)
{
    d_step {
        if
        :: late[me] != NEVER -> next[me] = late[me]; late[me] = NEVER
        :: else
        fi
    }
}

proctype arm(byte me)
{
    late[me] = deadline[me];
#if FENCE == FULL
    flush(me);
#endif
    if
    :: asleep > 0 ->
        lock(me);
        flush(me); /* a locked instruction */
        if
        :: keeper && deadline[me] < until ->
#ifndef NO_TELL
            signalled = true;
#endif
            until = deadline[me]
        :: else
        fi;
        locked = false
    :: else
    fi
}

proctype sleeper()
{
    byte earliest;
    asleep++;
#if FENCE == FULL || FENCE == LIGHT
    flush(0);
    flush(1);
#endif
    lock(A);
    keeper = true;
#ifdef UNTIL_LATE
    locked = false;
#endif
    earliest = next[0];
    if
    :: next[1] < earliest -> earliest = next[1]
    :: else
    fi;
    until = earliest;
    locked = false;
    wakes = earliest;
    sleeps = true;
end_asleep:
    signalled; /* it looks again, at all */
    flush(0);
    flush(1)
}

/* Sooner or later what was stored is seen. */
active proctype memory()
{
end_memory:
    do
    :: late[0] != NEVER -> flush(0)
    :: late[1] != NEVER -> flush(1)
    od
}

active proctype monitor()
{
    timeout;
    assert(sleeps && (signalled || (wakes <= deadline[0] && wakes <= deadline[1])))
}

init
{
    atomic {
        next[0] = NEVER; next[1] = NEVER; late[0] = NEVER; late[1] = NEVER;
        until = 0; /* no keeper */
        if
        :: deadline[0] = 3; deadline[1] = 5
        :: deadline[0] = 5; deadline[1] = 3
        fi;
        run arm(0); run arm(1); run sleeper()
    }
}
