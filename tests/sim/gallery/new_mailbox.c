/* SPDX-License-Identifier: MIT */
/*
 * A server that fails gets a new mailbox. Its supervisor moves what lies in the old one. A client
 * that had looked up the old mailbox before sends to it afterwards, and nobody reads it any more.
 */
#include "gallery.h"

enum { EACH = 2, CLIENTS = 2 };

struct shop {
    janus_channel boxes[2]; /* each has room for all */
    atomic_int    box;      /* of the server that runs */
    int           served;
    bool          mended;
};

static int64_t client(void *argument)
{
    struct shop *shop = argument;
    for (int i = 0; i < EACH; i++) {
        JANUS_EXPECT(janus_channel_send(shop->boxes[atomic_load(&shop->box)], &i) == JANUS_OK);
    }
    return 0;
}

/* Serves one order, then fails. */
static int64_t server(void *argument)
{
    struct shop *shop = argument;
    int          order;
    JANUS_EXPECT(janus_channel_recv(shop->boxes[atomic_load(&shop->box)], &order) == JANUS_OK);
    shop->served++;
    return 0;
}

static void restart(struct shop *shop)
{
    int order;
    if (shop->mended) return; /* the mailbox belongs to the place, not to the server */
    atomic_store(&shop->box, 1);
    while (janus_channel_try_recv(shop->boxes[0], &order) == JANUS_OK) {
        JANUS_EXPECT(janus_channel_send(shop->boxes[1], &order) == JANUS_OK);
    }
}

static int64_t supervisor(void *argument)
{
    struct shop *shop = argument;
    for (int life = 0; life < EACH * CLIENTS; life++) {
        JANUS_EXPECT(server(shop) == 0);
        if (life == 0) restart(shop);
    }
    return 0;
}

static int64_t new_mailbox(void *mended)
{
    struct shop  shop = {.mended = mended != NULL};
    janus_status status;
    for (int i = 0; i < 2; i++) {
        JANUS_EXPECT(janus_channel_create(sizeof(int), EACH * CLIENTS, NULL, &shop.boxes[i]) ==
                     JANUS_OK);
    }
    JANUS_NURSERY(n, status)
    {
        JANUS_EXPECT(janus_spawn(n, supervisor, &shop) == JANUS_OK);
        for (int i = 0; i < CLIENTS; i++) JANUS_EXPECT(janus_spawn(n, client, &shop) == JANUS_OK);
    }
    JANUS_EXPECT(status == JANUS_OK && shop.served == EACH * CLIENTS);
    for (int i = 0; i < 2; i++) (void)janus_channel_destroy(shop.boxes[i]);
    return 0;
}

const struct gallery_bug gallery_new_mailbox = {
    "new_mailbox", "a restart makes a new mailbox; a late letter goes to the old one", new_mailbox};
