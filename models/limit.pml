/* SPDX-License-Identifier: MIT */
/*
 * The limit of live tasks, [limit-seize].
 *
 *   start     count it in `made`; light fence; look at `base`: room? else take the count back and,
 *             under the lock, ask the centre
 *   end       count it in `ended`, wherever the task ends; the code keeps only the difference, one
 *             word: what others can see of that they can see here too
 *   seize     under the lock: lower the bases of others by what seems free; heavy fence; who used it
 *             all the same gets it back, up to what was taken
 *   level     under the lock: a worker returns its own room to the centre
 *
 * Others see a worker's counts late, until a fence or the lock publishes them, and the two counts
 * in any order. The light fence does nothing. The heavy one (membarrier) empties every buffer.
 *
 * Never more than MAX tasks are alive. The centre never owes. A refused worker has seen all room in
 * use at some moment since it asked, or has seen an end that came meanwhile. It may take that end
 * for a later one. A start that is under way counts as in use. When no worker moves any more, no
 * room is lost, and a worker that asks then gets it.
 *
 * Proved, for two workers and an outsider, and for three workers:
 *   run: ok    -DHEAVY -DW=2 -DOUTSIDE
 *   run: ok    -DHEAVY -DW=2 -DMAX=1
 *   run: ok    -DHEAVY -DW=2 -DLEVEL
 *   run: ok    -DHEAVY -DW=3 -DSTEPS=1 -DMAX=1
 *   run: ok    -DHEAVY -DW=3 -DSTEPS=1 -DMAX=2
 *   long: ok   -DHEAVY -DW=2 -DSTEPS=3 -DMAX=2 -DOUTSIDE
 *   long: ok   -DHEAVY -DW=3 -DSTEPS=2 -DMAX=1
 *   long: ok   -DHEAVY -DW=3 -DSTEPS=1 -DMAX=2 -DLEVEL
 * Why each part is there:
 *   run: error -DW=2                                    the heavy fence
 *   run: error -DHEAVY -DW=2 -DNOT_BACK                 what was used all the same is given back,
 *   run: error -DHEAVY -DW=3 -DSTEPS=1 -DMAX=1 -DALL_BACK    but no more than was taken: a count
 *                                                       that will be taken back is no use
 *   run: error -DHEAVY -DW=2 -DLOOK_FIRST               count first, then look
 *   run: error -DHEAVY -DW=2 -DLOSE_ENDS                an end makes room
 *
 * checks: [limit-seize]
 */
#ifndef W
#define W 2 /* workers */
#endif
#ifndef STEPS
#define STEPS 2 /* starts or ends of each */
#endif
#ifndef MAX
#define MAX 2
#endif
#define NOBODY W

/* What all see, and what its worker has written. */
short made[W], ended[W];
short my_made[W], my_ended[W];

short base[W], seized[W]; /* changed under the lock */
short central;
bool  locked;

short alive;              /* tasks, in truth */
short late;               /* of those that ended: not seen by all */
bool  was_full[W + 1];    /* since the worker asked, all room was in use */
bool  had_end[W + 1];     /* since it asked, an end was seen */
bool  trying[W + 1];      /* it has counted a task that it may have to take back */
byte  done;
bool  ready;

/* In use, as worker w may see it: others that are about to start one count. */
#if W > 2
#define TRYING (trying[0] + trying[1] + trying[2])
#else
#define TRYING (trying[0] + trying[1])
#endif
#define FULL(w) (alive + late + TRYING - trying[w] >= MAX)

inline note_full()
{
    was_full[0] = was_full[0] || FULL(0);
    was_full[1] = was_full[1] || FULL(1);
#if W > 2
    was_full[2] = was_full[2] || FULL(2);
#endif
    was_full[W] = was_full[W] || FULL(W)
}

inline note_end()
{
    had_end[0] = true; had_end[1] = true; had_end[W] = true;
#if W > 2
    had_end[2] = true
#endif
}

inline see_made(w) { made[w] = my_made[w] }

inline see_ended(w)
{
    if
    :: ended[w] != my_ended[w] ->
        late = late - (my_ended[w] - ended[w]);
        ended[w] = my_ended[w];
        note_end()
    :: else
    fi
}

inline take_lock(me)
{
    atomic {
        !locked -> locked = true;
        if
        :: me != NOBODY -> see_made(me); see_ended(me)
        :: else
        fi
    }
}

inline leave_lock(me)
{
    atomic {
        if
        :: me != NOBODY -> see_made(me)
        :: else
        fi;
        locked = false
    }
}

#define ROOM(w) (base[w] - made[w] + ended[w])

/* Of worker `me`, or of somebody else. Each look is a step. */
inline seize(me)
{
    hope = 0;
    i = 0;
    do
    :: atomic { i < W ->
        if
        :: i != me && ROOM(i) > 0 -> hope = hope + ROOM(i)
        :: else
        fi;
        i++ }
    :: atomic { i == W -> i = 0 }; break
    od;
    if
    :: hope == 0
    :: else ->
        do
        :: atomic { i < W ->
            seized[i] = 0;
            if
            :: i != me && ROOM(i) > 0 ->
                seized[i] = ROOM(i); /* base and centre: nobody else looks at both */
                base[i] = base[i] - seized[i];
                central = central + seized[i]
            :: else
            fi;
            i++ }
        :: atomic { i == W -> i = 0 }; break
        od;
#ifdef HEAVY
        atomic {
            do
            :: i < W -> see_made(i); see_ended(i); i++
            :: else -> break
            od;
            i = 0
        };
#endif
        do
        :: atomic { i < W ->
            if
            :: i != me && ROOM(i) < 0 ->
                back = 0 - ROOM(i);
#ifdef NOT_BACK
                back = 0;
#endif
#ifndef ALL_BACK
                if
                :: back > seized[i] -> back = seized[i]
                :: else
                fi;
#endif
                base[i] = base[i] + back;
                central = central - back;
                back = 0
            :: else
            fi;
            i++ }
        :: atomic { i == W -> i = 0 }; break
        od;
        assert(central >= 0)
    fi;
    hope = 0
}

/* Gives what it took, one or nothing. */
inline from_centre(me)
{
    if
    :: central == 0 -> seize(me)
    :: else
    fi;
    atomic {
        if
        :: central > 0 -> central--; got = 1
        :: else -> got = 0; assert(was_full[me] || had_end[me])
        fi
    }
}

inline ask(me)
{
    atomic { was_full[me] = false; had_end[me] = false; note_full() }
}

inline begin_task(me)
{
    atomic { alive++; assert(alive <= MAX); note_full(); trying[me] = false }
}

proctype worker(byte me)
{
    byte  i, steps;
    short hope, back, got;
    do
    :: steps < STEPS ->
        steps++;
        if
        :: true -> /* start one */
            ask(me);
#ifdef LOOK_FIRST
            if
            :: my_made[me] + 1 - my_ended[me] <= base[me] -> my_made[me]++; begin_task(me)
            :: else -> my_made[me]++;
#else
            atomic { my_made[me]++; trying[me] = true; note_full() };
            if
            :: my_made[me] - my_ended[me] <= base[me] -> begin_task(me)
            :: else ->
#endif
                my_made[me]--;
                take_lock(me);
                if
                :: ROOM(me) <= 0 -> from_centre(me); base[me] = base[me] + got; got = 0
                :: else
                fi;
                if
                :: ROOM(me) > 0 -> atomic { my_made[me]++; begin_task(me) }
                :: else -> trying[me] = false
                fi;
                leave_lock(me)
            fi
        :: atomic { alive > 0 -> alive--; late++ }; /* one ends here */
#ifndef LOSE_ENDS
            my_ended[me]++
#endif
#ifdef LEVEL
        :: true ->
            take_lock(me);
            atomic {
                if
                :: ROOM(me) > 0 ->
                    back = ROOM(me);
                    base[me] = base[me] - back;
                    central = central + back;
                    back = 0
                :: else
                fi
            };
            leave_lock(me)
#endif
        fi
    :: else -> break
    od;
    done++
}

#ifdef OUTSIDE
active proctype outside()
{
    byte  i;
    short hope, back, got;
    ready;
    ask(NOBODY);
    take_lock(NOBODY);
    from_centre(NOBODY);
    if
    :: got == 1 -> begin_task(NOBODY)
    :: else
    fi;
    leave_lock(NOBODY);
    done++
}
#define ALL (W + 1)
#else
#define ALL W
#endif

/* Sooner or later what was stored is seen. */
active proctype memory()
{
    byte w;
end_memory:
    do
    :: atomic { made[0] != my_made[0] -> see_made(0) }
    :: atomic { ended[0] != my_ended[0] -> see_ended(0) }
    :: atomic { made[1] != my_made[1] -> see_made(1) }
    :: atomic { ended[1] != my_ended[1] -> see_ended(1) }
#if W > 2
    :: atomic { made[2] != my_made[2] -> see_made(2) }
    :: atomic { ended[2] != my_ended[2] -> see_ended(2) }
#endif
    od
}

active proctype monitor()
{
    byte  i;
    short hope, back, got, sum;
    timeout;
    assert(done == ALL);
    atomic {
        do
        :: i < W -> sum = sum + ROOM(i); assert(ROOM(i) >= 0); i++
        :: else -> break
        od;
        i = 0
    };
    assert(sum + central + alive == MAX);
    take_lock(NOBODY);
    was_full[NOBODY] = true; /* nothing moves: what counts is what it gets */
    from_centre(NOBODY);
    assert((got == 1) == (alive < MAX))
}

init
{
    atomic {
        byte i = 0;
        base[0] = MAX; /* all of it is with one */
        ready = true;
        do
        :: i < W -> run worker(i); i++
        :: else -> break
        od
    }
}
