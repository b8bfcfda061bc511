/* SPDX-License-Identifier: MIT */
/* Tokens, for nurseries. The essay is in token.c. */
#ifndef JRT_CANCEL_TOKEN_H
#define JRT_CANCEL_TOKEN_H

#include "task/nursery.h"

#include <janusrt/token.h>

/* Notes that a nursery's token is to be cancelled by this thread; under the nursery's lock. */
void jrt_token_collect(janus_token *token, janus_cancel_reason reason);

/* For tests: places of a token that has none begin with this generation. */
void jrt_token_wear(janus_token *token, uint32_t generation);

/* The nursery ends: nothing of its tokens points to it any more. */
void jrt_nursery_tokens_end(struct jrt_nursery *nursery);

#endif
