/* SPDX-License-Identifier: MIT */
/*
 * Alarms of handles, and the scheduler whose timers hold them.
 *
 * [io-home]  A handle's home is the scheduler of its owner. Alarms of the handle stay armed there
 *   between waits, [io-lazy]. Any thread may be the last user of the handle, and then frees its
 *   place, perhaps after the home is gone. So one lock guards the home of every handle. Under it:
 *
 *   - a wait arms an alarm only if the handle still has a home;
 *   - the owner's end disarms the alarms and takes the home away. It does so too if another thread
 *     closes the handle at the same time, and then finds the place by the handle's name;
 *   - the last user, or a task that takes the handle, disarms them if the handle still has a home.
 *
 *   So while a handle has a home, its owner has not ended, and the scheduler exists.
 *
 * Locks: homes, and under it the timers' lock of a scheduler.
 */
#include "io/io.h"

#include "work/work.h"

static pthread_mutex_t homes = PTHREAD_MUTEX_INITIALIZER; /* [io-home] */

/* Under the timers' lock. */
static void ring(struct jrt_alarm *alarm)
{
    struct jrt_io       *io = alarm->subject;
    struct jrt_io_alarm *own = (struct jrt_io_alarm *)alarm;
    /* relaxed: written before any was armed. */
    const struct jrt_io_alarms *all = jrt_load_relaxed(&io->cold->alarms);
    enum jrt_ready_way way = own == &all->of[JRT_READY_READ] ? JRT_READY_READ : JRT_READY_WRITE;
    jrt_store_seq_cst(&own->rings, JRT_NEVER); /* seq_cst: before the word is read, [io-lazy]. */
    /* seq_cst: as above. */
    if (jrt_load_seq_cst(&io->ready.words[way]) > JRT_READY_EDGE) jrt_ready_kick(&io->ready, way);
}

/* Makes the alarms of a handle that has its first deadline. Under the lock. */
static struct jrt_io_alarms *make_alarms(struct jrt_io *io)
{
    struct jrt_io_alarms *made = jrt_calloc(1, sizeof *made);
    for (int way = 0; way < JRT_READY_WAYS && made != NULL; way++) {
        made->of[way].alarm.subject = io;
        jrt_store_relaxed(&made->of[way].rings, JRT_NEVER); /* relaxed: not known yet. */
    }
    jrt_store_release(&io->cold->alarms, made); /* release: their content. */
    return made;
}

/* Under the lock. */
static janus_status arm(struct jrt_io *io, enum jrt_ready_way way, uint64_t deadline_ns)
{
    janus_scheduler *home = jrt_io_home(io);
    if (home != jrt_worker_self()->scheduler) return JANUS_DEADLINE;
    struct jrt_io_alarms *alarms = jrt_load_relaxed(&io->cold->alarms); /* relaxed: the lock. */
    if (alarms == NULL) alarms = make_alarms(io);
    if (alarms == NULL) return JANUS_NO_MEMORY;
    struct jrt_io_alarm *alarm = &alarms->of[way];
    if (alarm->alarm.ring == NULL) alarm->alarm.ring = ring; /* not written while it is armed */
    jrt_store_relaxed(&alarm->rings, deadline_ns); /* relaxed: it rings only once it is armed. */
    if (jrt_sched_timer_arm(home, &alarm->alarm.timer, deadline_ns)) return JANUS_WOULD_WAIT;
    jrt_store_relaxed(&alarm->rings, JRT_NEVER); /* relaxed: as above. */
    return JANUS_NO_MEMORY;
}

janus_status jrt_io_arm(struct jrt_io *io, enum jrt_ready_way way, uint64_t deadline_ns)
{
    struct jrt_io_alarms *alarms = jrt_load_acquire(&io->cold->alarms); /* acquire: content. */
    jrt_fence_seq_cst(); /* seq_cst: the word was written, [io-lazy]. */
    /* seq_cst: as above. */
    if (alarms != NULL && jrt_likely(jrt_load_seq_cst(&alarms->of[way].rings) <= deadline_ns)) {
        return JANUS_WOULD_WAIT;
    }
    jrt_lock(&homes);
    janus_status status = arm(io, way, deadline_ns);
    jrt_unlock(&homes);
    return status;
}

/* Under the lock. */
static void leave_home(struct jrt_io *io)
{
    janus_scheduler      *home = jrt_io_home(io);
    struct jrt_io_alarms *alarms = NULL;
    /* relaxed: the lock. A handle with a home has a cold part. */
    if (home != NULL) alarms = jrt_load_relaxed(&io->cold->alarms);
    for (int way = 0; way < JRT_READY_WAYS && alarms != NULL; way++) {
        struct jrt_io_alarm *alarm = &alarms->of[way];
        /* Never armed. `rings` does not tell: an old alarm may ring while a new one is armed. */
        if (alarm->alarm.ring == NULL) continue;
        jrt_sched_timer_disarm(home, &alarm->alarm.timer);
        jrt_store_relaxed(&alarm->rings, JRT_NEVER); /* relaxed: it is not armed. */
        alarm->alarm.ring = NULL;
    }
    jrt_store_release(&io->home, NULL); /* release: this thread does not touch the alarms again. */
}

void jrt_io_leave_home(struct jrt_io *io)
{
    /* acquire: as above. Only users of the handle give it a home. */
    if (jrt_load_acquire(&io->home) == NULL) return;
    jrt_lock(&homes);
    leave_home(io);
    jrt_unlock(&homes);
}

void jrt_io_set_home(struct jrt_io *io, janus_scheduler *home)
{
    jrt_lock(&homes);
    jrt_debug_invariant("io-home", jrt_io_home(io) == NULL);
    jrt_store_relaxed(&io->home, home); /* relaxed: under the lock. */
    jrt_unlock(&homes);
}

void jrt_io_leave_home_by_name(janus_io handle)
{
    jrt_lock(&homes);
    struct jrt_io *io = jrt_io_place_of(handle);
    /* acquire: the serial number of the handle that got this home. It is compared after it. */
    if (jrt_load_acquire(&io->home) != NULL && jrt_io_was(io, handle)) leave_home(io);
    jrt_unlock(&homes);
}
