/* SPDX-License-Identifier: MIT */
/*
 * Budgets of supervised actors, whatever happens to them: in every account
 * granted = left + shares + nested + spent + refunded, at every step. A11.2.
 *
 *     SCHEDULES=100000 build/gcc-release/tests/actor/supervisor_books_test verdicts
 */
#include "play.h"

#include "actor/supervisor.h"
#include "means/terms.h"

enum { ACTORS = 3, WALKERS = 2, STEPS = 10, RESTARTS = 1000 };

static const janus_budget pool = {60000, UINT64_C(4) << 20, 400, 4000, 100};
static const janus_budget life = {3000, 65536, 4, 40, 4};
static const janus_budget each = {300, 32768, 2, 10, 2};

static uint64_t seed; /* of the play; a schedule must not change it */

/* What all scenes did, for the line at the end. */
static _Atomic(uint64_t) checks, exhaustions, restarts, messages;

struct books {
    janus_supervisor *stage;
    janus_actor       actors[ACTORS];
    struct role       roles[ACTORS];
    _Atomic(uint64_t) state; /* of chance */
    _Atomic(uint64_t) steps; /* at which the books were checked */
};

static uint64_t chance(struct books *books, uint64_t sides)
{
    uint64_t state = atomic_load(&books->state);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    atomic_store(&books->state, state);
    return state % sides;
}

/* The books of all accounts of the scheduler, and of the pool beside its children's. Only the
 * explorer stops all others meanwhile. */
static void check_books(struct books *books)
{
    struct jrt_account_fault fault;
    struct jrt_account_books pool_books;
    struct jrt_pool_account *account = jrt_supervisor_nursery(books->stage)->terms->account;
    books->steps++;
    if (play_explored) MUST(jrt_account_check(&books->stage->scheduler->bank, &fault));
    jrt_account_read(account, &pool_books);
    janus_budget sum = janus_budget_add(pool_books.left, pool_books.shares);
    sum = janus_budget_add(janus_budget_add(sum, pool_books.nested), pool_books.spent);
    MUST(janus_budget_equal(janus_budget_add(sum, pool_books.refunded), pool_books.granted));
}

/* Verdicts by chance. */

static janus_verdict on_exhausted(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    static const janus_verdict verdicts[] = {JANUS_VERDICT_RECHARGE, JANUS_VERDICT_RECHARGE,
                                             JANUS_VERDICT_IGNORE, JANUS_VERDICT_RESTART,
                                             JANUS_VERDICT_CANCEL};
    struct books              *books = argument;
    check_books(books);
    atomic_fetch_add(&exhaustions, 1);
    *grant = janus_budget_of(500, child->needs + 1000, 2, 10, 2);
    return verdicts[chance(books, sizeof verdicts / sizeof *verdicts)];
}

static janus_decision on_end(void *argument, const janus_child_event *event, uint64_t *delay_ns)
{
    struct books *books = argument;
    (void)event;
    check_books(books);
    if (chance(books, 4) == 0) *delay_ns = JANUS_MS;
    return chance(books, 8) == 0 ? JANUS_DECISION_RESTART : JANUS_DECISION_DEFAULT;
}

/* What a message may do. */

enum {
    DO_OPS,
    DO_MEMORY,
    DO_SPAWNS,
    DO_CASTS,
    DO_FAIL,
    DO_PANIC,
    DO_STOP,
    DO_ADD,
    DO_SLEEP,
    DOINGS
};

static int64_t act_any(struct self *self, janus_letter *letter, const struct line *line)
{
    struct books *books = self->role->stage;
    void         *block;
    check_books(books);
    switch (line->number) {
    case DO_OPS:
        for (int i = 0; i < 400; i++) JANUS_IGNORE(janus_check());
        break;
    case DO_MEMORY:
        if (janus_try_alloc(20000, &block) == JANUS_OK && chance(books, 2) == 0) janus_free(block);
        break;
    case DO_SPAWNS:
        for (int i = 0; i < 3; i++) JANUS_IGNORE(janus_charge(janus_price_spawn()));
        break;
    case DO_CASTS:
        for (int i = 0; i < 4; i++)
            JANUS_IGNORE(try_say(books->actors[chance(books, ACTORS)], act_add, NULL, 1));
        break;
    case DO_FAIL: return -100;
    case DO_PANIC: janus_panic("by chance");
    case DO_STOP: return JANUS_ACTOR_STOP;
    case DO_SLEEP: JANUS_IGNORE(janus_sleep(2 * JANUS_MS)); break;
    default: break;
    }
    check_books(books);
    return act_add(self, letter, line);
}

static int64_t start(struct self *self)
{
    check_books(self->role->stage);
    return JANUS_ACTOR_GO_ON;
}

static void finish(struct self *self, const janus_end *end)
{
    (void)end;
    check_books(self->role->stage);
}

static void open_books(struct books *books, uint64_t number, uint32_t max_restarts)
{
    memset(books, 0, sizeof *books);
    books->state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    const janus_supervisor_options *options =
        JANUS_SUPERVISOR_OPTIONS(.budget = &pool, .max_restarts = max_restarts, .price = 20,
                                 .strategy = (janus_supervision)(number % 3),
                                 .on_exhausted = on_exhausted, .on_exhausted_argument = books,
                                 .on_end = on_end, .on_end_argument = books,
                                 .allowance = {.amount = {200, 4096, 1, 10, 1},
                                               .period_ns = JANUS_MS});
    MUST_EQ(janus_supervisor_open(options, &books->stage), JANUS_OK);
    for (int i = 0; i < ACTORS; i++) {
        books->roles[i] = (struct role){.stage = books, .start = start, .end = finish};
        janus_status status = janus_supervisor_add(
            books->stage,
            JANUS_CHILD(.behaviour = &player, .argument = &books->roles[i],
                        .stop_within_ns = 2 * JANUS_MS,
                        .restart = i == 1 ? JANUS_RESTART_TRANSIENT : JANUS_RESTART_PERMANENT,
                        .options = JANUS_ACTOR_OPTIONS(.budget = i != 0 ? &life : NULL,
                                                       .message_budget = i == 2 ? &each : NULL)),
            &books->actors[i]);
        MUST_EQ(status, JANUS_OK);
    }
}

/* Says something by chance. False: the supervisor has given up. */
static bool step(struct books *books)
{
    struct line  line = {act_any, NULL, (int64_t)chance(books, DOINGS)};
    janus_actor  actor = books->actors[chance(books, ACTORS)];
    uint64_t     soon = janus_now_ns() + 5 * JANUS_MS;
    janus_status status =
        chance(books, 2) == 0
            ? janus_cast_with(actor, &line, JANUS_CAST_OPTIONS(.deadline_ns = soon))
            : janus_call(actor, &line, NULL, soon);
    check_books(books);
    return status != JANUS_CANCELLED;
}

static int64_t walk(void *argument)
{
    for (int i = 0; i < STEPS && step(argument); i++) continue;
    return 0;
}

static void begin_sums(void) { checks = exhaustions = restarts = messages = 0; }

/* Something happened, and was checked. */
static void end_sums(void)
{
    printf("# books checked %llu times: %llu messages, %llu exhaustions, %llu restarts\n",
           (unsigned long long)checks, (unsigned long long)messages,
           (unsigned long long)exhaustions, (unsigned long long)restarts);
    CHECK(exhaustions > 0 && restarts > 0);
    CHECK(checks > messages);
}

/* All is settled: each unit of the pool was spent, or is left. Every message has ended. */
static janus_supervisor_result close_books(struct books *books)
{
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    janus_status            status = janus_supervisor_end(books->stage, &result);
    MUST(status == JANUS_OK ||
         (result.by_itself && (status == JANUS_BUDGET_EXHAUSTED || status == JANUS_TOO_OFTEN)));
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    MUST(books->steps > ACTORS);
    atomic_fetch_add(&checks, books->steps);
    atomic_fetch_add(&restarts, result.restarts);
    atomic_fetch_add(&messages, result.sent);
    return result;
}

static int64_t scene_verdicts(void *argument)
{
    struct books books;
    janus_status ended;
    (void)argument;
    open_books(&books, seed, 1000);
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < WALKERS; i++) MUST_EQ(janus_spawn(n, walk, &books), JANUS_OK);
    }
    MUST(ended == JANUS_OK || ended == JANUS_CANCELLED);
    close_books(&books);
    return 0;
}

TEST("no unit of a budget is lost or made, whatever verdicts and ends come by chance")
{
    begin_sums();
    uint64_t last = harness_part(12, 4);
    for (seed = 1; seed <= last; seed++) PLAY(scene_verdicts, .panics = true, .schedules = 100);
    end_sums();
}

/* Restarts by chance, as many as a supervisor has in a bad year. */

static int64_t scene_restarts(void *argument)
{
    struct books books;
    uint64_t     seen = 0;
    (void)argument;
    for (uint64_t number = seed; seen < RESTARTS; number++) {
        open_books(&books, number, RESTARTS);
        for (int i = 0; i < 400 && step(&books); i++) continue;
        seen += close_books(&books).restarts;
        MUST(number < seed + RESTARTS); /* most supervisors start something again */
    }
    return 0;
}

TEST("no unit of a budget is lost or made in a thousand restarts by chance")
{
    begin_sums();
    seed = 100;
    PLAY(scene_restarts, .panics = true, .schedules = 4);
    end_sums();
    CHECK(restarts >= RESTARTS);
}

/* Siblings that draw from a pool. */

enum { SIBLINGS = 5 };

static int64_t scene_siblings(void *argument)
{
    const janus_budget some = janus_budget_of(50000, 4 << 20, 10, 1000, 10);
    struct play        play;
    struct role        roles[SIBLINGS];
    janus_actor        actors[SIBLINGS];
    int                calls = 0;
    (void)argument;
    janus_supervisor *supervisor = play_open(&play, JANUS_SUPERVISOR_OPTIONS(.budget = &some));
    for (int i = 0; i < SIBLINGS; i++) {
        roles[i] = (struct role){.play = &play};
        actors[i] = add_child(supervisor, CHILD(&roles[i]));
    }
    while (calls < 940) {
        MUST_EQ(settle(actors[calls % SIBLINGS]), 0); /* nobody has failed */
        calls++;
    }
    play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("a child that runs out takes no more from the pool than its siblings can spare")
{
    PLAY(scene_siblings, .schedules = 20);
}
