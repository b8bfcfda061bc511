/* SPDX-License-Identifier: MIT */
/* What an explorer prints: seed, progress, the failure, and how to replay it. */
#include "explore/trial.h"

#include "explore/explorer.h"
#include "plat/seam.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t terminal_ns = 200000000; /* between two updates of one line, */
static const uint64_t file_ns = 5000000000;    /* and between two lines that stay */

enum {
    COMMAND_BYTES = 4096,
    REPLAY_BYTES_MAX = 64 << 10, /* the kernel takes variables of 128 KiB */
};

void jrt_report_refused(const struct jrt_explorer *explorer)
{
    if (explorer->options.quiet) return;
    fprintf(stderr, "janusrt: replay: '%s' is not understood; copy the text from a report\n",
            explorer->options.replay);
}

/* The names are those of the command's option. */
static void put_faults(uint32_t faults)
{
    static const char *const names[] = {"memory", "mapping",    "thread", "blocking",
                                        "wake",   "death",      "reset",  "stall",
                                        "refuse", "descriptor", "edge",   "lost"};
    const char              *before = "faults ";
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((faults >> i & 1) == 0) continue;
        fprintf(stderr, "%s%s", before, names[i]);
        before = ",";
    }
    fputc(' ', stderr);
}

void jrt_report_begin(struct jrt_explorer *explorer)
{
    static const char *const     names[] = {"random", "random", "pct", "exhaustive"};
    const janus_explore_options *options = &explorer->options;
    explorer->began_ns = explorer->told_ns = jrt_clock_now_ns();
    explorer->terminal = isatty(STDERR_FILENO) == 1;
    if (options->quiet) return;
    fprintf(stderr, "janusrt: exploring: %s, seed %llu, ", names[options->strategy],
            (unsigned long long)options->seed);
    if (options->schedules != UINT64_MAX) {
        fprintf(stderr, "%llu schedules, ", (unsigned long long)options->schedules);
    }
    if (options->wall_ns != 0) {
        fprintf(stderr, "%.1f s, ", (double)options->wall_ns / 1e9);
    }
    if (options->strategy != JANUS_STRATEGY_RANDOM) fprintf(stderr, "depth %u, ", options->depth);
    if (options->faults != 0) {
        put_faults(options->faults);
        fprintf(stderr, "one in %u, ", options->faults_every);
    }
    fprintf(stderr, "%u worker%s\n", options->worker_count, options->worker_count > 1 ? "s" : "");
}

static void put_progress(const struct jrt_explorer *explorer, uint64_t now_ns)
{
    double seconds = (double)(now_ns - explorer->began_ns) / 1e9;
    fprintf(stderr, "janusrt: %llu schedules, %.0f/s, nothing found",
            (unsigned long long)explorer->schedules,
            seconds > 0 ? (double)explorer->schedules / seconds : 0);
}

void jrt_report_progress(struct jrt_explorer *explorer)
{
    if (explorer->options.quiet) return;
    uint64_t now_ns = jrt_clock_now_ns();
    if (now_ns - explorer->told_ns < (explorer->terminal ? terminal_ns : file_ns)) return;
    explorer->told_ns = now_ns;
    if (explorer->terminal) fputs("\r", stderr);
    put_progress(explorer, now_ns);
    fputs(explorer->terminal ? "\033[K" : "\n", stderr);
    explorer->line_open = explorer->terminal;
}

/* The command. */

/* Quotes a word for a shell. */
static void put_quoted(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";
    if (*word != '\0' && strspn(word, plain) == strlen(word)) {
        fputs(word, stderr);
        return;
    }
    fputc('\'', stderr);
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            fputs("'\\''", stderr);
        } else {
            fputc(*word, stderr);
        }
    }
    fputc('\'', stderr);
}

/* Prints how this program was called. */
static void put_command(void)
{
    char    words[COMMAND_BYTES + 1];
    int     file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, words, COMMAND_BYTES) : -1;
    if (file >= 0) (void)close(file);
    if (got <= 0) {
        fputs("PROGRAM", stderr);
        return;
    }
    words[got] = '\0';
    for (const char *word = words; word < words + got; word += strlen(word) + 1) {
        if (word != words) fputc(' ', stderr);
        put_quoted(word);
    }
}

/* The schedule in words. */

static void put_who(const struct jrt_log_who *who)
{
    fputs(who->thread, stderr);
    if (who->task == 0) return;
    fprintf(stderr, " (task 0x%llx", (unsigned long long)who->task);
    if (who->name[0] != '\0') fprintf(stderr, " \"%s\"", who->name);
    fputc(')', stderr);
}

static const char *fault_text(uint32_t fault)
{
    switch (fault) {
    case JRT_FAULT_MEMORY: return "is refused memory";
    case JRT_FAULT_MAPPING: return "is refused address space";
    case JRT_FAULT_THREAD: return "is refused a thread";
    case JRT_FAULT_BLOCKING: return "is refused a blocking call, or the call is slow";
    case JRT_FAULT_WAKE: return "wakes up for no reason";
    default: return "loses its thread";
    }
}

static void put_told(const struct jrt_log_told *told)
{
    fprintf(stderr, "    step %llu: ", (unsigned long long)told->step);
    if (told->words[0] != '\0') { /* the network's */
        fprintf(stderr, "%s\n", told->words);
        return;
    }
    switch ((enum jrt_choice)told->kind) {
    case JRT_CHOOSE_THREAD:
        put_who(&told->chosen);
        fputs(" goes on instead of ", stderr);
        put_who(&told->usual);
        break;
    case JRT_CHOOSE_WAKE:
        put_who(&told->left);
        fprintf(stderr, " wakes sleeper %u of %u", told->value + 1, told->count);
        break;
    case JRT_CHOOSE_CASE:
        put_who(&told->left);
        fprintf(stderr, " tries case %u of the %u left", told->value + 1, told->count);
        break;
    case JRT_CHOOSE_SPLIT:
        put_who(&told->left);
        fputs(" does not divide its parallel call", stderr);
        break;
    case JRT_CHOOSE_SLICE:
        put_who(&told->left);
        fprintf(stderr, " is stopped at a check after %lld more operations",
                (long long)jrt_slice_answer(told->value));
        break;
    default:
        put_who(&told->left);
        fprintf(stderr, " %s", fault_text(told->value));
        break;
    }
    fputc('\n', stderr);
}

static void put_choices(const struct jrt_explorer *explorer)
{
    const struct jrt_log *log = explorer->log;
    if (explorer->minimised) {
        fprintf(stderr, "janusrt: %zu of its %llu choices matter (%llu schedule%s tried)%s\n",
                explorer->plan.made_count, (unsigned long long)explorer->choices,
                (unsigned long long)explorer->tries, explorer->tries == 1 ? " was" : "s were",
                log->told_count > 0 ? ":" : "");
    }
    if (!explorer->minimised && explorer->plan.kind != JRT_PLAN_CHOICES) return;
    for (uint32_t i = 0; i < log->told_count; i++) put_told(&log->told[i]);
    if (log->told_count == JRT_LOG_TOLD) fputs("    and so on\n", stderr);
}

/* A replay runs one schedule, so it has no number among the explored ones. */
static void put_which(const struct jrt_explorer *explorer)
{
    if (explorer->options.replay != NULL) {
        fputs("janusrt: the replayed schedule", stderr);
    } else {
        fprintf(stderr, "janusrt: schedule %llu", (unsigned long long)explorer->schedules);
    }
}

/* How to run a schedule again whose text is too long for a shell: the explorer finds it again. */
static void put_exploring(const struct jrt_explorer *explorer)
{
    const janus_explore_options *options = &explorer->options;
    bool                         one = options->strategy == JANUS_STRATEGY_RANDOM;
    fprintf(stderr, "    JANUSRT_EXPLORE=strategy=%d,seed=%llu,schedules=%llu,workers=%u,depth=%u,",
            (int)options->strategy, (unsigned long long)(one ? explorer->plan.seed : options->seed),
            (unsigned long long)(one ? 1 : explorer->schedules), options->worker_count,
            options->depth);
    fprintf(stderr, "steps=%llu,faults=%u,every=%u,stale=%d,panics=%d ",
            (unsigned long long)options->max_steps, options->faults, options->faults_every,
            options->stale_allowed, options->panics_allowed);
}

static void put_again(const struct jrt_explorer *explorer, const char *replay)
{
    bool fits = strlen(replay) <= REPLAY_BYTES_MAX;
    if (!fits && explorer->options.replay != NULL) {
        fputs("; the text to replay is the one that was given\n", stderr);
        return;
    }
    if (!fits) {
        fprintf(stderr, "; its text has %zu bytes, so explore seed %llu again", strlen(replay),
                (unsigned long long)explorer->plan.seed);
    }
    fputs(":\n", stderr);
    if (fits) {
        fprintf(stderr, "    JANUSRT_REPLAY=%s ", replay);
    } else {
        put_exploring(explorer);
    }
    put_command();
    fputc('\n', stderr);
}

/* What to do if the program means to do this. A replay has the options of its exploration. */
static void put_hint(const struct jrt_explorer *explorer)
{
    if (explorer->options.replay != NULL) return;
    if (explorer->failing == JANUS_FAILING_PANIC) {
        fputs("janusrt: if the program expects this panic, as one whose supervisor starts the task "
              "again, explore with --panics (panics_allowed)\n",
              stderr);
    } else if (explorer->failing == JANUS_FAILING_STALE) {
        fputs("janusrt: if the program expects this STALE, explore with --stale (stale_allowed)\n",
              stderr);
    }
}

void jrt_report_end(struct jrt_explorer *explorer, const char *replay)
{
    if (explorer->options.quiet) return;
    if (explorer->line_open) fputs("\r\033[K", stderr);
    if (explorer->failing == JANUS_FAILING_NOT) {
        put_progress(explorer, jrt_clock_now_ns());
        fputs(explorer->complete ? "; there are no more schedules\n" : "\n", stderr);
    } else {
        put_which(explorer);
        fprintf(stderr, " failed: %s: %s\n", jrt_failing_name(explorer->failing),
                explorer->message);
        put_choices(explorer);
        if (explorer->unsteady) {
            fputs("janusrt: the second run did not fail in this way: it also depends on something "
                  "that no schedule decides, such as other threads, the clock or an address\n",
                  stderr);
        }
        fputs("janusrt: run it again", stderr);
        if (explorer->hash != 0) { /* a schedule that died has no hash */
            fprintf(stderr, ", trace hash %016llx", (unsigned long long)explorer->hash);
        }
        put_again(explorer, replay);
        put_hint(explorer);
    }
    (void)fflush(stderr);
}
