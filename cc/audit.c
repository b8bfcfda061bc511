/* SPDX-License-Identifier: MIT */
/*
 * --audit: names every cycle without a check in emitted code.
 *
 * The graph has a node for each instruction. Edges go to the next instruction, to targets of jumps,
 * and to functions of the same file that are called: so recursion is a cycle too. A computed jump
 * goes to all places of its function that nothing else reaches.
 *
 * A check is a branch on a borrow or a sign whose one side leads straight to a call that pays.
 * Without checks and such calls, what is left of a well-built file has no cycles, with one
 * exception: the pass pays ahead for short loops and for strips of 1024 rounds. Such a loop counts
 * a register, and every way to it passes a payment: it is "counted". Or it goes from one constant
 * to another in at most 1024 rounds, and may be paid later: it is "short". Every other cycle is
 * "open". Both kinds are recognised by their shape; how much was paid is not visible here.
 */
#include "cc/audit.h"
#include "cc/cc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far the walk to the paying call, and the search for the flags, may go. */
enum { WALK_MAX = 48, BACK_MAX = 8, REGISTERS = 32, EDGES_MAX = 2 };

enum { ROUNDS_MAX = 1024 }; /* of a loop that is paid at once */

struct audit {
    struct listing listing;
    bool          *paid;    /* nodes that end every cycle: checks, and calls that pay */
    bool          *unpaid;  /* nodes that a way from the function's entry reaches without payment */
    bool          *reached; /* nodes with a known predecessor */
    bool          *cut;     /* nodes that were judged */
    int           *cycle;   /* the number of the node's cycle, or 0 */
    int            cycles;
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_same_function(const struct listing *listing, size_t one, size_t other)
{
    return listing->code[one].function == listing->code[other].function;
}

/* The next instruction of the function, or CODE_NOWHERE. */
static int next_of(const struct listing *listing, int at)
{
    size_t next = (size_t)at + 1;
    if (next >= listing->count || !is_same_function(listing, (size_t)at, next)) return CODE_NOWHERE;
    return (int)next;
}

/* Up to two successors. Computed jumps have more: see `walk_edges`. */
static size_t edges_of(const struct listing *listing, int at, int edges[EDGES_MAX])
{
    const struct code *code = &listing->code[at];
    size_t             count = 0;
    int                next = next_of(listing, at);
    bool goes_on = code->kind == CODE_PLAIN || code->kind == CODE_BRANCH || code->kind == CODE_CALL;
    if (goes_on && next != CODE_NOWHERE) edges[count++] = next;
    if (code->target != CODE_NOWHERE && code->kind != CODE_PLAIN) edges[count++] = code->target;
    return count;
}

/* The k-th successor among the places that a computed jump may reach, or CODE_NOWHERE. */
static int computed_edge(const struct audit *audit, int at, size_t *from)
{
    const struct listing *listing = &audit->listing;
    for (; *from < listing->count && is_same_function(listing, (size_t)at, *from); (*from)++) {
        if (!audit->reached[*from]) return (int)(*from)++;
    }
    return CODE_NOWHERE;
}

static bool leads_to_payment(const struct listing *listing, int at)
{
    for (int steps = 0; at != CODE_NOWHERE && steps < WALK_MAX; steps++) {
        const struct code *code = &listing->code[at];
        if (code->calls_slow) return true;
        if (code->kind == CODE_JUMP)
            at = code->target;
        else if (code->kind == CODE_PLAIN)
            at = next_of(listing, at);
        else
            return false;
    }
    return false;
}

/* The instruction that set the flags for the branch at `at`, or NULL. */
static const struct code *flags_of(const struct listing *listing, int at)
{
    static const char *const x86[] = {"sub", "add", "dec", "inc", "cmp", "test", "xadd", "neg"};
    static const char *const arm[] = {"subs", "adds", "cmp", "cmn", "tst", "ands", "sub"};
    const char *const       *names = listing->arm ? arm : x86;
    size_t count = listing->arm ? sizeof arm / sizeof arm[0] : sizeof x86 / sizeof x86[0];
    for (int back = 1; back <= BACK_MAX && at - back >= 0; back++) {
        const struct code *code = &listing->code[at - back];
        if (code->function != listing->code[at].function || code->kind != CODE_PLAIN) return NULL;
        for (size_t i = 0; i < count; i++) {
            if (begins(code->text, names[i])) return code;
        }
    }
    return NULL;
}

/* The branch looks at a borrow or a sign, as the branch of a check does. */
static bool looks_at_borrow(const struct listing *listing, int at)
{
    static const char *const names[] = {"jb ",  "jae ",  "js ",  "jns ",  "jc ",  "jnc ",
                                        "jb\t", "jae\t", "js\t", "jns\t", "b.lo", "b.hs",
                                        "b.cc", "b.cs",  "b.mi", "b.pl",  "tbnz", "tbz"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (begins(listing->code[at].text, names[i])) return flags_of(listing, at) != NULL;
    }
    return false;
}

static bool is_check(const struct listing *listing, int at)
{
    if (listing->code[at].kind != CODE_BRANCH || !looks_at_borrow(listing, at)) return false;
    return leads_to_payment(listing, listing->code[at].target) ||
           leads_to_payment(listing, next_of(listing, at));
}

static void find_checks(struct audit *audit)
{
    const struct listing *listing = &audit->listing;
    for (size_t i = 0; i < listing->function_count; i++) {
        if ((size_t)listing->functions[i].entry < listing->count) {
            audit->reached[listing->functions[i].entry] = true;
        }
    }
    for (size_t i = 0; i < listing->count; i++) {
        int edges[EDGES_MAX];
        audit->paid[i] = listing->code[i].calls_slow || is_check(listing, (int)i);
        for (size_t k = edges_of(listing, (int)i, edges); k > 0; k--) {
            audit->reached[edges[k - 1]] = true;
        }
    }
}

/* Where a walk over the successors of an instruction stands. */
struct visit {
    int    at;
    size_t edge, from;
};

static struct visit visit_of(const struct listing *listing, int at)
{
    return (struct visit){at, 0, (size_t)listing->functions[listing->code[at].function].entry};
}

/* The next successor, or CODE_NOWHERE. */
static int next_edge(const struct audit *audit, struct visit *visit)
{
    const struct listing *listing = &audit->listing;
    int                   edges[EDGES_MAX];
    size_t                count = edges_of(listing, visit->at, edges);
    if (visit->edge < count) return edges[visit->edge++];
    if (listing->code[visit->at].kind != CODE_INDIRECT) return CODE_NOWHERE;
    return computed_edge(audit, visit->at, &visit->from);
}

/* Marks what the entries of functions reach without passing a payment. */
static void find_unpaid(struct audit *audit)
{
    const struct listing *listing = &audit->listing;
    int                  *stack = cc_memory((listing->count + 1) * sizeof *stack);
    size_t                depth = 0;
    for (size_t i = 0; i < listing->function_count; i++) {
        size_t entry = (size_t)listing->functions[i].entry;
        if (entry >= listing->count || audit->unpaid[entry]) continue;
        audit->unpaid[entry] = true;
        stack[depth++] = (int)entry;
        while (depth > 0) {
            int at = stack[--depth], to;
            if (audit->paid[at] || listing->code[at].names_fuel) continue;
            struct visit visit = visit_of(listing, at);
            while ((to = next_edge(audit, &visit)) != CODE_NOWHERE) {
                if (audit->unpaid[to] || !is_same_function(listing, (size_t)at, (size_t)to))
                    continue;
                audit->unpaid[to] = true;
                stack[depth++] = to;
            }
        }
    }
    free(stack);
}

/* Tarjan's algorithm, with its own stack: functions may have a million instructions. */
struct search {
    struct audit *audit;
    int          *order, *low, *open, next;
    bool         *is_open;
    size_t        opened, depth;
    struct visit *visits;
};

static void enter(struct search *search, int at)
{
    search->order[at] = search->low[at] = ++search->next;
    search->open[search->opened++] = at;
    search->is_open[at] = true;
    search->visits[search->depth++] = visit_of(&search->audit->listing, at);
}

static bool has_own_edge(const struct listing *listing, int at)
{
    int edges[EDGES_MAX];
    for (size_t k = edges_of(listing, at, edges); k > 0; k--) {
        if (edges[k - 1] == at) return true;
    }
    return false;
}

static void leave(struct search *search, int at)
{
    struct audit *audit = search->audit;
    if (search->low[at] != search->order[at]) return;
    bool single = search->open[search->opened - 1] == at;
    bool cycle = !single || has_own_edge(&audit->listing, at);
    if (cycle) audit->cycles++;
    int node;
    do {
        node = search->open[--search->opened];
        search->is_open[node] = false;
        if (cycle) audit->cycle[node] = audit->cycles;
    } while (node != at);
}

static void search_from(struct search *search, int root)
{
    enter(search, root);
    while (search->depth > 0) {
        struct visit *visit = &search->visits[search->depth - 1];
        int           at = visit->at, to = next_edge(search->audit, visit);
        if (to == CODE_NOWHERE) {
            search->depth--;
            leave(search, at);
            if (search->depth > 0) {
                int above = search->visits[search->depth - 1].at;
                if (search->low[at] < search->low[above]) search->low[above] = search->low[at];
            }
        } else if (!search->audit->paid[to] && !search->audit->cut[to] && search->order[to] == 0) {
            enter(search, to);
        } else if (search->is_open[to] && search->order[to] < search->low[at]) {
            search->low[at] = search->order[to];
        }
    }
}

static void find_cycles(struct audit *audit)
{
    size_t        count = audit->listing.count;
    struct search search = {.audit = audit,
                            .order = cc_memory(count * sizeof(int)),
                            .low = cc_memory(count * sizeof(int)),
                            .open = cc_memory(count * sizeof(int)),
                            .is_open = cc_memory(count * sizeof(bool)),
                            .visits = cc_memory(count * sizeof(struct visit))};
    memset(audit->cycle, 0, count * sizeof(int));
    audit->cycles = 0;
    for (size_t i = 0; i < count; i++) {
        if (!audit->paid[i] && !audit->cut[i] && search.order[i] == 0) search_from(&search, (int)i);
    }
    free(search.order);
    free(search.low);
    free(search.open);
    free(search.is_open);
    free(search.visits);
}

/* The number of the register whose name begins at `text`, whatever its width, or -1. */
static int register_of(const struct listing *listing, const char *text)
{
    static const char *const old[] = {"ax", "bx", "cx", "dx", "si", "di", "bp", "sp"};
    if (listing->arm) {
        if ((text[0] != 'x' && text[0] != 'w') || !isdigit((unsigned char)text[1])) return -1;
        return atoi(text + 1) % REGISTERS;
    }
    if (*text != '%') return -1;
    text++;
    if (text[0] == 'r' && isdigit((unsigned char)text[1])) return atoi(text + 1) % REGISTERS;
    if (text[0] == 'r' || text[0] == 'e') text++;
    for (int i = 0; i < 8; i++) {
        if (begins(text, old[i])) return 16 + i;
    }
    return -1;
}

/* The registers that an instruction names, as bits. */
static uint32_t registers_of(const struct listing *listing, const struct code *code)
{
    uint32_t bits = 0;
    for (const char *at = code->text; *at != '\0'; at++) {
        if (listing->arm && at > code->text && isalnum((unsigned char)at[-1])) continue;
        int number = register_of(listing, at);
        if (number >= 0) bits |= UINT32_C(1) << number;
    }
    return bits;
}

/* The number behind the first '$' (x86-64) or '#' (AArch64), or `otherwise`. */
static int64_t constant_of(const struct listing *listing, const struct code *code,
                           int64_t otherwise)
{
    const char *mark = strchr(code->text, listing->arm ? '#' : '$');
    return mark != NULL ? (int64_t)strtoull(mark + 1, NULL, 0) : otherwise;
}

/* The register that an instruction moves on by a constant, as a bit; or 0. */
static uint32_t stepped_by(const struct listing *listing, const struct code *code, int64_t *step)
{
    static const char *const x86[] = {"add", "sub", "inc", "dec", "lea"};
    static const char *const arm[] = {"add", "sub"};
    const char *const       *names = listing->arm ? arm : x86;
    size_t                   count = listing->arm ? 2 : 5;
    for (size_t i = 0; i < count; i++) {
        if (!begins(code->text, names[i])) continue;
        uint32_t bits = registers_of(listing, code);
        bool     one = bits != 0 && (bits & (bits - 1)) == 0;
        bool     constant = i >= 2 || constant_of(listing, code, 0) != 0;
        bool     memory = !listing->arm && i != 4 && strchr(code->text, '(') != NULL;
        *step = i == 4 ? 0 : constant_of(listing, code, 1);
        return one && constant && !memory ? bits : 0;
    }
    const char *base = listing->arm ? strchr(code->text, '[') : NULL; /* a load that steps */
    if (base == NULL || strstr(base, "], #") == NULL) return 0;
    int number = register_of(listing, base + 1);
    *step = constant_of(listing, code, 0);
    return number >= 0 ? UINT32_C(1) << number : 0;
}

/* The register that an instruction writes, or -1: the last operand, on AArch64 the first. */
static int written_by(const struct listing *listing, const struct code *code)
{
    const char *at = code->text + strcspn(code->text, " \t");
    at += strspn(at, " \t");
    if (begins(code->text, "nop") || begins(at, "%ax,%ax")) return -1; /* padding */
    if (listing->arm) return register_of(listing, at);
    const char *last = strrchr(at, ',');
    return register_of(listing, last != NULL ? last + 1 : at);
}

/* The constant that a register holds before the instruction at `at`, if it was set just before. */
static bool starts_at(const struct listing *listing, size_t at, unsigned number, int64_t *value)
{
    for (int back = 0; back < WALK_MAX && at > 0; back++) {
        const struct code *code = &listing->code[--at];
        if (code->function != listing->code[at + 1].function || code->kind == CODE_CALL)
            return false;
        if (written_by(listing, code) != (int)number) continue;
        bool clears = begins(code->text, "xor") || strstr(code->text, "zr") != NULL;
        bool alone = registers_of(listing, code) == UINT32_C(1) << number % REGISTERS;
        *value = clears ? 0 : constant_of(listing, code, 0);
        if (!alone && !(clears && begins(code->text, "mov"))) return false;
        return clears || (begins(code->text, "mov") && strpbrk(code->text, "$#") != NULL);
    }
    return false;
}

/* What is known about one cycle. */
struct loop {
    int      number;
    size_t   first;                 /* its lowest instruction */
    uint32_t stepped;               /* registers that it moves on by a constant */
    int64_t  steps[REGISTERS];      /* by how much, at least */
    bool     paid, exits, is_short; /* payment before; an exit by a counter; few rounds */
};

static void learn(const struct audit *audit, struct loop *loop)
{
    const struct listing *listing = &audit->listing;
    loop->first = SIZE_MAX;
    loop->paid = true;
    for (size_t i = 0; i < listing->count; i++) {
        if (audit->cycle[i] != loop->number) continue;
        if (loop->first == SIZE_MAX) loop->first = i;
        if (audit->unpaid[i]) loop->paid = false;
        int64_t  step = 0;
        uint32_t bits = stepped_by(listing, &listing->code[i], &step);
        if (step < 0) step = -step;
        for (int k = 0; k < REGISTERS; k++) {
            if ((bits >> k & 1) == 0) continue;
            if ((loop->stepped >> k & 1) == 0 || step < loop->steps[k]) loop->steps[k] = step;
        }
        loop->stepped |= bits;
    }
}

/* The branch leaves the cycle, or closes it: one side is in it, the other is not. */
static bool is_exit(const struct audit *audit, int at)
{
    const struct listing *listing = &audit->listing;
    int                   edges[EDGES_MAX], inside = 0;
    size_t                count = edges_of(listing, at, edges);
    for (size_t i = 0; i < count; i++) inside += audit->cycle[edges[i]] == audit->cycle[at];
    return listing->code[at].kind == CODE_BRANCH && inside == 1;
}

/* The exit compares a register that was set to a constant with a constant: few rounds are left. */
static bool is_short_exit(const struct audit *audit, const struct loop *loop,
                          const struct code *flags, uint32_t tested)
{
    const struct listing *listing = &audit->listing;
    bool                  compares = begins(flags->text, "cmp");
    int64_t               start, limit = compares ? constant_of(listing, flags, INT64_MAX) : 0;
    for (unsigned k = 0; k < REGISTERS; k++) {
        if ((tested >> k & 1) == 0 || loop->steps[k] == 0 || limit == INT64_MAX) continue;
        if (!starts_at(listing, loop->first, k, &start)) continue;
        int64_t way = limit > start ? limit - start : start - limit;
        if (way / loop->steps[k] <= ROUNDS_MAX) return true;
    }
    return false;
}

/* Cuts the cycle at each exit that looks at a counter: it bounds all ways through the exit. */
static void cut_exits(struct audit *audit, struct loop *loop)
{
    const struct listing *listing = &audit->listing;
    loop->is_short = true;
    for (size_t i = 0; i < listing->count; i++) {
        if (audit->cycle[i] != loop->number || !is_exit(audit, (int)i)) continue;
        const struct code *branch = &listing->code[i];
        bool               zero = begins(branch->text, "cb"); /* cbz looks at a register itself */
        const struct code *flags = zero ? branch : flags_of(listing, (int)i);
        uint32_t tested = flags != NULL ? registers_of(listing, flags) & loop->stepped : 0;
        if (tested == 0) continue;
        loop->exits = true;
        audit->cut[i] = true;
        if (!is_short_exit(audit, loop, flags, tested)) loop->is_short = false;
    }
}

static void print_loop(const struct audit *audit, const struct loop *loop, const char *kind,
                       const char *path)
{
    const struct listing       *listing = &audit->listing;
    const struct code_function *function = &listing->functions[listing->code[loop->first].function];
    uint64_t                    first = listing->code[loop->first].address, last = first;
    size_t                      functions = 0, seen = SIZE_MAX;
    for (size_t i = loop->first; i < listing->count; i++) {
        if (audit->cycle[i] != loop->number) continue;
        const struct code *code = &listing->code[i];
        functions += code->function != seen;
        seen = code->function;
        if (functions == 1) last = code->address;
    }
    printf("%s: %s: %s+0x%llx..0x%llx (%s)", path, kind, function->name,
           (unsigned long long)(first - function->address),
           (unsigned long long)(last - function->address), function->section_name);
    if (functions > 1) printf(", and %zu more functions that call each other", functions - 1);
    putchar('\n');
}

/* Judges one cycle and cuts it, so that the cycles inside of it come to light. True: it is open. */
static bool judge(struct audit *audit, int number, const char *path)
{
    struct loop loop = {.number = number};
    learn(audit, &loop);
    cut_exits(audit, &loop);
    bool open = !loop.exits || (!loop.paid && !loop.is_short);
    print_loop(audit, &loop, open ? "open" : loop.paid ? "counted" : "short", path);
    for (size_t i = loop.first; open && i < audit->listing.count; i++) {
        if (audit->cycle[i] == number) audit->cut[i] = true;
    }
    return open;
}

static int audit_file(const char *path)
{
    struct audit audit = {.cycles = 0};
    int          open = 0, cycles = 0;
    listing_read(&audit.listing, path);
    size_t count = audit.listing.count;
    audit.paid = cc_memory(count * sizeof(bool));
    audit.unpaid = cc_memory(count * sizeof(bool));
    audit.reached = cc_memory(count * sizeof(bool));
    audit.cut = cc_memory(count * sizeof(bool));
    audit.cycle = cc_memory(count * sizeof(int));
    find_checks(&audit);
    find_unpaid(&audit);
    size_t checks = 0;
    for (size_t i = 0; i < count; i++) checks += audit.paid[i] && !audit.listing.code[i].calls_slow;
    for (find_cycles(&audit); audit.cycles > 0; find_cycles(&audit)) { /* from outside inwards */
        cycles += audit.cycles;
        for (int i = 1; i <= audit.cycles; i++) open += judge(&audit, i, path);
    }
    printf("%s: %zu functions, %zu checks, %d cycles without a check, %d of them open\n", path,
           audit.listing.function_count, checks, cycles, open);
    return open;
}

int cc_audit(char *const *files)
{
    int open = 0;
    if (files[0] == NULL) cc_refuse("--audit: want the names of object files");
    for (; *files != NULL; files++) open += audit_file(*files);
    if (fflush(stdout) != 0) return 1;
    return open > 0 ? 1 : 0;
}
