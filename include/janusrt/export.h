/* SPDX-License-Identifier: MIT */
/* Marks that every public header uses: what is exported, what must be looked at. */
#ifndef JANUSRT_EXPORT_H
#define JANUSRT_EXPORT_H

#if defined(__GNUC__)
#define JANUS_API __attribute__((visibility("default")))
#define JANUS_NODISCARD __attribute__((warn_unused_result))
#define JANUS_NORETURN __attribute__((noreturn))

/* Says that a status is not wanted: a cast to void does not silence gcc. */
#define JANUS_IGNORE(call) ((void)((call) == 0))
#else
#error "janusrt needs gcc or clang"
#endif

#ifdef __cplusplus
#define JANUS_BEGIN_DECLS extern "C" {
#define JANUS_END_DECLS }
#else
#define JANUS_BEGIN_DECLS
#define JANUS_END_DECLS
#endif

#endif
