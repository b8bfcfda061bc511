/* SPDX-License-Identifier: MIT */
#include "plat/seam.h"

/* Also keeps the loop from filling the pipeline with loads that must all be thrown away when the
 * awaited word changes. */
void jrt_cpu_relax(void)
{
    if (jrt_unlikely(jrt_world_now() != NULL)) jrt_thread_yield();
    __builtin_ia32_pause();
}
