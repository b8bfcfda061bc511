/* SPDX-License-Identifier: MIT */
/* The version of janusrt: at compile time by macro, at run time by function. */
#ifndef JANUSRT_VERSION_H
#define JANUSRT_VERSION_H

#include <janusrt/export.h>

#define JANUS_VERSION_MAJOR 0
#define JANUS_VERSION_MINOR 1
#define JANUS_VERSION_PATCH 0
#define JANUS_VERSION_STRING "0.1.0"

/* One number that grows with every release: 0xMMmmpp. */
#define JANUS_VERSION                                                                              \
    ((JANUS_VERSION_MAJOR << 16) | (JANUS_VERSION_MINOR << 8) | JANUS_VERSION_PATCH)

JANUS_BEGIN_DECLS

/*
 * The version of the library that is linked, as JANUS_VERSION spells it. A program can compare it
 * with the version that it was compiled against.
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a constant.
 * Errors:  none.
 */
JANUS_API unsigned janus_version(void);

/*
 * Version, compiler, architecture, sanitizer and Valgrind support, as one line for a bug report.
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a constant.
 * Errors:  none.
 */
JANUS_API const char *janus_build_text(void);

JANUS_END_DECLS
#endif
