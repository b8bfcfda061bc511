/* SPDX-License-Identifier: MIT */
/* A small setting for tests of capabilities: a table, its authority, and verbs. */
#ifndef JANUSRT_TESTS_REALM_H
#define JANUSRT_TESTS_REALM_H

#include "cap/gate.h"
#include "harness.h"

#include <string.h>

enum { ALICE = 1, BOB = 2, CAROL = 3 };

struct realm {
    janus_cap_table *table;
    janus_authority *root;
};

static const janus_cap_limits many_tasks = {
    .spawn = {.max_tasks = 50, .task_budget = {.ops = 10000, .memory = 1 << 20}}};

static inline struct realm realm_open(janus_profile profile)
{
    struct realm            realm;
    janus_cap_table_options options = {.struct_bytes = sizeof options, .profile = profile};
    CHECK_EQ(janus_cap_table_create(&options, &realm.table, &realm.root), JANUS_OK);
    return realm;
}

static inline void realm_close(struct realm *realm)
{
    CHECK_EQ(janus_cap_table_destroy(realm->table, realm->root), JANUS_OK);
}

static inline janus_cap mint(struct realm *realm, uint64_t holder, janus_cap_kind kind,
                             const janus_cap_limits *limits, uint32_t delegation_depth)
{
    janus_cap cap;
    CHECK_EQ(
        janus_cap_mint_in(realm->table, realm->root, holder,
                          JANUS_CAP_GRANT(.kind = kind, .rights = JANUS_RIGHTS_ALL,
                                          .limits = limits, .delegation_depth = delegation_depth),
                          &cap),
        JANUS_OK);
    return cap;
}

static inline janus_cap mint_spawn(struct realm *realm, uint64_t holder)
{
    return mint(realm, holder, JANUS_CAP_KIND_SPAWN, &many_tasks, JANUS_DELEGATION_UNLIMITED);
}

/* Derives a capability with the same rights and limits from `cap`. */
static inline janus_cap copy_of(struct realm *realm, janus_cap cap, uint64_t holder)
{
    janus_cap out;
    CHECK_EQ(janus_cap_attenuate_in(realm->table, cap, holder,
                                    JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL,
                                                    .delegation_depth = JANUS_DELEGATION_UNLIMITED),
                                    &out),
             JANUS_OK);
    return out;
}

static inline janus_cap without(struct realm *realm, janus_cap cap, uint64_t holder, uint32_t right)
{
    janus_cap_info info = JANUS_CAP_INFO();
    janus_cap      out;
    CHECK_EQ(janus_cap_inspect_in(realm->table, cap, holder, &info), JANUS_OK);
    CHECK_EQ(janus_cap_attenuate_in(realm->table, cap, holder,
                                    JANUS_CAP_GRANT(.rights = info.rights & ~right), &out),
             JANUS_OK);
    return out;
}

static inline janus_status check_spawn(struct realm *realm, janus_cap cap, uint64_t holder)
{
    return janus_cap_check_in(realm->table, cap, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK,
                              holder);
}

static inline janus_cap_table_info stats_of(struct realm *realm)
{
    janus_cap_table_info stats = JANUS_CAP_TABLE_INFO();
    CHECK_EQ(janus_cap_table_inspect(realm->table, &stats), JANUS_OK);
    return stats;
}

#endif
