/* SPDX-License-Identifier: MIT */
#include <janusrt/version.h>

#if JRT_ASAN
#define SANITIZER "address"
#elif JRT_TSAN
#define SANITIZER "thread"
#else
#define SANITIZER "none"
#endif

#if JRT_VALGRIND
#define VALGRIND "yes"
#else
#define VALGRIND "no"
#endif

#if defined(__clang__)
#define COMPILER "" /* clang's version text begins with its name */
#else
#define COMPILER "gcc "
#endif

#if defined(__x86_64__)
#define CPU "x86-64"
#elif defined(__aarch64__)
#define CPU "aarch64"
#endif

unsigned janus_version(void) { return JANUS_VERSION; }

const char *janus_build_text(void)
{
    return "janusrt " JANUS_VERSION_STRING " (" CPU ", " COMPILER __VERSION__
           ", sanitizer " SANITIZER ", valgrind " VALGRIND ")";
}
