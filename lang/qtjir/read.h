/* SPDX-License-Identifier: MIT */
/* The reader of the text form: tokens, and what its files share. */
#ifndef JANUSRT_LANG_QTJIR_READ_H
#define JANUSRT_LANG_QTJIR_READ_H

#include "qtjir/inner.h"

/* What one module may have. */
enum {
    QT_NODES_MAX = 1 << 20,
    QT_FUNCTIONS_MAX = 1 << 16,
    QT_TYPES_MAX = 2000,
    QT_PARAMS_MAX = 64
};

enum qt_token {
    QT_T_END,
    QT_T_LINE,
    QT_T_WORD,
    QT_T_VALUE,
    QT_T_AT,
    QT_T_NUMBER,
    QT_T_TEXT,
    QT_T_SIGN
};

/* A name that was used before it was defined. */
struct qt_fix {
    uint32_t    function, node, operand;
    const char *name;   /* interned; NULL: a number */
    uint32_t    number; /* of a value */
    uint32_t    begin;  /* in the source */
};

struct qt_reader {
    struct qt_module       *module;
    const struct jl_source *source;
    struct jl_diagnostics  *diagnostics;
    uint32_t                at; /* the next byte */
    /* the token */
    enum qt_token token;
    char          sign; /* SIGN: its byte; '>' is "->" */
    const char   *word; /* interned: WORD, VALUE, AT without the mark; NUMBER; TEXT */
    uint32_t      word_length, begin, end;
    uint32_t      place_line, place_column; /* of the last comment "; 12:5" */
    /* scopes: 0 types, 1 functions + 1, 2 + function: nodes + 1 */
    struct qt_map  names;
    struct qt_fix *fixes; /* functions */
    uint32_t       fix_count, fix_room;
    struct qt_fix *values; /* of the function under way */
    uint32_t       value_count, value_room;
    uint32_t      *numbered; /* node + 1 by number, from 1 */
    uint32_t       numbered_count, numbered_room;
    uint32_t       nodes, fields; /* in the module */
    uint32_t       function;
    uint32_t      *starts; /* where each function begins */
    uint32_t       start_count, start_room;
};

void qt_next(struct qt_reader *p);
bool qt_at_sign(const struct qt_reader *p, char sign);
bool qt_at_word(const struct qt_reader *p, const char *word);
/* These take the token if it is there; the second reports what is missing. */
bool qt_take_sign(struct qt_reader *p, char sign);
bool qt_take_word(struct qt_reader *p, const char *word);
bool qt_need_sign(struct qt_reader *p, char sign);
/* Takes a token of a kind; NULL after a report. */
const char *qt_need(struct qt_reader *p, enum qt_token token, const char *what);
__attribute__((format(printf, 3, 4))) bool qt_wrong(struct qt_reader *p, const char *code,
                                                    const char *format, ...);
void                                       qt_skip_line(struct qt_reader *p);
void                                       qt_skip_lines(struct qt_reader *p);

/* An integer of 64 bits; f64 and u64 as bits. */
bool qt_read_number(struct qt_reader *p, jl_type type, int64_t *out);
bool qt_read_u32(struct qt_reader *p, uint32_t *out);
/* The index of a word in a table; false after a report. */
bool qt_read_choice(struct qt_reader *p, const char *const *names, uint32_t count, const char *what,
                    uint32_t *out);
jl_type qt_read_type(struct qt_reader *p); /* BAD after a report */
bool    qt_read_declaration(struct qt_reader *p, bool *known);
void    qt_declare_types(struct qt_reader *p);
bool    qt_read_node(struct qt_reader *p, uint32_t block);
void    qt_finish_functions(struct qt_reader *p);

#endif
