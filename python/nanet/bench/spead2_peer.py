# SPDX-License-Identifier: Apache-2.0
"""spead2 as a peer: its critical rate with packets of our length over the same cable, by the same search.

Receiver and sender are spead2's own library (the C++ threads of its Python package, one each, on the engine's and the emulator's core), with
heaps of 1 MiB. A heap that lost a packet does not come out, so no loss stays unseen.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import select
import subprocess
import sys
from collections.abc import Callable, Sequence

from nanet.bench import sockperf
from nanet.bench.link_keys import Spead2, Spead2Run, Spead2Step
from nanet.bench.rate import RateSearch, bisect
from nanet.bench.spead2_ends import ReceivedHeaps, SentHeaps
from nanet.machine.facts import CorePlan
from nanet.machine.netns import VethPair
from nanet.machine.processes import end

# The wheel was built without super-packets (UDP_SEGMENT, UDP_GRO); a build on this machine has them.
INSTALL = "apt-get install libboost-dev libdivide-dev && pip install --no-binary spead2 spead2"
PORT = 7148
HEAP_BYTES = 1 << 20
KEPT_SHARE = 0.95  # of the rate that the sender must have kept
LOWEST, HIGHEST = 1e4, 8e6  # packets/s
READY_WITHIN_S, LATE_S = 20.0, 5.0
STARTS_S = 0.05  # of the sender, which does not count


def version() -> str | None:
    """Its version; None: it is not installed."""
    return importlib.metadata.version("spead2") if importlib.util.find_spec("spead2") else None


def without_figures(packet_bytes: int, problems: Sequence[str] = ()) -> Spead2:
    """What stands under `peers.spead2` when it was not measured."""
    return {
        "version": version(), "install": INSTALL, "packet_bytes": packet_bytes, "critical_rate_packets_per_s": None, "limited_by": None,
        "super_packets": None, "steps": [], "problems": list(problems),
    }  # fmt: skip


def measure(pair: VethPair, cores: CorePlan, *, packet_bytes: int, search: RateSearch, say: Callable[[str], None]) -> Spead2:
    """What stands under `peers.spead2`. search: steps, repeats and length of a run are its; rates are packets a second here."""
    result = without_figures(packet_bytes)
    if result["version"] is None:
        return result
    steps: list[Spead2Step] = []

    def passes(rate: float) -> bool:
        runs: list[Spead2Run] = []
        for _ in range(search.repeats):
            frames = pair.boards.counts().tx_frames
            runs.append(one_run(pair, cores, packet_bytes, rate, search.repeat_s))
            frames = pair.boards.counts().tx_frames - frames
            result["super_packets"] = frames < runs[-1]["packets_received"] / 2  # one frame on the cable for many packets
            if runs[-1]["failure"]:
                break
        steps.append({"rate_packets_per_s": rate, "passed": not runs[-1]["failure"], "failure": runs[-1]["failure"], "runs": runs})
        failure = runs[-1]["failure"]
        say(f"{rate / 1e3:8.1f} kpacket/s  spead2 {f'fails ({failure})' if failure else 'no loss'}")
        return not failure

    own = RateSearch(first=LOWEST, lowest=LOWEST, highest=HIGHEST, steps=search.steps)
    try:
        critical = bisect(own, passes)
    except sockperf.SockperfError as error:
        return {**without_figures(packet_bytes, [str(error)]), "steps": steps}
    limited = any(step["failure"] == "sender" for step in steps if step["rate_packets_per_s"] > critical)
    return {
        **result,
        "critical_rate_packets_per_s": critical,
        "limited_by": "sender" if limited else ("search range" if critical >= HIGHEST else "receiver"),
        "steps": sorted(steps, key=lambda step: float(step["rate_packets_per_s"])),
        "problems": [],
    }


def one_run(pair: VethPair, cores: CorePlan, packet_bytes: int, packets_per_s: float, duration_s: float) -> Spead2Run:
    """One run at a rate: heaps sent and received, the rate that was kept, and who failed."""
    common = [pair.engine.address, str(PORT), str(HEAP_BYTES), str(packet_bytes)]
    program = [sys.executable, "-m", "nanet.bench.spead2_ends"]
    receiver = subprocess.Popen(
        [*pair.engine.namespace.prefix(), *program, "receive", *common, _core(cores.engine)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert receiver.stdout is not None
        readable, _, _ = select.select([receiver.stdout], [], [], READY_WITHIN_S)
        if not readable or receiver.stdout.readline().strip() != "ready":
            raise sockperf.SockperfError("spead2's receiver does not start (it said nothing) import spead2 by hand to see why")
        sent = subprocess.run(
            [*pair.boards.namespace.prefix(), *program, "send", *common, _core(cores.emulator), str(packets_per_s), str(duration_s)],
            capture_output=True, text=True, timeout=duration_s * 10 + 60, check=False,
        )  # fmt: skip
        if sent.returncode != 0:
            why = (sent.stderr.strip() or "it said nothing").splitlines()[-1]
            raise sockperf.SockperfError(f"spead2's sender failed ({why}) run nanet.bench.spead2_ends by hand")
        try:
            text, _ = receiver.communicate(timeout=LATE_S)
        except subprocess.TimeoutExpired:  # the end of the stream was lost
            receiver.terminate()
            text, _ = receiver.communicate(timeout=LATE_S)
    finally:
        end(receiver)
    return outcome(json.loads(sent.stdout), json.loads(text), packet_bytes, packets_per_s)


def outcome(sent: SentHeaps, received: ReceivedHeaps, packet_bytes: int, packets_per_s: float) -> Spead2Run:
    """Joins what the two ends say."""
    packets = sent["bytes"] / packet_bytes
    kept = packets / sent["elapsed_s"]
    lost = sent["heaps"] - received["heaps"]
    slow = sent["elapsed_s"] > packets / (KEPT_SHARE * packets_per_s) + STARTS_S
    failure = "receiver" if lost else "sender" if slow else None
    return {
        "heaps_sent": sent["heaps"], "heaps_received": received["heaps"], "packets_received": received["packets"],
        "kept_packets_per_s": round(kept), "failure": failure,
    }  # fmt: skip


def _core(core: int | None) -> str:
    return str(-1 if core is None else core)
