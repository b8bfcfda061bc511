/* SPDX-License-Identifier: MIT */
/*
 * Explores a program that knows nothing of exploring.
 *
 * JANUSRT_EXPLORE turns the first janus_run or janus_scheduler_create_with of a process into a
 * server. It forks for each schedule. The child goes on with that schedule, as the program would
 * have, until its end. The parent waits for it. So it finds every failure: a wrong exit status, a
 * crash, or what a world reports. The two share the log, and the child writes to it as it goes. So
 * the choices before a crash are known.
 *
 * [explore-fork]  the child returns by a longjmp to where the parent was called from, past
 *   everything that the explorer had begun. The explorer's memory hangs on `session`, which is
 *   never freed.
 *
 * JANUSRT_REPLAY runs one schedule, in this process, so that a debugger can be used.
 *
 * Later runs of the same thread continue with the choices where the run before ended.
 *
 * [explore-open]  a scheduler that the program opens itself has no call around it that could be
 *   given up. So its world begins when it is opened, on the thread that opens it, and ends when its
 *   last scheduler is closed. A failure in between ends the process on the spot.
 *
 * Threads of the program are not simulated. If a second thread creates a scheduler, or uses the
 * explored one, the session ends with a message. It also ends if there are threads before the first
 * fork, which would not copy them.
 */
#include "explore/session.h"

#include "explore/session.h"
#include "rt/run.h"
#include "task/worker.h"

#include "base/options.h"
#include "explore/explorer.h"
#include "explore/trial.h"
#include "fiber/thread.h"
#include "plat/seam.h"
#include "sim/world.h"
#include "stack/sanitizer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum mode {
    UNKNOWN, /* the environment was not read yet */
    PLAIN,
    SIMULATED, /* all runs of `thread` are explored */
};

enum { PATIENCE_MS = 20000 }; /* for a child; simulated time costs nothing, so this is long */

static struct {
    pthread_mutex_t      lock; /* guards `mode` and `thread`; one for the process */
    enum mode            mode;
    pthread_t            thread;
    struct jrt_explorer  explorer;
    struct jrt_plan      plan;
    struct jrt_decider   decider;
    enum jrt_how         how;
    bool                 child;
    jmp_buf              land; /* [explore-fork] */
    bool                 open; /* these two: [explore-open] */
    struct jrt_trial     trial;
    struct jrt_world_run run;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((noreturn)) static void refuse(const char *variable, const char *text)
{
    jrt_explore_begun(false);
    fprintf(stderr, "janusrt: %s: '%s' is not understood\n", variable, text);
    _exit(2);
}

__attribute__((noreturn)) static void give_up(janus_status status)
{
    fprintf(stderr, "janusrt: exploring: %s\n", janus_status_text(status));
    _exit(2);
}

/* Ends a program that cannot be explored. In a child, the parent reports it. */
__attribute__((noreturn)) static void decline(const char *why)
{
    struct jrt_log *log = session.explorer.log;
    jrt_explore_begun(false);
    if (session.child) {
        snprintf(log->message, sizeof log->message, "%s", why);
        log->refused = true;
    }
    if (!session.child) fprintf(stderr, "janusrt: exploring: %s\n", why);
    _exit(2);
}

static void on_elsewhere(void)
{
    decline("a second thread uses the scheduler; only the thread that created it can be explored");
}

/* Whether other threads run. A sanitizer may have one of its own. */
static bool has_threads(void)
{
    unsigned count = 0;
    DIR     *tasks = JRT_TSAN ? NULL : opendir("/proc/self/task");
    if (tasks == NULL) return false;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(tasks);
    return count > 1;
}

/* The child. */

static void quieten(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0) return;
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(nowhere, STDERR_FILENO);
    (void)close(nowhere);
}

static void follow(const struct jrt_plan *plan, enum jrt_how how)
{
    session.plan = *plan;
    session.how = how;
    jrt_decider_init(&session.decider, &session.plan, session.explorer.log);
    session.decider.keeps = how != JRT_HOW_FAST;
    session.decider.tells = how == JRT_HOW_TELL;
}

__attribute__((noreturn)) static void go_on(const struct jrt_plan *plan, enum jrt_how how)
{
    struct rlimit none = {0, 0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &none);
    if (how != JRT_HOW_TELL || session.explorer.options.quiet) quieten();
    session.child = true;
    follow(plan, how);
    longjmp(session.land, 1);
}

/* The parent. */

/* True: the child has ended, and *out is its status. False: it had to be killed. */
static bool await_child(pid_t child, int *out)
{
    bool in_time = true;
    int  handle = (int)syscall(SYS_pidfd_open, child, 0);
    if (handle >= 0) { /* otherwise the kernel is old, and the wait has no limit */
        struct pollfd ended = {.fd = handle, .events = POLLIN};
        int           got;
        do {
            got = poll(&ended, 1, PATIENCE_MS);
        } while (got < 0 && errno == EINTR);
        in_time = got != 0;
        if (!in_time) (void)kill(child, SIGKILL);
        (void)close(handle);
    }
    while (waitpid(child, out, 0) < 0 && errno == EINTR) continue;
    return in_time;
}

static void judge(struct jrt_log *log, bool in_time, int ended)
{
    if (log->failing != JANUS_FAILING_NOT) return; /* the child reported it */
    if (!in_time) {
        log->failing = JANUS_FAILING_TIME;
        snprintf(log->message, sizeof log->message, "the program did not end within %d s",
                 PATIENCE_MS / 1000);
    } else if (WIFSIGNALED(ended)) {
        log->failing = JANUS_FAILING_SIGNAL;
        const char *text = sigdescr_np(WTERMSIG(ended));
        snprintf(log->message, sizeof log->message, "%s", text != NULL ? text : "unknown");
    } else if (WEXITSTATUS(ended) != 0) {
        log->failing = JANUS_FAILING_EXIT;
        snprintf(log->message, sizeof log->message, "status %d", WEXITSTATUS(ended));
    }
}

static bool attempt(struct jrt_explorer *explorer, const struct jrt_plan *plan, enum jrt_how how)
{
    int   ended;
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) go_on(plan, how);
    bool in_time = await_child(child, &ended);
    if (explorer->log->refused) decline(explorer->log->message);
    explorer->log->status = JANUS_OK; /* the program got the status and has judged */
    judge(explorer->log, in_time, ended);
    return true;
}

__attribute__((noreturn)) static void serve(void)
{
    struct jrt_explorer *explorer = &session.explorer;
    explorer->attempt = attempt;
    (void)fflush(NULL); /* otherwise each child would write it again */
    janus_status status = jrt_explore_all(explorer);
    bool         failed = status == JANUS_CHILD_FAILED;
    char        *replay = failed ? jrt_plan_text(&explorer->plan) : NULL;
    if (status != JANUS_OK && replay == NULL) give_up(status);
    jrt_report_end(explorer, replay);
    _exit(failed ? 1 : 0);
}

/* Begins a session. Returns in children, and for a replay. */
static void begin(void)
{
    struct jrt_explorer *explorer = &session.explorer;
    if (jrt_explore_decode(NULL, &explorer->options) != JANUS_OK) {
        const char *text = secure_getenv("JANUSRT_EXPLORE");
        refuse("JANUSRT_EXPLORE", text != NULL ? text : "");
    }
    const char *replay = explorer->options.replay;
    explorer->log = jrt_log_make();
    if (explorer->log == NULL) give_up(JANUS_NO_MEMORY);
    if (replay != NULL) {
        struct jrt_plan plan;
        if (!jrt_explore_read(explorer, &plan)) refuse("JANUSRT_REPLAY", replay);
        jrt_explore_begun(true);
        follow(&plan, JRT_HOW_TELL);
        return;
    }
    if (has_threads()) {
        decline("the program has started threads before its first scheduler; they cannot "
                "be simulated");
    }
    if (setjmp(session.land) == 0) serve();
    jrt_debug_invariant("explore-fork", session.child);
}

bool jrt_session_wanted(void)
{
    if (jrt_world_now() != NULL || jrt_thread_self()->worker != NULL) return false;
    pthread_mutex_lock(&session.lock);
    bool first = session.mode == UNKNOWN;
    if (first) {
        bool asked =
            secure_getenv("JANUSRT_EXPLORE") != NULL || secure_getenv("JANUSRT_REPLAY") != NULL;
        session.mode = asked ? SIMULATED : PLAIN;
        session.thread = pthread_self();
    }
    bool wanted = session.mode == SIMULATED && pthread_equal(session.thread, pthread_self());
    bool second = session.mode == SIMULATED && !wanted;
    pthread_mutex_unlock(&session.lock);
    if (second) decline("a second thread creates a scheduler; only one thread can be explored");
    if (first && wanted) begin();
    return wanted;
}

/* Reports a replay that failed in this process. */
static void tell_failing(void)
{
    struct jrt_explorer *explorer = &session.explorer;
    explorer->plan = session.plan;
    explorer->schedules = 1;
    explorer->failing = explorer->log->failing;
    memcpy(explorer->message, explorer->log->message, sizeof explorer->message);
    jrt_report_end(explorer, explorer->options.replay);
}

/* Ends the process if the schedule has failed. */
static void end_if_failed(void)
{
    if (session.explorer.log->failing == JANUS_FAILING_NOT) return;
    (void)fflush(NULL); /* the program's output so far */
    if (!session.child) tell_failing();
    _exit(1);
}

static struct jrt_trial make_trial(void)
{
    const janus_explore_options *explore = &session.explorer.options;
    return (struct jrt_trial){.decider = &session.decider,
                              .max_steps = explore->max_steps,
                              .max_time_ns = explore->max_time_ns,
                              .stale_allowed = explore->stale_allowed,
                              .panics_allowed = explore->panics_allowed,
                              .loud = session.how == JRT_HOW_TELL,
                              .program = true};
}

/* Copies as many options as the caller's struct has. */
static bool know(const janus_scheduler_options *options, janus_scheduler_options *out)
{
    *out = (janus_scheduler_options){.struct_bytes = sizeof *out};
    if (options == NULL) return true;
    if (!jrt_struct_sane(options->struct_bytes, sizeof *out)) return false;
    memcpy(out, options, options->struct_bytes);
    out->struct_bytes = sizeof *out;
    return true;
}

janus_status jrt_session_run(const janus_scheduler_options *options, janus_entry *entry,
                             void *argument, struct jrt_run_end *out)
{
    janus_scheduler_options known;
    *out = (struct jrt_run_end){.told = out->told, .closed = JANUS_OK};
    if (!know(options, &known)) return JANUS_INVALID;
    struct jrt_trial trial = make_trial();
    trial.scheduler = &known;
    trial.entry = entry;
    trial.argument = argument;
    trial.end.told = out->told;
    if (!jrt_trial_run(&trial)) return JANUS_NO_MEMORY;
    end_if_failed();
    *out = trial.end;
    return session.explorer.log->status;
}

/* Schedulers that the program opens itself. */

/* Runs on the stack of the failing part. */
static void on_given_up(struct jrt_world_run *run, enum jrt_world_end end)
{
    jrt_trial_judge(&session.trial, run, end);
    end_if_failed();
    _exit(1); /* a failing was judged */
}

static bool begin_world(void)
{
    jrt_debug_invariant("explore-open", !session.open && jrt_world_now() == NULL);
    session.trial = make_trial();
    session.run = (struct jrt_world_run){.strategy = &session.decider.strategy,
                                         .max_steps = session.trial.max_steps,
                                         .max_time_ns = session.trial.max_time_ns,
                                         .given_up = on_given_up};
    session.decider.strategy.faults = 0; /* until a scheduler starts */
    session.open = jrt_world_begin(&session.run);
    if (session.open) {
        jrt_trial_watch(&session.trial);
        jrt_world_now()->elsewhere = on_elsewhere;
    }
    return session.open;
}

/* Whether the calling thread is in the world that jrt_session_open began. */
static bool is_inside(void)
{
    return jrt_world_now() != NULL && session.open && pthread_equal(session.thread, pthread_self());
}

janus_status jrt_session_open(const janus_scheduler_options *options, janus_scheduler **out)
{
    janus_scheduler_options known;
    bool                    wanted = jrt_session_wanted();
    if (!wanted && !is_inside()) return jrt_scheduler_open(options, out);
    if (out == NULL || !know(options, &known)) return JANUS_INVALID;
    if (wanted && !begin_world()) return JANUS_NO_MEMORY;
    session.trial.scheduler = &known;
    known = jrt_trial_options(&session.trial);
    session.trial.scheduler = NULL;
    janus_status status = jrt_scheduler_open(&known, out);
    if (status != JANUS_OK) jrt_session_closed();
    return status;
}

void jrt_session_started(void)
{
    if (is_inside()) session.decider.strategy.faults = session.plan.faults;
}

void jrt_session_closed(void)
{
    if (!is_inside() || !jrt_world_finish(&session.run)) return;
    session.open = false;
    jrt_trial_judge(&session.trial, &session.run, JRT_WORLD_DONE);
}
