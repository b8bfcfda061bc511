/* SPDX-License-Identifier: MIT */
/* Certificates for tests, made anew in each process. */
#ifndef JANUSRT_TESTS_TLS_PAPER_H
#define JANUSRT_TESTS_TLS_PAPER_H

#include <stdbool.h>

/* A certificate and its key, as PEM. The texts live as long as the process. */
struct paper {
    const char *chain, *key;
};

/* An authority that vouches for itself. */
struct paper paper_authority(void);
/* A certificate for names as "DNS:localhost,IP:127.0.0.1", by the authority. */
struct paper paper_for(struct paper authority, const char *names);
struct paper paper_expired(struct paper authority, const char *names);
/* Of RSA, with this many bits, instead of an elliptic curve. */
struct paper paper_rsa(struct paper authority, const char *names, unsigned bits);

#endif
