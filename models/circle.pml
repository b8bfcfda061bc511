/* SPDX-License-Identifier: MIT */
/*
 * Actors in a ring that begin to wait for each other, as [actor-circle] in circle.c has it.
 *
 *   begin    write the word: whom this actor waits for, and a new version. Follow the words from
 *            there. If the way leads back: under the lock of circles follow it twice; if both ways
 *            are the same, refuse, and write that it waits for nobody
 *   answer   an actor that does not wait answers the one that waits for it, and writes that it
 *            waits no more, before it can go on
 *
 * When nobody can move any more, nobody waits. An actor that is refused closes a circle of waits
 * without an answer. Of the actors that close one circle together, one is refused.
 *
 *   run: ok    -DACTORS=2 -DROUNDS=1
 *   run: ok    -DACTORS=2 -DROUNDS=2
 *   run: ok    -DACTORS=3 -DROUNDS=1
 *   run: ok    -DACTORS=3 -DROUNDS=2 -DCHAIN
 *   long: ok   -DACTORS=3 -DROUNDS=2
 * Why each part is there:
 *   run: error -DACTORS=2 -DROUNDS=1 -DLATE_CLEAR   who was answered clears its word: a false alarm
 *   run: error -DACTORS=2 -DROUNDS=1 -DLOOK_FIRST   two that look before they write see nobody
 *   run: error -DACTORS=2 -DROUNDS=1 -DGAP          a wait that the word does not show for a moment
 *   run: error -DACTORS=3 -DROUNDS=2 -DONE_WALK     a way of waits that never were at one time
 *   run: error -DACTORS=2 -DROUNDS=1 -DNO_LOCK      both are refused, where one is enough
 *
 * checks: [actor-circle]
 */
#define NEXT(i) ((i + 1) % ACTORS)
#define BEFORE(i) ((i + ACTORS - 1) % ACTORS)

byte word[ACTORS];    /* 0: it waits for nobody; else the version of its wait for the next */
byte version[ACTORS];
bool open[ACTORS];    /* it waits, or is about to, and has no answer */
bool asked[ACTORS];   /* its letter lies in the mailbox of the next */
bool answered[ACTORS];
bool waits[ACTORS];
bool locked;
byte refused;

inline write(i)
{
    d_step { version[i]++; word[i] = version[i]; open[i] = true }
}

/* Follows the words: `leads` says whether they lead back, `sum` has the versions on the way. */
inline walk(me)
{
    d_step { at = NEXT(me); leads = false; sum = 0 };
    do
    :: at == me -> leads = true; break
    :: at != me && word[at] == 0 -> break
    :: atomic { at != me && word[at] != 0 -> sum = sum * 8 + word[at]; at = NEXT(at) }
    od
}

inline look(me)
{
    refuse = false;
    walk(me);
#ifdef ONE_WALK
    refuse = leads;
#else
    if
    :: leads ->
#ifndef NO_LOCK
        atomic { !locked -> locked = true; holds = true };
#endif
        walk(me);
        first = sum;
        if
        :: leads -> walk(me); refuse = (leads && sum == first)
        :: else
        fi;
    :: else
    fi;
#endif
    if
    :: refuse -> d_step {
            i = NEXT(me);
            do
            :: i != me -> assert(open[i]); i = NEXT(i) /* no false alarm */
            :: else -> break
            od;
            refused++;
            word[me] = 0;
            open[me] = false
        }
    :: else
    fi;
    if
    :: holds -> d_step { holds = false; locked = false }
    :: else
    fi
}

proctype actor(byte me)
{
    byte rounds = ROUNDS, at, i;
    short sum, first;
    bool leads, refuse, holds;
#ifdef CHAIN
    if
    :: me == ACTORS - 1 -> rounds = 0
    :: else
    fi;
#endif
end_actor:
    do
    :: rounds > 0 ->
        rounds--;
#ifdef LOOK_FIRST
        look(me);
        write(me);
#else
        write(me);
        look(me);
#endif
#ifdef GAP
        if
        :: !refuse -> word[me] = 0
        :: else
        fi;
#endif
        if
        :: refuse
        :: else ->
            d_step { waits[me] = true; asked[me] = true };
end_waits:
            answered[me];
            d_step { answered[me] = false; waits[me] = false; word[me] = 0 }
        fi
    :: asked[BEFORE(me)] -> /* handles the letter */
#ifdef LATE_CLEAR
        d_step { asked[BEFORE(me)] = false; open[BEFORE(me)] = false; answered[BEFORE(me)] = true }
#else
        d_step { asked[BEFORE(me)] = false; open[BEFORE(me)] = false; word[BEFORE(me)] = 0 };
        answered[BEFORE(me)] = true
#endif
    od
}

active proctype monitor()
{
    byte i = 0;
    timeout;
    do
    :: i < ACTORS -> assert(!waits[i]); i++
    :: else -> break
    od;
#ifdef CHAIN
    assert(refused == 0);
#endif
#if ROUNDS == 1
    assert(refused <= 1)
#endif
}

init
{
    byte i = 0;
    atomic {
        do
        :: i < ACTORS -> run actor(i); i++
        :: else -> break
        od
    }
}
