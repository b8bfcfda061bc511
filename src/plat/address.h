/* SPDX-License-Identifier: MIT */
/* Addresses as the system spells them. */
#ifndef JRT_PLAT_ADDRESS_H
#define JRT_PLAT_ADDRESS_H

#include <janusrt/net.h>
#include <sys/socket.h>

/* The system's number of a family; -1: none. */
int jrt_address_domain(janus_family family);

/* Returns the length; 0: no such address. */
socklen_t jrt_address_to_native(const janus_address *address, struct sockaddr_storage *out);

/* An address of another family, or of an unnamed socket, becomes one of no family. */
void jrt_address_from_native(const struct sockaddr_storage *native, socklen_t bytes,
                             janus_address *out);

/* As janus_address_parse and janus_address_text, without a toll. */
janus_status jrt_address_parse(const char *text, janus_address *out);
const char  *jrt_address_text(const janus_address *address, char *buffer, size_t bytes);

/* Whether two addresses are the same. */
bool jrt_address_equal(const janus_address *a, const janus_address *b);

#endif
