/* SPDX-License-Identifier: MIT */
/*
 * A chat by WebSocket. Each member has a channel, and a task that sends what is in it. A channel
 * that is full drops its oldest message. So a member that reads slowly holds up nobody.
 *   chat [ADDRESS]
 */
#include <janusrt/janus.h>
#include <janusrt/websocket.h>
#include <string.h>

enum { QUEUE = 32, TEXT = 500 };

struct message {
    size_t count;
    char   bytes[TEXT];
};

struct room {
    janus_mutex    lock; /* held for loads and stores only */
    struct member *first;
};

struct member {
    janus_websocket *socket;
    janus_channel    queue;
    struct room     *room;
    struct member   *next, **link; /* the room's lock guards both */
    bool             entered;      /* only the member's own task uses it */
};

static void enter(struct member *member)
{
    struct room *room = member->room;
    janus_shield_begin(); /* a cancel must not end the wait for the lock */
    JANUS_IGNORE(janus_mutex_lock(&room->lock));
    member->next = room->first;
    member->link = &room->first;
    if (member->next != NULL) member->next->link = &member->next;
    room->first = member;
    member->entered = true;
    JANUS_IGNORE(janus_mutex_unlock(&room->lock));
    janus_shield_end();
}

/* A defer: it runs when the handler's task ends, however it ends. */
static void leave(void *argument)
{
    struct member *member = argument;
    if (!member->entered) return;
    JANUS_IGNORE(janus_mutex_lock(&member->room->lock));
    *member->link = member->next;
    if (member->next != NULL) member->next->link = member->link;
    JANUS_IGNORE(janus_mutex_unlock(&member->room->lock));
}

static void tell_all(struct room *room, const struct message *message)
{
    if (janus_mutex_lock(&room->lock) != JANUS_OK) return;
    for (struct member *member = room->first; member != NULL; member = member->next) {
        JANUS_IGNORE(janus_channel_send(member->queue, message)); /* it never waits */
    }
    JANUS_IGNORE(janus_mutex_unlock(&room->lock));
}

static int64_t send_all(void *argument)
{
    struct member *member = argument;
    struct message message;
    while (janus_channel_recv(member->queue, &message) == JANUS_OK) {
        if (janus_websocket_send(member->socket, JANUS_WEBSOCKET_KIND_TEXT, message.bytes,
                                 message.count) != JANUS_OK) {
            break;
        }
    }
    return 0;
}

static void read_all(struct member *member)
{
    janus_websocket_message got;
    while (janus_websocket_read(member->socket, &got) == JANUS_OK) {
        struct message message = {.count = got.count};
        memcpy(message.bytes, got.bytes, got.count);
        janus_free(got.bytes);
        tell_all(member->room, &message);
    }
}

static int64_t chat(janus_http *http, const janus_http_request *request)
{
    struct member *member = janus_alloc(sizeof *member); /* until the task ends */
    janus_status   status;
    if (member == NULL) return JANUS_NO_MEMORY;
    *member = (struct member){.room = request->argument};
    status = janus_channel_create(sizeof(struct message), QUEUE,
                                  JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_DROP_OLDEST),
                                  &member->queue);
    if (status != JANUS_OK) return status;
    status =
        janus_websocket_accept(http, JANUS_WEBSOCKET_OPTIONS(.max_bytes = TEXT), &member->socket);
    if (status != JANUS_OK) return 0; /* the client has its answer */
    if ((status = janus_defer(leave, member)) != JANUS_OK) return status;
    enter(member);
    JANUS_NURSERY(sender, status)
    {
        if (janus_spawn(sender, send_all, member) == JANUS_OK) read_all(member);
        JANUS_IGNORE(janus_channel_close(member->queue));
    }
    janus_websocket_destroy(member->socket);
    return 0;
}

static const janus_http_route routes[] = {
    {JANUS_HTTP_METHOD_GET, "/chat", chat, NULL},
    {0, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    static struct room room;
    const char        *at = argc > 1 ? argv[1] : "127.0.0.1:8080";
    janus_mutex_init(&room.lock, "room");
    return janus_http_run(at, NULL, &room, JANUS_HTTP_OPTIONS(.routes = routes)) == JANUS_OK ? 0
                                                                                             : 1;
}
