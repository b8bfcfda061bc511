/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: what the io room needs from the system. No call here waits, except set_wait and
 * wait_one. All return 0 or a number, or -errno. net_linux.c is the real system; sim/net.c is the
 * simulated network. Rooms above call jrt_net()->..., and do not know which they have.
 */
#ifndef JRT_PLAT_NET_H
#define JRT_PLAT_NET_H

#include "plat/seam.h"
#include "plat/world.h"

#include <janusrt/net.h>
#include <sys/uio.h>

/* Descriptors of a world begin here, so that a real one is never mistaken for one. */
enum { JRT_NET_SIMULATED = 1 << 30 };

/* What an event says: bits, the same as Linux has. */
enum jrt_net_what {
    JRT_NET_READ = 1,
    JRT_NET_PRI = 2, /* an urgent byte, [io-drained] */
    JRT_NET_WRITE = 4,
    JRT_NET_ERR = 8,
    JRT_NET_HUP = 16,       /* both directions have ended */
    JRT_NET_RDHUP = 0x2000, /* the other end sends no more */
};

struct jrt_net_event {
    uint64_t cookie; /* as given to set_add */
    uint32_t what;
};

/* A set of descriptors that reports their edges, and in which a thread can sleep. */
struct jrt_set {
    int   fd;   /* epoll; -1: none */
    int   bell; /* eventfd */
    void *sim;  /* the world's; begins with a futex that counts rings. NULL: a real one */
};

/* Ends the sleep of a thread in wait_one. */
struct jrt_net_bell {
    int               fd;   /* eventfd; -1: none */
    _Atomic(uint32_t) rung; /* without one: futex */
};

/* Options of a socket. */
enum jrt_net_option {
    JRT_NET_REUSE_ADDRESS,
    JRT_NET_REUSE_PORT,
    JRT_NET_ONLY_V6,
    JRT_NET_NO_DELAY,
    JRT_NET_SEND_BUFFER,
    JRT_NET_RECEIVE_BUFFER,
};

struct jrt_net {
    /* Sets. set_add: the set reports the edges of both directions from now on, and at once what is
     * ready. set_remove: no more, even if others share the descriptor. */
    int  (*set_open)(struct jrt_set *set);
    void (*set_close)(struct jrt_set *set);
    int  (*set_add)(struct jrt_set *set, int fd, uint64_t cookie);
    void (*set_remove)(struct jrt_set *set, int fd);
    /* Fills at most `max` events and returns how many. Waits until `deadline_ns`, if there are
     * no events; 0: never waits. A ring ends the wait with 0 events, also if it came before. A look
     * (deadline 0) does not take the ring from the thread that sleeps. */
    int  (*set_wait)(struct jrt_set *set, struct jrt_net_event *out, int max, uint64_t deadline_ns);
    void (*set_ring)(struct jrt_set *set);
    /* Whether nothing is under way that could become an event. Then all waiters wait for each
     * other. The real network never knows. */
    bool (*is_quiet)(void);

    /* Sockets. All are non-blocking and closed by exec. `type` is SOCK_STREAM or SOCK_DGRAM. */
    int (*socket)(janus_family family, int type);
    int (*bind)(int fd, const janus_address *at);
    int (*listen)(int fd, uint32_t backlog);
    int (*accept)(int fd, janus_address *out_peer);  /* the new descriptor; -EAGAIN, -EMFILE ... */
    int (*connect)(int fd, const janus_address *to); /* -EINPROGRESS: wait to write, then error */
    int (*error)(int fd);                            /* takes the pending error: 0, or -errno */
    int (*shutdown)(int fd, uint32_t ways);          /* JANUS_IO_READ, JANUS_IO_WRITE */
    int (*local)(int fd, janus_address *out);
    int (*peer)(int fd, janus_address *out);
    int (*option)(int fd, enum jrt_net_option which, int64_t value);
    int (*pair)(int out[2]);
    int (*pipe)(int out[2]);
    int (*close)(int fd);

    /* Transfers. A socket needs recv and send, others read and write. 0 bytes: the end. */
    ptrdiff_t (*receive)(int fd, bool socket, const struct iovec *to, int count);
    ptrdiff_t (*send)(int fd, bool socket, const struct iovec *from, int count);
    ptrdiff_t (*receive_from)(int fd, const struct iovec *to, janus_address *out_from,
                              bool *out_cut);
    ptrdiff_t (*send_to)(int fd, const struct iovec *from, const janus_address *to);

    /* For plain threads: sleeps until the descriptor may be ready, the bell rings or the deadline
     * passes. 0: look again. -ETIMEDOUT. */
    int  (*wait_one)(int fd, uint32_t ways, uint64_t deadline_ns, struct jrt_net_bell *bell);
    int  (*bell_open)(struct jrt_net_bell *bell);
    void (*bell_ring)(struct jrt_net_bell *bell);
    void (*bell_close)(struct jrt_net_bell *bell);

    /* The addresses of a name. Waits: real ones are called on a helper. Returns how many, or
     * -ENOENT, -EAGAIN (nobody answers), -ENOMEM. */
    int (*look_up)(const char *host, const char *service, janus_address *out, size_t max);
};

extern const struct jrt_net jrt_net_real;

/* The transfers of one piece of a real socket, for the io room's usual calls, [io-quick]. */
ptrdiff_t jrt_net_receive_one(int fd, void *to, size_t max);
ptrdiff_t jrt_net_send_one(int fd, const void *from, size_t count);

/* The network of the calling thread. */
static inline const struct jrt_net *jrt_net(void)
{
    const struct jrt_world *world = jrt_world_now();
    return jrt_likely(world == NULL) ? &jrt_net_real : world->net;
}

/* Whether a descriptor is one of a world. */
static inline bool jrt_net_is_simulated(int fd) { return fd >= JRT_NET_SIMULATED; }

#endif
