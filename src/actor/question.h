/* SPDX-License-Identifier: MIT */
/* Questions, inside. The essay is in question.c. */
#ifndef JRT_ACTOR_QUESTION_H
#define JRT_ACTOR_QUESTION_H

#include "actor/place.h"

struct jrt_question {
    _Atomic(uint32_t)    lock;
    _Atomic(uint32_t)    done;         /* futex, for a thread: 1: answered */
    _Atomic(uint64_t)    key;          /* 0: it is free. Changed under the lock, or while free */
    struct jrt_question *next;         /* free */
    struct jrt_task     *task;         /* that waits; NULL: a thread, or none yet */
    void                *reply;        /* where the answer goes */
    size_t               reply_bytes;  /* the room there */
    size_t               answer_bytes; /* that the actor answers with */
    _Atomic(uint64_t)    deadline_ns;  /* [question-key] */
    janus_status         status;       /* WOULD_WAIT: no answer yet */
    bool                 outside;      /* as the options of the actor that it was sent to */
    struct jrt_notice   *notice;       /* of an ask; NULL: a call */
    uint32_t             asker, asker_incarnation;
    uint64_t             asker_serial;
    struct jrt_group    *group; /* of janus_call_all; NULL: none */

    struct jrt_circle_wait circle; /* of a call by an actor */
    struct jrt_terms      *terms;  /* that count it, [question-share]; NULL: none */
};

/* The caller of several actors. */
struct jrt_group {
    _Atomic(uint32_t) lock;
    uint32_t          left;
    bool              outside; /* of one of the questions */
    struct jrt_task  *task;    /* that waits; NULL: not yet */
};

/* `answer_bytes` of a question that was not sent yet: the mailbox says how many. */
#define JRT_ANSWER_ANY SIZE_MAX

/* Takes a question with a new key. NULL: no memory, or the pool has its share, [question-share]. */
struct jrt_question *jrt_question_take(uint64_t *out_key);
/* Gives it back. */
void jrt_question_give(struct jrt_question *question);

/* Returns the spare question of a worker that is being closed. */
void jrt_question_forget(struct jrt_worker *worker);

/* The question with this number, alive or not; NULL: no question has it. */
struct jrt_question *jrt_question_find(uint64_t number);
uint64_t             jrt_question_number(const struct jrt_question *question);
/* What a kept right to answer shows instead of the key. */
uint64_t jrt_question_token(uint64_t key);

#endif
