/* SPDX-License-Identifier: MIT */
/*
 * A small host for tests of the checker: the names that the documents' programs use without
 * declaring them, and functions for each rule about hosts. Nothing of it runs.
 */
#ifndef JANUSRT_TESTS_LANG_ROWS_H
#define JANUSRT_TESTS_LANG_ROWS_H

#include "type/host_table.h"

static int64_t rows_code(void *result, const void *const *arguments)
{
    (void)result;
    (void)arguments;
    return -1;
}
static const char rows_value[64];

#define ROW(text, ...) {.signature = (text), .code = rows_code, __VA_ARGS__}
static const struct jl_host_row rows[] = {
    {.type = "Server"},
    {.type = "Connection"},
    {.type = "UntrustedPlugin"},
    ROW("print(text: str)", .effects = "io"),
    ROW("log(text: str)", .effects = "io"),
    ROW("bind(address: str) -> !Server", .effects = "io"),
    ROW("Server.accept() -> !Connection", .effects = "io await"),
    ROW("Connection.read_body() -> !str", .effects = "io await"),
    ROW("Connection.write_response(text: str) -> !", .effects = "io await"),
    ROW("process(body: str) -> str", ),
    ROW("load_untrusted_plugin(path: str) -> UntrustedPlugin", .effects = "native"),
    ROW("task()", ),
    ROW("task_a()", ),
    ROW("task_b()", ),
    ROW("work_a()", ),
    ROW("work_b()", ),
    ROW("compute(x: i64) -> i64", ),
    {.value = "x: i64", .address = rows_value},
    {.value = "y: i64", .address = rows_value},
    {.value = "input_data: []u8", .address = rows_value},
    {.value = "restricted_spawn_cap: CapSpawn", .address = rows_value},
    ROW("parallel_map(cap: CapSpawn, items: []i32, f: fn(i32) -> i32) -> []i32",
        .effects = "spawn nursery", .trusted_only = true),
    ROW("scan(cap: CapSpawn, path: str) -> i64", .effects = "spawn"),
    ROW("call_back(f: fn() -> i64)", ),
    ROW("recharge_child(ops: i64)", .effects = "recharge"),
    ROW("Supervisor.recharge(ops: i64)", .effects = "recharge"),
};
#undef ROW
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

#endif
