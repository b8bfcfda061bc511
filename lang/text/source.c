/* SPDX-License-Identifier: MIT */
/* Sources, and the line and column of a byte. */
#include "text/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void find_lines(struct jl_arena *arena, struct jl_source *source)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < source->length; i++) count += source->text[i] == '\n';
    source->lines = jl_new(arena, count * sizeof *source->lines);
    source->line_count = 1;
    for (uint32_t i = 0; i < source->length; i++)
        if (source->text[i] == '\n') source->lines[source->line_count++] = i + 1;
}

void jl_source_of(struct jl_arena *arena, const char *path, const char *text, size_t length,
                  struct jl_source *out)
{
    if (length > JL_SOURCE_MAX) length = JL_SOURCE_MAX;
    *out = (struct jl_source){
        .path = jl_copy_text(arena, path, strlen(path)),
        .text = jl_copy_text(arena, text, length),
        .length = (uint32_t)length,
    };
    find_lines(arena, out);
}

static bool read_all(struct jl_arena *arena, const char *path, FILE *file, struct jl_source *out,
                     const char **why)
{
    size_t room = 64 << 10, length = 0;
    char  *bytes = malloc(room);
    while (bytes && length <= JL_SOURCE_MAX) {
        size_t got = fread(bytes + length, 1, room - length, file);
        length += got;
        if (!got) break;
        if (length < room) continue;
        char *larger = realloc(bytes, room *= 2);
        if (!larger) free(bytes);
        bytes = larger;
    }
    *why = NULL;
    if (!bytes)
        *why = jl_format(arena, "there is no memory to read it");
    else if (ferror(file))
        *why = jl_format(arena, "%s", strerrordesc_np(errno));
    else if (length > JL_SOURCE_MAX)
        *why = jl_format(arena, "the file is larger than %d MB", JL_SOURCE_MAX >> 20);
    else
        jl_source_of(arena, path, bytes, length, out);
    free(bytes);
    return !*why;
}

bool jl_source_read(struct jl_arena *arena, const char *path, struct jl_source *out,
                    const char **why)
{
    if (!strcmp(path, "-")) return read_all(arena, "<stdin>", stdin, out, why);
    FILE *file = fopen(path, "rb");
    if (!file) {
        *why = jl_format(arena, "%s", strerrordesc_np(errno));
        return false;
    }
    bool done = read_all(arena, path, file, out, why);
    fclose(file);
    return done;
}

void jl_source_place(const struct jl_source *source, uint32_t offset, uint32_t *line,
                     uint32_t *column)
{
    if (offset > source->length) offset = source->length;
    uint32_t low = 0, high = source->line_count; /* lines[low] <= offset < lines[high] */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (source->lines[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    uint32_t at = 1;
    for (uint32_t i = source->lines[low]; i < offset; i++)
        at += ((unsigned char)source->text[i] & 0xC0) != 0x80;
    *line = low + 1;
    *column = at;
}
