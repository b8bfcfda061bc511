/* SPDX-License-Identifier: MIT */
/*
 * The bytes between OpenSSL and a connection. OpenSSL takes from the wire's `in`, and adds to its
 * `out`. Nothing here waits: if `in` is empty, OpenSSL returns and asks for more.
 */
#include "tls/tls.h"

#include <openssl/bio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUT_STEP_BYTES = 1024,
    OUT_BYTES_MAX = 1 << 18, /* a peer that makes us answer, and reads nothing */
};

static int take(BIO *bio, char *to, size_t max, size_t *got)
{
    struct jrt_tls_wire *wire = BIO_get_data(bio);
    size_t               there = wire->in_end - wire->in_at;
    BIO_clear_retry_flags(bio);
    if (there == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    *got = there < max ? there : max;
    memcpy(to, wire->in + wire->in_at, *got);
    wire->in_at += *got;
    return 1;
}

static int add(BIO *bio, const char *from, size_t count, size_t *done)
{
    struct jrt_tls_wire *wire = BIO_get_data(bio);
    size_t               least = wire->out_bytes + count;
    BIO_clear_retry_flags(bio);
    if (least > OUT_BYTES_MAX) return 0;
    if (least > wire->out_room) {
        size_t room = (least + OUT_STEP_BYTES - 1) / OUT_STEP_BYTES * OUT_STEP_BYTES;
        if (room < 2 * wire->out_room) room = 2 * wire->out_room;
        char *larger = realloc(wire->out, room);
        if (larger == NULL) return 0;
        wire->out = larger;
        wire->out_room = room;
    }
    memcpy(wire->out + wire->out_bytes, from, count);
    wire->out_bytes = least;
    *done = count;
    return 1;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "janusrt");
    if (method == NULL) return NULL;
    if (BIO_meth_set_read_ex(method, take) == 1 && BIO_meth_set_write_ex(method, add) == 1 &&
        BIO_meth_set_ctrl(method, control) == 1) {
        return method;
    }
    BIO_meth_free(method);
    return NULL;
}

static BIO_METHOD    *method;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void           make_once(void) { method = make_method(); }

BIO *jrt_tls_bio(struct jrt_tls_wire *wire)
{
    (void)pthread_once(&once, make_once);
    BIO *bio = method != NULL ? BIO_new(method) : NULL;
    if (bio == NULL) return NULL;
    BIO_set_data(bio, wire);
    BIO_set_init(bio, 1);
    return bio;
}
