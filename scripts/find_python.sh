#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the Python that the virtual environment is made from: the system's where it will do, else the first on PATH of
# version 3.11 or newer that has venv and the headers that the extension module is built against. Exit 1: there is none.
set -u

check='
import os, sys, sysconfig
import ensurepip, venv
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(0 if sys.version_info >= (3, 11) and os.path.exists(headers) else 1)
'
for name in /usr/bin/python3 python3 python3.13 python3.12 python3.11 python3.14; do
  path=$(command -v "$name") || continue
  if "$path" -c "$check" 2>/dev/null; then
    echo "$path"
    exit 0
  fi
done
exit 1
