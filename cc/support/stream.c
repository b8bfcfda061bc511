/* SPDX-License-Identifier: MIT */
/*
 * Streams of the program's own. stdio calls their functions while it holds the stream's lock, so a
 * hold stands around each call. Other stdio functions run no code of the program.
 */
#include "cc/support/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

FILE *janus_cc_fopencookie(void *restrict cookie, const char *restrict mode,
                           cookie_io_functions_t functions);

struct stream {
    void                 *cookie;
    cookie_io_functions_t functions;
};

static ssize_t read_held(void *argument, char *bytes, size_t count)
{
    struct stream *stream = argument;
    janus_hold_begin();
    ssize_t result = stream->functions.read(stream->cookie, bytes, count);
    janus_hold_end();
    return result;
}

static ssize_t write_held(void *argument, const char *bytes, size_t count)
{
    struct stream *stream = argument;
    janus_hold_begin();
    ssize_t result = stream->functions.write(stream->cookie, bytes, count);
    janus_hold_end();
    return result;
}

static int seek_held(void *argument, off64_t *offset, int whence)
{
    struct stream *stream = argument;
    janus_hold_begin();
    int result = stream->functions.seek(stream->cookie, offset, whence);
    janus_hold_end();
    return result;
}

static int close_held(void *argument)
{
    struct stream *stream = argument;
    int            result = 0;
    janus_hold_begin();
    if (stream->functions.close != NULL) result = stream->functions.close(stream->cookie);
    janus_hold_end();
    free(stream);
    return result;
}

FILE *janus_cc_fopencookie(void *restrict cookie, const char *restrict mode,
                           cookie_io_functions_t functions)
{
    struct stream *stream = malloc(sizeof *stream);
    if (stream == NULL) return NULL;
    *stream = (struct stream){cookie, functions};
    /* stdio gives a missing function a meaning of its own. */
    cookie_io_functions_t held = {functions.read != NULL ? read_held : NULL,
                                  functions.write != NULL ? write_held : NULL,
                                  functions.seek != NULL ? seek_held : NULL, close_held};
    FILE *file = fopencookie(stream, mode, held);
    if (file == NULL) {
        int error = errno;
        free(stream);
        errno = error;
    }
    return file;
}
