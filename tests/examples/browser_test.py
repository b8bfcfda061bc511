#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens the site of the examples in Chromium: its page, its events, an upload, its WebSocket.

usage: browser_test.py PROGRAM FOLDER

The test speaks WebDriver to chromedriver. It waits for what the page shows, never for a time.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

PATIENCE = 300  # seconds, on a machine that is very busy
UPLOADED = 3456789
NAME = "a browser follows events, uploads a file and talks by WebSocket"

# Calls back when an element shows what `wanted` accepts.
WAIT = """
const [id, wanted, done] = arguments, element = document.getElementById(id);
const accepts = new Function("element", "return " + wanted);
const look = () => accepts(element) && (observer.disconnect(), done(element.textContent), true);
const observer = new MutationObserver(look);
if (!look()) observer.observe(element, {attributes: true, childList: true, characterData: true,
                                        subtree: true});
"""


class Browser:
    """A session of chromedriver."""

    def __init__(self, driver, folder):
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                break
        else:
            raise RuntimeError("chromedriver does not start")
        self.url = f"http://127.0.0.1:{found.group(1)}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--disable-background-networking", "--no-first-run", "--no-proxy-server",
                     f"--user-data-dir={folder}"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                  "goog:loggingPrefs": {"browser": "ALL"},
                  "timeouts": {"script": PATIENCE * 1000, "pageLoad": PATIENCE * 1000}}
        answer = self.call("", {"capabilities": {"alwaysMatch": wanted}})
        self.url += "/" + answer["sessionId"]

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=2 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def run(self, script, *arguments):
        return self.call("/execute/sync", {"script": script, "args": arguments})

    def wait(self, element, wanted):
        return self.call("/execute/async", {"script": WAIT, "args": [element, wanted]})

    def find(self, selector):
        value = {"using": "css selector", "value": selector}
        return f"/element/{list(self.call('/element', value).values())[0]}"

    def complaints(self):
        """What the console got since the last call, without the words of the program."""
        entries = self.call("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def close(self):
        try:
            self.call("", method="DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait()


def start(program, at, folder):
    server = subprocess.Popen([program, at, folder], stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    found = re.match(r"open (http://(127\.0\.0\.1:\d+)/)", line)
    assert found, line
    return server, found.group(1), found.group(2)


def stop(server):
    server.send_signal(signal.SIGTERM)
    server.stdout.read()
    assert server.wait(PATIENCE) == 0


def use_the_page(browser, folder):
    """The events, the upload and the WebSocket."""
    assert browser.call("/title") == "janusrt"
    browser.run("""window.seen = [];
        events.addEventListener("message", (event) => seen.push(Number(event.data)));""")
    browser.wait("ticks", "element.dataset.count >= 3")

    path = os.path.join(folder, "upload")
    with open(path, "wb") as file:
        file.write(os.urandom(UPLOADED))
    browser.call(browser.find("#file") + "/value", {"text": path})
    assert browser.wait("answer", "element.textContent != ''") == f"{UPLOADED} bytes came\n"

    browser.wait("send", "!element.disabled")
    text = "h\u00e9llo \u2603"
    browser.call(browser.find("#text") + "/clear", {})
    browser.call(browser.find("#text") + "/value", {"text": text})
    browser.call(browser.find("#send") + "/click", {})
    assert browser.wait("echo", "element.textContent != ''") == text


def visit(browser, program, site, folder):
    server, url, at = start(program, "127.0.0.1:0", site)
    try:
        browser.call("/url", {"url": url})
        use_the_page(browser, folder)
        assert browser.complaints() == []
        stop(server)
        last = browser.run("return seen[seen.length - 1]")
        server, _, _ = start(program, at, site)
        browser.wait("ticks", f"Number(element.textContent) > {last} + 2")
        seen = browser.run("return seen")
        assert seen == list(range(seen[0], seen[0] + len(seen))), seen  # nothing lost or repeated
        strange = [line for line in browser.complaints() if "/ticks" not in line]
        assert strange == [], strange
        stop(server)
    finally:
        server.kill()


def main():
    program, site = sys.argv[1], os.path.abspath(sys.argv[2])
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        print(f"ok 1 - {NAME} # SKIP chromium is not installed; make browser installs it")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(driver, os.path.join(folder, "profile"))
        try:
            visit(browser, program, site, folder)
        finally:
            browser.close()
    print(f"ok 1 - {NAME}")


if __name__ == "__main__":
    main()
