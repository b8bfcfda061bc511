/* SPDX-License-Identifier: MIT */
/* A program that knows nothing of exploring, with a bug of the kind that its argument names. */
#include <janusrt/janus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int  left, right;
static int *account;

static int64_t move_ten(void *argument)
{
    int before = left;
    (void)janus_yield();
    if (strcmp(argument, "none") == 0) before = left; /* looks again: nobody comes between */
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

/* Where a sanitizer finds it, it is no crash. */
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

int main(int count, char **arguments)
{
    char *bug = count > 1 ? arguments[1] : (char[]){"none"};
    if (strcmp(bug, "nothing") == 0) return 0;
    if (janus_run(NULL, day, bug, NULL) != JANUS_OK) return 4;
    printf("%d and %d\n", left, right);
    return left + right == 100 ? 0 : 3;
}
