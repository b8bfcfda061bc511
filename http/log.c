/* SPDX-License-Identifier: MIT */
/* The access log: lines through a channel, written by a task of its own. */
#include "http/server.h"

#include <janusrt/task.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE_BYTES = 320, TARGET_BYTES = 120, METHOD_BYTES = 16, BATCH_BYTES = 4096 };

struct line {
    char text[LINE_BYTES]; /* ends with a zero */
};

struct jrt_http_log {
    janus_channel    channel;
    janus_io         io;
    _Atomic uint64_t dropped; /* since the log last said so */
    size_t           bytes, lines;
    char             batch[BATCH_BYTES];
};

void jrt_http_escape(struct jrt_http_text text, char *out, size_t room)
{
    char *end = out + room - 5; /* for an escape and a zero */
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (out >= end) {
            out = stpcpy(out, "...");
            break;
        }
        if (byte > ' ' && byte < 0x7f && byte != '\\' && byte != '"') {
            *out++ = (char)byte;
        } else {
            out += snprintf(out, 5, "\\x%02x", byte);
        }
    }
    *out = '\0';
}

void jrt_http_find_peer(struct janus_http *http)
{
    janus_address peer;
    if (http->peer_known) return;
    http->peer_known = true;
    if (janus_io_peer(http->io, &peer) != JANUS_OK) peer.family = JANUS_FAMILY_NONE;
    char text[JANUS_ADDRESS_TEXT_BYTES]; /* a path of Unix may have spaces */
    jrt_http_escape(jrt_http_of(janus_address_text(&peer, text, sizeof text)), http->rare->peer,
                    sizeof http->rare->peer);
}

void jrt_http_log_line(struct janus_http *http)
{
    struct jrt_http_log *log = http->server->log;
    struct line          line;
    char                 target[TARGET_BYTES], method[METHOD_BYTES], at[32];
    time_t               now = time(NULL);
    struct tm            parts;
    const char          *head = http->in + http->at;
    jrt_http_find_peer(http);
    jrt_http_escape(jrt_http_text_of(head, http->head.method_text), method, sizeof method);
    jrt_http_escape(jrt_http_text_of(head, http->head.target), target, sizeof target);
    (void)strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    (void)snprintf(line.text, sizeof line.text, "%s %.40s %s %s %u %llu %lluus 0x%llx%s%s%s\n", at,
                   http->rare->peer, method[0] != '\0' ? method : "-",
                   target[0] != '\0' ? target : "-", http->status, (unsigned long long)http->sent,
                   (unsigned long long)(janus_now_ns() - http->began_ns) / 1000,
                   (unsigned long long)atomic_load(&http->task), http->blamed ? " " : "",
                   http->blamed ? http->rare->mark : "", jrt_http_is_cut(http) ? " cut" : "");
    if (strchr(line.text, '\n') == NULL) line.text[LINE_BYTES - 2] = '\n'; /* it was cut */
    if (janus_channel_try_send(log->channel, &line) != JANUS_OK) {
        atomic_fetch_add(&log->dropped, 1); /* seq_cst: rare */
    }
}

static void write_batch(struct jrt_http_log *log)
{
    char     text[64];
    uint64_t dropped = atomic_exchange(&log->dropped, 0); /* seq_cst: once for a batch */
    if (dropped > 0) {
        int bytes =
            snprintf(text, sizeof text, "%llu lines were dropped\n", (unsigned long long)dropped);
        if (janus_io_write(log->io, text, (size_t)bytes, NULL) != JANUS_OK)
            atomic_fetch_add(&log->dropped, dropped); /* seq_cst: rare */
    }
    if (log->bytes > 0 && janus_io_write(log->io, log->batch, log->bytes, NULL) != JANUS_OK) {
        atomic_fetch_add(&log->dropped, log->lines); /* seq_cst: rare */
    }
    log->bytes = log->lines = 0;
}

/* Writes a line and those that wait behind it: when the channel is empty, or the batch is full. */
static void write_waiting(struct jrt_http_log *log, struct line *line)
{
    do {
        size_t bytes = strnlen(line->text, sizeof line->text);
        if (bytes > sizeof log->batch - log->bytes) write_batch(log);
        memcpy(log->batch + log->bytes, line->text, bytes);
        log->bytes += bytes;
        log->lines++;
    } while (janus_channel_try_recv(log->channel, line) == JANUS_OK);
    write_batch(log);
}

/* The task of the log. */
static int64_t write_lines(void *argument)
{
    struct jrt_http_log *log = argument;
    struct line          line;
    janus_status         status;
    do {
        status = janus_channel_recv(log->channel, &line);
        if (status == JANUS_OK) write_waiting(log, &line);
    } while (status == JANUS_OK || jrt_http_try_again(status));
    write_batch(log); /* the last that were dropped */
    return 0;
}

janus_status jrt_http_log_open(struct jrt_http_server *server, janus_nursery *nursery)
{
    struct jrt_http_log *log = calloc(1, sizeof *log);
    if (log == NULL) return JANUS_NO_MEMORY;
    log->io = server->options.log;
    janus_status status = janus_channel_create(
        sizeof(struct line), server->options.log_lines,
        JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_FAIL, .name = "log"), &log->channel);
    if (status == JANUS_OK) {
        status = janus_spawn_with(nursery, write_lines, log,
                                  JANUS_SPAWN_OPTIONS(.name = "log", .unjoinable = true), NULL);
        if (status != JANUS_OK) JANUS_IGNORE(janus_channel_destroy(log->channel));
    }
    if (status != JANUS_OK) {
        free(log);
        return status;
    }
    server->log = log;
    return JANUS_OK;
}

void jrt_http_log_close(struct jrt_http_server *server)
{
    JANUS_IGNORE(janus_channel_close(server->log->channel));
}

void jrt_http_log_free(struct jrt_http_server *server)
{
    if (server->log == NULL) return;
    JANUS_IGNORE(janus_channel_destroy(server->log->channel));
    free(server->log);
    server->log = NULL;
}
