/* SPDX-License-Identifier: MIT */
/* The table of nasty requests, sent to the real server. */
#include "table.h"
#include "talk.h"

/* Reads the whole body. */
static int64_t take_all(janus_http *http, const janus_http_request *request)
{
    char         bytes[512];
    size_t       got;
    janus_status status = janus_http_limit_body(http, JANUS_HTTP_UNKNOWN);
    (void)request;
    while (status == JANUS_OK) status = janus_http_read(http, bytes, sizeof bytes, &got);
    return status == JANUS_CLOSED ? janus_http_answer(http, 200, NULL, NULL, 0) : status;
}

/* The statuses that a verdict asks for: "200 400". */
static void want_of(const char *verdict, char *out, size_t room)
{
    size_t bytes = 0;
    out[0] = '\0';
    for (const char *part = verdict; part != NULL;) {
        const char *next = strstr(part, " | ");
        const char *status = "200";
        char        own[8];
        const char *body = strstr(part, "body ");
        if (body != NULL && (next == NULL || body < next) && body[5] >= '4' && body[5] <= '5') {
            (void)snprintf(own, sizeof own, "%.3s", body + 5);
            status = own;
        } else if (part[0] >= '1' && part[0] <= '9') {
            (void)snprintf(own, sizeof own, "%.3s", part);
            status = own;
        } else if (strncmp(part, "more", 4) == 0) {
            break;
        } else if (next == NULL && strcmp(part + strlen(part) - 5, " more") == 0) {
            status = "400"; /* a body that was cut off */
        }
        bytes += (size_t)snprintf(out + bytes, room - bytes, "%s ", status);
        part = next != NULL ? next + 3 : NULL;
    }
}

/* The statuses in an answer, without 100. */
static void statuses_of(const char *text, char *out, size_t room)
{
    size_t bytes = 0;
    out[0] = '\0';
    while ((text = strstr(text, "HTTP/1.1 ")) != NULL) {
        bool digits = text[9] >= '1' && text[9] <= '5';
        if (digits && strncmp(text + 9, "100", 3) != 0) {
            bytes += (size_t)snprintf(out + bytes, room - bytes, "%.3s ", text + 9);
        }
        text += 9;
    }
}

static void send_rows(struct talk *talk)
{
    const struct table *table = table_read("requests.txt");
    int                 wrong = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        char              want[256], got[256];
        size_t            have = 0, more = 0;
        janus_io          io = talk_open(talk);
        janus_status      status = janus_io_write(io, row->bytes, row->count, NULL);
        if (status == JANUS_OK) (void)janus_io_shutdown(io, JANUS_IO_WRITE);
        do {
            status = janus_io_read(io, talk->text + have, TALK_BYTES - 1 - have, &more);
            have += more;
        } while (status == JANUS_OK);
        talk->text[have] = '\0';
        CHECK_EQ(janus_io_close(io), JANUS_OK);
        want_of(row->verdict, want, sizeof want);
        statuses_of(talk->text, got, sizeof got);
        if (strcmp(want, got) == 0) continue;
        printf("# requests.txt:%d: %s: %.100s: want %s got %s (%s)\n", row->line, row->reason,
               row->verdict, want, got, janus_status_name(status));
        wrong++;
    }
    CHECK_EQ(wrong, 0);
    CHECK(table->rows > 200);
}

TEST("the server gives every nasty request the verdict of the table")
{
    talk_run(&(struct talk){.handler = take_all, .client = send_rows});
}
