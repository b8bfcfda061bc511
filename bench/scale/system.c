/* SPDX-License-Identifier: MIT */
/*
 * The system of the machine. The linker sends the library's calls here (--wrap).
 *
 * Sleeping, waking, locks, threads, the clock and random numbers are simulated. Sockets and epoll
 * sets are those of the real kernel, on one thread. They cost what the table says, and do not
 * wait. A core that would wait in a set sleeps until another core's call has made the set ready.
 * What the kernel itself shares between cores is left out, except for membarrier, which one thread
 * of a process does at a time.
 */
#include "machine.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

long    __real_syscall(long number, ...);
int     __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*main)(void *), void *argument);
int     __real_pthread_once(pthread_once_t *once, void (*first)(void));
int     __real_pthread_mutex_lock(pthread_mutex_t *lock);
int     __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int     __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int     __real_clock_gettime(clockid_t clock, struct timespec *out);
int     __real_sched_yield(void);
void    __real_jrt_cpu_relax(void);
ssize_t __real_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __real_read(int fd, void *to, size_t bytes);
ssize_t __real_write(int fd, const void *from, size_t bytes);

static uint64_t later(uint64_t ps) { return machine_self->now + ps; }

static void spend(uint64_t ps)
{
    if (machine_self->store_count > 0) machine_drain();
    machine_point();
    machine_spend(ps);
}

/* Time. */

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (!machine_on) return __real_clock_gettime(clock, out);
    spend(machine_costs.clock);
    uint64_t ns = machine_self->now / MACHINE_NS;
    *out = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return 0;
}

/* The machine's processors, not those of the host: each worker has a core ([crew-full]). */
unsigned __wrap_jrt_cpus_available(void) { return MACHINE_CORES; }

void __wrap_jrt_cpu_relax(void)
{
    if (machine_on) {
        spend(machine_costs.relax);
    } else {
        __real_jrt_cpu_relax();
    }
}

int __wrap_sched_yield(void)
{
    if (!machine_on) return __real_sched_yield();
    spend(machine_costs.yield);
    return 0;
}

/* Numbers that are the same in each run. */
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
    static uint64_t state = 7;
    (void)flags;
    for (size_t i = 0; i < bytes; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ((unsigned char *)out)[i] = (unsigned char)(state >> 56);
    }
    return (ssize_t)bytes;
}

/* Threads. */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*main)(void *), void *argument)
{
    if (!machine_on) return __real_pthread_create(thread, attributes, main, argument);
    *thread = machine_start_core(main, argument)->donor;
    return 0;
}

/* Nobody else runs meanwhile: glibc would let the next core wait in the real kernel. */
int __wrap_pthread_once(pthread_once_t *once, void (*first)(void))
{
    bool on = machine_on;
    machine_on = false;
    int error = __real_pthread_once(once, first);
    machine_on = on;
    return error;
}

static struct core *core_of(pthread_t thread)
{
    struct core *core;
    for (unsigned i = 1; (core = machine_core(i)) != NULL; i++) {
        if (pthread_equal(core->donor, thread)) return core;
    }
    return NULL;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    struct core *core = core_of(thread);
    if (core == NULL) return ESRCH;
    machine_join(core);
    if (result != NULL) *result = core->result;
    return 0;
}

int __wrap_pthread_tryjoin_np(pthread_t thread, void **result)
{
    const struct core *core = core_of(thread);
    if (core == NULL) return ESRCH;
    if (core->state != CORE_ENDED) return EBUSY;
    if (result != NULL) *result = core->result;
    return 0;
}

/* Sleeping. */

static int wake(const void *word, int count)
{
    int          woken = 0;
    struct core *core;
    machine_drain();
    machine_point();
    for (unsigned i = 0; woken < count && (core = machine_core(i)) != NULL; i++) {
        if (core->state != CORE_SLEEPS || core->word != word) continue;
        machine_spend(machine_costs.wake);
        machine_wake(core, later(machine_costs.woken));
        woken++;
    }
    if (woken == 0) machine_spend(machine_costs.call);
    return woken;
}

static long wait_for(const uint32_t *word, uint32_t expected, const struct timespec *deadline)
{
    uint64_t until = MACHINE_NEVER;
    if (deadline != NULL)
        until =
            ((uint64_t)deadline->tv_sec * 1000000000 + (uint64_t)deadline->tv_nsec) * MACHINE_NS;
    machine_drain();
    machine_point();
    machine_read(word, __builtin_return_address(0));
    machine_point();
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) {
        machine_spend(machine_costs.call);
        errno = EAGAIN;
        return -1;
    }
    machine_self->word = word;
    machine_spend(machine_costs.sleep);
    if (machine_sleep(until)) return 0;
    errno = ETIMEDOUT;
    return -1;
}

/* Locks. A mutex of glibc sleeps at once if it is taken. The thread that unlocks it wakes one
 * sleeper, which tries again. */

static void taken(pthread_mutex_t *lock)
{
    struct resource *record = machine_lock_of(lock);
    record->held_since = machine_self->now;
    record->moves++;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    if (!machine_on) return __real_pthread_mutex_trylock(lock);
    machine_rmw(lock, __builtin_return_address(0));
    int error = __real_pthread_mutex_trylock(lock);
    if (error == 0) taken(lock);
    return error;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (!machine_on) return __real_pthread_mutex_lock(lock);
    machine_rmw(lock, __builtin_return_address(0));
    while (__real_pthread_mutex_trylock(lock) != 0) {
        uint64_t since = machine_self->now;
        machine_self->word = lock;
        machine_spend(machine_costs.sleep);
        (void)machine_sleep(MACHINE_NEVER);
        machine_lock_of(lock)->waited += machine_self->now - since;
        machine_rmw(lock, __builtin_return_address(0));
    }
    taken(lock);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    if (!machine_on) return __real_pthread_mutex_unlock(lock);
    machine_rmw(lock, __builtin_return_address(0));
    struct resource *record = machine_lock_of(lock);
    record->busy += machine_self->now - record->held_since;
    int          error = __real_pthread_mutex_unlock(lock);
    struct core *core;
    for (unsigned i = 0; (core = machine_core(i)) != NULL; i++) {
        if (core->state == CORE_SLEEPS && core->word == lock) {
            (void)wake(lock, 1);
            break;
        }
    }
    return error;
}

/* Connections. */

/* Wakes cores whose set became ready. */
static void tell_sets(void)
{
    struct core *core;
    for (unsigned i = 0; (core = machine_core(i)) != NULL; i++) {
        if (core->state != CORE_SLEEPS || core->set < 0) continue;
        struct pollfd ready = {.fd = core->set, .events = POLLIN};
        if (poll(&ready, 1, 0) == 1) {
            machine_spend(machine_costs.wake);
            machine_wake(core, later(machine_costs.woken));
        }
    }
}

static long look(int set, long events, int max, uint64_t until)
{
    for (;;) {
        spend(machine_costs.look);
        long found = __real_syscall(SYS_epoll_pwait, set, events, max, 0, NULL, 0);
        if (found != 0 || until <= machine_self->now) return found;
        machine_self->set = set;
        machine_spend(machine_costs.sleep);
        struct pollfd ready = {.fd = set, .events = POLLIN};
        if (poll(&ready, 1, 0) == 1) continue;
        (void)machine_sleep(until);
    }
}

static uint64_t until_of(long ms)
{
    if (ms < 0) return MACHINE_NEVER;
    return later((uint64_t)ms * 1000000 * MACHINE_NS);
}

static bool membarrier_is_alone(long command) { return command != 8; /* PRIVATE_EXPEDITED */ }

static long heavy(long command)
{
    static struct resource resource = {.owner = -1, .name = "membarrier"};
    static bool            known;
    if (membarrier_is_alone(command)) return 0; /* it registers */
    struct resource *barrier = machine_lock_of(&resource);
    if (!known) *barrier = resource;
    barrier->key = (uintptr_t)&resource;
    known = true;
    machine_point();
    machine_drain();
    unsigned others = machine_disturb(machine_costs.stolen);
    uint64_t ps = machine_costs.heavy;
    if (others > 0) ps += machine_costs.heavy_first + (others - 1) * machine_costs.heavy_each;
    machine_use(barrier, ps);
    machine_point();
    return 0;
}

ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
    if (machine_on) spend(machine_costs.receive);
    return __real_read(fd, to, bytes);
}

ssize_t __wrap_write(int fd, const void *from, size_t bytes)
{
    if (machine_on) spend(machine_costs.send);
    ssize_t result = __real_write(fd, from, bytes);
    if (machine_on) tell_sets();
    return result;
}

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
    long d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    if (!machine_on) return __real_syscall(number, a, b, c, d, e, f);
    long result;
    switch (number) {
    case SYS_futex:
        if (((int)b & FUTEX_CMD_MASK) == FUTEX_WAKE) return wake((const void *)a, (int)c);
        return wait_for((const uint32_t *)a, (uint32_t)c, (const struct timespec *)d);
    case SYS_membarrier: return heavy(a);
    case SYS_epoll_pwait: return look((int)a, b, (int)c, until_of((int)d));
    case SYS_epoll_pwait2: {
        const struct timespec *left = (const struct timespec *)d;
        return look(
            (int)a, b, (int)c,
            later(((uint64_t)left->tv_sec * 1000000000 + (uint64_t)left->tv_nsec) * MACHINE_NS));
    }
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_write:
        spend(machine_costs.send);
        result = __real_syscall(number, a, b, c, d, e, f);
        tell_sets();
        return result;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_read: spend(machine_costs.receive); return __real_syscall(number, a, b, c, d, e, f);
    default: spend(machine_costs.call); return __real_syscall(number, a, b, c, d, e, f);
    }
}
