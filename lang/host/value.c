/* SPDX-License-Identifier: MIT */
/* Texts, slices and the memory of values. */
#include "host/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_AN_OP = 256, PAID_AT_ONCE = 1024 };

struct jl_block { /* of :core */
    struct jl_block *next;
    uint64_t         pad;
};

static void *core_memory(struct jl_world *world, size_t bytes)
{
    struct jl_block *block = bytes < SIZE_MAX / 2 ? malloc(sizeof *block + bytes) : NULL;
    if (!block) jl_end_task(JANUS_NO_MEMORY, 0);
    block->next = world->blocks;
    world->blocks = block;
    return block + 1;
}

/* Work on many bytes costs more than the operation of the call that does it. */
void jl_pay_bytes(size_t bytes)
{
    if (jl_core_task) return;
    for (size_t left = bytes / BYTES_AN_OP; left > 0;) {
        uint32_t part = left < PAID_AT_ONCE ? (uint32_t)left : PAID_AT_ONCE;
        janus_check_or_end(part);
        left -= part;
    }
}

void *jl_task_memory(size_t bytes)
{
    if (bytes == 0) bytes = 1;
    struct jl_task *self = jl_core_task;
    if (self) return core_memory(self->world, bytes);
    struct jl_world *world = jl_self()->world;
    if (world->reports) atomic_fetch_add_explicit(&world->allocated, bytes, memory_order_relaxed);
    void *memory = janus_alloc(bytes);
    if (!memory) jl_end_task(janus_cancelled() ? JANUS_CANCELLED : JANUS_NO_MEMORY, 0);
    return memory;
}

struct jl_slice jl_slice_new(int64_t length, uint32_t element_bytes, uint64_t place)
{
    if (length < 0) {
        char text[64];
        int  used = snprintf(text, sizeof text, "an array of %" PRId64 " elements", length);
        jl_panic((struct jl_text){text, used}, place);
    }
    size_t bytes = 0;
    if (__builtin_mul_overflow((size_t)length, (size_t)element_bytes, &bytes)) bytes = SIZE_MAX / 2;
    if (bytes == 0) return (struct jl_slice){NULL, length};
    void *items = jl_task_memory(bytes);
    jl_pay_bytes(bytes);
    memset(items, 0, bytes);
    return (struct jl_slice){items, length};
}

void *jl_environment(size_t bytes) { return jl_task_memory(bytes); }

struct jl_text jl_concat(struct jl_text left, struct jl_text right)
{
    if (left.length == 0) return right;
    if (right.length == 0) return left;
    char *bytes = jl_task_memory((size_t)left.length + (size_t)right.length);
    jl_pay_bytes((size_t)left.length + (size_t)right.length);
    memcpy(bytes, left.bytes, (size_t)left.length);
    memcpy(bytes + left.length, right.bytes, (size_t)right.length);
    return (struct jl_text){bytes, left.length + right.length};
}

static struct jl_text text_of(const char *text, int length)
{
    char *bytes = jl_task_memory((size_t)length);
    memcpy(bytes, text, (size_t)length);
    return (struct jl_text){bytes, length};
}

struct jl_text jl_text_of_i64(int64_t value)
{
    char text[24];
    return text_of(text, snprintf(text, sizeof text, "%" PRId64, value));
}

struct jl_text jl_text_of_u64(uint64_t value)
{
    char text[24];
    return text_of(text, snprintf(text, sizeof text, "%" PRIu64, value));
}

struct jl_text jl_text_of_f64(double value)
{
    char text[40];
    int  used = 0;
    if (isnan(value)) return text_of("nan", 3);
    for (int digits = 1; digits <= 17; digits++) {
        used = snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    if (isfinite(value) && !strpbrk(text, ".e")) {
        memcpy(text + used, ".0", 3);
        used += 2;
    }
    return text_of(text, used);
}

struct jl_text jl_text_of_bool(bool value)
{
    return value ? (struct jl_text){"true", 4} : (struct jl_text){"false", 5};
}

bool jl_text_equal(struct jl_text left, struct jl_text right)
{
    if (left.length != right.length) return false;
    jl_pay_bytes((size_t)left.length);
    return left.length == 0 || memcmp(left.bytes, right.bytes, (size_t)left.length) == 0;
}

static void check_part(int64_t from, int64_t to, int64_t length, uint64_t place)
{
    if ((uint64_t)to > (uint64_t)length) jl_trap_index(to, length, place);
    if ((uint64_t)from > (uint64_t)to) jl_trap_index(from, to, place);
}

struct jl_slice jl_slice_part(struct jl_slice slice, int64_t from, int64_t to,
                              uint32_t element_bytes, uint64_t place)
{
    check_part(from, to, slice.length, place);
    if (from == to) return (struct jl_slice){NULL, 0};
    return (struct jl_slice){(char *)slice.items + (size_t)from * element_bytes, to - from};
}

struct jl_text jl_text_part(struct jl_text text, int64_t from, int64_t to, uint64_t place)
{
    check_part(from, to, text.length, place);
    if (from == to) return (struct jl_text){"", 0};
    return (struct jl_text){text.bytes + from, to - from};
}

static uint64_t *field_of(janus_budget *budget, uint32_t field)
{
    uint64_t *const fields[] = {&budget->ops, &budget->memory, &budget->spawn_count,
                                &budget->channel_ops, &budget->syscalls};
    return fields[field < 5 ? field : 0];
}

janus_budget jl_budget_with(janus_budget budget, uint32_t field, int64_t number)
{
    *field_of(&budget, field) = number < 0 ? 0 : (uint64_t)number;
    return budget;
}

int64_t jl_budget_get(janus_budget budget, uint32_t field)
{
    uint64_t number = *field_of(&budget, field);
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

janus_budget jl_budget_new(const int64_t numbers[5])
{
    janus_budget made = {0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < 5; i++) made = jl_budget_with(made, i, numbers[i]);
    return made;
}

double jl_f64_of_bits(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A text and a slice lie in the same way: an address, then a length. */
struct view {
    void   *items;
    int64_t length;
};

static struct view *view_at(void *value, const struct jl_part *part)
{
    return (struct view *)(void *)((char *)value + part->offset);
}

static size_t bytes_of(const struct view *view, const struct jl_part *part)
{
    return (size_t)view->length * part->element_bytes;
}

static void *element_at(const struct view *view, const struct jl_part *part, int64_t index)
{
    return (char *)view->items + (size_t)index * part->element_bytes;
}

/* The copies are memory of the task: whatever ends it now, they end with it. */
static void copy_all(void *value, const struct jl_shape *shape)
{
    for (uint32_t i = 0; shape && i < shape->part_count; i++) {
        const struct jl_part *part = &shape->parts[i];
        struct view          *view = view_at(value, part);
        size_t                bytes = bytes_of(view, part);
        if (bytes == 0) continue;
        void *copy = jl_task_memory(bytes);
        jl_pay_bytes(bytes);
        memcpy(copy, view->items, bytes);
        view->items = copy;
        for (int64_t k = 0; part->element && k < view->length; k++) {
            copy_all(element_at(view, part, k), part->element);
        }
    }
}

static void drop_elements(const struct view *view, const struct jl_part *part, int64_t from,
                          int64_t to)
{
    for (int64_t k = from; part->element && k < to; k++) {
        jl_unpack_drop(element_at(view, part, k), part->element);
    }
}

/* Drops the parts of a value from number `from` up to `to`. */
static void drop_parts(void *value, const struct jl_shape *shape, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const struct jl_part *part = &shape->parts[i];
        struct view          *view = view_at(value, part);
        if (bytes_of(view, part) == 0) continue;
        drop_elements(view, part, 0, view->length);
        janus_discard(view->items);
    }
}

void jl_unpack_drop(void *value, const struct jl_shape *shape)
{
    if (shape && !jl_core_task) drop_parts(value, shape, 0, shape->part_count);
}

/* False: nothing is detached any more. */
static bool detach_all(void *value, const struct jl_shape *shape)
{
    for (uint32_t i = 0; shape && i < shape->part_count; i++) {
        const struct jl_part *part = &shape->parts[i];
        struct view          *view = view_at(value, part);
        void                 *detached = NULL;
        int64_t               k = 0;
        if (bytes_of(view, part) == 0) continue;
        while (part->element && k < view->length) {
            if (!detach_all(element_at(view, part, k), part->element)) break;
            k++;
        }
        if (!part->element || k == view->length) detached = janus_detach(view->items);
        if (!detached) {
            drop_elements(view, part, 0, k);
            drop_parts(value, shape, 0, i);
            return false;
        }
        view->items = detached;
    }
    return true;
}

void jl_pack(void *value, const struct jl_shape *shape)
{
    copy_all(value, shape);
    if (!jl_core_task && !detach_all(value, shape)) jl_end_task(JANUS_NO_MEMORY, 0);
}

static janus_status adopt(void *block)
{
    janus_status status = janus_adopt(block);
    if (status == JANUS_BUDGET_EXHAUSTED) {
        /* The task is exhausted as in an allocation, and tries again with what it is given. */
        void *room = janus_alloc(16);
        janus_free(room);
        status = janus_adopt(block);
    }
    return status;
}

/* On an error what is not adopted is dropped. */
static janus_status adopt_all(void *value, const struct jl_shape *shape)
{
    for (uint32_t i = 0; shape && i < shape->part_count; i++) {
        const struct jl_part *part = &shape->parts[i];
        struct view          *view = view_at(value, part);
        if (bytes_of(view, part) == 0) continue;
        janus_status status = adopt(view->items);
        if (status != JANUS_OK) {
            drop_parts(value, shape, i, shape->part_count);
            return status;
        }
        for (int64_t k = 0; part->element && k < view->length; k++) {
            status = adopt_all(element_at(view, part, k), part->element);
            if (status == JANUS_OK) continue;
            drop_elements(view, part, k + 1, view->length);
            drop_parts(value, shape, i + 1, shape->part_count);
            return status;
        }
    }
    return JANUS_OK;
}

void jl_unpack(void *value, const struct jl_shape *shape)
{
    if (jl_core_task) return;
    janus_status status = adopt_all(value, shape);
    if (status != JANUS_OK) jl_end_task(status, 0);
}

void jl_blocks_free(struct jl_world *world)
{
    while (world->blocks) {
        struct jl_block *next = world->blocks->next;
        free(world->blocks);
        world->blocks = next;
    }
}
