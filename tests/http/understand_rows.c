/* SPDX-License-Identifier: MIT */
/*
 * Says what our parsers understand, for tools/garden.py. Each line of stdin is the bytes of a
 * client in base 16. Each line of stdout is the text of understand.h, in base 16 too.
 */
#include "understand.h"

#include <stdio.h>
#include <stdlib.h>

enum { BYTES_MAX = 65536 };

/* Reads a line. False: there is no more. */
static bool read_bytes(char *bytes, size_t *out_count)
{
    static char line[2 * BYTES_MAX + 2];
    if (fgets(line, sizeof line, stdin) == NULL) return false;
    size_t count = strcspn(line, "\n") / 2;
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(jrt_http_hex(line[2 * i]) << 4 | jrt_http_hex(line[2 * i + 1]));
    *out_count = count;
    return true;
}

int main(void)
{
    static struct listener listener;
    static char            bytes[BYTES_MAX];
    size_t                 count;
    while (read_bytes(bytes, &count)) {
        listener_begin(&listener, jrt_http_parse, false, false);
        listener_hear(&listener, bytes, count);
        listener_end(&listener, bytes, count);
        for (size_t i = 0; i < listener.text_bytes; i++)
            printf("%02x", (unsigned)(uint8_t)listener.text[i]);
        putchar('\n');
    }
    return EXIT_SUCCESS;
}
