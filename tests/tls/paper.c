/* SPDX-License-Identifier: MIT */
#include "paper.h"

#include "harness.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

enum { DAY = 24 * 3600 };

/* All texts, so that a leak checker finds them. */
struct text {
    struct text *next;
    char         bytes[];
};
static struct text *texts;

/* The text of a BIO, which ends here. */
static const char *text_of(BIO *bio)
{
    char        *bytes = NULL;
    long         count = BIO_get_mem_data(bio, &bytes);
    struct text *text = calloc(1, sizeof *text + (size_t)count + 1);
    CHECK(text != NULL);
    memcpy(text->bytes, bytes, (size_t)count);
    text->next = texts;
    texts = text;
    BIO_free(bio);
    return text->bytes;
}

static struct paper print(X509 *certificate, EVP_PKEY *key)
{
    BIO *chain = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());
    CHECK_EQ(PEM_write_bio_X509(chain, certificate), 1);
    CHECK_EQ(PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return (struct paper){text_of(chain), text_of(secret)};
}

static void add(X509 *certificate, X509 *issuer, int what, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
    CHECK(extension != NULL);
    CHECK_EQ(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static X509 *blank(EVP_PKEY *key, const char *name, long from, long to)
{
    X509   *certificate = X509_new();
    int64_t serial = 0;
    CHECK(certificate != NULL);
    CHECK_EQ(RAND_bytes((unsigned char *)&serial, sizeof serial), 1);
    CHECK_EQ(X509_set_version(certificate, X509_VERSION_3), 1);
    CHECK_EQ(ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial & INT64_MAX), 1);
    CHECK(X509_gmtime_adj(X509_getm_notBefore(certificate), from) != NULL);
    CHECK(X509_gmtime_adj(X509_getm_notAfter(certificate), to) != NULL);
    CHECK_EQ(X509_set_pubkey(certificate, key), 1);
    CHECK_EQ(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                        (const unsigned char *)name, -1, -1, 0),
             1);
    return certificate;
}

struct paper paper_authority(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509     *certificate = blank(key, "Authority of a test", -DAY, DAY);
    CHECK_EQ(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)), 1);
    add(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
    add(certificate, certificate, NID_key_usage, "critical,keyCertSign");
    add(certificate, certificate, NID_subject_key_identifier, "hash");
    CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
    return print(certificate, key);
}

/* Signs `key` for the names. */
static struct paper vouch(struct paper authority, EVP_PKEY *key, const char *names, long from,
                          long to)
{
    BIO      *chain = BIO_new_mem_buf(authority.chain, -1);
    BIO      *secret = BIO_new_mem_buf(authority.key, -1);
    X509     *issuer = PEM_read_bio_X509(chain, NULL, NULL, NULL);
    EVP_PKEY *issuer_key = PEM_read_bio_PrivateKey(secret, NULL, NULL, NULL);
    CHECK(key != NULL && issuer != NULL && issuer_key != NULL);
    X509 *certificate = blank(key, "Server of a test", from, to);
    CHECK_EQ(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)), 1);
    add(certificate, issuer, NID_subject_alt_name, names);
    add(certificate, issuer, NID_authority_key_identifier, "keyid");
    CHECK(X509_sign(certificate, issuer_key, EVP_sha256()) > 0);
    X509_free(issuer);
    EVP_PKEY_free(issuer_key);
    BIO_free(chain);
    BIO_free(secret);
    return print(certificate, key);
}

struct paper paper_for(struct paper authority, const char *names)
{
    return vouch(authority, EVP_EC_gen("P-256"), names, -DAY, DAY);
}

struct paper paper_expired(struct paper authority, const char *names)
{
    return vouch(authority, EVP_EC_gen("P-256"), names, -2 * DAY, -DAY);
}

struct paper paper_rsa(struct paper authority, const char *names, unsigned bits)
{
    return vouch(authority, EVP_RSA_gen(bits), names, -DAY, DAY);
}

#if JRT_TSAN
/* OpenSSL is not compiled with the sanitizer, which does not see how it counts references. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libcrypto.so.3\ncalled_from_lib:libssl.so.3\n";
}
#endif
