/* SPDX-License-Identifier: MIT */
/* A program that knows nothing of exploring, with a bug that its argument names. */
#include <janusrt/janus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int  left, right;
static int *account;

static int64_t move_ten(void *argument)
{
    int before = left;
    JANUS_IGNORE(janus_yield());
    if (strcmp(argument, "none") == 0) before = left; /* reads again, nothing comes between */
    left = before - 10;
    right += 10;
    return 0;
}

static int64_t close_account(void *argument)
{
    (void)argument;
    account = NULL;
    janus_point();
    account = &right;
    return 0;
}

/* Not a crash if a sanitizer finds it. */
__attribute__((no_sanitize("undefined"))) static int64_t pay_in(void *argument)
{
    (void)argument;
    *(volatile int *)account = 0;
    return 0;
}

static int64_t lock_both(void *argument)
{
    static janus_mutex first, second;
    bool               forth = argument != NULL;
    if (janus_mutex_lock(forth ? &first : &second) != JANUS_OK) return -1;
    janus_point();
    if (janus_mutex_lock(forth ? &second : &first) != JANUS_OK) return -1;
    (void)janus_mutex_unlock(&first);
    (void)janus_mutex_unlock(&second);
    return 0;
}

static int64_t day(void *argument)
{
    bool crash = strcmp(argument, "crash") == 0, lock = strcmp(argument, "lock") == 0;
    left = 100;
    right = 0;
    account = &right;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        if (crash) {
            JANUS_IGNORE(janus_spawn(n, pay_in, NULL));
            JANUS_IGNORE(janus_spawn(n, close_account, NULL));
        } else if (lock) {
            JANUS_IGNORE(janus_spawn(n, lock_both, NULL));
            JANUS_IGNORE(janus_spawn(n, lock_both, argument));
        } else {
            JANUS_IGNORE(janus_spawn(n, move_ten, argument));
            JANUS_IGNORE(janus_spawn(n, move_ten, argument));
        }
    }
    return ended;
}

/* Runs it on a scheduler of its own, of either kind. */
static janus_status run_opened(bool created, char *bug)
{
    janus_scheduler       *scheduler = NULL;
    janus_nursery          n;
    janus_scheduler_config config = {.worker_count = 3};
    if (created) {
        scheduler = janus_scheduler_create(config);
    } else if (janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 3),
                                           &scheduler) != JANUS_OK) {
        return JANUS_NO_MEMORY;
    } else if (janus_scheduler_start(scheduler) != JANUS_OK) {
        return JANUS_STATE;
    }
    janus_status status = janus_nursery_open_in(scheduler, &n, NULL);
    if (status != JANUS_OK) return status;
    JANUS_IGNORE(janus_spawn(&n, day, bug));
    status = janus_nursery_end(&n, NULL);
    int closed = created ? janus_scheduler_shutdown(scheduler) : janus_scheduler_destroy(scheduler);
    return closed != JANUS_OK ? (janus_status)closed : status;
}

/* Runs two at once, in the same world. */
static janus_status run_two(char *bug)
{
    janus_scheduler *idle;
    if (janus_scheduler_create_with(NULL, &idle) != JANUS_OK) return JANUS_NO_MEMORY;
    if (janus_scheduler_start(idle) != JANUS_OK) return JANUS_STATE;
    janus_status status = run_opened(false, bug);
    if (status == JANUS_OK) status = janus_scheduler_destroy(idle);
    return status == JANUS_OK ? run_opened(true, bug) : status; /* and another one afterwards */
}

static void *use(void *scheduler)
{
    janus_nursery n;
    JANUS_IGNORE(janus_nursery_open_in(scheduler, &n, NULL));
    return NULL;
}

static void *open_another(void *unused)
{
    JANUS_IGNORE(run_opened(false, (char[]){"none"}));
    return unused;
}

static void *stay(void *unused)
{
    (void)pause();
    return unused;
}

/* Runs it beside a thread that the program makes itself. */
static janus_status run_beside(void *(*entry)(void *), bool before)
{
    janus_scheduler *scheduler = NULL;
    pthread_t        thread;
    if (before && pthread_create(&thread, NULL, entry, NULL) != 0) return JANUS_NO_MEMORY;
    if (janus_scheduler_create_with(NULL, &scheduler) != JANUS_OK) return JANUS_NO_MEMORY;
    if (!before && pthread_create(&thread, NULL, entry, scheduler) != 0) return JANUS_NO_MEMORY;
    (void)pthread_join(thread, NULL);
    return janus_scheduler_destroy(scheduler);
}

static janus_status run_as(const char *how, char *bug)
{
    if (strcmp(how, "open") == 0) return run_opened(false, bug);
    if (strcmp(how, "create") == 0) return run_opened(true, bug);
    if (strcmp(how, "two") == 0) return run_two(bug);
    if (strcmp(how, "used") == 0) return run_beside(use, false);
    if (strcmp(how, "another") == 0) return run_beside(open_another, false);
    if (strcmp(how, "early") == 0) return run_beside(stay, true);
    return janus_run(NULL, day, bug, NULL);
}

int main(int count, char **arguments)
{
    char *bug = count > 1 ? arguments[1] : (char[]){"none"};
    if (strcmp(bug, "nothing") == 0) return 0;
    if (run_as(count > 2 ? arguments[2] : "run", bug) != JANUS_OK) return 4;
    printf("%d and %d\n", left, right);
    return left + right == 100 ? 0 : 3;
}
