/* SPDX-License-Identifier: MIT */
/* The commands of the language. */
#include "cmd/lang.h"

#include "host/prelude.h"
#include "meaning/meaning.h"
#include "run/run.h"
#include "syntax/syntax.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char lang_help[] =
    "janusrt run [option...] FILE.jan [argument...]\n"
    "janusrt check [--effects] [--format=json] FILE.jan\n"
    "janusrt build [-o PROGRAM] [--cc=COMPILER] [-O0...-O3] [-c] FILE.jan\n"
    "janusrt ir [--level=high|mid|low] [--places] FILE.jan\n"
    "janusrt fmt [-w] FILE.jan\n"
    "\n"
    "run checks a program of the language Janus and interprets it. check only checks. build makes\n"
    "an executable, by way of C. ir prints the intermediate representation, and fmt the program "
    "in\n"
    "its canonical form. FILE may also be FILE.ir, or - for standard input.\n"
    "\n"
    "  --profile=NAME    core, service, cluster or sovereign, instead of the file's\n"
    "  --interval=N      iterations between two checks (1024; in :cluster 512)\n"
    "  --seed=N          run: everything on one thread, in the order of this seed\n"
    "  --workers=N       run: threads\n"
    "  --budget=LIST     run: a budget for the whole program: ops=1000,memory=1048576,\n"
    "                    spawn_count=10,channel_ops=10,syscalls=10\n"
    "  --effects         check: print what each function does\n"
    "  --format=json     check: print the messages as JSON, for editors\n"
    "  --places          ir: print the places in the source\n"
    "  --cc=COMPILER     build: 'janusrt cc' (the default, if its clang is there), gcc, clang "
    "...,\n"
    "                    with options of its own if need be: --cc='gcc -fsanitize=address'\n"
    "  -c                build: write the C file instead of a program\n"
    "  -w                fmt: write the file instead of standard output\n"
    "\n"
    "Exit status of run: that of main, 1 an error or a panic, 3 the budget is exhausted, 4 a\n"
    "deadlock. Of the others: 1 the program has errors. 2 the command was not understood.\n";

void lang_refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("janusrt: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see janusrt --help\n", stderr);
    va_end(arguments);
    exit(LANG_USAGE);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

bool lang_is_source(const char *path) { return ends_with(path, ".jan") || ends_with(path, ".ir"); }

static unsigned long number(const char *option, const char *text, unsigned long most)
{
    char *end;
    errno = 0;
    unsigned long value = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    if (value == 0 || *end != '\0' || errno != 0 || value > most) {
        lang_refuse("%s: '%s' is not a number from 1 to %lu", option, text, most);
    }
    return value;
}

static void set(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0) lang_refuse("there is no memory");
}

static void take_profile(struct lang_options *options, const char *name)
{
    static const char *const names[] = {"core", "service", "cluster", "sovereign"};
    if (name[0] == ':') name++;
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        options->request.override_profile = true;
        options->request.profile = (enum jl_profile)i;
        return;
    }
    lang_refuse("--profile: '%s' is none of core, service, cluster, sovereign", name);
}

static void take_level(struct lang_options *options, const char *name)
{
    static const char *const names[] = {"high", "mid", "low"};
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        options->request.level = (enum qt_level)i;
        return;
    }
    lang_refuse("--level: '%s' is none of high, mid, low", name);
}

static void take_budget(const char *list)
{
    static const char *const names[] = {
        "ops=", "memory=", "spawn_count=", "channel_ops=", "syscalls="};
    for (const char *at = list;; at++) {
        unsigned i = 0;
        while (i < 5 && strncmp(at, names[i], strlen(names[i])) != 0) i++;
        if (i == 5) lang_refuse("--budget: '%s' begins with none of ops=, memory=, ...", at);
        at += strlen(names[i]);
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > 18) lang_refuse("--budget: '%s' is no number", at);
        at += digits;
        if (*at == '\0') break;
        if (*at != ',') lang_refuse("--budget: '%s' is too much", at);
    }
    set("JANUS_BUDGET", list);
}

/* An option with a value. False: there is no such option. value NULL: only asks. */
static bool take_valued(struct lang_options *options, const char *command, const char *option,
                        const char *value)
{
    bool runs = strcmp(command, "run") == 0, builds = strcmp(command, "build") == 0;
    if (strcmp(option, "--profile") == 0) {
        if (value) take_profile(options, value);
    } else if (strcmp(option, "--interval") == 0) {
        if (value) options->request.interval = (uint32_t)number(option, value, 1 << 20);
    } else if (runs && strcmp(option, "--seed") == 0) {
        if (value && number(option, value, UINT64_MAX) > 0) set("JANUSRT_SEED", value);
    } else if (runs && strcmp(option, "--workers") == 0) {
        if (value && number(option, value, 1024) > 0) set("JANUS_WORKERS", value);
    } else if (runs && strcmp(option, "--budget") == 0) {
        if (value) take_budget(value);
    } else if (strcmp(command, "ir") == 0 && strcmp(option, "--level") == 0) {
        if (value) take_level(options, value);
    } else if (strcmp(command, "check") == 0 && strcmp(option, "--format") == 0) {
        if (value && strcmp(value, "json") != 0 && strcmp(value, "text") != 0) {
            lang_refuse("--format: '%s' is none of json, text", value);
        }
        options->json = value && strcmp(value, "json") == 0;
    } else if (builds && strcmp(option, "--cc") == 0) {
        if (value) options->compiler = value;
    } else if (builds && strcmp(option, "-o") == 0) {
        if (value) options->output = value;
    } else {
        return false;
    }
    return true;
}

static bool take_plain(struct lang_options *options, const char *command, const char *option)
{
    bool builds = strcmp(command, "build") == 0;
    if (strcmp(command, "check") == 0 && strcmp(option, "--effects") == 0) {
        options->effects = true;
    } else if (strcmp(command, "ir") == 0 && strcmp(option, "--places") == 0) {
        options->places = true;
    } else if (strcmp(command, "fmt") == 0 && strcmp(option, "-w") == 0) {
        options->writes = true;
    } else if (builds && strcmp(option, "-c") == 0) {
        options->only_c = true;
    } else if (builds && strncmp(option, "-O", 2) == 0 && strlen(option) == 3 &&
               strchr("0123s", option[2])) {
        options->optimise = option;
    } else {
        return false;
    }
    return true;
}

/* Options stand before the file, and for build also behind it. */
static void take_words(struct lang_options *options, const char *command, char **words)
{
    bool runs = strcmp(command, "run") == 0;
    for (; *words; words++) {
        char *word = *words, *value = strchr(word, '=');
        bool  is_option = word[0] == '-' && word[1] != '\0';
        if (!is_option) {
            if (options->request.path) lang_refuse("%s: one file is enough", word);
            options->request.path = word;
            if (!runs) continue;
            words++;
            break;
        }
        if (take_plain(options, command, word)) continue;
        if (strncmp(word, "--", 2) == 0 && value) *value++ = '\0';
        if (!take_valued(options, command, word, NULL)) lang_refuse("%s: no such option", word);
        if (strncmp(word, "--", 2) != 0 || !value) value = *++words;
        if (!value) lang_refuse("%s: its value is missing", word);
        (void)take_valued(options, command, word, value);
    }
    if (!options->request.path) lang_refuse("%s: the file is missing", command);
    options->words = words;
    while (words[options->count]) options->count++;
}

static void tell(const struct jl_program_text *program, const char *path, const char *why)
{
    if (program->diagnostics.count > 0) {
        jl_diagnostics_print(&program->diagnostics,
                             isatty(STDERR_FILENO) ? JL_DIAGNOSTIC_COLOUR : JL_DIAGNOSTIC_TEXT,
                             stderr);
    }
    if (why) fprintf(stderr, "janusrt: %s: %s\n", path, why);
}

static int command_check(struct jl_program_text *program, const struct lang_options *options)
{
    bool good = jl_program_check(program, &options->request);
    if (options->json) {
        jl_diagnostics_print(&program->diagnostics, JL_DIAGNOSTIC_JSON, stdout);
    } else {
        tell(program, options->request.path, NULL);
    }
    if (good && options->effects) jl_print_effects(program->unit, stdout);
    return good ? LANG_OK : LANG_WRONG;
}

static int command_fmt(struct jl_program_text *program, const struct lang_options *options)
{
    struct jl_unit *unit =
        jl_parse(&program->source, &program->arena, &program->names, &program->diagnostics);
    if (program->diagnostics.errors > 0) {
        tell(program, options->request.path, NULL);
        return LANG_WRONG;
    }
    FILE *out = stdout;
    if (options->writes) out = fopen(options->request.path, "we");
    if (!out) lang_refuse("%s: %s", options->request.path, strerror(errno));
    jl_print_unit(unit, out);
    bool failed = ferror(out) != 0;
    if ((out == stdout ? fflush(out) : fclose(out)) != 0 || failed) {
        lang_refuse("%s: %s", options->request.path, strerror(errno));
    }
    return LANG_OK;
}

static int command_run(struct jl_program_text *program, const struct lang_options *options)
{
    struct jl_code *code = NULL;
    const char     *why = NULL;
    if (!jl_code_make(&program->module, &code, &why)) {
        tell(program, options->request.path, why);
        return LANG_WRONG;
    }
    if (program->module.main == 0) {
        tell(program, options->request.path, "there is no main, so nothing can run");
        return LANG_WRONG;
    }
    tell(program, options->request.path, NULL);
    jl_set_arguments(options->count, options->words);
    return jl_code_run(code);
}

static int made(const char *name, struct jl_program_text *program,
                const struct lang_options *options)
{
    const char *why = NULL;
    if (!jl_program_make(program, &options->request, &why)) {
        tell(program, options->request.path, why);
        return LANG_WRONG;
    }
    if (strcmp(name, "run") == 0) return command_run(program, options);
    tell(program, options->request.path, NULL);
    if (strcmp(name, "build") == 0) return lang_build(&program->module, options);
    qt_print(&program->module, options->places, stdout);
    return LANG_OK;
}

int lang_command(const char *name, char **words)
{
    static const char *const names[] = {"run", "check", "build", "ir", "fmt"};
    struct jl_program_text   program;
    struct lang_options      options = {.request = {.level = QT_MID}};
    const char              *why = NULL;
    unsigned                 which = 0;
    while (which < 5 && strcmp(names[which], name) != 0) which++;
    if (which == 5) return -1;
    if (which == 3) options.request.level = QT_HIGH;
    if (words[0] && strcmp(words[0], "--help") == 0) {
        fputs(lang_help, stdout);
        return LANG_OK;
    }
    take_words(&options, name, words);
    if (!jl_program_read(&program, &options.request, &why)) {
        fprintf(stderr, "janusrt: %s: %s\n", options.request.path, why);
        return LANG_USAGE;
    }
    int status = which == 1   ? command_check(&program, &options)
                 : which == 4 ? command_fmt(&program, &options)
                              : made(name, &program, &options);
    jl_program_free(&program);
    return status;
}
