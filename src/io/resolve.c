/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses.
 *
 * [resolve-threads]  getaddrinfo blocks, sometimes for half a minute, and nothing ends it early. So
 *   look-ups have threads of their own: a name server that is dead takes no helper of other
 *   blocking calls. At most LOOKUPS run in the process at a time. Others wait in a queue. A thread
 *   ends when the queue is empty. Threads are not joined: a scheduler that is destroyed does not
 *   wait for a look-up that nobody wants any more.
 *
 * [resolve-record]  A look-up is a record on the heap with two references: the caller's and the
 *   thread's. Host and service are copied, and the answer is written to the record. A caller whose
 *   wait was cancelled takes a queued look-up back, or leaves a running one behind. The thread
 *   tells the caller under the lock, and only while the caller has not left. So a late answer
 *   touches nothing of the task.
 *
 * In a world there are no names but those of its table, and helpers look them up.
 *
 * Locks: pool.lock. The thread tells the waiter under it.
 */
#include "io/resolve.h"

#include "io/io.h"
#include "means/call.h"
#include "plat/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKUPS = 8,      /* [resolve-threads] */
    HOST_BYTES = 256, /* a name of the DNS has 253 characters at most */
    SERVICE_BYTES = 64,
    ADDRESSES = 16, /* of one name */
};

struct lookup {
    struct lookup   *next;
    struct jrt_ready ready; /* the caller waits here */
    bool             queued, left, done;
    int              found; /* how many, or -errno */
    char             host[HOST_BYTES], service[SERVICE_BYTES];
    bool             any_service; /* none was asked for */
    janus_address    addresses[ADDRESSES];
};

static struct {
    pthread_mutex_t lock; /* guards the rest, and all records */
    struct lookup  *first, **end;
    unsigned        running;
    struct {
        struct jrt_os_thread thread;
        struct lookup       *now; /* so that a checker for leaks finds it */
        bool                 alive;
    } threads[LOOKUPS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &pool.first};

/* The threads. */

static struct lookup *next_lookup(void)
{
    struct lookup *lookup = pool.first;
    if (lookup == NULL) return NULL;
    pool.first = lookup->next;
    if (pool.first == NULL) pool.end = &pool.first;
    lookup->queued = false;
    return lookup;
}

static void answer(struct lookup *lookup)
{
    jrt_debug_invariant("resolve-record", !lookup->done && !lookup->queued);
    lookup->done = true;
    if (lookup->left) {
        free(lookup);
    } else {
        jrt_ready_tell(&lookup->ready, JRT_READY_READ); /* under the lock, [resolve-record] */
    }
}

static void names_main(void *argument)
{
    size_t index = (size_t)(uintptr_t)argument;
    jrt_lock(&pool.lock);
    struct lookup *lookup;
    while ((lookup = next_lookup()) != NULL) {
        pool.threads[index].now = lookup;
        jrt_unlock(&pool.lock);
        lookup->found =
            jrt_net_real.look_up(lookup->host, lookup->any_service ? NULL : lookup->service,
                                 lookup->addresses, ADDRESSES);
        jrt_lock(&pool.lock);
        pool.threads[index].now = NULL;
        answer(lookup);
    }
    pool.running--;
    (void)pthread_detach(pthread_self()); /* before another thread may take its place */
    pool.threads[index].alive = false;
    jrt_unlock(&pool.lock);
}

/* Starts a thread if one more may run. False: none runs. */
static bool serve_queue(void)
{
    size_t index = 0;
    jrt_debug_invariant("resolve-threads", pool.running <= LOOKUPS);
    if (pool.running == LOOKUPS) return true;
    while (pool.threads[index].alive) index++;
    if (jrt_os_thread_start(&pool.threads[index].thread, names_main, (void *)(uintptr_t)index,
                            "janus-names")) {
        pool.threads[index].alive = true;
        pool.running++;
    }
    return pool.running > 0;
}

/* The caller. */

static struct lookup *make_lookup(const char *host, const char *service)
{
    struct lookup *lookup = jrt_calloc(1, sizeof *lookup);
    if (lookup == NULL) return NULL;
    (void)snprintf(lookup->host, sizeof lookup->host, "%s", host);
    (void)snprintf(lookup->service, sizeof lookup->service, "%s", service != NULL ? service : "");
    lookup->any_service = service == NULL;
    return lookup;
}

static void take_back(struct lookup *lookup)
{
    struct lookup **at = &pool.first;
    while (*at != lookup) at = &(*at)->next;
    *at = lookup->next;
    if (*at == NULL) pool.end = at;
}

/* The wait was cancelled, or is over. Frees the record, or leaves it to the thread. */
static void leave(struct lookup *lookup)
{
    jrt_lock(&pool.lock);
    if (lookup->queued) take_back(lookup);
    bool mine = lookup->queued || lookup->done;
    lookup->left = true;
    jrt_unlock(&pool.lock);
    if (mine) free(lookup);
}

static janus_status meaning_of(int found)
{
    if (found == -ENOENT) return JANUS_NOT_FOUND;
    return found == -EAGAIN ? JANUS_UNREACHABLE : jrt_io_error(found);
}

static janus_status give_answer(int found, const janus_address *addresses, janus_address *out,
                                size_t max, size_t *out_count)
{
    if (found < 0) return meaning_of(found);
    size_t count = (size_t)found < max ? (size_t)found : max;
    memcpy(out, addresses, count * sizeof *out);
    *out_count = count;
    return JANUS_OK;
}

static janus_status look_up(const char *host, const char *service, janus_address *out, size_t max,
                            size_t *out_count, uint64_t deadline_ns)
{
    struct lookup *lookup = make_lookup(host, service);
    if (lookup == NULL) return JANUS_NO_MEMORY;
    jrt_lock(&pool.lock);
    lookup->queued = true;
    *pool.end = lookup;
    pool.end = &lookup->next;
    bool served = serve_queue();
    jrt_unlock(&pool.lock);
    janus_status status = JANUS_NO_MEMORY;
    if (served) status = jrt_io_pause(&lookup->ready, deadline_ns, JRT_WAIT_NAME);
    if (status == JANUS_OK) {
        jrt_lock(&pool.lock); /* after the thread's last touch */
        jrt_unlock(&pool.lock);
        status = give_answer(lookup->found, lookup->addresses, out, max, out_count);
    }
    leave(lookup);
    return status;
}

/* An address with a port in digits needs no look-up. */
static bool is_numeric(const char *host, const char *service, janus_address *out)
{
    char text[HOST_BYTES + SERVICE_BYTES + 4];
    bool six = strchr(host, ':') != NULL;
    if (!six && (host[0] < '0' || host[0] > '9')) return false;
    (void)snprintf(text, sizeof text, six ? "[%s]:%s" : "%s:%s", host,
                   service != NULL ? service : "0");
    return jrt_address_parse(text, out) == JANUS_OK;
}

static void run_in_world(void *argument)
{
    struct lookup *lookup = argument;
    lookup->found = jrt_net()->look_up(lookup->host, lookup->any_service ? NULL : lookup->service,
                                       lookup->addresses, ADDRESSES);
}

/* The time that a simulated answer takes passes on a helper. */
static janus_status look_up_in_world(const char *host, const char *service, janus_address *out,
                                     size_t max, size_t *out_count)
{
    struct lookup *lookup = make_lookup(host, service);
    if (lookup == NULL) return JANUS_NO_MEMORY;
    janus_status status = jrt_io_help(run_in_world, lookup);
    if (status == JANUS_OK) {
        status = give_answer(lookup->found, lookup->addresses, out, max, out_count);
    }
    free(lookup);
    return status;
}

janus_status jrt_resolve_until(const char *host, const char *service, janus_address *out,
                               size_t max, size_t *out_count, uint64_t deadline_ns)
{
    if (host == NULL || host[0] == '\0' || strnlen(host, HOST_BYTES) == HOST_BYTES) {
        return JANUS_INVALID;
    }
    if (service != NULL && strnlen(service, SERVICE_BYTES) == SERVICE_BYTES) return JANUS_INVALID;
    if (is_numeric(host, service, out)) {
        *out_count = 1;
        return JANUS_OK;
    }
    struct jrt_handle_ask ask = {.name = host};
    janus_status status = jrt_handle_check(JANUS_CAP_KIND_NET, JANUS_RIGHT_NET_RESOLVE, &ask);
    if (status != JANUS_OK) return status;
    status = jrt_io_pay(0);
    if (status != JANUS_OK) return status;
    status = jrt_world_now() != NULL ? look_up_in_world(host, service, out, max, out_count)
                                     : look_up(host, service, out, max, out_count, deadline_ns);
    if (status == JANUS_CANCELLED || status == JANUS_NO_MEMORY) jrt_io_pay_back();
    return status;
}

janus_status janus_resolve(const char *host, const char *service, janus_address *out, size_t max,
                           size_t *out_count)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || max == 0 || out_count == NULL) return JANUS_INVALID;
    *out_count = 0;
    return jrt_io_end(jrt_resolve_until(host, service, out, max, out_count, JRT_NEVER));
}
