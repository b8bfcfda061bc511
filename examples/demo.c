/* SPDX-License-Identifier: MIT */
/*
 * The demo of `make run`: bad neighbours. A clock and a crew keep their pace beside a fork bomb, an
 * allocation bomb, a channel flood, an endless loop and a trespasser. The library stops each
 * attacker. A sentence names the task, the line that started it and the limit that it met. After a
 * pause the attacker starts again.
 *
 *     demo [SECONDS]      Runs for 10 seconds by default. Without a terminal, or with NO_COLOR or
 *                         TERM=dumb, it prints plain lines. It exits with 0 if the library stopped
 *                         every attacker and every other task did its work.
 */
#include <janusrt/janus.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    CREW = 4,
    JOB_ROUNDS = 100000, /* a few hundred microseconds */
    TEXT_MAX = 320,
};

static const uint64_t second = 1000000000;
static const uint64_t tick_ns = 100000000;  /* the clock's */
static const uint64_t job_ns = 10000000;    /* each member of the crew does one job in this time */
static const uint64_t pause_ns = 250000000; /* before an attacker starts again */
static const uint64_t frame_ns = 125000000; /* between two frames */

static uint64_t    began_ns, end_ns;
static atomic_bool over;

/* The good neighbours. */

static struct {
    atomic_uint_fast64_t ticks, worst_late_ns, last_late_ns;
} ticking;

static atomic_uint_fast64_t jobs_done, jobs_late;

static int64_t clock_task(void *argument)
{
    (void)argument;
    for (uint64_t next = began_ns + tick_ns; next <= end_ns; next += tick_ns) {
        if (janus_sleep_until(next) != JANUS_OK) return JANUS_CANCELLED;
        uint64_t late = janus_now_ns() - next;
        atomic_store(&ticking.last_late_ns, late);
        if (late > atomic_load(&ticking.worst_late_ns)) atomic_store(&ticking.worst_late_ns, late);
        atomic_fetch_add(&ticking.ticks, 1);
    }
    return 0;
}

static int64_t crew_task(void *argument)
{
    uint64_t *sum = argument;
    for (uint64_t next = began_ns + job_ns; next <= end_ns; next += job_ns) {
        for (uint64_t i = 0; i < JOB_ROUNDS; i++) {
            if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
            *sum = (*sum ^ i) * UINT64_C(0x9e3779b97f4a7c15);
        }
        atomic_fetch_add(&jobs_done, 1);
        if (janus_now_ns() > next) atomic_fetch_add(&jobs_late, 1);
        if (janus_sleep_until(next) != JANUS_OK) return JANUS_CANCELLED;
    }
    return 0;
}

/* The attackers. */

struct attack {
    const char  *name;
    const char  *limit; /* the limit that stops it, as text */
    janus_status (*start)(janus_nursery *nursery, struct attack *attack);
    janus_budget pool;

    /* The lock guards these fields. No task holds it across a call that waits. */
    pthread_mutex_t lock;
    unsigned        stopped;
    bool            told;           /* this round has its sentence */
    char            text[TEXT_MAX]; /* the latest sentence; empty at first */
};

static janus_cap not_yours; /* the first task holds it */

/* Starts `entry` as a child of `nursery`. The sentences show the line of this macro's use. */
#define START(nursery, attack, entry)                                                              \
    __extension__({                                                                                \
        static const janus_site here = {__FILE__, __LINE__};                                       \
        janus_spawn_with(nursery, entry, attack,                                                   \
                         JANUS_SPAWN_OPTIONS(.name = (attack)->name, .site = &here), NULL);        \
    })

#define STARTER(entry)                                                                             \
    static janus_status start_##entry(janus_nursery *nursery, struct attack *attack)               \
    {                                                                                              \
        return START(nursery, attack, entry);                                                      \
    }

/* Keeps the first sentence of a round. `ended`: the library has stopped the attacker. */
static void keep(struct attack *attack, const char *text, bool ended)
{
    pthread_mutex_lock(&attack->lock);
    if (!attack->told) snprintf(attack->text, sizeof attack->text, "%s", text);
    attack->told = true;
    if (ended) attack->stopped++;
    pthread_mutex_unlock(&attack->lock);
}

/* Starts as many children like itself as it can, then tries on until its ops are used up. */
static int64_t fork_bomb(void *argument)
{
    struct attack *attack = argument;
    janus_nursery  n;
    char           text[TEXT_MAX];
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "bombs")) != JANUS_OK) return -100;
    for (bool told = false;;) {
        janus_status status = START(&n, attack, fork_bomb);
        if (status == JANUS_SPAWN_BUDGET && !told) {
            (void)janus_explain(text, sizeof text);
            keep(attack, text, false);
            told = true;
        }
        janus_check_or_end(1);
    }
}

STARTER(fork_bomb)

static int64_t allocation_bomb(void *argument)
{
    (void)argument;
    for (;;) {
        char *block = janus_alloc(4096);
        if (block == NULL) return JANUS_CANCELLED;
        memset(block, 1, 4096);
    }
}

STARTER(allocation_bomb)

static janus_channel flooded;

static void destroy_flooded(void *argument)
{
    (void)argument;
    (void)janus_channel_destroy(flooded);
}

/* Sends as often as it may. Nobody receives, so the channel drops the oldest values. */
static int64_t channel_flood(void *argument)
{
    const janus_channel_options *options =
        JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_DROP_OLDEST);
    (void)argument;
    janus_status status = janus_channel_create(sizeof(uint64_t), 16, options, &flooded);
    if (status != JANUS_OK) return status;
    status = janus_defer(destroy_flooded, NULL);
    if (status != JANUS_OK) return status;
    for (uint64_t drop = 0;; drop++) {
        status = janus_channel_send(flooded, &drop);
        if (status != JANUS_OK) return status;
    }
}

STARTER(channel_flood)

static int64_t endless_loop(void *argument)
{
    (void)argument;
    for (;;) janus_check_or_end(1);
    return 0;
}

STARTER(endless_loop)

/* Presents a handle that it copied. The capability belongs to another task. */
static int64_t trespasser(void *argument)
{
    struct attack *attack = argument;
    char           text[TEXT_MAX];
    janus_nursery  n;
    janus_status   status = janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = not_yours));
    if (status >= 0) return janus_nursery_end(&n, NULL); /* the library should have refused */
    (void)janus_explain(text, sizeof text);
    keep(attack, text, false);
    return status;
}

STARTER(trespasser)

static struct attack attacks[] = {
    {.name = "fork bomb",
     .limit = "15 spawns",
     .start = start_fork_bomb,
     .pool = {200000, 0, 15, 0, 0}},
    {.name = "allocation bomb",
     .limit = "1 MiB",
     .start = start_allocation_bomb,
     .pool = {100000, 1 << 20, 1, 0, 0}},
    {.name = "channel flood",
     .limit = "20,000 sends",
     .start = start_channel_flood,
     .pool = {1000000, 4096, 1, 20000, 0}},
    {.name = "endless loop",
     .limit = "3,000,000 ops",
     .start = start_endless_loop,
     .pool = {3000001, 0, 1, 0, 0}},
    {.name = "trespasser",
     .limit = "no right",
     .start = start_trespasser,
     .pool = {1000, 0, 1, 0, 0}},
};

enum { ATTACKS = sizeof attacks / sizeof attacks[0] };

/* Runs an attacker once, in a nursery with its own pool, and waits for its end. */
static janus_status attack_once(struct attack *attack)
{
    janus_nursery n;
    janus_failure failure;
    char          text[TEXT_MAX];
    janus_status  status =
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "cell", .budget = &attack->pool,
                                                     .policy = JANUS_POLICY_WAIT_ALL));
    if (status != JANUS_OK) return status; /* CLAMPED is a fault too: main allows enough */
    pthread_mutex_lock(&attack->lock);
    attack->told = false;
    pthread_mutex_unlock(&attack->lock);
    status = attack->start(&n, attack);
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    if (status == JANUS_OK && janus_nursery_failures(&n, &failure, 1) > 0) {
        (void)janus_failure_text(&n, &failure, text, sizeof text);
        keep(attack, text, true); /* unless the attacker kept one itself */
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return status;
}

static int64_t warden(void *argument)
{
    while (!atomic_load(&over)) {
        janus_status status = attack_once(argument);
        if (status != JANUS_OK) return status;
        if (janus_sleep(pause_ns) != JANUS_OK) return JANUS_CANCELLED;
    }
    return 0;
}

/* The screen. */

static bool     live; /* stdout is a terminal */
static unsigned columns = 100;

static double since_began(void) { return (double)(janus_now_ns() - began_ns) / 1e9; }

/* The number of jobs that the crew should have done by now. */
static uint64_t jobs_due(void)
{
    uint64_t now = janus_now_ns();
    return CREW * (((now < end_ns ? now : end_ns) - began_ns) / job_ns);
}

static unsigned read_attack(struct attack *attack, char *text)
{
    pthread_mutex_lock(&attack->lock);
    unsigned stopped = attack->stopped;
    memcpy(text, attack->text, TEXT_MAX);
    pthread_mutex_unlock(&attack->lock);
    return stopped;
}

/* Cuts the text at the width of the terminal, so that it stays on one line. */
static void put_line(const char *colour, const char *text)
{
    printf("%s%.*s%s\033[K\n", colour, (int)columns - 1, text, colour[0] != 0 ? "\033[0m" : "");
}

/* Prints a sentence on three lines, broken between words. */
static void put_rows(const char *text)
{
    char line[TEXT_MAX + 8];
    int  room = (int)columns - 8;
    for (int row = 0; row < 3; row++) {
        int length = (int)strlen(text), part = length;
        if (length > room) {
            for (part = room; part > 0 && text[part] != ' '; part--) continue;
            if (part == 0) part = room;
        }
        snprintf(line, sizeof line, "      %.*s", part, text);
        put_line("", line);
        text += part;
        while (*text == ' ') text++;
    }
}

static void draw(double seconds)
{
    char line[TEXT_MAX + 64], text[TEXT_MAX];
    printf("\033[H");
    snprintf(line, sizeof line, "The bad neighbour   %.1f of %.0f s   (%s)", since_began(), seconds,
             janus_build_text());
    put_line("\033[1m", line);
    put_line("", "");
    snprintf(line, sizeof line, "  clock  %4llu ticks   now %6.2f ms late   at worst %6.2f ms",
             (unsigned long long)atomic_load(&ticking.ticks),
             (double)atomic_load(&ticking.last_late_ns) / 1e6,
             (double)atomic_load(&ticking.worst_late_ns) / 1e6);
    put_line("\033[32m", line);
    snprintf(line, sizeof line, "  crew   %4llu jobs    of %llu due by now, %llu of them late",
             (unsigned long long)atomic_load(&jobs_done), (unsigned long long)jobs_due(),
             (unsigned long long)atomic_load(&jobs_late));
    put_line("\033[32m", line);
    put_line("", "");
    for (int i = 0; i < ATTACKS; i++) {
        unsigned stopped = read_attack(&attacks[i], text);
        snprintf(line, sizeof line, "  %-16s allowed: %-16s stopped %u times", attacks[i].name,
                 attacks[i].limit, stopped);
        put_line("\033[31m", line);
        put_rows(text);
    }
    printf("\033[J");
    fflush(stdout);
}

/* Without a terminal: prints one line each second. */
static void tell(void)
{
    char text[TEXT_MAX];
    printf("%4.1f s: clock %llu ticks, at worst %.2f ms late; crew %llu of %llu jobs; stopped:",
           since_began(), (unsigned long long)atomic_load(&ticking.ticks),
           (double)atomic_load(&ticking.worst_late_ns) / 1e6,
           (unsigned long long)atomic_load(&jobs_done), (unsigned long long)jobs_due());
    for (int i = 0; i < ATTACKS; i++) {
        printf("%s %s %u", i > 0 ? "," : "", attacks[i].name, read_attack(&attacks[i], text));
    }
    printf("\n");
    fflush(stdout);
}

/* Prints the result. Returns whether every attacker was stopped and the others worked. */
static bool summary(double seconds)
{
    char     text[TEXT_MAX];
    bool     good = atomic_load(&ticking.ticks) > 0 && atomic_load(&jobs_done) > 0;
    uint64_t due = CREW * ((end_ns - began_ns) / job_ns);
    printf("\nAfter %.1f s beside bad neighbours:\n", seconds);
    printf("  clock: %llu of %llu ticks, at worst %.2f ms late\n",
           (unsigned long long)atomic_load(&ticking.ticks),
           (unsigned long long)((end_ns - began_ns) / tick_ns),
           (double)atomic_load(&ticking.worst_late_ns) / 1e6);
    printf("  crew: %llu of %llu jobs, %llu late\n", (unsigned long long)atomic_load(&jobs_done),
           (unsigned long long)due, (unsigned long long)atomic_load(&jobs_late));
    for (int i = 0; i < ATTACKS; i++) {
        unsigned stopped = read_attack(&attacks[i], text);
        printf("  %s: stopped %u times\n      %s\n", attacks[i].name, stopped, text);
        good = good && stopped > 0;
    }
    printf("%s\n", good ? "Every attacker was stopped. Every neighbour did its work." : "FAILED.");
    return good;
}

static void show(double seconds)
{
    uint64_t step = live ? frame_ns : second;
    if (live) printf("\033[2J\033[?25l");
    for (uint64_t next = began_ns + step; next < end_ns; next += step) {
        if (janus_sleep_until(next) != JANUS_OK) break;
        if (live) draw(seconds);
        if (!live) tell();
    }
    JANUS_IGNORE(janus_sleep_until(end_ns));
    if (live) draw(seconds);
    if (live) printf("\033[?25h");
}

/* Mints a capability for the first task. A copy of the handle gives another task no right. */
static janus_status mint(void)
{
    janus_authority       *root;
    const janus_cap_limits limits = {.spawn = {.max_tasks = 10, .task_budget = {.ops = 1000}}};
    janus_status           status = janus_authority_take(NULL, &root);
    if (status != JANUS_OK) return status;
    return janus_cap_mint(root, 0,
                          JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                          .limits = &limits),
                          &not_yours);
}

static int64_t town(void *argument)
{
    static uint64_t sums[CREW];
    double          seconds = *(double *)argument;
    if (mint() != JANUS_OK) return -100;
    began_ns = janus_now_ns();
    end_ns = began_ns + (uint64_t)(seconds * 1e9);
    janus_nursery n;
    if (janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.name = "town", .policy = JANUS_POLICY_WAIT_ALL)) != JANUS_OK)
        return -100;
    bool started = janus_spawn(&n, clock_task, NULL) == JANUS_OK;
    for (int i = 0; i < CREW; i++) {
        started = janus_spawn(&n, crew_task, &sums[i]) == JANUS_OK && started;
    }
    for (int i = 0; i < ATTACKS; i++) {
        started = janus_spawn(&n, warden, &attacks[i]) == JANUS_OK && started;
    }
    if (started) show(seconds);
    atomic_store(&over, true);
    janus_status status = janus_nursery_end(&n, NULL);
    return started && status == JANUS_OK && summary(seconds) ? 0 : -100;
}

static void look_at_terminal(void)
{
    const char    *term = getenv("TERM"), *plain = getenv("NO_COLOR");
    struct winsize size;
    live = isatty(STDOUT_FILENO) && (plain == NULL || plain[0] == 0) &&
           (term == NULL || strcmp(term, "dumb") != 0);
    if (live && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
        columns = size.ws_col < 200 ? size.ws_col : 200;
    }
}

int main(int argc, char **argv)
{
    double       seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    int64_t      result = -1;
    janus_budget most = janus_budget_scale(janus_budget_cluster_default(), 100);
    if (argc > 2 || !(seconds >= 1 && seconds <= 3600)) {
        fprintf(stderr, "usage: %s [SECONDS], 1 to 3600\n", argv[0]);
        return 2;
    }
    look_at_terminal();
    for (int i = 0; i < ATTACKS; i++) pthread_mutex_init(&attacks[i].lock, NULL);
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.max_budget = &most), town, &seconds, &result);
    if (status != JANUS_OK) fprintf(stderr, "demo: %s\n", janus_status_text(status));
    return status == JANUS_OK && result == 0 ? 0 : 1;
}
