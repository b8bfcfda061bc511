/* SPDX-License-Identifier: MIT */
/* Slabs of stacks: one mapping, many stacks at equal distances, guards below each. */
#ifndef JRT_STACK_SLAB_H
#define JRT_STACK_SLAB_H

#include "base/list.h"
#include "stack/guard.h"

#include <stddef.h>
#include <stdint.h>

/* How much of an idle stack may be resident. */
enum jrt_warmth {
    JRT_COLD,     /* nothing */
    JRT_WARM_TOP, /* at most JRT_WARM_BYTES at its upper end */
    JRT_WARM,     /* any of its pages */
};

/* The part of an idle stack that stays when its lower pages are dropped. Most tasks need no
 * more. */
#define JRT_WARM_BYTES ((size_t)16 << 10)

/* One stack, used or idle. The record lies in its slab's first page. */
struct jrt_stack {
    struct jrt_stack *next; /* the list it is on: a cache's or its slab's free list */
    char             *top;  /* end of the usable range */
    struct jrt_slab  *slab;
    uint32_t          valgrind_id; /* Valgrind's name for it, while it runs under Valgrind */
    uint8_t           guard;       /* janus_guard; never AUTO */
    bool              free;        /* on its slab's free list */
    uint8_t           warmth;      /* enum jrt_warmth; a given stack counts as JRT_WARM */
};

/* One size of stack. */
struct jrt_stack_class {
    size_t               promised_bytes; /* what a task or fiber may use */
    size_t               stack_bytes;    /* usable; more than promised if tasks run in place */
    size_t               guard_bytes;    /* below each stack */
    size_t               spacing;        /* from one stack to the next */
    uint32_t             slab_stacks;    /* stacks in a slab */
    struct jrt_list_node partial;        /* slabs with stacks to give and stacks given */
    struct jrt_list_node full;           /* slabs without stacks to give */
    struct jrt_list_node empty;          /* slabs that have given no stack */
};

struct jrt_slab {
    struct jrt_list_node  link;  /* on one of its class's three lists */
    struct jrt_list_node *where; /* which of the three */
    struct jrt_stack_class *class;
    char                *base;       /* of the first guard */
    size_t               bytes;      /* of the whole mapping, this page included */
    struct jrt_stack    *free_list;  /* carved and not given */
    uint32_t             carved;     /* stacks that have their guard */
    uint32_t             given;      /* of these, not on the free list */
    uint32_t             idle_warm;  /* on the free list with pages that may be resident */
    size_t               idle_bytes; /* an upper bound of what is resident of these */
    struct jrt_list_node leaving;    /* on the depot's list of that name, or alone */
    struct jrt_stack     stacks[];   /* class->slab_stacks */
};

/* Sets the sizes of a class and empties its lists. `more_bytes`: usable beyond the promised
 * ones. */
void jrt_stack_class_init(struct jrt_stack_class *class, size_t promised_bytes, size_t more_bytes,
                          size_t guard_bytes);

/* Maps a slab, with nothing carved and on no list. NULL: the system refused. */
struct jrt_slab *jrt_slab_create(struct jrt_stack_class *class);

/* Takes a slab that is on no list off the ladder's books. Afterwards its owner unmaps it, without
 * the depot's lock. */
void jrt_slab_retire(struct jrt_slab *slab, struct jrt_ladder *ladder);
void jrt_slab_unmap(struct jrt_slab *slab);

/* Guards some more stacks and puts them on the free list. FULL: the mapping budget of a fixed rung
 * is spent. NO_MEMORY: the system refused. `scratch` has JRT_RANGES_MAX entries, too large for the
 * caller's stack. */
janus_status jrt_slab_carve(struct jrt_slab *slab, struct jrt_ladder *ladder,
                            struct iovec *scratch);

/* Drops the pages of every idle stack. Returns how many of their bytes may have been resident. */
size_t jrt_slab_purge(struct jrt_slab *slab, struct iovec *scratch);

/* How much of an idle stack may be resident, in bytes. */
static inline size_t jrt_stack_idle_bytes(const struct jrt_stack *stack)
{
    size_t bytes = stack->slab->class->stack_bytes;
    if (stack->warmth == JRT_COLD) return 0;
    return stack->warmth == JRT_WARM_TOP && bytes > JRT_WARM_BYTES ? JRT_WARM_BYTES : bytes;
}

static inline char *jrt_stack_low(const struct jrt_stack *stack)
{
    return stack->top - stack->slab->class->stack_bytes;
}

#endif
