/* SPDX-License-Identifier: MIT */
/* Actors and their supervisors. */
#include "host/record.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 8, SMALL = 256, MESSAGE_MAX = 4096 };

/* A supervisor is memory of the task that made it. Its first spawn opens it, in the innermost
 * nursery, which also ends it. */
struct jl_supervisor {
    struct jl_supervisor *next;  /* of the same nursery */
    struct jl_scope      *scope; /* NULL: it is not open */
    janus_supervisor     *open;
    janus_task_id         owner;
};

/* The state of an actor: a head, the program's state, and room for a reply. */
struct actor {
    struct jl_world            *world;
    const struct jl_actor_type *type;
    int64_t                    *reply; /* an error or 0, then the value */
    uint64_t                    pad;
};

struct jl_behaviour {
    struct jl_behaviour        *next;
    struct jl_world            *world;
    const struct jl_actor_type *type;
    janus_behaviour             behaviour;
};

static size_t round_up(size_t bytes) { return (bytes + 15) / 16 * 16; }

static void *state_of(struct actor *actor) { return actor + 1; }

/* A call of the program's code for an actor. */
struct turn {
    struct actor *actor;
    const char   *message; /* NULL: init */
    void         *reply;
};

static int64_t take_turn(void *argument)
{
    struct turn                *turn = argument;
    const struct jl_actor_type *type = turn->actor->type;
    void                       *state = state_of(turn->actor);
    if (!turn->message) return type->init ? type->init(state, type->context) : 0;
    uint32_t method;
    memcpy(&method, turn->message, sizeof method);
    const char *arguments = turn->message + HEAD_BYTES;
    /* The texts in the message become memory of the actor. Their addresses stay. */
    jl_unpack((void *)(uintptr_t)arguments, type->methods[method].arguments);
    int64_t error = type->handle(state, method, arguments, turn->reply, type->context);
    if (error == 0 && turn->reply) jl_pack(turn->reply, type->methods[method].reply);
    return error;
}

static const struct jl_shape *reply_of(const struct turn *turn)
{
    uint32_t method;
    memcpy(&method, turn->message, sizeof method);
    return turn->actor->type->methods[method].reply;
}

static int64_t run_turn(struct turn *turn)
{
    struct jl_record home = {.world = turn->actor->world};
    struct jl_task   task = {
          .world = turn->actor->world, .name = turn->actor->type->name, .home = &home};
    struct jl_task *before = jl_become(&task);
    int64_t         error = jl_guard_task(&task, take_turn, turn);
    (void)jl_become(before);
    jl_records_free(&home);
    return error;
}

static int64_t actor_init(void *state, void *argument)
{
    struct jl_behaviour *of = argument;
    struct actor        *actor = state;
    actor->world = of->world;
    actor->type = of->type;
    actor->reply = (int64_t *)(void *)((char *)state_of(actor) + round_up(of->type->state_bytes));
    struct turn turn = {.actor = actor};
    return run_turn(&turn);
}

static int64_t actor_handle(void *state, janus_letter *letter)
{
    struct actor *actor = state;
    if (letter->message == NULL) return JANUS_ACTOR_GO_ON;
    bool        is_call = janus_letter_is_call(letter);
    struct turn turn = {actor, letter->message, is_call ? actor->reply + 1 : NULL};
    int64_t     error = run_turn(&turn);
    if (!is_call) return error; /* a failed cast has nobody to tell: the actor fails */
    actor->reply[0] = error;
    if (janus_reply(letter, actor->reply) != JANUS_OK && error == 0) {
        jl_unpack_drop(turn.reply, reply_of(&turn)); /* who asked is gone */
    }
    return JANUS_ACTOR_GO_ON;
}

static size_t largest(const struct jl_actor_type *type, bool reply)
{
    size_t most = 0;
    for (uint32_t i = 0; i < type->method_count; i++) {
        const struct jl_actor_method *method = &type->methods[i];
        size_t                        bytes = reply ? method->reply_bytes : method->argument_bytes;
        if (bytes > most) most = bytes;
    }
    return most;
}

static const struct jl_behaviour *behaviour_of(struct jl_world            *world,
                                               const struct jl_actor_type *type)
{
    struct jl_behaviour *first = atomic_load(&world->behaviours);
    for (struct jl_behaviour *at = first; at; at = at->next) {
        if (at->type == type) return at;
    }
    struct jl_behaviour *made = calloc(1, sizeof *made);
    if (!made) jl_end_task(JANUS_NO_MEMORY, 0);
    size_t reply = round_up(largest(type, true)) + sizeof(int64_t);
    made->world = world;
    made->type = type;
    made->behaviour = (janus_behaviour){
        .struct_bytes = sizeof made->behaviour,
        .name = type->name,
        .state_bytes = sizeof(struct actor) + round_up(type->state_bytes) + round_up(reply),
        .message_bytes = HEAD_BYTES + round_up(largest(type, false)),
        .reply_bytes = reply,
        .init = actor_init,
        .handle = actor_handle,
    };
    made->next = first;
    while (!atomic_compare_exchange_weak(&world->behaviours, &made->next, made)) {
    }
    return made;
}

void jl_supervisors_free(struct jl_world *world)
{
    for (struct jl_behaviour *next, *at = atomic_load(&world->behaviours); at; at = next) {
        next = at->next;
        free(at);
    }
}

struct jl_supervisor *jl_supervisor_new(void)
{
    struct jl_supervisor *made = jl_task_memory(sizeof *made);
    *made = (struct jl_supervisor){.owner = janus_task_current_id()};
    return made;
}

int64_t jl_supervisor_spawn(struct jl_supervisor *supervisor, struct jl_nursery *nursery,
                            const struct jl_actor_type *type, janus_actor *out)
{
    struct jl_task  *self = jl_self();
    struct jl_scope *scope = jl_scope_of(nursery);
    *out = (janus_actor){{0, 0}};
    if (supervisor->owner != janus_task_current_id()) return JANUS_STATE; /* only from QTJIR */
    if (!supervisor->scope) {
        janus_status opened = janus_supervisor_open(NULL, &supervisor->open);
        if (opened != JANUS_OK) return opened;
        supervisor->scope = scope;
        supervisor->next = scope->supervisors;
        scope->supervisors = supervisor;
    }
    const struct jl_behaviour *of = behaviour_of(self->world, type);
    return janus_supervisor_add(
        supervisor->open,
        JANUS_CHILD(.behaviour = &of->behaviour, .argument = (void *)(uintptr_t)of), out);
}

int64_t jl_supervisors_end(struct jl_scope *scope)
{
    int64_t error = 0;
    while (scope->supervisors) {
        struct jl_supervisor *supervisor = scope->supervisors;
        scope->supervisors = supervisor->next;
        supervisor->scope = NULL;
        janus_status status = janus_supervisor_end(supervisor->open, NULL);
        if (status == JANUS_CANCELLED && scope->own_cancel) status = JANUS_OK;
        if (error == 0) error = status;
    }
    return error;
}

/* A message: the method's number, then the arguments, packed. */
static char *message_of(const struct jl_actor_type *type, uint32_t method, const void *arguments,
                        char *small)
{
    const struct jl_actor_method *of = &type->methods[method];
    size_t                        bytes = HEAD_BYTES + round_up(largest(type, false));
    char                         *message = bytes <= SMALL ? small : jl_task_memory(bytes);
    memset(message, 0, bytes);
    memcpy(message, &method, sizeof method);
    if (of->argument_bytes > 0) memcpy(message + HEAD_BYTES, arguments, of->argument_bytes);
    jl_pack(message + HEAD_BYTES, of->arguments);
    return message;
}

int64_t jl_actor_send(janus_actor actor, const struct jl_actor_type *type, uint32_t method,
                      const void *arguments)
{
    _Alignas(16) char small[SMALL];
    char             *message = message_of(type, method, arguments, small);
    janus_status      status = janus_cast(actor, message);
    if (status != JANUS_OK) jl_unpack_drop(message + HEAD_BYTES, type->methods[method].arguments);
    if (message != small) janus_free(message);
    return status;
}

int64_t jl_actor_call(janus_actor actor, const struct jl_actor_type *type, uint32_t method,
                      const void *arguments, void *reply)
{
    const struct jl_actor_method *of = &type->methods[method];
    _Alignas(16) char             small[SMALL], small_reply[SMALL];
    size_t                        bytes = round_up(largest(type, true)) + sizeof(int64_t);
    char                         *answer = bytes <= SMALL ? small_reply : jl_task_memory(bytes);
    char                         *message = message_of(type, method, arguments, small);
    int64_t status = janus_call(actor, message, answer, janus_now_ns() + 5 * JANUS_SECONDS);
    if (status == JANUS_OK) {
        memcpy(&status, answer, sizeof status);
    } else if (status != JANUS_GONE && status != JANUS_RESTARTED && status != JANUS_DEADLINE &&
               status != JANUS_NO_REPLY) {
        jl_unpack_drop(message + HEAD_BYTES, of->arguments);
    }
    if (status == 0) {
        jl_unpack(answer + sizeof status, of->reply);
        memcpy(reply, answer + sizeof status, of->reply_bytes);
    }
    if (message != small) janus_free(message);
    if (answer != small_reply) janus_free(answer);
    return status;
}
