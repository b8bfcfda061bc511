# SPDX-License-Identifier: MIT
"""Python's http.server: answers what it understood, in a field. Usage: echo.py PORT

http.server leaves the body to the handler. This one reads Content-Length, and no chunks.
"""
import http.server
import sys
import urllib.parse


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        saw = f"{self.command} {self.path} {body.decode('latin-1')}"
        self.send_response(200)
        self.send_header("X-Saw", urllib.parse.quote(saw, encoding="latin-1"))
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = do_TRACE = answer

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
