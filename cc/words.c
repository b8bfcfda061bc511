/* SPDX-License-Identifier: MIT */
/* Lists of words, messages, and the response files of clang. */
#include "cc/cc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A response file may name another one; clang has no bound, and a file that names itself has no
 * end. */
enum { NESTED_MAX = 16, FILE_BYTES_MAX = 64 << 20 };

const char *cc_name = "janusrt cc";

static void say(const char *format, va_list arguments)
{
    fprintf(stderr, "%s: ", cc_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void cc_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void cc_refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    exit(1);
}

void *cc_memory(size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (memory == NULL) cc_refuse("no memory for %zu bytes", bytes);
    return memory;
}

void *cc_grow(void *memory, size_t count, size_t size)
{
    void *more = reallocarray(memory, count, size);
    if (more == NULL) cc_refuse("no memory for %zu times %zu bytes", count, size);
    return more;
}

char *cc_join(const char *format, ...)
{
    va_list arguments;
    char   *text = NULL;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) cc_refuse("no memory");
    return text;
}

void cc_words_add(struct cc_words *words, const char *word)
{
    if (words->count + 2 > words->capacity) {
        words->capacity = words->capacity < 32 ? 32 : words->capacity * 2;
        words->at = cc_grow(words->at, words->capacity, sizeof *words->at);
    }
    words->at[words->count++] = cc_join("%s", word);
    words->at[words->count] = NULL;
}

/* The file's text, or NULL: there is no such file. Then clang takes the word @FILE as an input. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) return NULL;
    char  *text = NULL;
    size_t used = 0, got;
    do {
        if (used >= FILE_BYTES_MAX) cc_refuse("%s: more than %d bytes", path, FILE_BYTES_MAX);
        text = cc_grow(text, used + 65537, 1);
        got = fread(text + used, 1, 65536, file);
        used += got;
    } while (got == 65536); /* less: the end, or an error */
    if (ferror(file)) cc_refuse("%s: %s", path, strerror(errno));
    (void)fclose(file);
    text[used] = '\0';
    /* Clang would convert UTF-16 and skip the mark of UTF-8; then it sees other words than we. */
    if (strlen(text) != used || strncmp(text, "\xef\xbb\xbf", 3) == 0) {
        cc_refuse("%s: a response file must be plain text without a byte-order mark", path);
    }
    return text;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Cuts one word out of a response file: quotes of both kinds, and backslashes, also in quotes, as
 * clang reads it. */
static char *cut_word(char **text)
{
    char *at = *text, *to = at, *word = at, quote = '\0';
    for (; *at != '\0' && (quote != '\0' || !is_blank(*at)); at++) {
        if (*at == '\\' && at[1] != '\0') {
            *to++ = *++at;
        } else if (quote == '\0' && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (quote != '\0' && *at == quote) {
            quote = '\0';
        } else {
            *to++ = *at;
        }
    }
    *text = *at != '\0' ? at + 1 : at;
    *to = '\0';
    return word;
}

static void expand(struct cc_words *into, const char *word, int depth)
{
    char *text = word[0] == '@' ? read_file(word + 1) : NULL;
    if (text == NULL) {
        cc_words_add(into, word);
        return;
    }
    if (depth == NESTED_MAX) {
        cc_refuse("%s: response files are nested deeper than %d", word, NESTED_MAX);
    }
    for (char *at = text;;) {
        while (is_blank(*at)) at++;
        if (*at == '\0') break;
        const char *cut = cut_word(&at);
        if (*cut != '\0') expand(into, cut, depth + 1); /* clang drops empty words here */
    }
    free(text);
}

void cc_words_expand(struct cc_words *into, char *const *words)
{
    for (; *words != NULL; words++) expand(into, *words, 0);
}
