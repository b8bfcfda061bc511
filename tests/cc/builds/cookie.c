/* SPDX-License-Identifier: MIT */
/* stdio calls the functions of the program's own streams: 5000 bytes, one write and one round for
 * each. */
#define _GNU_SOURCE
#include <stdio.h>

static long sum;

static ssize_t add(void *cookie, const char *bytes, size_t count)
{
    (void)cookie;
    for (size_t i = 0; i < count; i++) sum += bytes[i];
    return (ssize_t)count;
}

int main(void)
{
    FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = add});
    if (file == NULL) return 1;
    setvbuf(file, NULL, _IONBF, 0);
    for (int i = 0; i < 5000; i++) fputc('a' + i % 3, file);
    fclose(file);
    printf("%ld\n", sum);
    return 0;
}
