/* SPDX-License-Identifier: MIT */
/*
 * A ticker and 100,000 subscribers. Subscribers are idle most of the time, so they rest: they have
 * no stack while they wait. A million would need half a gigabyte, stacks for them five.
 * A channel gives each value to one receiver. Here all subscribers share a channel and take turns.
 * To give each value to everybody, give each subscriber a channel of its own. That needs larger
 * limits of the scheduler: max_channels, and a task_budget whose memory pays 512 bytes for each.
 */
#include <janusrt/janus.h>
#include <stdio.h>
#include <stdlib.h>

enum { SUBSCRIBERS = 100000, TICKS = 3 };

struct subscriber {
    janus_channel prices;
    int           price, sum;
};

struct ticker {
    janus_channel prices;
    int           ticks;
};

/* The library calls it with each price, and at last with CLOSED. */
static janus_rest on_price(void *state, janus_status woke)
{
    struct subscriber *self = state;
    if (woke != JANUS_OK) return janus_rest_done(woke == JANUS_CLOSED ? 0 : woke);
    self->sum += self->price;
    return janus_rest_recv(self->prices, &self->price);
}

/* The library calls it each millisecond. This step sends one value for each subscriber. Receivers
 * take turns, oldest first. A send may wait; the step then keeps its stack. */
static janus_rest on_tick(void *state, janus_status woke)
{
    struct ticker *self = state;
    if (woke != JANUS_OK) return janus_rest_done(woke);
    int price = 10 * ++self->ticks;
    for (int i = 0; i < SUBSCRIBERS; i++) {
        janus_status status = janus_channel_send(self->prices, &price);
        if (status != JANUS_OK) return janus_rest_done(status);
    }
    if (self->ticks == TICKS) {
        (void)janus_channel_close(self->prices);
        return janus_rest_done(0);
    }
    return janus_rest_sleep(JANUS_SECONDS / 1000);
}

static janus_status start_all(janus_nursery *n, struct subscriber *all, struct ticker *ticker)
{
    janus_status status = JANUS_OK;
    for (int i = 0; i < SUBSCRIBERS && status == JANUS_OK; i++) {
        all[i].prices = ticker->prices;
        janus_rest first = janus_rest_recv(ticker->prices, &all[i].price);
        status = janus_spawn_resting(n, first, on_price, &all[i], NULL, NULL);
    }
    if (status != JANUS_OK) return status;
    return janus_spawn_resting(n, janus_rest_sleep(0), on_tick, ticker, NULL, NULL);
}

static int64_t trade(void *argument)
{
    struct ticker      ticker = {.ticks = 0};
    struct subscriber *all = calloc(SUBSCRIBERS, sizeof *all);
    janus_status       status = JANUS_NO_MEMORY;
    (void)argument;
    if (all == NULL) return status;
    status = janus_channel_create(sizeof(int), 0, NULL, &ticker.prices);
    if (status != JANUS_OK) return status;
    JANUS_NURSERY(n, status)
    {
        if (start_all(n, all, &ticker) != JANUS_OK) (void)janus_nursery_cancel(n);
    }
    int64_t sum = 0;
    for (int i = 0; i < SUBSCRIBERS; i++) sum += all[i].sum;
    printf("%d ticks, and the prices add up to %lld\n", ticker.ticks, (long long)sum);
    (void)janus_channel_destroy(ticker.prices);
    free(all);
    return status;
}

int main(void)
{
    const janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.max_tasks = 2 * (uint64_t)SUBSCRIBERS);
    return janus_run(options, trade, NULL, NULL) == JANUS_OK ? 0 : 1;
}

/* Prints:
 * 3 ticks, and the prices add up to 6000000
 */
