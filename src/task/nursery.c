/* SPDX-License-Identifier: MIT */
/* The nursery's record: what is written when it is first needed, [nursery-ready]. */
#include "task/nursery.h"

#include "base/atomic.h"
#include "base/list.h"
#include "plat/seam.h"

/* The part that get_ready clears, in words of 16 bytes. */
enum {
    COLD_PAIRS = (offsetof(struct jrt_nursery, local) - offsetof(struct jrt_nursery, lock)) / 16
};
_Static_assert(offsetof(struct jrt_nursery, lock) % 16 == 0 &&
                   offsetof(struct jrt_nursery, local) % 16 == 0,
               "in pairs");

/* The stores of [nursery-ready]. No other thread looks yet. */
void jrt_nursery_get_ready(struct jrt_nursery *n)
{
    jrt_clear(&n->lock, COLD_PAIRS);
    jrt_list_init(&n->children);
    jrt_clear(&n->max_children, 1);
    n->when_full = 0;
    n->owner_apart = n->owners_alone = n->hidden = false;
    n->level = 0;
    jrt_store_release(&n->ready, (uint8_t)JRT_READY); /* release: all of it. */
}

void jrt_nursery_make_ready(struct jrt_nursery *n)
{
    uint8_t none = JRT_NOT_READY;
    /* acq_rel: once, and what a faster thread has written. */
    if (jrt_cas_acq_rel(&n->ready, &none, (uint8_t)JRT_GETTING_READY)) {
        jrt_nursery_get_ready(n);
    } else {
        /* acquire: as above. */
        while (jrt_load_acquire(&n->ready) != JRT_READY) jrt_thread_yield();
    }
}
