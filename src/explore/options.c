/* SPDX-License-Identifier: MIT */
/* What to explore: options, and the environment, which overrides them. */
#include "base/options.h"

#include "explore/explorer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORKERS_MAX = 1024, DEPTH_MAX = 64 };

/* Reads digits up to `length`. */
static bool number_of(const char *text, size_t length, uint64_t *out)
{
    uint64_t number = 0;
    if (length == 0) return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (number > (UINT64_MAX - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *out = number;
    return true;
}

static bool set_u32(uint32_t *out, uint64_t value)
{
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}

static bool set_one(janus_explore_options *options, const char *key, size_t key_length,
                    uint64_t value)
{
    static const char *const keys[] = {"strategy", "seed",    "schedules", "workers",
                                       "depth",    "steps",   "faults",    "every",
                                       "stale",    "wall_ns", "panics"};
    size_t                   at = 0;
    while (at < sizeof keys / sizeof keys[0] &&
           (strlen(keys[at]) != key_length || strncmp(keys[at], key, key_length) != 0)) {
        at++;
    }
    switch (at) {
    case 0: options->strategy = (janus_strategy)value; return value <= JANUS_STRATEGY_EXHAUSTIVE;
    case 1: options->seed = value; return true;
    case 2: options->schedules = value; return true;
    case 3: return set_u32(&options->worker_count, value);
    case 4: return set_u32(&options->depth, value);
    case 5: options->max_steps = value; return true;
    case 6: return set_u32(&options->faults, value);
    case 7: return set_u32(&options->faults_every, value);
    case 8: options->stale_allowed = value != 0; return value <= 1;
    case 9: options->wall_ns = value; return true;
    case 10: options->panics_allowed = value != 0; return value <= 1;
    default: return false;
    }
}

bool jrt_explore_environment(const char *text, janus_explore_options *options)
{
    while (*text != '\0') {
        size_t      length = strcspn(text, ",");
        const char *equals = memchr(text, '=', length);
        uint64_t    value;
        if (equals == NULL) return false;
        size_t key = (size_t)(equals - text);
        if (!number_of(equals + 1, length - key - 1, &value)) return false;
        if (!set_one(options, text, key, value)) return false;
        text += length;
        if (*text == ',') text++;
    }
    return true;
}

static void set_defaults(janus_explore_options *options)
{
    if (options->strategy == 0) options->strategy = JANUS_STRATEGY_RANDOM;
    bool all = options->strategy == JANUS_STRATEGY_EXHAUSTIVE;
    if (options->seed == 0) options->seed = 1;
    if (options->schedules == 0) {
        options->schedules = all || options->wall_ns != 0 ? UINT64_MAX : 1000;
    }
    if (options->worker_count == 0)
        options->worker_count = all ? 2 : 4; /* more would be too many */
    if (options->depth == 0) options->depth = all ? 2 : 3;
    if (options->max_steps == 0) options->max_steps = JRT_STEPS_MAX;
    if (options->max_time_ns == 0) options->max_time_ns = UINT64_C(3600) * 1000000000;
    if (options->faults_every == 0) options->faults_every = 100;
    /* One in one would always fail: there must be another answer. */
    if (options->faults_every == 1) options->faults_every = 2;
    if (options->replay == NULL) options->replay = secure_getenv("JANUSRT_REPLAY");
}

janus_status jrt_explore_decode(const janus_explore_options *given, janus_explore_options *out)
{
    const char *environment = secure_getenv("JANUSRT_EXPLORE");
    *out = (janus_explore_options){.struct_bytes = sizeof *out};
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *out)) return JANUS_INVALID;
        memcpy(out, given, given->struct_bytes);
    }
    if (environment != NULL && !jrt_explore_environment(environment, out)) return JANUS_INVALID;
    set_defaults(out);
    bool known = (unsigned)out->strategy <= JANUS_STRATEGY_EXHAUSTIVE &&
                 out->worker_count <= WORKERS_MAX && out->depth <= DEPTH_MAX &&
                 out->faults <= JANUS_FAULT_ALL;
    return known ? JANUS_OK : JANUS_INVALID;
}

void jrt_explore_begun(bool well)
{
    const char *text = secure_getenv("JANUSRT_BEGUN_FD"); /* descriptor, dot, inode */
    struct stat pipe;
    uint64_t    fd, inode;
    if (text == NULL) return;
    size_t digits = strcspn(text, ".");
    if (!number_of(text, digits, &fd) || fd > INT32_MAX || text[digits] == '\0') return;
    if (!number_of(text + digits + 1, strlen(text + digits + 1), &inode)) return;
    /* The program may have closed the pipe and opened something else there. */
    if (fstat((int)fd, &pipe) != 0 || !S_ISFIFO(pipe.st_mode) || pipe.st_ino != inode) return;
    ssize_t written = write((int)fd, well ? "+" : "-", 1);
    (void)written; /* then the command reports that nothing was explored */
}
