/* SPDX-License-Identifier: MIT */
/* Names that users give, as the library keeps and shows them. */
#ifndef JRT_PLAT_NAME_H
#define JRT_PLAT_NAME_H

#include <stddef.h>

/*
 * [name-clean]  a name is copied when it is given: bounded, and so that it can stand in a line of
 *   text. Control characters, quotes, backslashes, characters that change the direction of text and
 *   bytes that are no UTF-8 are written as escapes: \n, \", \x1b. A name that does not fit is cut
 *   before the first character or escape that would be too much. So code that prints a
 *   name between double quotes need not look at it again, and no code reads memory that the giver
 *   of the name has freed.
 *
 * Copies `from`, of which size - 1 bytes at most are used, to `to`. Memory that cannot be read ends
 * the name; if that is its first byte, the name is "?". Returns the length of the copy.
 */
size_t jrt_name_copy(char *to, size_t size, const char *from);

/* Copies a sentence in the same way; its quotes and backslashes stay as they are. */
size_t jrt_text_copy(char *to, size_t size, const char *from);

/* Copies a name that is clean already. A name that does not fit is cut between characters. */
void jrt_name_again(char *to, size_t size, const char *clean);

#endif
