/* SPDX-License-Identifier: MIT */
/* A C program that runs a program of Janus. */
#include <janusrt/lang.h>
#include <stdio.h>

static int64_t greet(void *result, const void *const *arguments)
{
    const janus_lang_text *name = arguments[0];
    (void)result;
    printf("%.*s\n", (int)name->length, name->bytes);
    return 0;
}

static const janus_lang_row rows[] = {
    {.signature = "greet(name: str)", .code = greet, .effects = "io"},
};

int main(void)
{
    int status = 1;
    if (janus_lang_run(JANUS_LANG_OPTIONS(.rows = rows, .row_count = 1), "greet.jan",
                       "func main() do greet(\"installed and working\") end",
                       &status) != JANUS_OK) {
        return 1;
    }
    return status;
}
