/* SPDX-License-Identifier: MIT */
/* What is written, how it is escaped, and what happens without room. */
#include "sink.h"

#include "cap/gate.h"

#include <fcntl.h>
#include <unistd.h>

static janus_audit *open_log(struct sink *sink, uint32_t ring_events, bool fail_closed)
{
    janus_audit *audit;
    *sink = (struct sink){.room = -1};
    CHECK_EQ(
        janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = sink_take, .argument = sink,
                                               .ring_events = ring_events,
                                               .fail_closed = fail_closed, .max_use_count = 1000),
                           &audit),
        JANUS_OK);
    return audit;
}

static void close_log(janus_audit *audit, struct sink *sink)
{
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    sink_empty(sink);
}

/* One event that needs no capability. */
static janus_status put(struct jrt_audit_writer *writer, const char *name)
{
    return jrt_audit_budget(writer, JRT_AUDIT_RECHARGE, 5, JRT_AUDIT_OPS, 1, 11, name);
}

static void check_name(const char *name, const char *written)
{
    char                   line[JRT_AUDIT_LINE_BYTES], want[512];
    struct jrt_audit_event event = {.what = JRT_AUDIT_DENIAL};
    jrt_audit_name(&event, name);
    (void)jrt_audit_format(line, sizeof line, 3, &event);
    (void)snprintf(want, sizeof want, "\"name\":\"%s\"}\n", written);
    const char *at = strstr(line, "\"name\"");
    CHECK_STR(at, want);
}

TEST("a name can neither end its line or its string nor control a terminal")
{
    check_name("plain", "plain");
    check_name("a\"b\\c", "a\\\"b\\\\c");
    check_name("line\nbreak\r\t", "line\\u000abreak\\u000d\\u0009");
    check_name("\x1b[2J\x7f", "\\u001b[2J\\u007f");
    check_name("gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\xa6\x80",
               "gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\xa6\x80");
    check_name("\xc2\x9b 31m", "\\u009b 31m");
}

TEST("bytes that are not text are replaced, one by one")
{
    check_name("\xff\xfe", "\\ufffd\\ufffd");
    check_name("\xc0\xaf", "\\ufffd\\ufffd");            /* overlong */
    check_name("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"); /* half of a surrogate pair */
    check_name("\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd");
    check_name("\xe2\x82", "\\ufffd\\ufffd"); /* cut off */
    check_name("0123456789012345678901234567890123456\xe2\x82\xac",
               "0123456789012345678901234567890123456\\ufffd\\ufffd"); /* cut after 39 */
}

TEST("the longest line fits its buffer")
{
    char                   line[JRT_AUDIT_LINE_BYTES];
    struct jrt_audit_event event;
    memset(&event, 0xff, sizeof event);
    event.name_bytes = JRT_AUDIT_NAME_BYTES;
    for (int what = 0; what <= JRT_AUDIT_RECHARGE + 1; what++) {
        event.what = (uint8_t)what;
        size_t bytes = jrt_audit_format(line, sizeof line, UINT32_MAX, &event);
        CHECK(bytes < sizeof line);
        CHECK_EQ(strlen(line), bytes);
    }
}

TEST("events of a writer are numbered one by one and say what happened")
{
    struct sink              sink;
    janus_audit             *audit = open_log(&sink, 64, false);
    struct jrt_audit_writer *writer;
    CHECK_EQ(jrt_audit_writer_open(audit, &writer), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(put(writer, "worker"), JANUS_OK);
    CHECK_EQ(jrt_audit_budget(writer, JRT_AUDIT_EXHAUSTION, 5, JRT_AUDIT_SYSCALLS, 3, 0, NULL),
             JANUS_OK);
    CHECK_EQ(janus_audit_drain(audit), JANUS_OK);
    CHECK_EQ(sink.count, 12);
    CHECK(strstr(sink.lines[0], "\"event\":\"begin\",\"format\":1") != NULL);
    long long before = 0;
    for (int i = 0; i < 11; i++) {
        CHECK_EQ(line_number(sink.lines[i + 1], "seq"), i);
        CHECK(line_number(sink.lines[i + 1], "mono_ns") >= before);
        before = line_number(sink.lines[i + 1], "mono_ns");
    }
    CHECK(strstr(sink.lines[1], "\"event\":\"recharge\",\"holder\":\"5\",\"component\":\"ops\","
                                "\"before\":1,\"after\":11,\"name\":\"worker\"}") != NULL);
    CHECK(strstr(sink.lines[11], "\"event\":\"exhaustion\",\"holder\":\"5\","
                                 "\"component\":\"syscalls\",\"before\":3,\"after\":0}") != NULL);
    CHECK_EQ(janus_audit_drain(audit), JANUS_OK);
    CHECK_EQ(sink.count, 12);
    jrt_audit_writer_close(writer);
    close_log(audit, &sink);
}

TEST("events without room leave a gap with their number")
{
    struct sink              sink;
    janus_audit             *audit = open_log(&sink, 8, false);
    struct jrt_audit_writer *writer;
    janus_audit_info         stats = JANUS_AUDIT_INFO();
    CHECK_EQ(jrt_audit_writer_open(audit, &writer), JANUS_OK);
    for (int i = 0; i < 13; i++) CHECK_EQ(put(writer, NULL), JANUS_OK);
    CHECK_EQ(janus_audit_drain(audit), JANUS_OK); /* 8 events, then the end: a gap of 5 */
    CHECK_EQ(sink.count, 10);
    CHECK_EQ(line_number(sink.lines[8], "seq"), 7);
    CHECK(strstr(sink.lines[9], "\"seq\":8,\"event\":\"gap\",\"lost\":5}") != NULL);
    for (int i = 0; i < 11; i++) CHECK_EQ(put(writer, NULL), JANUS_OK);
    sink.room = 4; /* the sink stops in the middle; the rest comes next time */
    CHECK_EQ(janus_audit_drain(audit), JANUS_UNAVAILABLE);
    for (int i = 0; i < 2; i++) CHECK_EQ(put(writer, NULL), JANUS_OK);
    sink.room = -1;
    CHECK_EQ(janus_audit_drain(audit), JANUS_OK);
    /* Numbers 13 to 20, then three lost, then two more. */
    CHECK_EQ(sink.count, 10 + 8 + 1 + 2);
    CHECK_EQ(line_number(sink.lines[17], "seq"), 20);
    CHECK(strstr(sink.lines[18], "\"seq\":21,\"event\":\"gap\",\"lost\":3}") != NULL);
    CHECK_EQ(line_number(sink.lines[19], "seq"), 24);
    CHECK_EQ(janus_audit_inspect(audit, &stats), JANUS_OK);
    CHECK_EQ(stats.lost, 8);
    CHECK_EQ(stats.recorded, 18);
    CHECK_EQ(stats.written, 21);
    jrt_audit_writer_close(writer);
    close_log(audit, &sink);
}

/* The other events, with capabilities. */

enum { ALICE = 1, BOB = 2 };

struct realm {
    struct sink          sink;
    janus_audit         *audit;
    janus_cap_table     *table;
    janus_authority     *root;
    struct jrt_cap_actor alice, bob;
};

static const janus_cap_limits limits = {.spawn = {.max_tasks = 100000}};

static void realm_open(struct realm *realm, uint32_t ring_events, bool fail_closed)
{
    realm->audit = open_log(&realm->sink, ring_events, fail_closed);
    CHECK_EQ(janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.audit = realm->audit), &realm->table,
                                    &realm->root),
             JANUS_OK);
    realm->alice = (struct jrt_cap_actor){.holder = ALICE};
    realm->bob = (struct jrt_cap_actor){.holder = BOB};
    CHECK_EQ(jrt_audit_writer_open(realm->audit, &realm->alice.writer), JANUS_OK);
}

static void realm_close(struct realm *realm)
{
    jrt_audit_writer_close(realm->alice.writer);
    CHECK_EQ(janus_cap_table_destroy(realm->table, realm->root), JANUS_OK);
    close_log(realm->audit, &realm->sink);
}

static janus_status mint(struct realm *realm, janus_cap *out)
{
    return jrt_cap_mint(realm->table, realm->root, &realm->alice,
                        JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                        .limits = &limits, .delegation_depth = 1, .name = "main"),
                        out);
}

static janus_status use(struct realm *realm, janus_cap cap)
{
    return jrt_cap_use_right(realm->table, cap, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK,
                             &realm->alice, NULL);
}

TEST("creation, attenuation, delegation, use, denial, revocation and release are all written")
{
    struct realm realm;
    janus_cap    cap, part, bobs;
    const char  *line = NULL;
    realm_open(&realm, 64, false);
    CHECK_EQ(mint(&realm, &cap), JANUS_OK);
    CHECK_EQ(jrt_cap_attenuate(realm.table, cap, &realm.alice, JANUS_CAP_GRANT(.rights = 1), &part),
             JANUS_OK);
    CHECK_EQ(jrt_cap_delegate(realm.table, cap, &realm.alice, BOB, NULL, &bobs), JANUS_OK);
    CHECK_EQ(use(&realm, cap), JANUS_OK);
    CHECK_EQ(use(&realm, bobs), JANUS_CAP_FOREIGN);
    CHECK_EQ(jrt_cap_revoke(realm.table, bobs, cap, &realm.alice), JANUS_OK);
    CHECK_EQ(jrt_cap_release(realm.table, part, &realm.alice), JANUS_OK);
    CHECK_EQ(jrt_audit_flush(realm.alice.writer), JANUS_OK);
    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK);
    CHECK_EQ(sink_count(&realm.sink,
                        "\"event\":\"creation\",\"cap\":\"0.1\",\"kind\":\"spawn\","
                        "\"holder\":\"1\",\"rights\":\"spawn.task,spawn.nursery\","
                        "\"name\":\"main\"}",
                        NULL),
             1);
    CHECK_EQ(sink_count(&realm.sink,
                        "\"event\":\"attenuation\",\"cap\":\"1.1\","
                        "\"origin\":\"0.1\"",
                        NULL),
             1);
    CHECK_EQ(sink_count(&realm.sink,
                        "\"event\":\"delegation\",\"cap\":\"2.1\",\"origin\":\"0.1\","
                        "\"kind\":\"spawn\",\"holder\":\"1\",\"to_holder\":\"2\"",
                        NULL),
             1);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"use\",\"cap\":\"0.1\"", &line), 1);
    CHECK_EQ(line_number(line, "count"), 1);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"denial\",\"cap\":\"2.1\"", &line), 1);
    CHECK(strstr(line, "\"wanted\":\"spawn.task\",\"status\":\"JANUS_CAP_FOREIGN\"") != NULL);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"revocation\",\"cap\":\"2.1\"", &line), 1);
    CHECK_EQ(line_number(line, "count"), 1);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"release\",\"cap\":\"1.1\"", NULL), 1);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"gap\"", NULL), 0);
    realm_close(&realm);
}

TEST("no line ever contains a nonce")
{
    struct realm realm;
    janus_cap    caps[100];
    realm_open(&realm, 1024, false);
    for (int i = 0; i < 100; i++) {
        janus_cap forged;
        CHECK_EQ(mint(&realm, &caps[i]), JANUS_OK);
        CHECK_EQ(use(&realm, caps[i]), JANUS_OK);
        forged = caps[i];
        forged.nonce++;
        CHECK_EQ(use(&realm, forged), JANUS_CAP_FORGED);
    }
    CHECK_EQ(jrt_audit_flush(realm.alice.writer), JANUS_OK);
    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"denial\"", NULL), 100);
    for (int i = 0; i < 100; i++) {
        char decimal[32], hex[32];
        (void)snprintf(decimal, sizeof decimal, "%llu", (unsigned long long)caps[i].nonce);
        (void)snprintf(hex, sizeof hex, "%llx", (unsigned long long)caps[i].nonce);
        CHECK_EQ(sink_count(&realm.sink, decimal, NULL), 0);
        CHECK_EQ(sink_count(&realm.sink, hex, NULL), 0);
    }
    realm_close(&realm);
}

TEST("uses are counted and written together, denials one by one")
{
    struct realm realm;
    janus_cap    cap, other;
    const char  *line = NULL;
    realm_open(&realm, 1024, false);
    CHECK_EQ(mint(&realm, &cap), JANUS_OK);
    CHECK_EQ(mint(&realm, &other), JANUS_OK);
    for (int i = 0; i < 2500; i++) CHECK_EQ(use(&realm, cap), JANUS_OK);
    for (int i = 0; i < 7; i++) CHECK_EQ(use(&realm, other), JANUS_OK);
    for (int i = 0; i < 30; i++) CHECK_EQ(use(&realm, (janus_cap){0}), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK); /* two full thousands are there already */
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"use\"", &line), 2);
    CHECK_EQ(line_number(line, "count"), 1000);
    CHECK(line_number(line, "first_ns") <= line_number(line, "mono_ns"));
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"denial\"", NULL), 30);

    CHECK_EQ(use(&realm, cap), JANUS_OK); /* the first use after a drain writes the rest */
    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"use\"", NULL), 4);
    CHECK_EQ(sink_count(&realm.sink, "\"count\":500,", NULL), 1);
    CHECK_EQ(sink_count(&realm.sink, "\"count\":7,", NULL), 1);
    realm_close(&realm);
}

TEST("capabilities that share a place in the table of uses are all counted correctly")
{
    struct realm realm;
    janus_cap    caps[200];
    long long    sum = 0;
    realm_open(&realm, 4096, false);
    for (int i = 0; i < 200; i++) CHECK_EQ(mint(&realm, &caps[i]), JANUS_OK);
    for (int i = 0; i < 1000; i++) CHECK_EQ(use(&realm, caps[i * 7 % 200]), JANUS_OK);
    CHECK_EQ(jrt_audit_flush(realm.alice.writer), JANUS_OK);
    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK);
    for (int i = 0; i < realm.sink.count; i++) {
        if (strstr(realm.sink.lines[i], "\"event\":\"use\"") == NULL) continue;
        sum += line_number(realm.sink.lines[i], "count");
    }
    CHECK_EQ(sum, 1000);
    realm_close(&realm);
}

TEST("a log that fails closed refuses what it cannot record, and then nothing has happened")
{
    struct realm         realm;
    janus_cap            cap, out = {0};
    struct jrt_cap_use   counts = {0};
    janus_cap_limits     granted;
    janus_cap_table_info stats = JANUS_CAP_TABLE_INFO();
    janus_audit_info     books = JANUS_AUDIT_INFO();
    realm_open(&realm, 4, true);
    CHECK_EQ(mint(&realm, &cap), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(use(&realm, (janus_cap){0}), JANUS_NO_SPAWN_CAP);

    CHECK_EQ(mint(&realm, &out), JANUS_AUDIT_FULL);
    CHECK_EQ(jrt_cap_attenuate(realm.table, cap, &realm.alice, JANUS_CAP_GRANT(.rights = 1), &out),
             JANUS_AUDIT_FULL);
    CHECK_EQ(jrt_cap_delegate(realm.table, cap, &realm.alice, BOB, NULL, &out), JANUS_AUDIT_FULL);
    CHECK_EQ(put(realm.alice.writer, NULL), JANUS_AUDIT_FULL);
    CHECK_EQ(out.generation, 0);
    CHECK_EQ(janus_cap_table_inspect(realm.table, &stats), JANUS_OK);
    CHECK_EQ(stats.live, 1);
    CHECK_EQ(stats.refused_audit, 3);

    /* Uses continue while they can be counted, and are refused when the count must be written. */
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(jrt_cap_gate_spawn(realm.table, cap, &realm.alice, &counts, &granted), JANUS_OK);
    }
    CHECK_EQ(jrt_cap_gate_spawn(realm.table, cap, &realm.alice, &counts, &granted),
             JANUS_AUDIT_FULL);
    CHECK_EQ(counts.tasks, 1000);

    /* A denial stays a denial, and operations that take rights away are never refused. The gap
     * reports them. */
    CHECK_EQ(use(&realm, (janus_cap){0}), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(jrt_cap_release(realm.table, cap, &realm.alice), JANUS_OK);
    CHECK_EQ(janus_audit_inspect(realm.audit, &books), JANUS_OK);
    CHECK_EQ(books.lost, 2);
    CHECK_EQ(books.refused, 5);

    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"gap\",\"lost\":2}", NULL), 1);
    CHECK_EQ(mint(&realm, &cap), JANUS_OK); /* there is room again */
    CHECK_EQ(jrt_audit_flush(realm.alice.writer), JANUS_OK);
    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK);
    CHECK_EQ(sink_count(&realm.sink, "\"count\":1000,", NULL), 1);
    realm_close(&realm);
}

TEST("uses that found no room when their writer closed are written at the end")
{
    struct realm realm;
    janus_cap    cap;
    realm_open(&realm, 2, true);
    CHECK_EQ(mint(&realm, &cap), JANUS_OK);
    for (int i = 0; i < 77; i++) CHECK_EQ(use(&realm, cap), JANUS_OK);
    CHECK_EQ(use(&realm, (janus_cap){0}), JANUS_NO_SPAWN_CAP); /* the ring is full now */
    CHECK_EQ(jrt_audit_flush(realm.alice.writer), JANUS_AUDIT_FULL);
    jrt_audit_writer_close(realm.alice.writer);
    CHECK_EQ(janus_cap_table_destroy(realm.table, realm.root), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(realm.audit), JANUS_OK);
    CHECK_EQ(sink_count(&realm.sink, "\"count\":77,", NULL), 1);
    sink_empty(&realm.sink);
}

TEST("threads that are not workers share a writer, and the drain writes their uses")
{
    struct realm realm;
    janus_cap    cap;
    const char  *line = NULL;
    realm_open(&realm, 64, false);
    CHECK_EQ(janus_cap_mint_in(
                 realm.table, realm.root, BOB,
                 JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = 1, .limits = &limits),
                 &cap),
             JANUS_OK);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(janus_cap_check_in(realm.table, cap, JANUS_CAP_KIND_SPAWN, 1, BOB), JANUS_OK);
    }
    CHECK_EQ(janus_audit_drain(realm.audit), JANUS_OK);
    CHECK_EQ(sink_count(&realm.sink, "\"event\":\"use\"", &line), 1);
    CHECK_EQ(line_number(line, "count"), 5);
    CHECK_EQ(line_number(line, "writer"), 0);
    realm_close(&realm);
}

TEST("lines reach a descriptor whole, even if it takes them in pieces")
{
    janus_audit             *audit;
    struct jrt_audit_writer *writer;
    int                      ends[2];
    static char              text[1 << 20];
    size_t                   bytes = 0;
    CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
    CHECK(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 0);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.fd = ends[1], .ring_events = 2048), &audit),
             JANUS_OK);
    CHECK_EQ(jrt_audit_writer_open(audit, &writer), JANUS_OK);
    for (int i = 0; i < 1500; i++) CHECK_EQ(put(writer, "somebody"), JANUS_OK);
    CHECK_EQ(janus_audit_drain(audit), JANUS_UNAVAILABLE);
    for (;;) {
        ssize_t got = read(ends[0], text + bytes, 1000);
        if (got > 0) bytes += (size_t)got;
        janus_status status = janus_audit_drain(audit);
        if (got <= 0 && status == JANUS_OK) break;
        CHECK(bytes < sizeof text - 1000);
    }
    long long seq = -1;
    for (char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        char *end = strchr(line, '\n');
        CHECK(end != NULL && line[0] == '{' && end[-1] == '}');
        *end = '\0';
        if (strstr(line, "\"begin\"") == NULL) {
            CHECK_EQ(line_number(line, "seq"), ++seq);
        }
        *end = '\n';
    }
    CHECK_EQ(seq, 1499);
    jrt_audit_writer_close(writer);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(close(ends[0]) + close(ends[1]), 0);
}

TEST("impossible options and missing objects are refused")
{
    janus_audit     *audit;
    janus_audit_info stats = {.struct_bytes = 3};
    CHECK_EQ(janus_audit_create(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.fd = -1), &audit), JANUS_INVALID);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.ring_events = 1 << 21), &audit),
             JANUS_INVALID);
    CHECK_EQ(janus_audit_drain(NULL), JANUS_INVALID);
    CHECK_EQ(janus_audit_destroy(NULL), JANUS_INVALID);
    CHECK_EQ(janus_audit_inspect(NULL, &stats), JANUS_INVALID);
}
