/* SPDX-License-Identifier: MIT */
/* Diagnostics: collected by place, printed with the source line and a caret, or as JSON. */
#include "text/text.h"

#include <stdlib.h>
#include <string.h>

static bool is_known(const struct jl_diagnostics *all, enum jl_severity severity, uint32_t begin)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const struct jl_diagnostic *item = &all->items[i];
        if (item->at.begin == begin && item->severity <= severity) return true;
    }
    return false;
}

struct jl_diagnostic *jl_report(struct jl_diagnostics *diagnostics, enum jl_severity severity,
                                const char *code, struct jl_span at, const char *format, ...)
{
    static _Thread_local struct jl_diagnostic dummy;
    if (is_known(diagnostics, severity, at.begin)) return &dummy;
    uint32_t *same = severity == JL_ERROR_SEVERITY ? &diagnostics->errors : &diagnostics->warnings;
    if (++*same > JL_DIAGNOSTICS_MAX) return &dummy;
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int   length = vsnprintf(NULL, 0, format, list);
    char *text = jl_new(diagnostics->arena, (size_t)(length < 0 ? 0 : length) + 1);
    if (length > 0) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(list);
    struct jl_diagnostic *item =
        &JL_PUSH(diagnostics->arena, diagnostics->items, diagnostics->count, diagnostics->room);
    item->severity = severity;
    snprintf(item->code, sizeof item->code, "%s", code);
    item->at = at;
    item->text = text;
    return item;
}

/* Text. */

struct style {
    const char *bold, *error, *warning, *faint, *caret, *end;
};
static const struct style plain = {"", "", "", "", "", ""};
static const struct style colour = {"\033[1m",  "\033[1;31m", "\033[1;35m",
                                    "\033[34m", "\033[1;32m", "\033[0m"};

enum { TAB = 4, WINDOW = 160, BEFORE = 80 };

/* Control bytes must not reach a terminal. */
static int put_byte(unsigned char byte, FILE *out)
{
    if (byte == '\t') return fprintf(out, "%*s", TAB, "");
    if (byte < 32 || byte == 127) byte = '?';
    fputc(byte, out);
    return (byte & 0xC0) == 0x80 ? 0 : 1;
}

static void put_text(const char *text, FILE *out)
{
    for (; *text; text++) put_byte((unsigned char)*text, out);
}

static int width_of(const char *text, uint32_t begin, uint32_t end)
{
    int width = 0;
    for (uint32_t i = begin; i < end; i++)
        width += text[i] == '\t' ? TAB : ((unsigned char)text[i] & 0xC0) == 0x80 ? 0 : 1;
    return width;
}

/* The line of a place, or the part of a long line around it, and below it the caret. */
static void print_line(const struct jl_source *source, struct jl_span at, uint32_t line,
                       const struct style *style, FILE *out)
{
    const char *text = source->text;
    uint32_t    begin = source->lines[line - 1];
    uint32_t    end = line < source->line_count ? source->lines[line] - 1 : source->length;
    if (end > begin && text[end - 1] == '\r') end--;
    uint32_t caret = at.begin < end ? at.begin : end;
    bool     cut = caret - begin > BEFORE && end - begin > WINDOW;
    if (cut) begin = caret - BEFORE;
    while (begin < caret && ((unsigned char)text[begin] & 0xC0) == 0x80) begin++;
    if (end - begin > WINDOW) end = begin + WINDOW;
    uint32_t tail = at.end < end ? at.end : end;
    int      number = fprintf(out, "%s%3u |%s", style->faint, line, style->end) -
                 (int)(strlen(style->faint) + strlen(style->end));
    fprintf(out, " %s", cut ? "..." : "");
    for (uint32_t i = begin; i < end; i++) put_byte((unsigned char)text[i], out);
    fprintf(out, "\n%s%*s%s %s", style->faint, number, "|", style->end, cut ? "   " : "");
    fprintf(out, "%*s%s^", width_of(text, begin, caret), "", style->caret);
    for (int n = tail > caret ? width_of(text, caret, tail) : 0; n > 1; n--) fputc('~', out);
    fprintf(out, "%s\n", style->end);
}

static void print_one(const struct jl_source *source, const struct jl_diagnostic *item,
                      const struct style *style, FILE *out)
{
    bool     is_error = item->severity == JL_ERROR_SEVERITY;
    uint32_t line, column;
    jl_source_place(source, item->at.begin, &line, &column);
    fprintf(out, "%s%s:%u:%u: %s%s[%s]:%s %s", style->bold, source->path, line, column,
            is_error ? style->error : style->warning, is_error ? "error" : "warning", item->code,
            style->end, style->bold);
    put_text(item->text, out);
    fprintf(out, "%s\n", style->end);
    print_line(source, item->at, line, style, out);
    if (item->also_text) {
        jl_source_place(source, item->also.begin, &line, &column);
        fprintf(out, "%s%s:%u:%u: note:%s ", style->bold, source->path, line, column, style->end);
        put_text(item->also_text, out);
        fputc('\n', out);
        print_line(source, item->also, line, style, out);
    }
    if (item->help) {
        fprintf(out, "%shelp:%s ", style->bold, style->end);
        put_text(item->help, out);
        fputc('\n', out);
    }
}

/* JSON. */

/* The bytes of one well-formed code point at `text`, or 0. */
static unsigned code_point(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    unsigned             count = byte[0] < 0x80   ? 1
                                 : byte[0] < 0xC2 ? 0
                                 : byte[0] < 0xE0 ? 2
                                 : byte[0] < 0xF0 ? 3
                                 : byte[0] < 0xF5 ? 4
                                                  : 0;
    for (unsigned i = 1; i < count; i++)
        if ((byte[i] & 0xC0) != 0x80) return 0;
    bool is_wrong = (byte[0] == 0xE0 && byte[1] < 0xA0) || (byte[0] == 0xED && byte[1] > 0x9F) ||
                    (byte[0] == 0xF0 && byte[1] < 0x90) || (byte[0] == 0xF4 && byte[1] > 0x8F);
    return count > 1 && is_wrong ? 0 : count;
}

static void put_json(const char *text, FILE *out)
{
    fputc('"', out);
    while (*text) {
        unsigned count = code_point(text);
        if (!count) {
            fputs("\\ufffd", out);
            text++;
        } else if (*text == '"' || *text == '\\') {
            fprintf(out, "\\%c", *text++);
        } else if ((unsigned char)*text < 32 || *text == 127) {
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text++);
        } else {
            fwrite(text, 1, count, out);
            text += count;
        }
    }
    fputc('"', out);
}

static void print_place(const struct jl_source *source, struct jl_span at, FILE *out)
{
    uint32_t line, column;
    fputs("\"file\": ", out);
    put_json(source->path, out);
    jl_source_place(source, at.begin, &line, &column);
    fprintf(out, ", \"line\": %u, \"column\": %u", line, column);
    jl_source_place(source, at.end > at.begin ? at.end : at.begin, &line, &column);
    fprintf(out, ", \"end_line\": %u, \"end_column\": %u", line, column);
}

static void print_json(const struct jl_source *source, const struct jl_diagnostic *item, FILE *out)
{
    fputc('{', out);
    print_place(source, item->at, out);
    fprintf(out, ", \"severity\": \"%s\", \"code\": \"%s\", \"message\": ",
            item->severity == JL_ERROR_SEVERITY ? "error" : "warning", item->code);
    put_json(item->text, out);
    if (item->help) {
        fputs(", \"help\": ", out);
        put_json(item->help, out);
    }
    if (item->also_text) {
        fputs(", \"also\": {", out);
        print_place(source, item->also, out);
        fputs(", \"message\": ", out);
        put_json(item->also_text, out);
        fputc('}', out);
    }
    fputc('}', out);
}

/* Both. */

static int by_place(const void *left, const void *right)
{
    const struct jl_diagnostic *a = *(const struct jl_diagnostic *const *)left;
    const struct jl_diagnostic *b = *(const struct jl_diagnostic *const *)right;
    if (a->at.begin != b->at.begin) return a->at.begin < b->at.begin ? -1 : 1;
    return a < b ? -1 : 1;
}

static void print_hidden(const struct jl_diagnostics *diagnostics, FILE *out)
{
    if (diagnostics->errors > JL_DIAGNOSTICS_MAX)
        fprintf(out, "%u more errors are not shown\n", diagnostics->errors - JL_DIAGNOSTICS_MAX);
    if (diagnostics->warnings > JL_DIAGNOSTICS_MAX)
        fprintf(out, "%u more warnings are not shown\n",
                diagnostics->warnings - JL_DIAGNOSTICS_MAX);
}

void jl_diagnostics_print(const struct jl_diagnostics *diagnostics,
                          enum jl_diagnostic_format format, FILE *out)
{
    const struct jl_diagnostic *items[2 * JL_DIAGNOSTICS_MAX];
    uint32_t                    count = 0;
    for (; count < diagnostics->count && count < 2 * JL_DIAGNOSTICS_MAX; count++)
        items[count] = &diagnostics->items[count];
    if (count) qsort(items, count, sizeof items[0], by_place);
    bool is_json = format == JL_DIAGNOSTIC_JSON;
    if (is_json) fputc('[', out);
    for (uint32_t i = 0; i < count; i++) {
        if (is_json) {
            fputs(i ? ",\n " : "\n ", out);
            print_json(diagnostics->source, items[i], out);
        } else {
            print_one(diagnostics->source, items[i],
                      format == JL_DIAGNOSTIC_COLOUR ? &colour : &plain, out);
        }
    }
    if (is_json)
        fputs(count ? "\n]\n" : "]\n", out);
    else
        print_hidden(diagnostics, out);
}
