/* SPDX-License-Identifier: MIT */
/*
 * Two servers belong together: if one fails, both are started again. If both fail at once, their
 * supervisor gets two reports, and restarts both twice. The second restart throws away what the
 * new servers have done.
 */
#include "gallery.h"

enum { SERVERS = 2 };

struct report {
    int life;
};

struct pair {
    janus_channel reports;
    int           life;
    bool          mended;
};

struct server {
    struct pair *pair;
    int          life, steps;
};

/* The second life does its work. The first fails after some steps, if it is not cancelled. */
static int64_t serve(void *argument)
{
    struct server *server = argument;
    if (server->life > 0) return 0;
    for (int i = 0; i < server->steps; i++) {
        if (janus_yield() == JANUS_CANCELLED) return JANUS_CANCELLED;
    }
    janus_shield_begin(); /* the report is not lost */
    janus_status status = janus_channel_send(server->pair->reports, &(struct report){server->life});
    janus_shield_end();
    return status;
}

/* Starts both servers, and waits until a report says that they must be started again. */
static bool live(struct pair *pair)
{
    struct server servers[SERVERS];
    janus_nursery nursery;
    bool          again = false;
    JANUS_EXPECT(janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.owner_apart = true)) ==
                 JANUS_OK);
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = (struct server){pair, pair->life, 1 + 4 * i};
        JANUS_EXPECT(janus_spawn(&nursery, serve, &servers[i]) == JANUS_OK);
    }
    struct report report = {.life = -1};
    if (pair->life == 0) {
        JANUS_EXPECT(janus_channel_recv(pair->reports, &report) == JANUS_OK);
        again = true;
    } else {
        while (!again && janus_channel_try_recv(pair->reports, &report) == JANUS_OK)
            again = !pair->mended || report.life == pair->life;
    }
    if (again) (void)janus_nursery_cancel(&nursery);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    return again;
}

static int64_t two_restarts(void *mended)
{
    struct pair pair = {.mended = mended != NULL};
    JANUS_EXPECT(janus_channel_create(sizeof(struct report), SERVERS, NULL, &pair.reports) ==
                 JANUS_OK);
    while (live(&pair)) pair.life++;
    JANUS_EXPECT(pair.life == 1); /* one failure, one restart */
    return janus_channel_destroy(pair.reports);
}

const struct gallery_bug gallery_two_restarts = {
    "two_restarts", "two servers fail at once, and both reports restart both", two_restarts};
