/* SPDX-License-Identifier: MIT */
/* The options of the driver itself, and the order of its work. */
#include "cc/cc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "janusrt cc [option...] [clang's options...] FILE...\n"
    "janusrt c++ [option...] [clang's options...] FILE...\n"
    "\n"
    "cc compiles C, and c++ compiles C++, with clang. A plugin inserts counted checks: one\n"
    "operation for each back-edge that is taken, for each call, and for 64 bytes of memcpy. So\n"
    "the code yields and keeps to its budget. All options of clang have their usual meaning.\n"
    "janusrt-cc and janusrt-c++ are the same commands for tools that cannot take a space.\n"
    "\n"
    "  --clang=N         use clang N: 19, 16 or 14 (the first that is installed)\n"
    "  --print           print the command instead of running it\n"
    "  --report          print what the pass did, as a table on standard error\n"
    "  --report=FILE     add the lines of the report to FILE instead\n"
    "  --report-of FILE  print the table of FILE\n"
    "  --untrusted       refuse inline assembly, direct system calls, thread-local data and\n"
    "                    calls of functions off the list share/janusrt/untrusted.txt\n"
    "  --allow=FILE      another list for --untrusted; stands before it\n"
    "  --audit FILE...   name every cycle without a check in object files\n"
    "  -Wno-janus-asm, -Wno-janus-thread-local\n"
    "                    do not warn of inline assembly, or of thread-local data\n"
    "  --gcc             use gcc and a header of loop macros; loops pay, calls do not\n"
    "  --runtime=KIND    link the runtime: static (the default), shared or none\n"
    "  --runtime-dir=DIR the folder of libjanusrt.a and libjanusrt_cc.a\n"
    "  --ops=WORDS       words for the pass, with commas: see janusrt-cc(1)\n"
    "\n"
    "CLANG=PATH in the environment names the clang to use. Compile with -O0 what you explore:\n"
    "optimised loops pay ahead, so janusrt explore cannot stop a task inside them.\n"
    "\n";

/* The value of "--name=value", or NULL if the word is another option. */
static const char *value_of(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static int read_major(const char *text)
{
    char *end;
    long  major = strtol(text, &end, 10);
    if (end == text || *end != '\0' || major < 1 || major > 999) {
        cc_refuse("--clang=%s: want 19, 16 or 14", text);
    }
    return (int)major;
}

static enum cc_runtime read_runtime(const char *text)
{
    if (strcmp(text, "static") == 0) return CC_RUNTIME_STATIC;
    if (strcmp(text, "shared") == 0) return CC_RUNTIME_SHARED;
    if (strcmp(text, "none") == 0) return CC_RUNTIME_NONE;
    cc_refuse("--runtime=%s: want static, shared or none", text);
}

/* True: the word is an option of the driver. */
static bool take(struct cc_request *request, const char *word)
{
    const char *value;
    if (strcmp(word, "--print") == 0) {
        request->print = true;
    } else if (strcmp(word, "--gcc") == 0) {
        request->gcc = true;
    } else if (strcmp(word, "--untrusted") == 0) {
        request->untrusted = true;
    } else if (strcmp(word, "--report") == 0) {
        request->report = true;
    } else if (strcmp(word, "-Wjanus-asm") == 0 || strcmp(word, "-Wno-janus-asm") == 0) {
        request->quiet_asm = word[2] == 'n';
    } else if (strcmp(word, "-Wjanus-thread-local") == 0 ||
               strcmp(word, "-Wno-janus-thread-local") == 0) {
        request->quiet_local = word[2] == 'n';
    } else if ((value = value_of(word, "--report")) != NULL) {
        if (value[0] == '\0') cc_refuse("--report=: the name of the file is missing");
        request->report_file = value;
    } else if ((value = value_of(word, "--clang")) != NULL) {
        request->major = read_major(value);
    } else if ((value = value_of(word, "--runtime")) != NULL) {
        request->runtime = read_runtime(value);
    } else if ((value = value_of(word, "--runtime-dir")) != NULL) {
        if (value[0] == '\0') cc_refuse("--runtime-dir=: the name of the folder is missing");
        request->runtime_dir = value;
        request->widened |= request->untrusted;
    } else if ((value = value_of(word, "--allow")) != NULL) {
        if (value[0] == '\0') cc_refuse("--allow=: the name of the file is missing");
        request->allow = value;
        request->widened |= request->untrusted;
    } else if ((value = value_of(word, "--ops")) != NULL) {
        request->ops = value;
    } else {
        return false;
    }
    return true;
}

static void check_untrusted(const struct cc_request *request, const struct cc_facts *facts,
                            const struct cc_words *expanded)
{
    const char *risk = cc_risk_find(expanded);
    if (facts->assembler != NULL) {
        cc_refuse("%s: --untrusted refuses assembly language, because its loops have no checks",
                  facts->assembler);
    }
    if (facts->loose) {
        cc_refuse("-fno-stack-clash-protection: --untrusted needs the probes, because a large "
                  "frame could jump over the guard of its stack");
    }
    if (facts->links && facts->partial) {
        cc_refuse("-r: --untrusted cannot tell afterwards which parts had checks");
    }
    if (risk != NULL) {
        cc_refuse("%s: --untrusted refuses it, because it could remove checks or bring in code "
                  "without them; janusrt-cc(1) says what is allowed",
                  risk);
    }
    if (request->widened) {
        cc_refuse("--allow and --runtime-dir must stand before --untrusted: what follows it may "
                  "come from the build of the untrusted code");
    }
    if (facts->links) cc_objects_check(facts);
}

static void check(const struct cc_request *request, const struct cc_facts *facts,
                  const struct cc_words *expanded)
{
    if (request->gcc && request->cxx) {
        cc_refuse("--gcc: the loop macros do not work in C++; use clang, or call janus_check()");
    }
    if (request->gcc && (request->untrusted || request->report || request->report_file != NULL)) {
        cc_refuse("--gcc: there is no pass, so --untrusted and --report have no meaning");
    }
    if (request->allow != NULL && !request->untrusted) {
        cc_refuse("--allow=%s has a meaning with --untrusted only", request->allow);
    }
    if (request->untrusted) check_untrusted(request, facts, expanded);
}

/* One word as a shell reads it. */
static void print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=+./,:@%";
    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    }
    putchar('\'');
}

static int print_command(const struct cc_plan *plan)
{
    if (plan->ops != NULL) {
        fputs("JANUSRT_OPS=", stdout);
        print_word(plan->ops);
        putchar(' ');
    }
    for (size_t i = 0; i < plan->command.count; i++) {
        if (i > 0) putchar(' ');
        print_word(plan->command.at[i]);
    }
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : 1;
}

static int run_and_report(const struct cc_plan *plan, const char *file)
{
    int status = cc_run(plan->command.at);
    (void)cc_report_print(file);
    (void)unlink(file);
    return status;
}

/* Clang itself reads this variable: it adds and removes options behind the driver's back. */
static void check_environment(void)
{
    if (getenv("CCC_OVERRIDE_OPTIONS") == NULL) return;
    cc_refuse("CCC_OVERRIDE_OPTIONS is set: its options could leave the checks out; unset it");
}

/* Clang looks for the linker and for libraries where these say. Untrusted code does without, since
 * its build could bring in code without checks so. */
static void forget_places(void)
{
    if (unsetenv("COMPILER_PATH") != 0 || unsetenv("LIBRARY_PATH") != 0) cc_refuse("no memory");
}

static int compile(struct cc_request *request)
{
    struct cc_words  expanded = {.at = NULL};
    struct cc_facts  facts = {.links = false};
    struct cc_places places = {.plugins = NULL};
    struct cc_plan   plan = {.ops = NULL};
    cc_words_expand(&expanded, request->words.at);
    cc_facts_read(&facts, &expanded);
    check(request, &facts, &expanded);
    check_environment();
    if (request->untrusted) forget_places();
    bool table = request->report && request->report_file == NULL;
    if (table && request->print) {
        request->report_file = "FILE";
    } else if (table) {
        const char *folder = getenv("TMPDIR");
        char       *path = cc_join("%s/janusrt-report-XXXXXX", folder != NULL ? folder : "/tmp");
        int         file = mkstemp(path);
        if (file < 0) cc_refuse("%s: %s", path, strerror(errno));
        (void)close(file);
        request->report_file = path;
    }
    cc_places_find(&places);
    cc_plan_make(&plan, request, &facts, &places);
    if (request->print) return print_command(&plan);
    if (plan.ops != NULL ? setenv("JANUSRT_OPS", plan.ops, 1) : unsetenv("JANUSRT_OPS")) {
        cc_refuse("no memory");
    }
    if (table) return run_and_report(&plan, request->report_file);
    (void)execv(plan.command.at[0], plan.command.at);
    cc_refuse("%s: %s", plan.command.at[0], strerror(errno));
}

/* Options whose next word may look like one of the driver's. */
static bool is_followed(const char *word)
{
    return strcmp(word, "-Xlinker") == 0 || strcmp(word, "-Xassembler") == 0 ||
           strcmp(word, "-Xclang") == 0 || strcmp(word, "-Xpreprocessor") == 0 ||
           strcmp(word, "-mllvm") == 0 || strcmp(word, "-o") == 0;
}

int cc_main(bool cxx, char **words)
{
    struct cc_request request = {.cxx = cxx};
    bool              inputs = false;
    char            **first = words;
    cc_name = cxx ? "janusrt c++" : "janusrt cc";
    if (words[0] != NULL && strcmp(words[0], "--audit") == 0) return cc_audit(words + 1);
    if (words[0] != NULL && strcmp(words[0], "--report-of") == 0) {
        if (words[1] == NULL || words[2] != NULL)
            cc_refuse("--report-of: want the name of one file");
        return cc_report_print(words[1]) ? 0 : 1;
    }
    for (; *words != NULL; words++) {
        if (strcmp(*words, "--") == 0) inputs = true;
        if (!inputs && strcmp(*words, "--help") == 0) {
            fputs(help, stdout); /* clang's help follows */
            (void)fflush(stdout);
        }
        bool value = words > first && is_followed(words[-1]);
        if (!inputs && strcmp(*words, "-w") == 0) request.quiet_asm = request.quiet_local = true;
        if (inputs || value || !take(&request, *words)) cc_words_add(&request.words, *words);
    }
    if (request.words.at == NULL) { /* clang says that there are no inputs */
        request.words.at = cc_memory(sizeof *request.words.at);
    }
    return compile(&request);
}
