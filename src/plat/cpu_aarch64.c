/* SPDX-License-Identifier: MIT */
#include "plat/seam.h"

/* `yield` does nothing on cores without sibling threads; `isb` takes about as long as the `pause`
 * of x86-64. */
void jrt_cpu_relax(void)
{
    if (jrt_unlikely(jrt_world_now() != NULL)) jrt_thread_yield();
    __asm__ volatile("isb" ::: "memory");
}
