/* SPDX-License-Identifier: MIT */
#include <janusrt/status.h>

#define X(name, value, text)                                                                       \
    _Static_assert((value) > -100, "numbers from -100 down are for programs: " #name);
JANUS_STATUS_MAP(X)
#undef X

const char *janus_status_text(janus_status status)
{
    switch (status) { /* no default: the compiler names a missing case */
#define X(name, value, text)                                                                       \
    case JANUS_##name: return text;
        JANUS_STATUS_MAP(X)
#undef X
    }
    return "not a janus_status";
}

const char *janus_status_name(janus_status status)
{
    switch (status) {
#define X(name, value, text)                                                                       \
    case JANUS_##name: return "JANUS_" #name;
        JANUS_STATUS_MAP(X)
#undef X
    }
    return "JANUS_?";
}
