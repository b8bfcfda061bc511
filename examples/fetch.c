/* SPDX-License-Identifier: MIT */
/*
 * Fetches all addresses at the same time. One deadline ends what takes too long.
 *   fetch SECONDS URL...
 */
#include <janusrt/http_client.h>
#include <janusrt/janus.h>
#include <stdio.h>
#include <stdlib.h>

struct page {
    janus_http_client *client;
    const char        *url;
    unsigned           code; /* of the answer */
    size_t             bytes;
    janus_status       status;
    const char        *why; /* what is wrong with the address or the answer; NULL: see `status` */
};

static int64_t fetch(void *argument)
{
    struct page      *page = argument;
    janus_http_reply *reply;
    char              bytes[4096];
    size_t            got = 0;
    page->status =
        janus_http_call(page->client, "GET", page->url,
                        JANUS_HTTP_CALL_OPTIONS(.max_redirects = 5, .out_why = &page->why), &reply);
    if (page->status != JANUS_OK) return 0; /* the others go on */
    page->code = janus_http_reply_status(reply);
    while ((page->status = janus_http_reply_read(reply, bytes, sizeof bytes, &got)) == JANUS_OK) {
        page->bytes += got;
    }
    if (page->status == JANUS_CLOSED) page->status = JANUS_OK; /* the end of the body */
    janus_http_reply_destroy(reply);
    return 0;
}

struct order {
    int    count;
    char **words;
};

static int64_t first_task(void *argument)
{
    const struct order *order = argument;
    struct page         pages[32] = {0};
    janus_http_client  *client;
    int                 count = order->count < 32 ? order->count : 32, failed = 0;
    uint64_t            end = janus_now_ns() + strtoul(order->words[0], NULL, 10) * JANUS_SECONDS;
    janus_status        status = janus_http_client_create(NULL, &client);
    if (status != JANUS_OK) return status;
    JANUS_NURSERY(fetches, status, .deadline_ns = end)
    {
        for (int i = 1; i < count; i++) {
            pages[i] = (struct page){.client = client, .url = order->words[i]};
            if (janus_spawn(fetches, fetch, &pages[i]) != JANUS_OK) break;
        }
    }
    for (int i = 1; i < count; i++) {
        const struct page *page = &pages[i];
        failed += page->status != JANUS_OK;
        if (page->status == JANUS_OK) {
            printf("%u, %zu bytes: %s\n", page->code, page->bytes, page->url);
        } else {
            const char *why = page->why != NULL ? page->why : janus_status_text(page->status);
            printf("%s: %s\n", why, page->url);
        }
    }
    return failed == 0 ? 0 : -100;
}

int main(int argc, char **argv)
{
    struct order order = {argc - 1, argv + 1};
    if (argc < 3) {
        fprintf(stderr, "usage: fetch SECONDS URL...\n");
        return 2;
    }
    return janus_run(NULL, first_task, &order, NULL) == JANUS_OK ? 0 : 1;
}
