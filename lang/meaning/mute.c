/* SPDX-License-Identifier: MIT */
/*
 * Where the parser reported something, the tree is a guess. So the checker reports nothing in the
 * line of a syntax error, and no warnings if there is one.
 */
#include "meaning/check.h"

static struct jl_span line_of(const struct jl_source *source, struct jl_span at)
{
    uint32_t line, column;
    jl_source_place(source, at.begin, &line, &column);
    uint32_t end = line < source->line_count ? source->lines[line] : source->length + 1;
    return (struct jl_span){source->lines[line - 1], end};
}

void jl_mute_lines(struct jl_checker *c)
{
    c->muted = (struct jl_diagnostics){.arena = c->arena, .source = c->diagnostics->source};
    for (uint32_t i = 0; i < c->diagnostics->count; i++) {
        const struct jl_diagnostic *item = &c->diagnostics->items[i];
        if (item->severity == JL_ERROR_SEVERITY)
            JL_PUSH(c->arena, c->muted_lines, c->muted_count, c->muted_room) =
                line_of(c->unit->source, item->at);
    }
}

struct jl_diagnostics *jl_errors_at(struct jl_checker *c, struct jl_span at)
{
    for (uint32_t i = 0; i < c->muted_count; i++)
        if (at.begin >= c->muted_lines[i].begin && at.begin < c->muted_lines[i].end)
            return &c->muted;
    return c->diagnostics;
}

struct jl_diagnostics *jl_warnings(struct jl_checker *c)
{
    return c->muted_count ? &c->muted : c->diagnostics;
}
