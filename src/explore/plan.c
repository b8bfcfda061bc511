/* SPDX-License-Identifier: MIT */
#include "explore/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_CHARS = 36, HEAD_CHARS = 160, WORKERS_MAX = 1024 };

static int in_order(const void *left, const void *right)
{
    const struct jrt_choice_made *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void jrt_choices_sort(struct jrt_choice_made *made, size_t count)
{
    if (count > 1) qsort(made, count, sizeof *made, in_order);
}

const struct jrt_choice_made *jrt_plan_find(const struct jrt_plan *plan, uint32_t thread,
                                            uint32_t number)
{
    const struct jrt_choice_made wanted = {thread, number, 0};
    if (plan->made_count == 0) return NULL;
    return bsearch(&wanted, plan->made, plan->made_count, sizeof wanted, in_order);
}

char *jrt_plan_text(const struct jrt_plan *plan)
{
    size_t size = HEAD_CHARS + plan->made_count * NUMBER_CHARS;
    char  *text = malloc(size);
    if (text == NULL) return NULL;
    int used = snprintf(text, size, "1/w%u", plan->worker_count);
    if (plan->max_steps != 0) {
        used += snprintf(text + used, size - (size_t)used, "/n%llu",
                         (unsigned long long)plan->max_steps);
    }
    if (plan->stale_allowed) used += snprintf(text + used, size - (size_t)used, "/a");
    if (plan->panics_allowed) used += snprintf(text + used, size - (size_t)used, "/b");
    if (plan->faults != 0) {
        used +=
            snprintf(text + used, size - (size_t)used, "/f%u.%u", plan->faults, plan->faults_every);
    }
    unsigned long long seed = plan->seed, length = plan->length;
    if (plan->kind == JRT_PLAN_RANDOM) {
        snprintf(text + used, size - (size_t)used, "/s%llu", seed);
    } else if (plan->kind == JRT_PLAN_PCT) {
        snprintf(text + used, size - (size_t)used, "/p%llu.%u.%llu", seed, plan->depth, length);
    } else {
        used += snprintf(text + used, size - (size_t)used, "/s%llu/c", seed);
        for (size_t i = 0; i < plan->made_count; i++) {
            used += snprintf(text + used, size - (size_t)used, "%s%u.%u:%u", i > 0 ? "," : "",
                             plan->made[i].thread, plan->made[i].number, plan->made[i].value);
        }
    }
    return text;
}

/* Reading. Each function takes what it expects off *at. False: something else stands there. */

static bool take(const char **at, char expected)
{
    if (**at != expected) return false;
    (*at)++;
    return true;
}

static bool take_number(const char **at, uint64_t max, uint64_t *out)
{
    uint64_t number = 0;
    if (**at < '0' || **at > '9') return false;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (number > (max - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *out = number;
    return true;
}

static bool take_u32(const char **at, uint32_t *out)
{
    uint64_t number;
    if (!take_number(at, UINT32_MAX, &number)) return false;
    *out = (uint32_t)number;
    return true;
}

static bool take_choices(const char *at, struct jrt_plan *plan, struct jrt_choice_made **out_made)
{
    size_t room = 1;
    for (const char *c = at; *c != '\0'; c++) room += *c == ',';
    struct jrt_choice_made *made = calloc(room, sizeof *made);
    if (made == NULL) return false;
    *out_made = made;
    plan->made = made;
    while (*at != '\0') {
        struct jrt_choice_made *next = &made[plan->made_count];
        if (plan->made_count > 0 && !take(&at, ',')) return false;
        if (!take_u32(&at, &next->thread) || !take(&at, '.')) return false;
        if (!take_u32(&at, &next->number) || !take(&at, ':')) return false;
        if (!take_u32(&at, &next->value)) return false;
        if (plan->made_count > 0 && in_order(next - 1, next) >= 0) return false;
        plan->made_count++;
    }
    return true;
}

/* Takes the part between the workers and the choices. */
static bool take_limits(const char **at, struct jrt_plan *plan)
{
    if (take(at, 'n')) {
        if (!take_number(at, UINT64_MAX, &plan->max_steps) || !take(at, '/')) return false;
        if (plan->max_steps == 0) return false;
    }
    plan->stale_allowed = take(at, 'a');
    if (plan->stale_allowed && !take(at, '/')) return false;
    plan->panics_allowed = take(at, 'b');
    if (plan->panics_allowed && !take(at, '/')) return false;
    if (!take(at, 'f')) return true;
    return take_u32(at, &plan->faults) && take(at, '.') && take_u32(at, &plan->faults_every) &&
           take(at, '/');
}

static bool take_all(const char *at, struct jrt_plan *plan, struct jrt_choice_made **out_made)
{
    if (!take(&at, '1') || !take(&at, '/') || !take(&at, 'w')) return false;
    if (!take_u32(&at, &plan->worker_count) || !take(&at, '/')) return false;
    if (plan->worker_count == 0 || plan->worker_count > WORKERS_MAX) return false;
    if (!take_limits(&at, plan)) return false;
    plan->kind = *at == 'p' ? JRT_PLAN_PCT : JRT_PLAN_RANDOM;
    if (!take(&at, 'p') && !take(&at, 's')) return false;
    if (!take_number(&at, UINT64_MAX, &plan->seed)) return false;
    if (plan->kind == JRT_PLAN_PCT) {
        if (!take(&at, '.') || !take_u32(&at, &plan->depth) || !take(&at, '.')) return false;
        if (plan->depth == 0 || !take_number(&at, UINT64_MAX, &plan->length)) return false;
    }
    if (plan->seed == 0) return false;
    if (plan->kind == JRT_PLAN_RANDOM && take(&at, '/')) {
        plan->kind = JRT_PLAN_CHOICES;
        return take(&at, 'c') && take_choices(at, plan, out_made);
    }
    return *at == '\0';
}

bool jrt_plan_read(const char *text, struct jrt_plan *out, struct jrt_choice_made **out_made)
{
    memset(out, 0, sizeof *out);
    *out_made = NULL;
    if (take_all(text, out, out_made)) return true;
    free(*out_made);
    *out_made = NULL;
    return false;
}
