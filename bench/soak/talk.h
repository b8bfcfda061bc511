/* SPDX-License-Identifier: MIT */
/*
 * What the client of `make soak` says to the server. Each of its threads has some connections that
 * stay open, and acts again and again by chance. Most acts are well-behaved. Others break off in
 * the middle, reset the connection, or send nonsense.
 *
 * Each act checks the answers that it waits for. A wrong answer ends the program with a message.
 */
#ifndef JANUSRT_BENCH_SOAK_TALK_H
#define JANUSRT_BENCH_SOAK_TALK_H

#include <stdbool.h>
#include <stdint.h>

enum { TALK_KEPT = 8, TALK_FILE_BYTES = 100000 };

struct talk {
    uint16_t port, tls_port; /* 0: without TLS */
    uint64_t random;
    uint64_t requests, connections, resets; /* so far */
    uint64_t acts[16];                      /* of each kind */
    int      kept[TALK_KEPT];               /* connections that stay open, or -1 */
    unsigned asked[TALK_KEPT];              /* requests of each */
};

void talk_open(struct talk *talk, uint16_t port, uint64_t seed);
void talk_act(struct talk *talk);
void talk_close(struct talk *talk); /* its connections */

/* Names of the acts, NULL behind the last. */
extern const char *const talk_names[];

/* Asks the server for a number: "/tasks", "/tls". */
long talk_ask(struct talk *talk, const char *path);

/* Parts of acts. */
uint64_t talk_chance(struct talk *talk, uint64_t below); /* a number below this */
int      talk_connect(struct talk *talk, uint16_t port);
void     talk_drop(struct talk *talk, int fd, bool resets); /* ends a connection */

#if SOAK_TLS
void talk_tls(struct talk *talk);
#endif

#endif
