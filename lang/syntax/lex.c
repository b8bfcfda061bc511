/* SPDX-License-Identifier: MIT */
/* The lexer. Any bytes give tokens; what is no token is reported and passed over. */
#include "syntax/lex.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char     *name;
    enum jl_keyword keyword;
} keywords[] = {
#define KEYWORD(name) {#name, JL_K_##name},
    JL_KEYWORDS(KEYWORD)
#undef KEYWORD
};

static enum jl_keyword keyword_of(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (keywords[i].name[0] == name[0] && !strcmp(keywords[i].name, name))
            return keywords[i].keyword;
    return JL_K_none;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void jl_lexer_init(struct jl_lexer *lexer, const struct jl_source *source, struct jl_arena *arena,
                   struct jl_names *names, struct jl_diagnostics *diagnostics)
{
    *lexer = (struct jl_lexer){
        .source = source,
        .arena = arena,
        .names = names,
        .diagnostics = diagnostics,
        .fresh = true,
    };
    if (source->length >= 3 && !memcmp(source->text, "\xEF\xBB\xBF", 3)) lexer->at = 3;
}

/* The byte `ahead` of the lexer; 0 at the end. A NUL byte inside the source is a bad character. */
static char look(const struct jl_lexer *lexer, uint32_t ahead)
{
    uint32_t left = lexer->source->length - lexer->at;
    if (ahead >= left) return 0;
    return lexer->source->text[lexer->at + ahead];
}

static bool at_end(const struct jl_lexer *lexer) { return lexer->at >= lexer->source->length; }

static struct jl_diagnostic *report(struct jl_lexer *lexer, const char *code, uint32_t begin,
                                    const char *text)
{
    struct jl_span at = {begin, lexer->at};
    return jl_report(lexer->diagnostics, JL_ERROR_SEVERITY, code, at, "%s", text);
}

static void skip_line(struct jl_lexer *lexer)
{
    const char *text = lexer->source->text + lexer->at;
    const char *end = memchr(text, '\n', lexer->source->length - lexer->at);
    lexer->at = end ? (uint32_t)(end - lexer->source->text) : lexer->source->length;
}

static void skip_star_comment(struct jl_lexer *lexer)
{
    uint32_t begin = lexer->at;
    for (lexer->at += 2; !at_end(lexer); lexer->at++) {
        if (look(lexer, 0) != '*' || look(lexer, 1) != '/') continue;
        lexer->at += 2;
        break;
    }
    uint32_t end = lexer->at;
    lexer->at = begin + 2;
    report(lexer, "S1012", begin, "a comment begins with `//` and ends with its line")->help =
        "write `//` before each line of the comment";
    lexer->at = end;
}

/* Blanks and comments. */
static void skip(struct jl_lexer *lexer)
{
    for (;;) {
        uint32_t begin = lexer->at;
        while (look(lexer, 0) == ' ' || look(lexer, 0) == '\t' || look(lexer, 0) == '\r')
            lexer->at++;
        if (lexer->fresh) lexer->indent += lexer->at - begin;
        if (look(lexer, 0) != '/') return;
        if (look(lexer, 1) == '/')
            skip_line(lexer);
        else if (look(lexer, 1) == '*')
            skip_star_comment(lexer);
        else
            return;
    }
}

static void read_word(struct jl_lexer *lexer, struct jl_token *token)
{
    while (is_letter(look(lexer, 0)) || is_digit(look(lexer, 0))) lexer->at++;
    token->kind = JL_T_WORD;
    token->name =
        jl_intern(lexer->names, lexer->source->text + token->at.begin, lexer->at - token->at.begin);
    token->keyword = keyword_of(token->name);
}

static bool read_digits(struct jl_lexer *lexer, uint64_t *value)
{
    bool fits = true;
    for (; is_digit(look(lexer, 0)) || look(lexer, 0) == '_'; lexer->at++) {
        if (look(lexer, 0) == '_') continue;
        fits = !__builtin_mul_overflow(*value, 10u, value) && fits;
        fits = !__builtin_add_overflow(*value, (uint64_t)(look(lexer, 0) - '0'), value) && fits;
    }
    return fits;
}

static void read_float(struct jl_lexer *lexer, struct jl_token *token)
{
    uint64_t ignored = 0;
    if (look(lexer, 0) == '.') {
        lexer->at++;
        read_digits(lexer, &ignored);
    }
    if ((look(lexer, 0) | 32) == 'e') {
        lexer->at += look(lexer, 1) == '-' || look(lexer, 1) == '+' ? 2 : 1;
        read_digits(lexer, &ignored);
    }
    char        digits[512];
    size_t      length = 0;
    const char *text = lexer->source->text;
    for (uint32_t i = token->at.begin; i < lexer->at && length < sizeof digits - 1; i++)
        if (text[i] != '_') digits[length++] = text[i];
    digits[length] = 0;
    token->kind = JL_T_FLOAT;
    token->number = strtod(digits, NULL);
    if (token->number - token->number != 0)
        report(lexer, "S1004", token->at.begin, "the number is larger than the largest f64")->help =
            "the largest is about 1.8e308";
}

static bool starts_float(const struct jl_lexer *lexer)
{
    if (look(lexer, 0) == '.') return is_digit(look(lexer, 1));
    if ((look(lexer, 0) | 32) != 'e') return false;
    bool has_sign = look(lexer, 1) == '-' || look(lexer, 1) == '+';
    return is_digit(look(lexer, has_sign ? 2 : 1));
}

static void read_number(struct jl_lexer *lexer, struct jl_token *token)
{
    static const struct {
        const char *text;
        unsigned    shift;
    } suffixes[] = {{"KB", 10}, {"MB", 20}, {"GB", 30}};
    token->kind = JL_T_INT;
    bool fits = read_digits(lexer, &token->value);
    if (starts_float(lexer)) {
        read_float(lexer, token);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        if (look(lexer, 0) != suffixes[i].text[0] || look(lexer, 1) != 'B') continue;
        lexer->at += 2;
        fits = !__builtin_mul_overflow(token->value, (uint64_t)1 << suffixes[i].shift,
                                       &token->value) &&
               fits;
    }
    uint32_t end = lexer->at;
    while (is_letter(look(lexer, 0)) || is_digit(look(lexer, 0))) lexer->at++;
    if (lexer->at > end)
        report(lexer, "S1004", token->at.begin,
               "a number has decimal digits, `_`, and one of the endings KB, MB and GB")
            ->help = "write it as 1_000_000, 16MB or 0.5";
    else if (!fits)
        report(lexer, "S1004", token->at.begin,
               "the number is larger than 18446744073709551615, the largest u64")
            ->help = "write a smaller number, or an f64 with a point";
}

/* Strings. */

static unsigned utf8_length(const struct jl_lexer *lexer)
{
    unsigned char a = (unsigned char)look(lexer, 0), b = (unsigned char)look(lexer, 1);
    unsigned      count = a < 0xC2 ? 0 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : a < 0xF5 ? 4 : 0;
    for (unsigned i = 1; i < count; i++)
        if (((unsigned char)look(lexer, i) & 0xC0) != 0x80) return 0;
    if ((a == 0xE0 && b < 0xA0) || (a == 0xED && b > 0x9F) || (a == 0xF0 && b < 0x90) ||
        (a == 0xF4 && b > 0x8F))
        return 0;
    return count;
}

static char read_escape(struct jl_lexer *lexer)
{
    static const char from[] = "nrt0\"\\", to[] = "\n\r\t\0\"\\";
    const char        c = look(lexer, 1);
    const char       *found = c ? strchr(from, c) : NULL;
    lexer->at += c && c != '\n' ? 2 : 1;
    if (found) return to[found - from];
    report(lexer, "S1006", lexer->at - 2, "this escape is unknown")->help =
        "the escapes are \\n, \\r, \\t, \\0, \\\" and \\\\";
    return '?';
}

static void read_string(struct jl_lexer *lexer, struct jl_token *token)
{
    const char *text = lexer->source->text;
    char        quote = look(lexer, 0);
    uint32_t    end = ++lexer->at, used = 0;
    while (end < lexer->source->length && text[end] != quote && text[end] != '\n')
        end +=
            text[end] == '\\' && end + 1 < lexer->source->length && text[end + 1] != '\n' ? 2 : 1;
    char *bytes = jl_new(lexer->arena, end - lexer->at + 1);
    while (lexer->at < end) {
        unsigned char c = (unsigned char)look(lexer, 0);
        unsigned      count = c < 0x80 ? 1 : utf8_length(lexer);
        if (!count) {
            count = 1;
            lexer->at++;
            report(lexer, "S1007", lexer->at - 1, "a string is UTF-8; this byte is not")->help =
                "save the file as UTF-8";
            lexer->at--;
        }
        if (c == '\\') {
            bytes[used++] = read_escape(lexer);
            continue;
        }
        memcpy(bytes + used, text + lexer->at, count);
        used += count;
        lexer->at += count;
    }
    token->kind = JL_T_STRING;
    token->text = bytes;
    token->length = used;
    if (look(lexer, 0) != quote || at_end(lexer))
        report(lexer, "S1005", token->at.begin, "the string has no end in this line")->help =
            "close it with `\"`; a line end inside of a string is written \\n";
    else
        lexer->at++;
    if (quote == '\'')
        report(lexer, "S1012", token->at.begin, "a string stands in double quotes")->help =
            used == 1 ? jl_format(lexer->arena, "write \"text\"; a byte is a number, here %d",
                                  (unsigned char)bytes[0])
                      : "write \"text\"";
}

/* Signs: the longest first. Those that Janus has elsewhere are read, so that the parser can say
 * what to write. */
static void read_sign(struct jl_lexer *lexer, struct jl_token *token)
{
    static const char *const signs[] = {
        "..=", "..<", "**=", "<<=", ">>=", "...", "..", "->", "=>", "==", "!=",
        "<=",  ">=",  "+=",  "-=",  "*=",  "/=",  "%=", "&&", "||", "**", "<<",
        ">>",  "|>",  "??",  "?.",  ":=",  "++",  "--", "{.", ".}", "::",
    };
    const char *text = lexer->source->text + lexer->at;
    uint32_t    left = lexer->source->length - lexer->at, length = 1;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        uint32_t its = (uint32_t)strlen(signs[i]);
        if (its > left || memcmp(text, signs[i], its) != 0) continue;
        length = its;
        break;
    }
    token->kind = JL_T_SIGN;
    for (uint32_t i = 0; i < length; i++) token->sign = token->sign << 8 | (unsigned char)text[i];
    lexer->at += length;
}

static void read_bad(struct jl_lexer *lexer, struct jl_token *token)
{
    token->kind = JL_T_BAD;
    do lexer->at++;
    while (!at_end(lexer) && (unsigned char)look(lexer, 0) >= 0x80);
    report(lexer, "S1007", token->at.begin, "this character has no meaning outside of a string")
        ->help = "names have the letters a to z and A to Z, digits, and `_`";
}

static bool is_sign(char c) { return c && strchr("(){}[]<>=+-*/%.,:|&^~!?@#$", c); }

struct jl_token jl_lex(struct jl_lexer *lexer)
{
    skip(lexer);
    struct jl_token token = {
        .at = {lexer->at, lexer->at}, .indent = lexer->indent, .is_first = lexer->fresh};
    char c = look(lexer, 0);
    if (at_end(lexer)) return token;
    lexer->fresh = false;
    if (c == '\n' || c == ';') {
        token.kind = JL_T_NEWLINE;
        lexer->at++;
        if (c == '\n') {
            lexer->fresh = true;
            lexer->indent = 0;
        }
    } else if (is_letter(c)) {
        read_word(lexer, &token);
    } else if (is_digit(c)) {
        read_number(lexer, &token);
    } else if (c == '"' || c == '\'') {
        read_string(lexer, &token);
    } else if (is_sign(c)) {
        read_sign(lexer, &token);
    } else {
        read_bad(lexer, &token);
    }
    token.at.end = lexer->at;
    return token;
}

bool jl_next_comment(const struct jl_source *source, uint32_t *at, struct jl_span *out)
{
    const char *text = source->text;
    uint32_t    i = *at, end = source->length;
    while (i < end) {
        if (text[i] == '"' || text[i] == '\'') {
            char quote = text[i++];
            while (i < end && text[i] != quote && text[i] != '\n')
                i += text[i] == '\\' && i + 1 < end && text[i + 1] != '\n' ? 2 : 1;
            i++;
        } else if (text[i] == '/' && i + 1 < end && text[i + 1] == '/') {
            out->begin = i;
            while (i < end && text[i] != '\n') i++;
            out->end = *at = i;
            while (out->end > out->begin && (unsigned char)text[out->end - 1] <= ' ') out->end--;
            return true;
        } else {
            i++;
        }
    }
    *at = end;
    return false;
}
