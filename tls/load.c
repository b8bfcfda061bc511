/* SPDX-License-Identifier: MIT */
/* Files of certificates and keys, read as file.h does it: with the rights of the caller. */
#include "tls/tls.h"

#include <janusrt/charge.h>
#include <janusrt/file.h>
#include <janusrt/memory.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 16384 };

void jrt_tls_forget(struct jrt_tls_text *text)
{
    if (text->at == NULL) return;
    OPENSSL_cleanse(text->at, text->room);
    if (text->of_task) {
        janus_free(text->at);
    } else {
        free(text->at);
    }
    *text = (struct jrt_tls_text){.at = NULL};
}

janus_status jrt_tls_make(struct jrt_tls_text *text, size_t room)
{
    janus_status status = JANUS_OK;
    *text = (struct jrt_tls_text){.room = room, .of_task = janus_task_current_id() != 0};
    if (text->of_task) {
        status = janus_try_alloc(room, (void **)&text->at);
        if (status == JANUS_BUDGET_EXHAUSTED) { /* maybe only operations are short */
            status = janus_charge(janus_budget_of(1, 0, 0, 0, 0));
            if (status == JANUS_OK) status = janus_try_alloc(room, (void **)&text->at);
        }
    } else {
        text->at = malloc(room);
        if (text->at == NULL) status = JANUS_NO_MEMORY;
    }
    if (status == JANUS_OK) memset(text->at, 0, room);
    return status;
}

static janus_status grow(struct jrt_tls_text *text)
{
    struct jrt_tls_text larger;
    if (text->room > JRT_TLS_FILE_BYTES_MAX) return JANUS_FULL;
    janus_status status = jrt_tls_make(&larger, 2 * text->room);
    if (status != JANUS_OK) return status;
    memcpy(larger.at, text->at, text->bytes);
    larger.bytes = text->bytes;
    jrt_tls_forget(text);
    *text = larger;
    return JANUS_OK;
}

static janus_status read_all(janus_io file, struct jrt_tls_text *text)
{
    janus_status status = jrt_tls_make(text, FIRST_BYTES);
    while (status == JANUS_OK) {
        size_t got = 0;
        if (text->bytes + 1 == text->room) status = grow(text);
        if (status != JANUS_OK) break;
        status = janus_io_read(file, text->at + text->bytes, text->room - 1 - text->bytes, &got);
        text->bytes += got;
    }
    if (status != JANUS_CLOSED) return status;
    text->at[text->bytes] = '\0';
    return text->bytes <= JRT_TLS_FILE_BYTES_MAX ? JANUS_OK : JANUS_FULL;
}

janus_status jrt_tls_load(const char *path, struct jrt_tls_text *out, janus_tls_why *why)
{
    janus_io            file;
    struct jrt_tls_text text = {.at = NULL};
    janus_status status = janus_file_open((janus_io){{0, 0}}, path, JANUS_OPEN_READ, NULL, &file);
    if (status == JANUS_OK) {
        status = read_all(file, &text);
        JANUS_IGNORE(janus_io_close(file));
    }
    if (status == JANUS_OK) {
        *out = text;
        return status;
    }
    jrt_tls_forget(&text);
    jrt_tls_say(why, "%s cannot be read: %s", path, janus_status_text(status));
    return status;
}
