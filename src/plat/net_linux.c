/* SPDX-License-Identifier: MIT */
/*
 * The network of Linux: epoll, sockets, pipes.
 *
 * Flags of a descriptor that others share stay as they are. Own sockets and pipes are non-blocking
 * from birth. Each call on a socket has MSG_DONTWAIT, and each call on a pipe or file RWF_NOWAIT.
 *
 * [net-pipe]  A write to a pipe that nobody reads must not raise SIGPIPE. Kernels from 6.18 on take
 *   RWF_NOSIGNAL. On older ones the signal is blocked around the write, and taken if it came.
 *   Workers block it anyway, [thread-mask].
 *
 * [net-nowait]  Pipes of kernels before 6.4, named pipes, and pipes that somebody has spliced, know
 *   no RWF_NOWAIT. If such a pipe is non-blocking, a plain call does the same. Otherwise the call
 *   polls first, and writes no more than a pipe takes that has room. Only another process that
 *   takes the bytes, or the room, in between can then make it wait.
 *
 * A set is an epoll set and an eventfd in it. The system reports each edge once. The eventfd is
 * level-triggered: a ring that comes before the wait ends it, too. Only a thread that sleeps in
 * the set empties the eventfd. Otherwise a thread that looks in the sleeper's stead would take the
 * ring, and the kernel would put the sleeper to sleep again.
 */
#include "plat/net.h"

#include "plat/address.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif
#define RWF_NOSIGNAL_ 0x100

#define BELL_COOKIE UINT64_MAX

static int result(int64_t value) { return value >= 0 ? (int)value : -errno; }

/* Sets. */

static int set_open(struct jrt_set *set)
{
    set->sim = NULL;
    set->fd = epoll_create1(EPOLL_CLOEXEC);
    if (set->fd < 0) return -errno;
    set->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = BELL_COOKIE};
    if (set->bell < 0 || epoll_ctl(set->fd, EPOLL_CTL_ADD, set->bell, &event) != 0) {
        int error = -errno;
        if (set->bell >= 0) (void)close(set->bell);
        (void)close(set->fd);
        return error;
    }
    return 0;
}

static void set_close(struct jrt_set *set)
{
    (void)close(set->bell);
    (void)close(set->fd);
    set->fd = set->bell = -1;
}

static int set_add(struct jrt_set *set, int fd, uint64_t cookie)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data.u64 = cookie};
    return epoll_ctl(set->fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static void set_remove(struct jrt_set *set, int fd)
{
    struct epoll_event event = {0};
    (void)epoll_ctl(set->fd, EPOLL_CTL_DEL, fd, &event);
}

static void empty_bell(struct jrt_set *set)
{
    uint64_t count;
    (void)!read(set->bell, &count, sizeof count);
}

/* The system's bits are ours. */
_Static_assert((int)JRT_NET_READ == EPOLLIN && (int)JRT_NET_WRITE == EPOLLOUT, "jrt_net_what");
_Static_assert((int)JRT_NET_RDHUP == EPOLLRDHUP && (int)JRT_NET_HUP == EPOLLHUP, "jrt_net_what");
_Static_assert((int)JRT_NET_ERR == EPOLLERR && (int)JRT_NET_PRI == EPOLLPRI, "jrt_net_what");

/* The time until a deadline. */
static struct timespec time_until(uint64_t deadline_ns)
{
    uint64_t now = jrt_clock_now_ns();
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    return (struct timespec){.tv_sec = (time_t)(left / 1000000000),
                             .tv_nsec = (long)(left % 1000000000)};
}

static int in_milliseconds(const struct timespec *time)
{
    int64_t ms = (int64_t)time->tv_sec * 1000 + (time->tv_nsec + 999999) / 1000000;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

/* As in jrt_net_receive_one. */
static int wait_in_ms(int fd, struct epoll_event *events, int max, int ms)
{
    if (JRT_TSAN) return epoll_wait(fd, events, max, ms);
    return (int)syscall(SYS_epoll_pwait, fd, events, max, ms, NULL, 0);
}

/* Kernels before 5.11 do not have it. */
static int wait_in_set(int fd, struct epoll_event *events, int max, uint64_t deadline_ns)
{
    static _Atomic(bool) coarse;
    if (deadline_ns == 0) return wait_in_ms(fd, events, max, 0);
    if (deadline_ns == JRT_NEVER) return wait_in_ms(fd, events, max, -1);
    struct timespec left = time_until(deadline_ns);
    if (!JRT_TSAN && !jrt_load_relaxed(&coarse)) { /* relaxed: learned again at worst. */
        int count = (int)syscall(SYS_epoll_pwait2, fd, events, max, &left, NULL, 0);
        if (count >= 0 || errno != ENOSYS) return count;
        jrt_store_relaxed(&coarse, true); /* relaxed: as above. */
    }
    return wait_in_ms(fd, events, max, in_milliseconds(&left));
}

/* The system's events are smaller than ours: they are read into the end of `out`, and moved to its
 * beginning one by one. So a look needs no stack, which would be a task's later. */
_Static_assert(sizeof(struct epoll_event) <= sizeof(struct jrt_net_event), "see there");

static int set_wait(struct jrt_set *set, struct jrt_net_event *out, int max, uint64_t deadline_ns)
{
    size_t spare = (sizeof *out - sizeof(struct epoll_event)) * (size_t)max;
    char  *raw = (char *)out + spare;
    int    found = wait_in_set(set->fd, (struct epoll_event *)(void *)raw, max, deadline_ns);
    int    count = 0;
    for (int i = 0; i < found; i++) {
        struct epoll_event event;
        memcpy(&event, raw + (size_t)i * sizeof event, sizeof event);
        if (jrt_unlikely(event.data.u64 == BELL_COOKIE)) {
            if (deadline_ns != 0) empty_bell(set);
        } else {
            out[count++] = (struct jrt_net_event){event.data.u64, event.events};
        }
    }
    return count;
}

/* A thread outside of a world may ring a set of that world. Then `sim` begins with the word that a
 * sleeper in the set watches. */
static void set_ring(struct jrt_set *set)
{
    uint64_t one = 1;
    if (jrt_unlikely(set->sim != NULL)) {
        _Atomic(uint32_t) *word = set->sim;
        jrt_fetch_add_seq_cst(word, 1u); /* seq_cst: release is enough. */
        jrt_futex_wake(word, 1);
        return;
    }
    (void)!write(set->bell, &one, sizeof one);
}

static bool is_quiet(void) { return false; }

/* Sockets. */

static int make_socket(janus_family family, int type)
{
    int domain = jrt_address_domain(family);
    if (domain < 0) return -EAFNOSUPPORT;
    return result(socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

static int bind_to(int fd, const janus_address *at)
{
    struct sockaddr_storage native;
    socklen_t               bytes = jrt_address_to_native(at, &native);
    if (bytes == 0) return -EINVAL;
    return result(bind(fd, (const struct sockaddr *)&native, bytes));
}

static int listen_on(int fd, uint32_t backlog) { return result(listen(fd, (int)backlog)); }

static int accept_from(int fd, janus_address *out_peer)
{
    struct sockaddr_storage native;
    socklen_t               bytes = sizeof native;
    bool                    wanted = out_peer != NULL;
    int                     made;
    do {
        made = accept4(fd, wanted ? (struct sockaddr *)&native : NULL, wanted ? &bytes : NULL,
                       SOCK_NONBLOCK | SOCK_CLOEXEC);
        /* The network errors of a connection that ended in the queue: the next one. */
    } while (made < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
    if (made < 0) return -errno;
    if (wanted) jrt_address_from_native(&native, bytes, out_peer);
    return made;
}

static int connect_to(int fd, const janus_address *to)
{
    struct sockaddr_storage native;
    socklen_t               bytes = jrt_address_to_native(to, &native);
    if (bytes == 0) return -EINVAL;
    int made;
    do made = connect(fd, (const struct sockaddr *)&native, bytes);
    while (made != 0 && errno == EINTR);
    if (made == 0 || errno == EISCONN) return 0;
    return errno == EALREADY ? -EINPROGRESS : -errno;
}

static int take_error(int fd)
{
    int       error = 0;
    socklen_t bytes = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return -errno;
    return -error;
}

static int shut_down(int fd, uint32_t ways)
{
    int how = ways == JANUS_IO_BOTH ? SHUT_RDWR : ways == JANUS_IO_READ ? SHUT_RD : SHUT_WR;
    return result(shutdown(fd, how));
}

static int local_of(int fd, janus_address *out)
{
    struct sockaddr_storage native;
    socklen_t               bytes = sizeof native;
    if (getsockname(fd, (struct sockaddr *)&native, &bytes) != 0) return -errno;
    jrt_address_from_native(&native, bytes, out);
    return 0;
}

static int peer_of(int fd, janus_address *out)
{
    struct sockaddr_storage native;
    socklen_t               bytes = sizeof native;
    if (getpeername(fd, (struct sockaddr *)&native, &bytes) != 0) return -errno;
    jrt_address_from_native(&native, bytes, out);
    return 0;
}

static int set_option(int fd, enum jrt_net_option which, int64_t value)
{
    static const struct {
        int level, name;
    } names[] = {
        [JRT_NET_REUSE_ADDRESS] = {SOL_SOCKET, SO_REUSEADDR},
        [JRT_NET_REUSE_PORT] = {SOL_SOCKET, SO_REUSEPORT},
        [JRT_NET_ONLY_V6] = {IPPROTO_IPV6, IPV6_V6ONLY},
        [JRT_NET_NO_DELAY] = {IPPROTO_TCP, TCP_NODELAY},
        [JRT_NET_SEND_BUFFER] = {SOL_SOCKET, SO_SNDBUF},
        [JRT_NET_RECEIVE_BUFFER] = {SOL_SOCKET, SO_RCVBUF},
    };
    int number = (int)value;
    return result(setsockopt(fd, names[which].level, names[which].name, &number, sizeof number));
}

static int make_pair(int out[2])
{
    return result(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, out));
}

static int make_pipe(int out[2]) { return result(pipe2(out, O_NONBLOCK | O_CLOEXEC)); }

/* Not retried after EINTR: Linux has closed it. */
static int close_it(int fd) { return result(close(fd)); }

/* Transfers. */

/* The C library's calls are cancellation points, which cost 40 instructions more. ThreadSanitizer
 * knows only those. */

ptrdiff_t jrt_net_receive_one(int fd, void *to, size_t max)
{
    ptrdiff_t got;
    do {
        got = JRT_TSAN ? recv(fd, to, max, MSG_DONTWAIT)
                       : syscall(SYS_recvfrom, fd, to, max, MSG_DONTWAIT, NULL, NULL);
        if (jrt_likely(got >= 0)) return got;
    } while (errno == EINTR);
    return -errno;
}

ptrdiff_t jrt_net_send_one(int fd, const void *from, size_t count)
{
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    ptrdiff_t done;
    do {
        done = JRT_TSAN ? send(fd, from, count, flags)
                        : syscall(SYS_sendto, fd, from, count, flags, NULL, 0);
        if (jrt_likely(done >= 0)) return done;
    } while (errno == EINTR);
    return -errno;
}

/* Whether a plain call on a pipe returns at once, [net-nowait]. */
static bool is_prompt(int fd, short events, bool *out_blocks)
{
    struct pollfd polled = {.fd = fd, .events = events};
    *out_blocks = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
    jrt_debug_invariant("net-nowait", fd >= 0 && (events & (POLLIN | POLLOUT)) != 0);
    return !*out_blocks || poll(&polled, 1, 0) != 0;
}

static ptrdiff_t read_pipe(int fd, const struct iovec *to, int count)
{
    bool      blocks;
    ptrdiff_t got = preadv2(fd, to, count, -1, RWF_NOWAIT);
    if (jrt_likely(got >= 0 || errno != EOPNOTSUPP)) return got;
    if (is_prompt(fd, POLLIN, &blocks)) return readv(fd, to, count);
    errno = EAGAIN;
    return -1;
}

static ptrdiff_t receive(int fd, bool socket, const struct iovec *to, int count)
{
    ptrdiff_t got;
    if (socket && count == 1) return jrt_net_receive_one(fd, to->iov_base, to->iov_len);
    do {
        if (!socket) {
            got = read_pipe(fd, to, count);
        } else {
            struct msghdr message = {.msg_iov = (struct iovec *)to, .msg_iovlen = (size_t)count};
            got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        }
    } while (got < 0 && errno == EINTR);
    return got >= 0 ? got : -errno;
}

/* Writes without a signal where the kernel cannot, [net-pipe]. */
static ptrdiff_t write_masked(int fd, const struct iovec *from, int count, int flags)
{
    sigset_t        mask, before, pending;
    struct timespec none = {0};
    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &mask, &before);
    ptrdiff_t done = pwritev2(fd, from, count, -1, flags);
    int       error = errno;
    if (done < 0 && error == EPIPE && !was_pending) {
        while (sigtimedwait(&mask, NULL, &none) < 0 && errno == EINTR) continue;
        if (JRT_DEBUG) sigpending(&pending);
        jrt_debug_invariant("net-pipe", sigismember(&pending, SIGPIPE) == 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

/* A write to a pipe without RWF_NOWAIT, [net-nowait]. */
static ptrdiff_t write_plainly(int fd, const struct iovec *from, int count)
{
    bool blocks;
    if (!is_prompt(fd, POLLOUT, &blocks)) {
        errno = EAGAIN;
        return -1;
    }
    if (!blocks) return write_masked(fd, from, count, 0);
    struct iovec some = {from->iov_base, from->iov_len < PIPE_BUF ? from->iov_len : PIPE_BUF};
    return write_masked(fd, &some, 1, 0);
}

static ptrdiff_t write_quietly(int fd, const struct iovec *from, int count)
{
    static _Atomic(bool) masked;
    if (!jrt_load_relaxed(&masked)) { /* relaxed: learned again at worst. */
        ptrdiff_t done = pwritev2(fd, from, count, -1, RWF_NOWAIT | RWF_NOSIGNAL_);
        if (done >= 0 || (errno != EOPNOTSUPP && errno != EINVAL)) return done;
    }
    ptrdiff_t done = write_masked(fd, from, count, RWF_NOWAIT);
    if (done < 0 && errno == EOPNOTSUPP) return write_plainly(fd, from, count);
    /* relaxed: as above. */
    if (done >= 0 || errno != EINVAL) jrt_store_relaxed(&masked, true);
    return done;
}

static ptrdiff_t send_it(int fd, bool socket, const struct iovec *from, int count)
{
    ptrdiff_t done;
    if (socket && count == 1) return jrt_net_send_one(fd, from->iov_base, from->iov_len);
    do {
        if (!socket) {
            done = write_quietly(fd, from, count);
        } else {
            struct msghdr message = {.msg_iov = (struct iovec *)from, .msg_iovlen = (size_t)count};
            done = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    } while (done < 0 && errno == EINTR);
    return done >= 0 ? done : -errno;
}

static ptrdiff_t receive_from(int fd, const struct iovec *to, janus_address *out_from,
                              bool *out_cut)
{
    struct sockaddr_storage native;
    struct msghdr           message = {.msg_name = &native,
                                       .msg_namelen = sizeof native,
                                       .msg_iov = (struct iovec *)to,
                                       .msg_iovlen = 1};
    ptrdiff_t               got;
    do got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0) return -errno;
    jrt_address_from_native(&native, message.msg_namelen, out_from);
    *out_cut = (message.msg_flags & MSG_TRUNC) != 0;
    return got;
}

static ptrdiff_t send_to(int fd, const struct iovec *from, const janus_address *to)
{
    struct sockaddr_storage native;
    socklen_t               bytes = to != NULL ? jrt_address_to_native(to, &native) : 0;
    ptrdiff_t               done;
    if (to != NULL && bytes == 0) return -EINVAL;
    do {
        done = sendto(fd, from->iov_base, from->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL,
                      to != NULL ? (const struct sockaddr *)&native : NULL, bytes);
    } while (done < 0 && errno == EINTR);
    return done >= 0 ? done : -errno;
}

/* Plain threads. */

static int wait_one(int fd, uint32_t ways, uint64_t deadline_ns, struct jrt_net_bell *bell)
{
    short         events = (short)((ways & JANUS_IO_READ ? POLLIN | POLLRDHUP | POLLPRI : 0) |
                           (ways & JANUS_IO_WRITE ? POLLOUT : 0));
    struct pollfd polled[2] = {{.fd = fd, .events = events}, {.fd = bell->fd, .events = POLLIN}};
    for (;;) {
        struct timespec left = time_until(deadline_ns);
        int             found = ppoll(polled, 2, deadline_ns == JRT_NEVER ? NULL : &left, NULL);
        if (found > 0) return polled[0].revents & POLLNVAL ? -EBADF : 0;
        if (found == 0) return -ETIMEDOUT;
        if (errno != EINTR) return -errno;
    }
}

static int bell_open(struct jrt_net_bell *bell)
{
    bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return bell->fd >= 0 ? 0 : -errno;
}

static void bell_ring(struct jrt_net_bell *bell)
{
    uint64_t one = 1;
    if (bell->fd >= 0) {
        (void)!write(bell->fd, &one, sizeof one);
    } else {
        jrt_store_release(&bell->rung, 1u); /* release: what the ring announces. */
        jrt_futex_wake(&bell->rung, 1);
    }
}

static void bell_close(struct jrt_net_bell *bell) { (void)close(bell->fd); }

/* Names. */

static int look_up(const char *host, const char *service, janus_address *out, size_t max)
{
    struct addrinfo  hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    int              error = getaddrinfo(host, service, &hints, &found);
    size_t           count = 0;
    if (error == EAI_MEMORY) return -ENOMEM;
    if (error == EAI_AGAIN) return -EAGAIN;
    if (error == EAI_SYSTEM) return -errno;
    if (error != 0) return -ENOENT;
    for (struct addrinfo *at = found; at != NULL && count < max; at = at->ai_next) {
        struct sockaddr_storage native = {0};
        if (at->ai_addrlen > sizeof native) continue;
        memcpy(&native, at->ai_addr, at->ai_addrlen);
        jrt_address_from_native(&native, at->ai_addrlen, &out[count]);
        if (out[count].family != JANUS_FAMILY_NONE) count++;
    }
    freeaddrinfo(found);
    return count > 0 ? (int)count : -ENOENT;
}

const struct jrt_net jrt_net_real = {
    .set_open = set_open,
    .set_close = set_close,
    .set_add = set_add,
    .set_remove = set_remove,
    .set_wait = set_wait,
    .set_ring = set_ring,
    .is_quiet = is_quiet,
    .socket = make_socket,
    .bind = bind_to,
    .listen = listen_on,
    .accept = accept_from,
    .connect = connect_to,
    .error = take_error,
    .shutdown = shut_down,
    .local = local_of,
    .peer = peer_of,
    .option = set_option,
    .pair = make_pair,
    .pipe = make_pipe,
    .close = close_it,
    .receive = receive,
    .send = send_it,
    .receive_from = receive_from,
    .send_to = send_to,
    .wait_one = wait_one,
    .bell_open = bell_open,
    .bell_ring = bell_ring,
    .bell_close = bell_close,
    .look_up = look_up,
};
