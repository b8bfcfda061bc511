/* SPDX-License-Identifier: MIT */
/*
 * Wards.
 *
 * [ward-life]  A ward belongs to the purse that was charged for it. It ends when the purse is
 *   closed, which is at the end of the task, or of the scope that has the purse. A kept ward goes
 *   on after that. If it was made under terms of a nursery, it then belongs to those terms and
 *   ends with the nursery. Otherwise it is unowned, and lasts until somebody ends it. So things
 *   that are made under terms never outlast them.
 *
 * [ward-lock]  Any thread may end a ward, at the same moment as its owner. One lock for the process
 *   guards all lists. An owner takes a ward off its list, copies the name and releases the lock.
 *   Then it ends the thing with that name, if it still exists. A thread that ends a thing takes
 *   the ward off the list before it frees the thing. So nobody touches a ward, or a purse, that is
 *   gone.
 *
 * [ward-bytes]  Only the task itself changes what is left in its purse. Others leave the bytes in
 *   `returned`. The task collects them when it is short of memory. A kept ward's bytes are spent
 *   once the task has ended: they do not return to its pool.
 *
 * Rejected:
 * - to count handles, which are copied freely;
 * - a lock in each purse. A thread that ends a ward would first have to find the purse alive.
 */
#include "means/ward.h"

#include "means/terms.h"
#include "task/purse.h"
#include "task/ward.h"
#include "task/worker.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* [ward-lock] */

static void push(struct jrt_wards *wards, struct jrt_ward *ward)
{
    ward->link = wards->first;
    ward->at = &wards->first;
    if (ward->link != NULL) ward->link->at = &ward->link;
    wards->first = ward;
}

static void take_off(struct jrt_ward *ward)
{
    jrt_debug_invariant("ward-lock", *ward->at == ward);
    *ward->at = ward->link;
    if (ward->link != NULL) ward->link->at = ward->at;
    ward->at = NULL;
    ward->purse = NULL;
}

void jrt_ward_join(struct jrt_ward *ward, struct jrt_purse *purse)
{
    jrt_lock(&lock);
    ward->purse = purse;
    purse->has_wards = true;
    push(&purse->wards, ward);
    jrt_unlock(&lock);
}

void jrt_ward_leave(struct jrt_ward *ward)
{
    const struct jrt_worker *worker = jrt_worker_self();
    struct jrt_purse        *mine =
        worker != NULL && worker->current != NULL ? worker->current->purse : NULL;
    jrt_lock(&lock);
    struct jrt_purse *purse = ward->purse;
    if (ward->at != NULL) take_off(ward);
    if (purse != NULL) purse->wards.returned += ward->bytes; /* [ward-bytes] */
    jrt_unlock(&lock);
    if (purse != NULL && purse == mine) jrt_wards_collect(mine);
}

bool jrt_ward_is_owned(const struct jrt_ward *ward)
{
    jrt_lock(&lock);
    bool owned = ward->at != NULL;
    jrt_unlock(&lock);
    return owned;
}

bool jrt_ward_claim(struct jrt_ward *ward, const struct jrt_purse *purse)
{
    jrt_lock(&lock);
    bool mine = ward->at != NULL && ward->purse == purse;
    if (mine) ward->kept = false;
    jrt_unlock(&lock);
    return mine;
}

void jrt_wards_collect(struct jrt_purse *purse)
{
    jrt_lock(&lock);
    uint64_t bytes = purse->wards.returned;
    purse->wards.returned = 0;
    jrt_unlock(&lock);
    purse->left.memory = janus_units_add(purse->left.memory, bytes);
    jrt_debug_invariant("ward-bytes", purse->left.memory <= purse->granted.memory);
}

/* Takes one ward off its list; false: the list is empty. If the ward must end, out->end is set. */
static bool next(struct jrt_wards *wards, struct jrt_ward *out)
{
    jrt_lock(&lock);
    struct jrt_ward *ward = wards->first;
    bool             some = ward != NULL;
    if (some) {
        struct jrt_purse *purse = ward->purse;
        bool              goes_on = purse != NULL && ward->kept;
        take_off(ward);
        *out = *ward;
        if (goes_on && ward->terms != NULL && !ward->terms->wards.over) {
            push(&ward->terms->wards, ward);
            out->end = NULL;
        } else if (goes_on && ward->terms == NULL) {
            out->end = NULL;
        } else if (purse != NULL) {
            purse->wards.returned += ward->bytes;
        }
    }
    jrt_unlock(&lock);
    return some;
}

void jrt_wards_end(struct jrt_purse *purse)
{
    struct jrt_ward ward;
    while (next(&purse->wards, &ward)) {
        if (ward.end != NULL) ward.end(ward.name);
    }
    jrt_wards_collect(purse);
}

void jrt_wards_end_terms(struct jrt_terms *terms)
{
    struct jrt_ward ward;
    jrt_lock(&lock);
    terms->wards.over = true;
    jrt_unlock(&lock);
    while (next(&terms->wards, &ward)) ward.end(ward.name);
}
