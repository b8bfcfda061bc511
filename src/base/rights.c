/* SPDX-License-Identifier: MIT */
/* Names of kinds, rights and backends. They stand in this room because the audit log writes them
 * too. */
#include <janusrt/cap.h>

const char *janus_cap_kind_name(janus_cap_kind kind)
{
    switch (kind) { /* no default: the compiler names a missing case */
#define X(name, value, text)                                                                       \
    case JANUS_CAP_KIND_##name: return text;
        JANUS_CAP_KIND_MAP(X)
#undef X
    case JANUS_CAP_KIND_NONE: break;
    }
    return "?";
}

uint32_t janus_cap_kind_rights(janus_cap_kind kind)
{
    uint32_t rights = 0;
#define X(name, bit, of, text)                                                                     \
    if (kind == JANUS_CAP_KIND_##of) rights |= JANUS_RIGHT_##name;
    JANUS_RIGHT_MAP(X)
#undef X
    return rights;
}

const char *janus_right_name(uint32_t right)
{
    switch (right) {
#define X(name, bit, of, text)                                                                     \
    case JANUS_RIGHT_##name: return text;
        JANUS_RIGHT_MAP(X)
#undef X
    default: return "?";
    }
}

const char *janus_backend_name(janus_backend backend)
{
    switch (backend) {
    case JANUS_BACKEND_BLOCKING: return "blocking";
    case JANUS_BACKEND_THREADED: return "threaded";
    case JANUS_BACKEND_COOPERATIVE: return "cooperative";
    case JANUS_BACKEND_EVENTED: return "evented";
    case JANUS_BACKEND_COUNT: break;
    }
    return "?";
}
