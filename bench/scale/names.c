/* SPDX-License-Identifier: MIT */
/*
 * Names for resources. A line in the scheduler or in a channel has the name of the field. Another
 * has the name of a function that moved it, from the program's own table of symbols.
 */
#include "chan/chan.h"
#include "machine.h"
#include "task/worker.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct field {
    const char *name;
    size_t      from;
};

/* A word has the name of the last of these fields that begins before it. */
#define OF_SCHEDULER(name) {"scheduler." #name, offsetof(struct janus_scheduler, name)}
#define OF_WORKER(name) {"worker." #name, offsetof(struct jrt_worker, name)}

static const struct field scheduler_fields[] = {
    OF_SCHEDULER(worker_count), OF_SCHEDULER(limit),        OF_SCHEDULER(bank),
    OF_SCHEDULER(heaps),        OF_SCHEDULER(names),        OF_SCHEDULER(seats_lock),
    OF_SCHEDULER(world),        OF_SCHEDULER(roster),       OF_SCHEDULER(blocking),
    OF_SCHEDULER(inject_lock),  OF_SCHEDULER(inject_first), OF_SCHEDULER(injected),
    OF_SCHEDULER(armings),      OF_SCHEDULER(watch),        OF_SCHEDULER(watching),
    OF_SCHEDULER(idle_lock),    OF_SCHEDULER(sleepers),     OF_SCHEDULER(asleep),
    OF_SCHEDULER(beyond),       OF_SCHEDULER(idlers),       OF_SCHEDULER(fed),
    OF_SCHEDULER(threads_lock), OF_SCHEDULER(formers),      OF_SCHEDULER(threadless),
    OF_SCHEDULER(lost),         OF_SCHEDULER(revive_next),  OF_SCHEDULER(roots_lock),
    OF_SCHEDULER(roots),        OF_SCHEDULER(outside),      OF_SCHEDULER(guests),
    OF_SCHEDULER(started),      OF_SCHEDULER(cancels),      OF_SCHEDULER(reach),
    OF_SCHEDULER(root_done),
};

static const struct field worker_fields[] = {
    OF_WORKER(fresh_shelf), OF_WORKER(current), OF_WORKER(again_shelf), OF_WORKER(stats),
    OF_WORKER(turns),       OF_WORKER(fresh),   OF_WORKER(again),       OF_WORKER(signal),
    OF_WORKER(holder),      OF_WORKER(timers),
};

static uintptr_t known, known_end; /* where the scheduler lay */

void machine_know(void)
{
    const janus_scheduler *scheduler = jrt_worker_self()->scheduler;
    known = (uintptr_t)scheduler;
    known_end = (uintptr_t)&scheduler->workers[scheduler->worker_count];
}

static const char *last_before(const struct field *fields, size_t count, size_t offset)
{
    const char *name = "?";
    for (size_t i = 0; i < count; i++) {
        if (fields[i].from <= offset) name = fields[i].name;
    }
    return name;
}

static const char *field_at(uintptr_t at)
{
    if (at < known || at >= known_end) return NULL;
    size_t from = offsetof(struct janus_scheduler, workers);
    size_t offset = at - known;
    if (offset < from)
        return last_before(scheduler_fields, sizeof scheduler_fields / sizeof *scheduler_fields,
                           offset);
    offset = (offset - from) % sizeof(struct jrt_worker);
    return last_before(worker_fields, sizeof worker_fields / sizeof *worker_fields, offset);
}

/* Of a channel: the line that a step checks and changes, or the lines of its queues. */
static const char *part_of_channel(uintptr_t at)
{
    uintptr_t base = (uintptr_t)__atomic_load_n(&jrt_chan_table.base, __ATOMIC_RELAXED);
    uintptr_t last = __atomic_load_n(&jrt_chan_table.mask, __ATOMIC_RELAXED) + 255;
    if (at < base || at - base > last) return NULL;
    size_t offset = (at - base) % sizeof(struct jrt_chan);
    if (offset < offsetof(struct jrt_chan, lock)) return "channel.keys";
    return offset < offsetof(struct jrt_chan, senders) ? "channel.lock" : "channel.senders";
}

/* The table of symbols. */

static const char *image;

static void map_image(void)
{
    struct stat facts;
    int         fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &facts) == 0) {
        void *map = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) image = map;
    }
    (void)close(fd);
}

extern const char __executable_start[];

static const char *function_at(const void *code)
{
    if (image == NULL) map_image();
    if (image == NULL || code == NULL) return "?";
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image + header->e_shoff);
    uintptr_t         at = (uintptr_t)code;
    if (header->e_type == ET_DYN) at -= (uintptr_t)__executable_start;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const char      *texts = image + sections[sections[i].sh_link].sh_offset;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(image + sections[i].sh_offset);
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            if (ELF64_ST_TYPE(symbols[k].st_info) != STT_FUNC) continue;
            if (at > symbols[k].st_value && at <= symbols[k].st_value + symbols[k].st_size)
                return texts + symbols[k].st_name;
        }
    }
    return "?";
}

void machine_name(const struct resource *resource, char *out, size_t bytes)
{
    if (resource->name != NULL) {
        (void)snprintf(out, bytes, "%s", resource->name);
        return;
    }
    bool        line = resource->who != NULL;
    const char *field = field_at(line ? (uintptr_t)resource->what : resource->key);
    if (field == NULL && line) field = part_of_channel((uintptr_t)resource->what);
    if (field != NULL) {
        (void)snprintf(out, bytes, "%s %s", line ? "the line of" : "the lock", field);
    } else if (line) {
        (void)snprintf(out, bytes, "a line of %s", function_at(resource->who));
    } else {
        (void)snprintf(out, bytes, "a lock");
    }
}
