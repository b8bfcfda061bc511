/* SPDX-License-Identifier: MIT */
/*
 * Once: the first call runs the function, the others wait for it.
 *
 * [once-done]  a mutex and a word. The function runs while its caller holds the mutex. When it has
 *   succeeded, the word is set, and from then on calls read only the word. If it failed, or its
 *   task ended in the middle of it, the next caller that gets the mutex runs it.
 */
#include "sync/mutex.h"
#include "task/task.h"

struct once {
    struct jrt_mutex  mutex;
    _Atomic(uint64_t) done;
};

_Static_assert(sizeof(struct once) <= sizeof(janus_once), "it fits its storage");

void janus_once_init(janus_once *once, const char *name)
{
    jrt_contract(once != NULL, "janus_once_init: `once` is NULL");
    *once = (janus_once)JANUS_ONCE_INIT(name);
}

static bool is_done(const struct once *once)
{
    return jrt_load_acquire(&once->done) != 0; /* acquire: what the function did. */
}

janus_status janus_once_call(janus_once *given, janus_entry *function, void *argument,
                             int64_t *out_result)
{
    struct once     *once = (struct once *)(void *)given;
    struct jrt_task *task = jrt_sync_begin();
    int64_t          result = 0;
    if (once == NULL || function == NULL) return JANUS_INVALID;
    if (jrt_likely(is_done(once))) {
        if (out_result != NULL) *out_result = 0;
        return JANUS_OK;
    }
    janus_status status = jrt_mutex_lock(&once->mutex, &jrt_once_kind, JRT_NEVER);
    if (status != JANUS_OK) return jrt_sync_end(task, status);
    if (!is_done(once)) {
        result = function(argument);
        jrt_debug_invariant("once-done", !is_done(once)); /* nobody else ran it meanwhile */
    }
    if (result >= 0) jrt_store_release(&once->done, UINT64_C(1)); /* release: [once-done]. */
    status = jrt_mutex_unlock(&once->mutex);
    jrt_contract(status == JANUS_OK, "a function of janus_once_call returned on another thread");
    if (out_result != NULL) *out_result = result;
    return result < 0 ? JANUS_CHILD_FAILED : JANUS_OK;
}
