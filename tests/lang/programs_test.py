#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs run the same in the interpreter and in every build: output, ops, memory, trace hash.

usage: programs_test.py JANUSRT

programs/NAME.jan prints what programs/NAME.txt says, with the exit status in the last line.
REWRITE=1 writes the .txt files. Then the web server, a plugin, and the messages of the command.
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JANUSRT = sys.argv[1]
BUDGETS = {"budget": "ops=50000"}
SEEDS = (7, 8, 9)
LICENCE = "# SPDX-License-" + "Identifier: MIT\n"
count = wrong = 0


def report(good, name, *lines):
    global count, wrong
    count += 1
    wrong += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in lines if not good else ():
        print("# " + str(line).replace("\n", "\n# "))


def execute(words, name, seed):
    environment = {**os.environ, "JANUSRT_LANG_REPORT": "1", "JANUSRT_SEED": str(seed)}
    if name in BUDGETS:
        environment["JANUS_BUDGET"] = BUDGETS[name]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300,
                          check=False)
    return f"{done.stdout}{done.stderr}[exit {done.returncode}]\n"


def build(source, program, compiler, *options):
    done = subprocess.run([JANUSRT, "build", f"--cc={compiler}", *options, source, "-o", program],
                          capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stderr == "", done.stderr


def compilers():
    found = [("gcc", "-O0"), ("gcc", "-O2")]
    asked = subprocess.run([JANUSRT, "cc", "--print", "-c", "a.c"], capture_output=True,
                           check=False)
    if asked.returncode == 0:
        found.append(("janusrt cc", "-O2"))
    return found


def without_times(text):
    """Without what may differ in the report of a deadlock."""
    return re.sub(r"for \d+ ms", "for N ms", text)


def compare(source, folder):
    name = source.stem
    os.chdir(source.parent)
    runs = {seed: without_times(execute([JANUSRT, "run", source.name], name, seed))
            for seed in SEEDS}
    text = source.with_suffix(".txt")
    if os.environ.get("REWRITE"):
        text.write_text(LICENCE + runs[SEEDS[0]])
    expected = text.read_text().removeprefix(LICENCE) if text.exists() else ""
    report(runs[SEEDS[0]] == expected, f"{name} prints what it should", runs[SEEDS[0]])
    for compiler, level in compilers():
        program = str(folder / name)
        good, said = build(source.name, program, compiler, level)
        lines = [said]
        for seed in SEEDS if good else ():
            built = without_times(execute([program], name, seed))
            if built != runs[seed]:
                lines += [f"seed {seed}:", runs[seed], built]
        report(good and len(lines) == 1, f"{name} does the same with {compiler} {level}", *lines)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=300) as one:
        one.sendall(request)
        answer = b""
        while True:
            part = one.recv(65536)
            if not part:
                return answer
            answer += part


def body(port, request):
    head, _, rest = ask(port, request).partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), rest.decode()


def ready(port, server):
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=300).close()
            return True
        except ConnectionRefusedError:
            continue
    return False


def serve(words, port, name):
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        if not ready(port, server):
            report(False, f"{name} serves", server.stderr.read())
            return
        get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        cases = [
            (get, "HTTP/1.1 200 OK", "Hello from Janus.\n"),
            (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK",
             "Janus got: abc"),
            (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK", ""),
            (b"nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request", "Bad Request"),
            (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
             "HTTP/1.1 411 Length Required", "Length Required"),
            (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
             "HTTP/1.1 400 Bad Request", "Bad Request"),
            (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
             "HTTP/1.1 413 Content Too Large", "Content Too Large"),
            (b"GET / HTTP/3.0\r\n\r\n", "HTTP/1.1 505 HTTP Version Not Supported",
             "HTTP Version Not Supported"),
        ]
        for request, line, text in cases:
            got = body(port, request)
            report(got == (line, text), f"{name} answers {request[:30]!r}", got)
        # More at a time than tasks may live: the others wait in the backlog.
        waiting = [socket.create_connection(("127.0.0.1", port), timeout=300) for _ in range(150)]
        for one in waiting:
            one.sendall(get)
        good = 0
        for one in waiting:
            answer = b""
            while part := one.recv(65536):
                answer += part
            good += answer.endswith(b"Hello from Janus.\n")
            one.close()
        report(good == 150, f"{name} serves 150 clients at once", good)
        report(body(port, get)[1] == "Hello from Janus.\n", f"{name} still serves")
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


def web_server(folder):
    port = free_port()
    text = (HERE / "documents" / "web_server.jan").read_text()
    source = folder / "web.jan"
    source.write_text(text.replace("0.0.0.0:8080", f"127.0.0.1:{port}"))
    serve([JANUSRT, "run", str(source)], port, "the interpreted web server")
    good, said = build(str(source), str(folder / "web"), "gcc")
    report(good, "the web server is built", said)
    if good:
        serve([str(folder / "web")], port, "the built web server")


PLUGIN = """#include <janusrt/memory.h>
struct slice { unsigned char *items; long length; };
struct slice process(struct slice data)
{
    struct slice out = {janus_alloc((unsigned long)data.length + 1), data.length};
    for (long i = 0; i < data.length; i++) out.items[i] = data.items[i] + 1;
    return out;
}
"""


def plugin(folder):
    text = (HERE / "documents" / "sandbox.jan").read_text()
    text = text.replace("plugin.wasm", "plugin.so").replace(
        "input_data, trusted_cap)", "bytes(\"HAL\"), trusted_cap)\n    print(text(result))")
    (folder / "sandbox.jan").write_text(text)
    (folder / "plugin.c").write_text(PLUGIN)
    os.chdir(folder)
    for options, expected in ((["--untrusted"], "IBM\n"), ([], "")):
        made = subprocess.run([JANUSRT, "cc", *options, "-shared", "-fPIC", "-O1", "plugin.c", "-o",
                               "plugin.so"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            print(f"# no plugin: {made.stderr.strip()}")
            return
        done = subprocess.run([JANUSRT, "run", "sandbox.jan"], capture_output=True, text=True,
                              check=False)
        report(done.stdout == expected, f"a plugin built with {options} prints {expected!r}",
               done.stdout, done.stderr)
    (folder / "plugin.so").write_bytes(b"\0asm\1\0\0\0")
    done = subprocess.run([JANUSRT, "run", "sandbox.jan"], capture_output=True, text=True,
                          check=False)
    report("WebAssembly" in done.stderr and done.returncode == 1,
           "a WebAssembly plugin gets a sentence", done.stderr)


def messages(folder):
    os.chdir(folder)
    (folder / "good.jan").write_text("func main() do\nprint(  \"a\"  )\nend\n")
    (folder / "bad.jan").write_text("func main() do\n    spawn main()\nend\n")
    cases = [
        (["run", "bad.jan"], 1, "error[P2001]"), (["check", "good.jan"], 0, ""),
        (["check", "--format=json", "bad.jan"], 1, '"P2001"'), (["run"], 2, "the file is missing"),
        (["run", "no.jan"], 2, "no.jan"), (["run", "--budget=hops=3", "good.jan"], 2, "--budget"),
        (["run", "--seed=x", "good.jan"], 2, "--seed"), (["fmt", "good.jan"], 0, 'print("a")'),
        (["check", "--effects", "good.jan"], 0, "main: io"), (["ir", "good.jan"], 0, "Call_Host"),
        (["ir", "--level=low", "good.jan"], 0, "level Low"), (["run", "-x", "a"], 2, "-x"),
        (["build", "--cc=no-such-compiler", "good.jan"], 2, "no-such-compiler"),
        (["run", "--profile=service", "good.jan"], 0, "a"),
    ]
    for words, status, text in cases:
        done = subprocess.run([JANUSRT, *words], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        report(done.returncode == status and text in said,
               f"janusrt {' '.join(words)} says {text!r}", f"exit {done.returncode}", said)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for source in sorted((HERE / "programs").glob("*.jan")):
            compare(source, folder)
        web_server(folder)
        plugin(folder)
        messages(folder)
        os.chdir("/")
    print(f"1..{count}")
    return 1 if wrong else 0


sys.exit(main())
