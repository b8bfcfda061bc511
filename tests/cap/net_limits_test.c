/* SPDX-License-Identifier: MIT */
/* Capabilities for the network, files and processes: ranges of addresses, counts, and texts. */
#include "cap/net.h"
#include "places.h"
#include "realm.h"

#include <pthread.h>
#include <stdatomic.h>

/* Addresses inside and outside of a range. */

static bool allows(const char *range, const char *at, uint16_t port)
{
    janus_net_limits limits = place_range(range, 1);
    janus_address    address = place_at(at, port);
    return jrt_net_limits_allow(&limits, &address);
}

TEST("a range allows the addresses and ports inside, and no others")
{
    CHECK(allows("127.0.0.0/8:8000-8999", "127.0.0.1", 8000));
    CHECK(allows("127.0.0.0/8:8000-8999", "127.255.255.255", 8999));
    CHECK(!allows("127.0.0.0/8:8000-8999", "127.0.0.1", 7999));
    CHECK(!allows("127.0.0.0/8:8000-8999", "127.0.0.1", 9000));
    CHECK(!allows("127.0.0.0/8:8000-8999", "126.255.255.255", 8000));
    CHECK(!allows("127.0.0.0/8:8000-8999", "128.0.0.0", 8000));
    CHECK(!allows("127.0.0.0/8:8000-8999", "::1", 8000));
    CHECK(allows("10.1.2.3:443", "10.1.2.3", 443));
    CHECK(!allows("10.1.2.3:443", "10.1.2.2", 443));
    CHECK(allows("10.1.2.2/31:443", "10.1.2.3", 443));
    CHECK(!allows("10.1.2.2/31:443", "10.1.2.4", 443));
    CHECK(allows("[2001:db8::]/32", "2001:db8:ffff::1", 1));
    CHECK(!allows("[2001:db8::]/32", "2001:db9::", 1));
    CHECK(allows("[2001:db8:8000::]/33", "2001:db8:8000::1", 1));
    CHECK(!allows("[2001:db8:8000::]/33", "2001:db8:7fff::1", 1));
    CHECK(allows("*:80", "10.0.0.1", 80));
    CHECK(allows("*:80", "2001:db8::1", 80));
    CHECK(!allows("*:80", "10.0.0.1", 81));
    CHECK(allows("all", "10.0.0.1", 65535));
    CHECK(allows("all", "0.0.0.0", 0));
    CHECK(allows("all", "::", 0));
}

TEST("a forbidden IPv4 address is forbidden in its IPv6 spelling, too")
{
    CHECK(allows("127.0.0.0/8", "::ffff:127.0.0.1", 1));
    CHECK(!allows("127.0.0.0/8", "::ffff:10.0.0.1", 1));
    CHECK(!allows("127.0.0.0/8", "::127.0.0.1", 1)); /* another address, in no IPv4 range */
    CHECK(allows("[::ffff:127.0.0.0]/104", "127.0.0.1", 1));
    CHECK(!allows("[::1]", "::ffff:127.0.0.1", 1));
    CHECK(allows("[::]/80", "127.0.0.1", 1)); /* all of IPv4 lies in it */
}

TEST("an address or port that stands for all needs all")
{
    CHECK(allows("0.0.0.0/0:80", "0.0.0.0", 80));
    CHECK(allows("0.0.0.0/0:80", "::ffff:0.0.0.0", 80));
    CHECK(!allows("0.0.0.0/1:80", "0.0.0.0", 80));
    CHECK(!allows("0.0.0.0:80", "0.0.0.0", 80)); /* the system connects it to 127.0.0.1 */
    CHECK(!allows("127.0.0.0/8:80", "0.0.0.0", 80));
    CHECK(!allows("0.0.0.0/0:80", "::", 80));
    CHECK(!allows("[::]/1:80", "::", 80));
    CHECK(!allows("[::]/128:80", "::", 80));
    CHECK(allows("[::]/0:80", "::", 80));
    CHECK(allows("[::]/0:80", "0.0.0.0", 80));
    CHECK(allows("127.0.0.1", "127.0.0.1", 0));
    CHECK(allows("127.0.0.1:1-65535", "127.0.0.1", 0));
    CHECK(!allows("127.0.0.1:0-65534", "127.0.0.1", 0));
    CHECK(!allows("127.0.0.1:2-65535", "127.0.0.1", 0));
    CHECK(!allows("127.0.0.1:0", "127.0.0.1", 0));
}

TEST("limits of zeros allow no address at all")
{
    static const janus_net_limits zeros;
    const char *const             places[] = {"0.0.0.0",        "127.0.0.1", "::",      "::1",
                                              "::ffff:0.0.0.0", "unix",      "abstract"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        janus_address zero = place_at(places[i], 0), one = place_at(places[i], 1);
        CHECK(!jrt_net_limits_allow(&zeros, &zero));
        CHECK(!jrt_net_limits_allow(&zeros, &one));
    }
    janus_address none = {0};
    CHECK(!allows("none", "127.0.0.1", 1));
    CHECK(!allows("none", "unix", 0));
    CHECK(!allows("unix", "127.0.0.1", 1));
    CHECK(!allows("unix", "::", 0));
    janus_net_limits all = place_range("all", 1);
    CHECK(!jrt_net_limits_allow(&all, &none));
}

TEST("Unix sockets need a permission of their own")
{
    CHECK(allows("unix", "unix", 0));
    CHECK(allows("unix", "abstract", 0));
    CHECK(allows("all", "unix", 0));
    CHECK(!allows("[::]/0", "unix", 0));
    CHECK(!allows("*", "abstract", 0));
}

/* Deriving. */

static janus_status derive(struct realm *realm, janus_cap cap, janus_net_limits net)
{
    const janus_cap_limits limits = {.net = net};
    janus_cap              out;
    return janus_cap_attenuate_in(
        realm->table, cap, ALICE,
        JANUS_CAP_GRANT(.rights = JANUS_RIGHT_NET_CONNECT, .limits = &limits), &out);
}

TEST("a derived range lies inside the original, and has no more handles")
{
    struct realm           realm = realm_open(JANUS_PROFILE_SOVEREIGN);
    const janus_cap_limits limits = {.net = place_range("10.0.0.0/8:8000-8999", 10)};
    janus_cap              cap = mint(&realm, ALICE, JANUS_CAP_KIND_NET, &limits, 0);
    const struct {
        const char  *range;
        uint64_t     handles;
        janus_status status;
    } rows[] = {
        {"10.0.0.0/8:8000-8999", 10, JANUS_OK},
        {"10.0.0.0/9:8000-8999", 9, JANUS_OK},
        {"10.1.2.3:8500", 1, JANUS_OK},
        {"[::ffff:10.1.2.3]:8500", 1, JANUS_OK},
        {"10.0.0.0/8:8000-8999", 11, JANUS_CAP_WIDENS},
        {"10.0.0.0/7:8000-8999", 10, JANUS_CAP_WIDENS},
        {"11.0.0.0/8:8000-8999", 10, JANUS_CAP_WIDENS},
        {"11.0.0.0/9:8000-8999", 10, JANUS_CAP_WIDENS},
        {"0.0.0.0/0:8000-8999", 10, JANUS_CAP_WIDENS},
        {"*:8000-8999", 10, JANUS_CAP_WIDENS},
        {"10.0.0.0/8:7999-8999", 10, JANUS_CAP_WIDENS},
        {"10.0.0.0/8:8000-9000", 10, JANUS_CAP_WIDENS},
        {"10.0.0.0/8", 10, JANUS_CAP_WIDENS},
        {"unix", 10, JANUS_CAP_WIDENS},
        {"all", 10, JANUS_CAP_WIDENS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ(derive(&realm, cap, place_range(rows[i].range, rows[i].handles)), rows[i].status);
    }
    janus_net_limits bad = limits.net;
    bad.prefix[15] = 1; /* behind the prefix */
    CHECK_EQ(derive(&realm, cap, bad), JANUS_INVALID);
    const janus_cap_limits all = {.net = place_range("all", 10)};
    cap = mint(&realm, ALICE, JANUS_CAP_KIND_NET, &all, 0);
    CHECK_EQ(derive(&realm, cap, place_range("unix", 10)), JANUS_OK);
    CHECK_EQ(derive(&realm, cap, place_range("*", 10)), JANUS_OK);
    realm_close(&realm);
}

TEST("derived limits of files and processes are less or equal")
{
    struct realm           realm = realm_open(JANUS_PROFILE_SOVEREIGN);
    const janus_cap_limits file = {.file = {5, 100}}, process = {.process = {3}};
    const janus_cap_limits more_handles = {.file = {6, 100}}, more_bytes = {.file = {5, 101}};
    const janus_cap_limits less = {.file = {4, 99}}, more = {.process = {4}};
    janus_cap              files = mint(&realm, ALICE, JANUS_CAP_KIND_FILE, &file, 0);
    janus_cap              processes = mint(&realm, ALICE, JANUS_CAP_KIND_PROCESS, &process, 0);
    janus_cap              out;
#define DERIVE(cap, what)                                                                          \
    janus_cap_attenuate_in(realm.table, cap, ALICE,                                                \
                           JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = what), &out)
    CHECK_EQ(DERIVE(files, &more_handles), JANUS_CAP_WIDENS);
    CHECK_EQ(DERIVE(files, &more_bytes), JANUS_CAP_WIDENS);
    CHECK_EQ(DERIVE(files, &less), JANUS_OK);
    CHECK_EQ(DERIVE(processes, &more), JANUS_CAP_WIDENS);
    CHECK_EQ(DERIVE(processes, NULL), JANUS_OK);
#undef DERIVE
    realm_close(&realm);
}

TEST("limits of the network that mean nothing are not minted")
{
    struct realm           realm = realm_open(JANUS_PROFILE_SOVEREIGN);
    janus_cap              cap;
    const janus_net_limits wrong[] = {
        {.prefix_bits = 129},
        {.prefix = {1}},
        {.prefix = {0, 1}, .prefix_bits = 15},
        {.prefix = {[15] = 1}, .prefix_bits = 127},
        {.unix_sockets = 2},
        {.reserved = 1},
        {.port_first = 2, .port_last = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const janus_cap_limits limits = {.net = wrong[i]};
        CHECK_EQ(janus_cap_mint_in(realm.table, realm.root, ALICE,
                                   JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_NET,
                                                   .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                                   &cap),
                 JANUS_INVALID);
    }
    realm_close(&realm);
}

/* Texts. */

TEST("a range that is no range is refused, and nothing is written")
{
    static const char *const wrong[] = {"",
                                        "/8",
                                        ":80",
                                        "127.0.0.1/8",
                                        "127.0.0/8",
                                        "127.0.0.0/33",
                                        "127.0.0.0/",
                                        "127.0.0.1:",
                                        "1.2.3.4:80-",
                                        "1.2.3.4:65536",
                                        "1.2.3.4:9-8",
                                        "1.2.3.4 ",
                                        " 1.2.3.4",
                                        "1.2.3.4:80x",
                                        "::1",
                                        "[::1",
                                        "[::1]80",
                                        "[1.2.3.4]",
                                        "[::]/129",
                                        "[fe80::1%1]",
                                        "*/0",
                                        "host:80",
                                        "ALL",
                                        "unix:/x",
                                        "1.2.3.4:-1",
                                        "1.2.3.4:99999999999"};
    janus_net_limits         limits = {.max_handles = 7};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(janus_net_limits_parse(wrong[i], 1, &limits), JANUS_INVALID);
        CHECK_EQ(limits.max_handles, 7);
    }
    CHECK_EQ(janus_net_limits_parse(NULL, 1, &limits), JANUS_INVALID);
    CHECK_EQ(janus_net_limits_parse("*", 1, NULL), JANUS_INVALID);
    CHECK_EQ(janus_net_limits_parse("127.0.0.1:80-90", 1, &limits), JANUS_OK);
    CHECK_EQ(limits.max_handles, 1);
    CHECK_EQ(limits.prefix_bits, 128);
    CHECK_EQ(limits.port_first, 80);
    CHECK_EQ(limits.port_last, 90);
}

static void check_text(const char *range, const char *expected)
{
    janus_net_limits limits = place_range(range, 1);
    char             text[JRT_NET_TEXT_BYTES];
    jrt_net_limits_text(&limits, text, sizeof text);
    CHECK_STR(text, expected);
}

TEST("a range is shown as a person would write it")
{
    check_text("127.0.0.0/8:8000-8999", "127.0.0.0/8, ports 8000 to 8999");
    check_text("10.1.2.3:443", "10.1.2.3/32, port 443");
    check_text("[2001:db8::]/32", "[2001:db8::]/32, all ports");
    check_text("*:80", "all addresses, port 80");
    check_text("unix", "Unix sockets");
    check_text("none", "no address");
}

static void check_address(janus_address at, const char *expected, const char *name, uint16_t port)
{
    char                  text[JANUS_ADDRESS_TEXT_BYTES];
    struct jrt_cap_target target;
    jrt_net_address_text(&at, text, sizeof text);
    CHECK_STR(text, expected);
    jrt_net_target(&at, &target);
    CHECK_STR(target.name, name);
    CHECK_EQ(target.port, port);
}

TEST("an address is shown with its port, and never disturbs a terminal")
{
    check_address(place_at("127.0.0.1", 80), "127.0.0.1:80", "127.0.0.1", 80);
    check_address(place_at("::ffff:127.0.0.1", 80), "127.0.0.1:80", "127.0.0.1", 80);
    check_address(place_at("2001:db8::1", 443), "[2001:db8::1]:443", "2001:db8::1", 443);
    check_address(place_at("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535),
                  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
                  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535);
    check_address(place_at("unix", 0), "unix:/run/x", "unix:/run/x", 0);
    check_address(place_at("abstract", 0), "unix:@/run/x", "unix:@/run/x", 0);
    janus_address wild = {.family = JANUS_FAMILY_ABSTRACT, .count = 3, .bytes = {'a', 27, 0}};
    check_address(wild, "unix:@a??", "unix:@a??", 0);
    janus_address longest = {.family = JANUS_FAMILY_UNIX, .count = 255};
    memset(longest.bytes, 'x', sizeof longest.bytes);
    char text[JANUS_ADDRESS_TEXT_BYTES];
    jrt_net_address_text(&longest, text, sizeof text);
    CHECK(strlen(text) < sizeof text);
}

/* Counting. */

enum { THREADS = 8, ROUNDS = 20000, MOST = 5 };

static struct realm       realm8;
static janus_cap          cap8;
static struct jrt_cap_use use8;
static atomic_int         alive8, over8, taken8;

static void *open_and_close(void *argument)
{
    const struct jrt_cap_actor actor = {.holder = ALICE};
    const struct jrt_cap_wish wish = {.kind = JANUS_CAP_KIND_NET, .right = JANUS_RIGHT_NET_CONNECT};
    janus_cap_limits          limits;
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        janus_status status =
            jrt_cap_gate_handle(realm8.table, cap8, &actor, &use8, &wish, &limits);
        if (status != JANUS_OK) {
            if (status != JANUS_HANDLE_LIMIT) atomic_fetch_add(&over8, 1);
            continue;
        }
        if (atomic_fetch_add(&alive8, 1) >= MOST) atomic_fetch_add(&over8, 1);
        atomic_fetch_add(&taken8, 1);
        atomic_fetch_sub(&alive8, 1);
        jrt_cap_give_handle(&use8, JANUS_CAP_KIND_NET);
    }
    return NULL;
}

TEST("eight threads never hold more handles than the limit, and all come back")
{
    pthread_t              threads[THREADS];
    const janus_cap_limits limits = {.net = place_range("all", MOST)};
    realm8 = realm_open(JANUS_PROFILE_SOVEREIGN);
    cap8 = mint(&realm8, ALICE, JANUS_CAP_KIND_NET, &limits, 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(atomic_load(&over8), 0);
    CHECK(atomic_load(&taken8) > 0);
    CHECK_EQ(atomic_load(&use8.handles[0]), 0);
    realm_close(&realm8);
}

TEST("bytes written are taken all or not at all, and only unwritten ones come back")
{
    struct jrt_cap_use use = {0};
    CHECK(jrt_cap_take_bytes(&use, 60, 100));
    CHECK(!jrt_cap_take_bytes(&use, 41, 100));
    CHECK(jrt_cap_take_bytes(&use, 40, 100));
    CHECK(!jrt_cap_take_bytes(&use, 1, 100));
    CHECK(jrt_cap_take_bytes(&use, 0, 100));
    jrt_cap_give_bytes(&use, 10);
    CHECK(!jrt_cap_take_bytes(&use, UINT64_MAX, 100));
    CHECK(jrt_cap_take_bytes(&use, 10, 100));
    CHECK_EQ(atomic_load(&use.written), 100);
}
