/* SPDX-License-Identifier: MIT */
/* Reads what objdump prints for an object file. GNU's and LLVM's objdump print the same shape. */
#include "cc/audit.h"
#include "cc/cc.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where a jump goes, until all instructions are known. */
struct aim {
    char    *symbol; /* NULL: `address` in the same section */
    uint64_t address;
    bool     known;
};

struct reading {
    struct listing *listing;
    struct aim     *aims; /* one for each instruction */
    size_t          aims_capacity;
};

static bool is_any(const char *word, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(word, *names) == 0) return true;
    }
    return false;
}

static enum code_kind kind_x86(const char *name, const char *operands)
{
    static const char *const ends[] = {"ret", "retq", "hlt", "ud2", "ud1", "ud1l", "iretq", NULL};
    static const char *const loops[] = {"loop", "loope", "loopne", "xbegin", NULL};
    if (is_any(name, ends)) return CODE_END;
    if (is_any(name, loops)) return CODE_BRANCH;
    if (strncmp(name, "call", 4) == 0) return CODE_CALL;
    if (strcmp(name, "jmp") == 0 || strcmp(name, "jmpq") == 0) {
        return operands[0] == '*' ? CODE_INDIRECT : CODE_JUMP;
    }
    return name[0] == 'j' ? CODE_BRANCH : CODE_PLAIN;
}

static enum code_kind kind_arm(const char *name)
{
    static const char *const ends[] = {"ret", "retaa", "retab", "udf", "brk", "eret", "hlt", NULL};
    static const char *const tests[] = {"cbz", "cbnz", "tbz", "tbnz", NULL};
    if (is_any(name, ends)) return CODE_END;
    if (is_any(name, tests)) return CODE_BRANCH;
    if (strncmp(name, "b.", 2) == 0 || strncmp(name, "bc.", 3) == 0) return CODE_BRANCH;
    if (strcmp(name, "b") == 0) return CODE_JUMP;
    if (strncmp(name, "bl", 2) == 0) return CODE_CALL; /* bl, blr, blraa */
    return strncmp(name, "br", 2) == 0 ? CODE_INDIRECT : CODE_PLAIN;
}

static bool pays(const char *symbol)
{
    static const char *const names[] = {"janus_check_stub",
                                        "janus_strip_slow",
                                        "janus_check_slow",
                                        "janus_check_or_end_slow",
                                        "janus_check_or_end",
                                        "janus_op",
                                        NULL};
    return is_any(symbol, names) || strncmp(symbol, "janus_cc_pay_", 13) == 0;
}

/* "name", "name+0x10" or "name-0x4": cuts the number off and returns it. */
static int64_t cut_offset(char *symbol)
{
    char *sign = strrchr(symbol, '+');
    if (sign == NULL) sign = strrchr(symbol, '-');
    if (sign == NULL || strncmp(sign + 1, "0x", 2) != 0) return 0;
    int64_t offset = (int64_t)strtoull(sign + 1, NULL, 16);
    if (*sign == '-') offset = -offset;
    *sign = '\0';
    char *version = strchr(symbol, '@');
    if (version != NULL) *version = '\0';
    return offset;
}

static void take_symbol(struct reading *reading, size_t index, char *symbol, bool relocated)
{
    struct listing *listing = reading->listing;
    struct code    *code = &listing->code[index];
    int64_t         offset = cut_offset(symbol);
    char           *version = strchr(symbol, '@');
    if (version != NULL) *version = '\0';
    if (strcmp(symbol, "janus_fuel") == 0) code->names_fuel = true;
    if (code->kind == CODE_PLAIN || code->kind == CODE_END) return;
    if (code->kind != CODE_INDIRECT && pays(symbol)) code->calls_slow = true;
    if (!relocated) return;
    if (!listing->arm) offset += 4; /* x86-64 counts from the end of the field */
    reading->aims[index] = (struct aim){cc_join("%s", symbol), (uint64_t)offset, true};
}

static void add_function(struct listing *listing, uint64_t address, const char *name)
{
    if (listing->function_count == listing->function_capacity) {
        size_t capacity = listing->function_capacity < 64 ? 64 : listing->function_capacity * 2;
        listing->functions = cc_grow(listing->functions, capacity, sizeof *listing->functions);
        listing->function_capacity = capacity;
    }
    listing->functions[listing->function_count++] = (struct code_function){
        .name = cc_join("%s", name),
        .section_name = listing->section_count ? listing->sections[listing->section_count - 1] : "",
        .address = address,
        .section = (uint32_t)listing->section_count,
        .entry = (int)listing->count};
}

static void add_section(struct listing *listing, const char *name)
{
    listing->sections =
        cc_grow(listing->sections, listing->section_count + 1, sizeof *listing->sections);
    listing->sections[listing->section_count++] = cc_join("%s", name);
}

static struct code *new_code(struct reading *reading)
{
    struct listing *listing = reading->listing;
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity < 1024 ? 1024 : listing->capacity * 2;
        if (capacity > INT32_MAX) cc_refuse("--audit: more than 2^30 instructions");
        listing->code = cc_grow(listing->code, capacity, sizeof *listing->code);
        reading->aims = cc_grow(reading->aims, capacity, sizeof *reading->aims);
        listing->capacity = capacity;
    }
    reading->aims[listing->count] = (struct aim){.symbol = NULL};
    struct code *code = &listing->code[listing->count++];
    memset(code, 0, sizeof *code);
    return code;
}

/* "24 <f+0x24>" at the end of the operands: the address, and the symbol for linked files. */
static void take_place(struct reading *reading, size_t index, char *operands)
{
    char *bracket = strchr(operands, '<');
    if (bracket == NULL) return;
    char *number = bracket;
    while (number > operands && isblank((unsigned char)number[-1])) number--;
    while (number > operands && isxdigit((unsigned char)number[-1])) number--;
    if (number - operands >= 2 && number[-1] == 'x' && number[-2] == '0') number -= 2;
    reading->aims[index] = (struct aim){NULL, strtoull(number, NULL, 16), true};
    char *symbol = cc_join("%s", bracket + 1);
    symbol[strcspn(symbol, ">")] = '\0';
    /* In an object file the symbol of a call that will be relocated is a place in the caller. */
    take_symbol(reading, index, symbol, false);
    free(symbol);
}

/* Prefixes that objdump prints as words of their own. */
static char *skip_prefixes(char *text)
{
    static const char *const prefixes[] = {"bnd",  "notrack", "repz",   "rep", "repnz",
                                           "lock", "data16",  "cs",     "ds",  "es",
                                           "ss",   "rex.W",   "addr32", NULL};
    for (;;) {
        text += strspn(text, " \t");
        size_t length = strcspn(text, " \t");
        char   word[16] = "";
        if (length >= sizeof word || text[length] == '\0') return text;
        memcpy(word, text, length);
        if (!is_any(word, prefixes)) return text;
        text += length;
    }
}

static void take_instruction(struct reading *reading, uint64_t address, char *text)
{
    struct listing *listing = reading->listing;
    if (listing->function_count == 0) add_function(listing, address, "code");
    char *comment = listing->arm ? strstr(text, "//") : NULL;
    if (comment != NULL) *comment = '\0';
    text = skip_prefixes(text);
    struct code *code = new_code(reading);
    size_t       index = listing->count - 1, length = strcspn(text, " \t");
    char         name[24] = "";
    code->address = address;
    code->section = (uint32_t)listing->section_count;
    code->function = (uint32_t)listing->function_count - 1;
    code->target = CODE_NOWHERE;
    (void)snprintf(code->text, sizeof code->text, "%s", text);
    (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
    char *operands = text + length + strspn(text + length, " \t");
    code->kind = listing->arm ? kind_arm(name) : kind_x86(name, operands);
    if (code->kind == CODE_CALL && operands[0] == '*') return;
    take_place(reading, index, operands);
}

static void take_relocation(struct reading *reading, char *text)
{
    struct listing *listing = reading->listing;
    size_t          length = strcspn(text, " \t");
    char           *symbol = text + length + strspn(text + length, " \t");
    symbol[strcspn(symbol, " \t")] = '\0';
    if (listing->count > 0) take_symbol(reading, listing->count - 1, symbol, true);
}

static void take_line(struct reading *reading, char *line)
{
    static const char section[] = "Disassembly of section ";
    line[strcspn(line, "\r\n")] = '\0';
    if (strstr(line, "file format elf64") != NULL) {
        reading->listing->arm = strstr(line, "aarch64") != NULL;
        return;
    }
    if (strncmp(line, section, sizeof section - 1) == 0) {
        char *name = line + sizeof section - 1;
        name[strcspn(name, ":")] = '\0';
        add_section(reading->listing, name);
        return;
    }
    char    *at = line + strspn(line, " \t"), *end;
    uint64_t address = strtoull(at, &end, 16);
    if (end == at) return;
    if (*end == ' ' && end[1] == '<') {
        char *name = end + 2;
        name[strcspn(name, ">")] = '\0';
        add_function(reading->listing, address, name);
    } else if (*end == ':') {
        char *text = end + 1 + strspn(end + 1, " \t");
        if (strncmp(text, "R_X86_64_", 9) == 0 || strncmp(text, "R_AARCH64_", 10) == 0) {
            take_relocation(reading, text);
        } else if (text[0] != '\0') {
            take_instruction(reading, address, text);
        }
    }
}

/* The instruction at an address; all of a section stand in order. */
static int find_code(const struct listing *listing, uint32_t section, uint64_t address)
{
    size_t low = 0, high = listing->count;
    while (low < high) {
        size_t             middle = low + (high - low) / 2;
        const struct code *code = &listing->code[middle];
        bool before = code->section != section ? code->section < section : code->address < address;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == listing->count || listing->code[low].section != section ||
        listing->code[low].address != address) {
        return CODE_NOWHERE;
    }
    return (int)low;
}

/* A symbol is a function or a section of this file, or from elsewhere. */
static int find_symbol(const struct listing *listing, const char *symbol, uint64_t offset)
{
    for (size_t i = 0; i < listing->function_count; i++) {
        const struct code_function *function = &listing->functions[i];
        if (strcmp(function->name, symbol) == 0) {
            return find_code(listing, function->section, function->address + offset);
        }
    }
    for (size_t i = 0; i < listing->section_count; i++) {
        if (strcmp(listing->sections[i], symbol) == 0) {
            return find_code(listing, (uint32_t)i + 1, offset);
        }
    }
    return CODE_NOWHERE;
}

static void resolve(struct reading *reading)
{
    struct listing *listing = reading->listing;
    for (size_t i = 0; i < listing->count; i++) {
        const struct aim *aim = &reading->aims[i];
        struct code      *code = &listing->code[i];
        if (!aim->known || code->kind == CODE_PLAIN || code->kind == CODE_END) continue;
        code->target = aim->symbol != NULL ? find_symbol(listing, aim->symbol, aim->address)
                                           : find_code(listing, code->section, aim->address);
    }
    free(reading->aims);
}

/* The machine of an ELF file, or 0. */
static unsigned machine_of(const char *path)
{
    Elf64_Ehdr head;
    FILE      *file = fopen(path, "re");
    if (file == NULL) cc_refuse("%s: %s", path, strerror(errno));
    size_t got = fread(&head, 1, sizeof head, file);
    (void)fclose(file);
    if (got != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
    return head.e_machine;
}

/* GNU's objdump reads its own machine only; LLVM's reads both. */
static const char *find_objdump(unsigned machine)
{
#if defined(__x86_64__)
    const char *own = machine == EM_X86_64 ? "objdump" : "aarch64-linux-gnu-objdump";
#else
    const char *own = machine == EM_AARCH64 ? "objdump" : "x86_64-linux-gnu-objdump";
#endif
    const char *const names[] = {own, "llvm-objdump-19", "llvm-objdump-16", "llvm-objdump-14",
                                 "llvm-objdump"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = cc_command_find(names[i]);
        if (path != NULL) return path;
    }
    cc_refuse("--audit: there is no %s; install the package binutils or llvm-19", own);
}

void listing_read(struct listing *listing, const char *path)
{
    struct reading reading = {.listing = listing, .aims = cc_memory(sizeof *reading.aims)};
    int            ends[2], ended = 0;
    char          *line = NULL;
    size_t         bytes = 0;
    unsigned       machine = machine_of(path);
    if (machine != EM_X86_64 && machine != EM_AARCH64) {
        cc_refuse("--audit: %s is not an ELF object file for x86-64 or AArch64", path);
    }
    const char *objdump = find_objdump(machine);
    if (pipe2(ends, O_CLOEXEC) != 0) cc_refuse("no pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0) cc_refuse("no process: %s", strerror(errno));
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)setenv("LC_ALL", "C", 1);
        execl(objdump, objdump, "-dr", "--no-show-raw-insn", path, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    FILE *lines = fdopen(ends[0], "re");
    if (lines == NULL) cc_refuse("no memory");
    while (getline(&line, &bytes, lines) >= 0) take_line(&reading, line);
    free(line);
    (void)fclose(lines);
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
        cc_refuse("--audit: %s cannot read %s", objdump, path);
    }
    resolve(&reading);
}
