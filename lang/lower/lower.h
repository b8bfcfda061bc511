/* SPDX-License-Identifier: MIT */
/* From the checked tree to QTJIR, level High. */
#ifndef JANUSRT_LANG_LOWER_H
#define JANUSRT_LANG_LOWER_H

#include "qtjir/qtjir.h"
#include "syntax/ast.h"

/* Fills `module`, which qt_module_init has prepared. The unit was checked without errors. The
 * result passes qt_verify; if it does not, that is a bug of lowering, and the caller says so. */
void jl_lower(struct jl_unit *unit, struct qt_module *module);

#endif
