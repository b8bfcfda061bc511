/* SPDX-License-Identifier: MIT */
/* Tokens of nurseries. The essay is in token.c. */
#ifndef JRT_CANCEL_TOKEN_H
#define JRT_CANCEL_TOKEN_H

#include "task/nursery.h"

#include <janusrt/token.h>

/* Notes that this thread must cancel a nursery's token; under the nursery's lock. */
void jrt_token_collect(janus_token *token, janus_cancel_reason reason);

/* For tests: new places of a token without places begin with this generation. */
void jrt_token_wear(janus_token *token, uint32_t generation);

/* Ends the tokens of a nursery that ends: none of them points to it any more. */
void jrt_nursery_tokens_end(struct jrt_nursery *nursery);

/* Cancels the tokens that this thread has noted. The thread holds no lock. */
void jrt_tokens_flush(void);

#endif
