/* SPDX-License-Identifier: MIT */
/* The commands of the language: run, check, build, ir, fmt. */
#ifndef JANUSRT_CMD_LANG_H
#define JANUSRT_CMD_LANG_H

#include "embed/embed.h"

#include <stdbool.h>

enum { LANG_OK = 0, LANG_WRONG = 1, LANG_USAGE = 2 };

/* What the words behind the command ask for. */
struct lang_options {
    struct jl_request request;
    const char       *output, *compiler, *optimise; /* of build */
    bool              json, effects, places, writes, only_c, keeps_c;
    int               count; /* of the words behind the file */
    char            **words;
};

extern const char lang_help[];

/* The command `name`, whose words follow. -1: there is no such command. */
int lang_command(const char *name, char **words);
/* "x.jan" and "x.ir" are run by `janusrt run`. */
bool lang_is_source(const char *path);
/* Prints "janusrt: ..." and ends the process with status 2. */
__attribute__((noreturn, format(printf, 1, 2))) void lang_refuse(const char *format, ...);

/* Compiles the module, level Mid, to options->output. Returns an exit status. */
int lang_build(struct qt_module *module, const struct lang_options *options);

#endif
