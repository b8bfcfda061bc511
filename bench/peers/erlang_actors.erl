%% SPDX-License-Identifier: MIT

%% The works of janusrt_actors.c with Erlang: cast, call, ring, actors, restart. The frame is in
%% erlang_works.erl.
%%
%% Timed: as "Erlang" plain processes, as "Erlang/OTP" gen_server and supervisor. A mailbox has no
%%        limit, so a sender never waits for room. A call of a plain process has a reference, but
%%        no monitor. In actors a gen_server stands alone, without a supervisor's record of it.
%%        "Erlang/OTP hibernated" collects its heap before it rests. Each crowd runs in a new
%%        emulator, because an emulator keeps what it has freed. The caller of restart polls the
%%        registered name until it names a new process. At each restart a supervisor walks the list
%%        of all restarts within a second, so every hundred restarts have a new supervisor. Reports
%%        are off.
%% Moves it: a heap for each process, copied messages, a monitor for each call.
-module(erlang_actors).
-export([works/0, idle/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, start_server/1]).

-import(erlang_works, [await/2, footprint/0, need/2, now_ns/0, percentile/2, pick/2, repeat/2,
                       say/3, turns/3]).

-define(RING, 1000).
-define(CHILDREN, 10000).
-define(DOWNS, 1000).
-define(RESTARTS, 100).
-define(WARM, 10).

works() ->
    [{"cast", fun casts/0},
     {"call", fun calls/0},
     {"ring", fun() -> turns("a hop, 1000 actors", "ns", fun ring/0) end},
     {"actors", fun actors/0},
     {"restart", fun() -> otp(fun restarts/0) end}].

otp(Run) -> as("Erlang/OTP", Run).

as(System, Run) ->
    put(system, System),
    Run(),
    erase(system).

%% The gen_server, and the supervisors.

init({sum, Parent}) -> {ok, {Parent, 0}};
init(server) -> {ok, 0};
init(hibernated) -> {ok, 0, hibernate};
init({supervisor, Strategy, Children}) ->
    {ok, {#{strategy => Strategy, intensity => 1000000, period => 1}, Children}}.

handle_call(Value, _From, State) -> {reply, Value + 1, State}.

handle_cast(tell, {Parent, Sum}) ->
    Parent ! {sum, Sum},
    {noreply, {Parent, 0}};
handle_cast(crash, State) -> {stop, crash, State};
handle_cast(down, State) -> {stop, {shutdown, now_ns()}, State};
handle_cast(Value, {Parent, Sum}) -> {noreply, {Parent, Sum + Value}}.

handle_info({From, Value}, State) ->
    From ! Value + 1,
    {noreply, State}.

server(Argument) ->
    {ok, Server} = gen_server:start(?MODULE, Argument, []),
    Server.

start_server(Name) -> gen_server:start_link({local, Name}, ?MODULE, server, []).

%% Messages.

messages() -> pick(200000, 1000000).

casts() ->
    turns("a message, 1 to 1", "ns", fun() -> cast_from(1) end),
    turns("a message, 4 to 1", "ns", fun() -> cast_from(4) end),
    otp(fun() ->
        turns("a message, 1 to 1", "ns", fun() -> server_cast_from(1) end),
        turns("a message, 4 to 1", "ns", fun() -> server_cast_from(4) end)
    end).

check_sum(Sum, Senders, Each) ->
    need(Sum =:= Senders * (Each * (Each + 1) div 2), "a message is missing").

add(0, Sum) -> Sum;
add(Left, Sum) ->
    receive Value -> add(Left - 1, Sum + Value) end.

produce(_To, 0) -> ok;
produce(To, Left) ->
    To ! Left,
    produce(To, Left - 1).

cast_from(Senders) ->
    Parent = self(),
    Each = messages() div Senders,
    Start = now_ns(),
    Actor = spawn(fun() -> Parent ! {sum, add(Each * Senders, 0)} end),
    repeat(Senders, fun() -> spawn(fun() -> produce(Actor, Each) end) end),
    Sum = receive {sum, Got} -> Got end,
    Spent = now_ns() - Start,
    check_sum(Sum, Senders, Each),
    Spent / (Each * Senders).

server_produce(_To, 0) -> ok;
server_produce(To, Left) ->
    gen_server:cast(To, Left),
    server_produce(To, Left - 1).

server_cast_from(Senders) ->
    Parent = self(),
    Each = messages() div Senders,
    Actor = server({sum, Parent}),
    Start = now_ns(),
    repeat(Senders, fun() ->
        spawn(fun() ->
            server_produce(Actor, Each),
            Parent ! sent
        end)
    end),
    await(Senders, sent),
    gen_server:cast(Actor, tell),
    Sum = receive {sum, Got} -> Got end,
    Spent = now_ns() - Start,
    gen_server:stop(Actor),
    check_sum(Sum, Senders, Each),
    Spent / (Each * Senders).

calls() ->
    calls_to(fun() -> spawn(fun answer/0) end, fun ask/3),
    otp(fun() -> calls_to(fun() -> server(server) end, fun gen_server:call/3) end).

calls_to(Make, Call) ->
    turns("a call without a deadline", "ns", fun() -> calls(Make, Call, infinity) end),
    turns("a call with a deadline of 5 s", "ns", fun() -> calls(Make, Call, 5000) end).

answer() ->
    receive
        {From, Reference, Value} ->
            From ! {Reference, Value + 1},
            answer()
    end.

ask(Actor, Value, Within) ->
    Reference = make_ref(),
    Actor ! {self(), Reference, Value},
    receive
        {Reference, Answer} -> Answer
    after Within -> error("a deadline passed")
    end.

call(_Actor, _Call, _Within, 0, Value) -> Value;
call(Actor, Call, Within, Left, Value) ->
    call(Actor, Call, Within, Left - 1, Call(Actor, Value, Within)).

calls(Make, Call, Within) ->
    Parent = self(),
    Count = pick(50000, 300000),
    Actor = Make(),
    Start = now_ns(),
    spawn(fun() -> Parent ! {answers, call(Actor, Call, Within, Count, 0)} end),
    Value = receive {answers, Got} -> Got end,
    Spent = now_ns() - Start,
    exit(Actor, kill),
    need(Value =:= Count, "an answer is missing"),
    Spent / Count.

%% One number goes round until it is zero.

hop(Next, Parent) ->
    receive
        stop -> ok;
        0 ->
            Parent ! over,
            hop(Next, Parent);
        Hops ->
            Next ! Hops - 1,
            hop(Next, Parent)
    end.

ring() ->
    Parent = self(),
    First = spawn(fun() -> receive {next, Next} -> hop(Next, Parent) end end),
    Others = lists:foldl(fun(_, [Next | _] = Made) -> [spawn(fun() -> hop(Next, Parent) end) | Made]
                         end, [First], lists:seq(2, ?RING)),
    First ! {next, hd(Others)},
    First ! ?RING, % each runs once
    await(1, over),
    Start = now_ns(),
    First ! messages(),
    await(1, over),
    Spent = now_ns() - Start,
    [Actor ! stop || Actor <- Others],
    Spent / messages().

%% Lives.

actors() ->
    turns_of_down(fun down/0),
    otp(fun() ->
        turns("start, stop and await an actor", "ns", fun start_stop/0),
        turns_of_down(fun server_down/0),
        turns("stop of a supervisor with 10000 children, in order", "ms",
              fun() -> stop_supervisor(one_for_one) end),
        turns("stop of a supervisor with 10000 children, together", "ms",
              fun() -> stop_supervisor(simple_one_for_one) end)
    end),
    [io:put_chars(os:cmd(in_new_emulator(Sort))) || Sort <- [server, hibernated]].

in_new_emulator(Sort) ->
    io_lib:format("'~s/bin/erl' +S ~b:~b +P 4000000 -noinput -pa '~s' -s ~s idle "
                  "-extra ~s ~b ~s",
                  [code:root_dir(), get(workers), get(workers),
                   filename:dirname(code:which(?MODULE)), ?MODULE, Sort, get(workers),
                   pick("quick", "full")]).

idle() ->
    [Sort, Workers, Size] = init:get_plain_arguments(),
    put(work, "actors"),
    put(workers, list_to_integer(Workers)),
    put(quick, Size =:= "quick"),
    erlang_works:run(fun() ->
        case Sort of
            "server" -> otp(fun() -> idle_actors(server) end);
            "hibernated" -> as("Erlang/OTP hibernated", fun() -> idle_actors(hibernated) end)
        end
    end).

start_stop() ->
    Count = pick(5000, 20000),
    Start = now_ns(),
    repeat(Count, fun() -> gen_server:stop(server(server)) end),
    (now_ns() - Start) / Count.

%% What ends tells in its reason when that was.

turns_of_down(Once) ->
    turns("an actor's end until DOWN, p50", "ns", fun() ->
        percentile([Once() || _ <- lists:seq(1, ?DOWNS)], 50)
    end).

down() ->
    {Actor, Monitor} = spawn_monitor(fun() -> receive go -> exit(now_ns()) end end),
    Actor ! go,
    receive {'DOWN', Monitor, process, Actor, Ended} -> now_ns() - Ended end.

server_down() ->
    Actor = server(server),
    Monitor = monitor(process, Actor),
    gen_server:cast(Actor, down),
    receive {'DOWN', Monitor, process, Actor, {shutdown, Ended}} -> now_ns() - Ended end.

%% As a supervisor's own parent, a process of its own stops it.

stop_supervisor(one_for_one) ->
    stop_supervisor(one_for_one, [], fun(Supervisor, Number) ->
        supervisor:start_child(Supervisor, child(Number, [gen_server, start_link,
                                                          [?MODULE, server, []]]))
    end);
stop_supervisor(simple_one_for_one) ->
    Child = child(one, [gen_server, start_link, [?MODULE, server, []]]),
    stop_supervisor(simple_one_for_one, [Child], fun(Supervisor, _Number) ->
        supervisor:start_child(Supervisor, [])
    end).

child(Id, [Module, Function, Arguments]) ->
    #{id => Id, start => {Module, Function, Arguments}}.

stop_supervisor(Strategy, Children, Add) ->
    process_flag(trap_exit, true),
    {ok, Supervisor} = supervisor:start_link(?MODULE, {supervisor, Strategy, Children}),
    [{ok, _} = Add(Supervisor, Number) || Number <- lists:seq(1, ?CHILDREN)],
    Start = now_ns(),
    exit(Supervisor, shutdown),
    receive {'EXIT', Supervisor, shutdown} -> ok end,
    (now_ns() - Start) / 1.0e6.

idle_actors(Sort) ->
    Count = pick(100000, 1000000),
    erlang:garbage_collect(),
    Base = footprint(),
    Actors = [server(Sort) || _ <- lists:seq(1, Count)],
    say("an idle actor", "B", (footprint() - Base) / Count),
    Self = self(),
    Start = now_ns(),
    spawn(fun() -> [Actor ! {Self, 1} || Actor <- Actors] end),
    Sum = add(Count, 0),
    say("a message to each idle actor, all answer", "ns", (now_ns() - Start) / Count),
    say("an idle actor that has answered", "B", (footprint() - Base) / Count),
    need(Sum =:= 2 * Count, "an answer is missing").

%% Restarts.

restarts() ->
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    Rounds = pick(10, 50),
    Samples = lists:append([restarts_of_one() || _ <- lists:seq(1, Rounds)]),
    say("from the crash to an answer, p50", "ns", percentile(Samples, 50)),
    say("from the crash to an answer, p99", "ns", percentile(Samples, 99)).

restarts_of_one() ->
    Child = child(worker, [?MODULE, start_server, [worker]]),
    {ok, Supervisor} = supervisor:start_link(?MODULE, {supervisor, one_for_one, [Child]}),
    repeat(?WARM, fun crash/0),
    Samples = [crash() || _ <- lists:seq(1, ?RESTARTS)],
    exit(Supervisor, shutdown),
    receive {'EXIT', Supervisor, shutdown} -> ok end,
    Samples.

crash() ->
    Old = whereis(worker),
    Start = now_ns(),
    gen_server:cast(Old, crash),
    2 = gen_server:call(other_than(Old), 1, infinity),
    now_ns() - Start.

other_than(Old) ->
    case whereis(worker) of
        New when is_pid(New), New =/= Old -> New;
        _ ->
            erlang:yield(),
            other_than(Old)
    end.
