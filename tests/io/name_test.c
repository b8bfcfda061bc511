/* SPDX-License-Identifier: MIT */
/* Names: look-ups, how many at a time, how they end, and connecting to the best address. */
#include "../task/caps.h"
#include "sim/net.h"
#include "wire.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

/* A name server in this process: the library calls this getaddrinfo. Hosts that begin with "stuck"
 * get no answer until the gate opens. */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  gate_opens = PTHREAD_COND_INITIALIZER;
static bool            gate_open;
static atomic_int      asked, running, running_most, answered;

static const struct {
    const char *host, *addresses[4];
} hosts[] = {
    {"two.test", {"127.0.0.1", "::1"}},
    {"four.test", {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}},
    {"refuses.test", {"::1", "127.0.0.3", "127.0.0.1"}},
    {"hangs.test", {"127.0.0.2", "127.0.0.1"}},
};

static struct addrinfo *make_info(const char *text, uint16_t port, struct addrinfo *next)
{
    struct {
        struct addrinfo         info;
        struct sockaddr_storage at;
    }                   *made = calloc(1, sizeof *made);
    struct sockaddr_in  *four = (struct sockaddr_in *)&made->at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&made->at;
    janus_address        address;
    char                 whole[80];
    bool                 is_six = strchr(text, ':') != NULL;
    snprintf(whole, sizeof whole, is_six ? "[%s]:1" : "%s:1", text);
    CHECK_EQ(janus_address_parse(whole, &address), JANUS_OK);
    made->at.ss_family = is_six ? AF_INET6 : AF_INET;
    if (is_six) {
        six->sin6_port = htons(port);
        memcpy(&six->sin6_addr, address.bytes, 16);
    } else {
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, address.bytes, 4);
    }
    made->info = (struct addrinfo){.ai_family = made->at.ss_family,
                                   .ai_addr = (struct sockaddr *)&made->at,
                                   .ai_addrlen = is_six ? sizeof *six : sizeof *four,
                                   .ai_next = next};
    return &made->info;
}

static void wait_at_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    while (!gate_open) pthread_cond_wait(&gate_opens, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate_lock);
    gate_open = open;
    pthread_cond_broadcast(&gate_opens);
    pthread_mutex_unlock(&gate_lock);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    (void)hints;
    int now = atomic_fetch_add(&running, 1) + 1, most = atomic_load(&running_most);
    while (now > most && !atomic_compare_exchange_weak(&running_most, &most, now)) continue;
    atomic_fetch_add(&asked, 1);
    if (strncmp(host, "stuck", 5) == 0) wait_at_gate();
    struct addrinfo *first = NULL;
    uint16_t         port = service != NULL ? (uint16_t)atoi(service) : 0;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (strcmp(hosts[i].host, host) != 0) continue;
        for (int k = 3; k >= 0; k--) {
            if (hosts[i].addresses[k] == NULL) continue;
            first = make_info(hosts[i].addresses[k], port, first);
        }
    }
    *out = first;
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&answered, 1);
    if (strcmp(host, "silent.test") == 0) return EAI_AGAIN;
    return first != NULL ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *info)
{
    while (info != NULL) {
        struct addrinfo *next = info->ai_next;
        free(info);
        info = next;
    }
}

static void add_host(const char *host, const char *address)
{
    janus_address at;
    CHECK_EQ(janus_address_parse(address, &at), JANUS_OK);
    if (rig_simulated()) CHECK_EQ(jrt_sim_host_add(host, &at), 0);
}

/* Looking up. */

static int64_t resolve_numbers(void *argument)
{
    janus_address found[4];
    size_t        count = 0;
    char          text[JANUS_ADDRESS_TEXT_BYTES];
    int           before = atomic_load(&asked);
    (void)argument;
    CHECK_EQ(janus_resolve("127.0.0.1", "80", found, 4, &count), JANUS_OK);
    CHECK_EQ(count, 1);
    CHECK(strcmp(janus_address_text(found, text, sizeof text), "127.0.0.1:80") == 0);
    CHECK_EQ(janus_resolve("::1", NULL, found, 4, &count), JANUS_OK);
    CHECK_EQ(count, 1);
    CHECK_EQ(found[0].family, JANUS_FAMILY_IPV6);
    CHECK_EQ(atomic_load(&asked), before);
    return 0;
}

TEST("a numeric address needs no look-up, no right and no task")
{
    rig_all(resolve_numbers, NULL, 1);
    caps_all(resolve_numbers, NULL);
    if (!rig_simulated()) resolve_numbers(NULL);
}

static int64_t resolve_names(void *argument)
{
    janus_address found[4];
    size_t        count = 0;
    (void)argument;
    add_host("two.test", "127.0.0.1:0");
    add_host("two.test", "[::1]:0");
    add_host("four.test", "10.0.0.1:0");
    add_host("four.test", "10.0.0.2:0");
    add_host("four.test", "10.0.0.3:0");
    CHECK_EQ(janus_resolve("two.test", "8080", found, 4, &count), JANUS_OK);
    CHECK_EQ(count, 2);
    CHECK_EQ(found[0].family, JANUS_FAMILY_IPV4);
    CHECK_EQ(found[1].family, JANUS_FAMILY_IPV6);
    CHECK_EQ(found[0].port, 8080);
    CHECK_EQ(janus_resolve("four.test", NULL, found, 2, &count), JANUS_OK);
    CHECK_EQ(count, 2);
    CHECK_EQ(found[1].bytes[3], 2);
    CHECK_EQ(janus_resolve("nobody.test", "1", found, 4, &count), JANUS_NOT_FOUND);
    CHECK_EQ(count, 0);
    return 0;
}

TEST("a name has the addresses that the system reports, in its order")
{
    rig_all(resolve_names, NULL, 1);
    if (!rig_simulated()) resolve_names(NULL);
}

static int64_t resolve_badly(void *argument)
{
    janus_address found[1];
    size_t        count = 0;
    char          long_one[400];
    (void)argument;
    memset(long_one, 'a', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    CHECK_EQ(janus_resolve(NULL, "1", found, 1, &count), JANUS_INVALID);
    CHECK_EQ(janus_resolve("", "1", found, 1, &count), JANUS_INVALID);
    CHECK_EQ(janus_resolve(long_one, "1", found, 1, &count), JANUS_INVALID);
    CHECK_EQ(janus_resolve("two.test", long_one, found, 1, &count), JANUS_INVALID);
    CHECK_EQ(janus_resolve("two.test", "1", found, 0, &count), JANUS_INVALID);
    CHECK_EQ(janus_resolve("two.test", "1", NULL, 1, &count), JANUS_INVALID);
    CHECK_EQ(janus_connect_name("two.test", NULL, NULL, NULL), JANUS_INVALID);
    if (!rig_simulated()) {
        CHECK_EQ(janus_resolve("silent.test", "1", found, 1, &count), JANUS_UNREACHABLE);
    }
    return 0;
}

TEST("a name without an answer is unreachable, and a name of 400 bytes is invalid")
{
    rig_all(resolve_badly, NULL, 1);
}

static int64_t resolve_bad_services(void *argument)
{
    static const char *const bad[] = {
        "65536", "74936", "4294967376", "18446744073709551696", "", "-1", "+5", " 80", "\t80"};
    static const char *const names[] = {"localhost", "two.test", "127.0.0.1", "::1"};
    janus_address            found[4];
    size_t                   count = 0;
    int                      before = atomic_load(&asked);
    janus_io                 io;
    (void)argument;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            CHECK_EQ(janus_resolve(names[k], bad[i], found, 4, &count), JANUS_INVALID);
            CHECK_EQ(janus_connect_name(names[k], bad[i], NULL, &io), JANUS_INVALID);
        }
    }
    CHECK_EQ(atomic_load(&asked), before);
    CHECK_EQ(janus_resolve("127.0.0.1", "65535", found, 4, &count), JANUS_OK);
    CHECK_EQ(found[0].port, 65535);
    return 0;
}

TEST("a port above 65535, with a sign or a space, or an empty one is invalid, and nobody is asked")
{
    rig_all(resolve_bad_services, NULL, 1);
}

static int64_t resolve_without_right(void *argument)
{
    janus_address found[1];
    size_t        count = 0;
    int           before = atomic_load(&asked);
    (void)argument;
    CHECK_EQ(janus_resolve("two.test", "1", found, 1, &count), JANUS_NO_NET_CAP);
    CHECK_EQ(atomic_load(&asked), before);
    return 0;
}

TEST("in :sovereign a look-up needs net.resolve") { caps_all(resolve_without_right, NULL); }

/* Many at a time. */

enum { STUCK = 65 };

static atomic_int begun, cancelled;

static int64_t resolve_stuck(void *argument)
{
    janus_address found[1];
    size_t        count = 0;
    (void)argument;
    atomic_fetch_add(&begun, 1);
    if (janus_resolve("stuck.test", "1", found, 1, &count) == JANUS_CANCELLED) {
        atomic_fetch_add(&cancelled, 1);
    }
    return JANUS_CANCELLED;
}

static int64_t add_one(void *argument) { return ++*(int *)argument; }

static int64_t sixty_five(void *argument)
{
    janus_nursery n;
    int           calls = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < STUCK; i++) CHECK_EQ(janus_spawn(&n, resolve_stuck, NULL), JANUS_OK);
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load(&running) < 8 || atomic_load(&begun) < STUCK) {
        CHECK(janus_now_ns() < limit);
        JANUS_IGNORE(janus_yield());
    }
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_blocking(add_one, &calls, NULL), JANUS_OK);
    CHECK_EQ(calls, 10);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(atomic_load(&running), 8); /* nobody waits for them */
    return 0;
}

static void await_threads(int already)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while ((atomic_load(&running) > 0 || atomic_load(&answered) < already + 8) &&
           janus_now_ns() < limit) {
        sched_yield();
    }
    CHECK_EQ(atomic_load(&running), 0);
}

TEST("65 look-ups that get no answer run eight at a time, hold up nobody, and end when cancelled")
{
    RIG_REAL("the name server is this program");
    int already = atomic_load(&answered);
    set_gate(false);
    atomic_store(&begun, 0);
    atomic_store(&cancelled, 0);
    atomic_store(&running_most, 0);
    rig_run(2, sixty_five, NULL, 1); /* the scheduler ends while they run */
    CHECK_EQ(atomic_load(&cancelled), STUCK);
    CHECK_EQ(atomic_load(&running_most), 8);
    set_gate(true);
    await_threads(already);
    CHECK_EQ(atomic_load(&answered), already + 8); /* the others never began */
    rig_run(2, resolve_names, NULL, 1);            /* and new ones go on */
}

/* Shares. A plugin is a task with a nursery that has a capability. */

enum { PLUGINS = 12 };

struct plugin {
    const janus_authority *root;
    janus_entry           *entry;
    int                    count; /* of its children */
};

static int64_t run_plugin(void *argument)
{
    const struct plugin *self = argument;
    janus_nursery        n;
    janus_cap_limits     all;
    CHECK_EQ(janus_net_limits_parse("all", 100, &all.net), JANUS_OK);
    janus_cap cap = caps_mint(self->root, JANUS_CAP_KIND_NET, JANUS_RIGHTS_ALL, &all);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.net_cap = cap)), JANUS_OK);
    for (int i = 0; i < self->count; i++) {
        CHECK_EQ(janus_spawn(&n, self->entry, NULL), JANUS_OK);
    }
    return janus_nursery_end(&n, NULL);
}

static int64_t resolve_two(void *argument)
{
    janus_address found[2];
    size_t        count = 0;
    janus_status  status;
    (void)argument;
    JANUS_TIMEOUT(status, rig_patience)
    CHECK_EQ(janus_resolve("two.test", "1", found, 2, &count), JANUS_OK);
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(count, 2);
    return 0;
}

static int64_t shares(void *argument)
{
    janus_authority *root = caps_root();
    struct plugin    stuck = {root, resolve_stuck, STUCK}, fine = {root, resolve_two, 5};
    uint64_t         limit = janus_now_ns() + rig_patience;
    janus_nursery    plugins, others;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&plugins, NULL), JANUS_OK);
    for (int i = 0; i < PLUGINS; i++) {
        CHECK_EQ(janus_spawn(&plugins, run_plugin, &stuck), JANUS_OK);
        /* The first plugin has half of the threads, each other at least one. */
        while (atomic_load(&running) < 8 + i || atomic_load(&begun) < (i + 1) * STUCK) {
            JANUS_IGNORE(janus_yield());
            CHECK(janus_now_ns() < limit);
        }
        if (i == 0) CHECK_EQ(atomic_load(&running_most), 8);
        CHECK_EQ(resolve_two(NULL), 0); /* a task beside the plugins */
        CHECK_EQ(janus_nursery_open(&others, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&others, run_plugin, &fine), JANUS_OK); /* another plugin */
        CHECK_EQ(janus_nursery_end(&others, NULL), JANUS_OK);
    }
    CHECK(atomic_load(&running_most) <= 16 + PLUGINS);
    CHECK_EQ(janus_nursery_cancel(&plugins), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&plugins, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("plugins whose look-ups get no answer leave threads for the look-ups of their neighbours")
{
    RIG_REAL("the name server is this program");
    set_gate(false);
    atomic_store(&begun, 0);
    atomic_store(&cancelled, 0);
    atomic_store(&running_most, 0);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_tasks = JANUS_UNLIMITED),
                       shares, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(atomic_load(&cancelled), PLUGINS * STUCK);
    CHECK(atomic_load(&running) >= 8 + PLUGINS - 1);
    rig_run(1, resolve_two, NULL, 1); /* another scheduler */
    set_gate(true);
    await_threads(0);
}

static int64_t resolve_late(void *argument)
{
    janus_io     io;
    janus_status status = janus_connect_name(
        "stuck.test", "1", JANUS_CONNECT_OPTIONS(.deadline_ns = janus_now_ns() + rig_ms), &io);
    (void)argument;
    CHECK_EQ(status, JANUS_DEADLINE);
    return 0;
}

TEST("the deadline of a connect ends its look-up")
{
    RIG_REAL("the name server is this program");
    set_gate(false);
    rig_run(1, resolve_late, NULL, 1);
    set_gate(true);
    resolve_names(NULL);
}

/* Connecting. */

static void connect_to(const char *host, uint16_t port, janus_io listener)
{
    janus_io ends[2];
    char     service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    CHECK_EQ(janus_connect_name(host, service, NULL, &ends[0]), JANUS_OK);
    CHECK_EQ(janus_accept(listener, &ends[1], NULL), JANUS_OK);
    wire_put(ends[0], "x", 1);
    CHECK_EQ(wire_get(ends[1]), 'x');
    wire_close(ends);
}

static int64_t skip_refused(void *argument)
{
    janus_address at;
    janus_io      listener = wire_listen(&at), io;
    char          service[8];
    (void)argument;
    add_host("refuses.test", "[::1]:0");
    add_host("refuses.test", "127.0.0.3:0");
    add_host("refuses.test", "127.0.0.1:0");
    int before = wire_sockets();
    connect_to("refuses.test", at.port, listener);
    CHECK_EQ(wire_sockets(), before);
    connect_to("127.0.0.1", at.port, listener);
    CHECK_EQ(janus_io_close(listener), JANUS_OK);
    snprintf(service, sizeof service, "%u", (unsigned)at.port);
    CHECK_EQ(janus_connect_name("refuses.test", service, NULL, &io), JANUS_REFUSED);
    CHECK_EQ(janus_connect_name("nobody.test", service, NULL, &io), JANUS_NOT_FOUND);
    return 0;
}

TEST("a connect by name takes the first address that answers")
{
    rig_all(skip_refused, NULL, 3);
    if (!rig_simulated()) skip_refused(NULL);
}

/* A port at which 127.0.0.2 answers no connect, because its queue is full, and 127.0.0.1 does. */
struct trap {
    int           full, filler;
    janus_io      listener;
    janus_address at;
};

static void trap_open(struct trap *trap)
{
    struct sockaddr_in native = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
    trap->listener = wire_listen(&trap->at);
    trap->full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    native.sin_port = htons(trap->at.port);
    CHECK_EQ(bind(trap->full, (struct sockaddr *)&native, sizeof native), 0);
    CHECK_EQ(listen(trap->full, 0), 0);
    trap->filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(trap->filler, (struct sockaddr *)&native, sizeof native), 0);
}

static void trap_close(const struct trap *trap)
{
    close(trap->full);
    close(trap->filler);
    CHECK_EQ(janus_io_close(trap->listener), JANUS_OK);
}

static int64_t race(void *argument)
{
    struct trap trap;
    (void)argument;
    trap_open(&trap);
    int before = wire_sockets();
    connect_to("hangs.test", trap.at.port, trap.listener);
    CHECK_EQ(wire_sockets(), before);
    trap_close(&trap);
    return 0;
}

TEST("an address that does not answer is overtaken by the next, and its socket is closed")
{
    RIG_REAL("the first address hangs in the kernel");
    rig_run(1, race, NULL, 1);
    rig_run(2, race, NULL, 1);
    race(NULL);
}

static int64_t connect_in_vain(void *argument)
{
    struct trap *trap = argument;
    janus_io     io;
    char         service[8];
    snprintf(service, sizeof service, "%u", (unsigned)trap->at.port);
    return janus_connect_name("hangs.test", service, NULL, &io);
}

static int64_t cancel_race(void *argument)
{
    struct trap   trap;
    janus_nursery n;
    (void)argument;
    trap_open(&trap);
    int before = wire_sockets();
    CHECK_EQ(janus_io_close(trap.listener), JANUS_OK); /* the second address refuses */
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, connect_in_vain, &trap), JANUS_OK);
        uint64_t limit = janus_now_ns() + rig_patience;
        while (wire_sockets() < before && janus_now_ns() < limit) {
            JANUS_IGNORE(janus_yield()); /* until its first socket is open */
        }
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(wire_sockets(), before - 1);
    }
    close(trap.full);
    close(trap.filler);
    return 0;
}

TEST("a cancelled connect by name closes all its sockets")
{
    RIG_REAL("the first address hangs in the kernel");
    rig_run(1, cancel_race, NULL, 1);
    rig_run(2, cancel_race, NULL, 1);
}
