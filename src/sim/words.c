/* SPDX-License-Identifier: MIT */
/* Choices of the simulated network, and what reports say about them. */
#include "sim/network.h"

#include <stdio.h>
#include <string.h>

static const uint64_t us = 1000;
static const uint64_t ms = 1000000;
static const uint64_t second = 1000000000;

/* Choices. */

/* A socket counts its choices for reports alone, so callers need not be able to change it. */
static uint32_t *asked(const struct sim_socket *socket)
{
    return ((struct sim_socket *)(uintptr_t)socket)->asked;
}

static void begin(struct jrt_sim *net, const struct sim_socket *socket, enum sim_act act)
{
    net->fact.act = act;
    net->fact.socket = socket;
    net->fact.asked = socket != NULL ? asked(socket)[act]++ : net->asked[act]++;
    if (socket == NULL) return;
    net->fact.number = act == SIM_ACT_READ ? socket->reads : socket->writes;
}

static uint64_t choose_time(struct jrt_sim *net, const uint64_t *times)
{
    memcpy(net->fact.amounts, times, SIM_ANSWERS * sizeof *times);
    return times[net->world->choose(net->world, JRT_CHOOSE_DELAY, SIM_ANSWERS)];
}

uint64_t jrt_sim_delay(struct jrt_sim *net, const struct sim_socket *socket, enum sim_act act)
{
    const uint64_t times[SIM_ANSWERS] = {sim_short_ns, 200 * us, ms, 20 * ms};
    begin(net, socket, act);
    return choose_time(net, times);
}

uint64_t jrt_sim_stall(struct jrt_sim *net, const struct sim_socket *socket)
{
    const uint64_t times[SIM_ANSWERS] = {second, 5 * second, 20 * second, 60 * second};
    begin(net, socket, SIM_ACT_STALL);
    return choose_time(net, times);
}

/* The answers are: all, one byte, half, all but one. Those that mean the same are left out. */
uint32_t jrt_sim_cut(struct jrt_sim *net, const struct sim_socket *socket, enum sim_act act,
                     uint32_t count, uint64_t whole)
{
    uint64_t *amounts = net->fact.amounts;
    uint32_t  answers = count > 3 ? 4 : count;
    amounts[0] = count;
    amounts[1] = 1;
    amounts[2] = count > 3 ? count / 2 : 2;
    amounts[3] = count - 1;
    if (answers < 2) return count;
    begin(net, socket, act);
    net->fact.whole = whole;
    return (uint32_t)amounts[net->world->choose(net->world, JRT_CHOOSE_CUT, answers)];
}

bool jrt_sim_fails(struct jrt_sim *net, enum jrt_fault fault, const struct sim_socket *socket,
                   enum sim_act act)
{
    begin(net, socket, act);
    return net->world->fails(net->world, fault);
}

/* Words. */

void jrt_sim_who(const struct sim_socket *socket, char *out, size_t bytes)
{
    if (socket->link == NULL) {
        const char *kind = socket->what == SIM_LISTENER   ? "listener"
                           : socket->what == SIM_DATAGRAM ? "socket"
                                                          : "client";
        (void)snprintf(out, bytes, "%s %u", kind, socket->number);
        return;
    }
    switch (socket->link->kind) {
    case SIM_TCP:
    case SIM_UNIX:
        (void)snprintf(out, bytes, "%s %u", socket->end == 0 ? "client" : "server",
                       socket->link->number);
        break;
    case SIM_PAIR:
        (void)snprintf(out, bytes, "pair %u's %s end", socket->link->number,
                       socket->end == 0 ? "first" : "second");
        break;
    case SIM_PIPE:
        (void)snprintf(out, bytes, "pipe %u's %s", socket->link->number,
                       socket->end == 0 ? "reader" : "writer");
        break;
    }
}

/* "first", "second", "11th". */
static void put_ordinal(uint32_t number, char *out, size_t bytes)
{
    static const char *const names[] = {"first", "second",  "third",  "fourth", "fifth",
                                        "sixth", "seventh", "eighth", "ninth",  "tenth"};
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    if (number >= 1 && number <= 10) {
        (void)snprintf(out, bytes, "%s", names[number - 1]);
        return;
    }
    bool teen = number / 10 % 10 == 1;
    (void)snprintf(out, bytes, "%u%s", number, ends[number % 10 < 4 && !teen ? number % 10 : 0]);
}

static void put_time(uint64_t ns, char *out, size_t bytes)
{
    bool long_one = ns >= second;
    if (long_one) {
        (void)snprintf(out, bytes, "%llu s", (unsigned long long)(ns / second));
    } else if (ns >= ms) {
        (void)snprintf(out, bytes, "%llu ms", (unsigned long long)(ns / ms));
    } else {
        (void)snprintf(out, bytes, "%llu us", (unsigned long long)(ns / us));
    }
}

static void tell_fault(const struct sim_fact *fact, const char *who, const char *which, char *out,
                       size_t bytes)
{
    uint32_t link =
        fact->socket != NULL && fact->socket->link != NULL ? fact->socket->link->number : 0;
    switch (fact->act) {
    case SIM_ACT_RESET: (void)snprintf(out, bytes, "connection %u was reset", link); break;
    case SIM_ACT_STALL: (void)snprintf(out, bytes, "connection %u stalled", link); break;
    case SIM_ACT_CONNECT: (void)snprintf(out, bytes, "%s's connect was refused", who); break;
    case SIM_ACT_LOOK_UP: (void)snprintf(out, bytes, "a look-up got no answer"); break;
    case SIM_ACT_EDGE: (void)snprintf(out, bytes, "%s had an event for no reason", who); break;
    case SIM_ACT_LOST: (void)snprintf(out, bytes, "%s's %s datagram was lost", who, which); break;
    case SIM_ACT_TWICE:
        (void)snprintf(out, bytes, "%s's %s datagram came twice", who, which);
        break;
    default: (void)snprintf(out, bytes, "the system had no descriptor left"); break;
    }
}

static void tell_delay(const struct sim_fact *fact, const char *who, const char *which,
                       uint32_t value, char *out, size_t bytes)
{
    char time[24];
    put_time(fact->amounts[value], time, sizeof time);
    switch (fact->act) {
    case SIM_ACT_TRAVEL:
        (void)snprintf(out, bytes, "%s's %s write travelled for %s", who, which, time);
        break;
    case SIM_ACT_DATAGRAM:
        (void)snprintf(out, bytes, "%s's %s datagram travelled for %s", who, which, time);
        break;
    case SIM_ACT_CONNECT: (void)snprintf(out, bytes, "%s's connect took %s", who, time); break;
    case SIM_ACT_LOOK_UP: (void)snprintf(out, bytes, "a look-up took %s", time); break;
    case SIM_ACT_STALL: (void)snprintf(out, bytes, "the stall at %s lasted %s", who, time); break;
    default: (void)snprintf(out, bytes, "the end of %s's bytes travelled for %s", who, time); break;
    }
}

static const uint32_t our_faults = JRT_FAULT_RESET | JRT_FAULT_STALL | JRT_FAULT_REFUSE |
                                   JRT_FAULT_DESCRIPTOR | JRT_FAULT_EDGE | JRT_FAULT_LOST;

/* Whether the network makes this choice. */
static bool is_ours(const struct jrt_world *world, enum jrt_choice kind)
{
    if (((const struct world *)world)->network == NULL) return false;
    if (kind == JRT_CHOOSE_FAULT) return (world->fault & our_faults) != 0;
    return kind == JRT_CHOOSE_CUT || kind == JRT_CHOOSE_DELAY;
}

/* A number for the socket's kind and end. */
static uint32_t rank_of(const struct sim_socket *socket)
{
    if (socket == NULL) return 0;
    if (socket->link != NULL) return 2 + 2 * (uint32_t)socket->link->kind + socket->end;
    return socket->what == SIM_LISTENER ? 1 : socket->what == SIM_DATAGRAM ? 15 : 2;
}

bool jrt_sim_choice(const struct jrt_world *world, enum jrt_choice kind, uint32_t *out_who,
                    uint32_t *out_number)
{
    if (!is_ours(world, kind)) return false;
    const struct sim_fact   *fact = &((const struct world *)world)->network->fact;
    const struct sim_socket *socket = fact->socket;
    uint32_t                 number = socket == NULL         ? 0
                                      : socket->link != NULL ? socket->link->number
                                                             : socket->number;
    *out_who = JRT_SIM_CHOICES | (number & 0x3fffffu) << 8 | rank_of(socket) << 4 | fact->act;
    *out_number = fact->asked;
    return true;
}

bool jrt_sim_words(const struct jrt_world *world, enum jrt_choice kind, uint32_t value, char *out,
                   size_t bytes)
{
    const struct jrt_sim *net = ((const struct world *)world)->network;
    char                  who[40] = "", which[16];
    if (!is_ours(world, kind)) return false;
    const struct sim_fact *fact = &net->fact;
    if (fact->socket != NULL) jrt_sim_who(fact->socket, who, sizeof who);
    put_ordinal(fact->number, which, sizeof which);
    switch (kind) {
    case JRT_CHOOSE_FAULT: tell_fault(fact, who, which, out, bytes); return true;
    case JRT_CHOOSE_CUT: {
        unsigned long long got = fact->amounts[value % SIM_ANSWERS];
        bool               reads = fact->act == SIM_ACT_READ;
        (void)snprintf(out, bytes, "%s's %s %s %llu byte%s of %llu", who, which,
                       reads ? "read got" : "write took", got, got == 1 ? "" : "s",
                       (unsigned long long)fact->whole);
        return true;
    }
    case JRT_CHOOSE_DELAY:
        tell_delay(fact, who, which, value % SIM_ANSWERS, out, bytes);
        return true;
    default: return false;
    }
}

/* Leaks. */

void jrt_sim_label(int fd, const char *text)
{
    if (!jrt_net_is_simulated(fd) || jrt_world_now() == NULL) return;
    struct sim_socket *socket = jrt_sim_find(jrt_sim(), fd);
    if (socket == NULL) return;
    socket->label[0] = '\0';
    if (text != NULL) (void)snprintf(socket->label, sizeof socket->label, "%s", text);
}

void jrt_sim_note_handle(int fd, const uint64_t handle[2])
{
    struct sim_socket *socket = jrt_sim_find(jrt_sim(), fd);
    if (socket != NULL) memcpy(socket->handle, handle, sizeof socket->handle);
}

static size_t put_leak(const struct sim_socket *socket, char *out, size_t bytes)
{
    char   who[40];
    size_t used = 0;
    jrt_sim_who(socket, who, sizeof who);
    used += (size_t)snprintf(out, bytes, "%s", who);
    if (used < bytes && socket->label[0] != '\0') {
        used += (size_t)snprintf(out + used, bytes - used, " (%s)", socket->label);
    }
    uint32_t unread = socket->link != NULL ? jrt_sim_in(socket)->count : socket->mail_bytes;
    if (used < bytes && unread > 0) {
        used += (size_t)snprintf(out + used, bytes - used, " with %u unread bytes", unread);
    }
    return used;
}

uint32_t jrt_sim_leaks(struct jrt_world *world, char *out, size_t bytes)
{
    struct jrt_sim *net = ((struct world *)world)->network;
    if (net == NULL || net->open == 0) return 0;
    bool   one = net->open == 1;
    size_t used = (size_t)snprintf(out, bytes, "%u descriptor%s not closed: ", net->open,
                                   one ? " was" : "s were");
    bool   first = true;
    for (uint32_t i = 0; i < net->used && used < bytes; i++) {
        if (net->sockets[i] == NULL) continue;
        if (!first) used += (size_t)snprintf(out + used, bytes - used, ", ");
        first = false;
        if (used < bytes) used += put_leak(net->sockets[i], out + used, bytes - used);
    }
    net->told = true;
    return net->open;
}
