/* SPDX-License-Identifier: MIT */
#include "explore/log.h"

#include <string.h>
#include <sys/mman.h>

struct jrt_log *jrt_log_make(void)
{
    void *memory = mmap(NULL, sizeof(struct jrt_log), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void jrt_log_free(struct jrt_log *log)
{
    if (log != NULL) (void)munmap(log, sizeof *log);
}

void jrt_log_clear(struct jrt_log *log)
{
    uint32_t prefix = log->prefix;
    memset(log, 0, offsetof(struct jrt_log, told));
    log->prefix = prefix;
}

bool jrt_log_next(struct jrt_log *log, uint32_t depth)
{
    uint32_t spent = 0;
    for (uint32_t i = 0; i < log->kept; i++) {
        spent += log->path[i].costs && log->path[i].rank > 0;
    }
    for (uint32_t i = log->kept; i > 0; i--) {
        struct jrt_log_step *step = &log->path[i - 1];
        if (step->costs && step->rank > 0) spent--;
        if (step->rank + 1 >= step->count || (step->costs && spent >= depth)) continue;
        step->rank++;
        log->prefix = i;
        return true;
    }
    return false;
}

void jrt_log_unroll(struct jrt_log *log)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < log->kept; i++) { /* a choice takes less room than a step */
        struct jrt_log_step step = log->path[i];
        if (step.rank > 0) log->made[count++] = step.made;
    }
    log->kept = count;
    log->prefix = 0;
}
