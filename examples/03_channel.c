/* SPDX-License-Identifier: MIT */
/*
 * Channels: three workers receive jobs from one channel and send results to another. The program
 * waits for results and for the end with one select.
 */
#include <janusrt/janus.h>
#include <stdio.h>

struct shop {
    janus_channel jobs, results, done;
};

static int64_t worker(void *argument)
{
    struct shop *shop = argument;
    int          number;
    while (janus_channel_recv(shop->jobs, &number) == JANUS_OK) {
        number *= number;
        if (janus_channel_send(shop->results, &number) != JANUS_OK) break;
    }
    return 0;
}

static int64_t boss(void *argument)
{
    struct shop *shop = argument;
    janus_status ended;
    JANUS_NURSERY(workers, ended)
    {
        janus_status status = JANUS_OK;
        for (int i = 0; i < 3 && status == JANUS_OK; i++)
            status = janus_spawn(workers, worker, shop);
        for (int i = 1; i <= 10 && status == JANUS_OK; i++) {
            status = janus_channel_send(shop->jobs, &i);
        }
        janus_channel_close(shop->jobs); /* the workers finish the jobs that are left, then end */
    }
    janus_status told = janus_channel_close(shop->done);
    return ended != JANUS_OK ? ended : told;
}

static int64_t program(void *argument)
{
    struct shop  shop;
    int          number = 0, sum = 0;
    size_t       chosen = 0;
    janus_status status = JANUS_OK;
    (void)argument;
    if (janus_channel_create(sizeof(int), 4, NULL, &shop.jobs) != JANUS_OK) return -100;
    if (janus_channel_create(sizeof(int), 0, NULL, &shop.results) != JANUS_OK) return -100;
    if (janus_channel_create(0, 0, NULL, &shop.done) != JANUS_OK) return -100;
    janus_select_case cases[] = {{.channel = shop.results, .value = &number},
                                 {.channel = shop.done}};
    janus_status      ended;
    JANUS_NURSERY(n, ended)
    {
        if ((status = janus_spawn(n, boss, &shop)) != JANUS_OK) break;
        while ((status = janus_select(cases, 2, &chosen)) == JANUS_OK) sum += number;
    }
    if (ended != JANUS_OK) return ended;
    printf("%d, then case %d: %s\n", sum, (int)chosen, janus_status_name(status));
    janus_channel_destroy(shop.jobs);
    janus_channel_destroy(shop.results);
    janus_channel_destroy(shop.done);
    return 0;
}

int main(void) { return janus_run(NULL, program, NULL, NULL) == JANUS_OK ? 0 : 1; }

/* Prints:
 * 385, then case 1: JANUS_CLOSED
 */
