/* SPDX-License-Identifier: MIT */
/*
 * Keys of session tickets. A key encrypts for ticket_ns, and decrypts for as long again. Then it is
 * overwritten: a thief of the memory cannot read sessions that are older. Reloads keep the keys.
 */
#include "tls/tls.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

/* How old a key is. Each step of a handshake has its own time, so a key may be younger. */
static uint64_t age_of(const struct jrt_tls_ticket_key *key, uint64_t now)
{
    return now > key->born_ns ? now - key->born_ns : 0;
}

/* Makes a new key if the newest is too old. The caller holds the mutex. False: no random bytes. */
static bool rotate(janus_tls_server *server, uint64_t now)
{
    struct jrt_tls_ticket_key *newest = &server->keys[0], *before = &server->keys[1];
    uint64_t                   age = server->options.ticket_ns;
    if (before->born_ns != 0 && age_of(before, now) >= 2 * age) {
        OPENSSL_cleanse(before, sizeof *before);
    }
    if (newest->born_ns != 0 && age_of(newest, now) < age) return true;
    struct jrt_tls_ticket_key fresh = {.born_ns = now != 0 ? now : 1};
    if (RAND_bytes(fresh.name, sizeof fresh.name) != 1 ||
        RAND_priv_bytes(fresh.cipher, sizeof fresh.cipher) != 1 ||
        RAND_priv_bytes(fresh.mac, sizeof fresh.mac) != 1) {
        return false;
    }
    bool serves = newest->born_ns != 0 && age_of(newest, now) < 2 * age;
    if (serves) *before = *newest;
    *newest = fresh;
    OPENSSL_cleanse(&fresh, sizeof fresh);
    return true;
}

/* Copies the key for a ticket. Returns 1, or 2 if the ticket should be replaced, or 0: none. */
static int choose(janus_tls_server *server, uint64_t now, const unsigned char *name, bool encrypts,
                  struct jrt_tls_ticket_key *out)
{
    int found = 0;
    (void)pthread_mutex_lock(&server->side.mutex);
    if (rotate(server, now)) {
        for (int i = 0; i < JRT_TLS_KEYS && found == 0; i++) {
            const struct jrt_tls_ticket_key *key = &server->keys[i];
            if (key->born_ns == 0) continue;
            if (!encrypts && CRYPTO_memcmp(key->name, name, sizeof key->name) != 0) continue;
            *out = *key;
            found = i + 1;
        }
    }
    (void)pthread_mutex_unlock(&server->side.mutex);
    return found;
}

static EVP_CIPHER    *cipher; /* fetched once: each look-up takes locks */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void           fetch(void) { cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL); }

/* OpenSSL asks for the key of a ticket. Returns negative: error, 0: no key, else as `choose`. */
static int set_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher_context,
                   EVP_MAC_CTX *mac, int encrypts)
{
    const struct jrt_tls_wire *wire = SSL_get_app_data(ssl);
    janus_tls_server          *server = (janus_tls_server *)wire->side;
    struct jrt_tls_ticket_key  key;
    (void)pthread_once(&once, fetch);
    int found = choose(server, wire->now_ns, name, encrypts != 0, &key);
    if (found == 0 || cipher == NULL) return encrypts != 0 ? -1 : 0;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac, sizeof key.mac),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
        OSSL_PARAM_construct_end(),
    };
    bool good = EVP_MAC_CTX_set_params(mac, params) == 1;
    if (good && encrypts != 0) {
        memcpy(name, key.name, sizeof key.name);
        good = RAND_bytes(iv, EVP_CIPHER_get_iv_length(cipher)) == 1 &&
               EVP_EncryptInit_ex2(cipher_context, cipher, key.cipher, iv, NULL) == 1;
    } else if (good) {
        good = EVP_DecryptInit_ex2(cipher_context, cipher, key.cipher, iv, NULL) == 1;
    }
    OPENSSL_cleanse(&key, sizeof key);
    if (!good) return -1;
    /* A client of TLS 1.3 uses a ticket once. Without another it could resume every second time. */
    if (encrypts == 0 && SSL_version(ssl) == TLS1_3_VERSION) found = 2;
    return found;
}

void jrt_tls_tickets(SSL_CTX *context, const janus_tls_server_options *options)
{
    if (options->no_tickets) {
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(context, 0);
        return;
    }
    uint64_t seconds = options->ticket_ns / 500000000; /* twice ticket_ns */
    SSL_CTX_set_timeout(context, seconds < 604800 ? (long)seconds : 604800);
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, set_key);
}
