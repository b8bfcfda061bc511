%% SPDX-License-Identifier: MIT

%% The works of janusrt_*.c with Erlang's processes. The protocol is that of runner.h. A wrapper
%% starts it with as many schedulers as there are workers and room for four million processes.
%% All other settings are the defaults.
%%
%% Timed: yield, spawn, million, growth, fib, skynet, pingpong, buffered, select, live, timers,
%%        neighbours. A join is a message to the parent. A mailbox has no limit, so the sender of
%%        buffered never waits for room. It belongs to one process, so there is no mpmc. A select
%%        is a receive from any of eight senders. Senders of select wait for an answer, as those
%%        of a channel without room do. Fib is always fib(27): the queue is first in, first out,
%%        so most calls are alive at once, and fib(32) would take 9 GB.
%% Moves it: a heap for each process, copied messages, counted reductions.
-module(erlang_works).
-export([main/0]).
-export([await/2, footprint/0, need/2, now_ns/0, percentile/2, pick/2, repeat/2, run/1, say/3,
         turns/3]).

-define(BATCH, 1000).
-define(MILLION, 1000000).
-define(WIDTH, 10).
-define(SLEEPERS, 100000).
-define(SELECTED, 8).
-define(CREW, 4).
-define(ATTACKERS, 4).
-define(UNIT_ROUNDS, 3000).

works() ->
    [{"spawn", fun spawns/0},
     {"million", fun million/0},
     {"growth", fun growth/0},
     {"fib", fun() -> turns("a spawn of fib", "ns", fun fibs/0) end},
     {"yield", fun() -> turns("a yield", "ns", fun yields/0) end},
     {"skynet", fun() -> turns("1000000 leaves", "ms", fun skynet/0) end},
     {"pingpong", fun() -> turns("a round trip", "ns", fun pingpong/0) end},
     {"buffered", fun() -> turns("a message, 1 to 1, room for 128", "ns", fun buffered/0) end},
     {"select", fun() -> turns("a message, select over 8", "ns", fun selects/0) end},
     {"live", fun live/0},
     {"timers", fun timers/0},
     {"neighbours", fun neighbours/0} | erlang_actors:works()].

%% The frame.

main() ->
    case init:get_plain_arguments() of
        ["works"] ->
            [io:format("~s 0~n", [Name]) || {Name, _} <- works()],
            halt(0);
        ["run", Work, Workers, Size] ->
            put(work, Work),
            put(workers, list_to_integer(Workers)),
            put(quick, Size =:= "quick"),
            case lists:keyfind(Work, 1, works()) of
                {_, Run} -> run(Run);
                false -> usage()
            end;
        _ ->
            usage()
    end.

usage() ->
    io:format(standard_error, "usage: works | run WORK WORKERS full|quick~n", []),
    halt(2).

%% A process with many senders keeps its mailbox out of its heap, as the manual advises. Otherwise
%% every collection visits all unread messages, and a million of them take half a minute.
run(Run) ->
    process_flag(message_queue_data, off_heap),
    try
        Run(),
        halt(0)
    catch
        Class:Reason:Where ->
            io:format(standard_error, "Erlang, ~s: ~p ~p ~p~n", [get(work), Class, Reason, Where]),
            halt(1)
    end.

pick(Quick, Full) ->
    case get(quick) of
        true -> Quick;
        false -> Full
    end.

need(true, _What) -> ok;
need(false, What) -> error(What).

now_ns() -> erlang:monotonic_time(nanosecond).

%% The system is "Erlang", unless the process dictionary says otherwise.
say(Metric, Unit, Value) ->
    System = case get(system) of undefined -> "Erlang"; Other -> Other end,
    io:format("{\"work\":\"~s\",\"system\":\"~s\",\"version\":\"~s\",\"workers\":~b,"
              "\"metric\":\"~s\",\"unit\":\"~s\",\"value\":~.3f}~n",
              [get(work), System, erlang:system_info(otp_release), get(workers), Metric, Unit,
               float(Value)]).

%% Runs some turns. A short first one warms up and is not reported.
turns(Metric, Unit, Once) ->
    Enough = pick(50000000, 300000000),
    Start = now_ns(),
    Value = Once(),
    case now_ns() - Start > Enough of
        true -> say(Metric, Unit, Value);
        false -> turns(Metric, Unit, Once, now_ns() + Enough, 5)
    end.

turns(_Metric, _Unit, _Once, _Until, 0) ->
    ok;
turns(Metric, Unit, Once, Until, Left) ->
    say(Metric, Unit, Once()),
    case now_ns() > Until of
        true -> ok;
        false -> turns(Metric, Unit, Once, Until, Left - 1)
    end.

percentile(Values, Percent) ->
    lists:nth((length(Values) - 1) * Percent div 100 + 1, lists:sort(Values)).

repeat(0, _Do) -> ok;
repeat(Times, Do) ->
    Do(),
    repeat(Times - 1, Do).

await(0, _What) -> ok;
await(Times, What) ->
    receive What -> await(Times - 1, What) end.

%% Tasks.

batch(Children) ->
    Parent = self(),
    repeat(Children, fun() -> spawn(fun() -> Parent ! done end) end),
    await(Children, done).

timed_batches(Batches, Children) ->
    batch(min(Children, ?BATCH)),
    Start = now_ns(),
    repeat(Batches, fun() -> batch(Children) end),
    (now_ns() - Start) / (Batches * Children).

spawns() ->
    Batches = pick(100, 300),
    turns("a task, batches of 1000", "ns", fun() -> timed_batches(Batches, ?BATCH) end).

million() ->
    Once = fun() -> timed_batches(1, ?MILLION) end,
    say("a task, first batch of 1000000", "ns", Once()),
    turns("a task, one batch of 1000000", "ns", Once).

growth() ->
    [begin
         Metric = io_lib:format("a task, batches of ~b", [Children]),
         turns(Metric, "ns", fun() -> timed_batches(min(300, ?MILLION div Children), Children) end)
     end || Children <- [100, 1000, 10000, 100000, 1000000]].

fib(N) when N < 2 ->
    N;
fib(N) ->
    Parent = self(),
    Child = spawn(fun() -> Parent ! {self(), fib(N - 1)} end),
    Right = fib(N - 2),
    receive {Child, Left} -> Left + Right end.

serial_fib(0, Previous, _Current) -> Previous;
serial_fib(N, Previous, Current) -> serial_fib(N - 1, Current, Previous + Current).

fibs() ->
    Start = now_ns(),
    Result = fib(27),
    Spent = now_ns() - Start,
    need(Result =:= serial_fib(27, 0, 1), "fib is wrong"),
    Spent / (serial_fib(28, 0, 1) - 1).

yielder(0) -> ok;
yielder(Times) ->
    erlang:yield(),
    yielder(Times - 1).

yields() ->
    Parent = self(),
    Count = pick(200000, 1000000),
    Tasks = 2 * get(workers),
    Start = now_ns(),
    repeat(Tasks, fun() ->
        spawn(fun() ->
            yielder(Count),
            Parent ! done
        end)
    end),
    await(Tasks, done),
    (now_ns() - Start) / (2 * Count).

skynet_node(Parent, First, 1) ->
    Parent ! First;
skynet_node(Parent, First, Leaves) ->
    Self = self(),
    Part = Leaves div ?WIDTH,
    [spawn(fun() -> skynet_node(Self, First + I * Part, Part) end)
     || I <- lists:seq(0, ?WIDTH - 1)],
    Parent ! sum(?WIDTH, 0).

sum(0, Sum) -> Sum;
sum(Left, Sum) ->
    receive Part -> sum(Left - 1, Sum + Part) end.

skynet() ->
    Self = self(),
    Start = now_ns(),
    spawn(fun() -> skynet_node(Self, 0, ?MILLION) end),
    Sum = sum(1, 0),
    Spent = (now_ns() - Start) / 1.0e6,
    need(Sum =:= ?MILLION * (?MILLION - 1) div 2, "the sum is wrong"),
    Spent.

%% Messages.

messages() -> pick(200000, 1000000).

answer() ->
    receive
        {From, Value} ->
            From ! Value + 1,
            answer();
        stop ->
            ok
    end.

ask(_Other, 0, Value) ->
    Value;
ask(Other, Left, Value) ->
    Other ! {self(), Value},
    receive Answer -> ask(Other, Left - 1, Answer) end.

pingpong() ->
    Parent = self(),
    Messages = messages(),
    Start = now_ns(),
    Other = spawn(fun answer/0),
    spawn(fun() ->
        Value = ask(Other, Messages, 0),
        Other ! stop,
        Parent ! {answers, Value}
    end),
    Value = receive {answers, Got} -> Got end,
    Spent = now_ns() - Start,
    need(Value =:= Messages, "an answer is missing"),
    Spent / Messages.

produce(_To, Last, Next) when Next > Last -> ok;
produce(To, Last, Next) ->
    To ! Next,
    produce(To, Last, Next + 1).

buffered() ->
    Parent = self(),
    Messages = messages(),
    Start = now_ns(),
    Receiver = spawn(fun() -> Parent ! {sum, sum(Messages, 0)} end),
    spawn(fun() -> produce(Receiver, Messages, 1) end),
    Sum = receive {sum, Got} -> Got end,
    Spent = now_ns() - Start,
    need(Sum =:= Messages * (Messages + 1) div 2, "a message is missing"),
    Spent / Messages.

feed(_To, 0) -> ok;
feed(To, Left) ->
    To ! {self(), Left},
    receive taken -> feed(To, Left - 1) end.

take(0, Sum) -> Sum;
take(Left, Sum) ->
    receive
        {From, Value} ->
            From ! taken,
            take(Left - 1, Sum + Value)
    end.

selects() ->
    Parent = self(),
    Each = messages() div ?SELECTED,
    Start = now_ns(),
    repeat(?SELECTED, fun() -> spawn(fun() -> feed(Parent, Each) end) end),
    Sum = take(Each * ?SELECTED, 0),
    Spent = now_ns() - Start,
    need(Sum =:= ?SELECTED * (Each * (Each + 1) div 2), "a message is missing"),
    Spent / (Each * ?SELECTED).

%% Crowds.

%% VmRSS + VmPTE, in bytes.
footprint() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    lists:sum([begin
                   {match, [Kib]} = re:run(Text, Name ++ ":\\s*(\\d+)",
                                           [{capture, all_but_first, list}]),
                   list_to_integer(Kib) * 1024
               end || Name <- ["VmRSS", "VmPTE"]]).

until(Condition) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:yield(),
            until(Condition)
    end.

spawn_all(0, _Do) -> [];
spawn_all(Count, Do) -> [spawn(Do) | spawn_all(Count - 1, Do)].

live() ->
    Count = pick(100000, ?MILLION),
    Counts = counters:new(2, []),
    Before = erlang:system_info(process_count),
    Base = footprint(),
    Start = now_ns(),
    Tasks = spawn_all(Count, fun() ->
        counters:add(Counts, 1, 1),
        receive go -> counters:add(Counts, 2, 1) end
    end),
    until(fun() -> counters:get(Counts, 1) =:= Count end),
    say("create and block", "ns", (now_ns() - Start) / Count),
    say("bytes a task", "B", (footprint() - Base) / Count),
    Woken = now_ns(),
    [Task ! go || Task <- Tasks],
    until(fun() -> erlang:system_info(process_count) =< Before end),
    say("wake and end", "ns", (now_ns() - Woken) / Count),
    need(counters:get(Counts, 2) =:= Count, "not all ended").

%% Deadlines: a receive that meets its deadline, and sleeps.

timers() ->
    Each = pick(5, 10),
    turns("100000 tasks sleep a millisecond or two, a sleep", "ns", fun() -> sleeps(Each) end),
    Counts = counters:new(1, []),
    [spawn(fun() ->
         counters:add(Counts, 1, 1),
         receive after 1000000 + I * 7919 rem ?SLEEPERS * 10 -> error("somebody woke") end
     end) || I <- lists:seq(1, ?SLEEPERS)],
    until(fun() -> counters:get(Counts, 1) =:= ?SLEEPERS end),
    turns("arm and disarm, 100000 others wait", "ns", fun arm_disarm/0).

%% The clock of receive counts milliseconds: half of the processes sleep one, half two.
sleeps(Each) ->
    Parent = self(),
    Start = now_ns(),
    [spawn(fun() ->
         Rest = 1 + I rem 2,
         repeat(Each, fun() -> receive after Rest -> ok end end),
         Parent ! slept
     end) || I <- lists:seq(1, ?SLEEPERS)],
    await(?SLEEPERS, slept),
    (now_ns() - Start) / (?SLEEPERS * Each).

answer_within(0) -> ok;
answer_within(Left) ->
    receive
        {From, Value} ->
            From ! Value + 1,
            answer_within(Left - 1)
    after 3600000 -> error("a deadline passed")
    end.

ask_within(_Other, 0, Value) -> Value;
ask_within(Other, Left, Value) ->
    Other ! {self(), Value},
    receive
        Answer -> ask_within(Other, Left - 1, Answer)
    after 3600000 -> error("a deadline passed")
    end.

arm_disarm() ->
    Parent = self(),
    Rounds = pick(50000, 200000),
    Start = now_ns(),
    Other = spawn(fun() -> answer_within(Rounds) end),
    spawn(fun() -> Parent ! {answers, ask_within(Other, Rounds, 0)} end),
    Value = receive {answers, Got} -> Got end,
    Spent = now_ns() - Start,
    need(Value =:= Rounds, "an answer is missing"),
    Spent / (2 * Rounds).

%% Neighbours: see go_crowds.go. A unit takes about 20 us, as there, in fewer rounds.

unit(0, State) -> State;
unit(Left, State) -> unit(Left - 1, ((State bxor Left) * 40503 + (State bsr 7)) band 16#ffffffff).

over(Over) -> counters:get(Over, 1) =/= 0.

member(Over, State, Last, Samples) ->
    Next = unit(?UNIT_ROUNDS, State),
    erlang:yield(),
    This = now_ns(),
    Told = [This - Last | Samples],
    case over(Over) of
        true -> Told;
        false -> member(Over, Next, This, Told)
    end.

hog(Over, State) ->
    case over(Over) of
        true -> ok;
        false -> hog(Over, unit(?UNIT_ROUNDS, State))
    end.

spawn_bomb(Over) ->
    case over(Over) of
        true -> ok;
        false ->
            batch(?BATCH),
            spawn_bomb(Over)
    end.

%% Blocks of 1000 bytes, 32 MB of them, then the same again.
allocation_bomb(Over, Left, Blocks) ->
    case over(Over) of
        true -> ok;
        false when Left =:= 0 -> allocation_bomb(Over, 32000, []);
        false -> allocation_bomb(Over, Left - 1, [binary:copy(<<1>>, 1000) | Blocks])
    end.

window(What, Attack) ->
    Parent = self(),
    Over = counters:new(1, []),
    repeat(?CREW, fun() ->
        spawn(fun() -> Parent ! {samples, member(Over, 1, now_ns(), [])} end)
    end),
    Attackers = case Attack of none -> 0; _ -> ?ATTACKERS end,
    repeat(Attackers, fun() ->
        spawn(fun() ->
            Attack(Over),
            Parent ! stopped
        end)
    end),
    receive after pick(500, 1500) -> counters:put(Over, 1, 1) end,
    Samples = lists:append([receive {samples, Some} -> Some end || _ <- lists:seq(1, ?CREW)]),
    await(Attackers, stopped),
    say(["a unit of work ", What, ", p99"], "us", percentile(Samples, 99) / 1000).

neighbours() ->
    window("alone", none),
    window("beside CPU hogs", fun(Over) -> hog(Over, 1) end),
    window("beside spawn bombs", fun spawn_bomb/1),
    window("beside allocation bombs", fun(Over) -> allocation_bomb(Over, 32000, []) end).
