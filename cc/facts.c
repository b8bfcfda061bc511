/* SPDX-License-Identifier: MIT */
/*
 * What the user's options mean for the driver: does clang link, and with what. Clang decides all
 * else itself. An option that this file does not know goes to clang like every other.
 */
#include "cc/cc.h"

#include <string.h>

/* Options whose value is the next word. The value is not an input. */
static const char *const with_value[] = {"-o",
                                         "-x",
                                         "-I",
                                         "-D",
                                         "-U",
                                         "-L",
                                         "-l",
                                         "-B",
                                         "-F",
                                         "-T",
                                         "-u",
                                         "-z",
                                         "-e",
                                         "-A",
                                         "-G",
                                         "-J",
                                         "-include",
                                         "-imacros",
                                         "-isystem",
                                         "-iquote",
                                         "-idirafter",
                                         "-iprefix",
                                         "-iwithprefix",
                                         "-iwithprefixbefore",
                                         "-isysroot",
                                         "-imultilib",
                                         "-include-pch",
                                         "-ivfsoverlay",
                                         "-MF",
                                         "-MT",
                                         "-MQ",
                                         "-MJ",
                                         "-Xclang",
                                         "-Xlinker",
                                         "-Xassembler",
                                         "-Xpreprocessor",
                                         "-Xanalyzer",
                                         "-Xopenmp-target",
                                         "-Xarch_host",
                                         "-Xarch_device",
                                         "-Xcuda-ptxas",
                                         "-Xcuda-fatbinary",
                                         "-mllvm",
                                         "-target",
                                         "-arch",
                                         "-framework",
                                         "-weak_framework",
                                         "-iframework",
                                         "-iframeworkwithsysroot",
                                         "-iwithsysroot",
                                         "-install_name",
                                         "-serialize-diagnostics",
                                         "-dependency-file",
                                         "-dependency-dot",
                                         "-working-directory",
                                         "-cxx-isystem",
                                         "-stdlib++-isystem",
                                         "-rpath",
                                         "-bundle_loader",
                                         "-dyld-prefix",
                                         "-plugin-arg",
                                         "-index-store-path",
                                         "-module-dependency-dir",
                                         "-ccc-gcc-name",
                                         "-ccc-install-dir",
                                         "--param",
                                         "--sysroot",
                                         "--config",
                                         "--output",
                                         "--language",
                                         "--define-macro",
                                         "--undefine-macro",
                                         "--include-directory",
                                         "--library-directory",
                                         "--include",
                                         "--imacros",
                                         "--prefix",
                                         "--for-linker",
                                         "--linker-option",
                                         "--assert",
                                         "--include-directory-after",
                                         "--include-prefix",
                                         "--include-with-prefix",
                                         "--include-with-prefix-after",
                                         "--include-with-prefix-before"};

/* Clang stops before the linker. */
static const char *const stops[] = {"-c",
                                    "-S",
                                    "-E",
                                    "-M",
                                    "-MM",
                                    "-fsyntax-only",
                                    "-emit-ast",
                                    "--analyze",
                                    "--precompile",
                                    "-verify-pch",
                                    "-module-file-info",
                                    "-rewrite-objc",
                                    "-rewrite-legacy-objc",
                                    "-emit-interface-stubs",
                                    "-extract-api",
                                    "--migrate",
                                    "--compile",
                                    "--assemble",
                                    "--preprocess",
                                    "--dependencies",
                                    "--user-dependencies",
                                    "-emit-module",
                                    "-emit-pch"};

static bool is_one_of(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, names[i]) == 0) return true;
    }
    return false;
}
#define IS_ONE_OF(word, names) is_one_of(word, names, sizeof(names) / sizeof(names)[0])

static bool begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static bool is(const char *word, const char *name) { return strcmp(word, name) == 0; }

static const char *ending(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    return dot != NULL ? dot + 1 : "";
}

/* True: clang compiles it. Clang hands a file with an unknown ending to the linker as it is. */
static bool is_source(const char *path, const char *language)
{
    static const char *const endings[] = {
        "c",    "i",   "ii", "C",   "cc",  "cp",  "cpp",   "cxx", "c++", "CC", "CPP", "CXX",
        "C++",  "m",   "mi", "mm",  "M",   "mii", "s",     "S",   "asm", "sx", "ll",  "bc",
        "cppm", "ixx", "cu", "cui", "hip", "cl",  "clcpp", "rs",  "f",   "f90"};
    if (language != NULL) return true;
    return is(path, "-") || IS_ONE_OF(ending(path), endings);
}

static bool is_header(const char *path, const char *language)
{
    static const char *const endings[] = {"h", "hh",  "hpp", "hxx", "h++", "hp",
                                          "H", "HPP", "tcc", "pcm", "pch"};
    if (language != NULL) return strstr(language, "header") != NULL;
    return IS_ONE_OF(ending(path), endings);
}

static bool is_assembler(const char *path, const char *language)
{
    static const char *const endings[] = {"s", "S", "asm", "sx"};
    if (language != NULL) return begins(language, "assembler");
    return IS_ONE_OF(ending(path), endings);
}

/* -Xclang, and -Wp and -Xpreprocessor, which clang passes to its inner command as well. */
static void refuse_inner(const char *word, const char *value)
{
    static const char *const lost[] = {"-disable-llvm-passes", "-disable-llvm-optzns", "-flto"};
    bool                     joined = begins(word, "-Xclang=") || begins(word, "-Wp,");
    if (joined) value = strpbrk(word, "=,") + 1;
    if (!joined && !is(word, "-Xclang") && !is(word, "-Xpreprocessor")) return;
    for (; *value != '\0'; value += strcspn(value, ","), value += *value == ',') {
        for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
            if (!begins(value, lost[i])) continue;
            cc_refuse("%s %s: clang would not run the plugin, so no check would be inserted", word,
                      joined ? "" : value);
        }
    }
}

static void refuse_lost_checks(const char *word, const char *value)
{
    if (is(word, "-cc1") || is(word, "-cc1as") || is(word, "-cc1gen-reproducer")) {
        cc_refuse("%s: this is clang's inner command, which would compile without checks; "
                  "call the driver, or clang itself",
                  word);
    }
    if (is(word, "-m32") || is(word, "-mx32") || is(word, "-m16")) {
        cc_refuse("%s: the checks are written for 64-bit x86-64 and AArch64 only", word);
    }
    if (is(word, "-flegacy-pass-manager") || is(word, "-fno-experimental-new-pass-manager")) {
        cc_refuse("%s: the old pass manager does not run the plugin, so no check would be inserted",
                  word);
    }
    refuse_inner(word, value);
    if (begins(word, "-fembed-bitcode") && !is(word, "-fembed-bitcode=off")) {
        cc_refuse("%s: clang would not run the plugin, so no check would be inserted", word);
    }
    if (begins(word, "--config")) { /* also --config-user-dir= and --config-system-dir= */
        cc_refuse("%s: options in a configuration file could leave the checks out; put them into a "
                  "response file, @FILE",
                  word);
    }
    if (begins(word, "--driver-mode") && !is(word, "--driver-mode=gcc") &&
        !is(word, "--driver-mode=g++")) {
        cc_refuse("%s: such a driver does not load the plugin, so no check would be inserted",
                  word);
    }
    if (is(word, "-femulated-tls")) {
        cc_refuse("%s: the checks would count down another word than the runtime's", word);
    }
}

static void check_target(const char *triple)
{
    static const char *const known[] = {"x86_64-", "amd64-", "aarch64-", "arm64-"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (begins(triple, known[i]) && strstr(triple, "x32") == NULL) return;
    }
    cc_refuse("target %s: the checks are written for x86_64 and aarch64 only", triple);
}

struct reading {
    struct cc_facts *facts;
    const char      *language; /* of -x, or NULL */
    bool             stopped, lto, only_headers, has_linker_words;
};

static void read_input(struct reading *reading, const char *path)
{
    struct cc_facts *facts = reading->facts;
    cc_words_add(&facts->inputs, path);
    bool header = is_header(path, reading->language);
    if (!header) reading->only_headers = false;
    if (header || is_source(path, reading->language)) facts->compiles = true;
    if (facts->assembler == NULL && is_assembler(path, reading->language)) facts->assembler = path;
}

/* Options that say what clang does, without a value in the next word. */
static void read_flag(struct reading *reading, const char *word)
{
    struct cc_facts *facts = reading->facts;
    if (IS_ONE_OF(word, stops)) reading->stopped = true;
    if (is(word, "-shared") || is(word, "--shared")) facts->shared = true;
    if (is(word, "-r")) facts->partial = true;
    if (is(word, "-nostdlib") || is(word, "--no-standard-libraries") ||
        is(word, "-nodefaultlibs")) {
        facts->bare = true;
    }
    if (is(word, "-fno-stack-clash-protection")) facts->loose = true;
    if (is(word, "-fstack-clash-protection")) facts->loose = false;
    if (is(word, "-flto") || begins(word, "-flto=")) reading->lto = true;
    if (is(word, "-fno-lto")) reading->lto = false;
    if (begins(word, "-O")) facts->optimises = word[2] != '0';
    if (is(word, "--optimize")) facts->optimises = true;
    if (begins(word, "-Wl,")) reading->has_linker_words = true;
    if (begins(word, "-l") && word[2] != '\0') reading->has_linker_words = true;
    if (begins(word, "--target=")) facts->target = word + strlen("--target=");
}

/* -D and -U, with the value in the same word or the next. */
static void read_macro(struct cc_facts *facts, char option, const char *macro)
{
    static const char name[] = "_FORTIFY_SOURCE";
    if (!begins(macro, name)) return;
    const char *rest = macro + strlen(name);
    if (*rest != '\0' && *rest != '=') return;
    facts->fortified = option == 'D' && !is(rest, "=0");
}

static void read_value(struct reading *reading, const char *word, const char *value)
{
    if (is(word, "-x") || is(word, "--language")) {
        reading->language = is(value, "none") ? NULL : value;
    }
    if (is(word, "-target")) reading->facts->target = value;
    if (is(word, "-Xlinker") || is(word, "-l")) reading->has_linker_words = true;
    if (is(word, "-D") || is(word, "-U")) read_macro(reading->facts, word[1], value);
}

void cc_facts_read(struct cc_facts *facts, const struct cc_words *expanded)
{
    struct reading reading = {.facts = facts, .only_headers = true};
    for (size_t i = 0; i < expanded->count && expanded->at[i] != NULL; i++) {
        const char *word = expanded->at[i], *next = expanded->at[i + 1]; /* NULL: the last */
        if (facts->dashes || word[0] != '-' || word[1] == '\0') {
            read_input(&reading, word);
            continue;
        }
        if (is(word, "--")) {
            facts->dashes = true;
            continue;
        }
        refuse_lost_checks(word, next != NULL ? next : "");
        if (next != NULL && IS_ONE_OF(word, with_value)) {
            read_value(&reading, word, next);
            i++;
            continue;
        }
        if (begins(word, "-x") && word[2] != '\0') read_value(&reading, "-x", word + 2);
        if (begins(word, "--language=")) read_value(&reading, "-x", word + 11);
        if (begins(word, "-D") || begins(word, "-U")) read_macro(facts, word[1], word + 2);
        read_flag(&reading, word);
    }
    if (reading.lto) {
        cc_refuse("-flto: link-time optimisation would run where the plugin is not loaded, and "
                  "the checks would be lost; leave -flto out");
    }
    if (facts->target != NULL) check_target(facts->target);
    bool files = facts->inputs.count > 0 && !reading.only_headers;
    facts->links =
        !reading.stopped && (files || (reading.has_linker_words && facts->inputs.count == 0));
}
