/* SPDX-License-Identifier: MIT */
/*
 * A server of connections that are idle most of the time. Each is a resting task, so it has no
 * stack while it waits for a line. It ends when its client says nothing for half a second. At last
 * a cancel ends the server, and each connection says goodbye.
 * With JANUSRT_SEED=7 in the environment the same program runs on a simulated network.
 *
 * The example is small. It serves at most MOST connections in all, because it uses no record twice.
 * Each connection is a task: a server of more than some 90 at a time sets max_tasks of the
 * scheduler. And each client sends one line and then waits for the answer. The example does not
 * look for a line that ends in the middle of what it read.
 */
#include <janusrt/janus.h>
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 20, VISITS = CLIENTS + 1, MOST = 100 };

struct connection {
    janus_io     io;
    bool         begun;
    janus_status end;
    size_t       used;
    char         line[32];
};

struct server {
    janus_io          listener;
    janus_nursery    *connections;
    struct connection all[MOST];
};

static janus_rest wait_for_bytes(struct connection *self)
{
    janus_io_set_deadline(self->io, JANUS_IO_READ, janus_now_ns() + JANUS_SECONDS / 2);
    return janus_rest_io_wait(self->io, JANUS_IO_READ);
}

static janus_rest say_goodbye(struct connection *self)
{
    janus_shield_begin(); /* the task is cancelled, and wants to write nevertheless */
    janus_io_set_deadline(self->io, JANUS_IO_WRITE, janus_now_ns() + JANUS_SECONDS);
    JANUS_IGNORE(janus_io_write(self->io, "bye\n", 4, NULL));
    janus_shield_end();
    return janus_rest_done(JANUS_CANCELLED);
}

/* A step. The first one comes at once. The others come with bytes, or when the wait has failed. */
static janus_rest on_bytes(void *state, janus_status woke)
{
    struct connection *self = state;
    size_t             got = 0;
    if (!self->begun) {
        self->begun = true;
        if (janus_io_take(self->io) != JANUS_OK) return janus_rest_done(0);
        if (woke == JANUS_OK) return wait_for_bytes(self);
    }
    if (woke == JANUS_OK) {
        size_t room = sizeof self->line - self->used;
        woke = janus_io_try_read(self->io, self->line + self->used, room, &got);
    }
    self->used += got;
    if (got > 0 && self->line[self->used - 1] == '\n') { /* one line at a time: it is whole */
        woke = janus_io_write(self->io, self->line, self->used, NULL);
        self->used = 0;
    }
    bool full = self->used == sizeof self->line;
    if (woke == JANUS_WOULD_WAIT || (woke == JANUS_OK && !full)) return wait_for_bytes(self);
    self->end = woke;
    return woke == JANUS_CANCELLED ? say_goodbye(self) : janus_rest_done(0);
}

/* It owns each connection until the connection's first step takes it. So it must not end before:
 * it accepts until it is cancelled. If a spawn is refused, for example with TASK_LIMIT, it closes
 * the connection and goes on with the next. */
static int64_t accept_all(void *argument)
{
    struct server *server = argument;
    janus_status   status = JANUS_OK;
    for (int i = 0; i < MOST; i += status == JANUS_OK) {
        struct connection *one = &server->all[i];
        status = janus_accept(server->listener, &one->io, NULL);
        if (status != JANUS_OK) return status;
        status = janus_spawn_resting(server->connections, janus_rest_sleep(0), on_bytes, one,
                                     JANUS_SPAWN_OPTIONS(.site = JANUS_SITE_HERE), NULL);
        if (status != JANUS_OK) (void)janus_io_close(one->io);
    }
    return janus_sleep_until(UINT64_MAX);
}

/* Connects, and gets one line back. */
static janus_status talk(const janus_address *at, janus_io *out)
{
    char         answer[6];
    janus_status status = janus_connect(at, NULL, out);
    if (status == JANUS_OK) status = janus_io_write(*out, "hello\n", 6, NULL);
    if (status == JANUS_OK) status = janus_io_read_full(*out, answer, sizeof answer, NULL);
    return status;
}

static janus_status visit(struct server *server)
{
    janus_address at;
    janus_io      client[VISITS];
    char          text[16] = "";
    janus_status  status = janus_io_local(server->listener, &at);
    for (int i = 0; i < CLIENTS && status == JANUS_OK; i++) status = talk(&at, &client[i]);
    for (int i = 0; i < CLIENTS && status == JANUS_OK; i++) {
        /* Nobody says anything any more, so the server closes. */
        if (janus_io_read_full(client[i], text, 1, NULL) != JANUS_CLOSED) return JANUS_STATE;
    }
    if (status == JANUS_OK) status = talk(&at, &client[CLIENTS]);
    (void)janus_nursery_cancel(server->connections);
    if (status == JANUS_OK) status = janus_io_read_full(client[CLIENTS], text, 4, NULL);
    if (status == JANUS_OK) printf("the server says %s", text);
    return status;
}

static int64_t first_task(void *argument)
{
    static struct server server;
    janus_address        at;
    janus_status         status, visited = JANUS_OK;
    int                  idle = 0, cancelled = 0;
    (void)argument;
    if (janus_address_parse("127.0.0.1:0", &at) != JANUS_OK) return -100;
    if ((status = janus_listen(&at, NULL, &server.listener)) != JANUS_OK) return status;
    /* WAIT_ALL: a connection that fails does not cancel the others. owner_apart: the clients run in
     * the owner, and go on after the cancel. */
    JANUS_NURSERY(n, status, .policy = JANUS_POLICY_WAIT_ALL, .owner_apart = true)
    {
        server.connections = n;
        visited = janus_spawn(n, accept_all, &server);
        if (visited == JANUS_OK) visited = visit(&server);
        (void)janus_nursery_cancel(n);
    }
    for (int i = 0; i < MOST; i++) {
        idle += server.all[i].end == JANUS_DEADLINE;
        cancelled += server.all[i].end == JANUS_CANCELLED;
    }
    printf("%d connections were idle too long, %d was cancelled\n", idle, cancelled);
    return visited;
}

int main(void) { return janus_run(NULL, first_task, NULL, NULL) == JANUS_OK ? 0 : 1; }

/* Prints:
 * the server says bye
 * 20 connections were idle too long, 1 was cancelled
 */
