#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nanet for 64-bit Arm on another machine: compiled with Debian's cross-compiler, its unit tests and a loop of emulator and engine run under
# qemu-user. On Debian or Ubuntu, as root or with sudo; all libraries but those links that need one of the machine's.
#
#   scripts/test_arm.sh [BUILD]     BUILD: build/aarch64
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/aarch64}
started=$SECONDS

missing=()
need() { "${@:2}" >/dev/null 2>&1 || missing+=("$1"); }
need g++-aarch64-linux-gnu command -v aarch64-linux-gnu-g++
need qemu-user-static command -v qemu-aarch64-static
need googletest test -e /usr/src/googletest/CMakeLists.txt
need libhwy-dev test -e /usr/include/hwy/highway.h
need cmake command -v cmake
need ninja-build command -v ninja
if ((${#missing[@]})); then
  as_root=()
  ((EUID == 0)) || as_root=(sudo)
  echo "installing system packages: ${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "${as_root[@]}" apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null ||
    { tail -n 20 "$log" >&2; echo "error: cannot install ${missing[*]} (apt-get says why above) run apt-get update, then try again" >&2; exit 1; }
fi

# -O1: half the time to compile of -O3, and qemu is what is slow. The tests of links and engine are those whose system calls qemu has.
tests=(base wire flow event rich l0tp stencil link engine)
cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
  -DNANET_WERROR="${NANET_WERROR:-OFF}" -DNANET_BENCH=OFF -DNANET_INSTALL=OFF >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" --target "${tests[@]/#/test_}"
echo "compiled after $((SECONDS - started)) s"
ctest --test-dir "$build" --output-on-failure --tests-regex "^unit[.]($(IFS='|'; echo "${tests[*]}"))\$"
echo "done in $((SECONDS - started)) s"
