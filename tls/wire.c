/* SPDX-License-Identifier: MIT */
/*
 * A connection. OpenSSL works on buffers, and tasks move bytes between the buffers and the
 * connection.
 *
 * A reader and a writer may be different tasks. Both lock `state` around calls of OpenSSL. What
 * OpenSSL wants to send is in `out`. The holder of `writing` takes it away and sends it. A reader
 * may cause bytes to send, too: alerts. It sends them if that needs no wait, and otherwise leaves
 * them to the next write.
 */
#include "tls/tls.h"

#include <janusrt/task.h>
#include <janusrt/yield.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_BYTES = 16384 + 1024, /* a record, and a little of the next */
    RECORD_BYTES = 16384,    /* of plain bytes */
    GATHERED_BYTES = 65536,  /* plain bytes that leave in one write */
    SHAKE_OPS = 25000,       /* for each step of a handshake; it has two or three */
    PORTION_OPS = 5000,      /* paid at once */
    CALL_OPS = 100,          /* for each other call of OpenSSL */
    BYTES_OF_OP = 8,         /* that a cipher does for one op */
    DEPTH_BYTES = 12288,     /* of stack, for a call of OpenSSL: it needs up to 8 KiB */
    FAREWELL_BYTES = 65536,  /* read and dropped after a handshake that failed */
};

#define FAREWELL_NS (1000 * UINT64_C(1000000))

/* What a call of OpenSSL came to. */
enum step {
    STEP_DONE,
    STEP_MORE, /* it needs bytes from the connection */
    STEP_OVER, /* the other end has closed */
    STEP_BAD,
};

static struct jrt_tls_wire *wire_of(janus_wire *wire) { return (struct jrt_tls_wire *)wire; }

janus_status jrt_tls_pay(uint32_t ops)
{
    janus_status status = JANUS_OK;
    for (; ops > PORTION_OPS && status == JANUS_OK; ops -= PORTION_OPS) {
        status = janus_check_n(PORTION_OPS);
    }
    return status == JANUS_OK ? janus_check_n(ops) : status;
}

/*
 * Touches the stack as deep as OpenSSL may need it. A task whose stack ends there panics here, and
 * not inside of OpenSSL, with locks of OpenSSL held. One byte is enough: the guard below a stack is
 * larger.
 */
__attribute__((noinline)) static void probe_stack(void)
{
    char depth[DEPTH_BYTES];
    __asm__ volatile(""
                     :
                     : "r"(memset(depth, 0, 1))
                     : "memory"); /* the compiler must not leave it out */
}

/* Locks `state`, whether the task is cancelled or not. False: OpenSSL cannot be called. */
static bool lock(struct jrt_tls_wire *wire)
{
    janus_status status = janus_mutex_try_lock(&wire->state);
    if (status == JANUS_WOULD_WAIT) {
        /* A shield with a deadline does not end with the scheduler's grace_ns. */
        janus_shield shield;
        janus_shield_begin_until(&shield, JANUS_IO_NEVER - 1);
        status = janus_mutex_lock(&wire->state);
        janus_shield_end();
    }
    if (status != JANUS_OK || !janus_mutex_is_abandoned(&wire->state)) return status == JANUS_OK;
    JANUS_IGNORE(janus_mutex_unlock(&wire->state)); /* its holder has ended in OpenSSL */
    return false;
}

static void unlock(struct jrt_tls_wire *wire) { JANUS_IGNORE(janus_mutex_unlock(&wire->state)); }

/* Judges the result of a call of OpenSSL, on the same thread. The caller holds `state`. */
static enum step judge(struct jrt_tls_wire *wire, int result)
{
    int error = SSL_get_error(wire->ssl, result);
    if (error == SSL_ERROR_NONE) return STEP_DONE;
    if (error == SSL_ERROR_WANT_READ) return STEP_MORE;
    if (error == SSL_ERROR_ZERO_RETURN) return STEP_OVER;
    unsigned long code = ERR_peek_error();
    wire->reason = ERR_GET_REASON(code);
    wire->why = ERR_reason_error_string(code);
    if (wire->why == NULL) wire->why = "OpenSSL does not say why";
    wire->failed = true;
    ERR_clear_error();
    return STEP_BAD;
}

/* Sends what OpenSSL has written. The caller holds `writing`. */
static janus_status flush(struct jrt_tls_wire *wire, bool waits)
{
    for (;;) {
        if (wire->sending == NULL) {
            if (!lock(wire)) return JANUS_NO_MEMORY;
            wire->sending = wire->out;
            wire->sending_bytes = wire->out_bytes;
            wire->sending_at = 0;
            wire->out = NULL;
            wire->out_bytes = wire->out_room = 0;
            unlock(wire);
        }
        if (wire->sending == NULL) return JANUS_OK;
        size_t       left = wire->sending_bytes - wire->sending_at, done = 0;
        const char  *from = wire->sending + wire->sending_at;
        janus_status status = waits ? janus_io_write(wire->io, from, left, &done)
                                    : janus_io_try_write(wire->io, from, left, &done);
        wire->sending_at += done;
        if (status != JANUS_OK) return status;
        if (wire->sending_at < wire->sending_bytes) continue;
        free(wire->sending);
        wire->sending = NULL;
    }
}

/* Begins to write. BROKEN: a task has ended while it wrote. */
static janus_status begin_write(struct jrt_tls_wire *wire, bool waits)
{
    janus_status status =
        waits ? janus_mutex_lock(&wire->writing) : janus_mutex_try_lock(&wire->writing);
    if (status != JANUS_OK || !janus_mutex_is_abandoned(&wire->writing)) return status;
    JANUS_IGNORE(janus_mutex_unlock(&wire->writing));
    return JANUS_BROKEN;
}

static void end_write(struct jrt_tls_wire *wire)
{
    JANUS_IGNORE(janus_mutex_unlock(&wire->writing));
}

/* Sends what a read has caused, if that needs no wait. Otherwise the next read tries again, or the
 * next write sends it. */
static void flush_softly(struct jrt_tls_wire *wire)
{
    wire->owes = true;
    if (begin_write(wire, false) != JANUS_OK) return;
    wire->owes = flush(wire, false) == JANUS_WOULD_WAIT;
    end_write(wire);
}

/* Gets bytes for OpenSSL, which has taken all that were there. */
static janus_status fetch(struct jrt_tls_wire *wire, bool waits)
{
    size_t got = 0;
    if (wire->in == NULL) wire->in = malloc(IN_BYTES);
    if (wire->in == NULL) return JANUS_NO_MEMORY;
    janus_status status = waits ? janus_io_read(wire->io, wire->in, IN_BYTES, &got)
                                : janus_io_try_read(wire->io, wire->in, IN_BYTES, &got);
    if (status == JANUS_CLOSED) status = JANUS_RESET; /* cut: the other end did not say so */
    if (status != JANUS_OK) return status;
    if (!lock(wire)) return JANUS_NO_MEMORY;
    wire->in_at = 0;
    wire->in_end = got;
    unlock(wire);
    return JANUS_OK;
}

/* An idle connection has no buffer. */
static void drop_in(struct jrt_tls_wire *wire)
{
    free(wire->in);
    wire->in = NULL;
}

/* Reads plain bytes. With `peek` it leaves them there. */
static enum step take(struct jrt_tls_wire *wire, void *to, size_t max, size_t *got, bool peek,
                      bool *answers)
{
    if (!lock(wire)) return STEP_BAD;
    ERR_clear_error();
    int result = peek ? SSL_peek_ex(wire->ssl, to, max, got) : SSL_read_ex(wire->ssl, to, max, got);
    enum step step = judge(wire, result);
    *answers = wire->out_bytes > 0;
    unlock(wire);
    return step;
}

/* Reads what has come. WOULD_WAIT: OpenSSL needs more bytes. */
static janus_status read_here(struct jrt_tls_wire *wire, void *to, size_t max, size_t *got,
                              bool peek)
{
    bool answers = false;
    *got = 0;
    if (wire->read_over != JANUS_OK) return wire->read_over;
    if (!peek) probe_stack(); /* a task that peeks is the server's own, and keeps its pages */
    janus_status status =
        jrt_tls_pay(CALL_OPS + (uint32_t)(wire->in_end - wire->in_at) / BYTES_OF_OP);
    if (status != JANUS_OK) return status;
    enum step step = take(wire, to, max, got, peek, &answers);
    if (answers || wire->owes) flush_softly(wire);
    switch (step) {
    case STEP_DONE: return JANUS_OK;
    case STEP_MORE: return JANUS_WOULD_WAIT;
    case STEP_OVER: return wire->read_over = JANUS_CLOSED;
    default: return wire->read_over = JANUS_RESET;
    }
}

static janus_status read_plain(janus_wire *head, void *to, size_t max, size_t *got)
{
    struct jrt_tls_wire *wire = wire_of(head);
    for (;;) {
        janus_status status = read_here(wire, to, max, got, false);
        if (status != JANUS_WOULD_WAIT) return status;
        status = fetch(wire, true);
        if (status != JANUS_OK) return status;
    }
}

static janus_status try_read_plain(janus_wire *head, void *to, size_t max, size_t *got)
{
    struct jrt_tls_wire *wire = wire_of(head);
    for (;;) {
        janus_status status = read_here(wire, to, max, got, false);
        if (status != JANUS_WOULD_WAIT) return status;
        status = fetch(wire, false);
        if (status == JANUS_WOULD_WAIT) drop_in(wire);
        if (status != JANUS_OK) return status;
    }
}

static janus_status wait_plain(janus_wire *head)
{
    struct jrt_tls_wire *wire = wire_of(head);
    for (;;) {
        char         byte;
        size_t       got = 0;
        janus_status status = read_here(wire, &byte, 1, &got, true);
        if (wire->read_over != JANUS_OK) return JANUS_OK; /* the next read reports it */
        if (status != JANUS_WOULD_WAIT) return status;
        drop_in(wire);
        status = janus_io_wait(wire->io, JANUS_IO_READ);
        if (status != JANUS_OK) return status;
        status = fetch(wire, false);
        if (status == JANUS_RESET) return wire->read_over = status, JANUS_OK;
        if (status != JANUS_OK && status != JANUS_WOULD_WAIT) return status;
    }
}

/* Encrypts up to GATHERED_BYTES, in records. */
static janus_status seal(struct jrt_tls_wire *wire, const char *from, size_t count, size_t *done)
{
    enum step step = STEP_DONE;
    if (count > GATHERED_BYTES) count = GATHERED_BYTES;
    janus_status status = jrt_tls_pay(CALL_OPS + (uint32_t)count / BYTES_OF_OP);
    if (status != JANUS_OK) return status;
    if (!lock(wire)) return JANUS_NO_MEMORY;
    if (wire->failed) step = STEP_BAD;
    for (size_t at = 0; at < count && step == STEP_DONE;) {
        size_t now = count - at < RECORD_BYTES ? count - at : RECORD_BYTES, taken = 0;
        ERR_clear_error();
        step = judge(wire, SSL_write_ex(wire->ssl, from + at, now, &taken));
        at += taken;
        *done += taken;
    }
    unlock(wire);
    return step == STEP_DONE ? JANUS_OK : JANUS_BROKEN;
}

/* Writes bytes that lie together. */
static janus_status write_run(struct jrt_tls_wire *wire, const char *from, size_t count,
                              size_t *done)
{
    janus_status status = JANUS_OK;
    for (size_t at = 0; at < count && status == JANUS_OK;) {
        size_t taken = 0;
        status = seal(wire, from + at, count - at, &taken);
        at += taken;
        *done += taken;
        if (status == JANUS_OK) status = flush(wire, true);
    }
    return status;
}

/* Copies small pieces together, so that they leave in one record. NULL: they are not small. */
static char *gather(const janus_io_piece *pieces, uint32_t count, size_t *bytes)
{
    size_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].count > RECORD_BYTES) return NULL;
        all += pieces[i].count;
    }
    if (count < 2 || all > RECORD_BYTES) return NULL;
    char *together = malloc(all);
    if (together == NULL) return NULL;
    for (uint32_t i = 0, at = 0; i < count; i++) {
        memcpy(together + at, pieces[i].bytes, pieces[i].count);
        at += (uint32_t)pieces[i].count;
    }
    *bytes = all;
    return together;
}

static janus_status write_plain(janus_wire *head, const janus_io_piece *pieces, uint32_t count,
                                size_t *done)
{
    struct jrt_tls_wire *wire = wire_of(head);
    size_t               bytes = 0;
    *done = 0;
    probe_stack();
    janus_status status = begin_write(wire, true);
    if (status != JANUS_OK) return status;
    status = flush(wire, true); /* what an earlier call has left */
    wire->together = status == JANUS_OK ? gather(pieces, count, &bytes) : NULL;
    if (wire->together != NULL) {
        status = seal(wire, wire->together, bytes, done); /* the task may end inside */
        free(wire->together);
        wire->together = NULL;
        if (status == JANUS_OK) status = flush(wire, true);
    } else {
        for (uint32_t i = 0; i < count && status == JANUS_OK; i++) {
            status = write_run(wire, pieces[i].bytes, pieces[i].count, done);
        }
    }
    end_write(wire);
    return status;
}

static janus_status end_plain(janus_wire *head, bool waits)
{
    struct jrt_tls_wire *wire = wire_of(head);
    janus_status         status = wire->open ? begin_write(wire, waits) : JANUS_STATE;
    if (status == JANUS_OK) {
        if (lock(wire)) {
            ERR_clear_error();
            if (!wire->failed) (void)SSL_shutdown(wire->ssl); /* says close_notify */
            ERR_clear_error();
            unlock(wire);
        }
        status = flush(wire, waits);
        end_write(wire);
    }
    if (waits && status == JANUS_OK) status = janus_io_shutdown(wire->io, JANUS_IO_WRITE);
    return status;
}

/* Tells a client that speaks plain HTTP, or the alert, and lets the client read it. A connection
 * that is closed with unread bytes is reset, and the reset may overtake what was sent. */
static void say_farewell(struct jrt_tls_wire *wire)
{
    static const char plain[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                                "Content-Length: 43\r\nConnection: close\r\n\r\n"
                                "This port speaks HTTPS. Use https:// here.\n";
    size_t            got = 0, dropped = 0;
    bool              http = wire->reason == SSL_R_HTTP_REQUEST && wire->side->is_server;
    uint64_t          end = janus_now_ns() + FAREWELL_NS;
    JANUS_IGNORE(janus_io_set_deadline(wire->io, JANUS_IO_BOTH, end));
    if (http) {
        JANUS_IGNORE(janus_io_write(wire->io, plain, sizeof plain - 1, &got));
    } else if (begin_write(wire, true) == JANUS_OK) {
        JANUS_IGNORE(flush(wire, true));
        end_write(wire);
    }
    if (wire->in == NULL || janus_io_shutdown(wire->io, JANUS_IO_WRITE) != JANUS_OK) return;
    while (dropped < FAREWELL_BYTES &&
           janus_io_read(wire->io, wire->in, IN_BYTES, &got) == JANUS_OK) {
        dropped += got;
    }
}

/* The handshake has failed: what to tell the caller. */
static janus_status blame(struct jrt_tls_wire *wire, const char **why)
{
    long verdict = SSL_get_verify_result(wire->ssl);
    bool distrust = !wire->side->is_server && verdict != X509_V_OK;
    *why = distrust ? X509_verify_cert_error_string(verdict) : wire->why;
    return distrust ? JANUS_DENIED : JANUS_INVALID;
}

static enum step shake(struct jrt_tls_wire *wire)
{
    probe_stack();
    wire->now_ns = janus_now_ns();
    if (!lock(wire)) return STEP_BAD;
    ERR_clear_error();
    enum step step = judge(wire, SSL_do_handshake(wire->ssl));
    unlock(wire);
    return step;
}

static janus_status open_plain(janus_wire *head, const char **why)
{
    struct jrt_tls_wire *wire = wire_of(head);
    janus_status         status = JANUS_OK;
    enum step            step = STEP_MORE;
    const char          *reason = NULL;
    while (status == JANUS_OK && step == STEP_MORE) {
        step = shake(wire);
        status = jrt_tls_pay(SHAKE_OPS);
        if (status != JANUS_OK || step == STEP_BAD) break;
        status = begin_write(wire, true);
        if (status != JANUS_OK) break;
        status = flush(wire, true);
        end_write(wire);
        if (status == JANUS_OK && step == STEP_MORE) status = fetch(wire, true);
    }
    if (status == JANUS_OK && step != STEP_DONE) {
        status = blame(wire, &reason);
        *why = reason;
    }
    jrt_tls_count(wire, status == JANUS_OK, reason != NULL ? reason : janus_status_text(status));
    wire->open = status == JANUS_OK;
    if (reason != NULL) say_farewell(wire);
    return status;
}

static void destroy(janus_wire *head)
{
    struct jrt_tls_wire *wire = wire_of(head);
    struct jrt_tls_side *side = wire->side;
    if (!janus_mutex_is_abandoned(&wire->state))
        SSL_free(wire->ssl); /* else nobody knows its state */
    ERR_clear_error();
    free(wire->in);
    free(wire->out);
    free(wire->together);
    free(wire->sending);
    free(wire);
    jrt_tls_side_release(side);
}

/* Tells the server which host the client wants, and checks the certificate for it later. */
static bool set_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) return true;
    ERR_clear_error();
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

static SSL *make_ssl(struct jrt_tls_side *side, struct jrt_tls_wire *wire, const char *host)
{
    (void)pthread_mutex_lock(&side->mutex);
    SSL_CTX *context = side->context;
    int      held = SSL_CTX_up_ref(context);
    (void)pthread_mutex_unlock(&side->mutex);
    if (held != 1) return NULL;
    SSL *ssl = SSL_new(context);
    SSL_CTX_free(context); /* the connection holds it now */
    BIO *bio = ssl != NULL ? jrt_tls_bio(wire) : NULL;
    if (bio == NULL || (!side->is_server && (host == NULL || !set_host(ssl, host))) ||
        SSL_set_app_data(ssl, wire) != 1) {
        BIO_free(bio);
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_bio(ssl, bio, bio);
    if (side->is_server) {
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
    }
    return ssl;
}

static janus_status create(const janus_wire_maker *maker, janus_io io, const char *host,
                           janus_wire **out)
{
    /* The maker is a part of a side that is ours. */
    struct jrt_tls_side *side = (struct jrt_tls_side *)(uintptr_t)maker;
    struct jrt_tls_wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL) return JANUS_NO_MEMORY;
    wire->head.maker = maker;
    wire->side = side;
    wire->io = io;
    janus_mutex_init(&wire->state, "tls");
    janus_mutex_init(&wire->writing, "tls writer");
    ERR_clear_error();
    wire->ssl = make_ssl(side, wire, host);
    ERR_clear_error();
    if (wire->ssl == NULL) {
        free(wire);
        return JANUS_NO_MEMORY;
    }
    atomic_fetch_add(&side->refs, 1); /* seq_cst: rare */
    *out = &wire->head;
    return JANUS_OK;
}

void jrt_tls_side_init(struct jrt_tls_side *side, bool is_server)
{
    side->maker = (janus_wire_maker){.struct_bytes = sizeof side->maker,
                                     .stack_bytes = JANUS_TLS_STACK_BYTES,
                                     .create = create,
                                     .open = open_plain,
                                     .read = read_plain,
                                     .try_read = try_read_plain,
                                     .wait = wait_plain,
                                     .write = write_plain,
                                     .end = end_plain,
                                     .destroy = destroy};
    atomic_store(&side->refs, 1); /* seq_cst: rare */
    side->is_server = is_server;
    (void)pthread_mutex_init(&side->mutex, NULL);
}

void jrt_tls_side_release(struct jrt_tls_side *side)
{
    if (atomic_fetch_sub(&side->refs, 1) != 1) return; /* seq_cst: rare */
    SSL_CTX_free(side->context);
    (void)pthread_mutex_destroy(&side->mutex);
    if (side->is_server) jrt_tls_server_free((janus_tls_server *)side);
    free(side);
}
