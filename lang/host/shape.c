/* SPDX-License-Identifier: MIT */
/* Shapes of types. */
#include "host/shape.h"

struct list {
    struct jl_part *parts;
    uint32_t        count, room;
};

static void add(struct jl_types *types, struct list *list, jl_type type, uint32_t offset)
{
    const struct jl_type_info *info = jl_info(types, type);
    switch (info->kind) {
    case JL_STR:
        JL_PUSH(types->arena, list->parts, list->count, list->room) =
            (struct jl_part){offset, 1, NULL};
        break;
    case JL_SLICE: {
        jl_type                of = info->of;
        const struct jl_shape *element = jl_shape_of(types, of);
        JL_PUSH(types->arena, list->parts, list->count, list->room) =
            (struct jl_part){offset, jl_size(types, of), element};
        break;
    }
    case JL_STRUCT:
        for (uint32_t i = 0; i < jl_info(types, type)->field_count; i++) {
            const struct jl_field *field = &jl_info(types, type)->fields[i];
            add(types, list, field->type, offset + field->offset);
        }
        break;
    default: break;
    }
}

const struct jl_shape *jl_shape_of(struct jl_types *types, jl_type type)
{
    struct list list = {NULL, 0, 0};
    add(types, &list, type, 0);
    if (list.count == 0) return NULL;
    struct jl_shape *shape = jl_new(types->arena, sizeof *shape);
    *shape = (struct jl_shape){jl_size(types, type), list.count, list.parts};
    return shape;
}
