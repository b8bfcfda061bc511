/* SPDX-License-Identifier: MIT */
/* What I/O costs its task, how a call ends, and what an error of the system means. */
#include "io/io.h"

#include "base/options.h"
#include "means/purse.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "plat/address.h"
#include "task/purse.h"
#include "work/turn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A toll is some 16 ns, and a small transfer takes 4 us. Most tasks wait after a few
 * transfers, which ends their turn. So a transfer costs fewer tolls than it takes. Its bytes cost
 * tolls, too. A task that transfers without a wait looks at the clock after 32 us, or 64 KiB. */

void jrt_io_toll(size_t bytes)
{
    const size_t most = JRT_TOLLS;
    size_t       tolls = bytes / JRT_IO_BYTES_FOR_A_TOLL;
    if (tolls != 0) jrt_turn_toll(jrt_worker_self(), (uint32_t)(tolls < most ? tolls : most));
}

static bool pay_fast(const struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    if (jrt_unlikely(purse == NULL || purse->left.syscalls == 0)) return false;
    if (jrt_unlikely(!jrt_fuel_one())) return false;
    purse->left.syscalls--;
    return true;
}

/* The purse of the task that a blocking call is made for; NULL: nobody pays. A budget that
 * replenishes never lacks a syscall. */
static struct jrt_purse *purse_behind(const struct jrt_thread *thread)
{
    const struct jrt_task *task = thread->behalf;
    return task != NULL && task->purse != NULL && task->purse->hard ? task->purse : NULL;
}

/* No worker. A task's callback has no account, [callback-account]. */
static janus_status pay_as_thread(void)
{
    const struct jrt_thread *thread = jrt_thread_self();
    struct jrt_purse        *purse = purse_behind(thread);
    if (jrt_unlikely(thread->callback != NULL)) return JANUS_STATE;
    if (jrt_likely(purse == NULL)) return JANUS_OK;
    if (purse->left.syscalls == 0) {
        uint64_t had = purse->granted.syscalls;
        return jrt_trouble(JANUS_BUDGET_EXHAUSTED, JANUS_COMPONENT_SYSCALLS, had, had);
    }
    purse->left.syscalls--;
    return JANUS_OK;
}

janus_status jrt_io_pay(size_t bytes)
{
    struct jrt_worker *worker = jrt_worker_self();
    /* relaxed: set where only one thread was. */
    if (jrt_unlikely(jrt_load_relaxed(&jrt_poller_forked))) return JANUS_STATE;
    if (worker == NULL) return pay_as_thread();
    jrt_turn_toll(worker, JRT_IO_TOLLS);
    jrt_io_toll(bytes);
    if (jrt_likely(pay_fast(worker->current))) return JANUS_OK;
    const janus_budget price = janus_price_network_io(); /* a file's is the same */
    return jrt_pay(worker->current, &price);
}

janus_status jrt_io_pay_and_enter(janus_io handle, uint32_t right, uint32_t exclusive,
                                  struct jrt_io **out)
{
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_end(status);
    status = jrt_io_enter(handle, right, exclusive, out);
    if (status != JANUS_OK) jrt_io_pay_back();
    return status;
}

janus_status jrt_io_pay_op(void)
{
    const struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || jrt_likely(jrt_fuel_one())) return JANUS_OK;
    return jrt_pay_ops(worker->current, 1);
}

bool jrt_io_pay_more(size_t bytes)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return pay_as_thread() == JANUS_OK;
    jrt_turn_toll(worker, JRT_IO_TOLLS);
    jrt_io_toll(bytes);
    return pay_fast(worker->current);
}

void jrt_io_pay_back(void)
{
    const struct jrt_worker *worker = jrt_worker_self();
    struct jrt_purse        *purse =
        worker != NULL ? worker->current->purse : purse_behind(jrt_thread_self());
    if (purse != NULL) purse->left.syscalls = janus_units_add(purse->left.syscalls, 1);
}

janus_status jrt_io_end(janus_status status)
{
    if (jrt_likely(status != JANUS_CANCELLED)) return status;
    struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? jrt_task_cancelled_or_end(worker->current) : status;
}

janus_status jrt_io_tell(janus_status status, const char *call)
{
    char text[96]; /* of an explorer's report */
    if (jrt_unlikely(status == JANUS_STALE && jrt_world_now() != NULL)) {
        const struct jrt_trouble *last = &jrt_thread_self()->trouble;
        bool named = last->fresh && last->status == status && last->table == JRT_TROUBLE_HANDLE;
        const char *name = named ? last->whose : "";
        const char *quote = name[0] != '\0' ? "\"" : "";
        (void)snprintf(text, sizeof text, "%s%s%s%.40s%s", call, name[0] != '\0' ? " of " : "",
                       quote, name, quote);
        (void)jrt_stale(status, text);
    }
    return jrt_trouble_end(status, call);
}

janus_status jrt_io_about(janus_status status, const janus_address *address)
{
    char text[JANUS_ADDRESS_TEXT_BYTES];
    if (status >= 0) return status;
    return jrt_trouble_about(status, JRT_SUBJECT_ADDRESS,
                             jrt_address_text(address, text, sizeof text));
}

static janus_status meaning_of(int error)
{
    switch (error) {
    case ECONNRESET:
    case ECONNABORTED: return JANUS_RESET;
    case EPIPE:
    case ESHUTDOWN: return JANUS_BROKEN;
    case ECONNREFUSED: return JANUS_REFUSED;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case ETIMEDOUT: return JANUS_UNREACHABLE;
    case EADDRINUSE: return JANUS_IN_USE;
    case ENOENT: return JANUS_NOT_FOUND;
    case EEXIST: return JANUS_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
    case EXDEV:
    case ELOOP: return JANUS_DENIED;
    case EMFILE:
    case ENFILE: return JANUS_FULL;
    case ENOMEM:
    case ENOBUFS: return JANUS_NO_MEMORY;
    case EINVAL:
    case EBADF:
    case EMSGSIZE:
    case EAFNOSUPPORT:
    case ENAMETOOLONG: return JANUS_INVALID;
    case ENOSPC:
    case EDQUOT: return JANUS_FULL;
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
    case ENOTCONN:
    case EDESTADDRREQ: return JANUS_STATE;
    case ENOTSOCK:
    case EOPNOTSUPP:
    case ENOSYS: return JANUS_UNAVAILABLE;
    default: return JANUS_SYSTEM;
    }
}

janus_status jrt_io_error(int error)
{
    int number = error < 0 ? -error : error;
    return jrt_trouble_system(meaning_of(number), number);
}

bool jrt_io_options_read(const void *given, void *out, size_t bytes)
{
    size_t has = 0;
    memset(out, 0, bytes);
    memcpy(out, &bytes, sizeof bytes);
    if (given == NULL) return true;
    memcpy(&has, given, sizeof has);
    if (!jrt_struct_sane(has, bytes)) return false;
    memcpy(out, given, has);
    return true;
}
