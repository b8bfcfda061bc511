/* SPDX-License-Identifier: MIT */
#include "rt/environ.h"

#include "plat/signal.h"
#include "plat/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EVERY = 100, /* as in an exploration */
    NETWORK = JRT_FAULT_RESET | JRT_FAULT_STALL | JRT_FAULT_REFUSE | JRT_FAULT_DESCRIPTOR |
              JRT_FAULT_EDGE | JRT_FAULT_LOST,
};

static bool refuse(const char *name, const char *text, const char *why)
{
    char line[240];
    int  length = snprintf(line, sizeof line, "janusrt: %s='%.60s' %s\n", name, text, why);
    (void)jrt_write_all(STDERR_FILENO, line, (size_t)length);
    return false;
}

static const char *text_of(const char *name)
{
    const char *text = secure_getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

bool jrt_environ_seed(uint64_t *out)
{
    const char *text = text_of("JANUSRT_SEED");
    char       *end = NULL;
    if (text == NULL) return true;
    errno = 0;
    *out = strtoull(text, &end, 0);
    if (errno == 0 && *end == '\0' && *out != 0 && *text != '-') return true;
    return refuse("JANUSRT_SEED", text, "is no seed: use a number from 1 to 2^64 - 1");
}

/* The fault with this name. 0: no fault of the network has it. */
static uint32_t fault_of(const char *name, size_t bytes)
{
    static const struct {
        const char *name;
        uint32_t    faults;
    } known[] = {{"reset", JRT_FAULT_RESET},   {"stall", JRT_FAULT_STALL},
                 {"refuse", JRT_FAULT_REFUSE}, {"descriptor", JRT_FAULT_DESCRIPTOR},
                 {"edge", JRT_FAULT_EDGE},     {"lost", JRT_FAULT_LOST},
                 {"network", NETWORK}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].name) == bytes && memcmp(known[i].name, name, bytes) == 0)
            return known[i].faults;
    }
    return 0;
}

bool jrt_environ_faults(struct jrt_environ_faults *out)
{
    static const char wanted[] = "is no list of faults, as reset,stall:100. The faults are reset, "
                                 "stall, refuse, descriptor, edge, lost and network";
    const char       *text = text_of("JANUSRT_FAULTS"), *at = text;
    *out = (struct jrt_environ_faults){0, EVERY};
    if (text == NULL) return true;
    for (;; at++) {
        size_t   bytes = strcspn(at, ",:");
        uint32_t faults = fault_of(at, bytes);
        if (faults == 0) return refuse("JANUSRT_FAULTS", text, wanted);
        out->faults |= faults;
        at += bytes;
        if (*at != ',') break;
    }
    if (*at == '\0') return true;
    char *end = NULL;
    errno = 0;
    unsigned long every = strtoul(at + 1, &end, 10);
    out->every = (uint32_t)every;
    bool digit = at[1] >= '0' && at[1] <= '9';
    if (digit && errno == 0 && *end == '\0' && every > 1 && every <= UINT32_MAX) return true;
    return refuse("JANUSRT_FAULTS", text, wanted);
}

void jrt_environ_complain(void)
{
    const char *text = text_of("JANUSRT_FAULTS");
    (void)refuse("JANUSRT_FAULTS", text != NULL ? text : "",
                 "needs a simulated run: set JANUSRT_SEED");
}
