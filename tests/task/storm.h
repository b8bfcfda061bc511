/* SPDX-License-Identifier: MIT */
/* Helpers for the storms: a seed that a failure prints, choices from it, a watchdog. */
#ifndef JANUSRT_TESTS_TASK_STORM_H
#define JANUSRT_TESTS_TASK_STORM_H

#include <janusrt/janus.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed, rounds;

__attribute__((noreturn, format(printf, 2, 3))) static inline void fail(int         line,
                                                                        const char *format, ...)
{
    char    text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: %s (seed %llu, round %llu)\n", __BASE_FILE__, line, text,
            (unsigned long long)seed, (unsigned long long)rounds);
    abort();
}

/* With more to print, or without: MUST(status == JANUS_OK, "%d", status). */
#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) fail(__LINE__, #condition ": " __VA_ARGS__);                             \
    } while (0)

/* JANUSRT_SEED, which makes every scheduler deterministic; 0: they are real. */
static inline uint64_t storm_simulated(void)
{
    const char *text = getenv("JANUSRT_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : 0;
}

/* The seed of the choices: the given one, the engine's, or a new one. Prints it. */
static inline void storm_begin(const char *asked)
{
    seed = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
    if (storm_simulated() != 0) seed = storm_simulated();
    if (asked != NULL) seed = strtoull(asked, NULL, 0);
    printf("# seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
}

/* Seconds for each number of workers: as asked, or `usual`, or ten times as long in make test-long.
 * They are CPU time, so that a busy machine does not shorten a storm. */
static inline double storm_seconds(int argc, char **argv, double usual)
{
    const char *models = getenv("JANUSRT_MODELS");
    if (argc > 1) return strtod(argv[1], NULL);
    return models != NULL && strcmp(models, "long") == 0 ? 10 * usual : usual;
}

static inline uint64_t storm_used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static inline uint64_t storm_end(double seconds)
{
    return storm_used_ns() + (uint64_t)(seconds * 1e9);
}

/* Whether there is another round: until storm_end, or a few rounds where time is not real. */
static inline bool storm_again(uint64_t number, uint64_t end)
{
    return storm_simulated() != 0 ? number < 4 : storm_used_ns() < end;
}

/* A round that takes longer hangs. A busy machine may need a part of this. */
enum { STORM_PATIENCE_S = 300 };

/* For SIGALRM. */
static inline void storm_hangs(int number)
{
    static const char text[] = __BASE_FILE__ ": nothing moves any more\n";
    (void)number;
    (void)!write(2, text, sizeof text - 1);
    abort();
}

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
