# SPDX-License-Identifier: MIT
"""Reads and writes the bytes in tests/http/*.txt; requests.txt explains their form."""

PLAIN = {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "\\": b"\\"}


def unescape(text):
    """The bytes that a text stands for."""
    out, at = bytearray(), 0
    while at < len(text):
        if text[at] != "\\":
            out += text[at].encode("latin-1")
            at += 1
        elif text[at + 1] == "{":
            end = closing(text, at + 2)
            inner, times = text[at + 2:end].rsplit("*", 1)
            out += unescape(inner) * int(times)
            at = end + 1
        elif text[at + 1] == "x":
            out.append(int(text[at + 2:at + 4], 16))
            at += 4
        else:
            out += PLAIN[text[at + 1]]
            at += 2
    return bytes(out)


def closing(text, at):
    """Where the "}" stands that ends a repetition."""
    depth = 1
    while True:
        if text[at] == "\\":
            depth += text[at + 1] == "{"
            at += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1


def escape(data):
    """A text that stands for the bytes."""
    names = {value[0]: "\\" + name for name, value in PLAIN.items()}
    return "".join(names.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")
                   for byte in data)


def rows(path):
    """(columns) of each row, as they stand in the file."""
    for line in open(path, encoding="latin-1", newline="\n"):
        line = line.rstrip("\n")
        if line and not line.startswith("#"):
            yield line.split("\t")


def requests(path):
    """(verdict, bytes, reason) of each row of requests.txt or answers.txt."""
    for verdict, data, reason in rows(path):
        yield unescape(verdict).decode("latin-1"), unescape(data), reason
