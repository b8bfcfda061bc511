#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the chat of the examples: each member gets what each other one says, and one never reads.

usage: chat_test.py PROGRAM
"""

import re
import signal
import socket
import subprocess
import sys


class Member:
    """A client of WebSocket, with messages of up to 125 bytes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self.socket.sendall(b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        self.file = self.socket.makefile("rb")
        assert self.file.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
        while self.file.readline() != b"\r\n":
            pass

    def say(self, text):
        self.socket.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)

    def hear(self):
        first, length = self.file.read(2)
        assert first == 0x81, first
        return self.file.read(length)

    def close(self):
        self.socket.sendall(bytes([0x88, 0x82, 0, 0, 0, 0, 3, 232]))
        while self.file.read(1):
            pass
        self.file.close()
        self.socket.close()


def main():
    server = subprocess.Popen([sys.argv[1], "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.match(r"open http://127\.0\.0\.1:(\d+)/", server.stdout.readline()).group(1))
        deaf, members = Member(port), []
        for number in range(5):
            members.append(Member(port))
            text = b"I am number %d" % number
            members[-1].say(text)
            for member in members:
                assert member.hear() == text
        gone = members.pop(2)
        gone.close()
        for number in range(3000):  # more than the buffers of a connection hold
            text = b"%d " % number + b"x" * 100
            members[0].say(text)
            assert members[0].hear() == text
        members[1].say(b"the end")
        while members[0].hear() != b"the end":
            pass
        deaf.socket.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(300) == 0
    finally:
        server.kill()


if __name__ == "__main__":
    main()
