#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that the optimiser, or the front end at its level, sees differently cost the same in all
builds. The build `naive` pays at each mark, so an op that another build loses or doubles is seen.

usage: builds_test.py PLUGINS
"""
import random
import sys

import build

PROGRAMS = (["cookie.c"], ["weak.c", "weak_other.c"], ["constant.c"], ["coroutine.cpp"])
GOTOS = 40 if build.WHOLE else 6  # random programs
# As the driver does.
FLAGS = ["-fno-discard-value-names", "-U__OPTIMIZE__", "-Xclang", "-mno-constructor-aliases",
         "-Xclang", "-fsanitize-address-use-after-scope"]


def gotos(seed):
    """A program with loops that have several entries, and with scopes that jumps leave."""
    rng = random.Random(seed)
    labels = rng.randint(5, 12)
    table = ", ".join(f"&&L{i}" for i in range(labels))
    lines = ["#include <stdio.h>", f"static long sum, rest = {rng.randint(200, 3000)};",
             "__attribute__((noinline)) static void leaf(int *p) { sum += *p; }"]

    def jump():
        part = rng.randint(2, 7)
        return (f"if (rest-- < 0) return s; "
                f"if (s % {part} == {rng.randrange(part)}) goto L{rng.randrange(labels)};")

    for number in range(3):
        lines.append(f"__attribute__((noinline)) static long f{number}(long a)"
                     f" {{ long s = a; void *to[] = {{{table}}};")
        for label in range(labels):
            lines.append(f"L{label}: s = (s * {rng.choice((3, 5, 7, 11))} +"
                         f" {rng.randint(1, 99)}) & 0xffff;")
            kind = rng.choice(("scope", "scope", "loop", "loop", "switch", "table", "call", "jump"))
            if kind == "scope":
                lines.append(f"{{ int x[4]; x[s & 3] = s; {jump()} leaf(&x[s & 3]);"
                             f" {{ int y = s; leaf(&y); {jump()} }} {jump()} }}")
            elif kind == "loop":
                lines.append(f"for (int k = 0; k < (s & 7); k++) {{ int z = k; leaf(&z); {jump()}"
                             f" if (s & {1 << rng.randrange(7)}) continue; if (rest < 0) break;"
                             f" s += k; {jump()} }}")
            elif kind == "switch":
                lines.append(f"switch (s % 5) {{ case 0: {{ int w = s; leaf(&w);"
                             f" goto L{rng.randrange(labels)}; }} case 1: s++; case 2:"
                             " do { s += 3; if (rest-- < 0) return s; case 3: s += 5; }"
                             " while (s % 4);"
                             " default:; }")
            elif kind == "table":
                lines.append(f"if (rest-- < 0) return s; if (s % 3 == 0) goto *to[s % {labels}];")
            elif kind == "call" and number > 0:
                lines.append(f"s += f{number - 1}(s & 255);")
            else:
                lines.append(jump())
        lines.append("return s; }")
    lines.append("int main(void) { long s = 0; for (int i = 0; i < 20; i++) { rest += 150;"
                 ' s += f0(i) + f1(i) + f2(i); } printf("%ld %ld\\n", s, sum); return 0; }')
    return "\n".join(lines)


def measure(bench, one, index, sources):
    """What the program printed, and its ops."""
    cxx = str(sources[0]).endswith(".cpp")
    objects = []
    for source in sources:
        objects.append(bench.path(f"{index}.{source.name}.o"))
        standard = ["-std=c++20"] if cxx else []
        bench.compile(one, source, objects[-1], [*standard, *FLAGS])
    program = bench.path(f"{index}.{sources[0].name}.exe")
    bench.link(one, [*objects, build.HERE / "counting.c"], program, ["-lstdc++"] if cxx else [])
    done = bench.execute(one, program, env={"COUNT_TELL": "1"})
    return done.stdout.strip() + ", " + done.stderr.strip().split("\n")[-1]


def compare(bench, builds, sources, name):
    results = build.together(lambda item: measure(bench, item[1], item[0], sources),
                             list(enumerate(builds)))
    details = [f"{one}: {result}" for one, result in zip(builds, results)]
    bench.report(len(set(results)) == 1, f"{name}: one count in {len(builds)} builds", *details)


def main():
    bench = build.Bench(sys.argv[1])
    levels = build.LEVELS if build.WHOLE else ("-O0", "-O2", "-Os")
    builds = [build.Build(major, level) for major in bench.majors for level in levels]
    builds += [build.Build(bench.majors[0], level, "naive") for level in ("-O0", "-O2")]
    for names in PROGRAMS:
        compare(bench, builds, [build.HERE / "builds" / name for name in names], names[0])
    for seed in range(GOTOS):
        source = bench.path(f"gotos{seed}.c")
        source.write_text(gotos(seed))
        compare(bench, builds, [source], f"random jumps {seed}")
    bench.finish()


if __name__ == "__main__":
    main()
