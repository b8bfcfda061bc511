/* SPDX-License-Identifier: MIT */
/*
 * Finds clang, its plugin, and the libraries of janusrt. All parts of janusrt are found from the
 * place of this executable, so that an installed tree can be moved as a whole.
 */
#include "cc/cc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The versions that have a plugin, best first. */
static const int majors[] = {19, 16, 14};
enum { MAJORS = sizeof majors / sizeof majors[0] };

static bool exists(const char *path) { return access(path, R_OK) == 0; }

static char *own_folder(void)
{
    char    path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) cc_refuse("/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) *slash = '\0';
    return cc_join("%s", path);
}

/* In a build tree CMake writes where it puts each part: lines "key=path". */
static bool read_tree(struct cc_places *places, const char *path)
{
    FILE *file = fopen(path, "re");
    char  line[PATH_MAX + 16];
    if (file == NULL) return false;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *value = strchr(line, '=');
        if (value == NULL) continue;
        *value++ = '\0';
        const struct {
            const char  *key;
            const char **place;
        } keys[] = {{"plugins", &places->plugins}, {"libraries", &places->libraries},
                    {"support", &places->support}, {"include", &places->include},
                    {"loops", &places->loops},     {"share", &places->share}};
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            if (strcmp(line, keys[i].key) == 0) *keys[i].place = cc_join("%s", value);
        }
    }
    (void)fclose(file);
    return places->plugins && places->libraries && places->support && places->include &&
           places->loops && places->share;
}

/* `directory` is absolute, or relative to the folder of the executable. */
static char *from(const char *folder, const char *directory)
{
    char *joined =
        directory[0] == '/' ? cc_join("%s", directory) : cc_join("%s/%s", folder, directory);
    char *whole = realpath(joined, NULL);
    return whole != NULL ? whole : joined;
}

void cc_places_find(struct cc_places *places)
{
    char *folder = own_folder();
    if (read_tree(places, cc_join("%s/../cc/tree.txt", folder))) return;
    places->libraries = from(folder, JANUSRT_CC_LIBDIR);
    places->support = places->libraries;
    places->plugins = cc_join("%s/janusrt", places->libraries);
    places->include = from(folder, JANUSRT_CC_INCLUDEDIR);
    places->loops = cc_join("%s/janusrt", places->include);
    places->share = cc_join("%s/janusrt", from(folder, JANUSRT_CC_DATADIR));
}

char *cc_command_find(const char *name)
{
    if (strchr(name, '/') != NULL) return access(name, X_OK) == 0 ? cc_join("%s", name) : NULL;
    const char *path = getenv("PATH");
    for (const char *at = path != NULL ? path : "/usr/bin:/bin"; *at != '\0';) {
        size_t length = strcspn(at, ":");
        char  *full = cc_join("%.*s/%s", length > 0 ? (int)length : 1, length > 0 ? at : ".", name);
        if (access(full, X_OK) == 0) return full;
        free(full);
        at += length + (at[length] == ':');
    }
    return NULL;
}

/* A Debian path such as /usr/lib/llvm-19/bin/clang tells its version; starting clang to ask takes
 * as long as compiling a small file. */
static int major_of(const char *path)
{
    char *whole = realpath(path, NULL);
    char  text[128] = "", expected[64];
    for (size_t i = 0; whole != NULL && i < MAJORS; i++) {
        (void)snprintf(expected, sizeof expected, "/usr/lib/llvm-%d/bin/clang", majors[i]);
        if (strcmp(whole, expected) == 0) {
            free(whole);
            return majors[i];
        }
    }
    free(whole);
    /* Not -dumpversion: gcc 14 answers it as clang 14 does. */
    static const char said[] = "clang version ";
    char             *command[] = {(char *)path, "--version", NULL};
    if (!cc_ask(command, text, sizeof text)) return 0;
    text[strcspn(text, "\n")] = '\0';
    const char *at = strstr(text, said);
    return at != NULL ? (int)strtol(at + sizeof said - 1, NULL, 10) : 0;
}

static bool is_known(int major)
{
    for (size_t i = 0; i < MAJORS; i++) {
        if (majors[i] == major) return true;
    }
    return false;
}

static char *plugin_of(const struct cc_places *places, int major)
{
    return cc_join("%s/janusrt_ops_%d.so", places->plugins, major);
}

static void take(struct cc_compiler *compiler, const struct cc_places *places, const char *path,
                 int major)
{
    compiler->path = path;
    compiler->major = major;
    compiler->plugin = plugin_of(places, major);
    if (exists(compiler->plugin)) return;
    cc_refuse("%s is clang %d, but its plugin %s is missing; install the package janusrt-cc, or "
              "install llvm-%d-dev and build janusrt again with -DJANUSRT_CC=ON",
              path, major, compiler->plugin, major);
}

static void take_named(struct cc_compiler *compiler, const struct cc_places *places,
                       const char *name, int wanted)
{
    char *path = cc_command_find(name);
    if (path == NULL) cc_refuse("CLANG=%s: there is no such command", name);
    int major = major_of(path);
    if (major == 0)
        cc_refuse("CLANG=%s: it is not clang: --version does not answer \"clang version\"", name);
    if (!is_known(major)) {
        cc_refuse("CLANG=%s: it is clang %d; there are plugins for clang 19, 16 and 14 only", name,
                  major);
    }
    if (wanted != 0 && wanted != major) {
        cc_refuse("CLANG=%s: it is clang %d, and --clang=%d asks for another", name, major, wanted);
    }
    take(compiler, places, path, major);
}

/* The command clang-19, or the command clang if it is version 19. */
static char *find_major(int major)
{
    char *path = cc_command_find(cc_join("clang-%d", major));
    if (path != NULL) {
        int real = major_of(path);
        if (real == major) return path;
        if (real == 0) cc_refuse("%s: it is not clang, whatever its name says", path);
        cc_refuse("%s: it is not clang %d but %d", path, major, real);
    }
    path = cc_command_find("clang");
    return path != NULL && major_of(path) == major ? path : NULL;
}

void cc_compiler_find(struct cc_compiler *compiler, const struct cc_places *places, int wanted)
{
    const char *named = getenv("CLANG");
    if (wanted != 0 && !is_known(wanted)) {
        cc_refuse("--clang=%d: there are plugins for clang 19, 16 and 14 only", wanted);
    }
    if (named != NULL && named[0] != '\0') {
        take_named(compiler, places, named, wanted);
        return;
    }
    const char *first = NULL;
    int         first_major = 0;
    for (size_t i = 0; i < MAJORS; i++) {
        if (wanted != 0 && majors[i] != wanted) continue;
        char *path = find_major(majors[i]);
        if (path == NULL) continue;
        if (exists(plugin_of(places, majors[i]))) {
            take(compiler, places, path, majors[i]);
            return;
        }
        if (first == NULL) first = path, first_major = majors[i];
    }
    if (first != NULL) take(compiler, places, first, first_major); /* says what is missing */
    if (wanted != 0)
        cc_refuse("there is no clang %d; install the package clang-%d", wanted, wanted);
    cc_refuse("there is no clang 19, 16 or 14; install the package clang-19");
}
