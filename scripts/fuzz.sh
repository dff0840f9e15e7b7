#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of a build for some seconds, from its corpus in fuzz/corpus/NAME; what breaks it lands in out/fuzz.
#
#   scripts/fuzz.sh BUILD_DIR SECONDS
set -euo pipefail
build=$1
seconds=$2

shopt -s nullglob
ran=0
for target in "$build"/fuzz/fuzz_*; do
  [[ -x $target && -f $target ]] || continue
  name=$(basename "$target")
  corpus=fuzz/corpus/$name
  if [[ ! -d $corpus ]]; then
    echo "error: $target has no corpus (each target begins from real inputs) put some in $corpus" >&2
    exit 1
  fi
  found=out/fuzz/$name
  mkdir -p "$found/corpus"
  echo "fuzz: $name, $seconds s, $(find "$corpus" -type f | wc -l) inputs to begin with"
  # What is found goes to the first folder, so the tree's own corpus stays as it is.
  if ! "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$found/" "$found/corpus" "$corpus" >"$found/log" 2>&1; then
    tail -n 40 "$found/log" >&2
    echo "error: $name failed (its last lines are above, all of them in $found/log) run $target on the input in $found" >&2
    exit 1
  fi
  echo "fuzz: $name, $(awk '/number_of_executed_units/ {print $2}' "$found/log") runs, clean"
  ran=$((ran + 1))
done
((ran)) || { echo "error: no fuzz target in $build/fuzz (none was built) see fuzz/CMakeLists.txt" >&2; exit 1; }
echo "$ran fuzz targets ran clean"
