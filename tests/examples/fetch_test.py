#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the client of the examples: several addresses at a time, a redirect, a silent server.

usage: fetch_test.py PROGRAM
"""

import http.server
import socket
import subprocess
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers when as many requests have come as the client sends at a time."""

    protocol_version = "HTTP/1.1"
    together = threading.Barrier(3)

    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/here")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        Handler.together.wait(300)
        body = b"x" * 100000
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(*words):
    """The lines that the client prints, and its code."""
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, check=False)
    return done.stdout.splitlines(), done.returncode


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    pages = [f"{url}/moved", f"{url}/none", f"{url}/page"]
    lines, code = run("600", *pages)
    assert lines == [f"200, 100000 bytes: {pages[0]}", f"404, 100000 bytes: {pages[1]}",
                     f"200, 100000 bytes: {pages[2]}"], lines
    assert code == 0

    silent = socket.create_server(("127.0.0.1", 0))
    waits = f"http://127.0.0.1:{silent.getsockname()[1]}/"
    closed = socket.create_server(("127.0.0.1", 0))
    refuses = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    closed.close()
    lines, code = run("2", waits, refuses, "nonsense")
    assert [line.rsplit(": ", 1)[1] for line in lines] == [waits, refuses, "nonsense"], lines
    assert "cancelled" in lines[0] and code == 1, (lines, code)
    assert run("1")[1] == 2


if __name__ == "__main__":
    main()
