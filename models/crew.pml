/* SPDX-License-Identifier: MIT */
/*
 * The crew: workers without a processor sleep although there is work, and one of them patrols.
 *
 *   submit    queue a task; if a sleeper is seen and nobody searches: wake one
 *   seen      sleepers above B, the number of workers that have no processor
 *   idle      spare, if fewer than B sleep: look at the own queue, on patrol at all queues; be
 *             counted as asleep, if still spare (one step); sleep without another look. Else
 *             search; nothing found: be listed, stop searching, look at all queues again; sleep
 *   sleep     the first sleeper is the keeper. It patrols if at most B sleep then: it wakes up
 *             sooner or later while a task waits. A later sleeper wakes a keeper that does not
 *             patrol although at most B sleep
 *   found     stop searching. The last searcher wakes the next; if it wakes none and at most B
 *             sleep, it makes sure that a sleeper patrols. A spare worker that finds a task
 *             does the same
 *   get up    a keeper that gets up, or is woken for a task, no longer patrols
 *
 * Fences are park_wake.pml's business: here a queued task is seen at once. Taking is one step, and
 * a sleeper sleeps while it is listed and has no signal. A patrol that finds no task that waits
 * changes nothing, so it does not happen here.
 *
 * One task comes from outside and starts the others, on its worker's own queue. With BARRIER each
 * spins until all have begun. When no worker can move, every task must be done.
 *
 * Proved, for three workers and three tasks, with one processor and with two:
 *   run: ok    -DBARRIER
 *   run: ok    -DBARRIER -DB=1
 *   run: ok    -DB=2
 *   run: ok    -DB=1
 *   long: ok   -DBARRIER -DW=4 -DT=4 -DB=2
 * Why each part is there:
 *   run: error -DBARRIER -DNO_PATROL        tasks that spin for one another
 *   run: error -DBARRIER -DNO_HANDOVER      a patrol that takes a task appoints a successor
 *   run: error -DBARRIER -DB=1 -DKEEPS      a keeper that is woken for a task no longer patrols
 *   run: error -DBARRIER -DNO_REMINDER      a spare worker may have been listed as a worker that
 *                                           is not spare
 *   run: error -DB=1 -DUNLOCKED             not all may think that they are spare
 *   run: error -DB=1 -DNO_LOOK              the others look again before they sleep
 *
 * checks: [crew-full], [crew-patrol], [idle-sleep]
 */
#ifndef W
#define W 3 /* workers */
#endif
#ifndef T
#define T 3 /* tasks */
#endif
#ifndef B
#define B 2 /* workers that have no processor */
#endif
#define NOBODY W

byte queue[W + 1]; /* the last: injected ones */
bool listed[W], signal[W];
byte asleep, searching;
byte keeper = NOBODY;
bool patrols; /* the keeper patrols, or a worker was chosen as keeper */
byte started, begun, done;

#if W > 3
#define QUEUED (queue[0] + queue[1] + queue[2] + queue[3] + queue[4])
#else
#define QUEUED (queue[0] + queue[1] + queue[2] + queue[3])
#endif

inline resign(v)
{
    if
    :: keeper == v || keeper == NOBODY ->
        keeper = NOBODY;
#ifndef KEEPS
        patrols = false
#endif
    :: else
    fi
}

/* Any sleeper, if one is seen. */
inline wake_one()
{
    atomic {
        if
        :: asleep > B ->
            select(v : 0 .. W - 1);
            do
            :: listed[v] -> break
            :: else -> v = (v + 1) % W
            od;
            listed[v] = false;
            asleep--;
            signal[v] = true;
            resign(v);
            v = 0;
            woke = true
        :: else
        fi
    }
}

inline notify()
{
    if
    :: asleep > B && searching == 0 -> wake_one()
    :: else
    fi
}

inline patrol()
{
#ifndef NO_HANDOVER
    atomic {
        if
        :: !patrols && asleep > 0 && asleep <= B ->
            patrols = true;
            if
            :: keeper != NOBODY -> signal[keeper] = true
            :: else ->
                do
                :: listed[v] -> break
                :: else -> v = (v + 1) % W
                od;
                signal[v] = true;
                v = 0
            fi
        :: else
        fi
    }
#else
    skip
#endif
}

inline get_up(me)
{
    atomic {
        if
        :: listed[me] -> listed[me] = false; asleep--
        :: else
        fi;
        resign(me)
    }
}

/* Sleeps, listed or already woken. */
inline sleep_now(me)
{
    atomic {
        if
        :: keeper == NOBODY ->
            keeper = me;
            patrols = (asleep <= B)
        :: else
        fi;
#ifndef NO_PATROL
        rounds = (keeper == me && patrols)
#endif
    };
#ifndef NO_REMINDER
    patrol();
#endif
end_asleep:
    if
    :: signal[me]; rounds = false
    :: rounds && QUEUED > 0
    fi
}

proctype worker(byte me)
{
    byte v;
    bool last, woke, rounds;

idle:
    do
    :: asleep < B ->
        if
        :: atomic { queue[me] > 0 -> queue[me]-- }; goto spare_found
        :: atomic { rounds && queue[0] > 0 -> queue[0]-- }; goto spare_found
        :: atomic { rounds && queue[1] > 0 -> queue[1]-- }; goto spare_found
        :: atomic { rounds && queue[2] > 0 -> queue[2]-- }; goto spare_found
        :: atomic { rounds && queue[3] > 0 -> queue[3]-- }; goto spare_found
#if W > 3
        :: atomic { rounds && queue[4] > 0 -> queue[4]-- }; goto spare_found
#endif
        :: queue[me] == 0 && (!rounds || QUEUED == 0)
        fi;
        rounds = false;
        signal[me] = false;
#ifdef UNLOCKED
        atomic { listed[me] = true; asleep++; last = true };
#else
        atomic {
            if
            :: asleep < B -> listed[me] = true; asleep++; last = true
            :: else -> last = false
            fi
        };
#endif
        if
        :: last -> last = false
        :: else -> break
        fi;
        sleep_now(me);
        get_up(me)
    :: else -> break
    od;
    rounds = false;
    searching++;
    if
    :: atomic { queue[0] > 0 -> queue[0]-- }; goto found
    :: atomic { queue[1] > 0 -> queue[1]-- }; goto found
    :: atomic { queue[2] > 0 -> queue[2]-- }; goto found
    :: atomic { queue[3] > 0 -> queue[3]-- }; goto found
#if W > 3
    :: atomic { queue[4] > 0 -> queue[4]-- }; goto found
#endif
    :: true
    fi;
    signal[me] = false;
    atomic { listed[me] = true; asleep++ };
    searching--;
#ifndef NO_LOOK
    if
    :: QUEUED > 0 -> get_up(me); goto idle
    :: else
    fi;
#endif
    sleep_now(me);
    get_up(me);
    goto idle;

found:
    atomic { searching--; last = (searching == 0) };
    if
    :: last ->
        notify();
        if
        :: !woke -> patrol()
        :: else
        fi
    :: else
    fi;
    goto execute;

spare_found:
    rounds = false;
    notify();
    if
    :: !woke -> patrol()
    :: else
    fi;

execute:
    last = false;
    woke = false;
    begun++;
    do
    :: atomic { started < T -> started++; queue[me]++ }; notify(); woke = false
    :: else -> break
    od;
#ifdef BARRIER
    begun == T;
#endif
    done++;
    if
    :: atomic { queue[me] > 0 -> queue[me]-- }; goto execute
    :: else -> goto idle
    fi
}

active proctype outside()
{
    byte v;
    bool woke;
    atomic { started++; queue[W]++ };
    notify()
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
