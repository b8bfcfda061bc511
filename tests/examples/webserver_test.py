#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the web server of the documents: 1000 clients in a row, 200 at a time, floods, its stop.

usage: webserver_test.py PROGRAM
"""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys

REQUEST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
LINES_MAX = 40


def answer_of(connection):
    """Reads an answer with its body, and leaves the connection open."""
    got = b""
    while not got.endswith(b"\r\n\r\nHELLO"):
        part = connection.recv(4096)
        assert part, got
        got += part
    return got


def in_a_row(port):
    for _ in range(1000):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        client.request("POST", "/", body="hello")
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"HELLO")
        client.close()


def at_a_time(port):
    """200 clients: 100 are served, and the others wait in the backlog instead of failing."""
    clients = [socket.create_connection(("127.0.0.1", port), timeout=300) for _ in range(200)]
    for client in clients:
        client.sendall(REQUEST)
    for client in clients:
        answer_of(client)
        client.close()


def flood(port):
    """A body that is too long is refused."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        client.request("POST", "/", body=b"x" * 8000000)
        assert client.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server need not read what it refuses
    client.close()


def main():
    source = os.path.join(os.path.dirname(__file__), "../../examples/webserver.c")
    assert len(open(source, encoding="utf-8").readlines()) <= LINES_MAX
    wrong = subprocess.run([sys.argv[1], "nowhere"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and "nowhere" in wrong.stderr, wrong
    server = subprocess.Popen([sys.argv[1], "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        port = int(re.match(r"open http://127\.0\.0\.1:(\d+)/ ", line).group(1))
        in_a_row(port)
        at_a_time(port)
        flood(port)
        in_use = subprocess.run([sys.argv[1], f"127.0.0.1:{port}"], capture_output=True, text=True,
                                check=False)
        assert in_use.returncode == 1 and f"127.0.0.1:{port}" in in_use.stderr, in_use
        server.send_signal(signal.SIGTERM)
        assert server.wait(300) == 0
    finally:
        server.kill()


if __name__ == "__main__":
    main()
