/* SPDX-License-Identifier: MIT */
/*
 * Specifications of children, and their ids.
 *
 * Children that ask for the same share one specification: a supervisor compares with that of the
 * last child. So a million anonymous children have one.
 */
#include "actor/supervisor.h"

#include "base/options.h"
#include "base/siphash.h"
#include "fiber/fiber.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "plat/name.h"
#include "plat/seam.h"

#include <stdlib.h>
#include <string.h>

enum { ID_MAX = 63, IDS_FIRST = 16 };

/* What is wrong with a behaviour; NULL: nothing. */
static const char *wrong_behaviour(const janus_behaviour *behaviour)
{
    if (behaviour->struct_bytes != sizeof *behaviour)
        return "behaviour: struct_bytes is not its size; set it to sizeof";
    if (behaviour->handle == NULL) return "behaviour: handle is NULL";
    if (behaviour->message_bytes > JRT_ACTOR_MESSAGE_MAX)
        return "behaviour: message_bytes is above 4096";
    if (behaviour->reply_bytes > JRT_ACTOR_MESSAGE_MAX)
        return "behaviour: reply_bytes is above 4096";
    if (behaviour->state_bytes > JRT_ACTOR_STATE_MAX)
        return "behaviour: state_bytes is above 1 MiB";
    return NULL;
}

static const char *wrong_options(const janus_actor_options *options)
{
    if (options->max_messages > JRT_ACTOR_MESSAGES_MAX)
        return "options: max_messages is above 1048576";
    if ((unsigned)options->overflow > JANUS_OVERFLOW_DROP_OLDEST)
        return "options: overflow is none";
    if ((unsigned)options->priority > JANUS_PRIORITY_LOW) return "options: priority is none";
    if (options->name != NULL && (options->name[0] == '\0' || strlen(options->name) > ID_MAX))
        return "options: name is empty, or longer than 63 bytes";
    if (options->stack_bytes != 0 &&
        jrt_pool_stack_class(options->stack_bytes) >= JRT_STACK_CLASSES)
        return "options: stack_bytes is too large";
    return NULL;
}

static const char *wrong_child(const janus_child *child)
{
    int sorts = (child->behaviour != NULL) + (child->task != NULL) + (child->supervisor != NULL);
    if (sorts != 1) return "child: give one of behaviour, task and supervisor";
    if (child->id != NULL && (child->id[0] == '\0' || strlen(child->id) > ID_MAX))
        return "child: id is empty, or longer than 63 bytes";
    if ((unsigned)child->restart > JANUS_RESTART_TEMPORARY) return "child: restart is none";
    bool permanent =
        child->restart == JANUS_RESTART_DEFAULT || child->restart == JANUS_RESTART_PERMANENT;
    if (child->significant && permanent)
        return "child: significant needs restart TRANSIENT or TEMPORARY";
    if (child->behaviour == NULL && child->options != NULL &&
        (child->options->name != NULL || child->options->message_budget != NULL))
        return "child: only an actor has a name and a message_budget";
    return NULL;
}

/* What reports call the children: their id, or what they are. */
static bool make_title(struct jrt_spec *spec)
{
    char title[JANUS_NAME_BYTES];
    (void)jrt_name_copy(title, sizeof title, spec->id != NULL ? spec->id : jrt_spec_sort(spec));
    if (spec->id != NULL && strcmp(spec->id, title) == 0) {
        spec->title = spec->id;
        return true;
    }
    spec->title = jrt_name_keep(title, &spec->owns_title);
    return spec->title != NULL;
}

static bool copy_texts(struct jrt_spec *spec)
{
    spec->id = spec->name = NULL;
    if (spec->child.id != NULL) spec->id = jrt_strndup(spec->child.id, ID_MAX);
    if (spec->options.name != NULL) spec->name = jrt_strndup(spec->options.name, ID_MAX);
    return (spec->child.id == NULL || spec->id != NULL) &&
           (spec->options.name == NULL || spec->name != NULL);
}

/* Whether two structs, both zeroed before they were filled, have the same bytes. */
static bool is_equal(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* Whether a child can share `last` without a closer look: a plain child can that asks for the same
 * bytes. What was right then is right now. */
static bool is_same_at_once(const struct jrt_spec *last, const janus_child *given)
{
    return last != NULL && last->plain && given->struct_bytes == sizeof *given &&
           is_equal(&last->asked, given, sizeof *given) &&
           is_equal(&last->behaviour, given->behaviour, sizeof last->behaviour);
}

/* Whether a child with this specification can share `last`. */
static bool is_same(const struct jrt_spec *last, const struct jrt_spec *spec)
{
    return last != NULL && spec->child.id == NULL && spec->options.name == NULL &&
           is_equal(&last->asked, &spec->child, sizeof spec->child) &&
           is_equal(&last->behaviour, &spec->behaviour, sizeof spec->behaviour) &&
           is_equal(&last->options, &spec->options, sizeof spec->options) &&
           is_equal(&last->budget, &spec->budget, sizeof spec->budget) &&
           is_equal(&last->message_budget, &spec->message_budget, sizeof spec->message_budget);
}

/* Reads the caller's structs. NULL: nothing is wrong. */
static const char *read_child(struct jrt_spec *spec, const janus_child *given)
{
    memset(spec, 0, sizeof *spec);
    if (!jrt_struct_sane(given->struct_bytes, sizeof spec->child))
        return "child: struct_bytes is no size of it";
    memcpy(&spec->child, given, given->struct_bytes);
    const char *wrong = wrong_child(&spec->child);
    if (wrong == NULL && spec->child.behaviour != NULL)
        wrong = wrong_behaviour(spec->child.behaviour);
    const janus_actor_options *options = spec->child.options;
    if (wrong == NULL && options != NULL) {
        if (!jrt_struct_sane(options->struct_bytes, sizeof spec->options))
            return "options: struct_bytes is no size of it";
        memcpy(&spec->options, options, options->struct_bytes);
        wrong = wrong_options(&spec->options);
    }
    if (wrong != NULL) return wrong;
    spec->child.options = NULL; /* compared by value */
    if (spec->child.behaviour != NULL) spec->behaviour = *spec->child.behaviour;
    if (spec->options.budget != NULL) spec->budget = *spec->options.budget;
    if (spec->options.message_budget != NULL) spec->message_budget = *spec->options.message_budget;
    return NULL;
}

/* What needs a supervisor with means. */
static const char *wrong_means(const janus_supervisor *supervisor, const struct jrt_spec *spec)
{
    const struct jrt_terms *terms =
        jrt_nursery_of((janus_nursery *)(uintptr_t)&supervisor->nursery)->terms;
    bool pool = terms != NULL && terms->account != NULL;
    bool asks = terms != NULL && terms->on_exhausted != NULL;
    if (spec->options.message_budget != NULL && spec->options.budget == NULL && !pool)
        return "options: message_budget needs a budget, or a supervisor with a pool";
    if (spec->options.allowance.period_ns != 0 && !asks)
        return "options: allowance needs a supervisor with a pool, an allowance or on_exhausted";
    return NULL;
}

janus_status jrt_spec_make(janus_supervisor *supervisor, const janus_child *given,
                           struct jrt_spec **out, bool *out_made)
{
    *out_made = false;
    struct jrt_spec read;
    if (is_same_at_once(supervisor->spec, given)) {
        supervisor->spec->refs++;
        *out = supervisor->spec;
        return JANUS_OK;
    }
    const char *wrong = read_child(&read, given);
    if (wrong == NULL) wrong = wrong_means(supervisor, &read);
    if (wrong != NULL) return jrt_trouble_said(JANUS_INVALID, wrong);
    if (read.child.supervisor != NULL) {
        janus_supervisor_options below;
        janus_status             status = jrt_supervisor_decode(read.child.supervisor, &below);
        if (status != JANUS_OK) return status;
    }
    if (is_same(supervisor->spec, &read)) {
        supervisor->spec->refs++;
        *out = supervisor->spec;
        return JANUS_OK;
    }
    struct jrt_spec *spec = jrt_malloc(sizeof *spec);
    if (spec == NULL) return JANUS_NO_MEMORY;
    *spec = read;
    spec->asked = read.child;
    if (read.child.behaviour != NULL) spec->child.behaviour = &spec->behaviour;
    spec->refs = 1;
    spec->plain = given->behaviour != NULL && given->options == NULL && given->id == NULL;
    if (!copy_texts(spec) || !make_title(spec)) {
        jrt_spec_put(spec);
        return JANUS_NO_MEMORY;
    }
    if (spec->id == NULL && spec->name == NULL) {
        if (supervisor->spec != NULL) jrt_spec_put(supervisor->spec);
        supervisor->spec = spec;
        spec->refs++;
    }
    *out = spec;
    *out_made = true;
    return JANUS_OK;
}

/* What a specification costs, [place-price]: itself, its texts, and its slots in the table of ids.
 * That table is at least an eighth full when it has grown. */
static size_t price(const struct jrt_spec *spec)
{
    size_t bytes = sizeof *spec;
    if (spec->id != NULL) bytes += strlen(spec->id) + 1 + 8 * sizeof(struct jrt_actor_place *);
    if (spec->name != NULL) bytes += strlen(spec->name) + 1;
    if (spec->owns_title) bytes += strlen(spec->title) + 1;
    return bytes;
}

janus_status jrt_spec_charge(struct jrt_spec *spec)
{
    return jrt_ledger_charge(price(spec), &spec->ledger);
}

void jrt_spec_put(struct jrt_spec *spec)
{
    if (--spec->refs != 0) return;
    if (spec->ledger != NULL) jrt_ledger_refund(spec->ledger, price(spec));
    if (spec->owns_title) free((void *)(uintptr_t)spec->title);
    free(spec->id);
    free(spec->name);
    free(spec);
}

void jrt_spec_forget(janus_supervisor *supervisor, struct jrt_spec *spec)
{
    if (supervisor->spec != spec) return;
    supervisor->spec = NULL;
    jrt_spec_put(spec);
}

/* Ids: a table of places, open addressing, at most half full. */

struct jrt_ids {
    uint32_t                mask, used; /* used: with those that were removed */
    uint32_t                live;
    struct jrt_sip_key      key;
    struct jrt_actor_place *at[];
};

static struct jrt_actor_place removed; /* marks a place in the table */

/* Keyed, so that nobody can choose ids that collide. */
static uint32_t hash(const struct jrt_ids *ids, const char *text)
{
    return (uint32_t)jrt_siphash_bytes(&ids->key, text, strlen(text));
}

static void put(struct jrt_ids *ids, struct jrt_actor_place *place)
{
    uint32_t i = hash(ids, place->spec->id) & ids->mask;
    while (ids->at[i] != NULL) i = (i + 1) & ids->mask;
    ids->at[i] = place;
    ids->used++;
    ids->live++;
}

static bool grow(janus_supervisor *supervisor)
{
    struct jrt_ids *old = supervisor->ids;
    uint32_t        room = IDS_FIRST;
    while (old != NULL && room < 4 * (old->live + 1)) room *= 2;
    struct jrt_ids *ids = jrt_calloc(1, sizeof *ids + room * sizeof *ids->at);
    if (ids == NULL) return false;
    ids->mask = room - 1;
    (void)jrt_random_fill(&ids->key, sizeof ids->key); /* without it ids still work */
    for (uint32_t i = 0; old != NULL && i <= old->mask; i++) {
        if (old->at[i] != NULL && old->at[i] != &removed) put(ids, old->at[i]);
    }
    free(old);
    supervisor->ids = ids;
    return true;
}

bool jrt_ids_add(janus_supervisor *supervisor, struct jrt_actor_place *place)
{
    struct jrt_ids *ids = supervisor->ids;
    if (place->spec->id == NULL) return true;
    if ((ids == NULL || 2 * (ids->used + 1) > ids->mask) && !grow(supervisor)) return false;
    put(supervisor->ids, place);
    return true;
}

/* The slot with this id; NULL: none. */
static struct jrt_actor_place **slot(const janus_supervisor *supervisor, const char *id)
{
    struct jrt_ids *ids = supervisor->ids;
    if (ids == NULL) return NULL;
    for (uint32_t i = hash(ids, id) & ids->mask; ids->at[i] != NULL; i = (i + 1) & ids->mask) {
        if (ids->at[i] != &removed && strcmp(ids->at[i]->spec->id, id) == 0) return &ids->at[i];
    }
    return NULL;
}

struct jrt_actor_place *jrt_ids_find(const janus_supervisor *supervisor, const char *id)
{
    struct jrt_actor_place **at = slot(supervisor, id);
    return at != NULL ? *at : NULL;
}

void jrt_ids_remove(janus_supervisor *supervisor, struct jrt_actor_place *place)
{
    struct jrt_actor_place **at =
        place->spec->id != NULL ? slot(supervisor, place->spec->id) : NULL;
    if (at == NULL || *at != place) return;
    *at = &removed;
    supervisor->ids->live--;
}

void jrt_ids_free(janus_supervisor *supervisor) { free(supervisor->ids); }
