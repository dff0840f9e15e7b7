#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the system packages that a task needs and the machine has not, on Debian and Ubuntu, as root or with sudo.
# What is asked is what a package gives (a program of the right version, a header), so a copy from elsewhere will do too.
#
#   scripts/system_packages.sh TASK...    TASK: run (build and demo), links (those that are optional), test, bench, fuzz, peers (of bench-links),
# arm (compiler and emulator), bare (bare_root.sh), cache (ccache)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {  # problem, why, suggestion
  echo "error: $1 ($2) $3" >&2
  exit 1
}

has_program() { command -v "$1" >/dev/null 2>&1; }
has_header() { [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]]; }
has_cmake() {
  has_program cmake || return 1
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  printf '3.25\n%s\n' "$version" | sort --version-sort --check=quiet
}
has_cxx() {  # what CMake takes when nothing is said, or $CXX
  local compiler=${CXX:-c++}
  has_program "$compiler" || return 1
  echo '#include <span>
#if (defined __clang__ ? __clang_major__ < 14 : __GNUC__ < 12)
#error too old
#endif' | "$compiler" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}
has_sanitizers() { has_program "$1" && echo 'int main() {}' | "$1" -x c++ -fsanitize=address,undefined - -o /dev/null 2>/dev/null; }
has_fuzzer() {
  has_program clang++ && echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++ -x c++ -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null
}

has_llvm_cov() {  # of the same version as the compiler
  local tool
  for tool in llvm-cov llvm-profdata; do
    [[ $(clang++ -print-prog-name=$tool 2>/dev/null) == /* ]] || return 1
  done
}

missing=()
need() {  # package..., --, test that passes when they are not needed
  local packages=()
  while [[ $1 != -- ]]; do packages+=("$1"); shift; done
  shift
  "$@" || missing+=("${packages[@]}")
}

for task in "$@"; do
  case $task in
    run)
      need g++ -- has_cxx
      need cmake -- has_cmake
      need ninja-build -- has_program ninja
      need libhwy-dev -- has_header hwy/highway.h
      need python3 python3-dev python3-venv -- eval "'$here/find_python.sh' >/dev/null"
      ;;
    links)
      need pkg-config -- has_program pkg-config
      need clang libxdp-dev libbpf-dev -- eval "has_header xdp/xsk.h && has_header bpf/bpf.h && has_program clang"
      need libssl-dev -- has_header openssl/hmac.h
      need libdpdk-dev -- eval "has_program pkg-config && pkg-config --exists libdpdk"
      ;;
    peers) need dpdk-dev -- has_program dpdk-testpmd ;;
    test)
      need libgtest-dev -- has_header gtest/gtest.h
      need iproute2 -- has_program ip
      need tshark -- has_program tshark
      need ethtool -- has_program ethtool
      need aravis-tools -- has_program arv-fake-gv-camera-0.8  # with its camera, a sender whose packets are to be understood
      need ffmpeg -- has_program ffmpeg
      need ccache -- has_program ccache  # the gateware's benches compile the same library sixty times
      ;;
    bench)
      need sockperf -- has_program sockperf
      need iproute2 -- has_program ip
      ;;
    fuzz)
      need clang libclang-rt-dev -- has_fuzzer
      need llvm -- has_llvm_cov
      ;;
    g++-*) need "$task" -- has_program "$task" ;;
    clang++*) need "clang${task#clang++}" "libclang-rt${task#clang++}-dev" -- has_sanitizers "$task" ;;
    arm)
      need g++-aarch64-linux-gnu -- has_program aarch64-linux-gnu-g++
      need qemu-user-static -- has_program qemu-aarch64-static
      need googletest -- test -e /usr/src/googletest/CMakeLists.txt
      ;;
    bare) need debootstrap -- has_program debootstrap ;;
    cache) need ccache -- has_program ccache ;;
    *) fail "unknown task $task" "run, links, test, bench, fuzz, peers, arm, bare, cache and names of compilers are known" "see the head of scripts/system_packages.sh" ;;
  esac
done
((${#missing[@]})) || exit 0

has_program apt-get || fail "missing: ${missing[*]}" "no apt-get here to install them" \
  "install what these Debian packages hold, then try again"
as_root=()
if ((EUID != 0)); then
  has_program sudo || fail "missing: ${missing[*]}" "not root, and no sudo here" \
    "run as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
echo "installing system packages: ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The lists may be absent, old, or fine with the network gone: only a failed install is an error.
"${apt[@]}" update >"$log" 2>&1 || true
install() { "${apt[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null; }
# apt-get waits for one lock of dpkg and not for the other: another set-up on this machine may hold that for a while.
failed=yes
for _ in {1..30}; do
  if install; then failed=; break; fi
  tail -n 3 "$log" | grep -q 'Unable to lock' || break
  sleep 10
done
if [[ -n $failed ]]; then
  tail -n 20 "$log" >&2
  fail "cannot install ${missing[*]}" "apt-get says so above" "fix that, or install them by hand, then try again"
fi
if [[ " ${missing[*]} " == *" python3 "* ]] && ! "$here/find_python.sh" >/dev/null; then
  fail "no Python fit for use" "3.11 or newer with venv and headers is needed" \
    "use Debian 12, Ubuntu 24.04 or newer, or put such a python3 first on PATH"
fi
if [[ " ${missing[*]} " == *" cmake "* ]] && ! has_cmake; then
  fail "cmake is too old" "3.25 or newer is needed" "use Debian 12, Ubuntu 24.04 or newer, or put such a cmake first on PATH"
fi
if [[ " ${missing[*]} " == *" g++ "* ]] && ! has_cxx; then
  fail "${CXX:-c++} is too old" "g++ 12 or clang 14, or newer, is needed" "use Debian 12, Ubuntu 24.04 or newer, or name a newer one: make CXX=g++-12 VERB"
fi
