/* SPDX-License-Identifier: MIT */
/* Names that users give, as the library keeps and shows them. */
#ifndef JRT_PLAT_NAME_H
#define JRT_PLAT_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * [name-clean]  the library copies a name when it receives it, bounded, and so that it can stand in
 *   a line of text. It writes as escapes (\n, \", \x1b): control characters, quotes, backslashes,
 *   characters that change the direction of text, and bytes that are not UTF-8. It cuts a name that
 *   does not fit before the first character or escape that would be too long. So code that prints a
 *   name between double quotes need not check it again. No code reads memory that the giver of the
 *   name has freed.
 *
 * Copies at most size - 1 bytes of `from` to `to`. Unreadable memory ends the name. If its first
 * byte is unreadable, the name is "?". Returns the length of the copy.
 */
size_t jrt_name_copy(char *to, size_t size, const char *from);

/* Copies a sentence as jrt_name_copy does, but leaves quotes and backslashes unchanged. */
size_t jrt_text_copy(char *to, size_t size, const char *from);

/* Copies a name that is clean already. It cuts a name that does not fit between characters. */
void jrt_name_again(char *to, size_t size, const char *clean);

/*
 * Returns a copy of a clean name. The first names stay for ever, each once: a crowd of tasks with
 * one name shares a copy. *out_own: the copy is the caller's, because the table has no room. NULL:
 * memory was refused.
 */
const char *jrt_name_keep(const char *clean, bool *out_own);

#endif
