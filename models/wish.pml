/* SPDX-License-Identifier: MIT */
/*
 * Spawns that wait for room under a limit of live tasks, [limit-wish] in wish.c.
 *
 *   end    room++, seen by others late; then, sooner or later, the worker looks at the count of
 *          wishes; if there are any, under the lock: if there is room, poke the first
 *   wait   under the lock: join the queue, wishes++; heavy fence. Then, again and again: under the
 *          lock, poked = false; the first of the queue tries to take room; if there is none, say
 *          PARKING; under the lock, poked? else parked; leave the CPU
 *   poke   under the lock: poked = true; if parked, wake it
 *   leave  with room, or cancelled: under the lock, leave the queue, wishes--, poke the next
 *
 * What a worker gives back lies in its buffer until the heavy fence, its own look under the lock,
 * or time brings it out.
 *
 * When nobody can move any more, nobody waits while there is room. The first in the queue is the
 * first to get room.
 *
 *   run: ok    -DENDS=1
 *   run: ok    -DENDS=2
 *   run: ok    -DENDS=2 -DCANCEL
 *   run: ok    -DENDS=1 -DCANCEL
 * Why each part is there:
 *   run: error -DENDS=1 -DNO_FENCE         the end is in a buffer, and its worker saw no wish
 *   run: error -DENDS=1 -DTRY_FIRST        the room comes between the try and the count
 *   run: error -DENDS=1 -DLATE_CLEAR       a poke during the try is forgotten
 *   run: error -DENDS=1 -DNO_SECOND_LOOK   a poke between the try and PARKING is lost
 *   run: error -DENDS=2 -DNO_CHAIN         two ends poke one wish, and the second sleeps on
 *   run: error -DENDS=2 -DANY_FIRST        the second gets room before the first
 *
 * checks: [limit-wish]
 */
#define WAITERS 2
#define NOBODY 255

mtype = { RUNNING, PARKING, PARKED, WOKEN, READY };

byte  room, buffer;      /* what all see; what its worker has given back since */
byte  wishes;
bool  locked;
byte  queue[WAITERS];    /* the waiters, in order */
byte  queued;
mtype task[WAITERS];
bool  poked[WAITERS], parked[WAITERS], cancelled[WAITERS];
bool  done[WAITERS], got[WAITERS], queued_once[WAITERS];

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }
inline drain() { d_step { room = room + buffer; buffer = 0 } }

inline wake(id)
{
    if
    :: atomic { task[id] == PARKED -> task[id] = READY }
    :: atomic { task[id] == PARKING -> task[id] = WOKEN }
    :: else
    fi
}

/* Under the lock. */
inline poke_first()
{
    if
    :: queued > 0 ->
        poked[queue[0]] = true;
        if
        :: parked[queue[0]] -> parked[queue[0]] = false; wake(queue[0])
        :: else
        fi
    :: else
    fi
}

inline leave_queue(me)
{
    lock();
    d_step {
        if
        :: queue[0] == me -> queue[0] = queue[1]
        :: else
        fi;
        queued--;
        queue[1] = NOBODY;
        if
        :: queued == 0 -> queue[0] = NOBODY
        :: else
        fi
    };
    wishes--;
#ifndef NO_CHAIN
    poke_first();
#endif
    unlock()
}

inline try(me)
{
    if
    :: atomic { room > 0 -> room--; got[me] = true;
#ifndef CANCEL
        assert(me == 0 || !queued_once[0] || got[0] || !before)
#endif
       }
    :: else
    fi
}

proctype waiter(byte me)
{
    bool first, stays, before; /* before: the other one was in the queue when this one came */
#ifdef TRY_FIRST
    try(me);
    if
    :: got[me] -> goto out
    :: else
    fi;
#endif
    lock();
    atomic {
        before = queued > 0;
        queue[queued] = me;
        queued++;
        queued_once[me] = true
    };
    wishes++;
    unlock();
#ifndef NO_FENCE
    drain();
#endif
#ifdef TRY_FIRST
    goto sleep;
#endif
again:
    lock();
#ifndef LATE_CLEAR
    poked[me] = false;
#endif
    first = (queue[0] == me);
    unlock();
#ifdef ANY_FIRST
    first = true;
#endif
    if
    :: first -> try(me)
    :: else
    fi;
#ifdef LATE_CLEAR
    lock();
    poked[me] = false;
    unlock();
#endif
    if
    :: got[me] -> goto leave
    :: else
    fi;
#ifdef TRY_FIRST
sleep:
#endif
    task[me] = PARKING;
    if
    :: cancelled[me] -> task[me] = RUNNING; goto leave
    :: else
    fi;
    lock();
#ifdef NO_SECOND_LOOK
    stays = true;
#else
    stays = !poked[me];
#endif
    parked[me] = stays;
    unlock();
    if
    :: !stays -> task[me] = RUNNING; goto again /* from PARKING or WOKEN */
    :: else
    fi;
    if
    :: atomic { task[me] == PARKING -> task[me] = PARKED };
end_asleep:
        task[me] == READY
    :: else -> assert(task[me] == WOKEN)
    fi;
    task[me] = RUNNING;
    lock();
    parked[me] = false;
    unlock();
    if
    :: cancelled[me] -> goto leave
    :: else -> goto again
    fi;
leave:
    leave_queue(me);
#ifdef TRY_FIRST
out:
#endif
    done[me] = true
}

/* A worker on which children end. */
proctype worker()
{
    byte ends;
    do
    :: ends < ENDS -> ends++; buffer++;
        if
        :: drain() /* by itself, or */
        :: skip    /* later */
        fi;
        if
        :: wishes > 0 ->
            lock();
            drain();
            if
            :: room > 0 -> poke_first()
            :: else
            fi;
            unlock()
        :: else
        fi
    :: ends == ENDS -> break
    od
}

proctype canceller()
{
    cancelled[0] = true;
    wake(0)
}

active proctype monitor()
{
    timeout;
    drain();
    assert(room == 0 || (done[0] && done[1]))
}

init
{
    atomic {
        queue[0] = NOBODY; queue[1] = NOBODY;
        task[0] = RUNNING; task[1] = RUNNING;
        run waiter(0);
        run waiter(1);
        run worker();
#ifdef CANCEL
        run canceller()
#endif
    }
}
