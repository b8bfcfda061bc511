/* SPDX-License-Identifier: MIT */
/* An interpreter with computed goto: each opcode jumps to the next one by itself. */
#include "kernel.h"

enum { PUSH, ADD, XOR, SHIFT, SWAP, DROP, JUMP_IF, HALT };

static uint64_t run(const uint8_t *code, uint64_t rounds)
{
    static const void *const handlers[] = {&&push, &&add,  &&xor,     &&shift,
                                           &&swap, &&drop, &&jump_if, &&halt};
    uint64_t                 stack[16], top = 1, other;
    uint64_t                *at = stack;
    const uint8_t           *next = code;
#define NEXT goto *handlers[*next++]
    NEXT;
push:
    *at++ = top;
    top = *next++;
    NEXT;
add:
    top += *--at;
    NEXT;
    xor : top ^= *--at;
    NEXT;
shift:
    top = top << 7 | top >> 57;
    NEXT;
swap:
    other = at[-1];
    at[-1] = top;
    top = other;
    NEXT;
drop:
    top = *--at;
    NEXT;
jump_if:
    if (--rounds > 0) next = code;
    NEXT;
halt:
    return top;
}

uint64_t kernel(void)
{
    static const uint8_t code[] = {PUSH, 17,  ADD,   SHIFT, PUSH, 3,    PUSH,    5,   SWAP,
                                   ADD,  XOR, SHIFT, PUSH,  9,    DROP, JUMP_IF, HALT};
    return run(code, ROUNDS(2000000, 20000));
}
