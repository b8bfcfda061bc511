/* SPDX-License-Identifier: MIT */
/* A trace as lines of text. */
#include "base/wait.h"
#include "trace/lane.h"

#include <janusrt/budget.h>
#include <janusrt/task.h>
#include <stdio.h>

const char *jrt_trace_kind_name(enum jrt_trace_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        JRT_TRACE_MAP(X)
#undef X
    };
    return (unsigned)kind < JRT_TRACE_KINDS ? names[kind] : "?";
}

static const char *end_name(uint64_t end)
{
    static const char *const names[] = {
#define X(name, text) text,
        JRT_TRACE_ENDS_MAP(X)
#undef X
    };
    return end < sizeof names / sizeof *names ? names[end] : "?";
}

static const char *reason_name(uint64_t reason)
{
    switch ((janus_cancel_reason)reason) {
    case JANUS_CANCEL_REASON_NONE: return "no reason";
    case JANUS_CANCEL_REASON_EXPLICIT: return "a task or thread called cancel";
    case JANUS_CANCEL_REASON_PARENT: return "its owner was cancelled";
    case JANUS_CANCEL_REASON_SIBLING_ERROR: return "a child failed";
    case JANUS_CANCEL_REASON_DEADLINE: return "its deadline passed";
    case JANUS_CANCEL_REASON_SHUTDOWN: return "the scheduler stops";
    }
    return "?";
}

/* Writes "by" and a task, or nothing if there is no task. */
static int put_whom(char *words, const char *by, uint64_t task)
{
    if (task == 0) return 0;
    return snprintf(words, JRT_TRACE_WORDS_BYTES, " %s %#llx", by, (unsigned long long)task);
}

void jrt_trace_words(const struct jrt_trace_event *event, char *words)
{
    const size_t       room = JRT_TRACE_WORDS_BYTES;
    unsigned long long object = event->object, amount = jrt_trace_amount_of(event);
    int                used = 0;
    words[0] = '\0';
    switch (jrt_trace_kind_of(event)) {
    case JRT_TRACE_GAP: snprintf(words, room, " %llu events are missing here", amount); break;
    case JRT_TRACE_SPAWN: (void)put_whom(words, "by", object); break;
    case JRT_TRACE_START: (void)put_whom(words, "on", object); break;
    case JRT_TRACE_RESUME:
    case JRT_TRACE_YIELD: break;
    case JRT_TRACE_PARK:
        used = snprintf(words, room, " waits for %s", jrt_wait_text(amount));
        if (object == 0) break;
        snprintf(words + used, room - (size_t)used, ", %s %llu",
                 amount >= JRT_WAIT_READ ? "descriptor" : "channel", object);
        break;
    case JRT_TRACE_WAKE:
        used = put_whom(words, "by", object);
        if (amount == 0) break;
        snprintf(words + used, room - (size_t)used, " with %s",
                 janus_status_name((janus_status) - (int)amount));
        break;
    case JRT_TRACE_STEAL: snprintf(words, room, " from w%llu", object); break;
    case JRT_TRACE_CANCEL:
        used = put_whom(words, "by", object);
        snprintf(words + used, room - (size_t)used, ": %s", reason_name(amount));
        break;
    case JRT_TRACE_EXHAUST:
        snprintf(words, room, " lacks %s", janus_component_name((janus_component)object));
        break;
    case JRT_TRACE_RECHARGE:
        snprintf(words, room, " by %llu %s", amount, janus_component_name((janus_component)object));
        break;
    case JRT_TRACE_SEND:
    case JRT_TRACE_RECV:
    case JRT_TRACE_CLOSE:
        snprintf(words, room, " channel %llu%s", object, amount != 0 ? ", waited" : "");
        break;
    case JRT_TRACE_SELECT: snprintf(words, room, " case %llu of %llu", amount, object); break;
    case JRT_TRACE_TIMER: snprintf(words, room, " %llu ns late", amount); break;
    case JRT_TRACE_COMPLETE: snprintf(words, room, " %s", end_name(amount)); break;
    case JRT_TRACE_KINDS: break;
    }
}

static void put_event(struct jrt_trace_out *out, const struct jrt_trace_copy *copy,
                      const struct jrt_trace_event *event)
{
    char     words[JRT_TRACE_WORDS_BYTES], where[16] = "w-";
    uint32_t worker = jrt_trace_worker_of(event);
    uint64_t ns = event->time_ns > copy->began_ns ? event->time_ns - copy->began_ns : 0;
    jrt_trace_words(event, words);
    if (worker != JRT_TRACE_OUTSIDE) snprintf(where, sizeof where, "w%u", worker);
    jrt_trace_put(out, "%10llu.%03u %s %-8s", (unsigned long long)(ns / 1000),
                  (unsigned)(ns % 1000), where, jrt_trace_kind_name(jrt_trace_kind_of(event)));
    if (event->task != 0) jrt_trace_put(out, " %#llx", (unsigned long long)event->task);
    jrt_trace_put(out, "%s\n", words);
}

void jrt_trace_put_text(struct jrt_trace_out *out, const struct jrt_trace_copy *copy)
{
    jrt_trace_put(out, "# janusrt trace: %u worker%s, ", copy->workers,
                  copy->workers == 1 ? "" : "s");
    if (copy->deterministic) {
        jrt_trace_put(out, "seed %llu, ", (unsigned long long)copy->seed);
    }
    jrt_trace_put(out, "%llu events, %llu lost, hash 0x%016llx\n",
                  (unsigned long long)copy->happened, (unsigned long long)copy->lost,
                  (unsigned long long)copy->hash);
    for (size_t i = 0; i < copy->count; i++) put_event(out, copy, &copy->events[i]);
}
