/* SPDX-License-Identifier: MIT */
/*
 * Workers that sleep in a set of descriptors, and those who wake them.
 *
 *   worker    searches: looks at its set, and at the queues. Lies down (signal = 0, listed), looks at
 *             the queues once more, and sleeps: under the lock it reads whether it has a set, and
 *             says `in_set` if nobody has woken it. In the set it sleeps until an event or a ring;
 *             on its word, until the word is written
 *   submitter queues a task and, unless somebody searches, takes a sleeper off the list: signal = 1
 *             and `in_set` under the lock, then a ring or a futex wake. The fences of [idle-submit]
 *             are park_wake.pml's business: here a queued task is seen at once
 *   maker     makes a set for worker 0, wakes it if it sleeps, and adds a descriptor
 *   sender    raises an edge of that descriptor
 *   keeper_waker   arms an earlier timer: signal = 2, for a worker that stays listed
 *   looker    looks at the set of worker 0 in its stead, [poll-others]. It does not empty the bell
 *
 * When nobody can move, no task is queued, no edge waits in a set, and the timer was seen. Every
 * worker sleeps where a waker would reach it.
 *
 *   run: ok    -DAS_IT_IS -DMAKER
 *   run: ok    -DAS_IT_IS -DHAS_SET -DKEEPER
 *   run: ok    -DAS_IT_IS -DHAS_SET -DLOOKER
 *   run: ok    -DAS_IT_IS -DMAKER -DKEEPER
 *   long: ok   -DAS_IT_IS -DMAKER -DW=2 -DT=2
 *   long: ok   -DAS_IT_IS -DHAS_SET -DLOOKER -DKEEPER -DW=2 -DT=2
 *   long: ok   -DAS_IT_IS -DMAKER -DLOOKER -DKEEPER -DW=2 -DT=2
 * Why each part is there:
 *   run: error -DHAS_SET -DSAYS_LATE       `in_set` is said before the signal is looked at
 *   run: error -DHAS_SET -DRING_FIRST      the signal is set before the ring
 *   run: error -DHAS_SET -DEDGE_BELL       a ring that came before the sleep ends it
 *   run: error -DHAS_SET -DALWAYS_FUTEX    a worker in its set is rung, not woken by its word
 *   run: error -DHAS_SET -DNO_SIGNAL_LOOK  a worker looks at the signal before it sleeps
 *   run: error -DMAKER -DNO_WAKE           who makes a set wakes the worker that sleeps on its word
 *   run: error -DMAKER -DREADS_EARLY       the sleeper reads whether it has a set under the lock
 *   run: error -DHAS_SET -DLOOKER -DEMPTIES   only the sleeper empties its bell
 *
 * checks: [poll-sleep], [idle-sleep]
 */
#ifndef W
#define W 1 /* workers */
#endif
#ifndef T
#define T 1 /* tasks */
#endif
#define SENDS 2

bool has_set[W], in_set[W], listed[W], in_kernel[W];
byte signal[W];
bool bell[W];
byte queued, ran;
byte searching = W;
bool lock, keeper;
bool edge, added; /* of the descriptor, in worker 0's set */
byte told, sent;
bool timer;             /* an earlier one was armed and not yet seen */

inline acquire() { d_step { !lock -> lock = true } }

/* Ends the sleep of worker v, whose signal is set. */
inline end_sleep(v, inside)
{
#ifdef ALWAYS_FUTEX
    in_kernel[v] = false
#else
    if
    :: inside -> bell[v] = true
    :: else -> in_kernel[v] = false
    fi
#endif
}

/* wake_one: takes a sleeper off the list. */
inline wake_one()
{
    acquire();
    v = 0;
    do
    :: v < W && listed[v] ->
#ifdef RING_FIRST
        inside = in_set[v];
        end_sleep(v, inside);
        d_step { listed[v] = false; signal[v] = 1; lock = false };
#else
        d_step { listed[v] = false; signal[v] = 1; inside = in_set[v]; lock = false };
        end_sleep(v, inside);
#endif
        break
    :: v < W && !listed[v] -> v++
    :: v == W -> lock = false; break
    od
}

proctype worker(byte me)
{
    bool set, some, timed;
search:
    if
    :: d_step { me == 0 && has_set[me] && edge -> edge = false; told++ }
    :: else
    fi;
    timer = false;
    if
    :: d_step { queued > 0 -> queued--; ran++; searching-- }; searching++; goto search
    :: else
    fi;
    /* lie_down */
#ifdef READS_EARLY
    set = has_set[me];
#endif
    signal[me] = 0;
    acquire();
    d_step { listed[me] = true; lock = false };
    searching--;
    if
    :: queued > 0 -> goto up
    :: else
    fi;
    /* sleep_now */
    acquire();
#ifndef READS_EARLY
    set = has_set[me];
#endif
    if
    :: me == 0 -> keeper = true; timed = timer /* it sleeps until the next timer */
    :: else
    fi;
#ifdef SAYS_LATE
    lock = false;
#else
    d_step { in_set[me] = (set && signal[me] == 0); lock = false };
#endif
    if
    :: set ->
        some = false;
        do
#ifndef NO_SIGNAL_LOOK
        :: signal[me] != 0 -> break
        :: signal[me] == 0 && !some ->
#else
        :: some -> break
        :: !some ->
#endif
#ifdef SAYS_LATE
            in_set[me] = true;
#endif
#ifdef EDGE_BELL
            bell[me] = false; /* a bell that only wakes who sleeps already */
#endif
end_in_set:
            if
            :: d_step { bell[me] -> bell[me] = false }
#ifdef NO_SIGNAL_LOOK
                ; some = true
#endif
            :: d_step { me == 0 && edge && has_set[me] -> edge = false; told++; some = true }
            :: timed -> some = true
            fi
        :: some -> break
        od
    :: else ->
        do
        :: signal[me] != 0 -> break
        :: d_step { signal[me] == 0 -> in_kernel[me] = true };
end_on_word:
            if
            :: !in_kernel[me]
            :: timed -> in_kernel[me] = false; break
            fi
        od
    fi;
up: /* get_up */
    acquire();
    d_step {
        listed[me] = false;
        in_set[me] = false;
        keeper = keeper && me != 0;
        lock = false;
        searching++
    };
    timed = false;
    goto search
}

active proctype submitter()
{
    byte v, i;
    bool inside;
    for (i : 1 .. T) {
        queued++;
        if
        :: searching > 0
        :: else -> wake_one()
        fi
    }
}

#ifdef MAKER
active proctype maker()
{
    bool inside;
    has_set[0] = true;
#ifndef NO_WAKE
    acquire(); /* jrt_idle_wake_up */
    d_step { inside = in_set[0]; signal[0] = 2; lock = false };
    end_sleep(0, inside);
#endif
    added = true
}
#endif

active proctype sender()
{
#ifdef HAS_SET
    added = true;
#endif
    do
    :: sent < SENDS -> d_step { added -> sent++; edge = true }
    :: sent == SENDS -> break
    od
}

#ifdef KEEPER
/* An earlier timer: worker 0 is the keeper, when it sleeps. */
active proctype keeper_waker()
{
    bool inside, asleep;
    timer = true;
    acquire();
    d_step {
        asleep = keeper;
        inside = in_set[0];
        if
        :: asleep -> signal[0] = 2
        :: else
        fi;
        lock = false
    };
    if
    :: asleep -> end_sleep(0, inside)
    :: else
    fi
}
#endif

#ifdef LOOKER
active proctype looker()
{
    if
    :: d_step { has_set[0] && edge -> edge = false; told++ }
    :: else
    fi;
#ifdef EMPTIES
    bell[0] = false;
#endif
    skip
}
#endif

active proctype monitor()
{
    timeout;
    assert(queued == 0 && ran == T);
    assert(!edge);
    assert(!timer)
}

init
{
    atomic {
        byte i = 0;
#ifdef HAS_SET
        has_set[0] = true;
#endif
        do
        :: i < W -> run worker(i); i++
        :: else -> break
        od
    }
}
