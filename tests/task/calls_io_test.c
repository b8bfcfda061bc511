/* SPDX-License-Identifier: MIT */
/* Repeated calls on descriptors, files, processes and signals. repeat.h explains how they are
 * measured. */
#include "repeat.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

struct things {
    janus_io      pair[2], slim, listener, datagram, dir, file, process;
    janus_address at, datagram_at;
    int           pipe[2]; /* without a byte in it */
    uint64_t      count;   /* of signals */
    char          bytes[64];
};

static const janus_io         none = {{0, 0}};
static const char *const      sleeper[] = {"sleep", "100000", NULL};
static const char *const      trivial[] = {"true", NULL};
static const janus_io_options plain = {.struct_bytes = sizeof plain};

static int64_t serve_nobody(janus_io io, void *argument)
{
    return argument == NULL ? (int64_t)io.opaque[0] : 0;
}

/* Bytes. */
CALL(io_write_read, size_t got; (void)!janus_io_write(t->pair[0], "x", 1, NULL);
     (void)!janus_io_read(t->pair[1], t->bytes, 1, &got))
CALL(io_pieces, size_t got; janus_io_piece piece = {t->bytes, 1};
     (void)!janus_io_writev(t->pair[0], &piece, 1, NULL);
     (void)!janus_io_readv(t->pair[1], &piece, 1, &got))
CALL(io_read_full, size_t got; (void)!janus_io_write(t->pair[0], "xx", 2, NULL);
     (void)!janus_io_read_full(t->pair[1], t->bytes, 2, &got))
CALL(io_try_read, size_t got; (void)!janus_io_try_read(t->pair[1], t->bytes, 1, &got))
CALL(io_try_write, size_t got; (void)!janus_io_try_write(t->pair[0], "x", 1, &got);
     (void)!janus_io_read(t->pair[1], t->bytes, 1, &got))
CALL(io_wait, (void)!janus_io_wait(t->pair[0], JANUS_IO_WRITE))
CALL(io_refused_read, size_t got; (void)!janus_io_read(none, t->bytes, 1, &got))

/* Handles. */
CALL(io_close, (void)janus_io_close(none))
CALL(
    io_pair, janus_io ends[2]; if (janus_io_pair(&plain, ends) == JANUS_OK) {
        janus_io_close(ends[0]), janus_io_close(ends[1]);
    })
CALL(
    io_pipe, janus_io ends[2]; if (janus_io_pipe(&plain, ends) == JANUS_OK) {
        janus_io_close(ends[0]), janus_io_close(ends[1]);
    })
CALL(io_attenuate, janus_io made; (void)!janus_io_attenuate(t->pair[0], JANUS_IO_MAY_READ, &made))
CALL(io_set_deadline, (void)janus_io_set_deadline(t->pair[0], JANUS_IO_READ, JANUS_IO_NEVER))
CALL(io_shutdown_refused, (void)janus_io_shutdown(t->file, JANUS_IO_WRITE))
CALL(io_take, (void)!janus_io_take(t->pair[0]))
CALL(io_adopt_release, janus_io made; int fd = dup(t->pipe[0]);
     if (janus_io_adopt(fd, NULL, &made) == JANUS_OK)(void) !janus_io_release(made, &fd); close(fd))
CALL(io_wait_fd, uint32_t ready;
     (void)!janus_io_wait_fd(t->pipe[1], JANUS_IO_WRITE, JANUS_IO_NEVER, &ready))
CALL(io_standard, janus_io made;
     if (janus_io_standard(1, NULL, &made) == JANUS_OK) janus_io_close(made))
CALL(io_inspect, janus_io_info info = JANUS_IO_INFO(); (void)janus_io_inspect(t->pair[0], &info))

/* Sockets. */
CALL(listen_close, janus_io made; janus_address at = t->at; at.port = 0;
     if (janus_listen(&at, NULL, &made) == JANUS_OK) janus_io_close(made))
CALL(
    connect_accept, janus_io ends[2]; if (janus_connect(&t->at, NULL, &ends[0]) == JANUS_OK &&
                                          janus_accept(t->listener, &ends[1], NULL) == JANUS_OK) {
        janus_io_close(ends[0]), janus_io_close(ends[1]);
    })
CALL(serve_refused, (void)!janus_serve(t->pair[0], serve_nobody, NULL, NULL, NULL))
CALL(resolve_number, size_t count; janus_address out;
     (void)!janus_resolve("127.0.0.1", "80", &out, 1, &count))
CALL(connect_name_refused, janus_io made; (void)!janus_connect_name("127.0.0.1", "1", NULL, &made))
CALL(datagrams, janus_io made; if (janus_datagram_open(NULL, JANUS_FAMILY_IPV4, NULL, &made) ==
                                   JANUS_OK) janus_io_close(made))
CALL(datagram_send_receive, size_t got;
     if (janus_datagram_send(t->datagram, "x", 1, &t->datagram_at) ==
         JANUS_OK)(void) !janus_datagram_receive(t->datagram, t->bytes, 1, &got, NULL, NULL))
CALL(address_parse, janus_address at; (void)!janus_address_parse("[fe80::1%nowhere]:80", &at))
CALL(address_text, char text[JANUS_ADDRESS_TEXT_BYTES]; (void)
         janus_address_text(&(janus_address){.family = JANUS_FAMILY_IPV6,
                                             .count = 16,
                                             .bytes = {32, 1, 13, 184, 18, 52, 86, 120, 154, 188}},
                            text, sizeof text))
CALL(io_addresses, janus_address out; (void)!janus_io_local(t->listener, &out);
     (void)!janus_io_peer(t->pair[0], &out))
CALL(io_credentials, janus_credentials who; (void)!janus_io_credentials(t->pair[0], &who))
CALL(io_pass, janus_io made;
     if (janus_io_send_handle(t->pair[0], t->pair[0]) == JANUS_OK &&
         janus_io_receive_handle(t->pair[1], NULL, &made) == JANUS_OK) janus_io_close(made))

/* Files. */
CALL(dir_open, janus_io made;
     if (janus_dir_open("/", JANUS_RIGHT_FILE_READ, NULL, &made) == JANUS_OK) janus_io_close(made))
CALL(dir_open_in, janus_io made;
     if (janus_dir_open_in(t->dir, ".", NULL, &made) == JANUS_OK) janus_io_close(made))
CALL(dir_list, janus_dir_entry entry; size_t count; (void)!janus_file_seek(t->dir, 0);
     (void)!janus_dir_list(t->dir, &entry, 1, &count))
CALL(dir_changes, (void)!janus_dir_make(t->dir, "sub", 0); (void)!janus_dir_remove(t->dir, "sub"))
CALL(dir_inspect, janus_file_info info = JANUS_FILE_INFO();
     (void)!janus_dir_inspect(t->dir, ".", &info))
CALL(file_open, janus_io made; if (janus_file_open(t->dir, "file", JANUS_OPEN_READ, NULL, &made) ==
                                   JANUS_OK) janus_io_close(made))
CALL(file_at, size_t got; (void)!janus_file_write_at(t->file, 0, "x", 1, &got);
     (void)!janus_file_read_at(t->file, 0, t->bytes, 1, &got))
CALL(file_read_cached, size_t got; (void)!janus_file_read_at(t->file, 0, t->bytes, 1, &got))
CALL(file_seek, (void)!janus_file_seek(t->file, 0))
CALL(file_sync, (void)!janus_file_sync(t->file, false))
CALL(file_truncate, (void)!janus_file_truncate(t->file, 1))
CALL(file_inspect, janus_file_info info = JANUS_FILE_INFO();
     (void)!janus_file_inspect(t->file, &info))
CALL(file_remove, (void)!janus_file_remove(t->dir, "none"))
CALL(file_rename, (void)!janus_file_rename(t->dir, "none", t->dir, "other", false))

/* Processes and signals. */
CALL(
    process_life, janus_io made; janus_process_end end;
    if (janus_process_start("/bin/true", trivial, NULL, &made, NULL) == JANUS_OK) {
        (void)!janus_process_wait(made, &end);
        janus_io_close(made);
    })
CALL(process_signal, (void)!janus_process_signal(t->process, 0))
CALL(process_inspect, janus_process_info info = JANUS_PROCESS_INFO();
     (void)!janus_process_inspect(t->process, &info))
CALL(signal_catch, if (janus_signal_catch(SIGUSR2, NULL) == JANUS_OK) janus_signal_release(SIGUSR2))
CALL(signal_wait_late, (void)!janus_signal_wait(SIGUSR1, 0))
CALL(signal_next, (void)!janus_signal_raise(SIGUSR1);
     (void)!janus_signal_wait_next(SIGUSR1, &t->count, JANUS_IO_NEVER))

static const struct repeat_call calls[] = {
    ROW(io_write_read),
    ROW(io_pieces),
    ROW(io_read_full),
    ROW(io_try_read),
    ROW(io_try_write),
    ROW(io_wait),
    ROW(io_refused_read),
    ROW(io_close),
    ROW(io_pair),
    ROW(io_pipe),
    ROW(io_attenuate),
    ROW(io_set_deadline),
    ROW(io_shutdown_refused),
    ROW(io_take),
    ROW(io_adopt_release),
    ROW(io_wait_fd),
    ROW(io_standard),
    ROW(io_inspect),
    ROW(listen_close),
    ROW(connect_accept),
    ROW(serve_refused),
    ROW(resolve_number),
    ROW(connect_name_refused),
    ROW(datagrams),
    ROW(datagram_send_receive),
    ROW(address_parse),
    ROW(address_text),
    ROW(io_addresses),
    ROW(io_credentials),
    ROW(io_pass),
    ROW(dir_open),
    ROW(dir_open_in),
    ROW(dir_list),
    ROW(dir_changes),
    ROW(dir_inspect),
    ROW(file_open),
    ROW(file_at),
    ROW(file_read_cached),
    ROW(file_seek),
    ROW(file_sync),
    ROW(file_truncate),
    ROW(file_inspect),
    ROW(file_remove),
    ROW(file_rename),
    ROW(process_life),
    ROW(process_signal),
    ROW(process_inspect),
    ROW(signal_catch),
    ROW(signal_wait_late),
    ROW(signal_next),
};

static char folder[64];

static void open_things(struct things *t)
{
    const uint32_t files = JANUS_RIGHT_FILE_READ | JANUS_RIGHT_FILE_LIST | JANUS_RIGHT_FILE_WRITE |
                           JANUS_RIGHT_FILE_CREATE | JANUS_RIGHT_FILE_REMOVE;
    const uint32_t how = JANUS_OPEN_READ | JANUS_OPEN_WRITE | JANUS_OPEN_CREATE;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &t->at), JANUS_OK);
    CHECK_EQ(janus_io_pair(NULL, t->pair), JANUS_OK);
    CHECK_EQ(janus_datagram_open(&t->at, JANUS_FAMILY_IPV4, NULL, &t->datagram), JANUS_OK);
    CHECK_EQ(janus_io_local(t->datagram, &t->datagram_at), JANUS_OK);
    CHECK_EQ(janus_listen(&t->at, NULL, &t->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(t->listener, &t->at), JANUS_OK);
    CHECK_EQ(janus_dir_open(folder, files, NULL, &t->dir), JANUS_OK);
    CHECK_EQ(janus_file_open(t->dir, "file", how, NULL, &t->file), JANUS_OK);
    CHECK_EQ(janus_process_start("/bin/sleep", sleeper, NULL, &t->process, NULL), JANUS_OK);
    CHECK_EQ(janus_signal_catch(SIGUSR1, &t->count), JANUS_OK);
    CHECK_EQ(pipe(t->pipe), 0);
}

static void close_things(struct things *t)
{
    CHECK_EQ(janus_signal_release(SIGUSR1), JANUS_OK);
    close(t->pipe[0]);
    close(t->pipe[1]); /* the task's end closes the rest */
}

TEST("beside a task that repeats any call on descriptors, files or processes, a neighbour has half "
     "of the worker")
{
    static const struct repeat_kit kit = {open_things, close_things};
    struct things                  things = {.count = 0};
    RIG_REAL("shares of real time are compared");
    if (RIG_SLOW) SKIP("calls take other times under sanitizers and emulation");
    snprintf(folder, sizeof folder, "/tmp/janusrt_calls.XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    int  starved = repeat_all(calls, sizeof calls / sizeof *calls, &kit, &things);
    char path[80];
    snprintf(path, sizeof path, "%s/file", folder);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
    CHECK_EQ(starved, 0);
}
