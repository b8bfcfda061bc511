/* SPDX-License-Identifier: MIT */
#include "plat/altstack.h"

#include "plat/memory.h"

#include <signal.h>
#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* Beyond the signal frame: room for the handler that was there before us, a sanitizer's report
 * or a crash reporter among them. Untouched pages cost nothing. */
enum { HANDLER_BYTES = 128 * 1024 };

bool jrt_altstack_open(struct jrt_altstack *altstack)
{
    stack_t now;
    *altstack = (struct jrt_altstack){0};
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE)) return true;

    size_t page = jrt_page_bytes();
    size_t frame = (size_t)getauxval(AT_MINSIGSTKSZ); /* grows with the vector registers */
    size_t bytes = (frame + HANDLER_BYTES + page - 1) / page * page + page;
    char  *base = jrt_map_reserve(bytes);
    if (base == NULL) return false;
    stack_t mine = {.ss_sp = base + page, .ss_size = bytes - page};
    if (!jrt_map_protect(base, page) || sigaltstack(&mine, NULL) != 0) {
        jrt_map_release(base, bytes);
        return false;
    }
    *altstack = (struct jrt_altstack){.base = base, .bytes = bytes};
    return true;
}

void jrt_altstack_close(struct jrt_altstack *altstack)
{
    if (altstack->base == NULL) return;
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == (char *)altstack->base + jrt_page_bytes()) {
        stack_t none = {.ss_flags = SS_DISABLE};
        (void)sigaltstack(&none, NULL);
    }
    jrt_map_release(altstack->base, altstack->bytes);
    *altstack = (struct jrt_altstack){0};
}
