#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The web server of the documents, interpreted and built, answers curl and many clients.

usage: server_test.py JANUSRT
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JANUSRT = sys.argv[1]
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HELLO = b"Hello from Janus.\n"
SEQUENTIAL, CONCURRENT = 1000, 200
TASKS = 100 # of :service, and main is one of them
OTHERS = 40 # descriptors of the runtime
PATIENCE = 300
count = wrong = 0


def report(good, name, *lines):
    global count, wrong
    count += 1
    wrong += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in lines if not good else ():
        print("# " + str(line).replace("\n", "\n# "))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def rest_of(one):
    answer = b""
    while part := one.recv(65536):
        answer += part
    one.close()
    return answer


def ready(port, server):
    while server.poll() is None:
        try:
            connect(port).close()
            return True
        except ConnectionRefusedError:
            continue
    return False


def descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def curl(port, name):
    if not shutil.which("curl"):
        print("# there is no curl")
        return
    url = f"http://127.0.0.1:{port}/"
    for words, expected in (([], "Hello from Janus.\n"), (["-d", "abc"], "Janus got: abc")):
        done = subprocess.run(["curl", "-s", *words, url], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        report(done.returncode == 0 and done.stdout == expected,
               f"{name} answers curl {' '.join(words)}".rstrip(), done)


def in_a_row(port, name):
    good = 0
    for _ in range(SEQUENTIAL):
        one = connect(port)
        one.sendall(GET)
        good += rest_of(one).endswith(HELLO)
    report(good == SEQUENTIAL, f"{name} serves 1000 clients, one after the other", good)


def at_once(server, port, name):
    """All are connected before the first one asks. Those above the limit of tasks must wait."""
    base = descriptors(server)
    clients = [connect(port) for _ in range(CONCURRENT)]
    most, good = 0, 0
    for one in clients:
        one.sendall(GET)
    for one in clients:
        good += rest_of(one).endswith(HELLO)
        most = max(most, descriptors(server))
    report(good == CONCURRENT, f"{name} serves 200 clients at once", good)
    report(most <= base + TASKS + OTHERS, f"{name} has no more connections than tasks may live",
           base, most)


def serve(words, port, name):
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        if not ready(port, server):
            report(False, f"{name} serves", server.stderr.read())
            return
        curl(port, name)
        in_a_row(port, name)
        at_once(server, port, name)
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder, port = pathlib.Path(name), free_port()
        text = (HERE / "documents" / "web_server.jan").read_text()
        source = folder / "web.jan"
        source.write_text(text.replace("0.0.0.0:8080", f"127.0.0.1:{port}"))
        serve([JANUSRT, "run", str(source)], port, "the interpreted web server")
        done = subprocess.run([JANUSRT, "build", "--cc=gcc", str(source), "-o",
                               str(folder / "web")], capture_output=True, text=True, check=False)
        report(done.returncode == 0, "the web server is built", done.stderr)
        if done.returncode == 0:
            serve([str(folder / "web")], port, "the built web server")
    print(f"1..{count}")
    return 1 if wrong else 0


sys.exit(main())
