/* SPDX-License-Identifier: MIT */
/* The prelude. */
#include "host/prelude.h"

#include "host/plugin.h"
#include "host/server.h"
#include "host/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int             word_count;
static char          **words;
extern struct jl_slice jl_input_data;
struct jl_slice        jl_input_data;

void jl_set_arguments(int count, char **given)
{
    word_count = count;
    words = given;
}

void jl_set_input(const void *bytes, size_t count)
{
    jl_input_data = (struct jl_slice){(void *)(uintptr_t)bytes, (int64_t)count};
}

/* A line costs what a write to a file costs. */
static int64_t write_line(FILE *file, const struct jl_text *text)
{
    jl_pay_bytes((size_t)text->length);
    if (!jl_core_task) {
        janus_status status = janus_charge(janus_price_file_io());
        if (status != JANUS_OK && status != JANUS_CANCELLED) return status;
    }
    flockfile(file);
    if (text->length > 0) (void)fwrite(text->bytes, 1, (size_t)text->length, file);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is locked */
    (void)putc_unlocked('\n', file);
    funlockfile(file);
    return 0;
}

int64_t jl_prelude_print(void *result, const void *const *arguments);
int64_t jl_prelude_log(void *result, const void *const *arguments);
int64_t jl_prelude_process(void *result, const void *const *arguments);
int64_t jl_prelude_sleep(void *result, const void *const *arguments);
int64_t jl_prelude_now(void *result, const void *const *arguments);
int64_t jl_prelude_args(void *result, const void *const *arguments);
int64_t jl_prelude_parse_int(void *result, const void *const *arguments);
int64_t jl_prelude_find(void *result, const void *const *arguments);
int64_t jl_prelude_trim(void *result, const void *const *arguments);
int64_t jl_prelude_upper(void *result, const void *const *arguments);
int64_t jl_prelude_bytes(void *result, const void *const *arguments);
int64_t jl_prelude_text(void *result, const void *const *arguments);

int64_t jl_prelude_print(void *result, const void *const *arguments)
{
    (void)result;
    return write_line(stdout, arguments[0]);
}

int64_t jl_prelude_log(void *result, const void *const *arguments)
{
    (void)result;
    return write_line(stderr, arguments[0]);
}

/* The answer of the documents' web server: a page that shows what came. */
int64_t jl_prelude_process(void *result, const void *const *arguments)
{
    static const char     hello[] = "Hello from Janus.\n";
    const struct jl_text *body = arguments[0];
    static const char     got[] = "Janus got: ";
    struct jl_text        answer = {hello, sizeof hello - 1};
    if (body->length > 0) answer = jl_concat((struct jl_text){got, sizeof got - 1}, *body);
    memcpy(result, &answer, sizeof answer);
    return 0;
}

int64_t jl_prelude_sleep(void *result, const void *const *arguments)
{
    (void)result;
    const int64_t *milliseconds = arguments[0];
    uint64_t       time = *milliseconds < 0 ? 0 : (uint64_t)*milliseconds;
    if (time > UINT64_MAX / JANUS_MS) time = UINT64_MAX / JANUS_MS;
    return janus_sleep(time * JANUS_MS);
}

int64_t jl_prelude_now(void *result, const void *const *arguments)
{
    (void)arguments;
    int64_t now = (int64_t)janus_now_ns();
    memcpy(result, &now, sizeof now);
    return 0;
}

int64_t jl_prelude_args(void *result, const void *const *arguments)
{
    (void)arguments;
    struct jl_slice made = jl_slice_new(word_count, sizeof(struct jl_text), 0);
    struct jl_text *texts = made.items;
    for (int i = 0; i < word_count; i++) {
        texts[i] = (struct jl_text){words[i], (int64_t)strlen(words[i])};
    }
    memcpy(result, &made, sizeof made);
    return 0;
}

int64_t jl_prelude_parse_int(void *result, const void *const *arguments)
{
    const struct jl_text *text = arguments[0];
    char                  digits[24], *end;
    if (text->length < 1 || text->length >= (int64_t)sizeof digits) return JANUS_INVALID;
    memcpy(digits, text->bytes, (size_t)text->length);
    digits[text->length] = '\0';
    if (digits[0] != '-' && (digits[0] < '0' || digits[0] > '9')) return JANUS_INVALID;
    errno = 0;
    int64_t number = strtoll(digits, &end, 10);
    if (*end != '\0' || errno != 0 || end == digits) return JANUS_INVALID;
    memcpy(result, &number, sizeof number);
    return 0;
}

int64_t jl_prelude_find(void *result, const void *const *arguments)
{
    const struct jl_text *text = arguments[0], *part = arguments[1];
    int64_t               at = part->length == 0 ? 0 : -1;
    if (part->length > 0 && text->length > 0) {
        jl_pay_bytes((size_t)text->length);
        const char *found =
            memmem(text->bytes, (size_t)text->length, part->bytes, (size_t)part->length);
        if (found) at = found - text->bytes;
    }
    memcpy(result, &at, sizeof at);
    return 0;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int64_t jl_prelude_trim(void *result, const void *const *arguments)
{
    struct jl_text text = *(const struct jl_text *)arguments[0];
    while (text.length > 0 && is_blank(text.bytes[text.length - 1])) text.length--;
    while (text.length > 0 && is_blank(text.bytes[0])) {
        text.bytes++;
        text.length--;
    }
    jl_pay_bytes((size_t)(((const struct jl_text *)arguments[0])->length - text.length));
    memcpy(result, &text, sizeof text);
    return 0;
}

int64_t jl_prelude_upper(void *result, const void *const *arguments)
{
    struct jl_text text = *(const struct jl_text *)arguments[0];
    if (text.length > 0) {
        char *copy = jl_environment((size_t)text.length);
        jl_pay_bytes((size_t)text.length);
        for (int64_t i = 0; i < text.length; i++) {
            copy[i] = text.bytes[i];
            if (copy[i] >= 'a' && copy[i] <= 'z') copy[i] = (char)(copy[i] - 32);
        }
        text.bytes = copy;
    }
    memcpy(result, &text, sizeof text);
    return 0;
}

int64_t jl_prelude_bytes(void *result, const void *const *arguments)
{
    const struct jl_text *text = arguments[0];
    struct jl_slice       made = jl_slice_new(text->length, 1, 0);
    if (text->length > 0) memcpy(made.items, text->bytes, (size_t)text->length);
    memcpy(result, &made, sizeof made);
    return 0;
}

int64_t jl_prelude_text(void *result, const void *const *arguments)
{
    const struct jl_slice *bytes = arguments[0];
    struct jl_text         made = {"", bytes->length};
    if (bytes->length > 0) {
        char *copy = jl_environment((size_t)bytes->length);
        jl_pay_bytes((size_t)bytes->length);
        memcpy(copy, bytes->items, (size_t)bytes->length);
        made.bytes = copy;
    }
    memcpy(result, &made, sizeof made);
    return 0;
}

#define CODE(words, function, does)                                                                \
    {.signature = (words), .code = function, .effects = (does), .symbol = #function}

const struct jl_host_row jl_prelude_rows[] = {
    {.type = "Server"},
    {.type = "Connection"},
    {.type = "UntrustedPlugin"},
    CODE("print(text: str)", jl_prelude_print, "io"),
    CODE("log(text: str)", jl_prelude_log, "io"),
    CODE("process(body: str) -> str", jl_prelude_process, "alloc"),
    CODE("sleep(milliseconds: i64) -> !void", jl_prelude_sleep, "await"),
    CODE("now() -> i64", jl_prelude_now, NULL),
    CODE("args() -> []str", jl_prelude_args, "alloc"),
    CODE("parse_int(text: str) -> !i64", jl_prelude_parse_int, NULL),
    CODE("find(text: str, part: str) -> i64", jl_prelude_find, NULL),
    CODE("trim(text: str) -> str", jl_prelude_trim, NULL),
    CODE("upper(text: str) -> str", jl_prelude_upper, "alloc"),
    CODE("bytes(text: str) -> []u8", jl_prelude_bytes, "alloc"),
    CODE("text(bytes: []u8) -> str", jl_prelude_text, "alloc"),
    CODE("bind(address: str) -> !Server", jl_prelude_bind, "io"),
    CODE("Server.accept() -> !Connection", jl_prelude_server_accept, "io await"),
    CODE("Connection.read_body() -> !str", jl_prelude_connection_read_body, "io await alloc"),
    CODE("Connection.method() -> str", jl_prelude_connection_method, NULL),
    CODE("Connection.path() -> str", jl_prelude_connection_path, NULL),
    CODE("Connection.write_response(response: str) -> !void", jl_prelude_connection_write_response,
         "io await"),
    CODE("Connection.end()", jl_prelude_connection_end, "io"),
    CODE("load_untrusted_plugin(path: str) -> UntrustedPlugin", jl_prelude_load_plugin,
         "io native"),
    {.value = "input_data: []u8", .address = &jl_input_data, .symbol = "jl_input_data"},
};
const uint32_t jl_prelude_row_count = sizeof jl_prelude_rows / sizeof jl_prelude_rows[0];
