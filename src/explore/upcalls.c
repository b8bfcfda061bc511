/* SPDX-License-Identifier: MIT */
/* What rooms below call upwards; see task/upcalls.h. */
#include "task/upcalls.h"
#include "actor/question.h"
#include "actor/supervisor.h"
#include "cancel/token.h"
#include "explore/session.h"
#include "look/dump.h"
#include "means/ledger.h"
#include "nursery/pay.h"
#include "nursery/run.h"
#include "rt/run.h"

const struct jrt_upcalls jrt_upcalls = {
    .loop = jrt_loop_main,
    .rescue = jrt_rescue_main,
    .worker_main = jrt_worker_main,
    .worker_open = jrt_worker_open,
    .worker_close = jrt_worker_close,
    .pay_patience = jrt_task_pay_patience,
    .flush_tokens = jrt_tokens_flush,
    .take_owed = jrt_ledger_take_owed,
    .flush_actors = jrt_actors_flush,
    .forget_question = jrt_question_forget,
    .supervisor_abandon = jrt_supervisor_abandon,
    .supervisor_free = jrt_supervisor_free,
    .anybody_waits = jrt_anybody_waits,
    .break_deadlock = jrt_deadlock_break,
    .explored = jrt_session_wanted,
    .explored_run = jrt_session_run,
    .explored_open = jrt_session_open,
    .explored_started = jrt_session_started,
    .explored_closed = jrt_session_closed,
};
