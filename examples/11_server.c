/* SPDX-License-Identifier: MIT */
/*
 * A server that adds numbers, and three clients. Each connection has a task, a deadline and a
 * budget. So a client that says nothing harms itself alone, and so does a client that sends without
 * end.
 * With JANUSRT_SEED=7 in the environment the same program runs on a simulated network.
 */
#include <janusrt/janus.h>
#include <stdio.h>
#include <string.h>

/* Reads numbers of one digit up to a newline, and answers with their sum. */
static int64_t serve(janus_io io, void *argument)
{
    unsigned     sum = 0;
    janus_status status;
    (void)argument;
    for (;;) {
        char   digits[16], answer[16];
        size_t got;
        janus_io_set_deadline(io, JANUS_IO_READ, janus_now_ns() + 100 * JANUS_MS);
        if ((status = janus_io_read(io, digits, sizeof digits, &got)) != JANUS_OK) break;
        for (size_t i = 0; i < got; i++) {
            if (digits[i] != '\n') {
                sum += (unsigned)(digits[i] - '0');
                continue;
            }
            int length = snprintf(answer, sizeof answer, "%u\n", sum);
            if (janus_io_write(io, answer, (size_t)length, NULL) != JANUS_OK) return 0;
            sum = 0;
        }
    }
    return status == JANUS_CLOSED ? 0 : status;
}

/* Sends `text` again and again, `times` times, and reads until the server closes. */
static unsigned talk(const janus_address *server, const char *text, int times)
{
    janus_io     io;
    char         answer[64];
    size_t       got = 0, all = 0;
    janus_status status = janus_connect(server, NULL, &io);
    for (int i = 0; i < times && status == JANUS_OK; i++) {
        status = janus_io_write(io, text, strlen(text), NULL);
    }
    if (times > 0 && status == JANUS_OK) status = janus_io_shutdown(io, JANUS_IO_WRITE);
    while (status == JANUS_OK) {
        status = janus_io_read(io, answer, sizeof answer, &got);
        all += got;
    }
    JANUS_IGNORE(janus_io_close(io));
    return (unsigned)all;
}

static int64_t visit(void *argument)
{
    janus_io     *listener = argument;
    janus_address server;
    janus_status  status = janus_io_local(*listener, &server);
    if (status != JANUS_OK) return status;
    printf("a client that says nothing gets %u bytes\n", talk(&server, "", 0));
    printf("a client that sends without end is cut off: %s\n",
           talk(&server, "123456789123456", 100000) == 0 ? "yes" : "no");
    printf("a client that behaves gets %u bytes\n", talk(&server, "1234\n", 2));
    return janus_io_close(*listener); /* then janus_serve returns */
}

static int64_t first_task(void *argument)
{
    const janus_budget limit = JANUS_BUDGET(.ops = 10000, .syscalls = 1000);
    janus_address      at;
    janus_io           listener;
    janus_status       status, served = JANUS_OK;
    (void)argument;
    if (janus_address_parse("127.0.0.1:0", &at) != JANUS_OK) return -100;
    if ((status = janus_listen(&at, NULL, &listener)) != JANUS_OK) return status;
    JANUS_NURSERY(clients, status)
    {
        if (janus_spawn(clients, visit, &listener) != JANUS_OK) break;
        served = janus_serve(listener, serve, NULL, NULL, JANUS_SPAWN_OPTIONS(.budget = &limit));
    }
    printf("the server ended: %s\n", janus_status_name(served));
    return status;
}

int main(void) { return janus_run(NULL, first_task, NULL, NULL) == JANUS_OK ? 0 : 1; }

/* Prints:
 * a client that says nothing gets 0 bytes
 * a client that sends without end is cut off: yes
 * a client that behaves gets 6 bytes
 * the server ended: JANUS_CHILD_FAILED
 */
