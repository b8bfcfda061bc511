/* SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/atomic.h"

#include <stddef.h>

_Atomic(void (*)(const char *what)) jrt_contract_hook;

void jrt_contract_broken(const char *what, const char *file, int line)
{
    /* acquire: pairs with the store that sets the hook. With a die hook, an explorer runs: it
     * reports a broken contract by its kind. */
    void (*hook)(const char *) = jrt_load_acquire(&jrt_contract_hook);
    if (jrt_die_hook == NULL && hook != NULL) hook(what);
    jrt_die("contract broken", what, file, line);
}
