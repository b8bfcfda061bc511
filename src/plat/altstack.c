/* SPDX-License-Identifier: MIT */
#include "plat/altstack.h"

#include "base/refuse.h"
#include "plat/memory.h"

#include <signal.h>
#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* Beyond the signal frame, a handler installed before ours needs room: a sanitizer's report or a
 * crash reporter, for example. Untouched pages cost nothing. */
enum {
    HANDLER_BYTES = 128 * 1024,
    OUR_HANDLER_BYTES = 8 * 1024, /* what the program's own stack must offer beyond the signal
                                   * frame */
};

size_t jrt_signal_frame_bytes(void)
{
    size_t bytes = (size_t)getauxval(AT_MINSIGSTKSZ);
    return bytes > (size_t)MINSIGSTKSZ ? bytes : (size_t)MINSIGSTKSZ; /* old kernels do not report
                                                                       * the size */
}

static _Atomic(uint32_t) refusals; /* set by jrt_altstacks_refuse */

void jrt_altstacks_refuse(unsigned count) { jrt_refuse(&refusals, count); }

bool jrt_altstack_open(struct jrt_altstack *altstack)
{
    stack_t now;
    *altstack = (struct jrt_altstack){0};
    size_t page = jrt_page_bytes();
    size_t frame = jrt_signal_frame_bytes();
    if (sigaltstack(NULL, &now) != 0) return false;
    bool has_one = !(now.ss_flags & SS_DISABLE);
    if (has_one && now.ss_size >= frame + OUR_HANDLER_BYTES) return true;
    if (jrt_refused(&refusals)) return false;

    size_t bytes = (frame + HANDLER_BYTES + page - 1) / page * page + page;
    char  *base = jrt_map_reserve(bytes);
    if (base == NULL) return false;
    stack_t mine = {.ss_sp = base + page, .ss_size = bytes - page};
    if (!jrt_map_protect(base, page) || sigaltstack(&mine, NULL) != 0) {
        jrt_map_release(base, bytes);
        return false;
    }
    *altstack = (struct jrt_altstack){.base = base, .bytes = bytes, .former = now};
    return true;
}

bool jrt_altstack_in_use(void)
{
    stack_t now;
    return sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
}

void jrt_altstack_close(struct jrt_altstack *altstack)
{
    if (altstack->base == NULL) return;
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == (char *)altstack->base + jrt_page_bytes()) {
        altstack->former.ss_flags &= SS_DISABLE;
        (void)sigaltstack(&altstack->former, NULL);
    }
    jrt_map_release(altstack->base, altstack->bytes);
    *altstack = (struct jrt_altstack){0};
}
