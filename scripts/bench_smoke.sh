#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs once and briefly each benchmark that no test runs (tests/integration has nanet bench rings, rate, latency and their links, tests/python the
# gateware's and RDMA's): it must end and write the figures that it promises. How fast it was is not judged here, so that a busy or slow machine
# cannot fail it.
#
#   scripts/bench_smoke.sh BUILD      BUILD: the build folder, with the benchmarks in it
set -euo pipefail
build=$1
out=build/bench-smoke
rm -rf "$out"
mkdir -p "$out"

fail() {  # problem, why, suggestion
  echo "error: $1 ($2) $3" >&2
  exit 1
}

shopt -s nullglob
ran=0
for program in "$build"/bench/micro/*; do
  [[ -f $program && -x $program ]] || continue
  case $(basename "$program") in
    bench_rings | bench_processor) arguments=(--seconds 0.05) ;;
    bench_ring_cuts) arguments=(--events 2000) ;;
    bench_finders) arguments=(mixture 200) ;;
    bench_formats | bench_merger | bench_l0tp) arguments=() ;;
    bench_assembler | bench_scatter) arguments=(--seconds 0.1) ;;
    bench_udp_rate) arguments=(0.2) ;;
    bench_km3_trigger) arguments=(--slices 2 --slice-ms 20) ;;
    *) fail "no short form of $program is known" "every benchmark has a smoke" "say it in scripts/bench_smoke.sh" ;;
  esac
  echo "--- $program ${arguments[*]}"
  "$program" "${arguments[@]}" >"$out/figures.txt"
  grep -q '[1-9]' "$out/figures.txt" || fail "$program printed no figure" "its output has no number" "run it by hand"
  ran=$((ran + 1))
done
((ran)) || fail "no micro benchmark" "none was built" "see bench/micro/CMakeLists.txt"

# Exit status 1 is a promise that was broken (too slow, loss): allowed here, as long as the figures are there.
smoke() {  # key that the JSON file must hold, arguments of nanet bench
  local key=$1 json status=0
  shift
  json=$out/$(tr -cs 'a-z\n' - <<<"$*").json
  echo "--- nanet bench $*"
  local page=()
  [[ $1 != torus ]] || page=(--out "$out")
  .venv/bin/nanet bench "$@" --short "${page[@]}" --json "$json" || status=$?
  ((status <= 1)) || fail "nanet bench $* broke" "exit status $status" "run it by hand"
  .venv/bin/python - "$json" "$key" <<'EOF' || fail "nanet bench $* wrote no $key" "the documented schema has it" "see $json"
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[key]
assert isinstance(value, (int, float)), value
EOF
  ran=$((ran + 1))
}
smoke repeat_s assemble --format ejfat
smoke server_busy.round_trip_us.p99_9 km3-control
smoke hits_unexplained km3-burst

notes=()
if [[ -x $build/bench/gateware/bench_gateware ]]; then
  smoke latency_values km3-link --program "$build/bench/gateware/bench_km3_link"
  smoke link.efficiency_4096 torus --program "$build/bench/torus/bench_torus"
else
  notes+=("nanet bench km3-link and torus not run: built without the model of the gateware (make links)")
fi

# Those for a GPU, if the GPU code was built. Without a GPU each must say so, in one line, and end with status 2.
gpu=$build/bench/gpu
if [[ -e .venv/stamps/cuda ]]; then
  not_run=0
  for program in "$gpu"/*; do
    [[ -f $program && -x $program ]] || continue
    echo "--- $program --short"
    status=0
    "$program" --short >"$out/figures.txt" 2>"$out/errors.txt" || status=$?
    if ((status == 2)) && grep -q '^error: GPU.*\(driver\|no CUDA-capable device\)' "$out/errors.txt"; then
      not_run=$((not_run + 1))
      continue
    fi
    ((status == 0)) || fail "$program broke" "exit status $status: $(head -n 1 "$out/errors.txt")" "run it by hand"
    grep -q '[1-9]' "$out/figures.txt" || fail "$program printed no figure" "its output has no number" "run it by hand"
    ran=$((ran + 1))
  done
  ((not_run == 0)) || notes+=("no GPU: $not_run GPU benchmarks not run")
else
  notes+=("CUDA code not built: GPU benchmarks not run")
fi
printf '%s' "$ran benchmarks ran"
for note in "${notes[@]}"; do printf '; %s' "$note"; done
echo
