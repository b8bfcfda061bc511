/* SPDX-License-Identifier: MIT */
/* The memory of a compilation, and interned names. */
#include "text/text.h"

#include <stdlib.h>
#include <string.h>

struct jl_arena_chunk {
    struct jl_arena_chunk *next;
    size_t                 room, used; /* bytes behind this head */
};

/* A chunk is so large that calloc takes it from mmap: pages that nobody uses are never touched. */
enum { HEAD_BYTES = 32, CHUNK_BYTES = 256 << 10, ALIGNMENT = 16 };
_Static_assert(sizeof(struct jl_arena_chunk) <= HEAD_BYTES, "the head fits its place");

static const size_t default_limit = (size_t)1 << 30;

_Thread_local void (*jl_arena_full)(void);

__attribute__((noreturn)) static void full(void)
{
    if (jl_arena_full) jl_arena_full();
    fputs("janusrt: the program is too large: the compiler's memory limit is reached\n", stderr);
    exit(2); /* NOLINT(concurrency-mt-unsafe): a compilation has one thread */
}

static struct jl_arena_chunk *add_chunk(struct jl_arena *arena, size_t bytes)
{
    size_t limit = arena->max_bytes ? arena->max_bytes : default_limit;
    if (bytes > limit || arena->used > limit - bytes) full();
    struct jl_arena_chunk *chunk = calloc(1, HEAD_BYTES + bytes);
    if (!chunk) full();
    chunk->room = bytes;
    arena->used += bytes;
    return chunk;
}

void *jl_new(struct jl_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) full();
    bytes = bytes ? (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
    struct jl_arena_chunk *first = arena->chunks;
    if (!first || bytes > first->room - first->used) {
        struct jl_arena_chunk *chunk = add_chunk(arena, bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES);
        if (first && bytes > CHUNK_BYTES / 4) { /* the first chunk still has room for small ones */
            chunk->next = first->next;
            first->next = chunk;
        } else {
            chunk->next = first;
            arena->chunks = chunk;
        }
        first = chunk;
    }
    void *result = (char *)first + HEAD_BYTES + first->used;
    first->used += bytes;
    return result;
}

void jl_arena_free(struct jl_arena *arena)
{
    for (struct jl_arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    arena->chunks = NULL;
    arena->used = 0;
}

char *jl_copy_text(struct jl_arena *arena, const char *text, size_t length)
{
    char *copy = jl_new(arena, length + 1);
    if (length) memcpy(copy, text, length);
    return copy;
}

char *jl_format(struct jl_arena *arena, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int   length = vsnprintf(NULL, 0, format, list);
    char *text = jl_new(arena, (size_t)(length < 0 ? 0 : length) + 1);
    if (length > 0) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(list);
    return text;
}

void *jl_push_(struct jl_arena *arena, void **items, size_t bytes, uint32_t *count, uint32_t *room)
{
    if (*count >= *room) {
        if (*room > UINT32_MAX / 2) full();
        uint32_t wanted = *room ? *room * 2 : 4;
        void    *larger = jl_new(arena, wanted * bytes);
        if (*count) memcpy(larger, *items, *count * bytes);
        *items = larger;
        *room = wanted;
    }
    void *item = (char *)*items + *count * bytes;
    memset(item, 0, bytes);
    ++*count;
    return item;
}

/* Names: an open hash table. */

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash ^ hash >> 32;
}

static void widen(struct jl_names *names)
{
    uint32_t     room = names->room ? names->room * 2 : 256;
    const char **slots = jl_new(names->arena, room * sizeof *slots);
    for (uint32_t i = 0; i < names->room; i++) {
        const char *name = names->slots[i];
        if (!name) continue;
        uint32_t at = (uint32_t)hash_of(name, strlen(name)) & (room - 1);
        while (slots[at]) at = (at + 1) & (room - 1);
        slots[at] = name;
    }
    names->slots = slots;
    names->room = room;
}

const char *jl_intern(struct jl_names *names, const char *text, size_t length)
{
    if (names->count * 2 >= names->room) widen(names);
    const char *end = length ? memchr(text, 0, length) : NULL;
    if (end) length = (size_t)(end - text); /* a name has no NUL */
    uint32_t at = (uint32_t)hash_of(text, length) & (names->room - 1);
    for (; names->slots[at]; at = (at + 1) & (names->room - 1)) {
        const char *other = names->slots[at];
        if (strncmp(other, text, length) == 0 && !other[length]) return other;
    }
    names->slots[at] = jl_copy_text(names->arena, text, length);
    names->count++;
    return names->slots[at];
}
