/* SPDX-License-Identifier: MIT */
/* The command that the driver runs: the user's words between its own. */
#include "cc/cc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(struct cc_plan *plan, const char *word) { cc_words_add(&plan->command, word); }

/*
 * glibc's headers define other functions if __OPTIMIZE__ is set, and each function is a call that
 * counts. So the macros are the same at every level. Only _FORTIFY_SOURCE needs __OPTIMIZE__;
 * __NO_INLINE__ then still keeps the functions out that are only faster.
 */
static void add_macros(struct cc_plan *plan, const struct cc_facts *facts)
{
    add(plan, facts->fortified && facts->optimises ? "-D__OPTIMIZE__=1" : "-U__OPTIMIZE__");
    add(plan, "-U__OPTIMIZE_SIZE__");
    add(plan, "-U__NO_INLINE__");
    add(plan, "-D__NO_INLINE__=1");
}

/* Before the user's words, so that the user's own choice wins. */
static void add_front(struct cc_plan *plan, const struct cc_request *request,
                      const struct cc_facts *facts, const struct cc_places *places)
{
    if (request->gcc) {
        add(plan, "-fstack-clash-protection");
        add(plan, "-idirafter");
        add(plan, places->include);
        if (facts->compiles && facts->assembler == NULL) {
            add(plan, "-include");
            add(plan, cc_join("%s/loops.h", places->loops));
        }
        return;
    }
    struct cc_compiler compiler = {.path = NULL};
    cc_compiler_find(&compiler, places, request->major);
    add(plan, compiler.path);
    if (request->cxx) add(plan, "--driver-mode=g++");
    add(plan, "--start-no-unused-arguments"); /* a command that only links uses none of them */
    add(plan, cc_join("-fpass-plugin=%s", compiler.plugin));
    add(plan, "-fstack-clash-protection");
    /* At -O0 clang makes no aliases of constructors; with aliases there would be fewer calls. */
    add(plan, "-Xclang");
    add(plan, "-mno-constructor-aliases");
    /* Nor does it mark there where variables begin and end. These marks add blocks, which change
     * the loops of functions with jumps into them. Without sanitizers the option has no other
     * effect. */
    add(plan, "-Xclang");
    add(plan, "-fsanitize-address-use-after-scope");
    /* The pass knows clang's copies of arguments by the name of their place. */
    add(plan, "-fno-discard-value-names");
    add_macros(plan, facts);
    add(plan, "-idirafter");
    add(plan, places->include);
    add(plan, "--end-no-unused-arguments");
}

/* The words behind "--" are inputs. The libraries must stand behind them, so the dashes go. */
static void add_user(struct cc_plan *plan, const struct cc_request *request,
                     const struct cc_facts *facts)
{
    bool inputs = false, drop = facts->dashes && facts->links;
    for (size_t i = 0; i < request->words.count; i++) {
        const char *word = request->words.at[i];
        if (drop && !inputs && strcmp(word, "--") == 0) {
            inputs = true;
        } else {
            add(plan, inputs && word[0] == '-' ? cc_join("./%s", word) : word);
        }
    }
}

/* As a word of the linker, because "-x c" before it would make clang compile the library. */
static void add_library(struct cc_plan *plan, const char *folder, const char *name)
{
    char *path = cc_join("%s/%s", folder, name);
    if (access(path, R_OK) != 0) {
        cc_refuse("%s is missing; install the package janusrt-cc, or name its folder with "
                  "--runtime-dir=DIR",
                  path);
    }
    add(plan, "-Xlinker");
    add(plan, path);
}

static bool is_foreign(const char *target)
{
#if defined(__x86_64__)
    return strncmp(target, "x86_64-", 7) != 0 && strncmp(target, "amd64-", 6) != 0;
#else
    return strncmp(target, "aarch64-", 8) != 0 && strncmp(target, "arm64-", 6) != 0;
#endif
}

/*
 * A program gets the whole runtime and exports the words and functions that checks use, so that
 * instrumented shared objects find them. A shared object gets the wrappers only: there must be one
 * runtime in a process, and the program has it.
 */
static void add_back(struct cc_plan *plan, const struct cc_request *request,
                     const struct cc_facts *facts, const struct cc_places *places)
{
    /* What checks and wrappers name. */
    static const char *const needed[] = {
        "janus_fuel",  "janus_check_or_end_slow", "janus_check_stub",      "janus_strip_slow",
        "janus_op",    "janus_hold_begin",        "janus_hold_end",        "janus_hold_pass",
        "janus_defer", "janus_undefer",           "janus_task_current_id", "janus_counted_code"};
    const char *own = request->runtime_dir;
    if (!facts->links || facts->partial || facts->bare || request->runtime == CC_RUNTIME_NONE) {
        return;
    }
    if (facts->target != NULL && is_foreign(facts->target) && own == NULL) {
        cc_refuse("target %s: the installed libraries are for another machine; name the folder "
                  "of libjanusrt.a and libjanusrt_cc.a with --runtime-dir=DIR",
                  facts->target);
    }
    add(plan, "-Wl,-u,janus_cc_counted"); /* nothing else names it */
    /* No other object of the process may replace a function whose ops the pass has seen. */
    if (request->untrusted && facts->shared) add(plan, "-Wl,-Bsymbolic");
    add_library(plan, own != NULL ? own : places->support, "libjanusrt_cc.a");
    const char *libraries = own != NULL ? own : places->libraries;
    if (request->runtime == CC_RUNTIME_SHARED) {
        add(plan, cc_join("-L%s", libraries));
        add(plan, "-ljanusrt");
    } else if (!facts->shared) {
        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
            add(plan, cc_join("-Wl,-u,%s", needed[i]));
        }
        add(plan, "-Xlinker");
        add(plan, cc_join("--dynamic-list=%s/cc.exports", places->share));
        add_library(plan, libraries, "libjanusrt.a");
        add(plan, "-lpthread");
    }
}

/* The pass reads its options from the environment: words with commas. */
static void add_ops(struct cc_plan *plan, const struct cc_request *request,
                    const struct cc_places *places)
{
    char *words = cc_join("wrap%s%s", request->ops != NULL ? "," : "",
                          request->ops != NULL ? request->ops : "");
    if (request->runtime == CC_RUNTIME_SHARED) words = cc_join("%s,shared", words);
    if (request->quiet_asm) words = cc_join("%s,nowarn=asm", words);
    if (request->quiet_local) words = cc_join("%s,nowarn=thread-local", words);
    if (request->untrusted) {
        char *list = request->allow != NULL ? cc_join("%s", request->allow)
                                            : cc_join("%s/untrusted.txt", places->share);
        if (access(list, R_OK) != 0) {
            cc_refuse("%s cannot be read; install the package janusrt-cc, or use --allow=FILE",
                      list);
        }
        if (strchr(list, ',') != NULL) cc_refuse("%s: the name may not have a comma", list);
        words = cc_join("%s,untrusted,allow=%s", words, list);
    }
    if (request->report_file != NULL) {
        if (strchr(request->report_file, ',') != NULL) {
            cc_refuse("--report=%s: the name may not have a comma", request->report_file);
        }
        words = cc_join("%s,report=%s", words, request->report_file);
    }
    plan->ops = words;
}

static void begin_gcc(struct cc_plan *plan, const struct cc_facts *facts)
{
    const char *named = getenv("GCC");
    const char *name = named != NULL && named[0] != '\0' ? named : "gcc";
    char       *path = cc_command_find(name);
    if (path == NULL) cc_refuse("--gcc: there is no command %s; install the package gcc", name);
    add(plan, path);
    if (!facts->compiles) return;
    cc_say("--gcc: for, while and do loops pay; calls, goto, recursion, memcpy and locks do not, "
           "and no loop is vectorised");
}

void cc_plan_make(struct cc_plan *plan, const struct cc_request *request,
                  const struct cc_facts *facts, const struct cc_places *places)
{
    if (request->gcc) begin_gcc(plan, facts);
    add_front(plan, request, facts, places);
    add_user(plan, request, facts);
    add_back(plan, request, facts, places);
    if (!request->gcc) add_ops(plan, request, places);
}
