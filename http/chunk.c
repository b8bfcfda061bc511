/* SPDX-License-Identifier: MIT */
/* One state for each place in the grammar of a chunk; a byte moves from state to state. */
#include "http/chunk.h"

enum state {
    SIZE_FIRST,  /* the first digit of a size */
    SIZE,        /* more digits, or what follows them */
    BEFORE_EXT,  /* spaces, then ";" */
    EXT_NAME0,   /* spaces, then a name */
    EXT_NAME,    /* more of the name */
    AFTER_NAME,  /* spaces, then "=" or ";" */
    EXT_VALUE0,  /* spaces, then a value */
    EXT_TOKEN,   /* more of a value without quotes */
    EXT_QUOTED,  /* more of a value in quotes */
    EXT_ESCAPED, /* behind a backslash in quotes */
    AFTER_VALUE, /* behind a value in quotes */
    LINE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    LAST,
    BAD,
};

void jrt_http_chunks_begin(struct jrt_http_chunks *chunks) { memset(chunks, 0, sizeof *chunks); }

static uint8_t fail(struct jrt_http_chunks *chunks, const char *why)
{
    chunks->why = why;
    return BAD;
}

/* A digit of the size. */
static uint8_t digit(struct jrt_http_chunks *chunks, char byte)
{
    if (chunks->left > (uint64_t)INT64_MAX >> 4)
        return fail(chunks, "the size of a chunk is too large");
    chunks->left = chunks->left << 4 | jrt_http_hex(byte);
    return SIZE;
}

/* The end of a line, whose LF has come. */
static uint8_t line_done(struct jrt_http_chunks *chunks)
{
    uint64_t fair = 16 + 2 * (chunks->left < 4096 ? chunks->left : 4096);
    uint64_t excess = chunks->excess + chunks->line_bytes;
    chunks->excess = excess > fair ? (uint32_t)(excess - fair) : 0;
    chunks->line_bytes = 0;
    if (chunks->excess > JRT_HTTP_CHUNK_EXCESS_BYTES)
        return fail(chunks, "the lines of chunks outweigh their data");
    return chunks->left > 0 ? DATA : LAST;
}

/* Behind a size, a name or a value: what may follow if it is over. */
static uint8_t follow(struct jrt_http_chunks *chunks, char byte, uint8_t spaces)
{
    if (byte == '\r') return LINE_LF;
    if (byte == ';') return EXT_NAME0;
    if (byte == '=' && spaces == AFTER_NAME) return EXT_VALUE0;
    if (jrt_http_is_space(byte)) return spaces;
    return fail(chunks, "a byte must not stand in the line of a chunk");
}

/* Inside of an extension. */
static uint8_t extension(struct jrt_http_chunks *chunks, uint8_t state, char byte)
{
    bool token = jrt_http_is(byte, JRT_HTTP_TOKEN);
    switch (state) {
    case EXT_NAME0:
        if (jrt_http_is_space(byte)) return EXT_NAME0;
        return token ? EXT_NAME : fail(chunks, "the name of a chunk extension is missing");
    case EXT_NAME: return token ? EXT_NAME : follow(chunks, byte, AFTER_NAME);
    case EXT_VALUE0:
        if (jrt_http_is_space(byte)) return EXT_VALUE0;
        if (byte == '"') return EXT_QUOTED;
        return token ? EXT_TOKEN : fail(chunks, "the value of a chunk extension is missing");
    case EXT_TOKEN: return token ? EXT_TOKEN : follow(chunks, byte, BEFORE_EXT);
    case EXT_QUOTED:
        if (byte == '"') return AFTER_VALUE;
        if (byte == '\\') return EXT_ESCAPED;
        return jrt_http_is(byte, JRT_HTTP_QUOTED)
                   ? EXT_QUOTED
                   : fail(chunks, "a control byte must not stand in a chunk extension");
    default: /* EXT_ESCAPED */
        return jrt_http_is(byte, JRT_HTTP_VALUE)
                   ? EXT_QUOTED
                   : fail(chunks, "a control byte must not stand in a chunk extension");
    }
}

/* Which state a byte of framing leads to. */
static uint8_t step(struct jrt_http_chunks *chunks, uint8_t state, char byte)
{
    switch (state) {
    case SIZE_FIRST:
        if (jrt_http_is(byte, JRT_HTTP_HEX)) return digit(chunks, byte);
        return fail(chunks, "the size of a chunk is missing");
    case SIZE:
        if (jrt_http_is(byte, JRT_HTTP_HEX)) return digit(chunks, byte);
        return follow(chunks, byte, BEFORE_EXT);
    case BEFORE_EXT:
        if (byte == '\r') return fail(chunks, "a space stands at the end of a chunk's line");
        return follow(chunks, byte, BEFORE_EXT);
    case AFTER_NAME:
        if (byte == '\r') return fail(chunks, "a space stands at the end of a chunk's line");
        return follow(chunks, byte, AFTER_NAME);
    case AFTER_VALUE: return follow(chunks, byte, BEFORE_EXT);
    case LINE_LF: return byte == '\n' ? line_done(chunks) : fail(chunks, "LF must follow CR");
    case DATA_CR:
        return byte == '\r' ? DATA_LF : fail(chunks, "CR LF must follow the data of a chunk");
    case DATA_LF:
        return byte == '\n' ? SIZE_FIRST : fail(chunks, "CR LF must follow the data of a chunk");
    default: return extension(chunks, state, byte);
    }
}

static bool is_line(uint8_t state) { return state <= LINE_LF; }

enum jrt_http_chunk_step jrt_http_chunks_next(struct jrt_http_chunks *chunks, const char *bytes,
                                              size_t count, size_t *out_used,
                                              struct jrt_http_text *out_data)
{
    size_t  at = 0;
    uint8_t state = chunks->state;
    while (state != LAST && state != BAD && at < count) {
        if (state == DATA) {
            size_t piece = chunks->left < count - at ? (size_t)chunks->left : count - at;
            *out_data = (struct jrt_http_text){bytes + at, piece};
            *out_used = at + piece;
            chunks->left -= piece;
            chunks->state = chunks->left > 0 ? DATA : DATA_CR;
            return JRT_HTTP_CHUNK_DATA;
        }
        if (is_line(state) && ++chunks->line_bytes > JRT_HTTP_CHUNK_LINE_BYTES)
            state = fail(chunks, "the line of a chunk is too long");
        else
            state = step(chunks, state, bytes[at++]);
    }
    chunks->state = state;
    *out_used = at;
    if (state == BAD) return JRT_HTTP_CHUNK_BAD;
    return state == LAST ? JRT_HTTP_CHUNK_LAST : JRT_HTTP_CHUNK_MORE;
}

size_t jrt_http_chunk_head(char out[JRT_HTTP_CHUNK_HEAD_BYTES], uint64_t data_bytes)
{
    size_t digits = 1;
    while (digits < 16 && data_bytes >> (4 * digits) != 0) digits++;
    for (size_t i = 0; i < digits; i++)
        out[i] = "0123456789abcdef"[data_bytes >> (4 * (digits - 1 - i)) & 15];
    memcpy(out + digits, "\r\n", 2);
    return digits + 2;
}
