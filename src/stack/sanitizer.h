/* SPDX-License-Identifier: MIT */
/*
 * Informs ASan, TSan and Valgrind of switches. Only this file has conditions on them. Without any
 * of them every function here is empty.
 *
 * ASan keeps the bounds of the current stack, and a fake stack to detect uses after return. TSan
 * keeps a whole thread state for each fiber. Valgrind needs the places of stacks.
 */
#ifndef JRT_STACK_SANITIZER_H
#define JRT_STACK_SANITIZER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if JRT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if JRT_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if JRT_VALGRIND
#include <valgrind/valgrind.h>
#endif

/* Instrumented frames are larger: redzones surround every local. */
#if JRT_ASAN
enum { JRT_STACK_FACTOR = 4 };
#elif JRT_TSAN
enum { JRT_STACK_FACTOR = 2 };
#else
enum { JRT_STACK_FACTOR = 1 };
#endif

/* A function that reads or writes stacks it does not own. */
#define JRT_SEES_FOREIGN_STACKS __attribute__((no_sanitize("address", "thread")))

/* A function that runs between leaving one context and arriving in another. ASan would put its
 * frame on a fake stack that belongs to neither. */
#define JRT_BETWEEN_STACKS __attribute__((no_sanitize("address", "thread")))

/* A sanitizer's data of one context; empty without sanitizers. */
struct jrt_sanitizer {
#if JRT_ASAN
    void       *fake_stack;
    const void *low;
    size_t      bytes;
#endif
#if JRT_TSAN
    void    *fiber;
    unsigned lives, lives_max; /* that ended; after which it is destroyed */
#endif
};

/*
 * TSan writes a megabyte to create a fiber. So a thread keeps some fibers of dead contexts and uses
 * them again. What the dead context did happens before what its thread does next in any case, so
 * this hides no race. TSan keeps the calls of each fiber. Calls that never returned would fill its
 * 64 Ki places. So a fiber has few lives, and only one on a large stack. TSan takes a kept fiber
 * for a running thread, and a process with several threads cannot fork and then start threads. So
 * only workers' threads keep fibers: they end with their scheduler.
 */
struct jrt_sanitizer_spares {
#if JRT_TSAN
    bool                 keeps;
    unsigned             count;
    struct jrt_sanitizer at[32];
#endif
};

/* The calling thread's; not part of its record, which deterministic engines exchange. */
extern _Thread_local struct jrt_sanitizer_spares jrt_sanitizer_spares
    __attribute__((visibility("hidden")));

#if JRT_TSAN
enum { JRT_TSAN_LIVES = 8, JRT_TSAN_STACK_MAX = 256 * 1024 };

/* Not inline: the address of a thread-local must not be kept across a switch. */
__attribute__((noinline, unused)) static void jrt_tsan_take(struct jrt_sanitizer *context,
                                                            size_t                bytes)
{
    struct jrt_sanitizer_spares *spares = &jrt_sanitizer_spares;
    bool                         small = bytes <= JRT_TSAN_STACK_MAX;
    if (small && spares->count > 0) {
        *context = spares->at[--spares->count];
        return;
    }
    *context = (struct jrt_sanitizer){.fiber = __tsan_create_fiber(0),
                                      .lives_max = small ? JRT_TSAN_LIVES : 1};
}

__attribute__((noinline, unused)) static void jrt_tsan_give(struct jrt_sanitizer *context)
{
    struct jrt_sanitizer_spares *spares = &jrt_sanitizer_spares;
    unsigned                     room = sizeof spares->at / sizeof spares->at[0];
    if (spares->keeps && ++context->lives < context->lives_max && spares->count < room) {
        spares->at[spares->count++] = *context;
    } else {
        __tsan_destroy_fiber(context->fiber);
    }
    context->fiber = NULL;
}
#endif

/* The calling thread is a worker's from now on, and jrt_sanitizer_thread_ends ends it. */
static inline void jrt_sanitizer_thread_works(void)
{
#if JRT_TSAN
    jrt_sanitizer_spares.keeps = true;
#endif
}

/* The calling thread ends. */
static inline void jrt_sanitizer_thread_ends(void)
{
#if JRT_TSAN
    struct jrt_sanitizer_spares *spares = &jrt_sanitizer_spares;
    spares->keeps = false;
    while (spares->count > 0) __tsan_destroy_fiber(spares->at[--spares->count].fiber);
#endif
}

/* Prepares the context of a thread's own stack, on that thread. Its bounds become known when the
 * thread first leaves it. */
static inline void jrt_sanitizer_adopt_thread(struct jrt_sanitizer *context)
{
    (void)context;
#if JRT_TSAN
    context->fiber = __tsan_get_current_fiber();
#endif
}

/* A fiber gets a stack. */
static inline void jrt_sanitizer_attach(struct jrt_sanitizer *context, void *low, size_t bytes)
{
    (void)context, (void)low, (void)bytes;
#if JRT_ASAN
    *context = (struct jrt_sanitizer){.low = low, .bytes = bytes};
#endif
#if JRT_TSAN
    jrt_tsan_take(context, bytes);
#endif
}

/* A fiber that left for good loses its stack. Its dead frames have poisoned the stack for the next
 * user, a fiber or another mapping. Runs on another context. */
static inline void jrt_sanitizer_detach(struct jrt_sanitizer *context, void *low, size_t bytes)
{
    (void)context, (void)low, (void)bytes;
#if JRT_ASAN
    __asan_unpoison_memory_region(low, bytes);
#endif
#if JRT_TSAN
    jrt_tsan_give(context);
#endif
}

/* Detaches a stack that is used again at once. TSan keeps the calls of each context. Calls that
 * never returned would fill its 64 Ki places. */
static inline void jrt_sanitizer_renew(struct jrt_sanitizer *context)
{
    (void)context;
#if JRT_ASAN
    context->fake_stack = NULL; /* freed when the context was left for good */
#endif
#if JRT_TSAN
    if (++context->lives < context->lives_max) return;
    __tsan_destroy_fiber(context->fiber);
    context->fiber = __tsan_create_fiber(0);
    context->lives = 0;
#endif
}

/* Just before the switch. `last`: the leaving context will never be entered again. Always inlined:
 * TSan notes calls and returns for each context. This function would be called in one and return in
 * the other. */
static inline __attribute__((always_inline)) void jrt_sanitizer_leave(struct jrt_sanitizer *from,
                                                                      struct jrt_sanitizer *to,
                                                                      bool                  last)
{
    (void)from, (void)to, (void)last;
#if JRT_ASAN
    __sanitizer_start_switch_fiber(last ? NULL : &from->fake_stack, to->low, to->bytes);
#endif
#if JRT_TSAN
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
}

/* Just after the switch, as `self`. Notes the bounds of `from`, which was left. */
JRT_BETWEEN_STACKS static inline void jrt_sanitizer_arrive(struct jrt_sanitizer *self,
                                                           struct jrt_sanitizer *from)
{
    (void)self, (void)from;
#if JRT_ASAN
    __sanitizer_finish_switch_fiber(self->fake_stack, &from->low, &from->bytes);
#endif
}

/* Replaces leave and arrive if a signal handler made the switch. The dead fiber could not leave, so
 * the context that was landed in leaves for it. */
static inline __attribute__((always_inline)) void jrt_sanitizer_land(struct jrt_sanitizer *self,
                                                                     struct jrt_sanitizer *from)
{
#if JRT_TSAN
    from->lives_max = 0; /* TSan may take it to be inside the handler still */
#endif
    jrt_sanitizer_leave(from, self, true);
    jrt_sanitizer_arrive(self, from);
}

/* Frames between the addresses low and high will not return. */
static inline void jrt_sanitizer_unwind(void *low, void *high)
{
    (void)low, (void)high;
#if JRT_ASAN
    __asan_unpoison_memory_region(low, (size_t)((char *)high - (char *)low));
#endif
}

/* A lock's memory will be used for another lock. TSan would take them for the same lock. */
static inline void jrt_sanitizer_lock_gone(pthread_mutex_t *lock)
{
    (void)lock;
#if JRT_TSAN
    pthread_mutex_destroy(lock);
#endif
}

/* A stack was carved, or its slab will be unmapped. */
static inline void jrt_sanitizer_stack_born(uint32_t *id, void *low, void *top)
{
    (void)id, (void)low, (void)top;
#if JRT_VALGRIND
    if (RUNNING_ON_VALGRIND) *id = (uint32_t)VALGRIND_STACK_REGISTER(low, (char *)top - 1);
#endif
}

static inline void jrt_sanitizer_stack_gone(const uint32_t *id)
{
    (void)id;
#if JRT_VALGRIND
    if (RUNNING_ON_VALGRIND) VALGRIND_STACK_DEREGISTER(*id);
#endif
}

/* Around reading or zeroing a stack from outside, which touches words on purpose that were never
 * written or are no longer in use. */
static inline void jrt_sanitizer_scan_begin(void)
{
#if JRT_VALGRIND
    VALGRIND_DISABLE_ERROR_REPORTING;
#endif
}

static inline void jrt_sanitizer_scan_end(void)
{
#if JRT_VALGRIND
    VALGRIND_ENABLE_ERROR_REPORTING;
#endif
}

#endif
