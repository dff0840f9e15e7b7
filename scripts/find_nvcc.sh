#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the CUDA compiler to build with, of version 13 or newer: $CUDACXX, else the first on PATH, else that of a toolkit in
# /usr/local/cuda, else the one that `make cuda` installs into .venv from PyPI. Exit 1: there is none.
set -u
shopt -s nullglob
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

for path in "${CUDACXX:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc "$root"/.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
  [[ -x $path && -f $path ]] || continue
  release=$("$path" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  if ((${release:-0} >= 13)); then
    echo "$path"
    exit 0
  fi
done
exit 1
