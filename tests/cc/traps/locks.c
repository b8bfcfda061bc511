/* SPDX-License-Identifier: MIT */
/*
 * Ordinary locks of threads, in deterministic runs. All workers of such a run share one thread.
 *
 *     locks NAME    "order": two tasks lock two mutexes in opposite order
 */
#include <janusrt/janus.h>
#include <pthread.h>
#include <string.h>
#include <threads.h>

enum { TASKS = 4, ROUNDS = 5 };

static pthread_mutex_t    mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t   rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static mtx_t              mtx;
static int                sum;

/* Without the lock the explorer would lose some of the additions. */
static void add(void)
{
    int before = sum;
    for (int i = 0; i < 20; i++) before++;
    sum = before;
}

static int64_t use_mutex(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        add();
        pthread_mutex_unlock(&mutex);
    }
    return argument != NULL;
}

static int64_t use_rwlock(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_rwlock_rdlock(&rwlock);
        int seen = sum;
        for (int k = 0; k < 20; k++) JANUS_EXPECT(seen == sum);
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_wrlock(&rwlock);
        add();
        pthread_rwlock_unlock(&rwlock);
    }
    return argument != NULL;
}

static int64_t use_spin(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_spin_lock(&spin);
        add();
        pthread_spin_unlock(&spin);
    }
    return argument != NULL;
}

static int64_t use_mtx(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        mtx_lock(&mtx);
        add();
        mtx_unlock(&mtx);
    }
    return argument != NULL;
}

static int64_t in_order(void *argument)
{
    pthread_mutex_lock(&mutex);
    add();
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    pthread_mutex_unlock(&mutex);
    return argument != NULL;
}

static int64_t in_other_order(void *argument)
{
    pthread_mutex_lock(&other);
    add();
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&other);
    return argument != NULL;
}

static int64_t all_locks(void *argument)
{
    static janus_entry *const uses[] = {use_mutex, use_rwlock, use_spin, use_mtx};
    janus_status              status = JANUS_OK;
    for (size_t i = 0; status == JANUS_OK && i < sizeof uses / sizeof uses[0]; i++) {
        sum = 0;
        JANUS_NURSERY(n, status)
        {
            for (int k = 0; k < TASKS; k++)
                if (janus_spawn(n, uses[i], argument) != JANUS_OK) break;
        }
        JANUS_EXPECT(sum == TASKS * ROUNDS * 20);
    }
    return status;
}

static int64_t two_orders(void *argument)
{
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        if (janus_spawn(n, in_order, argument) != JANUS_OK) break;
        if (janus_spawn(n, in_other_order, argument) != JANUS_OK) break;
    }
    return status;
}

int main(int count, char **words)
{
    bool order = count > 1 && strcmp(words[1], "order") == 0;
    if (pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) != 0) return 2;
    if (mtx_init(&mtx, mtx_plain) != thrd_success) return 2;
    return janus_run(NULL, order ? two_orders : all_locks, NULL, NULL) == JANUS_OK ? 0 : 1;
}
