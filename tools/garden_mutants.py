# SPDX-License-Identifier: MIT
"""Mutated requests for tools/garden.py: if janusrt accepts one, do others understand the same?

A row of the table is changed a little, and one more request follows it on the same connection. If a
server is wrong about where the first request ends, it misses the second or sees a third.
"""

import random
import re
import subprocess
import urllib.parse

REFUSED, WAITS = "refused", "waits"
LAST = b"GET /end HTTP/1.1\r\nHost: end\r\nConnection: close\r\n\r\n"
LIKED = b"\r\n\t :;,=\"\\%?#/*0159aAfFzZ\0\x7f\x80\xff"
ROW_BYTES_MAX = 2000
CHANGES_MAX = 3


def mutate(chance, right, rows):
    """One row that is right, with up to three changes; some of them come from other rows."""
    data = bytearray(chance.choice(right))
    for _ in range(chance.randint(1, CHANGES_MAX)):
        at = chance.randrange(len(data) + 1)
        some = chance.randrange(16)
        other = chance.choice(rows)
        start = chance.randrange(len(other) + 1)
        kind = chance.randrange(6)
        if kind == 0:
            data[at:at + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            data[at:at + 1] = bytes([chance.choice(LIKED)])
        elif kind == 2:
            del data[at:at + some]
        elif kind == 3:
            data[at:at] = data[at:at + some]
        elif kind == 4:
            data[at:at + some] = other[start:start + some]
        else:  # a line of another row
            lines, others = data.split(b"\r\n"), other.split(b"\r\n")
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(others))
            data = bytearray(b"\r\n".join(lines))
    return bytes(data)


def is_right(mine):
    return REFUSED not in mine and WAITS not in mine


def accepted(program, rows, count, seed, read):
    """(bytes, what we understand) of the mutants that we accept; `read` reads our verdict.

    `rows` has bytes and what we understand of them. If we close the connection after the mutant, no
    further request follows it: node refuses both then.
    """
    chance = random.Random(seed)
    small = [(data, mine) for data, mine in rows if 0 < len(data) <= ROW_BYTES_MAX]
    right = [data for data, mine in small if is_right(mine)]
    small = [data for data, _ in small]
    mutants = [mutate(chance, right, small) for _ in range(count)]
    alone = understand(program, mutants, read)
    followed = understand(program, [mutant + LAST for mutant in mutants], read)
    found = {}
    for mutant, one, two in zip(mutants, alone, followed):
        if is_right(two):
            found[mutant if one == two else mutant + LAST] = two
    return list(found.items())


def understand(program, inputs, read):
    """What janusrt understands of each input."""
    text = "".join(data.hex() + "\n" for data in inputs)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [read(bytes.fromhex(line).decode("latin-1")) for line in done.stdout.splitlines()]


def parts(seen, with_host=False):
    """(method, target, body) of a request. Servers write one target in many ways."""
    method, target, body = (seen.split(" ", 2) + ["", ""])[:3]
    if with_host:
        target = re.sub(r"^/?https?://[^/?]*", "", target, flags=re.I)
    path, _, query = target.partition("?")
    path = urllib.parse.unquote(path, encoding="latin-1")
    kept = []
    for segment in path.split("/"):
        if segment == ".." and kept:
            kept.pop()
        elif segment not in ("", ".", ".."):
            kept.append(segment)
    return method, "/".join(kept) + "?" + urllib.parse.unquote(query, encoding="latin-1"), body


# How a server's understanding compares with ours. "goes on": it also answers a request that comes
# after the end of the connection, as we see it.
KINDS = ("same", "refuses or closes", "waits", "goes on", "another target", "another request")


def judge(mine, seen):
    """One of KINDS."""
    wrong = [number for number, text in enumerate(seen) if text in (REFUSED, WAITS)]
    good = seen[:wrong[0]] if wrong else seen
    pairs = [(parts(my), parts(other), parts(other, True)) for my, other in zip(mine, good)]
    if any((my[0], my[2]) != (other[0], other[2]) for my, other, _ in pairs):
        return "another request"
    if any(my not in others for my, *others in pairs):
        return "another target"
    if len(good) < len(mine):
        return "waits" if seen[-1:] == [WAITS] else "refuses or closes"
    if len(good) == len(mine):
        return "same"
    return "goes on" if not mine[-1].startswith("GET /end") else "another request"
