#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Asks the server of examples/https.c by curl and by openssl s_client, and lets it reload.

usage: https_test.py PROGRAM
"""

import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


def make(folder, name):
    """A certificate that vouches for itself."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", NAMES, "-keyout",
         folder / "key.pem", "-out", folder / "chain.pem"],
        check=True, capture_output=True)


def curl(port, folder, *options):
    return subprocess.run(
        ["curl", "--silent", "--show-error", "--cacert", folder / "chain.pem", *options,
         f"https://localhost:{port}/"], capture_output=True, text=True)


def client(port, *options, text="GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):
    """What openssl s_client prints."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.stdout + done.stderr


def ask(port, folder):
    for version in (["--tlsv1.3"], ["--tls-max", "1.2"]):
        got = curl(port, folder, *version)
        assert got.stdout == "Hello, over TLS!\n", got
    said = client(port, "-alpn", "h2,http/1.1", "-ign_eof", "-CAfile", str(folder / "chain.pem"))
    assert "ALPN protocol: http/1.1" in said and "Verify return code: 0 (ok)" in said, said
    assert "Secure Renegotiation IS" in said and "Compression: NONE" in said, said
    assert "Hello, over TLS!" in said and "\nclosed\n" in said, said
    assert "no application protocol" in client(port, "-alpn", "h2")
    assert "Early data was not sent" in client(port, "-tls1_3")
    again = client(port, "-tls1_2", "-reconnect", "-no_ign_eof", text="")
    assert again.count("Reused, TLSv1.2") == 5, again
    refused = client(port, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
    assert "alert protocol version" in refused, refused


def reload(server, port, folder):
    make(folder, "renewed")
    server.send_signal(signal.SIGHUP)
    assert server.stdout.readline() == "reloaded\n"
    assert "CN = renewed" in client(port)
    (folder / "key.pem").write_text("nothing")
    server.send_signal(signal.SIGHUP)
    line = server.stdout.readline()
    assert line.startswith(f"not reloaded: {folder / 'key.pem'} has no key"), line
    assert "CN = renewed" in client(port)
    assert curl(port, folder).stdout == "Hello, over TLS!\n"


def main():
    for tool in ("curl", "openssl"):
        if shutil.which(tool) is None:
            print(f"ok 1 - examples/https # SKIP no {tool} here")
            return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder, "first")
        command = [sys.argv[1], folder / "chain.pem", folder / "key.pem", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                line = server.stdout.readline()
                port = int(re.fullmatch(r"open https://127\.0\.0\.1:(\d+)/\n", line).group(1))
                ask(port, folder)
                reload(server, port, folder)
                server.send_signal(signal.SIGTERM)
                assert server.wait() == 0
            finally:
                server.kill()
    print("ok 1 - examples/https answers curl and s_client, and reloads its certificate")
    return 0


sys.exit(main())
