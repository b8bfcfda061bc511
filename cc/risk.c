/* SPDX-License-Identifier: MIT */
/*
 * What a build line of untrusted code may have. Clang has some thousand options, and many of them
 * could remove checks or bring in code without checks: they load code into the compiler, change its
 * inner options, call functions behind the pass, or go to the assembler or the linker. So this is a
 * list of what is allowed, and all else is refused.
 */
#include "cc/cc.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Options that stand alone. `*` at the end: any value in the same word. */
static const char *const alone[] = {"-c",
                                    "-S",
                                    "-E",
                                    "-P",
                                    "-C",
                                    "-M",
                                    "-MM",
                                    "-MD",
                                    "-MMD",
                                    "-MP",
                                    "-MG",
                                    "-MV",
                                    "-dM",
                                    "-dD",
                                    "-v",
                                    "-###",
                                    "--version",
                                    "--help",
                                    "-dumpversion",
                                    "-dumpmachine",
                                    "-print-*",
                                    "--print-*",
                                    "-w",
                                    "-s",
                                    "-H",
                                    "-pipe",
                                    "-ansi",
                                    "-pedantic",
                                    "-pedantic-errors",
                                    "-undef",
                                    "-nostdinc",
                                    "-nostdinc++",
                                    "-Qunused-arguments",
                                    "-O",
                                    "-O0",
                                    "-O1",
                                    "-O2",
                                    "-O3",
                                    "-Os",
                                    "-Oz",
                                    "-Og",
                                    "-g",
                                    "-g0",
                                    "-g1",
                                    "-g2",
                                    "-g3",
                                    "-ggdb*",
                                    "-gdwarf*",
                                    "-gline-tables-only",
                                    "-gz*",
                                    "-std=*",
                                    "--std=*",
                                    "-shared",
                                    "--shared",
                                    "-pie",
                                    "-no-pie",
                                    "-static",
                                    "-static-pie",
                                    "-rdynamic",
                                    "-pthread",
                                    "-lm",
                                    "-lc",
                                    "-lpthread",
                                    "-m64",
                                    "-march=*",
                                    "-mtune=*",
                                    "-mcpu=*",
                                    "-mcmodel=*",
                                    "-msse*",
                                    "-mno-sse*",
                                    "-mavx*",
                                    "-mno-avx*",
                                    "-mfma",
                                    "-mno-fma",
                                    "-mbmi",
                                    "-mbmi2",
                                    "-mpopcnt",
                                    "-mlzcnt",
                                    "-maes",
                                    "-mpclmul",
                                    "-mf16c",
                                    "-mcx16",
                                    "-mno-red-zone",
                                    "-mbranch-protection=*",
                                    "-mno-outline-atomics",
                                    "--target=*",
                                    "-Wjanus-*",
                                    "-Wno-janus-*"};

/* Options whose value is the next word. */
static const char *const with_next[] = {
    "-o",      "-x",       "-I",       "-D",       "-U",      "-MF",        "-MT",      "-MQ",
    "-target", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-isysroot"};

/* -f and -fno-, with the value behind `=`. */
static const char *const features[] = {"PIC",
                                       "pic",
                                       "PIE",
                                       "pie",
                                       "plt",
                                       "semantic-interposition",
                                       "function-sections",
                                       "data-sections",
                                       "visibility",
                                       "visibility-inlines-hidden",
                                       "common",
                                       "strict-aliasing",
                                       "strict-overflow",
                                       "wrapv",
                                       "strict-enums",
                                       "strict-return",
                                       "omit-frame-pointer",
                                       "optimize-sibling-calls",
                                       "stack-protector",
                                       "stack-protector-strong",
                                       "stack-protector-all",
                                       "stack-clash-protection",
                                       "cf-protection",
                                       "exceptions",
                                       "rtti",
                                       "unwind-tables",
                                       "asynchronous-unwind-tables",
                                       "threadsafe-statics",
                                       "builtin",
                                       "freestanding",
                                       "hosted",
                                       "signed-char",
                                       "unsigned-char",
                                       "short-enums",
                                       "math-errno",
                                       "trapping-math",
                                       "rounding-math",
                                       "signed-zeros",
                                       "associative-math",
                                       "reciprocal-math",
                                       "finite-math-only",
                                       "unsafe-math-optimizations",
                                       "fp-contract",
                                       "inline",
                                       "inline-functions",
                                       "inline-small-functions",
                                       "unroll-loops",
                                       "vectorize",
                                       "slp-vectorize",
                                       "tree-vectorize",
                                       "tree-slp-vectorize",
                                       "delete-null-pointer-checks",
                                       "zero-initialized-in-bss",
                                       "gnu89-inline",
                                       "ident",
                                       "lto",
                                       "char8_t",
                                       "color-diagnostics",
                                       "diagnostics-color",
                                       "diagnostics-show-option",
                                       "caret-diagnostics",
                                       "message-length",
                                       "error-limit",
                                       "max-errors",
                                       "template-depth",
                                       "constexpr-steps",
                                       "constexpr-depth",
                                       "debug-prefix-map",
                                       "macro-prefix-map",
                                       "file-prefix-map",
                                       "syntax-only"};

#define COUNT(names) (sizeof(names) / sizeof(names)[0])

static bool begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static bool is_one_of(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        bool   any = names[i][length - 1] == '*';
        if (any ? strncmp(word, names[i], length - 1) == 0 : strcmp(word, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_feature(const char *word)
{
    if (!begins(word, "-f")) return false;
    const char *name = word + (begins(word, "-fno-") ? 5 : 2);
    size_t      length = strcspn(name, "=");
    for (size_t i = 0; i < COUNT(features); i++) {
        if (strlen(features[i]) == length && strncmp(name, features[i], length) == 0) return true;
    }
    return false;
}

static bool is_allowed(const char *word)
{
    if (is_one_of(word, alone, COUNT(alone)) || is_feature(word)) return true;
    if (begins(word, "-W")) { /* a warning, but not words for the tools behind clang */
        return !begins(word, "-Wl,") && !begins(word, "-Wa,") && !begins(word, "-Wp,");
    }
    return begins(word, "-I") || begins(word, "-D") || begins(word, "-U");
}

static const char *ending(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    return dot != NULL ? dot + 1 : "";
}

/* An object, an archive or a shared library. The linker would read other files as its scripts, and
 * clang hands sources of some languages to other compilers. */
static bool is_linked(const char *path)
{
    static const char *const endings[] = {"o", "lo", "a", "so"};
    bool                     archive = strcmp(ending(path), "a") == 0;
    struct stat              status;
    char                     begin[8] = "";
    FILE                    *file = fopen(path, "re");
    if (file == NULL) return is_one_of(ending(path), endings, COUNT(endings));
    bool regular = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
    bool whole = regular && fread(begin, 1, sizeof begin, file) == sizeof begin;
    (void)fclose(file);
    if (!whole) return false;
    return memcmp(begin, ELFMAG, SELFMAG) == 0 ||
           (archive && (memcmp(begin, "!<arch>\n", 8) == 0 || memcmp(begin, "!<thin>\n", 8) == 0));
}

/* Languages that the plugin sees from the source on. */
static bool is_counted_input(const char *path, const char *language)
{
    static const char *const languages[] = {"c",        "c++",       "cpp-output", "c++-cpp-output",
                                            "c-header", "c++-header"};
    static const char *const endings[] = {"c",   "i",   "ii",  "C",   "cc",  "cp", "cpp", "cxx",
                                          "c++", "CC",  "CPP", "CXX", "C++", "h",  "hh",  "hpp",
                                          "hxx", "h++", "hp",  "H",   "HPP", "tcc"};
    if (language != NULL) return is_one_of(language, languages, COUNT(languages));
    return is_one_of(ending(path), endings, COUNT(endings)) || is_linked(path);
}

const char *cc_risk_find(const struct cc_words *expanded)
{
    const char *language = NULL; /* of -x */
    bool        dashes = false;
    for (size_t i = 0; i < expanded->count && expanded->at[i] != NULL; i++) {
        const char *word = expanded->at[i], *next = expanded->at[i + 1]; /* NULL: the last */
        if (dashes || word[0] != '-' || word[1] == '\0') {
            if (!is_counted_input(word, language)) return word;
        } else if (strcmp(word, "--") == 0) {
            dashes = true;
        } else if (is_one_of(word, with_next, COUNT(with_next))) {
            if (strcmp(word, "-x") == 0 && next != NULL) {
                language = strcmp(next, "none") == 0 ? NULL : next;
            }
            i++;
        } else if (begins(word, "-x")) {
            language = strcmp(word, "-xnone") == 0 ? NULL : word + 2;
        } else if (!is_allowed(word)) {
            return word;
        }
    }
    return NULL;
}
