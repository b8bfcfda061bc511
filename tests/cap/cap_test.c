/* SPDX-License-Identifier: MIT */
/* Mint, attenuate, delegate, revoke: what a capability is, and what its holder may do with it. */
#include "realm.h"

TEST("a spawn capability gives back the limits it was made with")
{
    struct realm     realm = realm_open(0);
    janus_cap_limits limits = {
        .spawn = {.max_tasks = UINT64_C(1) << 40, .task_budget = {1, 2, 3, 4, UINT64_MAX}}};
    janus_cap      cap = mint(&realm, ALICE, JANUS_CAP_KIND_SPAWN, &limits, 0);
    janus_cap_info info = JANUS_CAP_INFO();
    CHECK_EQ(janus_cap_inspect_in(realm.table, cap, ALICE, &info), JANUS_OK);
    CHECK_EQ(info.kind, JANUS_CAP_KIND_SPAWN);
    CHECK_EQ(info.rights, JANUS_RIGHT_SPAWN_TASK | JANUS_RIGHT_SPAWN_NURSERY);
    CHECK_EQ(info.delegation_depth, 0);
    CHECK_EQ(info.depth, 0);
    CHECK(memcmp(&info.limits.spawn, &limits.spawn, sizeof limits.spawn) == 0);
    realm_close(&realm);
}

TEST("budget, channel and executor capabilities give back their limits")
{
    struct realm     realm = realm_open(0);
    janus_cap_info   info = JANUS_CAP_INFO();
    janus_cap_limits budget = {.budget = {.cpu_budget = UINT64_C(1) << 33,
                                          .spawn_limit = 70000,
                                          .memory_budget = 3,
                                          .channel_budget = 70001,
                                          .syscall_budget = 70002}};
    janus_cap        cap = mint(&realm, ALICE, JANUS_CAP_KIND_BUDGET, &budget, 0);
    CHECK_EQ(janus_cap_inspect_in(realm.table, cap, ALICE, &info), JANUS_OK);
    CHECK(memcmp(&info.limits.budget, &budget.budget, sizeof budget.budget) == 0);
    CHECK_EQ(info.limits.words[5], 0);

    janus_cap_limits channel = {.channel = {.max_buffer_size = 7, .max_channels = 8}};
    channel.words[5] = 99; /* not used by the kind: ignored */
    cap = mint(&realm, ALICE, JANUS_CAP_KIND_CHANNEL, &channel, 0);
    CHECK_EQ(janus_cap_inspect_in(realm.table, cap, ALICE, &info), JANUS_OK);
    CHECK_EQ(info.limits.channel.max_buffer_size, 7);
    CHECK_EQ(info.limits.channel.max_channels, 8);
    CHECK_EQ(info.limits.words[5], 0);

    janus_cap_limits executor = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE)}};
    cap = mint(&realm, ALICE, JANUS_CAP_KIND_EXECUTOR, &executor, 0);
    CHECK_EQ(janus_cap_inspect_in(realm.table, cap, ALICE, &info), JANUS_OK);
    CHECK_EQ(info.limits.executor.allowed_backends, 4);
    realm_close(&realm);
}

TEST("only the authority of the same table mints, revokes any capability and ends the table")
{
    struct realm          realm = realm_open(0), other = realm_open(0);
    janus_cap             cap = {0}, kept = mint_spawn(&realm, ALICE);
    const janus_cap_grant grant = {.struct_bytes = sizeof grant,
                                   .kind = JANUS_CAP_KIND_SPAWN,
                                   .rights = JANUS_RIGHTS_ALL,
                                   .limits = &many_tasks};
    janus_authority      *nobody[] = {NULL, other.root, (janus_authority *)(uintptr_t)64};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_cap_mint_in(realm.table, nobody[i], ALICE, &grant, &cap),
                 JANUS_NO_AUTHORITY);
        CHECK_EQ(janus_authority_revoke(realm.table, nobody[i], kept), JANUS_NO_AUTHORITY);
        CHECK_EQ(janus_cap_table_destroy(realm.table, nobody[i]), JANUS_NO_AUTHORITY);
    }
    CHECK_EQ(cap.generation, 0);
    CHECK_EQ(check_spawn(&realm, kept, ALICE), JANUS_OK);
    CHECK_EQ(stats_of(&realm).refused_authority, 6);
    CHECK_EQ(stats_of(&realm).live, 1);
    realm_close(&other);
    realm_close(&realm);
}

TEST("impossible grants are refused before anything is made")
{
    struct realm realm = realm_open(0);
    janus_cap    cap;
#define REFUSED(...)                                                                               \
    CHECK_EQ(                                                                                      \
        janus_cap_mint_in(realm.table, realm.root, ALICE, JANUS_CAP_GRANT(__VA_ARGS__), &cap),     \
        JANUS_INVALID)
    REFUSED(.rights = JANUS_RIGHTS_ALL, .limits = &many_tasks);
    REFUSED(.kind = 5, .rights = JANUS_RIGHTS_ALL, .limits = &many_tasks);
    REFUSED(.kind = JANUS_CAP_KIND_SPAWN, .rights = 0, .limits = &many_tasks);
    REFUSED(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHT_CHANNEL_SEND,
            .limits = &many_tasks);
    REFUSED(.kind = JANUS_CAP_KIND_SPAWN, .rights = 3 | 1u << 20, .limits = &many_tasks);
    REFUSED(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL);
    janus_cap_limits unknown = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COUNT)}};
    REFUSED(.kind = JANUS_CAP_KIND_EXECUTOR, .rights = JANUS_RIGHTS_ALL, .limits = &unknown);
#undef REFUSED
    CHECK_EQ(janus_cap_mint_in(realm.table, realm.root, ALICE, NULL, &cap), JANUS_INVALID);
    janus_cap_grant odd = {.struct_bytes = 7, .kind = JANUS_CAP_KIND_SPAWN, .rights = 1};
    CHECK_EQ(janus_cap_mint_in(realm.table, realm.root, ALICE, &odd, &cap), JANUS_INVALID);
    janus_cap mine = mint_spawn(&realm, ALICE);
    CHECK_EQ(janus_cap_attenuate_in(realm.table, mine, ALICE, JANUS_CAP_GRANT(.rights = 0), &cap),
             JANUS_INVALID);
    CHECK_EQ(janus_cap_attenuate_in(realm.table, mine, ALICE,
                                    JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_BUDGET, .rights = 1),
                                    &cap),
             JANUS_INVALID);
    CHECK_EQ(janus_cap_delegate_in(realm.table, mine, ALICE, 0, NULL, &cap), JANUS_INVALID);
    CHECK_EQ(stats_of(&realm).live, 1);
    janus_cap_table *table;
    janus_authority *root;
    CHECK_EQ(janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.max_caps = UINT32_MAX), &table, &root),
             JANUS_INVALID);
    CHECK_EQ(janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.profile = 9), &table, &root),
             JANUS_INVALID);
    realm_close(&realm);
}

TEST("every right can be taken away, and then it alone is refused")
{
    struct realm                  realm = realm_open(JANUS_PROFILE_SOVEREIGN);
    static const janus_cap_limits limits = {.words = {1}}; /* sane for every kind */
    static const struct {
        uint32_t       right;
        janus_cap_kind kind;
        const char    *token;
    } rows[] = {
#define X(name, bit, of, text) {JANUS_RIGHT_##name, JANUS_CAP_KIND_##of, text},
        JANUS_RIGHT_MAP(X)
#undef X
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        janus_cap whole = mint(&realm, ALICE, rows[i].kind, &limits, 0);
        janus_cap part = without(&realm, whole, ALICE, rows[i].right);
        CHECK_STR(janus_right_name(rows[i].right), rows[i].token);
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            janus_status whole_says =
                janus_cap_check_in(realm.table, whole, rows[k].kind, rows[k].right, ALICE);
            janus_status part_says =
                janus_cap_check_in(realm.table, part, rows[k].kind, rows[k].right, ALICE);
            bool same_kind = rows[k].kind == rows[i].kind;
            CHECK_EQ(whole_says, same_kind ? JANUS_OK : JANUS_CAP_KIND);
            CHECK_EQ(part_says, !same_kind ? JANUS_CAP_KIND : k == i ? JANUS_CAP_RIGHT : JANUS_OK);
        }
    }
    CHECK_STR(janus_right_name(3), "?");
    CHECK_STR(janus_cap_kind_name(JANUS_CAP_KIND_CHANNEL), "channel");
    CHECK_STR(janus_cap_kind_name(JANUS_CAP_KIND_NAME), "name");
    CHECK_STR(janus_cap_kind_name(9), "?");
    realm_close(&realm);
}

TEST("without a capability the status names the missing kind")
{
    struct realm realm = realm_open(0);
    janus_cap    none = {0};
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_SPAWN, 1, ALICE),
             JANUS_NO_SPAWN_CAP);
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_BUDGET, 4, ALICE),
             JANUS_NO_BUDGET_CAP);
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_CHANNEL, 0, ALICE),
             JANUS_NO_CHANNEL_CAP);
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_EXECUTOR, 0, 0),
             JANUS_NO_EXECUTOR_CAP);
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_NET, 0, 0), JANUS_NO_NET_CAP);
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_FILE, 0, 0), JANUS_NO_FILE_CAP);
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_PROCESS, 0, 0),
             JANUS_NO_PROCESS_CAP);
    CHECK_EQ(janus_cap_check_in(realm.table, none, JANUS_CAP_KIND_NAME, 0, 0), JANUS_NO_NAME_CAP);
    CHECK_EQ(stats_of(&realm).refused_none, 8);
    realm_close(&realm);
}

TEST("an attenuated capability is never wider, in any right or limit, and a refusal makes nothing")
{
    static const janus_cap_kind kinds[] = {JANUS_CAP_KIND_SPAWN, JANUS_CAP_KIND_BUDGET,
                                           JANUS_CAP_KIND_CHANNEL};
    struct realm                realm = realm_open(0);
    uint64_t                    widens = 0;
    janus_cap                   out;
    for (int k = 0; k < 3; k++) {
        janus_cap_limits limits = {.words = {5, 5, 5, 5, 5, 5}};
        janus_cap        cap = mint(&realm, ALICE, kinds[k], &limits, 2);
        uint64_t         before = stats_of(&realm).live;
        for (unsigned i = 0; i < jrt_cap_kind_words(kinds[k]); i++) {
            janus_cap_limits wider = limits;
            wider.words[i] = 6;
            CHECK_EQ(janus_cap_attenuate_in(
                         realm.table, cap, ALICE,
                         JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &wider), &out),
                     JANUS_CAP_WIDENS);
            widens++;
        }
        CHECK_EQ(janus_cap_attenuate_in(
                     realm.table, cap, ALICE,
                     JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .delegation_depth = 3), &out),
                 JANUS_CAP_WIDENS);
        uint32_t  right = janus_cap_kind_rights(kinds[k]) & (0 - janus_cap_kind_rights(kinds[k]));
        janus_cap narrow = without(&realm, cap, ALICE, right);
        CHECK_EQ(janus_cap_attenuate_in(realm.table, narrow, ALICE,
                                        JANUS_CAP_GRANT(.rights = right), &out),
                 JANUS_CAP_WIDENS);
        CHECK_EQ(stats_of(&realm).live, before + 1);
        widens += 2;
        CHECK_EQ(stats_of(&realm).refused_widens, widens);
    }
    realm_close(&realm);
}

TEST("a set of backends can lose members and never gain one")
{
    struct realm     realm = realm_open(JANUS_PROFILE_SOVEREIGN);
    janus_cap        out, cap;
    janus_cap_limits two = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_THREADED) |
                                         JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE)}};
    janus_cap_limits one = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_THREADED)}};
    janus_cap_limits less = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING)}};
    cap = mint(&realm, ALICE, JANUS_CAP_KIND_EXECUTOR, &two, 0);
    /* {blocking} is a smaller number, but not a subset. */
    CHECK_EQ(janus_cap_attenuate_in(realm.table, cap, ALICE,
                                    JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &less),
                                    &out),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_cap_attenuate_in(realm.table, cap, ALICE,
                                    JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &one),
                                    &out),
             JANUS_OK);
    CHECK_EQ(janus_cap_attenuate_in(realm.table, out, ALICE,
                                    JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &two),
                                    &cap),
             JANUS_CAP_WIDENS);
    CHECK_STR(janus_backend_name(JANUS_BACKEND_EVENTED), "evented");
    CHECK_STR(janus_backend_name(JANUS_BACKEND_COUNT), "?");
    realm_close(&realm);
}

TEST("a capability cannot be delegated unless its grant allows it")
{
    struct realm realm = realm_open(0);
    janus_cap    out, cap = mint(&realm, ALICE, JANUS_CAP_KIND_SPAWN, &many_tasks, 0);
    CHECK_EQ(janus_cap_delegate_in(realm.table, cap, ALICE, BOB, NULL, &out),
             JANUS_NOT_DELEGATABLE);
    CHECK_EQ(check_spawn(&realm, cap, BOB), JANUS_CAP_FOREIGN); /* nor by copying the handle */

    cap = mint(&realm, ALICE, JANUS_CAP_KIND_SPAWN, &many_tasks, 1);
    CHECK_EQ(janus_cap_delegate_in(realm.table, cap, ALICE, BOB, NULL, &out), JANUS_OK);
    CHECK_EQ(check_spawn(&realm, out, BOB), JANUS_OK);
    CHECK_EQ(check_spawn(&realm, out, ALICE), JANUS_CAP_FOREIGN);
    CHECK_EQ(check_spawn(&realm, cap, ALICE), JANUS_OK);
    CHECK_EQ(janus_cap_delegate_in(realm.table, out, BOB, CAROL, NULL, &cap),
             JANUS_NOT_DELEGATABLE);
    CHECK_EQ(stats_of(&realm).delegated, 1);
    CHECK_EQ(stats_of(&realm).refused_delegation, 2);
    realm_close(&realm);
}

TEST("delegation goes as deep as allowed and no deeper")
{
    struct realm realm = realm_open(0);
    janus_cap    out, cap = mint(&realm, ALICE, JANUS_CAP_KIND_SPAWN, &many_tasks, 2);
#define DELEGATE(from, by, to, depth)                                                              \
    janus_cap_delegate_in(realm.table, from, by, to,                                               \
                          JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .delegation_depth = depth),  \
                          &out)
    CHECK_EQ(DELEGATE(cap, ALICE, BOB, 2), JANUS_CAP_WIDENS);
    CHECK_EQ(DELEGATE(cap, ALICE, BOB, 1), JANUS_OK);
    janus_cap bobs = out;
    CHECK_EQ(DELEGATE(bobs, BOB, CAROL, 1), JANUS_CAP_WIDENS);
    CHECK_EQ(DELEGATE(bobs, ALICE, CAROL, 0), JANUS_CAP_FOREIGN);
    CHECK_EQ(DELEGATE(bobs, BOB, CAROL, 0), JANUS_OK);
    CHECK_EQ(DELEGATE(out, CAROL, ALICE, 0), JANUS_NOT_DELEGATABLE);
#undef DELEGATE
    realm_close(&realm);
}

TEST("every call refuses a handle that another holder presents")
{
    struct realm   realm = realm_open(0);
    janus_cap      out, cap = mint_spawn(&realm, ALICE);
    janus_cap_info info = JANUS_CAP_INFO();
    CHECK_EQ(check_spawn(&realm, cap, BOB), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_inspect_in(realm.table, cap, BOB, &info), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_attenuate_in(realm.table, cap, BOB, JANUS_CAP_GRANT(.rights = 1), &out),
             JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_delegate_in(realm.table, cap, BOB, BOB, NULL, &out), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_revoke_in(realm.table, cap, cap, BOB), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_release_in(realm.table, cap, BOB), JANUS_CAP_FOREIGN);
    CHECK_EQ(check_spawn(&realm, cap, ALICE), JANUS_OK);
    CHECK_EQ(stats_of(&realm).refused_foreign, 6);
    realm_close(&realm);
}

TEST("a budget capability converts to a budget field by field")
{
    janus_budget_limits limits = {.cpu_budget = 1,
                                  .spawn_limit = 2,
                                  .memory_budget = 3,
                                  .channel_budget = 4,
                                  .syscall_budget = 5};
    janus_budget        budget = janus_budget_limits_to_budget(&limits);
    CHECK_EQ(budget.ops, 1);
    CHECK_EQ(budget.spawn_count, 2);
    CHECK_EQ(budget.memory, 3);
    CHECK_EQ(budget.channel_ops, 4);
    CHECK_EQ(budget.syscalls, 5);
    CHECK_EQ(sizeof(janus_budget), 40);
}

TEST("a request is granted up to each limit, and the status reports a cut")
{
    const janus_budget_limits limits = {10, 20, 30, 40, 50};
    const janus_budget        most = janus_budget_limits_to_budget(&limits);
    janus_budget              out;
    CHECK_EQ(janus_budget_limits_clamp(&most, &limits, &out), JANUS_OK);
    CHECK(memcmp(&out, &most, sizeof out) == 0);
    for (int i = 0; i < 5; i++) {
        uint64_t asked[5], granted[5], allowed[5];
        memcpy(asked, &most, sizeof asked);
        memcpy(allowed, &most, sizeof allowed);
        asked[i] = UINT64_MAX - 1;
        asked[(i + 1) % 5] = 1;
        allowed[(i + 1) % 5] = 1;
        janus_budget request;
        memcpy(&request, asked, sizeof request);
        CHECK_EQ(janus_budget_limits_clamp(&request, &limits, &out), JANUS_CLAMPED);
        memcpy(granted, &out, sizeof granted);
        CHECK(memcmp(granted, allowed, sizeof granted) == 0);
    }
    CHECK(JANUS_CLAMPED > 0);
}
