/* SPDX-License-Identifier: MIT */
/*
 * Idle workers: which ones sleep, and which are woken.
 *
 *   submit    push; fence; unless somebody searches, claim a sleeper (its word from ASLEEP to AWAKE)
 *             and futex_wake it
 *   search    look at all queues; found: stop searching and, if nobody else searches, wake one more
 *   idle      word = ASLEEP; stop searching; fence; look at all queues again; futex_wait
 *
 * The pusher sees a pushed task at once. Others see it late, until a fence empties the pusher's
 * store buffer. FENCE pairs the two fences: FULL and FULL, or LIGHT in submit and HEAVY in idle.
 * LIGHT does nothing, and HEAVY (membarrier) empties every buffer.
 *
 * One task comes from outside and spawns the others. With BARRIER each task spins until all have
 * begun. Then a task that is queued while a worker sleeps is as bad as a lost task. When nobody can
 * move, every task must be done.
 *
 * Proved, for two workers and two tasks, and for three (long):
 *   run: ok    -DFENCE=FULL -DCHAIN=ALWAYS -DBARRIER
 *   run: ok    -DFENCE=LIGHT -DCHAIN=ALWAYS -DBARRIER
 *   run: ok    -DFENCE=LIGHT -DCHAIN=ALWAYS -DBARRIER -DCOUNT=WAKEE
 *   run: ok    -DFENCE=LIGHT -DCHAIN=ALWAYS -DBARRIER -DCOUNT=FIRST -DAGAIN
 *   run: ok    -DFENCE=LIGHT -DCHAIN=NEVER
 *   long: ok   -DFENCE=FULL -DCHAIN=ALWAYS -DBARRIER -DW=3 -DT=3
 *   long: ok   -DFENCE=LIGHT -DCHAIN=ALWAYS -DBARRIER -DW=3 -DT=3
 *   long: ok   -DFENCE=LIGHT -DCHAIN=ALWAYS -DBARRIER -DCOUNT=WAKEE -DW=3 -DT=3
 *   long: ok   -DFENCE=LIGHT -DCHAIN=ALWAYS -DBARRIER -DCOUNT=FIRST -DAGAIN -DW=3 -DT=3
 *   long: ok   -DFENCE=FULL -DCHAIN=IF_MORE -DBARRIER -DW=3 -DT=3
 *   long: ok   -DFENCE=LIGHT -DCHAIN=IF_MORE -DBARRIER -DFOUND_HEAVY -DW=3 -DT=3
 * Why each part is there:
 *   run: error -DFENCE=NONE -DCHAIN=ALWAYS                    both fences
 *   run: error -DFENCE=LIGHT_FULL -DCHAIN=ALWAYS              a light fence needs the heavy one
 *   run: error -DFENCE=FULL -DCHAIN=ALWAYS -DNO_RECHECK       the second look
 *   run: error -DFENCE=FULL -DCHAIN=ALWAYS -DNO_WAKE          the claim alone wakes nobody
 *   run: error -DFENCE=FULL -DCHAIN=ALWAYS -DCOUNT=FIRST -DBARRIER       see COUNT below
 *   run: error -DFENCE=FULL -DCHAIN=NEVER -DBARRIER -DW=3 -DT=3     who finds wakes the next,
 *   run: error -DFENCE=LIGHT -DCHAIN=IF_MORE -DBARRIER -DW=3 -DT=3  and looks after a heavy fence
 *
 * COUNT: which side counts the woken worker as searching. AFTER: the waker, after the claim (the
 * count may then be -1 for a moment). WAKEE: the woken worker. FIRST: the waker, before the claim,
 * from 0 to 1 only. While it looks for a sleeper, others rely on a searcher that may never exist.
 * So if it finds no sleeper, it must look again after counting down (AGAIN).
 *
 * checks: [idle-submit], [idle-sleep]
 */
#define NONE 0
#define FULL 1
#define LIGHT 2
#define LIGHT_FULL 3 /* light in submit, an ordinary full fence in idle */
#define NEVER 0
#define ALWAYS 1
#define IF_MORE 2
#define AFTER 0
#define WAKEE 1
#define FIRST 2
#ifndef COUNT
#define COUNT AFTER
#endif
#ifndef W
#define W 2 /* workers */
#endif
#ifndef T
#define T 2 /* tasks */
#endif
#define OUTSIDE W /* an outsider without a deque: its queue is the injection queue */

#define AWAKE 0
#define ASLEEP 1

byte  queue[W + 1]; /* tasks that all can see */
byte  late[W + 1];  /* tasks that only their pusher can see yet */
bit   word[W];
bool  in_kernel[W]; /* sleeps in futex_wait */
short searching = W;
byte  begun, done;
byte  submits;
bool  spawned;

inline flush(who)
{
    d_step { queue[who] = queue[who] + late[who]; late[who] = 0 }
}

inline flush_all()
{
    d_step {
        v = 0;
        do
        :: v <= W -> queue[v] = queue[v] + late[v]; late[v] = 0; v++
        :: else -> break
        od;
        v = 0
    }
}

/* Claims a sleeper, if there is one: its word goes from ASLEEP to AWAKE. */
inline claim()
{
    do
    :: atomic { v < W && word[v] == ASLEEP -> word[v] = AWAKE; claimed = true }; break
    :: atomic { v < W && word[v] == AWAKE -> v++ }
    :: atomic { v == W -> v = 0 }; break
    od
}

inline futex_wake()
{
    d_step {
#ifndef NO_WAKE
        in_kernel[v] = false;
#endif
        claimed = false;
        v = 0
    }
}

inline wake_one()
{
#if COUNT == FIRST
    do
    :: atomic { searching == 0 -> searching = 1 };
        claim();
        if
        :: claimed -> futex_wake(); break
        :: else -> searching--
        fi;
#ifdef AGAIN
        if
        :: word[0] == ASLEEP
        :: word[1] == ASLEEP
#if W > 2
        :: word[2] == ASLEEP
#endif
        :: else -> break
        fi
#else
        break
#endif
    :: else -> break
    od
#else
    claim();
    if
    :: claimed ->
#if COUNT == AFTER
        searching++;
#endif
        futex_wake()
    :: else
    fi
#endif
}

inline submit(me)
{
    d_step { late[me]++; submits++ };
#if FENCE == FULL
    flush(me);
#endif
    if
    :: searching > 0
    :: else -> wake_one()
    fi
}

inline fence_idle(me)
{
#if FENCE == FULL || FENCE == LIGHT_FULL
    flush(me)
#elif FENCE == LIGHT
    flush_all()
#else
    skip
#endif
}

proctype worker(byte me)
{
    byte v;
    bool claimed, last;

search: /* we are counted as searching */
    do
    :: atomic { v <= W && queue[v] > 0 -> queue[v]--; v = 0 }; break
    :: atomic { v <= W && queue[v] == 0 -> v++ }
    :: atomic { v > W -> v = 0 }; goto idle
    od;

    atomic { searching--; last = (searching <= 0) };
#if CHAIN == ALWAYS
    if
    :: last -> last = false; wake_one()
    :: else
    fi;
#elif CHAIN == IF_MORE
    if
    :: last ->
        last = false;
#ifdef FOUND_HEAVY
        flush_all();
#else
        flush(me);
#endif
        do
        :: atomic { v <= W && queue[v] > 0 -> v = 0 }; wake_one(); break
        :: atomic { v <= W && queue[v] == 0 -> v++ }
        :: atomic { v > W -> v = 0 }; break
        od
    :: else
    fi;
#endif

execute:
    begun++;
    if
    :: atomic { !spawned -> spawned = true };
        do
        :: submits < T -> submit(me)
        :: else -> break
        od
    :: else
    fi;
#ifdef BARRIER
    begun == T;
#endif
    atomic { done++; queue[me] = queue[me] + late[me]; late[me] = 0 }; /* pop is seq_cst */
    if
    :: atomic { queue[me] > 0 -> queue[me]-- }; goto execute
    :: else -> searching++; goto search
    fi;

idle:
    word[me] = ASLEEP;
    searching--;
    fence_idle(me);
#ifndef NO_RECHECK
    do
    :: atomic { v <= W && queue[v] > 0 -> v = 0 }; goto retract
    :: atomic { v <= W && queue[v] == 0 -> v++ }
    :: atomic { v > W -> v = 0 }; break
    od;
#endif
    do
    :: atomic { word[me] == ASLEEP -> in_kernel[me] = true };
end_asleep:
        !in_kernel[me]
    :: word[me] == AWAKE -> break
    od;
#if COUNT == WAKEE
    searching++;
#endif
    goto search;

retract:
    if
    :: atomic { word[me] == ASLEEP -> word[me] = AWAKE }; searching++
    :: else /* claimed: we are awake, and the waker counts us */
#if COUNT == WAKEE
        -> searching++
#endif
    fi;
    goto search
}

active proctype outside()
{
    byte v;
    bool claimed;
    submit(OUTSIDE)
}

/* Sooner or later what was stored is seen. */
active proctype memory()
{
end_memory:
    do
    :: late[0] > 0 -> flush(0)
    :: late[1] > 0 -> flush(1)
    :: late[2] > 0 -> flush(2)
#if W > 2
    :: late[3] > 0 -> flush(3)
#endif
    od
}

active proctype monitor()
{
    timeout;
    assert(done == T)
}

init
{
    atomic {
        byte i = 0;
        do
        :: i < W -> run worker(i); i++
        :: else -> break
        od
    }
}
