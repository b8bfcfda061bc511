/* SPDX-License-Identifier: MIT */
/* Reads requests.txt and answers.txt. */
#ifndef TESTS_HTTP_TABLE_H
#define TESTS_HTTP_TABLE_H

#include <stddef.h>

enum { ROWS_MAX = 400, ROW_BYTES = 32768 };

struct row {
    int    line; /* in the file */
    char  *verdict, *reason;
    char  *bytes;
    size_t count;
};

/* Rows of a file of HTTP_TABLES. The table lives as long as the process. */
struct table {
    const char *name;
    int         rows;
    struct row  row[ROWS_MAX];
};

/* Reads a table, at the first call. Aborts if the file cannot be read or a row has no reason. */
const struct table *table_read(const char *name);

#endif
