/* SPDX-License-Identifier: MIT */
/* Events of the simulated network, sets, and threads that wait for one descriptor. The essay is in
 * net.c. */
#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_HEAP = 16 };

/* The heap: the member with the earliest event is the first. */

static bool is_before(const struct sim_socket *a, const struct sim_socket *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->fd < b->fd;
}

static void put_at(struct sim_set *set, uint32_t at, struct sim_socket *socket)
{
    set->heap[at - 1] = socket;
    socket->heap_at = at;
}

/* Finds the place of a member, from `at` on. */
static void sift(struct sim_set *set, uint32_t at, struct sim_socket *socket)
{
    while (at > 1 && is_before(socket, set->heap[at / 2 - 1])) {
        put_at(set, at, set->heap[at / 2 - 1]);
        at /= 2;
    }
    for (;;) {
        uint32_t child = at * 2;
        if (child > set->heap_count) break;
        if (child < set->heap_count && is_before(set->heap[child], set->heap[child - 1])) child++;
        if (!is_before(set->heap[child - 1], socket)) break;
        put_at(set, at, set->heap[child - 1]);
        at = child;
    }
    put_at(set, at, socket);
}

static void heap_remove(struct sim_set *set, struct sim_socket *socket)
{
    uint32_t at = socket->heap_at;
    if (at == 0) return;
    socket->heap_at = 0;
    struct sim_socket *last = set->heap[--set->heap_count];
    if (last != socket) sift(set, at, last);
}

/* There is room for every member. */
static void heap_move(struct sim_set *set, struct sim_socket *socket)
{
    if (socket->due_ns == JRT_NEVER) {
        heap_remove(set, socket);
    } else {
        sift(set, socket->heap_at != 0 ? socket->heap_at : ++set->heap_count, socket);
    }
}

/* What happens to a socket. */

static bool settle_listener(struct sim_socket *listener, uint64_t now)
{
    bool came = false;
    while (listener->fresh != NULL && listener->fresh->arrives_ns <= now) {
        listener->fresh = listener->fresh->queue_next;
        came = true;
    }
    return came;
}

static bool settle_connect(struct sim_socket *socket, uint64_t now)
{
    if (socket->arrives_ns > now) return false;
    socket->error = socket->answer;
    socket->dead = socket->answer != 0;
    socket->what = socket->dead ? SIM_FRESH : SIM_STREAM;
    if (!socket->dead) (void)jrt_sim_stream_settle(socket, now);
    return true;
}

static bool settle(struct sim_socket *socket, uint64_t now)
{
    switch (socket->what) {
    case SIM_STREAM: return jrt_sim_stream_settle(socket, now);
    case SIM_CONNECTING: return settle_connect(socket, now);
    case SIM_LISTENER: return settle_listener(socket, now);
    case SIM_DATAGRAM: return jrt_sim_mail_settle(socket, now);
    case SIM_FRESH: break;
    }
    return false;
}

static uint64_t due_of(const struct sim_socket *socket)
{
    uint64_t due = JRT_NEVER;
    switch (socket->what) {
    case SIM_STREAM: return jrt_sim_stream_due(socket);
    case SIM_CONNECTING: return socket->arrives_ns;
    case SIM_LISTENER: return socket->fresh != NULL ? socket->fresh->arrives_ns : JRT_NEVER;
    case SIM_DATAGRAM:
        if (socket->mail_fresh != NULL) due = socket->mail_fresh->arrives_ns;
        return due < socket->error_ns ? due : socket->error_ns;
    case SIM_FRESH: break;
    }
    return due;
}

uint32_t jrt_sim_mask(struct sim_socket *socket)
{
    switch (socket->what) {
    case SIM_STREAM: return jrt_sim_stream_mask(socket);
    case SIM_CONNECTING: return 0;
    case SIM_LISTENER: return socket->queue != socket->fresh ? JRT_NET_READ : 0;
    case SIM_DATAGRAM:
        return (socket->mail != socket->mail_fresh ? JRT_NET_READ : 0u) |
               (socket->starved ? 0u : JRT_NET_WRITE) | (socket->error != 0 ? JRT_NET_ERR : 0u);
    case SIM_FRESH: break;
    }
    uint32_t refused = JRT_NET_READ | JRT_NET_RDHUP | (socket->error != 0 ? JRT_NET_ERR : 0u);
    return JRT_NET_WRITE | JRT_NET_HUP | (socket->dead ? refused : 0);
}

static void make_ready(struct sim_set *set, struct sim_socket *socket)
{
    if (socket->ready) return;
    socket->ready = true;
    socket->ready_next = NULL;
    if (set->ready == NULL) {
        set->ready = socket;
    } else {
        set->ready_last->ready_next = socket;
    }
    set->ready_last = socket;
}

/* Wakes the threads in a set once. They compute anew how long they sleep. */
static void wake_set(struct jrt_sim *net, struct sim_set *set)
{
    if (set->asleep == 0 || set->until_ns == 0) return;
    set->until_ns = 0;
    net->world->wake(net->world, &set->word, (int)set->asleep);
}

void jrt_sim_touch(struct jrt_sim *net, struct sim_socket *socket, bool edge)
{
    struct sim_set *set = socket->set;
    uint64_t        due = due_of(socket);
    if (due <= jrt_sim_now(net)) {
        edge |= settle(socket, jrt_sim_now(net));
        due = due_of(socket);
    }
    jrt_debug_invariant("sim-edge", due > jrt_sim_now(net));
    bool sooner = due < socket->due_ns;
    if (due != socket->due_ns) {
        socket->due_ns = due;
        if (set != NULL) heap_move(set, socket);
    }
    if (set != NULL && edge) make_ready(set, socket);
    if (set != NULL && (edge || due < set->until_ns)) wake_set(net, set);
    if (!edge && !sooner) return;
    for (struct sim_waiter *w = socket->waiters; w != NULL; w = w->next) {
        net->world->wake(net->world, w->word, 1);
    }
}

/* Sets. */

int jrt_sim_set_open(struct jrt_set *set)
{
    struct jrt_sim *net = jrt_sim();
    if (net != NULL && jrt_sim_no_descriptor(net)) return -EMFILE;
    struct sim_set *made = net != NULL ? calloc(1, sizeof *made) : NULL;
    if (made == NULL) return -ENOMEM;
    made->next = net->sets;
    net->sets = made;
    *set = (struct jrt_set){.fd = -1, .bell = -1, .sim = made};
    return 0;
}

void jrt_sim_set_leave(struct sim_socket *socket)
{
    struct sim_set *set = socket->set;
    if (set == NULL) return;
    heap_remove(set, socket);
    struct sim_socket **at = &set->ready, *before = NULL;
    while (*at != NULL && *at != socket && socket->ready) {
        before = *at;
        at = &(*at)->ready_next;
    }
    if (socket->ready) {
        *at = socket->ready_next;
        if (set->ready_last == socket) set->ready_last = before;
    }
    if (set->turn == socket) set->turn = socket->members_next;
    if (socket->members_next != NULL) socket->members_next->members_before = socket->members_before;
    if (socket->members_before != NULL) {
        socket->members_before->members_next = socket->members_next;
    } else {
        set->members = socket->members_next;
    }
    socket->ready = false;
    socket->members_next = socket->members_before = NULL;
    socket->set = NULL;
    set->count--;
}

void jrt_sim_set_close(struct jrt_set *handle)
{
    struct jrt_sim *net = jrt_sim();
    struct sim_set *set = handle->sim;
    while (set->members != NULL) jrt_sim_set_leave(set->members);
    struct sim_set **at = &net->sets;
    while (*at != set) at = &(*at)->next;
    *at = set->next;
    free(set->heap);
    free(set);
    handle->sim = NULL;
}

int jrt_sim_set_add(struct jrt_set *handle, int fd, uint64_t cookie)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_set    *set = handle->sim;
    struct sim_socket *socket = jrt_sim_find(net, fd);
    if (socket == NULL) return -EBADF;
    if (socket->set != NULL) return -EEXIST;
    if (set->count == set->heap_room) {
        uint32_t            room = set->heap_room == 0 ? FIRST_HEAP : set->heap_room * 2;
        struct sim_socket **heap = realloc(set->heap, room * sizeof(struct sim_socket *));
        if (heap == NULL) return -ENOMEM;
        set->heap = heap;
        set->heap_room = room;
    }
    set->count++;
    socket->cookie = cookie;
    socket->members_next = set->members;
    if (set->members != NULL) set->members->members_before = socket;
    set->members = socket;
    socket->set = set;
    socket->due_ns = JRT_NEVER;
    jrt_sim_touch(net, socket, true);
    return 0;
}

void jrt_sim_set_remove(struct jrt_set *handle, int fd)
{
    struct sim_socket *socket = jrt_sim_find(jrt_sim(), fd);
    if (socket != NULL && socket->set == handle->sim) jrt_sim_set_leave(socket);
}

static int take_ready(struct jrt_sim *net, struct sim_set *set, struct jrt_net_event *out, int max)
{
    int count = 0;
    while (set->ready != NULL && count < max) {
        struct sim_socket *socket = set->ready;
        set->ready = socket->ready_next;
        socket->ready = false;
        uint32_t what = jrt_sim_mask(socket);
        if (what == 0) continue; /* it is over by now, as in epoll */
        jrt_sim_note(net, socket->fd, (int64_t)what << 32);
        out[count++] = (struct jrt_net_event){socket->cookie, what};
    }
    return count;
}

/* An event for no reason. */
static int take_spurious(struct jrt_sim *net, struct sim_set *set, struct jrt_net_event *out)
{
    struct sim_socket *socket = set->turn != NULL ? set->turn : set->members;
    if (socket == NULL || !jrt_sim_fails(net, JRT_FAULT_EDGE, socket, SIM_ACT_EDGE)) return 0;
    set->turn = socket->members_next;
    *out = (struct jrt_net_event){socket->cookie, JRT_NET_READ | JRT_NET_WRITE};
    return 1;
}

int jrt_sim_set_wait(struct jrt_set *handle, struct jrt_net_event *out, int max,
                     uint64_t deadline_ns)
{
    struct jrt_sim *net = jrt_sim();
    struct sim_set *set = handle->sim;
    for (;;) {
        uint64_t now = jrt_sim_now(net);
        while (set->heap_count > 0 && set->heap[0]->due_ns <= now) {
            jrt_sim_touch(net, set->heap[0], false);
        }
        int count = take_ready(net, set, out, max);
        if (count == 0 && max > 0) count = take_spurious(net, set, out);
        uint32_t rings = jrt_load_acquire(&set->word); /* acquire: what came before the ring. */
        bool     rung = rings != set->heard;
        if (deadline_ns != 0) set->heard = rings; /* a look leaves the ring to a sleeper */
        if (count > 0 || rung || deadline_ns <= now) return count;
        jrt_debug_invariant("sim-set", set->heap_count == 0 || set->heap[0]->due_ns > now);
        uint64_t until = deadline_ns;
        if (set->heap_count > 0 && set->heap[0]->due_ns < until) until = set->heap[0]->due_ns;
        if (set->asleep++ == 0 || until < set->until_ns) set->until_ns = until;
        (void)net->world->wait(net->world, &set->word, rings, until);
        set->asleep--;
    }
}

/* Any thread may ring, also a thread that is in no world. */
void jrt_sim_set_ring(struct jrt_set *handle)
{
    struct sim_set *set = handle->sim;
    jrt_fetch_add_seq_cst(&set->word, 1u); /* seq_cst: release is enough; rings are rare. */
    jrt_futex_wake(&set->word, 1);
}

bool jrt_sim_is_quiet(void)
{
    const struct jrt_sim *net = jrt_sim();
    if (net == NULL) return true;
    for (const struct sim_set *set = net->sets; set != NULL; set = set->next) {
        if (set->heap_count > 0 || set->ready != NULL) return false;
    }
    for (uint32_t i = 0; i < net->used; i++) { /* threads that wait for one descriptor */
        const struct sim_socket *socket = net->sockets[i];
        if (socket == NULL || socket->waiters == NULL) continue;
        if (socket->due_ns != JRT_NEVER) return false;
    }
    return true;
}

/* One descriptor. */

int jrt_sim_bell_open(struct jrt_net_bell *bell)
{
    bell->fd = -1;
    jrt_store_relaxed(&bell->rung, 0u); /* relaxed: nobody knows the bell yet. */
    return 0;
}

void jrt_sim_bell_ring(struct jrt_net_bell *bell)
{
    jrt_store_release(&bell->rung, 1u); /* release: what the ring announces. */
    jrt_futex_wake(&bell->rung, 1);
}

void jrt_sim_bell_close(struct jrt_net_bell *bell) { (void)bell; }

static void stop_waiting(struct sim_socket *socket, struct sim_waiter *waiter)
{
    struct sim_waiter **at = &socket->waiters;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
}

int jrt_sim_wait_one(int fd, uint32_t ways, uint64_t deadline_ns, struct jrt_net_bell *bell)
{
    struct jrt_sim    *net = jrt_sim();
    struct sim_socket *socket = jrt_sim_find(net, fd);
    _Atomic(uint32_t)  own = 0;
    struct sim_waiter  waiter = {.word = bell != NULL ? &bell->rung : &own};
    uint32_t           wanted = JRT_NET_HUP | JRT_NET_ERR;
    if (socket == NULL) return -EBADF;
    if (ways & JANUS_IO_READ) wanted |= JRT_NET_READ | JRT_NET_RDHUP;
    if (ways & JANUS_IO_WRITE) wanted |= JRT_NET_WRITE;
    for (;;) {
        jrt_sim_touch(net, socket, false);
        if (jrt_sim_mask(socket) & wanted) return 0;
        if (jrt_load_acquire(waiter.word) != 0) return 0; /* acquire: what came before the ring. */
        if (deadline_ns <= jrt_sim_now(net)) return -ETIMEDOUT;
        if (jrt_sim_fails(net, JRT_FAULT_EDGE, socket, SIM_ACT_EDGE)) return 0;
        waiter.next = socket->waiters;
        socket->waiters = &waiter;
        uint64_t until = deadline_ns < socket->due_ns ? deadline_ns : socket->due_ns;
        (void)net->world->wait(net->world, waiter.word, 0, until);
        if (waiter.gone) return 0; /* closed meanwhile */
        stop_waiting(socket, &waiter);
    }
}
