/* SPDX-License-Identifier: MIT */
/*
 * The compiler driver: `janusrt cc` and `janusrt c++`. It runs clang with the plugin that inserts
 * counted checks, and passes every option of clang through.
 */
#ifndef JANUSRT_CC_CC_H
#define JANUSRT_CC_CC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of words that ends with NULL. The list owns the array, and each word until the process
 * ends: the driver is short-lived and frees nothing that it hands to a compiler. */
struct cc_words {
    char **at;
    size_t count, capacity;
};

void  cc_words_add(struct cc_words *words, const char *word);
char *cc_join(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Both refuse if there is no memory. */
void *cc_memory(size_t bytes) __attribute__((returns_nonnull));
void *cc_grow(void *memory, size_t count, size_t size) __attribute__((returns_nonnull));

/* The name in messages: "janusrt cc" or "janusrt c++". */
extern const char *cc_name;

/* Prints "janusrt cc: ..." on standard error. */
void cc_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, and ends the process with the status that clang has for bad usage: 1. */
void cc_refuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Replaces each word @FILE by the words in FILE, as clang does. */
void cc_words_expand(struct cc_words *into, char *const *words);

/* What clang will do with the user's words, as far as the driver must know it. */
struct cc_facts {
    struct cc_words inputs;   /* files, and "-" for standard input */
    bool            compiles; /* an input is not an object, archive or shared library */
    bool            links;    /* the linker runs */
    bool            shared;   /* ... for a shared object */
    bool            partial;  /* ... with -r */
    bool            bare;   /* ... with -nostdlib or -nodefaultlibs: the user names each library */
    bool            dashes; /* "--" ends the options */
    bool            optimises; /* -O1 or above */
    bool            fortified; /* _FORTIFY_SOURCE is asked for */
    bool            loose;     /* -fno-stack-clash-protection */
    const char     *assembler; /* an input in assembly language, or NULL */
    const char     *target;    /* the triple of -target, or NULL */
};

/* Refuses what would leave code without checks: -flto, -m32, -cc1 and others. */
void cc_facts_read(struct cc_facts *facts, const struct cc_words *expanded);

/* The first word that a build line of untrusted code must not have, or NULL. */
const char *cc_risk_find(const struct cc_words *expanded);

enum cc_runtime { CC_RUNTIME_STATIC, CC_RUNTIME_SHARED, CC_RUNTIME_NONE };

/* The options of the driver itself, and the words that clang gets. */
struct cc_request {
    bool            cxx, print, gcc, untrusted, report;
    bool            widened;                /* --allow or --runtime-dir stands behind --untrusted */
    bool            quiet_asm, quiet_local; /* -Wno-janus-asm, -Wno-janus-thread-local */
    int             major;                  /* --clang=N, or 0 */
    const char     *report_file;            /* --report=FILE, or NULL */
    const char     *ops;                    /* --ops=WORDS, or NULL */
    const char     *allow;                  /* --allow=FILE, or NULL */
    const char     *runtime_dir;            /* --runtime-dir=DIR, or NULL */
    enum cc_runtime runtime;
    struct cc_words words;
};

/* Where the parts of janusrt are: installed, or in a build tree. */
struct cc_places {
    const char *plugins, *libraries, *support, *include, *loops, *share;
};

/* A compiler, and the plugin made for it. */
struct cc_compiler {
    const char *path, *plugin;
    int         major;
};

void cc_places_find(struct cc_places *places);
void cc_compiler_find(struct cc_compiler *compiler, const struct cc_places *places, int major);
/* The path of a command in PATH, or NULL. */
char *cc_command_find(const char *name);

/* The whole command, and the value of JANUSRT_OPS (NULL: none). */
struct cc_plan {
    struct cc_words command;
    const char     *ops;
};

void cc_plan_make(struct cc_plan *plan, const struct cc_request *request,
                  const struct cc_facts *facts, const struct cc_places *places);

/* Runs a command and waits. Returns its exit status; a signal that ended it ends this process. */
int cc_run(char *const *command);
/* The first `bytes - 1` characters that a command prints. False: it failed. */
bool cc_ask(char *const *command, char *text, size_t bytes);

/* Refuses inputs of the linker that `janusrt cc --untrusted` has not made. */
void cc_objects_check(const struct cc_facts *facts);

/* Prints the lines that the pass has written, as a table. False: the file cannot be read. */
bool cc_report_print(const char *path);

/* --audit: names every cycle without a check. Returns the exit status. */
int cc_audit(char *const *files);

/* The driver. `words` are the arguments behind "cc" or "c++". */
int cc_main(bool cxx, char **words);

#endif
