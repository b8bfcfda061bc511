/* SPDX-License-Identifier: MIT */
/* Names of the simulated network: numbers, "localhost", and a table that the program fills. */
#include "sim/network.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* The port of a service; -1: unknown. No file of the machine decides. */
static int port_of(const char *service)
{
    static const struct {
        const char *name;
        int         port;
    } known[] = {{"ftp", 21},   {"ssh", 22},    {"smtp", 25},  {"domain", 53},
                 {"http", 80},  {"pop3", 110},  {"ntp", 123},  {"imap", 143},
                 {"ldap", 389}, {"https", 443}, {"ldaps", 636}};
    if (service == NULL || *service == '\0') return 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, service) == 0) return known[i].port;
    }
    char *end;
    long  port = strtol(service, &end, 10);
    return *end == '\0' && *service >= '0' && *service <= '9' && port <= 65535 ? (int)port : -1;
}

/* False: it is no number. */
static bool number_of(const char *host, janus_address *out)
{
    *out = (janus_address){.family = JANUS_FAMILY_IPV4, .count = 4};
    if (inet_pton(AF_INET, host, out->bytes) == 1) return true;
    *out = (janus_address){.family = JANUS_FAMILY_IPV6, .count = 16};
    return inet_pton(AF_INET6, host, out->bytes) == 1;
}

static size_t add(janus_address *out, size_t max, size_t count, janus_address at, int port)
{
    at.port = (uint16_t)port;
    if (count < max) out[count++] = at;
    return count;
}

/* The answer of a name server takes time, or does not come. */
static bool await_answer(struct jrt_sim *net)
{
    _Atomic(uint32_t) word = 0;
    uint64_t          until = jrt_sim_now(net) + jrt_sim_delay(net, NULL, SIM_ACT_LOOK_UP);
    bool              lost = jrt_sim_fails(net, JRT_FAULT_REFUSE, NULL, SIM_ACT_LOOK_UP);
    while (jrt_sim_now(net) < until) (void)net->world->wait(net->world, &word, 0, until);
    return !lost;
}

int jrt_sim_look_up(const char *host, const char *service, janus_address *out, size_t max)
{
    static const char *const loopback[] = {"127.0.0.1", "::1"};
    struct jrt_sim          *net = jrt_sim();
    janus_address            at;
    size_t                   count = 0;
    int                      port = port_of(service);
    if (net == NULL) return -ENOMEM;
    if (port < 0) return -ENOENT;
    bool here = host == NULL || *host == '\0' || strcmp(host, "localhost") == 0;
    if (!here && number_of(host, &at)) return (int)add(out, max, 0, at, port);
    for (int i = 0; here && i < 2; i++) {
        if (number_of(loopback[i], &at)) count = add(out, max, count, at, port);
    }
    if (here) return (int)count;
    if (!await_answer(net)) return -EAGAIN;
    for (const struct sim_host *known = net->hosts; known != NULL; known = known->next) {
        if (strcmp(known->name, host) == 0) count = add(out, max, count, known->at, port);
    }
    jrt_sim_note(net, 0, (int64_t)count);
    return count > 0 ? (int)count : -ENOENT;
}

int jrt_sim_host_add(const char *host, const janus_address *at)
{
    if (jrt_world_now() == NULL) return -ENOSYS;
    struct jrt_sim  *net = jrt_sim();
    size_t           bytes = strlen(host) + 1;
    struct sim_host *made = net != NULL ? malloc(sizeof *made + bytes) : NULL;
    if (made == NULL) return -ENOMEM;
    struct sim_host **last = &net->hosts; /* addresses keep the order in which they were added */
    while (*last != NULL) last = &(*last)->next;
    made->next = NULL;
    made->at = *at;
    memcpy(made->name, host, bytes);
    *last = made;
    return 0;
}

void jrt_sim_hosts_free(struct jrt_sim *net)
{
    while (net->hosts != NULL) {
        struct sim_host *next = net->hosts->next;
        free(net->hosts);
        net->hosts = next;
    }
}
