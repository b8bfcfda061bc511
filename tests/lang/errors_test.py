#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of errors is up to date, and each code of the front end has a program in the gallery."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
found = subprocess.run([sys.executable, str(ROOT / "tools/gallery.py"), "--check"],
                       capture_output=True, text=True, check=False)
sys.stdout.write(found.stdout + found.stderr)
sys.exit(found.returncode)
