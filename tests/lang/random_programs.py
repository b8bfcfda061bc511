#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random well-typed Janus programs.

usage: random_programs.py SEED [PROGRAMS] [--wild]

Prints one source file with PROGRAMS independent programs (20), which main runs one after the other.
The same seed gives the same file. Values stay small, so that nothing traps. With --wild there is
one program without these guards: it may overflow, divide by zero or index outside, and then panics.

The programs use integers of all sizes, f64, bool, str, slices, structs, closures, errors, loops,
nurseries, spawns that write into slices, async calls, channels, actors and defers.
"""
import random
import sys

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


class Scope:
    """Names that an expression may use: type -> names. `mutable` has those that may be assigned."""

    def __init__(self, outer=None):
        self.names = {kind: list(names) for kind, names in outer.names.items()} if outer else {}
        self.mutable = {kind: list(names) for kind, names in outer.mutable.items()} if outer else {}
        self.counters = set(outer.counters) if outer else set()  # changed by their loop alone

    def add(self, kind, name, mutable=False):
        self.names.setdefault(kind, []).append(name)
        if mutable:
            self.mutable.setdefault(kind, []).append(name)

    def frozen(self):
        """What a spawned block, a closure or a defer may capture: nothing that changes."""
        copy = Scope()
        copy.names = {kind: [name for name in names if name not in self.counters
                             and name not in self.mutable.get(kind, ())]
                      for kind, names in self.names.items()}
        return copy


class Program:
    def __init__(self, chance, number, wild):
        self.chance, self.number, self.wild = chance, number, wild
        self.lines, self.counter, self.functions = [], 0, []
        self.fallible = []

    def fresh(self, word):
        self.counter += 1
        return f"{word}{self.counter}"

    def pick(self, *options):
        return self.chance.choice(options)

    # Expressions. Every integer expression of a tame program has a value from -99 to 99 (0 to 99).

    def small(self, kind, text):
        if self.wild:
            return f"({text})"
        return f"(({text}) % 100)"

    def integer(self, kind, scope, depth):
        chance = self.chance
        names = scope.names.get(kind, [])
        if depth <= 0 or chance.random() < 0.2:
            if names and chance.random() < 0.7:
                return chance.choice(names)
            return self.literal(kind)
        choice = chance.randrange(9)
        left = self.integer(kind, scope, depth - 1)
        right = self.integer(kind, scope, depth - 1)
        if choice == 0:
            return f"(({left}) / 2 + ({right}) / 2)" if not self.wild else f"({left} + {right})"
        if choice == 1 and kind.startswith("i"):
            return f"(({left}) / 2 - ({right}) / 2)" if not self.wild else f"({left} - {right})"
        if choice == 2:
            if self.wild:
                return f"({left} * {right})"
            # 9 * 9 fits into an i8
            return f"((({left}) % 10) * (({right}) % 10))"
        if choice == 3:
            return f"({left} / {self.chance.randrange(1, 9)})" if not self.wild \
                else f"({left} / {right})"
        if choice == 4:
            return f"({left} % {self.chance.randrange(1, 50)})"
        if choice == 5:
            other = self.pick(*INTEGERS)
            inner = self.integer(other, scope, depth - 1)
            if not self.wild and other.startswith("i") and kind.startswith("u"):
                inner = f"({inner}) * ({inner}) / 100" if other not in ("i8",) else \
                    f"({inner} % 10) * ({inner} % 10)"
                # x / 100 * x stays below 100
            if inner.strip("(-)").isdigit():
                inner = f"i64({inner})" # a literal that does not fit would not compile
            return f"{kind}({inner})"
        if choice == 6 and scope.names.get("slice " + kind):
            items = chance.choice(scope.names["slice " + kind])
            index = chance.randrange(0, 3)
            return f"{items}[{index}]"
        if choice == 7 and kind == "i64":
            texts = scope.names.get("str", [])
            if texts:
                return self.small(kind, f"{chance.choice(texts)}.len")
        usable = [name for name, result, parts in self.functions if result == kind]
        if choice == 8 and usable and depth >= 2:
            wanted = chance.choice(usable)
            name, _, parts = next(f for f in self.functions if f[0] == wanted)
            arguments = ", ".join(self.value(part, scope, depth - 2) for part in parts)
            return f"{name}({arguments})"
        return left

    def literal(self, kind):
        most = 99 if not self.wild else {"i8": 127, "u8": 255}.get(kind, 30000)
        if kind.startswith("i") and self.chance.random() < 0.3:
            return f"(-{self.chance.randrange(1, most)})"
        return str(self.chance.randrange(0, most))

    def condition(self, scope, depth):
        choice = self.chance.randrange(6)
        if depth <= 0 or choice == 0:
            names = scope.names.get("bool", [])
            return self.chance.choice(names) if names else self.pick("true", "false")
        if choice == 1:
            word = self.pick("and", "or")
            return f"({self.condition(scope, depth - 1)} {word} {self.condition(scope, depth - 1)})"
        if choice == 2:
            return f"(not {self.condition(scope, depth - 1)})"
        if choice == 3 and scope.names.get("str"):
            return f"({self.text(scope, 1)} {self.pick('==', '!=')} {self.text(scope, 1)})"
        kind = self.pick(*INTEGERS)
        operator = self.pick("<", "<=", ">", ">=", "==", "!=")
        left, right = self.integer(kind, scope, depth - 1), self.integer(kind, scope, depth - 1)
        if left.lstrip("(-").rstrip(")").isdigit():
            left = f"{kind}({left})"
        return f"({left} {operator} {right})"

    def text(self, scope, depth):
        names = scope.names.get("str", [])
        if depth <= 0 or self.chance.random() < 0.3:
            if names and self.chance.random() < 0.5:
                return self.chance.choice(names)
            return '"' + self.pick("a", "bc", "", "d\\n", "e \\\" f", "gh") + '"'
        if self.chance.random() < 0.5:
            return f"({self.text(scope, depth - 1)} + {self.text(scope, depth - 1)})"
        kind = self.pick(*INTEGERS)
        inner = self.integer(kind, scope, depth - 1)
        return f"str({kind}({inner}))" if inner.strip("(-)").isdigit() else f"str({inner})"

    def real(self, scope, depth):
        names = scope.names.get("f64", [])
        if depth <= 0:
            return self.chance.choice(names) if names and self.chance.random() < 0.6 \
                else f"{self.chance.randrange(0, 50)}.{self.chance.choice((0, 25, 5, 75))}"
        operator = self.pick("+", "-", "*")
        return f"({self.real(scope, depth - 1)} {operator} {self.real(scope, depth - 1)})"

    def value(self, kind, scope, depth):
        if kind in INTEGERS:
            return self.integer(kind, scope, depth)
        if kind == "bool":
            return self.condition(scope, depth)
        if kind == "str":
            return self.text(scope, depth)
        if kind == "f64":
            return self.real(scope, depth)
        raise AssertionError(kind)

    # Statements.

    def put(self, indent, text):
        self.lines.append("    " * indent + text)

    def show(self, indent, kind, name):
        self.put(indent, f'print("{self.number} {name} " + ' +
                 (name if kind == "str" else f"str({name})") + ")")

    def statements(self, indent, scope, count, depth, loops=0):
        for _ in range(count):
            self.statement(indent, scope, depth, loops)

    def declare(self, indent, scope):
        kind = self.pick(*INTEGERS, "bool", "str", "f64", "i64", "i64")
        name = self.fresh("v")
        mutable = self.chance.random() < 0.5
        word = "var" if mutable else "let"
        self.put(indent, f"{word} {name}: {kind} = {self.value(kind, scope, 3)}")
        scope.add(kind, name, mutable)
        return kind, name

    def statement(self, indent, scope, depth, loops):
        choice = self.chance.randrange(12)
        if choice <= 2 or depth <= 0:
            self.declare(indent, scope)
        elif choice == 3:
            kinds = [kind for kind, names in scope.mutable.items() if names]
            if kinds:
                kind = self.chance.choice(kinds)
                # A text that is added to itself in a loop would double each time.
                value = f"str({self.condition(scope, 1)})" if kind == "str" else \
                    self.value(kind, scope, 3)
                self.put(indent, f"{self.chance.choice(scope.mutable[kind])} = {value}")
        elif choice == 4:
            self.put(indent, f"if {self.condition(scope, 2)} do")
            self.statements(indent + 1, Scope(scope), 2, depth - 1, loops)
            self.put(indent, "else")
            self.statements(indent + 1, Scope(scope), 1, depth - 1, loops)
            self.put(indent, "end")
        elif choice == 5 and loops < 2:
            self.loop(indent, scope, depth, loops)
        elif choice == 6:
            kind, name = self.declare(indent, scope)
            self.show(indent, kind, name)
        elif choice == 7:
            kind = self.pick(*INTEGERS)
            name = self.fresh("s")
            count = self.chance.randrange(3, 6)
            items = ", ".join(self.integer(kind, scope, 1) for _ in range(count))
            self.put(indent, f"let {name}: []{kind} = [{items}]")
            self.put(indent, f"{name}[{self.chance.randrange(3)}] = {self.integer(kind, scope, 2)}")
            scope.add("slice " + kind, name)
        elif choice == 8:
            name, inner = self.fresh("f"), scope.frozen()
            inner.add("i64", "x")
            self.put(indent, f"let {name} = |x| {self.integer('i64', inner, 2)} + x % 3")
            result = self.fresh("v")
            self.put(indent, f"let {result}: i64 = {name}({self.integer('i64', scope, 1)}) % 100")
            scope.add("i64", result)
        elif choice == 9 and self.fallible:
            name = self.fresh("v")
            self.put(indent, f"let {name}: i64 = try {self.chance.choice(self.fallible)}"
                             f"({self.integer('i64', scope, 2)})")
            scope.add("i64", name)
        elif choice == 10:
            pair, left = self.fresh("p"), self.fresh("v")
            value, small = self.integer("i64", scope, 2), self.integer("i8", scope, 2)
            self.put(indent, f"var {pair} = Pair{{ left: {value}, right: {small}, "
                             f"on: {self.condition(scope, 1)} }}")
            self.put(indent, f"{pair}.left = {self.integer('i64', scope, 2)}")
            self.put(indent, f"let {left}: i64 = swap({pair}).left % 100")
            scope.add("i64", left)
        else:
            self.declare(indent, scope)

    def loop(self, indent, scope, depth, loops):
        variable, inner = self.fresh("n"), Scope(scope)
        form = self.chance.randrange(3)
        if form == 0:
            dots = self.pick("..", "..<", "..=")
            self.put(indent, f"for {variable} in 0{dots}{self.chance.randrange(0, 8)} do")
            inner.add("i64", variable)
        elif form == 1:
            slices = scope.names.get("slice i32", [])
            if not slices:
                return self.declare(indent, scope)
            self.put(indent, f"for {variable} in {self.chance.choice(slices)} do")
            inner.add("i32", variable)
        else:
            self.put(indent, f"var {variable}: i64 = 0")
            self.put(indent, f"while {variable} < {self.chance.randrange(1, 8)} do")
            self.put(indent + 1, f"{variable} += 1")
            inner.add("i64", variable)
            inner.counters.add(variable)
        self.statements(indent + 1, inner, self.chance.randrange(1, 3), depth - 1, loops + 1)
        if self.chance.random() < 0.3:
            condition = self.condition(inner, 1)
            self.put(indent + 1, f"if {condition} {{ {self.pick('break', 'continue')} }}")
        self.put(indent, "end")
        return None

    # Tasks. What they print depends on the schedule, which the seed decides.

    def crowd(self, indent, scope):
        count, results = self.chance.randrange(1, 6), self.fresh("r")
        self.put(indent, f"let {results}: []i64 = array({count})")
        self.put(indent, "nursery do")
        inner = scope.frozen()
        inner.add("i64", "k")
        self.put(indent + 1, f"for k in 0..{count} do")
        self.put(indent + 2, "spawn do")
        if self.chance.random() < 0.5:
            self.put(indent + 3, f"for w in 0..{self.chance.randrange(0, 40)} {{ yield }}")
        if self.chance.random() < 0.3:
            self.put(indent + 3, f'print("{self.number} task " + str(k))')
        self.put(indent + 3, f"{results}[k] = {self.integer('i64', inner, 3)}")
        self.put(indent + 2, "end")
        self.put(indent + 1, "end")
        self.put(indent, "end")
        name = self.fresh("v")
        self.put(indent, f"var {name}: i64 = 0")
        self.put(indent, f"for one in {results} {{ {name} = ({name} + one) % 100 }}")
        self.show(indent, "i64", name)
        scope.add("i64", name, True)

    def calls(self, indent, scope):
        usable = [f for f in self.functions if f[1] == "i64"]
        if not usable:
            return
        first, second = self.fresh("h"), self.fresh("h")
        self.put(indent, "nursery do")
        for handle in (first, second):
            value = self.integer("i64", scope.frozen(), 2)
            self.put(indent + 1, f"let {handle} = async p{self.number}_slow({value})")
        self.put(indent + 1, f'print("{self.number} calls " + '
                             f'str((await {second}) + (await {first})))')
        self.put(indent, "end")

    def pipe(self, indent, scope):
        channel, total = self.fresh("c"), self.fresh("v")
        room, count = self.chance.randrange(0, 4), self.chance.randrange(0, 12)
        self.put(indent, f"let {channel} = channel(i64, {room})")
        self.put(indent, f"var {total}: i64 = 0")
        self.put(indent, "nursery do")
        self.put(indent + 1, f"spawn p{self.number}_produce({channel}, {count})")
        self.put(indent + 1, f"for item in {channel} {{ {total} = ({total} + item) % 100 }}")
        self.put(indent, "end")
        self.show(indent, "i64", total)
        scope.add("i64", total, True)

    def actor(self, indent, scope):
        boss, teller = self.fresh("b"), self.fresh("a")
        self.put(indent, f"let {boss} = Supervisor.new()")
        self.put(indent, "nursery do")
        self.put(indent + 1, f"let {teller} = {boss}.spawn(Tally.new())")
        for _ in range(self.chance.randrange(0, 5)):
            self.put(indent + 1, f"{teller}.add({self.integer('i64', scope, 2)})")
        self.put(indent + 1, f'print("{self.number} tally " + str(await {teller}.total()))')
        self.put(indent, "end")

    def helpers(self):
        n = self.number
        for index in range(self.chance.randrange(1, 4)):
            result = self.pick("i64", "i64", *INTEGERS)
            count = self.chance.randrange(0, 4)
            parts = [self.pick("i64", "i32", "bool", "str", "u8") for _ in range(count)]
            name, scope = f"p{n}_f{index}", Scope()
            heads = []
            for place, part in enumerate(parts):
                scope.add(part, f"a{place}")
                heads.append(f"a{place}: {part}")
            self.put(0, f"func {name}({', '.join(heads)}) -> {result} do")
            known, self.fallible = self.fallible, []
            self.statements(1, scope, self.chance.randrange(1, 4), 2, loops=1)
            self.fallible = known
            self.put(1, f"return {self.integer(result, scope, 2)}")
            self.put(0, "end")
            self.functions.append((name, result, parts))
        self.put(0, f"func p{n}_may_fail(x: i64) -> !i64 do")
        self.put(1, 'defer { print("' + str(n) + ' leaves") }')
        self.put(1, f"if x == {self.chance.randrange(100, 200)} {{ return error.Never }}")
        self.put(1, "return x / 2")
        self.put(0, "end")
        self.fallible.append(f"p{n}_may_fail")
        self.put(0, f"async func p{n}_slow(x: i64) -> i64 do")
        self.put(1, "for w in 0..(x % 5) { yield }")
        self.put(1, "return x % 50")
        self.put(0, "end")
        self.put(0, f"async func p{n}_produce(out: channel i64, count: i64) do")
        self.put(1, "for i in 0..count { try out.send(i) }")
        self.put(1, "out.close()")
        self.put(0, "end")

    def write(self):
        self.helpers()
        self.put(0, f"async func p{self.number}() -> !void do")
        scope = Scope()
        for _ in range(self.chance.randrange(2, 6)):
            work = self.chance.random()
            if work < 0.15:
                self.crowd(1, scope)
            elif work < 0.25:
                self.calls(1, scope)
            elif work < 0.35:
                self.pipe(1, scope)
            elif work < 0.42:
                self.actor(1, scope)
            else:
                self.statements(1, scope, 3, 3)
        for kind in INTEGERS + ("bool", "str"):
            for name in scope.names.get(kind, [])[-2:]:
                self.show(1, kind, name)
        self.put(0, "end")
        return self.lines


HEAD = """\
{.profile: cluster.}
struct Pair do
    left: i64
    right: i8
    on: bool
end
func swap(pair: Pair) -> Pair do
    return Pair{ left: i64(pair.right), right: i8(pair.left % 100), on: not pair.on }
end
actor Tally do
    var sum: i64 = 0
    func add(amount: i64) do
        sum = (sum + amount) % 100
    end
    func total() -> i64 do
        return sum
    end
end
"""


def source(seed, programs, wild=False):
    chance = random.Random(seed * 2 + wild)
    lines = [HEAD.rstrip()]
    for number in range(programs):
        lines += Program(chance, number, wild).write()
    lines.append("async func main() do")
    lines += [f"    try p{number}()" for number in range(programs)]
    lines.append("end")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--wild"]
    wild = "--wild" in sys.argv
    count = 1 if wild else int(words[1]) if len(words) > 1 else 20
    sys.stdout.write(source(int(words[0]), count, wild))
