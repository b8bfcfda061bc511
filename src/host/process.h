/* SPDX-License-Identifier: MIT */
/* Child processes of the system. The essay is in process_linux.c. */
#ifndef JRT_HOST_PROCESS_H
#define JRT_HOST_PROCESS_H

#include <janusrt/process.h>

/* A child. Allocated when it starts, and freed when nobody will ask about it. */
struct jrt_process {
    struct jrt_process *next; /* among the abandoned */
    int                 fd;   /* pidfd */
    int64_t             id;
    bool                ended, lost; /* lost: somebody else has collected it */
    janus_process_end   end;
};

/* What to start. Descriptors: -1 is /dev/null, -2 is inherited. */
struct jrt_process_plan {
    const char        *path;
    const char *const *arguments, *const *environment;
    bool search;
    int  directory; /* -1: that of this process */
    int  streams[3];
};

enum { JRT_PROCESS_NOWHERE = -1, JRT_PROCESS_INHERITED = -2 };

/* Starts a child. 0, or -errno; -ENOSYS: the kernel has no pidfd_open. May block for a while. */
int jrt_process_start(const struct jrt_process_plan *plan, struct jrt_process **out);

/* Asks whether it has ended, and collects it. 1: it has. 0: not yet. -ECHILD: somebody else has
 * collected it. */
int jrt_process_look(struct jrt_process *process);

int jrt_process_signal(const struct jrt_process *process, int number);

/* The handle is closed. Kills the child, if wanted, and frees the record when it has ended. Never
 * waits. */
void jrt_process_abandon(struct jrt_process *process, bool kills);

/* A pipe: the child's end blocks. `input`: the child reads. 0, or -errno. */
int jrt_process_pipe(bool input, int *out_ours, int *out_childs);

/* How many abandoned children have not ended. */
unsigned jrt_process_abandoned(void);

#endif
