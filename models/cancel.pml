/* SPDX-License-Identifier: MIT */
/*
 * Cancelling a nursery while its children complete, park and spawn.
 *
 *   cancel    state = CANCELLING, once; then, under the lock of the list, for each child: set its
 *             flag, then wake it if it is PARKING or PARKED
 *   spawn     under the lock: refuse unless OPEN, else link the child
 *   complete  under the lock: unlink; then the record is free for others
 *   park      state = PARKING; look at the flag; leave the stack; PARKING -> PARKED (task_park.pml).
 *             Who finds the flag takes PARKING back
 *
 * A child that was not cancelled may park for ever, so when nobody can move every accepted child
 * must have completed: none has escaped. Child 0 also makes a blocking call, which a cancel must
 * not end. It parks until a helper is done. The helper's memory lies on the child's stack.
 *
 * SPAWN, what spawn does about a cancel beside it:
 *   LOCKED        looks at the state under the lock
 *   SECOND_LOOK   looks before, links under the lock, looks again, and sets the new child's flag
 *
 * KIND, how the canceller knows what a child waits for:
 *   IN_WORD       it stands beside PARKING in the same word, and the compare-and-swap compares it
 *   APART         it is read before the compare-and-swap
 *
 *   run: ok    -DSPAWN=LOCKED
 *   run: ok    -DSPAWN=SECOND_LOOK
 *   run: ok    -DSPAWN=LOCKED -DCANCELLERS=2
 * Why each part is there:
 *   run: error -DSPAWN=FIRST_LOOK                 a child linked behind the walk escapes
 *   run: error -DSPAWN=LOCKED -DCHECK_BEFORE      the flag is set between the look and PARKING
 *   run: error -DSPAWN=LOCKED -DWAKE_FIRST        the same from the other side
 *   run: error -DSPAWN=LOCKED -DNO_CHECK          a child that is running sleeps through it
 *   run: error -DSPAWN=LOCKED -DNO_LOCK           the walk meets a record that is gone
 *   run: error -DSPAWN=LOCKED -DKIND=APART        the child begins another wait in between
 *
 * CHECK_BEFORE also stands for a PARKING stored by less than seq_cst: the flag may be read before
 * others see the store.
 *
 * checks: [cancel-park], [task-interrupt]
 */
#define LOCKED 0
#define SECOND_LOOK 1
#define FIRST_LOOK 2
#define IN_WORD 0
#define APART 1
#ifndef KIND
#define KIND IN_WORD
#endif
#ifndef CANCELLERS
#define CANCELLERS 1
#endif
#define CHILDREN 3 /* 0 and 1 are there at the beginning; 1 spawns 2 */

mtype = { OPEN, CANCELLING, READY, RUNNING, PARKING, PARKED, WOKEN };

mtype state = OPEN;
bool  locked;
bool  linked[CHILDREN], gone[CHILDREN], flag[CHILDREN], done[CHILDREN], accepted[CHILDREN];
mtype task[CHILDREN];
bool  blocking[CHILDREN]; /* what it waits for is a blocking call */
bool  call_begun, call_done;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* Ends a wait. With `may` false it ends no blocking call. */
inline wake(id, may)
{
    if
    :: atomic { task[id] == PARKED && (may || !blocking[id]) -> task[id] = READY }
    :: atomic { task[id] == PARKING && (may || !blocking[id]) -> task[id] = WOKEN }
    :: else
    fi
}

inline leave_and_come_back(me)
{
    if
    :: atomic { task[me] == PARKING -> task[me] = PARKED };
        task[me] == READY
    :: else -> assert(task[me] == WOKEN)
    fi;
    task[me] = RUNNING
}

inline park(me)
{
#ifdef CHECK_BEFORE
    if
    :: flag[me] -> goto over
    :: else
    fi;
#endif
    atomic { task[me] = PARKING; blocking[me] = false };
#if !defined(CHECK_BEFORE) && !defined(NO_CHECK)
    if
    :: flag[me] -> task[me] = RUNNING; goto over /* from PARKING or WOKEN */
    :: else
    fi;
#endif
    leave_and_come_back(me)
}

inline call(me)
{
    atomic { task[me] = PARKING; blocking[me] = true };
    call_begun = true;
    leave_and_come_back(me);
    assert(call_done)
}

inline spawn(id)
{
#if SPAWN == LOCKED
    lock();
    if
    :: state == OPEN -> linked[id] = true; accepted[id] = true
    :: else
    fi;
    unlock();
#else
    if
    :: state == OPEN ->
        lock();
        linked[id] = true;
        accepted[id] = true;
        unlock();
#if SPAWN == SECOND_LOOK
        if
        :: state != OPEN -> flag[id] = true /* it has not begun: nobody to wake */
        :: else
        fi
#endif
    :: else
    fi;
#endif
    if
    :: accepted[id] -> run child(id)
    :: else
    fi
}

proctype child(byte me)
{
    byte waits;
    task[me] = RUNNING;
    if
    :: me == 0 && !flag[me] -> call(me)
    :: me == 1 -> spawn(2)
    :: else
    fi;
    do
    :: flag[me] -> break
    :: !flag[me] -> break /* completes by itself */
    :: !flag[me] && waits < 2 -> waits++; park(me)
    od;
over:
    lock();
    linked[me] = false;
    unlock();
    gone[me] = true;
    done[me] = true
}

proctype canceller()
{
    byte i;
    bool can_end;
    if
    :: atomic { state == OPEN -> state = CANCELLING }
    :: else -> goto quit
    fi;
#ifndef NO_LOCK
    lock();
#endif
    do
    :: i < CHILDREN && linked[i] ->
        assert(!gone[i]);
#ifndef WAKE_FIRST
        flag[i] = true;
        assert(!gone[i]);
#endif
#if KIND == APART
        can_end = !blocking[i];
        if
        :: can_end -> can_end = false; wake(i, true)
        :: else
        fi;
#else
        wake(i, false);
#endif
#ifdef WAKE_FIRST
        flag[i] = true;
#endif
        i++
    :: i < CHILDREN && !linked[i] -> i++
    :: i == CHILDREN -> break
    od;
#ifndef NO_LOCK
    unlock();
#endif
quit:
    skip
}

active proctype helper()
{
end_helper:
    call_begun;
    call_done = true;
    wake(0, true)
}

active proctype monitor()
{
    timeout;
    assert(done[0] && done[1]);
    assert(done[2] == accepted[2]);
    assert(!linked[0] && !linked[1] && !linked[2])
}

init
{
    byte i;
    atomic {
        linked[0] = true; accepted[0] = true; task[0] = READY;
        linked[1] = true; accepted[1] = true; task[1] = READY;
        task[2] = READY;
        run child(0);
        run child(1);
        do
        :: i < CANCELLERS -> run canceller(); i++
        :: else -> break
        od
    }
}
