/* SPDX-License-Identifier: MIT */
/* Loops of every shape. */
#include "hostile.h"

#include <stddef.h>

static uint32_t numbers[4096];
static uint8_t  bytes[4096];

static uint64_t while_one(uint64_t n)
{
    (void)n;
    while (1) {
    }
    return 0;
}

static uint64_t for_ever(uint64_t n)
{
    for (uint64_t i = 0;; i++) {
        TICK();
        if (i == n) return i;
    }
}

static uint64_t jump_back(uint64_t n)
{
    uint64_t i = 0;
again:
    TICK();
    if (i++ < n) goto again;
    return i;
}

static uint64_t irreducible_two(uint64_t n)
{
    uint64_t i = 0, sum = 0;
    if (hostile_zero) goto second;
first:
    sum += 3;
    if (i++ >= n) return sum;
second:
    sum ^= i;
    TICK();
    goto first;
}

static uint64_t irreducible_three(uint64_t n)
{
    uint64_t i = 0, sum = 1;
    switch (hostile_one) {
    case 0: goto a;
    case 1: goto b;
    default: goto c;
    }
a:
    sum = sum * 5 + i;
    if (sum & 1) goto c;
b:
    sum += i;
    if (i++ >= n) return sum;
    if (sum & 2) goto a;
c:
    sum ^= i << 3;
    if (i++ >= n) return sum;
    goto b;
}

static uint64_t computed_goto(uint64_t n)
{
    static const void *const targets[] = {&&even, &&odd, &&out};
    uint64_t                 i = 0, sum = 0;
even:
    i++;
    sum += i;
    TICK();
    goto *targets[i >= n ? 2 : i & 1];
odd:
    i++;
    sum ^= i;
    TICK();
    goto *targets[i >= n ? 2 : i & 1];
out:
    return sum;
}

static uint64_t interpreter(uint64_t n)
{
    static const uint8_t     program[] = {0, 1, 2, 3, 1, 0, 4, 5};
    static const void *const handlers[] = {&&add, &&multiply, &&rotate, &&mix, &&twice, &&loop};
    uint64_t                 value = 1, rounds = 0, other = 7;
    const uint8_t           *at = program;
#define NEXT goto *handlers[*at++]
    NEXT;
add:
    value += other;
    NEXT;
multiply:
    value *= 31;
    NEXT;
rotate:
    value = value << 7 | value >> 57;
    NEXT;
mix:
    other ^= value;
    NEXT;
twice:
    value += value;
    NEXT;
loop:
    if (++rounds == n) return value;
    at = program;
    NEXT;
#undef NEXT
}

static uint64_t states(uint64_t n)
{
    int      state = 0;
    uint64_t left = n, sum = 0;
    for (;;) {
        TICK();
        switch (state) {
        case 0:
            state = 1;
            sum += left;
            continue;
        case 1: state = left & 1 ? 2 : 3; continue;
        case 3:
            state = 0;
            if (left-- == 0) return ~sum;
            continue;
        case 2:
            state = 0;
            sum ^= left;
            if (left-- == 0) return sum;
            continue;
        }
    }
}

static uint64_t do_while(uint64_t n)
{
    uint64_t i = 0;
    do TICK();
    while (++i < n);
    return i;
}

static uint64_t zero_step(uint64_t n)
{
    uint64_t rounds = 0;
    for (int i = 0; i < 10; i += hostile_zero) {
        TICK();
        if (++rounds > n) break;
    }
    return rounds;
}

static uint64_t always_true(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= UINT64_MAX; i++) {
        sum += i * i;
        if (i == n) break;
    }
    return sum;
}

static uint64_t byte_wraps(uint64_t n)
{
    uint64_t rounds = 0;
    for (uint8_t i = 0; i < 256; i++) {
        TICK();
        if (++rounds == n) return rounds + i;
    }
    return 0;
}

static uint64_t never_negative(uint64_t n)
{
    uint64_t rounds = 0;
    for (unsigned i = 10; i >= 0; i--) {
        if (++rounds == n) return rounds ^ i;
    }
    return 0;
}

static uint64_t empty(uint64_t n)
{
    uint64_t i;
    for (i = 0; i < n; i++) {
    }
    return i;
}

static uint64_t empty_for_ever(uint64_t n) /* 2^64 - 1 rounds, and no result that depends on them */
{
    for (uint64_t i = 0; i < n; i++) {
    }
    return 0;
}

static uint64_t closed_form(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += i * 3 + 1;
    return sum;
}

static uint64_t vector_sum(uint64_t n)
{
    uint32_t sum = 0;
    for (uint64_t r = 0; r < n; r++)
        for (size_t i = 0; i < 4096; i++) sum += numbers[i] * 3 + (uint32_t)r;
    return sum;
}

static uint64_t memset_idiom(uint64_t n)
{
    for (uint64_t r = 0; r < n; r++)
        for (size_t i = 0; i < 4096 - (size_t)hostile_zero; i++) bytes[i] = (uint8_t)r;
    return bytes[4095];
}

static uint64_t strided(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n * 3; i += 3) sum ^= numbers[i & 4095] + i;
    return sum;
}

static uint64_t backwards(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = n; i-- > 0;) sum = sum * 3 + numbers[i & 4095];
    return sum;
}

static uint64_t nest(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t a = 0; a < n; a++)
        for (uint64_t b = 0; b < n; b++)
            for (uint64_t c = 0; c < n; c++)
                for (uint64_t d = 0; d < n; d++) {
                    TICK();
                    sum += a ^ b ^ c ^ d;
                }
    return sum;
}

static uint64_t small_nest(uint64_t n) /* each loop alone is folded */
{
    uint64_t sum = 0;
    for (uint64_t r = 0; r < n; r++)
        for (int a = 0; a < 10; a++)
            for (int b = 0; b < 10; b++)
                for (int c = 0; c < 10; c++)
                    for (int d = 0; d < 10; d++) sum += (uint64_t)(a * b + c * d) + r;
    return sum;
}

static uint64_t triangle(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < i; j++) sum += numbers[(i + j) & 4095];
    return sum;
}

struct node {
    struct node *next;
    uint64_t     value;
};

static uint64_t cyclic_list(uint64_t n)
{
    struct node a = {NULL, 1}, b = {&a, 2}, c = {&b, 3};
    a.next = &c;
    uint64_t sum = 0;
    const struct node *volatile start = &a;
    for (const struct node *at = start; at != NULL; at = at->next) {
        sum += at->value;
        if (sum > n) break;
    }
    return sum;
}

static uint64_t cyclic_for_ever(uint64_t n)
{
    struct node a = {NULL, n}, b = {&a, 2};
    a.next = &b;
    struct node *volatile start = &a;
    for (const struct node *at = start; at != NULL; at = at->next) {
    }
    return 0;
}

static uint64_t assembly_goto(uint64_t n)
{
    uint64_t i = 0;
again:
    TICK();
    __asm__ goto("" : : : "memory" : again, out);
    if (i++ < n) goto again;
out:
    return i;
}

static uint64_t two_exits(uint64_t n)
{
    uint64_t i = 0, value = 1;
    while (value != 0) {
        value = value * UINT64_C(6364136223846793005) + 1442695040888963407;
        if (++i == n) break;
    }
    return value;
}

static uint64_t continues(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        TICK();
        if (i & 1) continue;
        if (i % 3 == 0) continue;
        sum += i;
    }
    return sum;
}

static uint64_t floats(uint64_t n)
{
    double sum = 0;
    for (double x = 0; x < (double)n; x += 1) sum += x;
    return (uint64_t)sum;
}

static uint64_t duff(uint64_t n)
{
    uint64_t left = (n + 7) / 8, sum = 0;
    switch (n % 8) {
    case 0:
        do {
            sum += left;
            __attribute__((fallthrough));
        case 7: sum ^= 7; __attribute__((fallthrough));
        case 6: sum += 6; __attribute__((fallthrough));
        case 5: sum ^= 5; __attribute__((fallthrough));
        case 4: sum += 4; __attribute__((fallthrough));
        case 3: sum ^= 3; __attribute__((fallthrough));
        case 2: sum += 2; __attribute__((fallthrough));
        case 1: sum ^= 1;
        } while (--left > 0);
    }
    return sum;
}

static uint64_t in_condition(uint64_t n)
{
    uint64_t i = 0, sum = 0;
    while (({
        for (int j = 0; j < 3; j++) sum += (uint64_t)j + i;
        i++ < n;
    })) {
    }
    return sum;
}

static uint64_t many_latches(uint64_t n)
{
    uint64_t i = 0, sum = 0;
head:
    if (i >= n) return sum;
    i++;
    if (i % 2) {
        sum += i;
        goto head;
    }
    if (i % 3) {
        sum ^= i;
        goto head;
    }
    if (i % 5) {
        sum *= 3;
        goto head;
    }
    sum--;
    goto head;
}

static uint64_t step_three_wraps(uint64_t n)
{
    uint64_t rounds = 0;
    for (uint32_t i = 1; i != 0 && rounds < n; i += 3) rounds++;
    return rounds;
}

static uint64_t data_decides(uint64_t n)
{
    uint32_t at = 1;
    uint64_t rounds = 0;
    while (at != 0 && rounds < n) {
        at = numbers[at & 4095] % 4099 + 1;
        rounds++;
    }
    return at + rounds;
}

static uint64_t short_circuit(uint64_t n)
{
    uint64_t i = 0;
    while ((i < n || i > UINT64_MAX - 2) && (hostile_one || i & 1) && ++i) {
    }
    return i;
}

static uint64_t nested_do(uint64_t n)
{
    uint64_t sum = 0, i = 0;
    do {
        uint64_t j = 0;
        do sum += i ^ j;
        while (++j < 7);
    } while (++i < n);
    return sum;
}

static uint64_t dot_product(uint64_t n)
{
    static float a[2048], b[2048];
    double       sum = 0;
    for (uint64_t r = 0; r < n; r++) {
        float part = 0;
        for (size_t i = 0; i < 2048; i++) a[i] += 1, part += a[i] * b[i] + 1;
        sum += part;
    }
    return (uint64_t)sum;
}

__attribute__((constructor)) NO_OPS static void prepare(void)
{
    for (uint32_t i = 0; i < 4096; i++) numbers[i] = i * 2654435761u;
}

const struct hostile hostile_loops[] = {
    {"while_one", while_one, HOSTILE_ENDLESS, 0},
    {"for_ever", for_ever, 1500000, 1},
    {"jump_back", jump_back, 1500000, 1},
    {"irreducible_two", irreducible_two, 1500000, 1},
    {"irreducible_three", irreducible_three, 3000000, 0},
    {"computed_goto", computed_goto, 1500000, 1},
    {"interpreter", interpreter, 300000, 0},
    {"states", states, 500000, 1},
    {"do_while", do_while, 1500000, 1},
    {"zero_step", zero_step, 1500000, 1},
    {"always_true", always_true, 1500000, 0},
    {"byte_wraps", byte_wraps, 1500000, 1},
    {"never_negative", never_negative, 1500000, 0},
    {"empty", empty, 1500000, 0},
    {"empty_for_ever", empty_for_ever, HOSTILE_ENDLESS, 0},
    {"closed_form", closed_form, 1500000, 0},
    {"vector_sum", vector_sum, 500, 0},
    {"memset_idiom", memset_idiom, 500, 0},
    {"strided", strided, 1500000, 0},
    {"backwards", backwards, 1500000, 0},
    {"nest", nest, 35, 1},
    {"small_nest", small_nest, 150, 0},
    {"triangle", triangle, 1800, 0},
    {"cyclic_list", cyclic_list, 3000000, 0},
    {"cyclic_for_ever", cyclic_for_ever, HOSTILE_ENDLESS, 0},
    {"assembly_goto", assembly_goto, 1500000, 1},
    {"two_exits", two_exits, 1500000, 0},
    {"continues", continues, 1500000, 1},
    {"floats", floats, 1500000, 0},
    {"duff", duff, 12000003, 0},
    {"in_condition", in_condition, 500000, 0},
    {"many_latches", many_latches, 1500000, 0},
    {"step_three_wraps", step_three_wraps, 1500000, 0},
    {"data_decides", data_decides, 1500000, 0},
    {"short_circuit", short_circuit, 1500000, 0},
    {"nested_do", nested_do, 300000, 0},
    {"dot_product", dot_product, 1000, 0},
    {0},
};
