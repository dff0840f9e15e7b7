#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need a GPU, as they are and then under compute-sanitizer: memcheck (addresses) and racecheck (shared memory).
#
#   scripts/test_gpu.sh PROGRAM [WORD...]    PROGRAM: test_gpu of a CUDA build; WORD: as test_gpu takes them
set -euo pipefail
program=$1
shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$program" "$@" | tee "$log"
if grep -q '^no GPU: ' "$log"; then exit 0; fi

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
