/* SPDX-License-Identifier: MIT */
/* Explains a refusal in a sentence: which task, where, what is short, what to do. */
#include "means/trouble.h"

#include "cap/net.h"
#include "fiber/thread.h"
#include "means/call.h"
#include "means/terms.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <errno.h>
#include <janusrt/explain.h>
#include <janusrt/io.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint64_t caller_of(const struct jrt_thread *thread)
{
    const struct jrt_worker *worker = thread->worker;
    return worker != NULL && worker->current != NULL ? jrt_task_id(worker->current) : 0;
}

void jrt_trouble_note(janus_status status, janus_component component, uint64_t used, uint64_t limit)
{
    struct jrt_thread  *thread = jrt_thread_self();
    struct jrt_trouble *last = &thread->trouble;
    uint64_t            task = caller_of(thread);
    bool                same = last->fresh && last->status == status && last->task == task;
    if (limit == 0 && same && last->table < JRT_TABLES) return;
    *last = (struct jrt_trouble){.status = status,
                                 .component = (int32_t)component,
                                 used,
                                 limit,
                                 .task = task,
                                 .fresh = true};
}

/* Replaces what is there, whatever it is. */
static struct jrt_trouble *note_anew(janus_status status, enum jrt_table table, uint64_t used)
{
    struct jrt_trouble *last = &jrt_thread_self()->trouble;
    last->fresh = false;
    jrt_trouble_note(status, JANUS_COMPONENT_NONE, used, 0);
    last->table = (uint8_t)table;
    return last;
}

janus_status jrt_trouble_end(janus_status status, const char *call)
{
    const struct jrt_thread *thread = jrt_thread_self();
    struct jrt_trouble      *last = &jrt_thread_self()->trouble;
    bool same = last->fresh && last->status == status && last->task == caller_of(thread);
    if (!same) last = note_anew(status, JRT_TABLE_NONE, 0);
    last->call = call;
    last->fresh = false;
    return status;
}

janus_status jrt_trouble_full(janus_status status, enum jrt_table table,
                              const struct jrt_terms *terms, uint64_t used, uint64_t limit)
{
    struct jrt_trouble      *last = &jrt_thread_self()->trouble;
    const struct jrt_worker *worker = jrt_worker_self();
    const janus_scheduler   *scheduler = worker != NULL ? worker->scheduler : NULL;
    bool all = scheduler != NULL && (terms == scheduler->counter || terms == scheduler->terms);
    jrt_trouble_note(status, JANUS_COMPONENT_NONE, used, limit);
    last->table = (uint8_t)table;
    if (terms == NULL || all) {
        (void)strcpy(last->whose, "all tasks outside of pools");
    } else if (terms->of == NULL) {
        (void)strcpy(last->whose, "this task");
    } else {
        (void)snprintf(last->whose, sizeof last->whose, "nursery \"%.31s\"",
                       jrt_nursery_name(terms->of));
    }
    return status;
}

janus_status jrt_trouble_system(janus_status status, int error)
{
    (void)note_anew(status, JRT_TROUBLE_SYSTEM, (uint64_t)error);
    return status;
}

/* Replaces bytes that could disturb a terminal. */
static void make_plain(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
    }
}

/* Copies a text. Of a long one it keeps the end, which says more in a path. */
static void keep_text(struct jrt_trouble *last, const char *text)
{
    size_t length = strlen(text);
    bool   fits = length < sizeof last->whose;
    (void)snprintf(last->whose, sizeof last->whose, "%s%s", fits ? "" : "...",
                   fits ? text : text + length - (sizeof last->whose - 4));
    make_plain(last->whose);
}

janus_status jrt_trouble_about(janus_status status, enum jrt_subject subject, const char *text)
{
    struct jrt_trouble *last = &jrt_thread_self()->trouble;
    if (!last->fresh || last->status != status || last->table != JRT_TROUBLE_SYSTEM) return status;
    last->limit = subject;
    keep_text(last, text);
    return status;
}

janus_status jrt_trouble_lacks(janus_status status, uint32_t rights, const char *name)
{
    keep_text(note_anew(status, JRT_TROUBLE_HANDLE, rights), name);
    return status;
}

janus_status jrt_trouble_directory(uint32_t right, const char *path)
{
    keep_text(note_anew(JANUS_CAP_RIGHT, JRT_TROUBLE_DIRECTORY, right), path);
    return JANUS_CAP_RIGHT;
}

janus_status jrt_trouble_simulated(const char *what)
{
    keep_text(note_anew(JANUS_UNAVAILABLE, JRT_TROUBLE_SIMULATED, 0), what);
    return JANUS_UNAVAILABLE;
}

janus_status jrt_trouble_said(janus_status status, const char *clause)
{
    keep_text(note_anew(status, JRT_TROUBLE_SAID, 0), clause);
    return status;
}

/* An address that was refused, and the range that it is outside of. */
struct place {
    uint8_t  address[16], prefix[16];
    uint16_t port, port_first, port_last;
    uint8_t  prefix_bits;
    bool     limited; /* the range is known */
};
_Static_assert(sizeof(struct place) <= sizeof((struct jrt_trouble){0}.whose), "it fits");

janus_status jrt_trouble_handle(janus_status status, const struct jrt_cap_wish *wish,
                                const janus_cap_limits *limits)
{
    struct jrt_trouble *last = note_anew(status, JRT_TROUBLE_NAMED, wish->right);
    struct place        place = {.limited = status == JANUS_CAP_LIMIT};
    if (wish->address == NULL) {
        (void)snprintf(last->whose, sizeof last->whose, "%s", wish->name != NULL ? wish->name : "");
    } else if (!jrt_net_address_bytes(wish->address, place.address)) {
        jrt_net_address_text(wish->address, last->whose, sizeof last->whose);
    } else {
        last->table = JRT_TROUBLE_PLACE;
        place.port = wish->address->port;
        if (place.limited) {
            memcpy(place.prefix, limits->net.prefix, sizeof place.prefix);
            place.prefix_bits = limits->net.prefix_bits;
            place.port_first = limits->net.port_first;
            place.port_last = limits->net.port_last;
        }
        memcpy(last->whose, &place, sizeof place);
    }
    return status;
}

janus_status jrt_trouble_name(janus_status status, uint32_t right, const char *name,
                              const janus_name_limits *limits)
{
    enum { HALF = sizeof((struct jrt_trouble){0}.whose) / 2 };
    _Static_assert(HALF >= sizeof limits->prefix, "both fit");
    struct jrt_trouble *last = note_anew(status, JRT_TROUBLE_NAME, right);
    (void)snprintf(last->whose, HALF, "%s", name);
    make_plain(last->whose);
    if (status != JANUS_CAP_LIMIT) return status;
    last->limit = HALF;
    (void)snprintf(last->whose + HALF, HALF, "%s", limits->prefix);
    make_plain(last->whose + HALF);
    return status;
}

/* Text in a buffer of a fixed size. `length` also counts what does not fit. */
struct text {
    char  *buffer;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    bool    room = text->length < text->size;
    va_start(arguments, format);
    int wrote = vsnprintf(room ? text->buffer + text->length : NULL,
                          room ? text->size - text->length : 0, format, arguments);
    va_end(arguments);
    if (wrote > 0) text->length += (size_t)wrote;
}

/* The path down to a nursery, as "main > plugins". A deep path begins with "...". */
static void put_path(struct text *text, const struct jrt_nursery *n)
{
    enum { SHOWN = 6 };
    const struct jrt_nursery *path[SHOWN];
    unsigned                  depth = 0;
    for (; n != NULL; n = n->owner != NULL ? n->owner->nursery : NULL) {
        path[depth % SHOWN] = n;
        depth++;
    }
    unsigned shown = depth < SHOWN ? depth : SHOWN;
    if (depth > shown) put(text, "... > ");
    /* The entries written last are the outermost; this loop goes inwards from there. */
    for (unsigned i = 0; i < shown; i++) {
        const struct jrt_nursery *at = path[(depth - 1 - i) % SHOWN];
        put(text, "%s%s", i > 0 ? " > " : "", jrt_nursery_name(at));
    }
}

static void put_who(struct text *text, const char *name, const janus_site *site, uint64_t id)
{
    put(text, "task %#llx \"%s\"", (unsigned long long)id, name);
    if (site != NULL && site->file != NULL) put(text, " (%s:%d)", site->file, site->line);
}

static const char *table_text(enum jrt_table table)
{
    static const char *const texts[JRT_TABLES] = {
        [JRT_TABLE_BLOCKING] = "blocking calls that wait",
        [JRT_TABLE_THREADS] = "children with a thread of their own",
        [JRT_TABLE_CHANNELS] = "channels",
        [JRT_TABLE_CAPS] = "derived capabilities",
        [JRT_TABLE_KEPT] = "bytes that the library holds",
        [JRT_TABLE_SOCKETS] = "sockets",
        [JRT_TABLE_FILES] = "open files",
        [JRT_TABLE_PROCESSES] = "child processes",
        [JRT_TABLE_WRITTEN] = "bytes written to files",
        [JRT_TABLE_PLACES] = "places of actors",
        [JRT_TABLE_QUESTIONS] = "calls that wait for an answer",
    };
    return texts[table];
}

static const char *table_advice(enum jrt_table table)
{
    static const char *const texts[JRT_TABLES] = {
        [JRT_TABLE_BLOCKING] = "Wait until some calls end, or raise "
                               "janus_scheduler_options.max_blocking_queue.",
        [JRT_TABLE_THREADS] =
            "Wait until some children end, or raise max_threads of the nursery or "
            "the scheduler.",
        [JRT_TABLE_CAPS] = "Release unused capabilities, or raise "
                           "janus_scheduler_options.max_derived_caps.",
        [JRT_TABLE_KEPT] = "Free unused tokens, detached blocks and nurseries.",
        [JRT_TABLE_SOCKETS] = "Close unused handles, raise janus_scheduler_options.max_handles "
                              "or the nursery's, or bind a net capability that allows more.",
        [JRT_TABLE_FILES] = "Close unused handles, raise janus_scheduler_options.max_handles "
                            "or the nursery's, or bind a file capability that allows more.",
        [JRT_TABLE_PROCESSES] =
            "Wait until some processes end, raise janus_scheduler_options.max_processes, or bind a "
            "process capability that allows more.",
        [JRT_TABLE_WRITTEN] = "Write less, or bind a file capability with a larger max_written.",
        [JRT_TABLE_PLACES] = "Remove children that are not needed: a pool has at most a quarter of "
                             "the process's places.",
        [JRT_TABLE_QUESTIONS] = "Wait for answers before asking more: a pool has at most a quarter "
                                "of the process's questions.",
    };
    return texts[table];
}

/* What the user can do about it. */
static const char *advice(janus_status status, janus_component component)
{
    switch (status) {
    case JANUS_TASK_LIMIT:
        return "Wait until some tasks end, raise janus_scheduler_options.max_tasks, or start tasks "
               "under a spawn capability that allows more.";
    case JANUS_FULL: return "Wait until some of them end.";
    case JANUS_REFUSED: return "Start the server first, or ask for its address and port.";
    case JANUS_UNREACHABLE: return "Ask for the address, the route and the interface.";
    case JANUS_IN_USE: return "Choose another port or name, or end who uses it.";
    case JANUS_NOT_FOUND: return "Ask for the spelling, and for the directory it is looked up in.";
    case JANUS_EXISTS: return "Choose another name, or remove what has it.";
    case JANUS_DENIED: return "Ask for the permissions of the process.";
    case JANUS_RESET:
    case JANUS_BROKEN: return "The other end has gone. Connect again.";
    case JANUS_SYSTEM: return "See errno(3).";
    case JANUS_SPAWN_BUDGET:
        if (component == JANUS_COMPONENT_SPAWN_COUNT) {
            return "Give the nursery's budget a larger spawn_count: a child costs one. "
                   "JANUS_BUDGET(...) leaves it 0.";
        }
        return "Give the nursery or the child a larger budget, ask for a smaller stack, or wait "
               "until children end.";
    case JANUS_BUDGET_EXHAUSTED:
        return "Give it a larger budget, recharge it (janus_nursery_recharge), or let it do less.";
    case JANUS_NO_MEMORY: return "Free some, or run fewer tasks. A larger budget does not help.";
    case JANUS_NO_SPAWN_CAP: return "Bind a spawn capability: janus_nursery_options.spawn_cap.";
    case JANUS_NO_BUDGET_CAP: return "Bind a budget capability: janus_nursery_options.budget_cap.";
    case JANUS_NO_CHANNEL_CAP:
        return "Bind a channel capability: janus_nursery_options.channel_cap.";
    case JANUS_NO_EXECUTOR_CAP:
        return "Bind an executor capability: janus_nursery_options.executor_cap.";
    case JANUS_NO_NET_CAP: return "Bind a net capability: janus_nursery_options.net_cap.";
    case JANUS_NO_FILE_CAP: return "Bind a file capability: janus_nursery_options.file_cap.";
    case JANUS_NO_PROCESS_CAP:
        return "Bind a process capability: janus_nursery_options.process_cap.";
    case JANUS_NO_NAME_CAP: return "Bind a name capability: janus_nursery_options.name_cap.";
    case JANUS_CAP_RIGHT: return "Bind a capability that has this right.";
    case JANUS_CAP_FOREIGN: return "Have it delegated: copying a handle moves no right.";
    case JANUS_CAP_WIDENS: return "Ask for no more than the nursery or task around it holds.";
    case JANUS_CHANNEL_LIMIT:
        return "Destroy unused channels (closing frees none), raise "
               "janus_scheduler_options.max_channels, or bind a channel capability that allows "
               "more.";
    case JANUS_CAP_LIMIT:
        return "Ask for less, or use a capability that allows it. For channels with more values, "
               "raise janus_scheduler_options.max_channel_values, too.";
    case JANUS_INVALID: return "Compare the arguments with the header.";
    case JANUS_STALE: return "Open another handle, or ask who closed this one.";
    case JANUS_STATE: return "The header says who may call it, and when.";
    case JANUS_CLOSED: return "Nothing more will come.";
    case JANUS_DEADLINE:
        return "Set a later deadline, or ask the other end. A deadline is a moment of "
               "janus_now_ns, and no duration.";
    case JANUS_WOULD_WAIT: return "Try again later, or use the call that waits.";
    case JANUS_CANCELLED: return "Release what the task holds, and return.";
    case JANUS_UNAVAILABLE: return "The header says for which handles it exists.";
    default: return "See janus_cap_check.";
    }
}

static void put_full(struct text *text, const struct jrt_trouble *last)
{
    const char *what = table_advice((enum jrt_table)last->table);
    put(text, ": %s: %s of %s: %llu of %llu used (%s). %s",
        janus_status_text((janus_status)last->status), table_text((enum jrt_table)last->table),
        last->whose, (unsigned long long)last->used, (unsigned long long)last->limit,
        janus_status_name((janus_status)last->status),
        what != NULL ? what : advice((janus_status)last->status, JANUS_COMPONENT_NONE));
}

/* The address, and the range that is allowed. */
static void put_place(struct text *text, const struct jrt_trouble *last)
{
    struct place     place;
    janus_address    address = {.family = JANUS_FAMILY_IPV6};
    janus_net_limits limits = {0};
    char             at[JANUS_ADDRESS_TEXT_BYTES], range[JRT_NET_TEXT_BYTES];
    memcpy(&place, last->whose, sizeof place);
    memcpy(address.bytes, place.address, sizeof place.address);
    address.port = place.port;
    jrt_net_address_text(&address, at, sizeof at);
    put(text, "%s", at);
    if (!place.limited) return;
    memcpy(limits.prefix, place.prefix, sizeof limits.prefix);
    limits.prefix_bits = place.prefix_bits;
    limits.port_first = place.port_first;
    limits.port_last = place.port_last;
    jrt_net_limits_text(&limits, range, sizeof range);
    put(text, "; allowed: %s", range);
}

/* What was refused: a handle. */
static void put_handle(struct text *text, const struct jrt_trouble *last)
{
    janus_status status = (janus_status)last->status;
    const char  *what = advice(status, JANUS_COMPONENT_NONE);
    const char  *gap = last->used != 0 ? " " : ": ";
    put(text, ": %s", janus_status_text(status));
    if (last->used != 0) put(text, ": %s", janus_right_name((uint32_t)last->used));
    if (last->table == JRT_TROUBLE_PLACE) {
        put(text, "%s", gap);
        put_place(text, last);
    } else if (last->whose[0] != '\0') {
        put(text, "%s%s", gap, last->whose);
    }
    if (status == JANUS_CAP_LIMIT) {
        what = "Use an address that is allowed, or bind a net capability that allows this one.";
    } else if (status == JANUS_CAP_REVOKED) {
        what = "Bind a capability that is alive. Handles that exist go on.";
    }
    put(text, " (%s). %s", janus_status_name(status), what);
}

/* What was refused: a name. */
static void put_name(struct text *text, const struct jrt_trouble *last)
{
    janus_status status = (janus_status)last->status;
    const char  *what = advice(status, JANUS_COMPONENT_NONE);
    put(text, ": %s: %s \"%s\"", janus_status_text(status), janus_right_name((uint32_t)last->used),
        last->whose);
    if (status == JANUS_CAP_LIMIT) {
        put(text, "; allowed: names that begin with \"%s\"", last->whose + last->limit);
        what = "Use a name that is allowed, or bind a name capability that allows this one.";
    } else if (status == JANUS_CAP_REVOKED) {
        what = "Bind a capability that is alive. Names that are registered stay.";
    }
    put(text, " (%s). %s", janus_status_name(status), what);
}

/* What a handle lacks. */
static void put_lacks(struct text *text, const struct jrt_trouble *last)
{
    static const char *const names[] = {"read", "write", "accept", "close"};
    _Static_assert(JANUS_IO_MAY_READ == 1 && JANUS_IO_MAY_WRITE == 2 && JANUS_IO_MAY_ACCEPT == 4 &&
                       JANUS_IO_MAY_CLOSE == 8,
                   "the order of the names");
    janus_status status = (janus_status)last->status;
    const char  *quote = last->whose[0] != '\0' ? "\"" : "",
               *gap = last->whose[0] != '\0' ? " " : "";
    put(text, ": the handle%s%s%s%s", gap, quote, last->whose, quote);
    if (status == JANUS_STALE) {
        put(text, " was closed, or is none (JANUS_STALE). %s", advice(status, 0));
        return;
    }
    put(text, " lacks the right");
    for (unsigned i = 0; i < 4; i++) {
        if ((last->used >> i & 1u) != 0) put(text, " %s", names[i]);
    }
    put(text, " (%s). Use a handle that has this right.", janus_status_name(status));
}

/* The first words about an error of the system, and the last ones. */
static const char *put_subject(struct text *text, const struct jrt_trouble *last)
{
    janus_status     status = (janus_status)last->status;
    enum jrt_subject subject = (enum jrt_subject)last->limit;
    bool             below = subject == JRT_SUBJECT_BELOW;
    int              error = (int)last->used;
    if (below && (error == EXDEV || error == ELOOP)) {
        put(text, ": %s leads out of the directory", last->whose);
        return "Use a path whose parts and links stay below the directory.";
    }
    if (subject == JRT_SUBJECT_MOVE && error == EXDEV) {
        put(text,
            ": %s leads out of its directory, or its new name does, or these are two file systems",
            last->whose);
        return "Rename within one file system, and below the directories.";
    }
    if (status == JANUS_NOT_FOUND && subject >= JRT_SUBJECT_PATH && subject <= JRT_SUBJECT_MOVE) {
        put(text, ": there is nothing named %s%s", last->whose,
            below ? " below the directory" : "");
    } else if (status == JANUS_REFUSED && subject == JRT_SUBJECT_ADDRESS) {
        put(text, ": nobody listens at %s", last->whose);
    } else if (subject != JRT_SUBJECT_NONE) {
        put(text, ": %s: %s", janus_status_text(status), last->whose);
    } else {
        put(text, ": %s", janus_status_text(status));
    }
    return advice(status, JANUS_COMPONENT_NONE);
}

/* What the system said. */
static void put_system(struct text *text, const struct jrt_trouble *last)
{
    char said[64];
    if (last->status == JANUS_NOT_FOUND && last->limit == JRT_SUBJECT_HOST) { /* errno means none */
        put(text,
            ": there is no host named %s (JANUS_NOT_FOUND). Ask for its spelling, and for the name "
            "server of this machine.",
            last->whose);
        return;
    }
    const char *words = strerror_r((int)last->used, said, sizeof said);
    const char *what = put_subject(text, last);
    put(text, ": %s, errno %d (%s). %s", words, (int)last->used,
        janus_status_name((janus_status)last->status), what);
}

/* What is no table. */
static void put_other(struct text *text, const struct jrt_trouble *last)
{
    switch (last->table) {
    case JRT_TROUBLE_SYSTEM: put_system(text, last); break;
    case JRT_TROUBLE_HANDLE: put_lacks(text, last); break;
    case JRT_TROUBLE_NAME: put_name(text, last); break;
    case JRT_TROUBLE_DIRECTORY:
        put(text,
            ": the directory's handle lacks the right %s: %s (JANUS_CAP_RIGHT). Open the "
            "directory with this right.",
            janus_right_name((uint32_t)last->used), last->whose);
        break;
    case JRT_TROUBLE_SIMULATED:
        put(text,
            ": %s do not exist in a simulated run (JANUS_UNAVAILABLE). Ask for this before "
            "the call, or run the program without a seed.",
            last->whose);
        break;
    case JRT_TROUBLE_SAID:
        put(text, ": %s (%s).", last->whose, janus_status_name((janus_status)last->status));
        break;
    case JRT_TROUBLE_TOLD:
        put(text, ": %s (%s).", last->told, janus_status_name((janus_status)last->status));
        break;
    default: put_handle(text, last); break;
    }
}

static void put_trouble(struct text *text, janus_status status, janus_component component,
                        uint64_t used, uint64_t limit)
{
    put(text, ": %s", janus_status_text(status));
    if (component != JANUS_COMPONENT_NONE) put(text, ": %s", janus_component_name(component));
    if (limit != 0) {
        put(text, "%s%llu of %llu %s", component != JANUS_COMPONENT_NONE ? ", " : ": ",
            (unsigned long long)used, (unsigned long long)limit,
            status == JANUS_SPAWN_BUDGET ? "given to children or used" : "used");
    }
    put(text, " (%s). %s", janus_status_name(status), advice(status, component));
}

size_t janus_explain(char *buffer, size_t size)
{
    struct text               text = {buffer, size, 0};
    const struct jrt_thread  *thread = jrt_thread_self();
    const struct jrt_worker  *worker = thread->worker;
    const struct jrt_trouble *last = &thread->trouble;
    const struct jrt_task    *task = worker != NULL ? worker->current : NULL;
    uint64_t                  id = task != NULL ? jrt_task_id(task) : 0;
    if (size > 0) buffer[0] = 0;
    if (last->status >= 0 || last->task != id) {
        jrt_stack_check(); /* [turn-call] */
        return 0;
    }
    if (task != NULL) {
        put_who(&text, jrt_task_name(task), task->site, id);
        put(&text, " in ");
        put_path(&text, task->innermost != NULL ? task->innermost : task->nursery);
    } else {
        put(&text, "a thread outside of tasks");
    }
    if (last->call != NULL) put(&text, ": %s", last->call);
    if (last->table >= JRT_TABLES) {
        put_other(&text, last);
    } else if (last->table != JRT_TABLE_NONE) {
        put_full(&text, last);
    } else {
        put_trouble(&text, (janus_status)last->status, (janus_component)last->component, last->used,
                    last->limit);
    }
    /* Last, because another task's trouble would replace this one, [turn-call]. */
    jrt_sentence_check();
    return text.length;
}

janus_status janus_explain_as(janus_status status, const char *call, const char *why)
{
    if (status >= 0) return status;
    struct jrt_trouble *last = note_anew(status, JRT_TROUBLE_TOLD, 0);
    last->told = why != NULL ? why : janus_status_text(status);
    last->call = call;
    last->fresh = false;
    return status;
}

/* `why`: the reason of a panic. */
static void put_failure(struct text *text, const struct jrt_nursery *n,
                        const janus_failure *failure, const char *why)
{
    put_who(text, failure->name, &failure->site, failure->task);
    put(text, " in ");
    put_path(text, n);
    if (failure->panic != JANUS_PANIC_KIND_NONE) {
        put(text, ": panic: %s", why);
    } else if (failure->error == JANUS_BUDGET_EXHAUSTED) {
        put_trouble(text, JANUS_BUDGET_EXHAUSTED, failure->lacks, failure->used, failure->limit);
    } else if (failure->error == JANUS_NO_MEMORY) {
        put_trouble(text, JANUS_NO_MEMORY, JANUS_COMPONENT_NONE, 0, 0);
    } else if (failure->error >= INT32_MIN &&
               strcmp(janus_status_name((janus_status)failure->error), "JANUS_?") != 0) {
        put(text, ": returned %lld: %s", (long long)failure->error,
            janus_status_text((janus_status)failure->error));
    } else {
        put(text, ": returned %lld", (long long)failure->error);
    }
}

void jrt_failure_sentence(struct jrt_nursery *n, const janus_failure *failure, const char *why,
                          char *buffer, size_t size)
{
    struct text text = {buffer, size, 0};
    put_failure(&text, n, failure, why);
}

size_t janus_failure_text(janus_nursery *nursery, const janus_failure *failure, char *buffer,
                          size_t size)
{
    struct text text = {buffer, size, 0};
    if (size > 0) buffer[0] = 0;
    if (nursery == NULL || failure == NULL) return 0;
    bool overflow = failure->panic == JANUS_PANIC_KIND_STACK_OVERFLOW;
    put_failure(&text, jrt_nursery_of(nursery), failure,
                overflow ? "its stack overflowed: spawn it with a larger stack_bytes"
                         : "janus_panic was called");
    jrt_sentence_check();
    return text.length;
}
