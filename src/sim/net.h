/* SPDX-License-Identifier: MIT */
/* The simulated network of a world, for other rooms. The essay is in net.c. */
#ifndef JRT_SIM_NET_H
#define JRT_SIM_NET_H

#include "plat/net.h"

enum { JRT_SIM_WORDS = 112, JRT_SIM_LABEL = 128 };

#define JRT_SIM_CHOICES (UINT32_C(1) << 30)

/* The network of every world. */
extern const struct jrt_net jrt_net_sim;

/* Attaches a text to a simulated descriptor, such as its name or the place that made it. Reports
 * show it. The text is copied and may be cut. Real descriptors are ignored. */
void jrt_sim_label(int fd, const char *text);

/* Notes the handle of a simulated descriptor. If the world ends first, jrt_sim_orphaned is called
 * with it. `left`: the world was given up, and calls may still be inside the handle. */
void                             jrt_sim_note_handle(int fd, const uint64_t handle[2]);
typedef void                     jrt_sim_orphan(const uint64_t handle[2], bool left);
extern _Atomic(jrt_sim_orphan *) jrt_sim_orphaned;

/* Adds an address to a host's name in the calling thread's world. 0, or -errno. -ENOSYS: there is
 * no world. The port of `at` is ignored. */
int jrt_sim_host_add(const char *host, const janus_address *at);

/* Removes the path of a Unix socket, as unlink(2) does. 0, or -ENOENT. */
int jrt_sim_unlink(const janus_address *at);

/* How many descriptors are open. If one is, `out` gets a sentence about them. */
uint32_t jrt_sim_leaks(struct jrt_world *world, char *out, size_t bytes);

/* The name of a choice that the network is making. *out_who names the end of a connection that
 * comes to it, from JRT_SIM_CHOICES on. *out_number counts such choices of this end. So the name
 * stays the same when other choices change. False: the choice is not the network's. */
bool jrt_sim_choice(const struct jrt_world *world, enum jrt_choice kind, uint32_t *out_who,
                    uint32_t *out_number);

/* Writes a sentence about a choice that the network is making: "client 3's second read got 1 byte".
 * `value` is the answer. False: the choice is not the network's. */
bool jrt_sim_words(const struct jrt_world *world, enum jrt_choice kind, uint32_t value, char *out,
                   size_t bytes);

/* Frees the network. Called by the ending world. `tell`: reports leaks on standard error. */
void jrt_sim_close(struct jrt_world *world, bool tell);

#endif
