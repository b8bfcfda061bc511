/* SPDX-License-Identifier: MIT */
/* Prefixes of names: what they allow, and what may be derived from them. */
#include "realm.h"

static janus_cap_limits prefix(const char *text)
{
    janus_cap_limits limits = {.words = {0}};
    memcpy(limits.name.prefix, text, strlen(text) + 1);
    return limits;
}

static janus_cap mint_names(struct realm *realm, const char *text)
{
    const janus_cap_limits limits = prefix(text);
    return mint(realm, ALICE, JANUS_CAP_KIND_NAME, &limits, 1);
}

static janus_status derive(struct realm *realm, janus_cap cap, const char *text, janus_cap *out)
{
    const janus_cap_limits limits = prefix(text);
    return janus_cap_attenuate_in(
        realm->table, cap, ALICE,
        JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &limits, .delegation_depth = 1), out);
}

static janus_cap_info look(struct realm *realm, janus_cap cap)
{
    janus_cap_info info = JANUS_CAP_INFO();
    CHECK_EQ(janus_cap_inspect_in(realm->table, cap, ALICE, &info), JANUS_OK);
    return info;
}

TEST("a name capability has two rights, and gives back a prefix of up to 63 bytes")
{
    struct realm realm = realm_open(0);
    char         longest[64];
    memset(longest, 'x', sizeof longest);
    longest[63] = '\0';
    const char *const texts[] = {"", "w", "plugin.7.", "\xff\x01", longest};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        janus_cap_info info = look(&realm, mint_names(&realm, texts[i]));
        CHECK_EQ(info.kind, JANUS_CAP_KIND_NAME);
        CHECK_EQ(info.rights, JANUS_RIGHT_NAME_REGISTER | JANUS_RIGHT_NAME_FIND);
        CHECK_STR(info.limits.name.prefix, texts[i]);
    }
    realm_close(&realm);
}

TEST("a prefix without an end is invalid, also where it is derived")
{
    struct realm     realm = realm_open(0);
    janus_cap        all = mint_names(&realm, ""), out;
    janus_cap_limits endless;
    memset(&endless, 'x', sizeof endless);
    CHECK_EQ(janus_cap_mint_in(realm.table, realm.root, ALICE,
                               JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_NAME,
                                               .rights = JANUS_RIGHTS_ALL, .limits = &endless),
                               &out),
             JANUS_INVALID);
    CHECK_EQ(janus_cap_attenuate_in(realm.table, all, ALICE,
                                    JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL, .limits = &endless),
                                    &out),
             JANUS_INVALID);
    CHECK_EQ(stats_of(&realm).live, 1);
    realm_close(&realm);
}

TEST("bytes behind the end of a prefix do not count, and do not come back")
{
    struct realm         realm = realm_open(0);
    janus_cap_limits     dirty = prefix("web.");
    janus_cap            out;
    static const uint8_t zeros[59];
    memset(dirty.name.prefix + 5, 'x', sizeof dirty.name.prefix - 5);
    janus_cap      cap = mint(&realm, ALICE, JANUS_CAP_KIND_NAME, &dirty, 1);
    janus_cap_info info = look(&realm, cap);
    CHECK_STR(info.limits.name.prefix, "web.");
    CHECK(memcmp(info.limits.name.prefix + 5, zeros, sizeof zeros) == 0);
    CHECK_EQ(derive(&realm, cap, "web.", &out), JANUS_OK);
    realm_close(&realm);
}

TEST("a derived prefix begins with the original's, and everything else widens")
{
    struct realm             realm = realm_open(0);
    janus_cap                cap = mint_names(&realm, "web."), narrow, out;
    static const char *const wider[] = {"", "w", "web", "Web.", "web", "web,x", "db.", "x.web."};
    for (size_t i = 0; i < sizeof wider / sizeof wider[0]; i++) {
        CHECK_EQ(derive(&realm, cap, wider[i], &out), JANUS_CAP_WIDENS);
        CHECK_EQ(stats_of(&realm).refused_widens, i + 1);
    }
    CHECK_EQ(stats_of(&realm).live, 1);
    CHECK_EQ(derive(&realm, cap, "web.", &out), JANUS_OK);
    CHECK_EQ(derive(&realm, cap, "web.a.", &narrow), JANUS_OK);
    CHECK_EQ(derive(&realm, narrow, "web.a.b", &out), JANUS_OK);
    CHECK_EQ(derive(&realm, narrow, "web.b.", &out), JANUS_CAP_WIDENS);
    CHECK_EQ(derive(&realm, narrow, "web.", &out), JANUS_CAP_WIDENS);
    realm_close(&realm);
}

TEST("without limits a derived capability has the original's prefix, and so has a delegated one")
{
    struct realm   realm = realm_open(0);
    char           longest[64];
    janus_cap_info info = JANUS_CAP_INFO();
    janus_cap      out;
    memset(longest, 'y', sizeof longest);
    longest[63] = '\0';
    janus_cap cap = mint_names(&realm, longest);
    CHECK_EQ(janus_cap_attenuate_in(realm.table, cap, ALICE,
                                    JANUS_CAP_GRANT(.rights = JANUS_RIGHT_NAME_FIND), &out),
             JANUS_OK);
    CHECK_EQ(look(&realm, out).rights, JANUS_RIGHT_NAME_FIND);
    CHECK_STR(look(&realm, out).limits.name.prefix, longest);
    CHECK_EQ(janus_cap_delegate_in(realm.table, cap, ALICE, BOB, NULL, &out), JANUS_OK);
    CHECK_EQ(janus_cap_inspect_in(realm.table, out, BOB, &info), JANUS_OK);
    CHECK_STR(info.limits.name.prefix, longest);
    realm_close(&realm);
}

TEST("a place that held a prefix tells a later capability of another kind nothing of it")
{
    struct realm realm = realm_open(0);
    char         longest[64];
    memset(longest, 'z', sizeof longest);
    longest[63] = '\0';
    for (int i = 0; i < 200; i++) { /* long enough to use places again */
        janus_cap names = mint_names(&realm, longest), tasks = mint_spawn(&realm, ALICE);
        CHECK_EQ(look(&realm, tasks).limits.words[6], 0);
        CHECK_EQ(look(&realm, tasks).limits.words[7], 0);
        CHECK_EQ(janus_cap_release_in(realm.table, names, ALICE), JANUS_OK);
        CHECK_EQ(janus_cap_release_in(realm.table, tasks, ALICE), JANUS_OK);
    }
    CHECK(stats_of(&realm).slots < 200);
    realm_close(&realm);
}

TEST("a program built with the shorter limits of before mints the other kinds")
{
    struct realm     realm = realm_open(0);
    const uint64_t   words[6] = {5, 1, 2, 3, 4, 5};
    janus_cap        cap;
    janus_cap_limits limits;
    memcpy(&limits, words, sizeof words); /* what follows is not read */
    CHECK_EQ(janus_cap_mint_in(realm.table, realm.root, ALICE,
                               JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                               .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                               &cap),
             JANUS_OK);
    janus_cap_info info = {.struct_bytes = sizeof info - 2 * sizeof(uint64_t)};
    info.limits.words[6] = 77;
    CHECK_EQ(janus_cap_inspect_in(realm.table, cap, ALICE, &info), JANUS_OK);
    CHECK_EQ(info.limits.spawn.max_tasks, 5);
    CHECK_EQ(info.limits.words[6], 77);
    realm_close(&realm);
}
