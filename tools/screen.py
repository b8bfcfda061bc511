#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws what a program shows on a terminal as an SVG picture, or checks that a picture is current.

usage: screen.py OUT.svg PROGRAM ARGUMENT...            draw the program's last full screen
       screen.py --check FILE.svg PROGRAM ARGUMENT...   compare; exit with 1 if the words differ

The program runs on a terminal of 112 columns. A screen is what it prints between two "cursor home"
sequences. --check ignores numbers, because times and counts differ from run to run. It also ignores
the title, which names the build.
"""
import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import termios

COLUMNS, ROWS = 112, 40
CHARACTER, LINE = 7.85, 17  # pixels of a character and of a line
COLOURS = {"31": "#ff7b72", "32": "#7ee787"}
ESCAPE = re.compile(r"\033\[([0-9;?]*)([A-Za-z])")
HOME = "\033[H"


def run_on_terminal(command):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs,
                          env=environment) as run:
        os.close(theirs)
        output = b""
        try:
            while part := os.read(ours, 65536):
                output += part
        except OSError:  # Linux reports the end of a terminal as EIO
            pass
    if run.returncode != 0:
        sys.exit(f"{command[0]} exits with {run.returncode}")
    return output.decode().replace("\r\n", "\n")


def last_screen(output):
    """The lines of the last screen, each with its style: "" or the codes of its colour."""
    screens = output.split(HOME)
    if len(screens) < 2:
        sys.exit("the program drew no screen")
    lines = []
    for raw in screens[-1].split("\033[J")[0].rstrip("\n").split("\n"):
        styles = [code for code, letter in ESCAPE.findall(raw)
                  if letter == "m" and code not in ("", "0")]
        lines.append((ESCAPE.sub("", raw).rstrip(), styles[0] if styles else ""))
    while lines and not lines[-1][0]:
        lines.pop()
    return lines


def svg(lines, title):
    width = int(COLUMNS * CHARACTER + 24)
    height = len(lines) * LINE + 24
    rows = [
        '<!-- SPDX-License-Identifier: MIT. Drawn by tools/screen.py. -->',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="13" fill="#c9d1d9">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
    ]
    for number, (text, style) in enumerate(lines):
        if not text:
            continue
        look = ' font-weight="bold"' if style == "1" else ""
        look += f' fill="{COLOURS[style]}"' if style in COLOURS else ""
        rows.append(f'<text x="12" y="{(number + 1) * LINE + 8}" xml:space="preserve"{look} '
                    f'textLength="{len(text) * CHARACTER:.0f}">{html.escape(text)}</text>')
    return "\n".join(rows + ["</svg>"]) + "\n"


def words(lines):
    """What must stay: all words but the title's, without numbers, folders and line breaks."""
    text = re.sub(r"0x[0-9a-f]+|\d[\d,.]*", "#", " ".join(lines[1:]))
    return re.sub(r"[\w./-]*/(\w+\.c)", r"\1", text).split()


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ["--check"]
    path, command = arguments[1 if check else 0], arguments[2 if check else 1:]
    lines = last_screen(run_on_terminal(command))
    if not check:
        with open(path, "w", encoding="utf-8") as out:
            out.write(svg(lines, f"The screen of {os.path.basename(command[0])}"))
        return
    shown = re.findall(r"<text[^>]*>(.*?)</text>", open(path, encoding="utf-8").read())
    drawn = words([html.unescape(line) for line in shown])
    printed = words([text for text, _ in lines])
    for number, (old, new) in enumerate(zip(drawn + [""], printed + [""])):
        if old != new:
            before = " ".join(printed[max(0, number - 5):number])
            sys.exit(f"{path} is old. After '{before}' it shows '{old}', the program '{new}'. "
                     f"Draw it again: tools/screen.py {path} {' '.join(command)}")
    print("ok 1 - the picture shows what the program prints")


if __name__ == "__main__":
    main()
