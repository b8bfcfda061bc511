/* SPDX-License-Identifier: MIT */
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Appends as much of `text` as fits and returns the new length. */
static size_t append(char *line, size_t size, size_t used, const char *text)
{
    size_t length = strlen(text);
    if (length > size - used) length = size - used;
    memcpy(line + used, text, length);
    return used + length;
}

static size_t append_number(char *line, size_t size, size_t used, int number)
{
    char  digits[12];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return append(line, size, used, at);
}

_Thread_local void (*jrt_die_hook)(const char *kind, const char *what, const char *file, int line);

void jrt_die(const char *kind, const char *what, const char *file, int line)
{
    if (jrt_die_hook != NULL) jrt_die_hook(kind, what, file, line);
    /* Static, not local: the failing thread may have little stack left. If two threads fail at the
     * same moment, the line may be garbled. */
    static char text[512];
    size_t      used = 0;
    used = append(text, sizeof text, used, "janusrt: ");
    used = append(text, sizeof text, used, kind);
    used = append(text, sizeof text, used, ": ");
    used = append(text, sizeof text, used, what);
    used = append(text, sizeof text, used, " (");
    used = append(text, sizeof text, used, file);
    used = append(text, sizeof text, used, ":");
    used = append_number(text, sizeof text, used, line);
    used = append(text, sizeof text, used, ")\n");
    ssize_t written = write(STDERR_FILENO, text, used);
    (void)written; /* a failed write cannot be reported */
    abort();
}
