/* SPDX-License-Identifier: MIT */
/*
 * Memory operations that pay one op for 64 bytes. Above 64 KiB they work in portions and pay for
 * each before it begins. So a task that copies a gigabyte yields like any loop.
 */
#include "cc/support/support.h"

#include <string.h>
#include <strings.h>
#include <wchar.h>

/* The real functions behind _FORTIFY_SOURCE; `room` is the size of the destination. */
void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room);
void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room);
void *__memset_chk(void *to, int byte, size_t bytes, size_t room);
void *__mempcpy_chk(void *to, const void *from, size_t bytes, size_t room);

void    *janus_cc_memcpy(void *to, const void *from, size_t bytes);
void    *janus_cc_memmove(void *to, const void *from, size_t bytes);
void    *janus_cc_memset(void *to, int byte, size_t bytes);
void    *janus_cc_mempcpy(void *to, const void *from, size_t bytes);
void     janus_cc_bcopy(const void *from, void *to, size_t bytes);
void     janus_cc_bzero(void *to, size_t bytes);
int      janus_cc_memcmp(const void *one, const void *other, size_t bytes);
int      janus_cc_bcmp(const void *one, const void *other, size_t bytes);
void    *janus_cc_memchr(const void *in, int byte, size_t bytes);
void    *janus_cc_memrchr(const void *in, int byte, size_t bytes);
void    *janus_cc_rawmemchr(const void *in, int byte);
void    *janus_cc_memmem(const void *in, size_t bytes, const void *what, size_t what_bytes);
void    *janus_cc_memccpy(void *to, const void *from, int byte, size_t bytes);
void    *janus_cc___memcpy_chk(void *to, const void *from, size_t bytes, size_t room);
void    *janus_cc___memmove_chk(void *to, const void *from, size_t bytes, size_t room);
void    *janus_cc___memset_chk(void *to, int byte, size_t bytes, size_t room);
void    *janus_cc___mempcpy_chk(void *to, const void *from, size_t bytes, size_t room);
wchar_t *janus_cc_wmemcpy(wchar_t *to, const wchar_t *from, size_t count);
wchar_t *janus_cc_wmemmove(wchar_t *to, const wchar_t *from, size_t count);
wchar_t *janus_cc_wmemset(wchar_t *to, wchar_t wide, size_t count);
size_t   janus_cc_wcslen(const wchar_t *text);

void *janus_cc_memcpy(void *to, const void *from, size_t bytes)
{
    char       *end = to;
    const char *at = from;
    for (; bytes > PORTION_BYTES; bytes -= PORTION_BYTES) {
        pay_bytes(PORTION_BYTES);
        memcpy(end, at, PORTION_BYTES);
        end += PORTION_BYTES;
        at += PORTION_BYTES;
    }
    pay_bytes(bytes);
    memcpy(end, at, bytes);
    return to;
}

/* Begins at the end that is overwritten last. */
void *janus_cc_memmove(void *to, const void *from, size_t bytes)
{
    char       *end = to;
    const char *at = from;
    if ((uintptr_t)to - (uintptr_t)from >= bytes) { /* `to` is below, or they do not overlap */
        for (; bytes > PORTION_BYTES; bytes -= PORTION_BYTES) {
            pay_bytes(PORTION_BYTES);
            memmove(end, at, PORTION_BYTES);
            end += PORTION_BYTES;
            at += PORTION_BYTES;
        }
    } else {
        for (; bytes > PORTION_BYTES; bytes -= PORTION_BYTES) {
            size_t before = bytes - PORTION_BYTES;
            pay_bytes(PORTION_BYTES);
            memmove(end + before, at + before, PORTION_BYTES);
        }
    }
    pay_bytes(bytes);
    memmove(end, at, bytes);
    return to;
}

void *janus_cc_memset(void *to, int byte, size_t bytes)
{
    char *at = to;
    for (; bytes > PORTION_BYTES; bytes -= PORTION_BYTES) {
        pay_bytes(PORTION_BYTES);
        memset(at, byte, PORTION_BYTES);
        at += PORTION_BYTES;
    }
    pay_bytes(bytes);
    memset(at, byte, bytes);
    return to;
}

void *janus_cc_mempcpy(void *to, const void *from, size_t bytes)
{
    return (char *)janus_cc_memcpy(to, from, bytes) + bytes;
}

void janus_cc_bcopy(const void *from, void *to, size_t bytes)
{
    (void)janus_cc_memmove(to, from, bytes);
}

void janus_cc_bzero(void *to, size_t bytes) { (void)janus_cc_memset(to, 0, bytes); }

/* Pays for each 4 KiB that was equal, because memcmp does not tell where it stopped. */
int janus_cc_memcmp(const void *one, const void *other, size_t bytes)
{
    const char *left = one, *right = other;
    for (; bytes >= COMPARED_BYTES; bytes -= COMPARED_BYTES) {
        int order = memcmp(left, right, COMPARED_BYTES);
        if (order != 0) return order;
        pay_bytes(COMPARED_BYTES);
        left += COMPARED_BYTES;
        right += COMPARED_BYTES;
    }
    return memcmp(left, right, bytes);
}

int janus_cc_bcmp(const void *one, const void *other, size_t bytes)
{
    return janus_cc_memcmp(one, other, bytes);
}

void *janus_cc_memchr(const void *in, int byte, size_t bytes)
{
    const char *at = in;
    for (; bytes > PORTION_BYTES; bytes -= PORTION_BYTES) {
        char *found = memchr(at, byte, PORTION_BYTES);
        pay_bytes(found != NULL ? (size_t)(found - at) : PORTION_BYTES);
        if (found != NULL) return found;
        at += PORTION_BYTES;
    }
    char *found = memchr(at, byte, bytes);
    pay_bytes(found != NULL ? (size_t)(found - at) : bytes);
    return found;
}

void *janus_cc_memrchr(const void *in, int byte, size_t bytes)
{
    char *found = memrchr(in, byte, bytes);
    pay_bytes(found != NULL ? (size_t)((const char *)in + bytes - found) : bytes);
    return found;
}

void *janus_cc_rawmemchr(const void *in, int byte)
{
    char *found = rawmemchr(in, byte);
    pay_bytes((size_t)(found - (const char *)in));
    return found;
}

void *janus_cc_memmem(const void *in, size_t bytes, const void *what, size_t what_bytes)
{
    char *found = memmem(in, bytes, what, what_bytes);
    pay_bytes((found != NULL ? (size_t)(found - (const char *)in) : bytes) + what_bytes);
    return found;
}

void *janus_cc_memccpy(void *to, const void *from, int byte, size_t bytes)
{
    char *end = memccpy(to, from, byte, bytes);
    pay_bytes(end != NULL ? (size_t)(end - (char *)to) : bytes);
    return end;
}

/* A call that writes too much goes to the real function, which ends the program. */
void *janus_cc___memcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
    if (bytes > room) return __memcpy_chk(to, from, bytes, room);
    return janus_cc_memcpy(to, from, bytes);
}

void *janus_cc___memmove_chk(void *to, const void *from, size_t bytes, size_t room)
{
    if (bytes > room) return __memmove_chk(to, from, bytes, room);
    return janus_cc_memmove(to, from, bytes);
}

void *janus_cc___memset_chk(void *to, int byte, size_t bytes, size_t room)
{
    if (bytes > room) return __memset_chk(to, byte, bytes, room);
    return janus_cc_memset(to, byte, bytes);
}

void *janus_cc___mempcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
    if (bytes > room) return __mempcpy_chk(to, from, bytes, room);
    return janus_cc_mempcpy(to, from, bytes);
}

wchar_t *janus_cc_wmemcpy(wchar_t *to, const wchar_t *from, size_t count)
{
    return janus_cc_memcpy(to, from, count * sizeof *to);
}

wchar_t *janus_cc_wmemmove(wchar_t *to, const wchar_t *from, size_t count)
{
    return janus_cc_memmove(to, from, count * sizeof *to);
}

wchar_t *janus_cc_wmemset(wchar_t *to, wchar_t wide, size_t count)
{
    pay_bytes(count * sizeof *to);
    return wmemset(to, wide, count);
}

size_t janus_cc_wcslen(const wchar_t *text)
{
    size_t length = wcslen(text);
    pay_bytes(length * sizeof *text);
    return length;
}
