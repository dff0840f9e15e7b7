#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need a GPU, as they are and then under compute-sanitizer: memcheck (addresses) and racecheck (shared memory). Between
# the two, what Python sees of pinned buffers, if a Python has the package: $PYTHON, or the one of .venv, or python3.
#
#   scripts/test_gpu.sh PROGRAM [WORD...]    PROGRAM: test_gpu of a CUDA build; WORD: as test_gpu takes them
set -euo pipefail
program=$1
shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$program" "$@" | tee "$log"
if grep -q '^no GPU: ' "$log"; then exit 0; fi

root=$(dirname "${BASH_SOURCE[0]}")/..
python=${PYTHON:-$root/.venv/bin/python}
if [[ ! -x $(command -v "$python") ]]; then python=python3; fi
echo "--- arrays in Python"
if "$python" -c 'import nanet._core' 2>/dev/null; then
  "$python" "$root/tests/gpu/port_arrays.py"
else
  echo "not run: arrays in Python ($python has no nanet) run make cuda, and install CuPy, PyTorch or Numba next to it"
fi

sanitizer=
nvcc=$("$(dirname "${BASH_SOURCE[0]}")/find_nvcc.sh" || true)
for path in "$(command -v compute-sanitizer || true)" "${nvcc%/*}/compute-sanitizer" /usr/local/cuda/bin/compute-sanitizer; do
  if [[ -x $path ]]; then sanitizer=$path; break; fi
done
if [[ -z $sanitizer ]]; then
  echo "not run: memcheck and racecheck (no compute-sanitizer on PATH or in a CUDA toolkit) install it with the toolkit"
  exit 0
fi
for tool in memcheck racecheck; do
  echo "--- compute-sanitizer --tool $tool"
  NANET_COMPUTE_SANITIZER=$tool "$sanitizer" --tool "$tool" --error-exitcode 1 "$program" "$@"
done
