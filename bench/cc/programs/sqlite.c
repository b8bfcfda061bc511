/* SPDX-License-Identifier: MIT */
/* SQLite, in memory: inserts, an index, and queries that scan, join and group. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t program(void);

static int add(void *sum, int count, char **values, char **names)
{
    (void)names;
    for (int i = 0; i < count; i++)
        if (values[i]) *(uint64_t *)sum += (uint64_t)atoll(values[i]);
    return 0;
}

static void run(sqlite3 *db, const char *text, uint64_t *sum)
{
    char *error = NULL;
    if (sqlite3_exec(db, text, add, sum, &error) != SQLITE_OK) {
        fprintf(stderr, "sqlite: %s\n", error);
        abort();
    }
}

uint64_t program(void)
{
    sqlite3 *db;
    uint64_t sum = 0;
    char     text[256];
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) abort();
    run(db, "create table item (id integer primary key, kind int, price int, name text)", &sum);
    run(db, "begin", &sum);
    run(db,
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) "
        "insert into item select i, i % 97, (i * 7919) % 10007, 'item ' || i from n",
        &sum);
    run(db, "commit", &sum);
    run(db, "create index by_kind on item (kind, price)", &sum);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "select sum(price) from item where kind = %d and price > %d",
                 i % 97, i * 50);
        run(db, text, &sum);
        snprintf(text, sizeof text, "select count(*) from item where name like '%%%d'", i);
        if (i % 10 == 0) run(db, text, &sum);
    }
    run(db, "select kind, count(*), max(price) from item group by kind order by 3 desc", &sum);
    run(db, "select count(*) from item a join item b on a.price = b.id where a.kind < 40", &sum);
    sqlite3_close(db);
    return sum;
}
