/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *name, int line, const char *why)
{
    fprintf(stderr, "%s/%s:%d: %s\n", HTTP_TABLES, name, line, why);
    abort();
}

/* Where the "}" of "\{text*3}" stands; `text` begins behind the "\{". */
static const char *closing(const char *text, const char *end)
{
    int depth = 1;
    for (; text < end; text++) {
        if (text[0] == '\\' && text + 1 < end) {
            text++;
            if (*text == '{') depth++;
        } else if (*text == '}' && --depth == 0) {
            return text;
        }
    }
    return NULL;
}

static size_t unescape(const char *text, const char *end, char *out, size_t room);

static size_t repeat(const char *text, const char *end, char *out, size_t room)
{
    const char *star = end;
    while (star > text && *star != '*') star--;
    size_t once = unescape(text, star, out, room), times = strtoul(star + 1, NULL, 10);
    if (once * times > room) abort();
    for (size_t i = 1; i < times; i++) memcpy(out + i * once, out, once);
    return once * times;
}

static size_t unescape(const char *text, const char *end, char *out, size_t room)
{
    size_t bytes = 0;
    while (text < end) {
        if (bytes >= room) abort();
        if (*text != '\\') {
            out[bytes++] = *text++;
            continue;
        }
        char kind = text[1];
        text += 2;
        if (kind == '{') {
            const char *stop = closing(text, end);
            if (stop == NULL) abort();
            bytes += repeat(text, stop, out + bytes, room - bytes);
            text = stop + 1;
        } else if (kind == 'x') {
            char digits[3] = {text[0], text[1], '\0'};
            out[bytes++] = (char)strtoul(digits, NULL, 16);
            text += 2;
        } else {
            static const char kinds[] = "rnt0\\", values[] = "\r\n\t\0\\";
            const char       *found = strchr(kinds, kind);
            if (found == NULL) abort();
            out[bytes++] = values[found - kinds];
        }
    }
    return bytes;
}

static char *text_of(const char *from, const char *end, size_t *out_bytes)
{
    static char whole[ROW_BYTES];
    size_t      bytes = unescape(from, end, whole, sizeof whole);
    char       *copy = malloc(bytes + 1);
    if (copy == NULL) abort();
    memcpy(copy, whole, bytes);
    copy[bytes] = '\0';
    if (out_bytes != NULL) *out_bytes = bytes;
    return copy;
}

static void read_row(struct table *table, int line, const char *text)
{
    const char *first = strchr(text, '\t');
    const char *second = first != NULL ? strchr(first + 1, '\t') : NULL;
    const char *end = text + strcspn(text, "\n");
    if (second == NULL || second + 1 == end) give_up(table->name, line, "no reason");
    if (table->rows == ROWS_MAX) give_up(table->name, line, "too many rows");
    struct row *row = &table->row[table->rows++];
    row->line = line;
    row->verdict = text_of(text, first, NULL);
    row->bytes = text_of(first + 1, second, &row->count);
    row->reason = text_of(second + 1, end, NULL);
}

const struct table *table_read(const char *name)
{
    static struct table tables[2];
    struct table       *table = tables;
    while (table->name != NULL && strcmp(table->name, name) != 0) table++;
    if (table->name != NULL) return table;
    table->name = name;

    char path[1024], text[4096];
    snprintf(path, sizeof path, "%s/%s", HTTP_TABLES, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) give_up(name, 0, "cannot be read");
    for (int line = 1; fgets(text, sizeof text, file) != NULL; line++)
        if (text[0] != '#' && text[0] != '\n') read_row(table, line, text);
    fclose(file);
    return table;
}
