/* SPDX-License-Identifier: MIT */
/* Attributes of public functions: which are exported, and which results must be read. */
#ifndef JANUSRT_EXPORT_H
#define JANUSRT_EXPORT_H

#if defined(__GNUC__)
#define JANUS_API __attribute__((visibility("default")))
#define JANUS_NODISCARD __attribute__((warn_unused_result))
#define JANUS_NORETURN __attribute__((noreturn))

/* Ignores a status on purpose: a cast to void does not silence gcc. */
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
