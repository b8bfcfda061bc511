#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the site of the examples: its files, its events, an upload, and its stop.

usage: site_test.py PROGRAM
"""

import http.client
import os
import re
import signal
import subprocess
import sys


def main():
    folder = os.path.join(os.path.dirname(__file__), "../../examples/site")
    server = subprocess.Popen([sys.argv[1], "127.0.0.1:0", folder], stdout=subprocess.PIPE,
                              text=True)
    try:
        line = server.stdout.readline()
        port = int(re.match(r"open http://127\.0\.0\.1:(\d+)/", line).group(1))
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        client.request("GET", "/")
        answer = client.getresponse()
        assert answer.status == 200 and b"It works" in answer.read()

        client.request("POST", "/upload", body=b"x" * 3000000)
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"3000000 bytes came\n")

        def chunks():
            yield b"a" * 1000
            yield b"b" * 100000

        client.request("POST", "/upload", body=chunks(), encode_chunked=True)
        assert client.getresponse().read() == b"101000 bytes came\n"

        events = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        events.request("GET", "/ticks")
        stream = events.getresponse()
        assert stream.getheader("Content-Type") == "text/event-stream"
        for number in (b"0", b"1"):
            lines = {stream.readline(), stream.readline()}
            assert lines == {b"id: " + number + b"\n", b"data: " + number + b"\n"}, lines
            assert stream.readline() == b"\n"
        events = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        events.request("GET", "/ticks", headers={"Last-Event-ID": "41"})
        again = events.getresponse()
        assert b"id: 42\n" in (again.readline(), again.readline())

        client.request("GET", "/nothing")
        answer = client.getresponse()
        assert answer.status == 404 and answer.read()
        server.send_signal(signal.SIGTERM)
        rest = server.stdout.read()
        assert server.wait(120) == 0
        assert re.search(r"Z 127\.0\.0\.1:\d+ GET / 200 \d+ \d+us 0x[0-9a-f]+\n", rest), rest
        assert re.search(r" POST /upload 200 ", rest), rest
    finally:
        server.kill()


if __name__ == "__main__":
    main()
