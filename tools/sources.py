#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fetches sources of programs that others wrote, for tests and benches of `janusrt cc`.

usage: sources.py [--quiet] NAME...      NAME: lua sqlite zlib lz4

Each is the upstream archive of a Debian source package. It comes from Debian's servers, is checked
against the hash below, and lies in build/sources of the tree, unpacked beside the archive. Nothing
of it belongs to this tree. Prints the folder of each. If one cannot be had, a line on stderr says
why, and the status is 1.
"""
import hashlib
import os
import pathlib
import sys
import tarfile
import urllib.error
import urllib.request

TREE = pathlib.Path(__file__).resolve().parent.parent
FOLDER = TREE / "build" / "sources"

# The newer servers forget old versions; the snapshot keeps all.
SERVERS = ("http://deb.debian.org/debian",
           "https://snapshot.debian.org/archive/debian/20250520T000000Z")
PATIENCE_S = 30

# name: the archive below pool/main, its SHA-256, the folder in it
ARCHIVES = {
    "lua": ("l/lua5.4/lua5.4_5.4.4.orig.tar.gz",
            "164c7849653b80ae67bec4b7473b884bf5cc8d2dca05653475ec2ed27b9ebf61", "lua-5.4.4"),
    "sqlite": ("s/sqlite3/sqlite3_3.40.1.orig.tar.xz",
               "aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655",
               "sqlite3-3.40.1"),
    "zlib": ("z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2",
             "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
             "zlib-1.2.13.dfsg"),
    "lz4": ("l/lz4/lz4_1.9.4.orig.tar.gz",
            "0b0e3aa07c8c063ddf40b082bdf7e37a1562bda40a0ff5272957f3e987e0e54b", "lz4-1.9.4"),
}


class Missing(Exception):
    """The sources cannot be had; the text says why."""


def is_right(path, digest):
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def download(place, archive, digest):
    reasons = []
    for server in SERVERS:
        url = f"{server}/pool/main/{place}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                data = answer.read()
        except (OSError, urllib.error.URLError) as error:
            reasons.append(f"{url}: {error}")
            continue
        if hashlib.sha256(data).hexdigest() != digest:
            reasons.append(f"{url}: another file than expected")
            continue
        part = archive.with_name(f"{archive.name}.{os.getpid()}")
        part.write_bytes(data)
        part.rename(archive)
        return
    raise Missing("; ".join(reasons))


def archive_of(name):
    """The path of the archive, which is fetched if it is not there."""
    place, digest, _ = ARCHIVES[name]
    archive = FOLDER / pathlib.PurePosixPath(place).name
    if not is_right(archive, digest):
        FOLDER.mkdir(parents=True, exist_ok=True)
        download(place, archive, digest)
    return archive


def folder_of(name):
    """The unpacked sources."""
    archive, folder = archive_of(name), FOLDER / ARCHIVES[name][2]
    if not folder.exists():
        part = FOLDER / f"unpacking.{os.getpid()}"
        with tarfile.open(archive) as packed:
            packed.extractall(part)
        try:
            (part / folder.name).rename(folder)
            part.rmdir()
        except OSError as error:
            raise Missing(f"{archive}: {error}") from error
    return folder


def main():
    names = [word for word in sys.argv[1:] if word != "--quiet"]
    wrong = [name for name in names if name not in ARCHIVES]
    if not names or wrong:
        sys.exit(f"sources: {' '.join(wrong) or 'no name'}: one of {', '.join(ARCHIVES)}")
    status = 0
    for name in names:
        try:
            folder = folder_of(name)
            if "--quiet" not in sys.argv:
                print(folder)
        except Missing as error:
            print(f"sources: {name} cannot be had: {error}", file=sys.stderr)
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
