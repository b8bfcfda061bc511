/* SPDX-License-Identifier: MIT */
/*
 * The connections of a client, and the tasks that use them.
 *
 * The mutex is held for loads and stores only, so a task cannot end while it holds it. Connections
 * that nobody uses are closed after the mutex is free again.
 */
#include "http/client.h"

#include <janusrt/explore.h>
#include <janusrt/memory.h>
#include <stdlib.h>

enum { HEAD_BYTES_MAX = 57344, FIELDS_MAX = 1024 };

/*
 * Locks. Neither a cancel nor the end of a shield (the scheduler's grace_ns) keeps a task from the
 * lock. False: no memory, only for the first lock of a task.
 */
static bool lock(janus_http_client *client)
{
    janus_shield shield;
    janus_status status = janus_mutex_try_lock(&client->mutex); /* a try ignores a cancel */
    while (status == JANUS_WOULD_WAIT) {
        /* A shield with a deadline does not end with the scheduler's grace_ns. */
        janus_shield_begin_until(&shield, JANUS_IO_NEVER - 1);
        status = janus_mutex_lock(&client->mutex);
        janus_shield_end();
        if (status != JANUS_OK) status = janus_mutex_try_lock(&client->mutex);
    }
    return status == JANUS_OK;
}

static void unlock(janus_http_client *client) { JANUS_IGNORE(janus_mutex_unlock(&client->mutex)); }

/* Says farewell, if that needs no wait, and frees the wire. */
static void drop_wire(struct jrt_client_line *line)
{
    if (line->wire == NULL) return;
    if (line->open) JANUS_IGNORE(line->wire->maker->end(line->wire, false));
    jrt_wire_destroy(line->wire);
    line->wire = NULL;
}

/* Closes connections that are in no list any more. */
static void bury(struct jrt_client_line *dead)
{
    while (dead != NULL) {
        struct jrt_client_line *next = dead->next;
        drop_wire(dead);
        if (dead->open || dead->opening) JANUS_IGNORE(janus_io_close(dead->io));
        free(dead);
        dead = next;
    }
}

/* Moves the line at `link` to the list of the dead. */
static void unlink_line(struct jrt_client_line **link, struct jrt_client_line **dead)
{
    struct jrt_client_line *line = *link;
    *link = line->next;
    line->next = *dead;
    *dead = line;
}

static struct jrt_client_user **bucket(janus_http_client *client, janus_task_id task)
{
    return &client->users[task * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

/* Ends all connections. Those in use are closed, and their users free them. */
static void close_all(janus_http_client *client, struct jrt_client_line **dead)
{
    struct jrt_client_line **link = &client->lines;
    client->closed = true;
    while (*link != NULL) {
        if ((*link)->user == NULL) {
            unlink_line(link, dead);
        } else {
            if ((*link)->open) JANUS_IGNORE(janus_io_close((*link)->io));
            (*link)->open = false;
            link = &(*link)->next;
        }
    }
}

/* The end of a task that used the client. It runs in that task, and nothing cancels it. */
static void user_end(void *argument)
{
    struct jrt_client_user *user = argument;
    janus_http_client      *client = user->client;
    struct jrt_client_line *dead = NULL;
    if (client == NULL) {
        free(user);
        return;
    }
    bool locked = lock(client);
    JANUS_EXPECT(locked); /* not the task's first */
    struct jrt_client_user **place = bucket(client, user->task);
    while (*place != user) place = &(*place)->next;
    *place = user->next;
    for (struct jrt_client_line **link = &client->lines; *link != NULL;) {
        if ((*link)->user == user) {
            unlink_line(link, &dead);
        } else {
            link = &(*link)->next;
        }
    }
    if (user->owner) close_all(client, &dead);
    janus_condition_broadcast(&client->change);
    unlock(client);
    bury(dead);
    /* seq_cst: rare. It comes after the unlock: the last task frees the mutex, and then all calls
     * on it must have returned. */
    if (atomic_fetch_sub(&client->user_count, 1) == 1) free(client);
    free(user);
}

static janus_status add_user(janus_http_client *client, bool owner, struct jrt_client_user **out)
{
    struct jrt_client_user *user = calloc(1, sizeof *user);
    if (user == NULL) return JANUS_NO_MEMORY;
    user->task = janus_task_current_id();
    user->owner = owner;
    janus_status status = janus_defer(user_end, user);
    if (status != JANUS_OK) {
        free(user);
        return status;
    }
    if (!lock(client)) return JANUS_NO_MEMORY; /* the defer frees the record */
    struct jrt_client_user **place = bucket(client, user->task);
    user->next = *place;
    *place = user;
    user->client = client;
    atomic_fetch_add(&client->user_count, 1); /* seq_cst: rare */
    unlock(client);
    *out = user;
    return JANUS_OK;
}

janus_status jrt_client_user_of(janus_http_client *client, struct jrt_client_user **out)
{
    janus_task_id           task = janus_task_current_id();
    struct jrt_client_user *user;
    if (task == 0) return JANUS_STATE;
    if (!lock(client)) return JANUS_NO_MEMORY;
    for (user = *bucket(client, task); user != NULL; user = user->next) {
        if (user->task == task) break;
    }
    client->calls++;
    unlock(client);
    *out = user;
    return user != NULL ? JANUS_OK : add_user(client, false, out);
}

/* Takes away idle connections that are too old. The dead have their own list. */
static void sweep(janus_http_client *client, uint64_t now, struct jrt_client_line **dead)
{
    struct jrt_client_line **link = &client->lines;
    while (*link != NULL) {
        if ((*link)->user == NULL && now - (*link)->since_ns >= client->options.idle_ns) {
            unlink_line(link, dead);
        } else {
            link = &(*link)->next;
        }
    }
}

static bool is_for(const struct jrt_client_line *line, const struct jrt_http_url *url)
{
    return strcmp(line->host, url->host) == 0 && strcmp(line->port, url->port) == 0 &&
           line->secure == url->secure;
}

/* What the limits say. */
struct census {
    struct jrt_client_line  *kept;   /* the one for this host that was used last, or NULL */
    struct jrt_client_line **oldest; /* idle, of another host, or NULL */
    uint32_t                 all, here;
};

static struct census count(janus_http_client *client, const struct jrt_http_url *url)
{
    struct census found = {0};
    for (struct jrt_client_line **link = &client->lines; *link != NULL; link = &(*link)->next) {
        struct jrt_client_line *line = *link;
        bool                    here = is_for(line, url);
        found.all++;
        found.here += here;
        if (line->user != NULL) continue;
        if (here) {
            if (found.kept == NULL || line->since_ns >= found.kept->since_ns) found.kept = line;
        } else if (found.oldest == NULL || line->since_ns < (*found.oldest)->since_ns) {
            found.oldest = link;
        }
    }
    return found;
}

static struct jrt_client_line *add_line(janus_http_client *client, const struct jrt_http_url *url)
{
    struct jrt_client_line *line = calloc(1, sizeof *line);
    if (line == NULL) return NULL;
    memcpy(line->host, url->host, sizeof line->host);
    memcpy(line->port, url->port, sizeof line->port);
    line->secure = url->secure;
    line->next = client->lines;
    client->lines = line;
    return line;
}

/* Takes a connection or a place, if there is one. WOULD_WAIT: the limits leave no place. */
static janus_status try_take(janus_http_client *client, const struct jrt_http_url *url,
                             struct jrt_client_line **out, struct jrt_client_line **dead)
{
    if (client->closed) return JANUS_CLOSED;
    sweep(client, janus_now_ns(), dead);
    struct census found = count(client, url);
    if (found.kept != NULL) {
        JANUS_EXPECT(found.kept->open && !found.kept->opening);
        *out = found.kept;
        return JANUS_OK;
    }
    if (found.here >= client->options.max_per_host) return JANUS_WOULD_WAIT;
    if (found.all >= client->options.max_connections) {
        if (found.oldest == NULL) return JANUS_WOULD_WAIT;
        unlink_line(found.oldest, dead);
    }
    *out = add_line(client, url);
    return *out != NULL ? JANUS_OK : JANUS_NO_MEMORY;
}

janus_status jrt_client_take(janus_http_client *client, struct jrt_client_user *user,
                             const struct jrt_http_url *url, uint64_t deadline,
                             struct jrt_client_line **out)
{
    struct jrt_client_line *dead = NULL;
    janus_status            status = JANUS_OK;
    if (!lock(client)) return JANUS_NO_MEMORY;
    while (status == JANUS_OK) {
        status = try_take(client, url, out, &dead);
        if (status == JANUS_OK) (*out)->user = user;
        if (status != JANUS_WOULD_WAIT) break;
        if (client->options.refuses) {
            status = JANUS_FULL;
        } else if (dead != NULL) { /* close them while the mutex is free */
            unlock(client);
            bury(dead);
            dead = NULL;
            if (!lock(client)) return JANUS_NO_MEMORY;
            status = JANUS_OK;
        } else {
            status = janus_condition_wait_until(&client->change, &client->mutex, deadline);
        }
    }
    unlock(client);
    bury(dead);
    return status;
}

/* Makes the wire of a fresh connection, and does its handshake. */
static janus_status open_wire(janus_http_client *client, struct jrt_client_line *line,
                              const char **why)
{
    const janus_wire_maker *maker = client->options.wire;
    janus_memory_info       own = JANUS_MEMORY_INFO();
    janus_status            status = janus_memory_inspect(&own);
    if (status == JANUS_OK && own.stack_bytes < maker->stack_bytes) {
        *why = "the stack of the calling task is too small for the wire";
        return JANUS_UNAVAILABLE;
    }
    if (status == JANUS_OK) status = maker->create(maker, line->io, line->host, &line->wire);
    return status == JANUS_OK ? maker->open(line->wire, why) : status;
}

/*
 * The new handle is written to the line at once: if the task ends before it can lock the mutex, its
 * defer closes the handle.
 */
janus_status jrt_client_open(janus_http_client *client, struct jrt_client_line *line,
                             uint64_t deadline, const char **why)
{
    const janus_connect_options options = {.struct_bytes = sizeof options,
                                           .deadline_ns = deadline,
                                           .kept = true,
                                           .name = "http client"};
    if (!lock(client)) return JANUS_NO_MEMORY;
    janus_io before = line->io;
    bool     open = line->open, closed = client->closed;
    line->open = line->used = false;
    line->io = (janus_io){{0, 0}};
    line->opening = true;
    client->connects++;
    unlock(client);
    drop_wire(line);
    if (open) JANUS_IGNORE(janus_io_close(before));
    if (closed) return JANUS_CLOSED;
    janus_status status = janus_connect_name(line->host, line->port, &options, &line->io);
    if (status != JANUS_OK) return status;
    if (!lock(client)) return JANUS_NO_MEMORY;
    if (client->closed) status = JANUS_CLOSED;
    if (status == JANUS_OK) {
        line->open = true;
        line->opening = false;
    }
    unlock(client);
    if (status != JANUS_OK) return status;
    JANUS_IGNORE(janus_io_set_deadline(line->io, JANUS_IO_BOTH, deadline));
    return line->secure ? open_wire(client, line, why) : JANUS_OK;
}

void jrt_client_give(janus_http_client *client, struct jrt_client_line *line, bool keep)
{
    struct jrt_client_line *dead = NULL;
    if (!lock(client)) return; /* the end of the task closes it */
    if (keep && line->open && !client->closed) {
        line->user = NULL;
        line->used = true;
        line->since_ns = janus_now_ns();
    } else {
        struct jrt_client_line **link = &client->lines;
        while (*link != line) link = &(*link)->next;
        unlink_line(link, &dead);
    }
    janus_condition_broadcast(&client->change);
    unlock(client);
    bury(dead);
}

void jrt_client_count(janus_http_client *client, uint64_t *counter)
{
    if (!lock(client)) return;
    ++*counter;
    unlock(client);
}

static bool fill_in(janus_http_client_options *options)
{
    if (options->max_connections == 0) options->max_connections = 64;
    if (options->max_per_host == 0) options->max_per_host = 8;
    if (options->idle_ns == 0) options->idle_ns = 20 * JANUS_SECONDS;
    if (options->call_ns == 0) options->call_ns = 60 * JANUS_SECONDS;
    if (options->max_head_bytes == 0) options->max_head_bytes = JRT_HTTP_HEAD_BYTES;
    if (options->max_fields == 0) options->max_fields = 64;
    return options->max_head_bytes <= HEAD_BYTES_MAX && options->max_fields <= FIELDS_MAX &&
           jrt_wire_fits(options->wire);
}

janus_status janus_http_client_create(const janus_http_client_options *given,
                                      janus_http_client              **out)
{
    janus_http_client_options options = {0};
    if (out == NULL) return JANUS_INVALID;
    if (given != NULL) {
        size_t bytes = given->struct_bytes;
        if (bytes < sizeof bytes || bytes > sizeof options || bytes % 8 != 0) return JANUS_INVALID;
        memcpy(&options, given, bytes);
    }
    if (!fill_in(&options)) return JANUS_INVALID;
    if (janus_task_current_id() == 0) return JANUS_STATE;
    janus_http_client *client = calloc(1, sizeof *client);
    if (client == NULL) return JANUS_NO_MEMORY;
    client->options = options;
    client->limits = (struct jrt_http_limits){.head_bytes = (uint16_t)options.max_head_bytes,
                                              .fields = (uint16_t)options.max_fields};
    if (options.max_head_bytes < JRT_HTTP_LINE_BYTES) {
        client->limits.line_bytes = (uint16_t)options.max_head_bytes;
    }
    client->in_bytes = options.max_head_bytes + (size_t)JRT_CLIENT_SPARE_BYTES;
    janus_mutex_init(&client->mutex, "http client");
    janus_condition_init(&client->change, JANUS_WAKER_TASKS, "http client");
    struct jrt_client_user *user = NULL;
    janus_status            status = add_user(client, true, &user);
    if (status != JANUS_OK) {
        free(client);
        return status;
    }
    *out = client;
    return JANUS_OK;
}

void janus_http_client_destroy(janus_http_client *client)
{
    struct jrt_client_line *dead = NULL;
    if (client == NULL || !lock(client)) return;
    close_all(client, &dead);
    janus_condition_broadcast(&client->change);
    unlock(client);
    bury(dead);
}

void janus_http_client_drop_idle(janus_http_client *client)
{
    struct jrt_client_line *dead = NULL;
    if (client == NULL || !lock(client)) return;
    for (struct jrt_client_line **link = &client->lines; *link != NULL;) {
        if ((*link)->user == NULL) {
            unlink_line(link, &dead);
        } else {
            link = &(*link)->next;
        }
    }
    janus_condition_broadcast(&client->change);
    unlock(client);
    bury(dead);
}

janus_status janus_http_client_inspect(janus_http_client *client, janus_http_client_info *out)
{
    janus_http_client_info info = {0};
    if (client == NULL || out == NULL) return JANUS_INVALID;
    size_t bytes = out->struct_bytes;
    if (bytes < sizeof bytes || bytes > sizeof info || bytes % 8 != 0) return JANUS_INVALID;
    if (!lock(client)) return JANUS_NO_MEMORY;
    for (const struct jrt_client_line *line = client->lines; line != NULL; line = line->next) {
        info.connection_count++;
        info.idle_count += line->user == NULL;
    }
    info.calls = client->calls;
    info.connects = client->connects;
    info.repeats = client->repeats;
    unlock(client);
    info.struct_bytes = bytes;
    memcpy(out, &info, bytes);
    return JANUS_OK;
}
