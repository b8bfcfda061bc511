#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attacks examples/site with slowhttptest, while other clients go on. `make slow` runs it.

    slow.py SITE [--seconds SECONDS] [--connections COUNT]

Everything runs on the loopback. The attacks, each for SECONDS:

    headers   slowhttptest -H: heads that never end
    body      slowhttptest -B: bodies that come a few bytes at a time
    read      slowhttptest -X: a file of 8 MiB that nobody reads
    flood     slowhttptest -H with four times as many connections, more than the server serves

Meanwhile a client asks for a page 20 times a second, each time over a new connection. Another
client does so over one connection. The server passes an attack if

    every request gets its answer within PATIENCE seconds (in the flood: FLOOD_PATIENCE, because a
    new connection waits in the backlog until a slow one meets its deadline),
    the memory of the server grows by at most MEMORY_KIB for each connection of the attack, and the
    memory of all sockets of the system by KERNEL_KIB (others may use sockets at the same time),
    the server closes the slow connections itself, if the attack lasts longer than its deadlines,
    and afterwards it has as many descriptors as before.

The exit status is 0 if the server passes all attacks, and 1 otherwise.
"""

import argparse
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 5
FLOOD_PATIENCE = 45
MEMORY_KIB = 64
KERNEL_KIB = 5120  # net.ipv4.tcp_wmem allows 4 MiB for what a client does not read
SPARE_KIB = 4096  # for what does not depend on the attack
PAUSE = 0.05
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

# Name, arguments of slowhttptest, the path, and after how many seconds all slow ones are gone.
ATTACKS = (
    ("headers", ("-H", "-i", "2", "-x", "24"), "/", 14),
    ("body", ("-B", "-i", "2", "-x", "24", "-s", "8192"), "/upload", 20),
    ("read", ("-X", "-w", "10", "-y", "20", "-n", "5", "-z", "5"), "/big.bin", 38),
    ("flood", ("-H", "-i", "2", "-x", "24"), "/", None),
)


class Server:
    """examples/site, seen from outside."""

    def __init__(self, program, folder):
        self.process = subprocess.Popen([program, "127.0.0.1:0", folder], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if not found:
            sys.exit(f"{program} does not start: {line.strip()}")
        self.port = int(found.group(1))
        # Its log must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def memory_kib(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @staticmethod
    def kernel_kib():
        text = pathlib.Path("/proc/net/sockstat").read_text()
        return int(re.search(r"TCP:.* mem (\d+)", text).group(1)) * resource.getpagesize() // 1024

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def read_answer(connection):
    """The status of an answer with a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("closed before the answer")
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("closed inside the answer")
        body += part
    return int(head.split(b" ")[1])


class Client(threading.Thread):
    """Asks for the page until it is told to stop."""

    def __init__(self, port, keeps, patience):
        super().__init__(daemon=True)
        self.port, self.keeps, self.patience = port, keeps, patience
        self.took, self.wrong, self.ends = [], [], False
        self.connection = None

    def ask(self):
        """Asks, and again if the server closed a connection that had been idle."""
        if self.connection is not None:
            try:
                self.ask_once()
                return
            except ConnectionError:
                self.connection.close()
                self.connection = None
        self.ask_once()

    def ask_once(self):
        if self.connection is None:
            self.connection = socket.create_connection(("127.0.0.1", self.port), self.patience)
        self.connection.sendall(GET)
        if read_answer(self.connection) != 200:
            raise ConnectionError("another status than 200")

    def run(self):
        asked = 0
        while not self.ends:
            start = time.monotonic()
            try:
                self.ask()
                self.took.append(time.monotonic() - start)
            except (OSError, AttributeError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                self.keeps = self.keeps and len(self.wrong) < 10
                asked = 999
            asked += 1
            if self.connection and (not self.keeps or asked >= 900):  # max_requests is 1000
                self.connection.close()
                self.connection, asked = None, 0
            time.sleep(PAUSE)

    def finish(self):
        self.ends = True
        self.join(2 * self.patience)


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def start_attack(server, arguments, path, count, seconds):
    command = ["slowhttptest", *arguments, "-c", str(count), "-r", str(max(count // 2, 1)),
               "-l", str(seconds), "-p", "3", "-u", f"http://127.0.0.1:{server.port}{path}"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def watch(server, attack, seconds):
    """Waits for the end of the attack: [(seconds, descriptors, KiB, the kernel's KiB)]."""
    start, seen = time.monotonic(), []
    while attack.poll() is None and server.is_alive():
        now = time.monotonic() - start
        seen.append((now, server.descriptors(), server.memory_kib(), server.kernel_kib()))
        if now > seconds + 15:
            attack.kill()
        time.sleep(0.2)
    attack.wait()
    return seen


def settle(server, wanted):
    """The descriptors, once there are no more than wanted, or after some seconds."""
    for _ in range(100):
        if not server.is_alive() or server.descriptors() <= wanted:
            break
        time.sleep(0.1)
    return server.descriptors() if server.is_alive() else -1


def judge(clients, seen, before, after, count, gone_after, seconds):
    """(what to say, [complaint])"""
    wrongs = [text for client in clients for text in client.wrong]
    took = [value for client in clients for value in client.took]
    complaints = []
    if wrongs:
        complaints.append(f"{len(wrongs)} requests of others failed, the first: {wrongs[0]}")
    if not took:
        return "nobody was served", complaints + ["no request of others was answered"]
    peak = max(fds for _, fds, _, _ in seen) - before[0]
    late = [fds - before[0] for at, fds, _, _ in seen if gone_after and at > gone_after]
    grown = max(kib for _, _, kib, _ in seen) - before[1]
    kernel = max(kib for _, _, _, kib in seen) - before[2]
    if grown > count * MEMORY_KIB + SPARE_KIB:
        complaints.append(f"memory grew by {grown} KiB, {grown / count:.0f} for each connection")
    if kernel > count * KERNEL_KIB + SPARE_KIB:
        complaints.append(f"the kernel's sockets grew by {kernel} KiB")
    if peak < 10:
        complaints.append("the attack did not reach the server")
    if late and min(late) > peak // 10 + len(clients):
        complaints.append(f"{min(late)} slow connections outlived their deadline")
    if after > before[0]:
        complaints.append(f"{after - before[0]} descriptors are left")
    lasted = seen[-1][0]
    kept = f", {min(late)} after {gone_after} s" if late else ""
    if lasted < seconds - 2:
        kept = f", none after {lasted:.0f} s"
    return (f"{len(took)} requests of others: p50 {percentile(took, 50) * 1e3:.1f} ms, "
            f"p99 {percentile(took, 99) * 1e3:.1f} ms, most {max(took) * 1e3:.1f} ms; slow "
            f"connections: {peak} at most{kept}; memory: {grown:+} KiB, of the kernel's sockets "
            f"{kernel:+} KiB"), complaints


def warm_up(server):
    """One request, so that the server has opened what it keeps."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(GET)
        read_answer(connection)
    time.sleep(0.5)


def run_attack(server, attack, count, seconds):
    name, arguments, path, gone_after = attack
    patience = FLOOD_PATIENCE if gone_after is None else PATIENCE
    before = (server.descriptors(), server.memory_kib(), server.kernel_kib())
    clients = [Client(server.port, keeps, patience) for keeps in (False, True)]
    for client in clients:
        client.start()
    running = start_attack(server, arguments, path, count, seconds)
    seen = watch(server, running, seconds)
    for client in clients:
        client.finish()
        if client.connection:
            client.connection.close()
    if not server.is_alive():
        print(f"{name}: the server died: FAILED", flush=True)
        return False
    after = settle(server, before[0])
    text, complaints = judge(clients, seen, before, after, count,
                             gone_after if gone_after and gone_after < seconds else None, seconds)
    print(f"{name}, {count} connections: {text}: {'FAILED' if complaints else 'passed'}")
    for complaint in complaints:
        print(f"  {complaint}")
    sys.stdout.flush()
    return not complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("site")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--connections", type=int, default=300)
    given = parser.parse_args()
    if not shutil.which("slowhttptest"):
        sys.exit("slowhttptest is not here (package slowhttptest)")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "index.html").write_text("<!doctype html><title>slow</title>\n")
        pathlib.Path(folder, "big.bin").write_bytes(bytes(8 << 20))
        server = Server(given.site, folder)
        try:
            warm_up(server)
            passed = [run_attack(server, attack,
                                 given.connections * (1 if attack[3] else 4), given.seconds)
                      for attack in ATTACKS if server.is_alive()]
        finally:
            server.stop()
    good = all(passed) and len(passed) == len(ATTACKS)
    print(f"slowhttptest: {'all passed' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
