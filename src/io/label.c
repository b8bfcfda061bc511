/* SPDX-License-Identifier: MIT */
/* Names the task that opens a descriptor. A world reports it if the descriptor is never closed. It
 * also knows the names of the last handles that were closed, for reports of stale ones. */
#include "io/io.h"
#include "sim/net.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdio.h>
#include <string.h>

static const char *without_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void jrt_io_label(const struct jrt_io_plan *plan)
{
    const struct jrt_worker *worker = jrt_worker_self();
    const struct jrt_task   *task = worker != NULL ? worker->current : NULL;
    const janus_site        *site = task != NULL ? jrt_task_site(task) : NULL;
    char                     text[JRT_SIM_LABEL] = "", by[JRT_SIM_LABEL] = "";
    size_t                   used = 0;
    if (plan->name != NULL) {
        used = (size_t)snprintf(text, sizeof text, "\"%.31s\"%s", plan->name,
                                task != NULL ? ", " : "");
    }
    if (task != NULL && task->name != NULL) jrt_name_again(by, 32, task->name);
    if (task != NULL && used < sizeof text) {
        used += (size_t)snprintf(text + used, sizeof text - used, "opened by task%s%s%s",
                                 by[0] != '\0' ? " \"" : "", by, by[0] != '\0' ? "\"" : "");
    }
    if (site != NULL && used < sizeof text) {
        (void)snprintf(text + used, sizeof text - used, " of %.31s:%d", without_folder(site->file),
                       site->line);
    }
    jrt_sim_label(plan->fd, text);
}

void jrt_io_remember(const struct jrt_io *io)
{
    struct jrt_world *world = jrt_world_now();
    const uint32_t    most = sizeof world->ended / sizeof world->ended[0];
    if (io->cold->name[0] == '\0') return;
    uint32_t at = world->ended_count++ % most;
    world->ended[at].place = jrt_io_place(io);
    jrt_name_again(world->ended[at].name, sizeof world->ended[at].name, io->cold->name);
}

const char *jrt_io_remembered(janus_io handle)
{
    const struct jrt_world *world = jrt_world_now();
    const uint32_t          most = sizeof world->ended / sizeof world->ended[0];
    uint64_t                place = handle.opaque[0] >> JRT_IO_PLACE_AT;
    /* acquire: the base. */
    if (world == NULL || place >= jrt_load_acquire(&jrt_ready_table.places)) return "";
    if (!jrt_io_was(jrt_io_place_of(handle), handle)) return ""; /* another one has the place */
    for (uint32_t i = 1; i <= most && i <= world->ended_count; i++) {
        uint32_t at = (world->ended_count - i) % most;
        if (world->ended[at].place == place) return world->ended[at].name;
    }
    return "";
}
