/* SPDX-License-Identifier: MIT */
/*
 * The hostile corpus: plugins that may call every public function, each in a nursery with a pool of
 * its own beside honest neighbours. contain() runs one plugin with 1, 2 and 8 workers. It checks
 * each time that
 *
 *   - the process lives, and the run ends well,
 *   - neighbours get half of a single worker's CPU time,
 *   - neighbours can still spawn, allocate, open channels, make blocking calls, use tokens, open
 *     pools, sleep and lock while the plugin holds all that it could get,
 *   - the plugin's nursery ends after a cancel, and its pool's books balance.
 */
#ifndef JANUSRT_TESTS_HOSTILE_CONTAIN_H
#define JANUSRT_TESTS_HOSTILE_CONTAIN_H

#define RIG_TURN_NS JANUS_TURN_NS /* as a service has it */
#include "../task/rig.h"

/* What a host gives to a plugin. */
struct plugin {
    janus_nursery *around;    /* the nursery that the plugin runs in */
    janus_nursery *others;    /* the neighbours' nursery, a stolen pointer */
    janus_channel  send_only; /* to a channel of the host */
    janus_token   *token;     /* the host's, to read */
    janus_mutex   *mutex;     /* shared with the neighbours, which take it now and then */
    atomic_int    *holds;     /* the plugin sets it when it holds everything it can get */
    atomic_int    *escaped;   /* the plugin sets it if something forbidden worked */
};

typedef void plugin_entry(struct plugin *plugin);

struct attack {
    plugin_entry *entry;
    int           tasks;    /* how many tasks the plugin may have, with itself; 0: 1 */
    int           spawns;   /* how many it may start, with itself; 0: as many as tasks */
    const char   *no_share; /* why the neighbours' share is not measured; NULL: it is */
    uint64_t      memory;   /* of its pool; 0: 1 MiB, which the plugin's first task has */
    bool          poor;     /* the pool has no memory at all */
    bool          ends;     /* the plugin ends by itself: the host waits for it before the cancel */
    bool          panics;   /* the plugin's first task must have panicked */
};

/* Runs the attack as described above. */
void contain(struct attack attack);

/* Reports that something forbidden worked. */
#define ESCAPED(plugin) atomic_store((plugin)->escaped, __LINE__)

/* Reports that the plugin has everything it can get, then waits for the cancel. */
void hold(struct plugin *plugin);

#endif
