/* SPDX-License-Identifier: MIT */
/*
 * A mailbox whose actor takes messages without the lock, as [mail-window] in actor/mail.c has it.
 *
 *   send   takes the lock. If there is room for one more, counted by `at`: writes the message,
 *          in a larger ring if the ring is full. Otherwise queues up: `urgent`, a heavy fence, and
 *          one more look at `at`
 *   take   without the lock, if the window is not empty and nothing is urgent: reads the message,
 *          writes `at`, passes a light fence, and if something is urgent lets a sender go on.
 *          Otherwise with the lock: closes the window, takes one, and opens the next
 *
 * The actor's writes to `at` become visible late: a light fence does not hurry them, a lock and the
 * heavy fence of another do. While it handles a message, it waits for the LIMIT next ones, for
 * which there is room. All messages arrive in order. No message is overwritten before it is
 * read, and the actor reads no ring that was freed.
 *
 *   run: ok    -DLIMIT=1
 *   run: ok    -DLIMIT=2
 *   run: ok    -DLIMIT=3
 *   run: ok    -DLIMIT=2 -DTWO
 *   long: ok   -DLIMIT=3 -DTWO
 * Why each part is there:
 *   run: error -DLIMIT=2 -DNO_FENCE    the sender sees an old `at`, the actor an old `urgent`
 *   run: error -DLIMIT=2 -DNO_LOOK     room is made while the sender queues up
 *   run: error -DLIMIT=2 -DNO_AFTER    a handler waits for a sender for which there is room
 *   run: error -DLIMIT=3 -DFREE_OLD    the actor reads in a ring that was freed
 *   run: error -DLIMIT=3 -DHEAD_ROOM   a message of the window is overwritten
 *   run: error -DLIMIT=2 -DTWO -DKEEP_OPEN  a sender waits while a window is opened
 *
 * checks: [mail-window] [mail-room]
 */
#ifdef TWO
#define SENDERS 2
#else
#define SENDERS 1
#endif
#ifdef TWO
#define EACH 2
#else
#define EACH 4
#endif
#define MESSAGES (SENDERS * EACH + 1)
#define ROOM(r) (1 << (r))
#define SLOT(r, n) slots[(r) * 4 + ((n) % ROOM(r))]
#define USED(n) ((n) + reserved)

bool locked;
byte sent, head, at;          /* numbers of messages; `at` as others see it */
byte own, pending;            /* `at` as the actor wrote it; whether others do not see that yet */
bool urgent;
byte ring, old = 9;           /* the ring, of room 1, 2, 4; 9: none */
bool freed[3];
byte slots[12];
byte queued, served, reserved;
byte handled;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* Under the lock. */
inline serve()
{
    d_step {
        if
        :: queued > 0 && USED(sent - at) < LIMIT -> queued--; served++; reserved++
        :: else
        fi
    }
}

inline put()
{
    /* The ring has to hold what the actor has not read. */
#ifdef HEAD_ROOM
    used = sent - head;
#else
    used = sent - at;
#endif
    if
    :: used == ROOM(ring) -> d_step {
            i = at;
            do
            :: i < sent -> SLOT(ring + 1, i) = SLOT(ring, i); i++
            :: else -> break
            od;
            if
#ifndef FREE_OLD
            :: head != at && old == 9 -> old = ring
#endif
            :: else -> freed[ring] = true
            fi;
            ring++
        }
    :: else
    fi;
    d_step { SLOT(ring, sent) = sent + 1; sent++; i = 0; used = 0 }
}

inline queue_up()
{
    queued++;
    urgent = true;
#ifndef NO_FENCE
    if
    :: head != at -> d_step { at = own; pending = false }
    :: else   /* the window is empty: `at` does not change any more */
    fi;
#endif
#ifndef NO_LOOK
    if
    :: queued == 1 && USED(sent - at) < LIMIT -> d_step { queued--; served++; reserved++ }
    :: else
    fi
#else
    skip
#endif
}

active [SENDERS] proctype sender()
{
    byte done, used, i;
    do
    :: done < EACH + (_pid == 0) ->
        lock();
        if
        :: queued == 0 && USED(sent - at) < LIMIT -> put()
        :: else ->
            queue_up();
            unlock();
            atomic { served > 0 -> served-- };
            lock();
            reserved--;
            put()
        fi;
        unlock();
        done++
    :: else -> break
    od
}

inline see() { d_step { at = own; pending = false } }

active proctype actor()
{
    byte mine, got;   /* the ring that it reads, the message */
    do
    :: handled == MESSAGES -> break
    :: handled < MESSAGES ->
        got = 9;
        if
        :: own != head && !urgent ->
            assert(!freed[mine]);
            got = SLOT(mine, own);
            d_step { own++; pending = true };
#ifndef NO_AFTER
            if
            :: urgent -> lock(); see(); serve(); unlock()
            :: else
            fi
#endif
        :: else ->
            lock();
            see();
            head = own;
            if
            :: old != 9 -> d_step { freed[old] = true; old = 9 }
            :: else
            fi;
            if
            :: own != sent -> d_step { got = SLOT(ring, own); own++; head = own; at = own };
                serve();
                if
#ifndef KEEP_OPEN
                :: queued > 0
#endif
                :: else -> d_step { urgent = false; head = sent; mine = ring }
                fi
            :: else
            fi;
            unlock();
            if
            :: got == 9 -> own != sent
            :: else
            fi
        fi;
        if
        :: got != 9 ->
            assert(got == handled + 1);
            handled++;
            (sent >= handled + LIMIT || sent == MESSAGES)
        :: else
        fi
    od;
    assert(sent == MESSAGES && own == MESSAGES)
}

/* What the actor wrote becomes visible. */
active proctype memory()
{
    do
    :: atomic { pending -> at = own; pending = false }
    :: handled == MESSAGES && !pending -> break
    od
}

active proctype stuck() { timeout -> assert(handled == MESSAGES) }
