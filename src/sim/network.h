/* SPDX-License-Identifier: MIT */
/* The simulated network, for the files of this room. The essay is in net.c. */
#ifndef JRT_SIM_NETWORK_H
#define JRT_SIM_NETWORK_H

#include "sim/inside.h"
#include "sim/net.h"

#include <errno.h>
#include <sys/socket.h>

enum {
    SIM_ROOM = 64 * 1024,        /* bytes of a direction, and of a socket's datagrams */
    SIM_WRITABLE = SIM_ROOM / 3, /* an event says WRITE if this much room is left */
    SIM_PIPE_ATOMIC = 4096,      /* a write of this size is never divided */
    SIM_DATAGRAM_MAX = 65507,
    SIM_ANSWERS = 4, /* of JRT_CHOOSE_CUT and JRT_CHOOSE_DELAY, at most */
};

static const uint64_t sim_short_ns = 50000; /* the shortest delay */

/* Bytes that arrive together. */
struct sim_segment {
    uint64_t arrives_ns;
    uint32_t bytes;
};

/* One direction of a connection. */
struct sim_way {
    char               *ring; /* owned; `room` is 0 or a power of two */
    uint32_t            room, begin;
    uint32_t            count;   /* bytes in the ring, */
    uint32_t            arrived; /* and how many of them can be read */
    uint32_t            on_way, segments_begin, segments_room;
    struct sim_segment *segments; /* owned; the rest of the bytes, in order */
    uint64_t            last_ns;  /* nothing arrives earlier than this */
    uint64_t            end_ns;   /* when the end arrives; JRT_NEVER: it was not sent */
    uint64_t            reset_ns; /* when a reset arrives; JRT_NEVER: none was sent */
    uint64_t            hold_ns;  /* the sender must wait until then. 0: it need not. JRT_NEVER:
                                   * until the receiver makes room */
    bool                ended;    /* the end has arrived */
    bool                broken;   /* a reset was sent: nothing travels behind it */
};

enum sim_link_kind {
    SIM_TCP,
    SIM_UNIX,
    SIM_PAIR,
    SIM_PIPE, /* end 0 reads */
};

struct sim_link {
    enum sim_link_kind kind;
    uint32_t           number;   /* among those of its kind; TCP and Unix count together */
    struct sim_socket *ends[2];  /* 0: the client. NULL: closed */
    struct sim_way     ways[2];  /* way i leads to end i */
    uint64_t           delay_ns; /* the shortest */
};

struct sim_datagram {
    struct sim_datagram *next;
    uint64_t             arrives_ns;
    janus_address        from;
    uint32_t             count;
    char                 bytes[];
};

/* An address in use. */
struct sim_name {
    struct sim_name   *next;
    janus_address      at;
    int                type;
    struct sim_socket *holder; /* NULL: a path that was left behind */
};

/* A part in wait_one. */
struct sim_waiter {
    struct sim_waiter *next;
    _Atomic(uint32_t) *word;
    bool               gone; /* the socket was closed */
};

/* What a choice is about, for reports. */
enum sim_act {
    SIM_ACT_READ,
    SIM_ACT_WRITE,
    SIM_ACT_TRAVEL, /* the delay of a write, */
    SIM_ACT_END,    /* of the end, */
    SIM_ACT_CONNECT,
    SIM_ACT_DATAGRAM,
    SIM_ACT_LOOK_UP,
    SIM_ACT_STALL, /* and of a stall */
    SIM_ACT_RESET,
    SIM_ACT_DESCRIPTOR,
    SIM_ACT_EDGE,
    SIM_ACT_LOST,
    SIM_ACT_TWICE,
    SIM_ACTS,
};

enum sim_what {
    SIM_FRESH, /* a stream socket without a connection */
    SIM_CONNECTING,
    SIM_STREAM, /* also the ends of pairs and pipes */
    SIM_LISTENER,
    SIM_DATAGRAM,
};

struct sim_socket {
    int           fd; /* -1: it waits to be accepted */
    enum sim_what what;
    janus_family  family;
    int           error; /* pending; errno */
    bool          sends_no_more, reads_no_more;
    bool          dead; /* both directions have ended */
    bool          only_v6, reuse_port, reuse_address;
    bool          starved; /* datagrams: a send found no room */
    uint8_t       end;     /* of `link` */
    uint32_t      number;  /* for reports: of a connect, listener or datagram socket */
    uint32_t      reads, writes;
    uint32_t      asked[SIM_ACTS]; /* choices so far */
    uint64_t      handle[2];       /* its handle, or zeros */
    char          label[JRT_SIM_LABEL];

    struct sim_link *link;
    janus_address    local, remote;
    struct sim_name *name;       /* NULL: not bound */
    uint64_t         arrives_ns; /* of the answer to a connect, or of a connection in a backlog */
    int              answer;     /* connecting: errno, or 0 */
    uint64_t         error_ns;   /* datagrams: when `answer` becomes the error */

    /* Set. */
    struct sim_set    *set; /* NULL: in none */
    uint64_t           cookie;
    uint64_t           due_ns;  /* when the next edge comes by itself */
    uint32_t           heap_at; /* its place in the heap, from 1 on; 0: not there */
    bool               ready;   /* an edge has come; in the list: */
    struct sim_socket *ready_next;
    struct sim_socket *members_next, *members_before;
    struct sim_waiter *waiters;

    /* Listener: connections in order of arrival. `fresh` is the first that has not arrived. */
    struct sim_socket *queue, *queue_last, *queue_next, *fresh;
    uint32_t           queue_count, backlog;

    /* Datagrams in order of arrival, and the first that has not arrived. */
    struct sim_datagram *mail, *mail_fresh;
    uint32_t             mail_bytes;
};

/* A set. [sim-set] */
struct sim_set {
    _Atomic(uint32_t)   word;  /* first, see plat/net.h; rings are counted here */
    uint32_t            heard; /* rings that a wait has taken */
    uint32_t            asleep;
    uint64_t            until_ns; /* asleep: the earliest deadline */
    struct sim_set     *next;
    struct sim_socket  *members;
    uint32_t            count;
    struct sim_socket  *turn; /* whose turn it is to have an event for no reason; or NULL */
    struct sim_socket  *ready, *ready_last;
    struct sim_socket **heap; /* owned; by due_ns, then by descriptor */
    uint32_t            heap_count, heap_room;
};

struct sim_host {
    struct sim_host *next;
    janus_address    at;
    char             name[];
};

/* What the network is choosing, for reports. */
struct sim_fact {
    enum sim_act             act;
    const struct sim_socket *socket; /* NULL: none */
    uint32_t                 number; /* of the read or write */
    uint32_t                 asked;  /* how many choices of this kind came before */
    uint64_t                 whole, amounts[SIM_ANSWERS];
};

struct jrt_sim {
    struct jrt_world   *world;
    struct sim_socket **sockets; /* owned; by descriptor - JRT_NET_SIMULATED. NULL: free */
    int                *free;    /* owned; a stack of free descriptors */
    uint32_t            used, room, free_count;
    uint32_t            open;
    uint32_t            connections, pairs, pipes, listeners, datagrams; /* made so far */
    uint32_t            starved; /* sockets with this flag */
    uint16_t            port;    /* the next ephemeral one */
    bool                told;    /* leaks were reported */
    struct sim_name    *names;
    struct sim_set     *sets;
    struct sim_host    *hosts;
    struct sim_fact     fact;
    uint32_t            asked[SIM_ACTS]; /* choices that belong to no socket */
};

/* net.c. */

/* The calling thread's network, made by the first call. NULL: no memory. */
struct jrt_sim *jrt_sim(void);

/* The socket of a descriptor; NULL: none. */
struct sim_socket *jrt_sim_find(const struct jrt_sim *net, int fd);

/* Makes a socket without a descriptor; NULL: no memory. */
struct sim_socket *jrt_sim_make(enum sim_what what, janus_family family);

/* Gives it a descriptor. Returns that, or -ENOMEM. */
int jrt_sim_open(struct jrt_sim *net, struct sim_socket *socket);

/* Whether the world refuses a descriptor. */
bool jrt_sim_no_descriptor(struct jrt_sim *net);

/* Ends a socket, as its peer and its set see it, and frees it. */
void jrt_sim_end(struct jrt_sim *net, struct sim_socket *socket);

static inline uint64_t jrt_sim_now(const struct jrt_sim *net)
{
    return net->world->now_ns(net->world);
}

/* Notes that something happened to a descriptor. */
static inline void jrt_sim_note(struct jrt_sim *net, int fd, int64_t what)
{
    jrt_world_note(net->world, (uint64_t)(unsigned)fd, (uint64_t)what);
}

/* words.c: choices. */

/* The delay of something that the network carries. */
uint64_t jrt_sim_delay(struct jrt_sim *net, const struct sim_socket *socket, enum sim_act act);

/* The length of a stall. */
uint64_t jrt_sim_stall(struct jrt_sim *net, const struct sim_socket *socket);

/* How many of `count` bytes a transfer moves, at least 1. `whole`: how many the caller wanted. */
uint32_t jrt_sim_cut(struct jrt_sim *net, const struct sim_socket *socket, enum sim_act act,
                     uint32_t count, uint64_t whole);

bool jrt_sim_fails(struct jrt_sim *net, enum jrt_fault fault, const struct sim_socket *socket,
                   enum sim_act act);

/* "client 3", "the server of connection 3". */
void jrt_sim_who(const struct sim_socket *socket, char *out, size_t bytes);

/* stream.c. */

static inline struct sim_way *jrt_sim_in(const struct sim_socket *socket)
{
    return &socket->link->ways[socket->end];
}

static inline struct sim_way *jrt_sim_out(const struct sim_socket *socket)
{
    return &socket->link->ways[1 - socket->end];
}

static inline struct sim_socket *jrt_sim_peer(const struct sim_socket *socket)
{
    return socket->link->ends[1 - socket->end];
}

/* Connects two sockets. False: no memory. */
bool jrt_sim_link(struct jrt_sim *net, enum sim_link_kind kind, struct sim_socket *first,
                  struct sim_socket *second);

/* Takes the socket out of its connection. `fair`: its peer notices, as after a close. */
void jrt_sim_unlink_end(struct jrt_sim *net, struct sim_socket *socket, bool fair);

bool      jrt_sim_stream_settle(struct sim_socket *socket, uint64_t now);
uint64_t  jrt_sim_stream_due(const struct sim_socket *socket);
uint32_t  jrt_sim_stream_mask(struct sim_socket *socket);
ptrdiff_t jrt_sim_stream_receive(struct jrt_sim *net, struct sim_socket *socket,
                                 const struct iovec *to, int count);
ptrdiff_t jrt_sim_stream_send(struct jrt_sim *net, struct sim_socket *socket,
                              const struct iovec *from, int count);
int       jrt_sim_stream_shutdown(struct jrt_sim *net, struct sim_socket *socket, uint32_t ways);

/* names.c. */
int jrt_sim_bind(int fd, const janus_address *at);
int jrt_sim_listen(int fd, uint32_t backlog);
int jrt_sim_accept(int fd, janus_address *out_peer);
int jrt_sim_connect(int fd, const janus_address *to);

/* Whether an address is well formed and of the socket's family. 0, or -errno. */
int jrt_sim_check(const struct sim_socket *socket, const janus_address *at);

/* Binds a socket to a port that the network chooses, if it is not bound. `like`: for a connection
 * to that address. False: no port, or no memory. */
bool jrt_sim_bind_any(struct jrt_sim *net, struct sim_socket *socket, const janus_address *like);
void jrt_sim_unbind(struct jrt_sim *net, struct sim_socket *socket);

/* Whether the path or name of a Unix socket exists. */
bool jrt_sim_name_exists(const struct jrt_sim *net, const janus_address *at);

bool jrt_sim_same(const janus_address *a, const janus_address *b);

/* The socket that takes what is sent to an address, or NULL. */
struct sim_socket *jrt_sim_target(const struct jrt_sim *net, int type, const janus_address *to);

/* The address that others see. */
janus_address jrt_sim_source(const struct sim_socket *socket, const janus_address *to);

static inline bool jrt_sim_is_unix(janus_family family)
{
    return family == JANUS_FAMILY_UNIX || family == JANUS_FAMILY_ABSTRACT;
}

/* lookup.c. */
int  jrt_sim_look_up(const char *host, const char *service, janus_address *out, size_t max);
void jrt_sim_hosts_free(struct jrt_sim *net);

/* datagram.c. */
bool      jrt_sim_mail_settle(struct sim_socket *socket, uint64_t now);
void      jrt_sim_mail_free(struct sim_socket *socket);
ptrdiff_t jrt_sim_receive_from(int fd, const struct iovec *to, janus_address *out_from,
                               bool *out_cut);
ptrdiff_t jrt_sim_send_to(int fd, const struct iovec *from, const janus_address *to);
ptrdiff_t jrt_sim_mail_receive(struct jrt_sim *net, struct sim_socket *socket,
                               const struct iovec *to, int count, janus_address *out_from,
                               bool *out_cut);
ptrdiff_t jrt_sim_mail_send(struct jrt_sim *net, struct sim_socket *socket,
                            const struct iovec *from, int count, const janus_address *to);

/* sets.c. */

/* Lets everything happen to the socket that is due, and computes what comes next. Called after
 * every change; wakes those that sleep too long. `edge`: the change is an event. */
void jrt_sim_touch(struct jrt_sim *net, struct sim_socket *socket, bool edge);

/* What is true now; JRT_NET_ bits. */
uint32_t jrt_sim_mask(struct sim_socket *socket);

void jrt_sim_set_leave(struct sim_socket *socket);
int  jrt_sim_set_open(struct jrt_set *set);
void jrt_sim_set_close(struct jrt_set *set);
int  jrt_sim_set_add(struct jrt_set *set, int fd, uint64_t cookie);
void jrt_sim_set_remove(struct jrt_set *set, int fd);
int jrt_sim_set_wait(struct jrt_set *set, struct jrt_net_event *out, int max, uint64_t deadline_ns);
void jrt_sim_set_ring(struct jrt_set *set);
bool jrt_sim_is_quiet(void);
int  jrt_sim_wait_one(int fd, uint32_t ways, uint64_t deadline_ns, struct jrt_net_bell *bell);
int  jrt_sim_bell_open(struct jrt_net_bell *bell);
void jrt_sim_bell_ring(struct jrt_net_bell *bell);
void jrt_sim_bell_close(struct jrt_net_bell *bell);

#endif
