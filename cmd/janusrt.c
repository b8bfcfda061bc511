/* SPDX-License-Identifier: MIT */
/*
 * The command. It explores a program, or runs it again under one schedule. The library inside the
 * program does the work, and this command passes the request through the environment. It also
 * compiles C, see cc/, and runs and compiles the language Janus, see lang.c.
 */
#include "cc/cc.h"
#include "cmd/lang.h"

#include <errno.h>
#include <fcntl.h>
#include <janusrt/explore.h>
#include <janusrt/version.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOTHING = 0, EXIT_FOUND = 1, EXIT_USAGE = 2 };

static const char help[] =
    "janusrt explore [option...] PROGRAM [--] [argument...]\n"
    "janusrt replay TEXT PROGRAM [--] [argument...]\n"
    "janusrt cc|c++ [option...] FILE...   (janusrt cc --help)\n"
    "\n"
    "explore runs PROGRAM under many schedules, one after the other, until PROGRAM fails. PROGRAM\n"
    "calls janus_run or janus_explore. It fails if its exit status is not 0, by a signal, by a\n"
    "deadlock or by a broken contract. replay runs PROGRAM under the schedule that explore "
    "printed.\n"
    "cc and c++ compile with clang, and insert counted checks into every loop and call.\n"
    "\n"
    "  --strategy NAME   random (the default), pct or exhaustive\n"
    "  --schedules N     try at most N schedules (1000; with --minutes or exhaustive no limit)\n"
    "  --minutes M       stop after M minutes\n"
    "  --seed S          the seed of the first schedule (1)\n"
    "  --workers W       the scheduler's workers (4; exhaustive: 2)\n"
    "  --depth D         for pct one more than the priority changes (3), for exhaustive the\n"
    "                    preemptions (2)\n"
    "  --steps N         at most N steps in each schedule (100000)\n"
    "  --faults LIST     what may fail: memory,mapping,thread,blocking,wake,death; of the network\n"
    "                    reset,stall,refuse,descriptor,edge,lost, or network for these; or all\n"
    "  --every N         inject a fault at one in N opportunities (100)\n"
    "  --stale           do not count the use of an ended handle as a failure\n"
    "  --panics          do not count a panic of a task as a failure\n"
    "  --help            print this text\n"
    "  --version         print the version\n"
    "\n"
    "Exit status: 0 no failure was found, 1 a failure was found, 2 PROGRAM could not be tried.\n";

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("janusrt: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see janusrt --help\n", stderr);
    va_end(arguments);
    exit(EXIT_USAGE);
}

/* The request, as the library reads it. */
static char wanted[512];

static void want(const char *key, unsigned long long value)
{
    size_t used = strlen(wanted);
    (void)snprintf(wanted + used, sizeof wanted - used, "%s%s=%llu", used > 0 ? "," : "", key,
                   value);
}

static unsigned long long number(const char *option, const char *text, unsigned long long max)
{
    char              *end;
    unsigned long long value = 0;
    errno = 0;
    if (text[0] >= '0' && text[0] <= '9') value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value == 0 || value > max) {
        refuse("%s: '%s' is not a number from 1 to %llu", option, text, max);
    }
    return value;
}

static unsigned long long one_of(const char *option, const char *text, size_t length,
                                 const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0) return i;
    }
    refuse("%s: '%.*s' is not a known name", option, (int)length, text);
}

static void want_faults(const char *text)
{
    static const char *const names[] = {"memory", "mapping", "thread",  "blocking", "wake",
                                        "death",  "reset",   "stall",   "refuse",   "descriptor",
                                        "edge",   "lost",    "network", "all"};
    enum { NAMES = sizeof names / sizeof names[0] };
    unsigned long long faults = 0;
    for (const char *at = text;; at++) {
        size_t             length = strcspn(at, ",");
        unsigned long long which = one_of("--faults", at, length, names, NAMES);
        faults |= which < NAMES - 2    ? 1ULL << which
                  : which == NAMES - 2 ? (unsigned long long)JANUS_FAULT_NETWORK
                                       : (unsigned long long)JANUS_FAULT_ALL;
        at += length;
        if (*at == '\0') break;
    }
    want("faults", faults);
}

static void want_minutes(const char *text)
{
    char  *end;
    double minutes = strtod(text, &end);
    if (end == text || *end != '\0' || !(minutes > 0) || minutes > 1e6) {
        refuse("--minutes: '%s' is not a number of minutes", text);
    }
    want("wall_ns", (unsigned long long)(minutes * 60e9) + 1);
}

/* Takes one option with its value. False: there is no such option. */
static bool take_option(const char *option, const char *value)
{
    static const char *const strategies[] = {"random", "pct", "exhaustive"};
    static const struct {
        const char        *option, *key;
        unsigned long long max;
    } numbers[] = {
        {"--schedules", "schedules", UINT64_MAX}, {"--seed", "seed", UINT64_MAX},
        {"--workers", "workers", 1024},           {"--depth", "depth", 64},
        {"--steps", "steps", UINT64_MAX},         {"--every", "every", UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(option, numbers[i].option) != 0) continue;
        if (value != NULL) want(numbers[i].key, number(option, value, numbers[i].max));
        return true;
    }
    if (strcmp(option, "--strategy") == 0) {
        if (value != NULL) {
            want("strategy", 1 + one_of(option, value, strlen(value), strategies, 3));
        }
    } else if (strcmp(option, "--faults") == 0) {
        if (value != NULL) want_faults(value);
    } else if (strcmp(option, "--minutes") == 0) {
        if (value != NULL) want_minutes(value);
    } else {
        return false;
    }
    return true;
}

/* Options stand before PROGRAM, as "--seed 7" or "--seed=7". Returns the place of PROGRAM. */
static char **take_options(char **at)
{
    for (; *at != NULL && strncmp(*at, "--", 2) == 0 && (*at)[2] != '\0'; at++) {
        char *value = strchr(*at, '=');
        if (strcmp(*at, "--stale") == 0) {
            want("stale", 1);
            continue;
        }
        if (strcmp(*at, "--panics") == 0) {
            want("panics", 1);
            continue;
        }
        if (value != NULL) *value++ = '\0';
        char *option = *at;
        if (!take_option(option, NULL)) refuse("%s: no such option", option);
        if (value == NULL) value = *++at;
        if (value == NULL) refuse("%s: its value is missing", option);
        (void)take_option(option, value);
    }
    if (*at != NULL && strcmp(*at, "--") == 0) at++;
    if (*at == NULL) refuse("PROGRAM is missing");
    return at;
}

/* A source of Janus is run by this command. The words are those of an executable then. */
static char **with_interpreter(char **program)
{
    size_t count = 0;
    if (!lang_is_source(program[0])) return program;
    while (program[count] != NULL) count++;
    char **words = calloc(count + 3, sizeof *words);
    if (words == NULL) refuse("no memory");
    words[0] = "janusrt"; /* as the command for a replay shows it */
    words[1] = "run";
    memcpy(words + 2, program, count * sizeof *words);
    return words;
}

/* "PROGRAM -- argument": removes the dashes. */
static void drop_dashes(char **program)
{
    if (program[1] == NULL || strcmp(program[1], "--") != 0) return;
    for (char **at = program + 1; *at != NULL; at++) at[0] = at[1];
}

/* Runs the program. Exit statuses as --help says. */
static int run(char **program)
{
    int  pipes[2], ended = 0;
    char text[48], all[16];
    drop_dashes(program);
    bool interprets = lang_is_source(program[0]);
    program = with_interpreter(program);
    if (pipe2(pipes, O_NONBLOCK) != 0) refuse("no pipe: %s", strerror(errno));
    (void)fcntl(pipes[0], F_SETFD, FD_CLOEXEC);
    struct stat pipe;
    if (fstat(pipes[1], &pipe) != 0) refuse("no pipe: %s", strerror(errno));
    (void)snprintf(text, sizeof text, "%d.%llu", pipes[1], (unsigned long long)pipe.st_ino);
    if (setenv("JANUSRT_BEGUN_FD", text, 1) != 0) refuse("no memory");
    pid_t child = fork();
    if (child < 0) refuse("no process: %s", strerror(errno));
    if (child == 0) {
        execvp(interprets ? "/proc/self/exe" : program[0], program);
        fprintf(stderr, "janusrt: %s: %s\n", program[0], strerror(errno));
        _exit(127);
    }
    (void)signal(SIGINT, SIG_IGN); /* the program gets the signal too, and its end is ours */
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127) return EXIT_USAGE;
    ssize_t told = read(pipes[0], all, sizeof all);
    if (told < 1) {
        fprintf(stderr,
                "janusrt: %s called none of janus_run, janus_scheduler_create_with and "
                "janus_explore, so "
                "nothing was explored\n",
                program[0]);
        return EXIT_USAGE;
    }
    if (WIFSIGNALED(ended)) {
        fprintf(stderr, "janusrt: %s: %s\n", program[0], strsignal(WTERMSIG(ended)));
        return EXIT_FOUND;
    }
    /* The program has printed why, perhaps in the middle of a schedule. */
    if (memchr(all, '-', (size_t)told) != NULL) return EXIT_USAGE;
    return WEXITSTATUS(ended) == 0 ? EXIT_NOTHING : EXIT_FOUND;
}

/* The command is also installed as janusrt-cc and janusrt-c++. */
static bool is_called(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, name) == 0;
}

int main(int count, char **arguments)
{
    if (count >= 1 && is_called(arguments[0], "janusrt-cc")) return cc_main(false, arguments + 1);
    if (count >= 1 && is_called(arguments[0], "janusrt-c++")) return cc_main(true, arguments + 1);
    if (count >= 2 && strcmp(arguments[1], "cc") == 0) return cc_main(false, arguments + 2);
    if (count >= 2 && strcmp(arguments[1], "c++") == 0) return cc_main(true, arguments + 2);
    if (count >= 2 && strcmp(arguments[1], "--help") == 0) {
        printf("%s\n%s", lang_help, help);
        return EXIT_NOTHING;
    }
    if (count >= 2 && strcmp(arguments[1], "--version") == 0) {
        puts("janusrt " JANUS_VERSION_STRING);
        return EXIT_NOTHING;
    }
    if (count < 2) refuse("a command is missing");
    int status = lang_command(arguments[1], arguments + 2);
    if (status >= 0) return status;
    if (strcmp(arguments[1], "explore") == 0) {
        if (count >= 3 && strcmp(arguments[2], "--help") == 0) {
            fputs(help, stdout);
            return EXIT_NOTHING;
        }
        char **program = take_options(arguments + 2);
        (void)unsetenv("JANUSRT_REPLAY");
        if (setenv("JANUSRT_EXPLORE", wanted, 1) != 0) refuse("no memory");
        return run(program);
    }
    if (strcmp(arguments[1], "replay") == 0) {
        if (count < 4) refuse("replay needs TEXT and PROGRAM");
        (void)unsetenv("JANUSRT_EXPLORE");
        if (setenv("JANUSRT_REPLAY", arguments[2], 1) != 0) refuse("no memory");
        return run(arguments + 3);
    }
    size_t length = strlen(arguments[1]);
    if (length > 4 && strcmp(arguments[1] + length - 4, ".jan") == 0)
        refuse("%s: no such command; write janusrt run %s", arguments[1], arguments[1]);
    refuse("%s: no such command", arguments[1]);
}
