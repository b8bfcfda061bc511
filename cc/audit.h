/* SPDX-License-Identifier: MIT */
/* The instructions of an object file, as objdump prints them, and where each may continue. */
#ifndef JANUSRT_CC_AUDIT_H
#define JANUSRT_CC_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum code_kind {
    CODE_PLAIN,    /* goes on with the next instruction */
    CODE_BRANCH,   /* goes to its target, or on */
    CODE_JUMP,     /* goes to its target */
    CODE_INDIRECT, /* goes to a computed place */
    CODE_CALL,     /* calls its target, then goes on */
    CODE_END       /* returns, or traps */
};

enum { CODE_NOWHERE = -1 };

struct code {
    uint64_t       address;
    uint32_t       section, function; /* indices */
    enum code_kind kind;
    int            target;     /* the index of an instruction in this file, or CODE_NOWHERE */
    bool           names_fuel; /* it reads or writes the fuel word */
    bool           calls_slow; /* it calls a function of the runtime that pays */
    char           text[64];   /* mnemonic and operands, cut */
};

struct code_function {
    char    *name, *section_name;
    uint64_t address;
    uint32_t section;
    int      entry; /* the index of its first instruction */
};

struct listing {
    struct code          *code;
    size_t                count, capacity;
    struct code_function *functions;
    size_t                function_count, function_capacity;
    char                **sections;
    size_t                section_count;
    bool                  arm; /* AArch64; otherwise x86-64 */
};

/* Reads FILE with objdump. Refuses a file that objdump cannot read. */
void listing_read(struct listing *listing, const char *path);

#endif
