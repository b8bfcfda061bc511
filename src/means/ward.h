/* SPDX-License-Identifier: MIT */
/* Wards join their owner, leave it, and end with it. The essay is in ward.c. */
#ifndef JRT_MEANS_WARD_H
#define JRT_MEANS_WARD_H

#include "task/ward.h"

/* Gives the ward to the current task's purse, which was charged. */
void jrt_ward_join(struct jrt_ward *ward, struct jrt_purse *purse);

/* Takes off the ward of an object that has ended, or was not made. The payer gets the bytes
 * back. */
void jrt_ward_leave(struct jrt_ward *ward);

/* Whether it has an owner that will end it. */
bool jrt_ward_is_owned(const struct jrt_ward *ward);

/* If the ward is this purse's already, makes it end with the purse. False: it is not. */
bool jrt_ward_claim(struct jrt_ward *ward, const struct jrt_purse *purse);

/* Ends the wards of a purse that is about to be closed, or moves them to their terms. */
void jrt_wards_end(struct jrt_purse *purse);

/* Ends the wards of terms whose nursery has ended. */
void jrt_wards_end_terms(struct jrt_terms *terms);

/* Moves returned bytes to `left`; for the purse of the current task. */
void jrt_wards_collect(struct jrt_purse *purse);

#endif
