#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nanet as a user's project takes it: as a folder, found by CMake (also by examples/own_detector), found by pkg-config. Each is built with -Werror and
# run.
#
#   tests/package/test_package.sh BUILD     BUILD: a build folder of nanet, in which the libraries are (built if they are not)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
(($# == 1)) && [[ -f $1/CMakeCache.txt ]] ||
  { echo "error: no build folder (usage: test_package.sh BUILD) configure one first: cmake --preset release" >&2; exit 2; }
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --build "$build" --target nanet_libraries
cmake --install "$build" --component development --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }

configure() {  # name, options...: the user's own, no flags of ours
  local name=$1
  shift
  cmake -S "$root/tests/package" -B "$work/$name" -G Ninja "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  cmake --build "$work/$name" --target user >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  echo "$name: $("$work/$name/user")"
}
configure find_package -DCMAKE_PREFIX_PATH="$work/prefix"
configure add_subdirectory -DNANET_SOURCE="$root"

# The example of a detector with a format and a trigger of its own, built as its head says.
cmake -S "$root/examples/own_detector" -B "$work/own_detector" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror -Wno-missing-field-initializers" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/own_detector" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "own_detector: $("$work/own_detector/own_detector")"

# The same as a plug-in, in the nanet that was made of these libraries. It shows its entry point and nothing else.
plugin=$work/own_detector/libown_camera.so
shown=$(nm --dynamic --defined-only "$plugin" | sed 's/.* //')
[[ $shown == nanet_plugin ]] || { echo "error: the plug-in shows more than its entry point: ${shown//$'\n'/ }" >&2; exit 1; }
if grep -q '^NANET_PYTHON:BOOL=ON' "$build/CMakeCache.txt"; then
  python=$(sed -n 's/^Python_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
  (cd "$work/own_detector" && "$python" -m nanet run own_camera.yaml --quiet --json "$work/result.json") || exit 1
  "$python" - "$work/result.json" <<'END'
import json, sys
counters = json.load(open(sys.argv[1]))["counters"]
print(f"own_camera: {counters['events_answered']} events of {counters['packets_accepted']} packets")
sys.exit((counters["packets_accepted"], counters["events_answered"]) != (5000, 40000))
END
else
  echo "own_camera: NOT RUN (nanet's Python module is not built here)"
fi

libraries=$(find "$work/prefix" -name nanet.pc -printf %h)
flags=$(PKG_CONFIG_PATH=$libraries pkg-config --cflags --libs nanet)
# shellcheck disable=SC2086
"${CXX:-c++}" -std=c++23 -O2 -Wall -Wextra -Werror "$root/tests/package/main.cpp" $flags -o "$work/user"
echo "pkg-config: $("$work/user")"
