/* SPDX-License-Identifier: MIT */
/* Runs each kernel as a task of its own pool, and prints its result and its ops. */
#include <inttypes.h>
#include <janusrt/janus.h>
#include <stdio.h>

uint64_t kernel_sum(uint64_t n);
uint64_t kernel_collatz(uint64_t n);
uint64_t kernel_sieve(uint64_t n);
uint64_t kernel_do(uint64_t n);
uint64_t kernel_continue(uint64_t n);
uint64_t kernel_matrix(uint64_t n);

static const struct kernel {
    const char *name;
    uint64_t    (*run)(uint64_t n);
    uint64_t    n;
} kernels[] = {
    {"sum", kernel_sum, 50000},           {"collatz", kernel_collatz, 2000},
    {"sieve", kernel_sieve, 65536},       {"do", kernel_do, 10000},
    {"continue", kernel_continue, 10000}, {"matrix", kernel_matrix, 40},
};

static uint64_t result;

static int64_t run_kernel(void *argument)
{
    const struct kernel *kernel = argument;
    result = kernel->run(kernel->n);
    return 0;
}

static int64_t first(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        janus_nursery           n;
        janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
        janus_budget            pool = JANUS_BUDGET(.ops = 10000000, .spawn_count = 1);
        JANUS_EXPECT(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(&n, run_kernel, (void *)&kernels[i]) == JANUS_OK);
        JANUS_EXPECT(janus_nursery_await_with(&n, NULL) == JANUS_OK);
        JANUS_EXPECT(janus_nursery_pool_inspect(&n, &info) == JANUS_OK);
        JANUS_EXPECT(janus_nursery_end(&n, NULL) == JANUS_OK);
        printf("%s %" PRIu64 " ops %" PRIu64 "\n", kernels[i].name, result, info.spent.ops - 1);
    }
    return 0;
}

int main(void)
{
    janus_budget most = janus_budget_of(UINT64_C(1) << 40, UINT64_C(1) << 40, 1000, 1000, 1000);
    return janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_budget = &most), first, NULL,
                     NULL) == JANUS_OK
               ? 0
               : 1;
}
