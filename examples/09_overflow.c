/* SPDX-License-Identifier: MIT */
/*
 * A parser that may recurse without end runs in a raw fiber with a stack of 64 KiB. Input that
 * needs more stack ends that fiber alone, and the next input is parsed.
 */
#include <janusrt/janus.h>
#include <stdio.h>
#include <string.h>

/* Returns the depth of brackets. It recurses as deep as the input demands. */
static int depth(const char **text)
{
    int deepest = 0;
    while (**text == '[') {
        ++*text;
        int inner = 1 + depth(text);
        if (inner > deepest) deepest = inner;
        if (**text == ']') ++*text;
    }
    return deepest;
}

static int64_t parse(void *argument)
{
    const char *text = argument;
    return depth(&text);
}

static void try_text(janus_fiber_pool *pool, const char *name, char *text)
{
    janus_fiber  *fiber;
    janus_outcome outcome;
    if (janus_fiber_create(pool, parse, text, JANUS_FIBER_OPTIONS(.name = name), &fiber) !=
        JANUS_OK)
        return;
    if (janus_fiber_resume(fiber, NULL, &outcome) != JANUS_OK) return;
    if (outcome.state == JANUS_FIBER_STATE_PANICKED) {
        printf("%s: refused, it needs more than %zu KiB of stack\n", outcome.panic.name,
               outcome.panic.stack_bytes / 1024);
    } else {
        printf("%s: %d levels\n", name, (int)outcome.result);
    }
    janus_fiber_destroy(fiber);
}

int main(void)
{
    static char bomb[1000000];
    memset(bomb, '[', sizeof bomb - 1);
    janus_fiber_pool *pool;
    if (janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = 64 * 1024), &pool) !=
        JANUS_OK)
        return 1;
    try_text(pool, "good.json", "[[][[]]]");
    try_text(pool, "bomb.json", bomb);
    try_text(pool, "next.json", "[[]]");
    return janus_fiber_pool_destroy(pool) == JANUS_OK ? 0 : 1;
}

/* Prints:
 * good.json: 3 levels
 * bomb.json: refused, it needs more than 64 KiB of stack
 * next.json: 2 levels
 */
