/* SPDX-License-Identifier: MIT */
#include <janusrt/profile.h>

static const struct {
    size_t      stack_bytes;
    const char *name;
} profiles[] = {
    [JANUS_PROFILE_DEFAULT] = {JANUS_STACK_BYTES_SERVICE, ":service"},
    [JANUS_PROFILE_CORE] = {JANUS_STACK_BYTES_CORE, ":core"},
    [JANUS_PROFILE_SERVICE] = {JANUS_STACK_BYTES_SERVICE, ":service"},
    [JANUS_PROFILE_CLUSTER] = {JANUS_STACK_BYTES_CLUSTER, ":cluster"},
    [JANUS_PROFILE_SOVEREIGN] = {JANUS_STACK_BYTES_SOVEREIGN, ":sovereign"},
};

static int is_profile(janus_profile profile)
{
    return (unsigned)profile < sizeof profiles / sizeof profiles[0];
}

size_t janus_profile_stack_bytes(janus_profile profile)
{
    return is_profile(profile) ? profiles[profile].stack_bytes : 0;
}

const char *janus_profile_name(janus_profile profile)
{
    return is_profile(profile) ? profiles[profile].name : ":?";
}
