/* SPDX-License-Identifier: MIT */
/* `janusrt build`: C, and a C compiler. */
#include "cc/cc.h"
#include "cmd/lang.h"
#include "emit/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the parts are: as the compiler driver's, and those of the language. */
struct parts {
    struct cc_places places;
    char            *include, *libraries;
};

static void read_tree(struct parts *parts, const char *path)
{
    FILE *file = fopen(path, "re");
    char  line[PATH_MAX + 16];
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "include=", 8) == 0) parts->include = cc_join("%s", line + 8);
        if (strncmp(line, "libraries=", 10) == 0) parts->libraries = cc_join("%s", line + 10);
    }
    (void)fclose(file);
}

static void find_parts(struct parts *parts)
{
    char    path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    cc_places_find(&parts->places);
    parts->include = cc_join("%s", parts->places.include);
    parts->libraries = cc_join("%s", parts->places.libraries);
    if (length <= 0) return;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    read_tree(parts, cc_join("%s/../lang/tree.txt", path));
}

/* Runs the compiler driver in a process of its own. With `quiet` nothing is printed. */
static int drive(char **words, bool quiet)
{
    int   status = 0;
    pid_t child = fork();
    if (child < 0) lang_refuse("there is no process: %s", strerror(errno));
    if (child == 0) {
        int null = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
        if (null >= 0) {
            (void)dup2(null, STDOUT_FILENO);
            (void)dup2(null, STDERR_FILENO);
        }
        exit(cc_main(false, words));
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static bool has_own_compiler(void)
{
    char *words[] = {"--print", "-c", "a.c", NULL};
    return drive(words, true) == 0;
}

static void add_common(struct cc_words *words, const struct parts *parts,
                       const struct lang_options *options, const char *source)
{
    cc_words_add(words, "-std=gnu17");
    cc_words_add(words, options->optimise ? options->optimise : "-O2");
    cc_words_add(words, "-g");
    cc_words_add(words,
                 "-fstack-clash-protection"); /* a large struct must not step over the guard */
    cc_words_add(words, cc_join("-I%s", parts->include));
    cc_words_add(words, cc_join("-I%s", parts->places.include));
    cc_words_add(words, source);
    cc_words_add(words, "-o");
    cc_words_add(words, options->output);
    cc_words_add(words, cc_join("%s/libjanusrt-lang-support.a", parts->libraries));
}

/* What a plugin finds in the program that loads it. The driver adds the same. */
static void add_exports(struct cc_words *words, const struct parts *parts)
{
    static const char *const needed[] = {
        "janus_check_stub",       "janus_strip_slow", "janus_op",
        "janus_hold_begin",       "janus_hold_end",   "janus_counted_code",
        "janus_check_or_end_slow"};
    char *list = cc_join("%s/cc.exports", parts->places.share);
    if (access(list, R_OK) == 0) {
        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
            cc_words_add(words, cc_join("-Wl,-u,%s", needed[i]));
        }
        cc_words_add(words, cc_join("-Wl,--dynamic-list=%s", list));
    }
    cc_words_add(words, cc_join("%s/libjanusrt.a", parts->places.libraries));
    cc_words_add(words, "-lpthread");
    cc_words_add(words, "-ldl");
}

static int compile(const struct parts *parts, const struct lang_options *options,
                   const char *source)
{
    struct cc_words words = {0};
    const char     *compiler = options->compiler;
    if (!compiler) {
        compiler = has_own_compiler() ? "janusrt cc" : "cc";
        if (strcmp(compiler, "cc") == 0) {
            fprintf(stderr, "janusrt: build: janusrt cc finds no clang, so cc compiles\n");
        }
    }
    /* Words behind the compiler are its options: --cc='gcc -fsanitize=address'. */
    static const char own[] = "janusrt cc";
    char             *rest = cc_join("%s", compiler), *name = NULL;
    bool              is_own = strncmp(rest, own, sizeof own - 1) == 0;
    if (is_own) {
        rest += sizeof own - 1;
    } else {
        name = strtok_r(rest, " ", &rest);
        char *path = name ? cc_command_find(name) : NULL;
        if (!path) lang_refuse("--cc: there is no command '%s'", compiler);
        cc_words_add(&words, path);
    }
    for (char *word; (word = strtok_r(rest, " ", &rest));) cc_words_add(&words, word);
    if (is_own) cc_words_add(&words, "-DJANUS_COUNTS");
    add_common(&words, parts, options, source);
    if (is_own) {
        cc_words_add(&words, "-ldl");
        return drive(words.at, false);
    }
    add_exports(&words, parts);
    return cc_run(words.at);
}

static bool write_c(struct qt_module *module, const char *path)
{
    const char *why = NULL;
    FILE       *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!out) lang_refuse("%s: %s", path, strerror(errno));
    bool good = jl_emit_c(module, out, &why);
    bool failed = ferror(out) != 0;
    if ((out == stdout ? fflush(out) : fclose(out)) != 0 || failed) {
        lang_refuse("%s: the file could not be written", path);
    }
    if (!good) fprintf(stderr, "janusrt: %s: %s\n", module->source, why);
    return good;
}

/* "dir/x.jan" without folders and ending, with another ending. */
static char *named_after(const char *path, const char *ending)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t      length = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    return cc_join("%.*s%s", (int)length, name, ending);
}

/* The output would replace the program's text. */
static bool is_same_file(const char *left, const char *right)
{
    struct stat one, other;
    return stat(left, &one) == 0 && stat(right, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

int lang_build(struct qt_module *module, const struct lang_options *options)
{
    struct lang_options chosen = *options;
    struct parts        parts = {.include = NULL};
    if (!chosen.output) {
        chosen.output = named_after(module->source, chosen.only_c ? ".c" : "");
        if (strcmp(chosen.output, module->source) == 0) chosen.output = "a.out";
    }
    if (is_same_file(options->request.path, chosen.output)) {
        lang_refuse("-o: %s is the source", chosen.output);
    }
    if (module->main == 0) {
        fprintf(stderr, "janusrt: %s: there is no main, so nothing can run\n", module->source);
        return LANG_WRONG;
    }
    if (chosen.only_c) return write_c(module, chosen.output) ? LANG_OK : LANG_WRONG;
    const char *folder = getenv("TMPDIR");
    char       *place = cc_join("%s/janusrt.XXXXXX", folder && folder[0] ? folder : "/tmp");
    if (!mkdtemp(place)) lang_refuse("%s: %s", place, strerror(errno));
    char *source = cc_join("%s/%s", place, named_after(module->source, ".c"));
    int   status = LANG_WRONG;
    find_parts(&parts);
    if (write_c(module, source)) status = compile(&parts, &chosen, source);
    (void)unlink(source);
    (void)rmdir(place);
    return status;
}
