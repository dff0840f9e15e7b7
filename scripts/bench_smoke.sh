#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs each benchmark once and briefly: it must end and write the figures that it promises. How fast it was is not judged
# here, so that a busy or slow machine cannot fail it.
set -euo pipefail
out=build/bench-smoke
rm -rf "$out"
mkdir -p "$out"

fail() {  # problem, why, suggestion
  echo "error: $1 ($2) $3" >&2
  exit 1
}

cmake --preset host-release >/dev/null
cmake --build --preset host-release
shopt -s nullglob
ran=0
for program in build/host-release/bench/micro/bench_*; do
  [[ -f $program && -x $program ]] || continue
  name=$(basename "$program")
  echo "--- $name"
  "$program" --seconds 0.1 --csv "$out/$name.csv"
  (($(wc -l <"$out/$name.csv") > 1)) || fail "$name wrote no figures" "its CSV has no row" "run $program by hand"
  ran=$((ran + 1))
done
((ran)) || fail "no micro benchmark" "none was built" "see bench/micro/CMakeLists.txt"

# Exit status 1 is a promise that was broken (too slow, loss): allowed here, as long as the figures are there.
smoke() {  # key that the JSON file must hold, arguments of nanet bench
  local key=$1 json=$out/$2.json status=0
  shift
  echo "--- nanet bench $*"
  .venv/bin/nanet bench "$@" --json "$json" || status=$?
  ((status <= 1)) || fail "nanet bench $* broke" "exit status $status" "run it by hand"
  .venv/bin/python - "$json" "$key" <<'EOF' || fail "nanet bench $* wrote no $key" "it is in the documented schema" "see $json"
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[key]
assert isinstance(value, (int, float)), value
EOF
  ran=$((ran + 1))
}
smoke math.events_per_s rings --quick
smoke critical_rate_events_per_s rate --quick
smoke p50_above_sockperf_us latency --quick
echo "$ran benchmarks ran"
