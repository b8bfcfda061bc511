/* SPDX-License-Identifier: MIT */
/* Requests and answers that somebody once understood in two ways, and what we understand. */
#include "harness.h"
#include "table.h"
#include "understand.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The last bytes before a page that must not be read. */
static const char *at_the_edge(const char *bytes, size_t count)
{
    static char *edge;
    size_t       page = (size_t)sysconf(_SC_PAGESIZE), room = (ROW_BYTES / page + 1) * page;
    if (edge == NULL) {
        char *map =
            mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(map != MAP_FAILED);
        CHECK(mprotect(map + room, page, PROT_NONE) == 0);
        edge = map + room;
    }
    if (count == 0) return edge;
    return memcpy(edge - count, bytes, count);
}

static void hear_all(struct listener *listener, const struct row *row, const size_t *stops,
                     int count)
{
    for (int i = 0; i < count; i++)
        listener_hear(listener, at_the_edge(row->bytes, stops[i]), stops[i]);
    listener_hear(listener, at_the_edge(row->bytes, row->count), row->count);
    listener_end(listener, at_the_edge(row->bytes, row->count), row->count);
}

static void begin(struct listener *listener, const struct table *table, const struct row *row,
                  parse_call *parse)
{
    bool answers = strcmp(table->name, "answers.txt") == 0;
    listener_begin(listener, parse, answers, strncmp(row->verdict, "HEAD ", 5) == 0 && answers);
}

static void report(const struct table *table, const struct row *row, const struct listener *got)
{
    printf("# %s:%d: %s\n# want %.200s\n# got  %.200s (%s, byte %zu)\n", table->name, row->line,
           row->reason, row->verdict, got->text, got->why != NULL ? got->why : "-", got->wrong);
}

static void check_verdicts(const char *name, int at_least, parse_call *parse)
{
    static struct listener listener;
    const struct table    *table = table_read(name);
    int                    wrong = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        begin(&listener, table, row, parse);
        hear_all(&listener, row, NULL, 0);
        if (strcmp(listener.text, row->verdict) == 0) continue;
        report(table, row, &listener);
        wrong++;
    }
    printf("# %s: %d rows\n", name, table->rows);
    CHECK_EQ(wrong, 0);
    CHECK(table->rows >= at_least);
}

TEST("every row of the table of requests gets its verdict")
{
    check_verdicts("requests.txt", 250, jrt_http_parse);
}

TEST("every row of the table of answers gets its verdict")
{
    check_verdicts("answers.txt", 50, jrt_http_parse);
}

TEST("a parser that looks at one byte at a time gives the same verdicts")
{
    check_verdicts("requests.txt", 250, plain_parse);
    check_verdicts("answers.txt", 50, plain_parse);
}

/* Compares what is understood of a row that comes in two parts with the row as a whole. */
static long check_splits(const struct table *table, const struct row *row)
{
    static struct listener whole, parts;
    begin(&whole, table, row, jrt_http_parse);
    hear_all(&whole, row, NULL, 0);
    for (size_t split = 0; split <= row->count; split++) {
        begin(&parts, table, row, jrt_http_parse);
        hear_all(&parts, row, &split, 1);
        if (!listener_same(&whole, &parts)) report(table, row, &parts);
        CHECK(listener_same(&whole, &parts));
    }
    begin(&parts, table, row, jrt_http_parse);
    for (size_t count = 0; count <= row->count; count++) listener_hear(&parts, row->bytes, count);
    listener_end(&parts, row->bytes, row->count);
    CHECK(listener_same(&whole, &parts));
    return (long)row->count + 2;
}

TEST("a row that comes in two parts, split anywhere, or byte by byte, gets the same verdict")
{
    static const char *const names[] = {"requests.txt", "answers.txt"};
    long                     splits = 0;
    for (int i = 0; i < 2; i++) {
        const struct table *table = table_read(names[i]);
        for (int row = 0; row < table->rows; row++) splits += check_splits(table, &table->row[row]);
    }
    printf("# %ld splits\n", splits);
}

/* xorshift; the same mutations in every run. */
static uint64_t chance(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Changes a row a little: bytes replaced, removed, doubled, or taken from another row. */
static void mutate(struct row *out, const struct table *table, const struct row *row)
{
    static const char liked[] = "\r\n\t :;,=\"\\%?#/*0159aAfFzZ\0\x7f\x80\xff";
    size_t            count = row->count < 2000 ? row->count : 2000;
    memcpy(out->bytes, row->bytes, count);
    for (int changes = (int)(chance() % 3) + 1; changes > 0 && count > 1; changes--) {
        size_t            at = chance() % count, some = chance() % (count - at) % 16;
        const struct row *other = &table->row[chance() % (uint64_t)table->rows];
        switch (chance() % 5) {
        case 0: out->bytes[at] = (char)chance(); break;
        case 1: out->bytes[at] = liked[chance() % (sizeof liked - 1)]; break;
        case 2:
            memmove(out->bytes + at, out->bytes + at + some, count - at - some);
            count -= some;
            break;
        case 3:
            memmove(out->bytes + at + some, out->bytes + at, count - at);
            count += some;
            break;
        default:
            some = some < other->count ? some : other->count;
            if (some == 0) break;
            memcpy(out->bytes + at, other->bytes + chance() % (other->count - some + 1), some);
        }
    }
    out->count = count;
}

TEST("mutated rows mean the same to both parsers, and in parts")
{
    static struct listener   whole, plain, parts;
    static char              bytes[ROW_BYTES];
    static const char *const names[] = {"requests.txt", "answers.txt"};
    int                      rounds = 200, right = 0, all = 0;
    for (int round = 0; round < rounds; round++) {
        const struct table *table = table_read(names[round % 4 == 3]);
        for (int i = 0; i < table->rows; i++, all++) {
            struct row row = table->row[i];
            row.bytes = bytes;
            mutate(&row, table, &table->row[i]);
            size_t stops[2] = {chance() % (row.count + 1), 0};
            stops[1] = stops[0] + chance() % (row.count - stops[0] + 1);
            begin(&whole, table, &row, jrt_http_parse);
            hear_all(&whole, &row, NULL, 0);
            begin(&plain, table, &row, plain_parse);
            hear_all(&plain, &row, NULL, 0);
            begin(&parts, table, &row, jrt_http_parse);
            hear_all(&parts, &row, stops, 2);
            if (!listener_same(&whole, &plain)) report(table, &row, &plain);
            if (!listener_same(&whole, &parts)) report(table, &row, &parts);
            CHECK(listener_same(&whole, &plain));
            CHECK(listener_same(&whole, &parts));
            right += whole.why == NULL;
        }
    }
    printf("# %d mutations, %d of them not refused\n", all, right);
    CHECK(right > all / 100);
    CHECK(right < all);
}
