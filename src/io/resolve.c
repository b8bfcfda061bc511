/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses.
 *
 * [resolve-threads]  getaddrinfo blocks, sometimes for half a minute, and nothing ends it early. So
 *   the process has a pool of threads for look-ups. A name server that is dead takes no helper of
 *   other blocking calls. The pool is never ended. A scheduler that is destroyed does
 *   not wait for a look-up that nobody wants any more. In the child of a fork there is a new pool,
 *   because the threads are gone.
 *
 * [resolve-share]  A look-up that gets no answer keeps its thread, so no party may have all of
 *   them. The parties are nurseries with terms, and for each scheduler the tasks outside of such
 *   nurseries. Their shares are those of [blocking-share]: a party alone has half of the threads,
 *   SHARED / 2. By [blocking-first], a party that looks up nothing gets a thread even so, as long
 *   as fewer than FIRSTS such threads run. Plain threads have no share.
 *
 * [resolve-record]  A look-up is a record on the heap with two references: the caller's and the
 *   pool's. Host and service are copied, and the answer is written to the record. A caller whose
 *   wait was cancelled withdraws a look-up that has not begun, or leaves a running one behind. The
 *   thread tells the caller under the lock, and only while the caller has not left. So a late
 *   answer touches nothing of the task. The record holds the terms of its party.
 *
 * In a world there are no names but those of its table. The helpers of the scheduler look them up,
 * with the shares of other blocking calls.
 *
 * Locks: names.lock, under which the thread tells the waiter. The pool's lock is never taken
 * under it, nor it under the pool's.
 */
#include "io/resolve.h"

#include "io/io.h"
#include "means/call.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "plat/address.h"
#include "sched/blocking.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARED = 16,      /* threads, [resolve-share] */
    FIRSTS = 48,      /* more threads, for parties that look up nothing else */
    HOST_BYTES = 256, /* a name of the DNS has 253 characters at most */
    SERVICE_BYTES = 64,
    ADDRESSES = 16, /* of one name */
};

static const uint64_t idle_ns = 1000000000; /* then a thread of the pool ends */

struct lookup {
    struct jrt_blocking_job job;        /* first */
    struct jrt_terms       *terms;      /* its party's; NULL: a plain thread's */
    struct jrt_ready        ready;      /* the caller waits here */
    bool                    left, done; /* names.lock */
    int                     found;      /* how many, or -errno */
    char                    host[HOST_BYTES], service[SERVICE_BYTES];
    bool                    any_service; /* none was asked for */
    janus_address           addresses[ADDRESSES];
};

static struct {
    pthread_mutex_t     lock; /* guards `open`, and the ends of records */
    bool                open, watches_forks;
    struct jrt_blocking pool;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The pool. */

/* In the child of a fork, whose only thread this is. The threads and their look-ups are gone. */
static void forget(void)
{
    pthread_mutex_init(&names.lock, NULL);
    names.open = false;
}

static janus_status open_pool(void)
{
    if (!names.watches_forks) (void)pthread_atfork(NULL, NULL, forget);
    names.watches_forks = true;
    janus_status status = jrt_blocking_init(&names.pool, SHARED, FIRSTS, UINT32_MAX);
    names.open = status == JANUS_OK;
    names.pool.idle_ns = idle_ns;
    names.pool.thread_name = "janus-names";
    names.pool.for_ever = true;
    return status;
}

static void run_lookup(struct jrt_blocking_job *job)
{
    struct lookup *lookup = (struct lookup *)job;
    lookup->found = jrt_net_real.look_up(lookup->host, lookup->any_service ? NULL : lookup->service,
                                         lookup->addresses, ADDRESSES);
}

static void answer(struct jrt_blocking_job *job)
{
    struct lookup    *lookup = (struct lookup *)job;
    struct jrt_terms *terms = lookup->terms;
    jrt_lock(&names.lock);
    jrt_debug_invariant("resolve-record", !lookup->done);
    lookup->done = true;
    bool left = lookup->left;
    if (!left) jrt_ready_tell(&lookup->ready, JRT_READY_READ); /* under the lock */
    jrt_unlock(&names.lock);
    if (left) free(lookup);
    jrt_terms_put(terms);
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

static janus_status submit(struct lookup *lookup)
{
    const struct jrt_worker *worker = jrt_worker_self();
    jrt_lock(&names.lock);
    janus_status status = names.open ? JANUS_OK : open_pool();
    jrt_unlock(&names.lock);
    if (status != JANUS_OK) return status;
    lookup->job.run = run_lookup;
    lookup->job.done = answer;
    if (worker != NULL) {
        lookup->terms = jrt_terms_names(worker->current);
        lookup->job.party = &lookup->terms->names;
    }
    jrt_debug_invariant("resolve-share", worker == NULL || lookup->job.party != NULL);
    status = jrt_blocking_submit(&names.pool, &lookup->job);
    if (status != JANUS_OK) jrt_terms_put(lookup->terms);
    return status;
}

/* The wait was cancelled, or is over. Frees the record, or leaves it to the thread. */
static void leave(struct lookup *lookup)
{
    jrt_lock(&names.lock); /* after the thread's last touch */
    bool mine = lookup->done;
    jrt_unlock(&names.lock);
    if (!mine && jrt_blocking_withdraw(&names.pool, &lookup->job)) {
        jrt_terms_put(lookup->terms);
        mine = true;
    }
    if (!mine) {
        jrt_lock(&names.lock);
        mine = lookup->done;
        lookup->left = true;
        jrt_unlock(&names.lock);
    }
    if (mine) free(lookup);
}

static janus_status meaning_of(int found)
{
    if (found == -EAGAIN) return jrt_trouble_system(JANUS_UNREACHABLE, EAGAIN);
    return jrt_io_error(found);
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
    janus_status status = submit(lookup);
    if (status != JANUS_OK) {
        free(lookup);
        return status;
    }
    status = jrt_io_pause(&lookup->ready, deadline_ns, JRT_WAIT_NAME);
    if (status == JANUS_OK) {
        jrt_debug_invariant("resolve-threads", lookup->found <= ADDRESSES);
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

/* A port in digits, or the name of a service, as RFC 6335 spells it. The system's own reader also
 * accepts signs and spaces, and takes ports modulo 65536. */
static bool is_service(const char *service)
{
    uint32_t port = 0;
    size_t   length = strnlen(service, SERVICE_BYTES);
    bool     letter = (service[0] | 0x20) >= 'a' && (service[0] | 0x20) <= 'z';
    bool     digit = service[0] >= '0' && service[0] <= '9';
    if (length == SERVICE_BYTES || (!letter && !digit)) return false;
    if (strspn(service, "0123456789") != length) return true;
    for (size_t i = 0; i < length && port <= UINT16_MAX; i++) {
        port = port * 10 + (uint32_t)(service[i] - '0');
    }
    return port <= UINT16_MAX;
}

janus_status jrt_resolve_until(const char *host, const char *service, janus_address *out,
                               size_t max, size_t *out_count, uint64_t deadline_ns)
{
    if (host == NULL || host[0] == '\0' || strnlen(host, HOST_BYTES) == HOST_BYTES) {
        return JANUS_INVALID;
    }
    if (service != NULL && !is_service(service)) return JANUS_INVALID;
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
    return status < 0 ? jrt_trouble_about(status, JRT_SUBJECT_HOST, host) : status;
}

janus_status janus_resolve(const char *host, const char *service, janus_address *out, size_t max,
                           size_t *out_count)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || max == 0 || out_count == NULL) return jrt_io_told(JANUS_INVALID);
    *out_count = 0;
    return jrt_io_told(
        jrt_io_end(jrt_resolve_until(host, service, out, max, out_count, JRT_NEVER)));
}
