#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nanet for 64-bit Arm on another machine: compiled with Debian's cross-compiler, its unit tests and a loop of emulator and engine run under
# qemu-user. On Debian or Ubuntu, as root or with sudo; all libraries but those links that need one of the machine's.
#
#   scripts/test_arm.sh [--build]     --build: only compiled, into build/aarch64
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/aarch64
started=$SECONDS

scripts/system_packages.sh run arm

# -O1: half the time to compile of -O3, and qemu is what is slow.
tests=(base wire flow event rich l0tp stencil link engine trigger)
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
  -DNANET_WERROR="${NANET_WERROR:-OFF}" -DNANET_BENCH=OFF -DNANET_INSTALL=OFF >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" --target "${tests[@]/#/test_}"
echo "compiled after $((SECONDS - started)) s"
if [[ ${1:-} == --build ]]; then exit; fi

# qemu-user passes packets on, but not what the kernel says of those that it dropped or that were refused (SO_RXQ_OVFL, MSG_ERRQUEUE), nor when
# they came (SO_TIMESTAMPING), nor what a NIC can (SIOCETHTOOL), and it lets no program share packets among sockets (SO_ATTACH_REUSEPORT_CBPF).
not_under_qemu=(SendErrors.PeerGoneIsCountedAndPeerBackIsServed SendErrors.RefusalsAreCountedByDestination
  SourcePorts.RefusalsOfTheListeningSocketStopNothing Setup.LimitedSocketBufferIsNoted 'Gro/Receive.OverflowIsCountedAndFlagged/*' 'Topologies/EngineTest.GoesOnWithoutAnL0tp/*' 'Ipv6Send.*'
  'QueuesByAddress.*' Queues.OneWhoseConsumerStopsTakesNothingFromTheOthers 'Gro/ByKey.*' EngineQueues.OneThreadTakesThemInTurn
  EngineQueues.EachHasAThreadOfItsOwn EngineQueues.AThreadServesSeveral EngineQueues.AConsumerThatStopsTakesNothingFromTheOthers
  EngineQueues.AForgedKeyIsRefusedByName 'Gro/Stamps.EachMessageHasOne/*' 'StampsOfSuperPackets.*' 'SentNotes.*' 'Clocks/Sent.*' 'NicClockSetUp.*')
# A GPU's warp emulated under an emulator, and the longest statistics: minutes, and the code is the same on every machine.
too_slow=('TeamFinders.*' 'MixtureTeam.*' 'Mixture.*' 'AllTargets/TripletsVectors.*' '*.RingsMove*' '*WithNoise'
  'Hough.SameBits*' 'Tripls.SameBits*' 'Histogram.SameBits*' 'Pomh.SameBits*')
printf 'NOT RUN: %s (qemu-user does not know these options of sockets) run it on an Arm machine\n' "${not_under_qemu[@]}"
printf 'NOT RUN: %s (too slow under qemu) run it on an Arm machine\n' "${too_slow[@]}"
not_run=("${not_under_qemu[@]}" "${too_slow[@]}")
GTEST_FILTER="-$(IFS=':'; echo "${not_run[*]}")" \
  ctest --test-dir "$build" --output-on-failure --parallel "$(nproc)" --tests-regex "^unit[.]($(IFS='|'; echo "${tests[*]}"))([.]|\$)"
grep -m 1 'OK.*Loop[.]' "$build/Testing/Temporary/LastTest.log"  # the whole loop: emulated boards, engine, answers
echo "done in $((SECONDS - started)) s"
