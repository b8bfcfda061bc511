/* SPDX-License-Identifier: MIT */
/*
 * Shelves and idle workers: no task lies on a queue while a worker sleeps that could run it.
 *
 *   submit    on the own shelf; light fence; read idlers. If a worker sleeps or searches: publish,
 *             then notify. With LONE the task was served, [queue-served]: only if a worker sleeps
 *             and none searches
 *   publish   take some from the own shelf; put them on the own deque. In between they are nowhere
 *   notify    light fence; read idlers. If a worker sleeps and none searches: wake one
 *   search    a task from a deque, the injected ones, or by a raid. Found: stop searching; if no
 *             other worker searches, notify
 *   raid      take some from another's shelf; one to run, the rest on the own shelf (in between they
 *             are nowhere); notify
 *   sleep     be listed as sleeping; stop searching; heavy fence; look at each deque and each shelf,
 *             one after the other. If something is there: get up
 *
 * tests/sched/shelf_model.c checks the lock of a shelf. park_wake.pml checks sleeping on a word,
 * and the fences alone. Here taking is one step, and a sleeper sleeps while it is listed. The model
 * tries every number of tasks taken, every victim, and every moment of giving up. The owner sees
 * what it puts on a queue at once. Others see it late, until a heavy fence publishes it. All see at
 * once that something was taken, which is the worse case.
 *
 * One task comes from outside and starts the others. With BARRIER each spins until all have begun.
 * With YIELDS it looks around meanwhile: it raids once without searching, and puts what it got on
 * its own shelf. When no worker can move, every task must be done.
 *
 * Proved, for two workers and two tasks, and for three:
 *   run: ok    -DBARRIER
 *   run: ok    -DBARRIER -DLONE
 *   long: ok   -DBARRIER -DW=3 -DT=3
 *   long: ok   -DBARRIER -DLONE -DW=3 -DT=3
 *   run: ok    -DBARRIER -DYIELDS -DW=3 -DT=3
 * Why each part is there:
 *   run: error -DBARRIER -DNO_SECOND_LOOK         the fed worker may have looked in between
 *   run: error -DBARRIER -DYIELDS -DNO_RAID_NOTIFY -DW=3 -DT=3   a raid without searching
 *   run: error -DBARRIER -DNO_CHAIN -DW=3 -DT=3   a finder wakes the next
 *   run: error -DBARRIER -DNO_HEAVY               others see a shelf's new tasks late
 *   run: error -DBARRIER -DNO_SHELVES             the last look includes shelves
 *
 * Without the second look at idlers, after publishing: a worker puts a task on its shelf and sees
 * that another worker searches. It takes the task off again for the deque. The other worker gives
 * up, is listed, finds shelf and deque empty, and sleeps. Then the task is on the deque, and no
 * worker is woken.
 *
 * checks: [idle-submit], [idle-sleep]
 */
#ifndef W
#define W 2 /* workers */
#endif
#ifndef T
#define T 2 /* tasks */
#endif

byte shelf[W], late_shelf[W]; /* seen by all; by the owner only */
byte deque[W], late_deque[W];
byte injected;
bool listed[W];
byte sleeping, searching; /* one word, `idlers` */
byte begun, done, started;

#if W > 2
#define ON_SHELVES                                                                                 \
    (shelf[0] + late_shelf[0] + shelf[1] + late_shelf[1] + shelf[2] + late_shelf[2])
#else
#define ON_SHELVES (shelf[0] + late_shelf[0] + shelf[1] + late_shelf[1])
#endif

inline flush_all()
{
    d_step {
        v = 0;
        do
        :: v < W ->
            shelf[v] = shelf[v] + late_shelf[v];
            deque[v] = deque[v] + late_deque[v];
            late_shelf[v] = 0;
            late_deque[v] = 0;
            v++
        :: else -> break
        od;
        v = 0
    }
}

/* Any sleeper, if there is one. */
inline wake_one()
{
    atomic {
        if
        :: listed[0] -> listed[0] = false; sleeping--
        :: listed[1] -> listed[1] = false; sleeping--
#if W > 2
        :: listed[2] -> listed[2] = false; sleeping--
#endif
        :: else
        fi
    }
}

inline notify()
{
    if
    :: sleeping > 0 && searching == 0 -> wake_one()
    :: else
    fi
}

/* Some of the own shelf, seen by others or not yet. */
inline take_some(me)
{
    atomic {
        do
        :: late_shelf[me] > 0 -> late_shelf[me]--; held++
        :: late_shelf[me] == 0 && shelf[me] > 0 -> shelf[me]--; held++
        :: held > 0 || late_shelf[me] + shelf[me] == 0 -> break
        od
    }
}

inline submit(me)
{
    late_shelf[me]++;
    if
#ifdef LONE
    :: atomic { sleeping > 0 && searching == 0 -> last = false };
#else
    :: atomic { sleeping + searching > 0 -> last = (searching > 0) };
#endif
        if
        :: atomic { deque[me] + late_deque[me] == 0 -> skip };
            take_some(me);
            d_step { late_deque[me] = late_deque[me] + held; held = 0 }
        :: else
        fi;
#ifdef NO_SECOND_LOOK
        if
        :: !last -> wake_one()
        :: else
        fi;
#else
        notify();
#endif
        last = false
    :: else
    fi
}

/* Some of another's shelf. Its lock publishes what was put there. */
inline raid(me)
{
    atomic {
        select(v : 0 .. W - 1);
        if
        :: v != me && shelf[v] + late_shelf[v] > 0 ->
            shelf[v] = shelf[v] + late_shelf[v];
            late_shelf[v] = 0;
            do
            :: shelf[v] > 0 -> shelf[v]--; held++
            :: held > 0 -> break
            od
        :: else
        fi;
        v = 0
    }
}

/* What was raided, without the task that runs at once. */
inline keep(me)
{
    if
    :: held > 0 ->
        d_step { late_shelf[me] = late_shelf[me] + held; held = 0 };
#ifndef NO_RAID_NOTIFY
        notify()
#endif
    :: else
    fi
}

proctype worker(byte me)
{
    byte v, held;
    bool last, looked;

search: /* we are counted as searching */
    if
    :: atomic { injected > 0 -> injected-- }
    :: atomic { deque[0] > 0 -> deque[0]-- }
    :: atomic { deque[1] > 0 -> deque[1]-- }
#if W > 2
    :: atomic { deque[2] > 0 -> deque[2]-- }
#endif
    :: atomic { late_shelf[me] + shelf[me] > 0 ->
        if
        :: late_shelf[me] > 0 -> late_shelf[me]--
        :: else -> shelf[me]--
        fi }
    :: raid(me);
        if
        :: atomic { held > 0 -> held-- }; keep(me)
        :: else -> goto idle
        fi
    :: goto idle
    fi;
    atomic { searching--; last = (searching == 0) };
#ifndef NO_CHAIN
    if
    :: last -> notify()
    :: else
    fi;
#endif
    last = false;

execute:
    begun++;
    do
    :: atomic { started < T -> started++ }; submit(me)
    :: else -> break
    od;
#ifdef BARRIER
    do
    :: begun == T -> break
#ifdef YIELDS
    :: begun < T && !looked && ON_SHELVES > late_shelf[me] + shelf[me] ->
        raid(me);
        if
        :: held > 0 -> looked = true; keep(me)
        :: else
        fi
#endif
    od;
#endif
    looked = false;
    done++;
    if /* the own queues */
    :: atomic { late_shelf[me] > 0 -> late_shelf[me]-- }; goto execute
    :: atomic { late_shelf[me] == 0 && shelf[me] > 0 -> shelf[me]-- }; goto execute
    :: atomic { late_shelf[me] + shelf[me] == 0 && late_deque[me] > 0 -> late_deque[me]-- };
        goto execute
    :: atomic { late_shelf[me] + shelf[me] + late_deque[me] == 0 && deque[me] > 0 -> deque[me]-- };
        goto execute
    :: else -> searching++; goto search
    fi;

idle:
    atomic { listed[me] = true; sleeping++ };
    searching--;
#ifndef NO_HEAVY
    flush_all();
#endif
    if
    :: injected > 0 -> goto get_up
    :: else
    fi;
    do
    :: v < W ->
        if
        :: deque[v] > 0 -> goto get_up
        :: else
        fi;
#ifndef NO_SHELVES
        if
        :: shelf[v] > 0 -> goto get_up
        :: else
        fi;
#endif
        v++
    :: else -> break
    od;
    v = 0;
end_asleep:
    !listed[me];
    searching++;
    goto search;

get_up:
    atomic {
        v = 0;
        if
        :: listed[me] -> listed[me] = false; sleeping--
        :: else
        fi
    };
    searching++;
    goto search
}

active proctype outside()
{
    atomic { started++; injected++ };
    byte v, held;
    notify()
}

/* Every store is seen sooner or later. */
active proctype memory()
{
    byte v;
end_memory:
    do
    :: atomic { late_shelf[0] > 0 -> shelf[0]++; late_shelf[0]-- }
    :: atomic { late_shelf[1] > 0 -> shelf[1]++; late_shelf[1]-- }
    :: atomic { late_deque[0] > 0 -> deque[0]++; late_deque[0]-- }
    :: atomic { late_deque[1] > 0 -> deque[1]++; late_deque[1]-- }
#if W > 2
    :: atomic { late_shelf[2] > 0 -> shelf[2]++; late_shelf[2]-- }
    :: atomic { late_deque[2] > 0 -> deque[2]++; late_deque[2]-- }
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
        searching = W;
        do
        :: i < W -> run worker(i); i++
        :: else -> break
        od
    }
}
