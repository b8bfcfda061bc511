/* SPDX-License-Identifier: MIT */
/* Tokens of the text form. */
#include "qtjir/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool qt_wrong(struct qt_reader *p, const char *code, const char *format, ...)
{
    char    text[300];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    struct jl_span at = {p->begin, p->end > p->begin ? p->end : p->begin + 1};
    jl_report(p->diagnostics, JL_ERROR_SEVERITY, code, at, "%s", text);
    return false;
}

static unsigned char byte_at(const struct qt_reader *p, uint32_t at)
{
    return at < p->source->length ? (unsigned char)p->source->text[at] : 0;
}

/* A comment "; 12:5" is a place. */
static void read_comment(struct qt_reader *p)
{
    uint32_t    line = 0, column = 0, at = p->at + 1;
    const char *text = p->source->text;
    while (byte_at(p, at) == ' ') at++;
    for (; byte_at(p, at) >= '0' && byte_at(p, at) <= '9' && line < 100000000; at++)
        line = line * 10 + (uint32_t)(text[at] - '0');
    if (byte_at(p, at) == ':')
        for (at++; byte_at(p, at) >= '0' && byte_at(p, at) <= '9' && column < 100000000; at++)
            column = column * 10 + (uint32_t)(text[at] - '0');
    if (line > 0 && column > 0) {
        p->place_line = line;
        p->place_column = column;
    }
    while (p->at < p->source->length && byte_at(p, p->at) != '\n') p->at++;
}

static void take_word(struct qt_reader *p, enum qt_token token)
{
    uint32_t begin = p->at;
    while (p->at < p->source->length && qt_is_word_byte(byte_at(p, p->at))) p->at++;
    p->token = token;
    p->word = jl_intern(p->module->names, p->source->text + begin, p->at - begin);
}

static void take_number(struct qt_reader *p)
{
    uint32_t begin = p->at++;
    for (;; p->at++) {
        unsigned char c = byte_at(p, p->at), before = byte_at(p, p->at - 1);
        if (p->at < p->source->length && qt_is_word_byte(c)) continue;
        if ((c == '+' || c == '-') && (before == 'e' || before == 'E')) continue;
        break;
    }
    p->token = QT_T_NUMBER;
    p->word = jl_intern(p->module->names, p->source->text + begin, p->at - begin);
}

static int hex_of(unsigned char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

/* One byte of a text, after a backslash; -1: it is none. */
static int escaped(struct qt_reader *p)
{
    unsigned char c = byte_at(p, p->at++);
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    if (c == '"' || c == '\\') return c;
    if (c != 'x') return -1;
    int high = hex_of(byte_at(p, p->at)), low = high < 0 ? -1 : hex_of(byte_at(p, p->at + 1));
    p->at += 2;
    return low < 0 ? -1 : high * 16 + low;
}

static void take_text(struct qt_reader *p)
{
    uint32_t begin = ++p->at, length = 0, end = begin;
    while (end < p->source->length && byte_at(p, end) != '"' && byte_at(p, end) != '\n')
        end += byte_at(p, end) == '\\' ? 2 : 1;
    if (end >= p->source->length) end = p->source->length;
    char *text = jl_new(p->module->arena, end - begin + 1);
    p->token = QT_T_TEXT;
    p->word = text;
    for (;;) {
        unsigned char c = byte_at(p, p->at);
        if (p->at >= p->source->length || c == '\n') {
            qt_wrong(p, "Q1001", "the text has no closing quote");
            break;
        }
        p->at++;
        if (c == '"') break;
        int value = c == '\\' ? escaped(p) : c;
        if (value < 0) qt_wrong(p, "Q1001", "unknown escape in a text");
        if (length < end - begin) text[length++] = (char)value;
    }
    p->word_length = length;
    if (p->at > p->source->length) p->at = p->source->length;
}

void qt_next(struct qt_reader *p)
{
    unsigned char c = byte_at(p, p->at);
    while (c == ' ' || c == '\t' || c == '\r' || c == ';') {
        if (c == ';')
            read_comment(p);
        else
            p->at++;
        c = byte_at(p, p->at);
    }
    p->begin = p->at;
    p->end = p->at + 1;
    if (p->at >= p->source->length) {
        p->token = QT_T_END;
        p->end = p->at;
        return;
    }
    if (c == '\n') {
        p->token = QT_T_LINE;
        p->at++;
    } else if (c == '%' || c == '@') {
        p->at++;
        take_word(p, c == '%' ? QT_T_VALUE : QT_T_AT);
    } else if (c == '"') {
        take_text(p);
    } else if ((c >= '0' && c <= '9') || (c == '-' && byte_at(p, p->at + 1) != '>')) {
        take_number(p);
    } else if (c != '.' && qt_is_word_byte(c)) {
        take_word(p, QT_T_WORD);
    } else {
        p->token = QT_T_SIGN;
        p->sign = (char)c;
        if (c == '-') p->sign = '>', p->at++;
        p->at++;
    }
    p->end = p->at;
}

bool qt_at_sign(const struct qt_reader *p, char sign)
{
    return p->token == QT_T_SIGN && p->sign == sign;
}

bool qt_at_word(const struct qt_reader *p, const char *word)
{
    return p->token == QT_T_WORD && strcmp(p->word, word) == 0;
}

bool qt_take_sign(struct qt_reader *p, char sign)
{
    if (!qt_at_sign(p, sign)) return false;
    qt_next(p);
    return true;
}

bool qt_take_word(struct qt_reader *p, const char *word)
{
    if (!qt_at_word(p, word)) return false;
    qt_next(p);
    return true;
}

bool qt_need_sign(struct qt_reader *p, char sign)
{
    if (qt_take_sign(p, sign)) return true;
    return qt_wrong(p, "Q1001", "here must stand `%s`", sign == '>' ? "->" : (char[]){sign, 0});
}

const char *qt_need(struct qt_reader *p, enum qt_token token, const char *what)
{
    if (p->token != token || (token != QT_T_TEXT && *p->word == 0)) {
        qt_wrong(p, "Q1001", "here must stand %s", what);
        return NULL;
    }
    const char *word = p->word;
    qt_next(p);
    return word;
}

void qt_skip_line(struct qt_reader *p)
{
    while (p->token != QT_T_LINE && p->token != QT_T_END) qt_next(p);
}

void qt_skip_lines(struct qt_reader *p)
{
    while (p->token == QT_T_LINE) qt_next(p);
}

static bool float_bits(const char *text, int64_t *out)
{
    char  *end;
    double value = strtod(text, &end);
    if (*end != 0) return false;
    memcpy(out, &value, sizeof value);
    return true;
}

bool qt_read_number(struct qt_reader *p, jl_type type, int64_t *out)
{
    if (type == JL_BOOL && (qt_at_word(p, "true") || qt_at_word(p, "false"))) {
        *out = qt_at_word(p, "true");
        qt_next(p);
        return true;
    }
    const char *text = qt_need(p, QT_T_NUMBER, "a number");
    if (text == NULL) return false;
    bool  hex = strncmp(text, "0x", 2) == 0, right;
    char *end;
    errno = 0;
    if (type == JL_F64 && !hex) {
        right = float_bits(text, out);
    } else if (*text != '-') {
        uint64_t value = strtoull(text, &end, hex ? 16 : 10);
        right = *end == 0 && errno == 0 && (hex || type == JL_U64 || value <= INT64_MAX);
        *out = (int64_t)value;
    } else {
        *out = strtoll(text, &end, 10);
        right = *end == 0 && errno == 0;
    }
    return right || qt_wrong(p, "Q1007", "the number %.40s does not fit", text);
}

bool qt_read_u32(struct qt_reader *p, uint32_t *out)
{
    int64_t value;
    if (!qt_read_number(p, JL_I64, &value)) return false;
    if (value < 0 || value > UINT32_MAX) return qt_wrong(p, "Q1007", "the number does not fit");
    *out = (uint32_t)value;
    return true;
}

bool qt_read_choice(struct qt_reader *p, const char *const *names, uint32_t count, const char *what,
                    uint32_t *out)
{
    for (*out = 0; *out < count; ++*out)
        if (qt_take_word(p, names[*out])) return true;
    return qt_wrong(p, "Q1002", "here must stand %s", what);
}
