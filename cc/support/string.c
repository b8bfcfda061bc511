/* SPDX-License-Identifier: MIT */
/*
 * String functions. They pay one op for 64 bytes that the C library has looked at. Lengths and
 * copies pay in portions, with a check between. Searches pay after the call: how many bytes these
 * are is known only then. Comparisons pay for each 4 KiB that was equal.
 */
#include "cc/support/support.h"

#include <string.h>
#include <strings.h>

char *__strcpy_chk(char *to, const char *from, size_t room);
char *__stpcpy_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t bytes, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
char *__strncat_chk(char *to, const char *from, size_t bytes, size_t room);

size_t janus_cc_strlen(const char *text);
size_t janus_cc_strnlen(const char *text, size_t bytes);
char  *janus_cc_strcpy(char *to, const char *from);
char  *janus_cc_stpcpy(char *to, const char *from);
char  *janus_cc_strncpy(char *to, const char *from, size_t bytes);
char  *janus_cc_stpncpy(char *to, const char *from, size_t bytes);
char  *janus_cc_strcat(char *to, const char *from);
char  *janus_cc_strncat(char *to, const char *from, size_t bytes);
char  *janus_cc___strcpy_chk(char *to, const char *from, size_t room);
char  *janus_cc___stpcpy_chk(char *to, const char *from, size_t room);
char  *janus_cc___strncpy_chk(char *to, const char *from, size_t bytes, size_t room);
char  *janus_cc___strcat_chk(char *to, const char *from, size_t room);
char  *janus_cc___strncat_chk(char *to, const char *from, size_t bytes, size_t room);
int    janus_cc_strcmp(const char *one, const char *other);
int    janus_cc_strncmp(const char *one, const char *other, size_t bytes);
int    janus_cc_strcasecmp(const char *one, const char *other);
int    janus_cc_strncasecmp(const char *one, const char *other, size_t bytes);
char  *janus_cc_strchr(const char *text, int byte);
char  *janus_cc_strrchr(const char *text, int byte);
char  *janus_cc_strchrnul(const char *text, int byte);
char  *janus_cc_strstr(const char *text, const char *what);
char  *janus_cc_strcasestr(const char *text, const char *what);
size_t janus_cc_strspn(const char *text, const char *set);
size_t janus_cc_strcspn(const char *text, const char *set);
char  *janus_cc_strpbrk(const char *text, const char *set);
char  *janus_cc_strdup(const char *text);
char  *janus_cc_strndup(const char *text, size_t bytes);
char  *janus_cc_strtok(char *text, const char *set);
char  *janus_cc_strtok_r(char *text, const char *set, char **rest);
char  *janus_cc_strsep(char **rest, const char *set);

/* Long texts are read in portions, with a check between. */
size_t janus_cc_strnlen(const char *text, size_t bytes)
{
    size_t before = 0, length = 0;
    while (bytes - before > PORTION_BYTES &&
           (length = strnlen(text + before, PORTION_BYTES)) == PORTION_BYTES) {
        pay_bytes(PORTION_BYTES);
        before += PORTION_BYTES;
    }
    if (bytes - before <= PORTION_BYTES) length = strnlen(text + before, bytes - before);
    pay_bytes(length);
    return before + length;
}

size_t janus_cc_strlen(const char *text) { return janus_cc_strnlen(text, SIZE_MAX); }

char *janus_cc_stpcpy(char *to, const char *from)
{
    size_t length;
    for (; (length = strnlen(from, PORTION_BYTES)) == PORTION_BYTES; from += PORTION_BYTES) {
        memcpy(to, from, PORTION_BYTES);
        pay_bytes(PORTION_BYTES);
        to += PORTION_BYTES;
    }
    memcpy(to, from, length + 1);
    pay_bytes(length);
    return to + length;
}

char *janus_cc_strcpy(char *to, const char *from)
{
    (void)janus_cc_stpcpy(to, from);
    return to;
}

char *janus_cc_strncpy(char *to, const char *from, size_t bytes)
{
    pay_bytes(bytes); /* it fills the rest with zeros */
    return strncpy(to, from, bytes);
}

char *janus_cc_stpncpy(char *to, const char *from, size_t bytes)
{
    pay_bytes(bytes);
    return stpncpy(to, from, bytes);
}

char *janus_cc_strcat(char *to, const char *from)
{
    (void)janus_cc_stpcpy(to + janus_cc_strlen(to), from);
    return to;
}

char *janus_cc_strncat(char *to, const char *from, size_t bytes)
{
    size_t length = janus_cc_strlen(to), more = janus_cc_strnlen(from, bytes);
    memcpy(to + length, from, more);
    to[length + more] = '\0';
    return to;
}

/* The real functions behind _FORTIFY_SOURCE end the program if there is too little room. */
char *janus_cc___stpcpy_chk(char *to, const char *from, size_t room)
{
    char *end = __stpcpy_chk(to, from, room);
    pay_bytes((size_t)(end - to));
    return end;
}

char *janus_cc___strcpy_chk(char *to, const char *from, size_t room)
{
    (void)janus_cc___stpcpy_chk(to, from, room);
    return to;
}

char *janus_cc___strncpy_chk(char *to, const char *from, size_t bytes, size_t room)
{
    if (bytes <= room) pay_bytes(bytes);
    return __strncpy_chk(to, from, bytes, room);
}

char *janus_cc___strcat_chk(char *to, const char *from, size_t room)
{
    (void)__strcat_chk(to, from, room); /* NOLINT(clang-analyzer-security.*): the program's call */
    pay_bytes(strlen(to));
    return to;
}

char *janus_cc___strncat_chk(char *to, const char *from, size_t bytes, size_t room)
{
    (void)__strncat_chk(to, from, bytes, room);
    pay_bytes(strlen(to));
    return to;
}

int janus_cc_strncmp(const char *one, const char *other, size_t bytes)
{
    for (; bytes >= COMPARED_BYTES; bytes -= COMPARED_BYTES) {
        int order = strncmp(one, other, COMPARED_BYTES);
        if (order != 0) return order;
        if (strnlen(one, COMPARED_BYTES) < COMPARED_BYTES) return 0;
        pay_bytes(COMPARED_BYTES);
        one += COMPARED_BYTES;
        other += COMPARED_BYTES;
    }
    return strncmp(one, other, bytes);
}

int janus_cc_strcmp(const char *one, const char *other)
{
    return janus_cc_strncmp(one, other, SIZE_MAX);
}

int janus_cc_strncasecmp(const char *one, const char *other, size_t bytes)
{
    for (; bytes >= COMPARED_BYTES; bytes -= COMPARED_BYTES) {
        int order = strncasecmp(one, other, COMPARED_BYTES);
        if (order != 0) return order;
        if (strnlen(one, COMPARED_BYTES) < COMPARED_BYTES) return 0;
        pay_bytes(COMPARED_BYTES);
        one += COMPARED_BYTES;
        other += COMPARED_BYTES;
    }
    return strncasecmp(one, other, bytes);
}

int janus_cc_strcasecmp(const char *one, const char *other)
{
    return janus_cc_strncasecmp(one, other, SIZE_MAX);
}

char *janus_cc_strchrnul(const char *text, int byte)
{
    char *found = strchrnul(text, byte);
    pay_bytes((size_t)(found - text));
    return found;
}

char *janus_cc_strchr(const char *text, int byte)
{
    char *found = janus_cc_strchrnul(text, byte);
    return *found == (char)byte ? found : NULL;
}

char *janus_cc_strrchr(const char *text, int byte)
{
    return memrchr(text, byte, janus_cc_strlen(text) + 1);
}

char *janus_cc_strstr(const char *text, const char *what)
{
    char *found = strstr(text, what);
    pay_bytes((found != NULL ? (size_t)(found - text) : strlen(text)) + strlen(what));
    return found;
}

char *janus_cc_strcasestr(const char *text, const char *what)
{
    char *found = strcasestr(text, what);
    pay_bytes((found != NULL ? (size_t)(found - text) : strlen(text)) + strlen(what));
    return found;
}

size_t janus_cc_strspn(const char *text, const char *set)
{
    size_t length = strspn(text, set);
    pay_bytes(length + strlen(set));
    return length;
}

size_t janus_cc_strcspn(const char *text, const char *set)
{
    size_t length = strcspn(text, set);
    pay_bytes(length + strlen(set));
    return length;
}

char *janus_cc_strpbrk(const char *text, const char *set)
{
    const char *found = text + janus_cc_strcspn(text, set);
    return *found != '\0' ? (char *)found : NULL;
}

char *janus_cc_strdup(const char *text)
{
    pay_bytes(strlen(text));
    return strdup(text);
}

char *janus_cc_strndup(const char *text, size_t bytes)
{
    pay_bytes(strnlen(text, bytes));
    return strndup(text, bytes);
}

/* The library remembers the rest of the text. The first call pays for all calls that follow. */
char *janus_cc_strtok(char *text, const char *set)
{
    pay_bytes((text != NULL ? strlen(text) : 0) + strlen(set));
    return strtok(text, set); /* NOLINT(concurrency-mt-unsafe): the program asked for it */
}

char *janus_cc_strtok_r(char *text, const char *set, char **rest)
{
    const char *begin = text != NULL ? text : *rest;
    char       *word = strtok_r(text, set, rest);
    if (begin != NULL && *rest != NULL) pay_bytes((size_t)(*rest - begin) + strlen(set));
    return word;
}

char *janus_cc_strsep(char **rest, const char *set)
{
    char *word = strsep(rest, set);
    if (word == NULL) return NULL;
    pay_bytes((*rest != NULL ? (size_t)(*rest - word) : strlen(word)) + strlen(set));
    return word;
}
