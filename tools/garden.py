#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sends the rows of tests/http/requests.txt to packaged servers, and says what each understood.

    garden.py OUT.md [--quiet SECONDS] [--mutants COUNT --understand PROGRAM [--seed SEED]]

Everything runs on the loopback, in a folder that is removed at the end, for about two minutes.
A server that is not installed is left out and named. nginx, haproxy, lighttpd and h2o are proxies
here: a small server behind them answers with what it received, so that a body counts too. node, Go
and Python run a handler that answers the same.

A server accepts a row if it answers without an error. A server that does not answer for `quiet`
seconds waits for more bytes.

With --mutants, rows are changed by chance too; garden_mutants.py says how. PROGRAM is
tests/http/understand_rows, which says what janusrt understands of them.
"""

import argparse
import asyncio
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse

import garden_mutants
import http_table
from garden_mutants import REFUSED, WAITS

TOP = pathlib.Path(__file__).resolve().parent.parent
TABLE = TOP / "tests/http/requests.txt"
ECHO = TOP / "tools/garden"
AT_ONCE = 24             # connections to one server
SECONDS_MAX = 3600       # for everything
START_SECONDS_MAX = 90   # for one server
SHOWN_MAX = 10           # mutants that a server understands in another way

NGINX = """daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
{user}
worker_processes 1;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{back}; proxy_http_version 1.1; }}
  }}
}}
"""

HAPROXY = """global
  maxconn 512
defaults
  mode http
  timeout connect 60s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{port}
  default_backend back
backend back
  server one 127.0.0.1:{back}
"""

LIGHTTPD = """server.modules = ("mod_proxy")
server.document-root = "{folder}"
server.bind = "127.0.0.1"
server.port = {port}
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {back})))
"""

H2O = """listen:
  host: 127.0.0.1
  port: {port}
{user}
num-threads: 1
hosts:
  default:
    paths:
      /:
        proxy.reverse.url: "http://127.0.0.1:{back}/"
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def version_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    found = re.search(r"\d+\.\d+[\w.]*", done.stdout)
    return found.group() if found else "?"


class Plant:
    """A server of the garden: its name, its command, and how it is asked for its version."""

    def __init__(self, name, program, version, command, config=None):
        self.name, self.program, self.version = name, program, version
        self.command, self.config = command, config
        self.port, self.process = free_port(), None

    def start(self, folder, back):
        words = {"folder": folder, "port": self.port, "back": back, "file": folder / self.name}
        words["user"] = "" if os.getuid() else {"nginx": "user root;", "h2o": "user: root"}.get(
            self.name, "")
        if self.config:
            words["file"].write_text(self.config.format(**words))
        if self.name == "go":
            subprocess.run(["go", "build", "-o", str(folder / "echo"), str(ECHO / "echo.go")],
                           check=True, timeout=START_SECONDS_MAX,
                           env=dict(os.environ, GO111MODULE="off", GOCACHE=str(folder / "cache")))
        log = open(folder / f"{self.name}.out", "wb")
        self.process = subprocess.Popen([word.format(**words) for word in self.command],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def plants():
    return [
        Plant("nginx", "nginx", ("nginx", "-v"), ["nginx", "-c", "{file}"], NGINX),
        Plant("haproxy", "haproxy", ("haproxy", "-v"), ["haproxy", "-db", "-f", "{file}"], HAPROXY),
        Plant("lighttpd", "lighttpd", ("lighttpd", "-v"), ["lighttpd", "-D", "-f", "{file}"],
              LIGHTTPD),
        Plant("h2o", "h2o", ("h2o", "-v"), ["h2o", "-m", "worker", "-c", "{file}"], H2O),
        Plant("node", "node", ("node", "-v"), ["node", str(ECHO / "echo.js"), "{port}"]),
        Plant("go", "go", ("go", "version"), ["{folder}/echo", "{port}"]),
        Plant("python", sys.executable, (sys.executable, "-V"),
              [sys.executable, str(ECHO / "echo.py"), "{port}"]),
    ]


async def backend(reader, writer):
    """Behind the proxies: answers with what it received. A proxy sends well-formed requests."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        words = head.split(b" ")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = b""
        if re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
        elif length:
            body = await reader.readexactly(int(length.group(1)))
        saw = urllib.parse.quote(words[0] + b" " + words[1] + b" " + body)
        writer.write(f"HTTP/1.1 200 OK\r\nX-Saw: {saw}\r\nContent-Length: 0\r\n"
                     "Connection: close\r\n\r\n".encode())
        await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError,
            ConnectionError):
        pass
    finally:
        writer.close()


def understood(raw, closed):
    """What a server's answers say that it understood: a list of "METHOD target body"."""
    seen = []
    places = [m for m in re.finditer(rb"HTTP/1\.[01] (\d{3})[ \r]", raw) if m.group(1)[:1] != b"1"]
    for number, place in enumerate(places):
        end = places[number + 1].start() if number + 1 < len(places) else len(raw)
        saw = re.search(rb"(?i)\r\nx-saw: *([^\r]*)", raw[place.start():end])
        if place.group(1)[:1] in b"45" or not saw:
            seen.append(REFUSED)
        else:
            text = urllib.parse.unquote_plus(saw.group(1).decode(), encoding="latin-1")
            seen.append(text.rstrip(" "))
    if not places:
        if raw:
            seen.append("answers in HTTP/2" if raw[:1] == b"\0" else "answers as HTTP/0.9")
        else:
            seen.append(REFUSED if closed else WAITS)
    return seen


async def ask(port, data, quiet):
    """Sends a row and reads until the server closes or is quiet."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    raw, closed = b"", False
    try:
        writer.write(data)
        await writer.drain()
        while not closed:
            part = await asyncio.wait_for(reader.read(65536), quiet)
            raw, closed = raw + part, not part
    except asyncio.TimeoutError:
        pass
    except ConnectionError:
        closed = True
    writer.close()
    return understood(raw, closed)


async def ask_all(plant, inputs, quiet):
    """What a server understood of each input. One without an answer is asked a second time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(data):
        async with gate:
            seen = await ask(plant.port, data, quiet)
            return await ask(plant.port, data, 2 * quiet) if seen == [WAITS] else seen

    return await asyncio.gather(*(one(data) for data in inputs))


def ours(verdict):
    """The verdict of the table in the form of `understood`."""
    seen = []
    for part in verdict.split(" | "):
        if re.match(r"[45]\d\d$", part) or re.search(r" body [45]\d\d$", part):
            seen.append(REFUSED)
        elif part == "more" or part.endswith(" more"):
            seen.append(WAITS)
        else:
            match = re.match(r'(?:other:)?(\S+) (\S+)( \?\S*)? (?:none|length \d+|chunked) \w+'
                             r'(?: expect)?(?: upgrade)?(?: body "(.*)"(?: trailers \d+)?)?$',
                             part, re.S)
            method, path, query, body = match.groups()
            seen.append(f"{method} {path}{(query or '').strip()} {body or ''}".rstrip(" "))
    return seen


def same(mine, other):
    """Whether two servers agree. A target may be written in another way: with its host, or not."""
    def plain(seen):
        return [re.sub(r"^(\S+) https?://[^/? ]+/?", r"\1 /", text, flags=re.I) for text in seen]
    return plain(mine) == plain(other)


def cell(mine, seen):
    if same(mine, seen):
        return "same"
    return shown(seen)


def shown(seen):
    """What a server understood, for a cell of the table."""
    cells = []
    for text in seen:
        if len(text) > 40:
            text = text[:36] + "…"
        if text[:1].isupper() or text.startswith("get "):
            text = re.sub(r"[^\x20-\x7e…]", "?", text).replace("|", "\\|")
            text = f"`` {text} ``" if "`" in text else f"`{text}`"
        cells.append(text)
    return " then ".join(cells)


async def started(plant):
    for _ in range(START_SECONDS_MAX * 10):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", plant.port)
            writer.close()
            return True
        except OSError:
            await asyncio.sleep(0.1)
        if plant.process.poll() is not None:
            return False
    return False


async def grow(inputs, quiet, folder):
    """(the plants that answered, what each understood of each input)"""
    server = await asyncio.start_server(backend, "127.0.0.1", 0)
    back = server.sockets[0].getsockname()[1]
    garden, seen = [], {}
    for plant in plants():
        if not shutil.which(plant.program):
            print(f"garden: {plant.name} is not installed and is left out", flush=True)
            continue
        plant.start(folder, back)
        try:
            if not await started(plant):
                print(f"garden: {plant.name} does not start and is left out", flush=True)
                print((folder / f"{plant.name}.out").read_text(errors="replace")[-800:])
                continue
            seen[plant.name] = await ask_all(plant, inputs, quiet)
            garden.append(plant)
        finally:
            plant.stop()
    server.close()
    return garden, seen


def counts(mine, seen):
    """(same, refuses what we accept, accepts what we refuse, understands something else)"""
    count = [0, 0, 0, 0]
    for my, other in zip(mine, seen):
        if same(my, other):
            count[0] += 1
        elif REFUSED in other or WAITS in other:
            count[1 if REFUSED not in my else 0 if REFUSED in other else 3] += 1
        else:
            count[2 if REFUSED in my else 3] += 1
    return count


def compare(mutants, seen, first):
    """(how often each server agreed about mutants, examples where it did not)"""
    kinds = garden_mutants.KINDS
    lines, examples = [], []
    for name, answers in seen.items():
        count = dict.fromkeys(kinds, 0)
        for (mutant, mine), other in zip(mutants, answers[first:]):
            kind = garden_mutants.judge(mine, other)
            count[kind] += 1
            if kind.startswith("another") and count[kind] <= SHOWN_MAX:
                data = http_table.escape(mutant.removesuffix(garden_mutants.LAST))
                examples.append(f"{name}, {kind}: {data}\n    janusrt {mine}\n    {name} {other}")
        lines.append(f"| {name} | " + " | ".join(str(count[kind]) for kind in kinds) + " |")
    head = ["| server | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    return head + lines, examples


def write(out, rows, mine, garden, seen, mutants):
    """The report, as Markdown."""
    names = [plant.name for plant in garden]
    text = [(ECHO / "head.md").read_text(), "",
            "| server | version | same | refuses, we accept | accepts, we refuse | otherwise |",
            "|---|---|---|---|---|---|"]
    for plant in garden:
        numbers = " | ".join(str(n) for n in counts(mine, seen[plant.name]))
        text.append(f"| {plant.name} | {version_of(*plant.version)} | {numbers} |")
    text += mutants
    text += ["", "## Rows", "",
             f"Rows: {len(rows)}. The rows on which all agree are left out below.", "",
             "| row | janusrt | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for number, (_, _, reason) in enumerate(rows):
        cells = [cell(mine[number], seen[name][number]) for name in names]
        if all(one == "same" for one in cells):
            continue
        text.append(f"| {reason} | {shown(mine[number])} | " + " | ".join(cells) + " |")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(text) + "\n")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--quiet", type=float, default=2)
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--understand", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = list(http_table.requests(TABLE))
    mine = [ours(verdict) for verdict, _, _ in rows]
    inputs, mutants = [data for _, data, _ in rows], []
    if options.mutants > 0:
        mutants = garden_mutants.accepted(options.understand.resolve(), list(zip(inputs, mine)),
                                          options.mutants, options.seed, ours)
        inputs += [mutant for mutant, _ in mutants]
    with tempfile.TemporaryDirectory() as name:
        garden, seen = await asyncio.wait_for(grow(inputs, options.quiet, pathlib.Path(name)),
                                              SECONDS_MAX)
    if not garden:
        print("garden: no server is installed")
        return 1
    lines = []
    if mutants:
        table, examples = compare(mutants, seen, len(rows))
        head = (ECHO / "mutants.md").read_text().split("\n", 1)[1]
        lines = ["", head.format(count=options.mutants, right=len(mutants), seed=options.seed)]
        lines += table
        print("\n".join(table + examples))
    write(options.out, rows, mine, garden, seen, lines)
    for plant in garden:
        numbers = counts(mine, seen[plant.name])
        print(f"{plant.name:10} {numbers[0]:4} same, {numbers[1]:3} refused that we accept, "
              f"{numbers[2]:3} accepted that we refuse, {numbers[3]:3} otherwise")
    print(f"the table is in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
