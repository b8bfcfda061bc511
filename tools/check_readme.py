#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles and runs every C block of a Markdown file: documentation must compile.

usage: check_readme.py FILE COMPILER FLAG...
"""
import os
import re
import subprocess
import sys
import tempfile


def main():
    path, compiler, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
    blocks = re.findall(r"^```c\n(.*?)^```", open(path, encoding="utf-8").read(), re.DOTALL | re.M)
    if not blocks:
        sys.exit(f"{path}: no C block")
    with tempfile.TemporaryDirectory() as folder:
        for number, block in enumerate(blocks, 1):
            source = os.path.join(folder, f"block{number}.c")
            program = os.path.join(folder, f"block{number}")
            open(source, "w", encoding="utf-8").write(block)
            warnings = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror"]
            subprocess.run([compiler, *warnings, source, "-o", program, *flags], check=True)
            run = subprocess.run([program], timeout=60, check=False)
            if run.returncode != 0:
                sys.exit(f"{path}: C block {number} ends with {run.returncode}")


if __name__ == "__main__":
    main()
