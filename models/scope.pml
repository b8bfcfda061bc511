/* SPDX-License-Identifier: MIT */
/*
 * The owner of a nursery is inside its scope ([scope-owner] in cancel.c). A cancel of the nursery
 * ends the owner's waits until the block ends, and no wait after that.
 *
 *   cancel   begun++; state = CANCELLING; disturbed++ in the nursery that the owner is a child of;
 *            begun--, epoch++ in one step; then it interrupts the owner, if that is PARKING or
 *            PARKED. It holds the nursery until then
 *   look     is `clean` the epoch, and no cancel on its way? Then nothing is cancelled. Else the
 *            state of the owner's nursery decides; if that is OPEN, and nothing is disturbed nor on
 *            its way, the epoch goes into `clean`
 *   wait     PARKING; look; leave the stack; PARKING -> PARKED
 *   end      waits until nobody holds the nursery, then takes `disturbed` back
 *
 * A sibling of the owner shares `clean` and looks whenever it likes. The owner makes two waits and
 * a look in the block: nothing but the cancel ends them. After the block it waits once more, for a
 * helper.
 *
 *   - When nothing can move, the owner has come to its end: no wait slept through the cancel.
 *   - A look that begins after the cancel has returned finds it.
 *   - An owner that got CANCELLED once gets it at every wait until the block ends.
 *   - Only the helper ends the wait after the block.
 *
 *   run: ok    -DOWNERS=1
 *   run: ok    -DOWNERS=1 -DSIBLINGS=2
 *   run: ok    -DOWNERS=1 -DCANCELS=2
 * Why each part is there:
 *   run: error -DNO_DISTURB        a sibling finds the new epoch clean, and so does the owner
 *   run: error -DDISTURB_LATE      the same between the new epoch and the count
 *   run: error -DNO_BEGUN          the owner is told, and then finds its nursery clean again
 *   run: error -DLOOK_BEFORE       the cancel comes between the look and PARKING
 *   run: error -DNO_INTERRUPT      an owner that is parked sleeps through it
 *   run: error -DNO_HOLD           the interrupt meets the wait after the block
 *
 * checks: [scope-owner], [cancel-epoch], [cancel-sticky]
 */
#ifndef SIBLINGS
#define SIBLINGS 1
#endif
#ifndef CANCELS
#define CANCELS 1
#endif

mtype = { OPEN, CANCELLING, RUNNING, PARKING, PARKED, WOKEN, READY };

mtype state = OPEN;     /* of the owner's nursery */
mtype park = RUNNING;   /* the owner */
byte  epoch = 1, begun; /* one word; something was cancelled elsewhere before */
byte  clean;            /* of the nursery around: shared with siblings */
byte  disturbed;        /* there, too */
byte  holds = CANCELS;  /* cancels that have the nursery in hand */
bool  open = true;      /* the block has not ended */
bool  returned;         /* a cancel that took place has returned */
bool  interrupted;      /* the owner's wait, by a cancel */
bool  waits_after, helped, over;

/* found: the scope is cancelled. `mine`: the owner looks, otherwise a sibling. */
inline look(mine, found)
{
    found = false;
    if
    :: atomic { clean == epoch && begun == 0 -> skip }
    :: else ->
        if
        :: mine && open && state == CANCELLING -> found = true
        :: else ->
            atomic { seen = epoch; busy = begun };
            if
            :: busy == 0 && disturbed == 0 -> clean = seen
            :: else
            fi;
            seen = 0; busy = 0
        fi
    fi
}

/* The owner leaves the CPU until somebody wakes it. */
inline sleep()
{
    if
    :: atomic { park == PARKING -> park = PARKED }; park == READY
    :: else -> assert(park == WOKEN)
    fi;
    park = RUNNING
}

/* One wait in the block: nothing but the cancel ends it. */
inline wait_inside()
{
#ifdef LOOK_BEFORE
    look(true, told);
    park = PARKING;
#else
    park = PARKING;
    look(true, told);
#endif
    if
    :: told -> park = RUNNING /* from PARKING or WOKEN */
    :: else -> sleep(); assert(interrupted); told = true
    fi;
    interrupted = false
}

active proctype owner()
{
    bool told, again, late;
    byte seen, busy;
    wait_inside();
    late = returned;
    look(true, again);
    assert(again || !late); /* it has returned, and is found */
    assert(again || !told); /* told once, told always */
    again = false; late = false;
    wait_inside();
    told = false;

    /* janus_nursery_end */
#ifndef NO_HOLD
    holds == 0;
#endif
    open = false;
#if !defined(NO_DISTURB)
    if
    :: state == CANCELLING -> disturbed--
    :: else
    fi;
#endif

    park = PARKING;
    look(true, told);
    assert(!told);
    waits_after = true;
    sleep();
    assert(helped && !interrupted);
    over = true
}

proctype sibling()
{
    bool none;
    byte seen, busy, looks;
    do
    :: looks < 2 -> looks++; look(false, none); assert(!none)
    :: looks == 2 -> break
    od
}

proctype canceller()
{
    bool did;
#ifndef NO_BEGUN
    begun++;
#endif
    atomic {
        if
        :: state == OPEN -> state = CANCELLING; did = true
        :: else
        fi
    };
#if !defined(NO_DISTURB) && !defined(DISTURB_LATE)
    if
    :: did -> disturbed++
    :: else
    fi;
#endif
    atomic {
#ifndef NO_BEGUN
        begun--;
#endif
        if
        :: did -> epoch++
        :: else
        fi
    };
#ifdef DISTURB_LATE
    if
    :: did -> disturbed++
    :: else
    fi;
#endif
#ifndef NO_INTERRUPT
    if
    :: did ->
        if
        :: atomic { park == PARKED -> interrupted = true; park = READY }
        :: atomic { park == PARKING -> interrupted = true; park = WOKEN }
        :: else
        fi
    :: else
    fi;
#endif
    if
    :: did -> returned = true
    :: else
    fi;
    holds--
}

active proctype helper()
{
end_helper:
    waits_after;
    helped = true;
    if
    :: atomic { park == PARKED -> park = READY }
    :: atomic { park == PARKING -> park = WOKEN }
    :: else /* somebody else has woken it, which the owner notices */
    fi
}

active proctype monitor()
{
    timeout;
    assert(over && disturbed == 0)
}

init
{
    byte i;
    atomic {
        do
        :: i < SIBLINGS -> run sibling(); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < CANCELS -> run canceller(); i++
        :: else -> break
        od
    }
}
