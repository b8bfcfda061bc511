/* SPDX-License-Identifier: MIT */
/* Handles without descriptors, for tests of what handles need and cost. */
#ifndef JANUSRT_TESTS_TASK_WHARF_H
#define JANUSRT_TESTS_TASK_WHARF_H

#include "../cap/places.h"
#include "caps.h"
#include "means/handles.h"
#include "plat/world.h"

#include <stdio.h>

enum { WHARF_BERTHS = 256, WHARF_BYTES = 1000 };

struct berth {
    struct jrt_handle_toll toll;
    uint64_t               generation;
    bool                   taken, open;
};

static struct berth    wharf[WHARF_BERTHS]; /* under the lock */
static pthread_mutex_t wharf_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int      wharf_open_now, wharf_ended; /* handles; those that an owner's end ended */

/* Under the lock. */
static inline void wharf_leave(struct berth *berth)
{
    berth->open = berth->taken = false;
    berth->generation++;
    jrt_handle_closed(&berth->toll);
    atomic_fetch_sub(&wharf_open_now, 1);
}

static void (*wharf_before_end)(
    void); /* called where an owner's end ends a handle; NULL: nothing */

/* The owner has ended. */
static inline void wharf_end(const uint64_t name[2])
{
    struct berth *berth = &wharf[name[0]];
    if (wharf_before_end != NULL) wharf_before_end();
    jrt_lock(&wharf_lock);
    if (berth->open && berth->generation == name[1] && !jrt_handle_is_owned(&berth->toll)) {
        wharf_leave(berth);
        atomic_fetch_add(&wharf_ended, 1);
    }
    jrt_unlock(&wharf_lock);
}

static inline struct berth *wharf_berth(void)
{
    struct berth *free = NULL;
    jrt_lock(&wharf_lock);
    for (int i = 0; i < WHARF_BERTHS && free == NULL; i++) {
        if (!wharf[i].taken) free = &wharf[i];
    }
    CHECK(free != NULL);
    free->taken = true;
    jrt_unlock(&wharf_lock);
    return free;
}

/* Opens a handle. *out may be NULL. */
static inline janus_status wharf_open(janus_cap_kind kind, uint32_t right,
                                      const struct jrt_handle_ask *ask, bool kept,
                                      struct berth **out)
{
    struct berth *berth = wharf_berth();
    janus_status  status = jrt_handle_may_open(kind, right, ask, kept, &berth->toll);
    if (status != JANUS_OK) {
        jrt_lock(&wharf_lock);
        berth->taken = false;
        jrt_unlock(&wharf_lock);
        return status;
    }
    jrt_lock(&wharf_lock);
    uint64_t name[2] = {(uint64_t)(berth - wharf), berth->generation};
    berth->open = true;
    atomic_fetch_add(&wharf_open_now, 1);
    jrt_handle_opened(&berth->toll, name, wharf_end);
    jrt_unlock(&wharf_lock);
    if (out != NULL) *out = berth;
    return JANUS_OK;
}

/* The right net.connect, without an address. */
static inline janus_status wharf_connect(struct berth **out)
{
    const struct jrt_handle_ask ask = {.bytes = WHARF_BYTES};
    return wharf_open(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_CONNECT, &ask, false, out);
}

static inline bool wharf_close(struct berth *berth)
{
    jrt_lock(&wharf_lock);
    bool open = berth->open;
    if (open) wharf_leave(berth);
    jrt_unlock(&wharf_lock);
    return open;
}

/* Moves it to the current task. STALE: it is closed. */
static inline janus_status wharf_take(struct berth *berth)
{
    jrt_lock(&wharf_lock);
    janus_status status = berth->open ? jrt_handle_move(&berth->toll) : JANUS_STALE;
    jrt_unlock(&wharf_lock);
    return status;
}

/* The sentence about the last refusal. */
static inline const char *wharf_says(void)
{
    static _Thread_local char text[512];
    (void)janus_explain(text, sizeof text);
    return text;
}

static inline bool wharf_said(const char *what)
{
    const char *text = wharf_says();
    if (strstr(text, what) != NULL) return true;
    printf("# it says: %s\n", text);
    return false;
}

static inline janus_cap wharf_net(const janus_authority *root, const char *range, uint64_t handles)
{
    const janus_cap_limits limits = {.net = place_range(range, handles)};
    return caps_mint(root, JANUS_CAP_KIND_NET, JANUS_RIGHTS_ALL, &limits);
}

#endif
