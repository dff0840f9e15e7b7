# SPDX-License-Identifier: Apache-2.0
"""What putting units together costs: the highest rate without loss and the latency, beside the link alone and the format's own receiver.

One recording of each format, with units of 1 MiB, is played at an exact rate over loopback to each receiver in turn, which has a core of its own. A rate
passes when every unit came whole (of the link alone: every packet). A run that lost something while something else had the receiver's core, or whose
sender did not keep the rate, says nothing: it is done again, a bounded number of times.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nanet.bench.assemble_keys import AssembleResult, FormatRates, RateTurn
from nanet.bench.queues import queue_rates
from nanet.bench.rate import RateSearch, bisect
from nanet.config import formats
from nanet.machine.facts import CorePlan, keep_to, plan_cores
from nanet.machine.ports import unused_port
from nanet.machine.processes import end
from nanet.port.port import open as open_port
from nanet.result import files
from nanet.run.engine import Engine

UNIT_BYTES = 1 << 20
UNITS = 96  # of a recording: more than the 64 closed ones whose late packets a stream knows, so it can be played again and again
PAYLOAD_BYTES = 8192
PACKET_BYTES_MAX = 9000
TIMEOUT_US = 100_000
AGAIN_MAX = 4
KEPT_SHARE = 0.97
CORE_TAKEN_S = 0.005
SETTLE_S, SETTLE_LONGEST_S = 0.1, 2.0
READY_WITHIN_S = 20.0
LATENCY_GAP_S = 0.005
BENCH_FORMATS = Path("build/release/bench/micro/bench_formats")
DEFAULT = ("spead-64-48", "ejfat", "jungfrau", "gvsp")

Failure = Literal["receiver", "sender", "machine"]


@dataclass(frozen=True)
class AssembleBench:
    """What is measured, and how long."""

    formats: tuple[str, ...] = DEFAULT
    turns: int = 3
    search: RateSearch = field(
        default_factory=lambda: RateSearch(first=2e4, highest=2e6, steps=9, repeats=1, repeat_s=0.5, lowest=1e3)
    )
    latency_units: int = 400
    queue_rounds: int = 20
    spead2: Path | None = None  # a folder with another build of it than the one that is installed


@dataclass(frozen=True)
class Recording:
    """Packets of UNITS units."""

    format: str
    sender: str
    file: Path
    packets: int
    bytes: int
    packet_bytes: int
    cores: CorePlan

    @property
    def gbit_per_packet(self) -> float:
        """A mean."""
        return self.bytes * 8e-9 / self.packets


@dataclass(frozen=True)
class Sent:
    """What a run sent, and whether the sender kept the rate."""

    packets: int
    laps: int
    kept: bool


Trial = Callable[[Recording, float, float], Failure | None]


def run(bench: AssembleBench, say: Callable[[str], None]) -> AssembleResult:
    """The result as `nanet bench assemble --json` writes it."""
    cores = plan_cores()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        rows = [_measured(record(name, Path(folder), cores), bench, say) for name in bench.formats]
    return {
        **files.base("bench assemble"),
        "formats": rows,
        "declared_over_handwritten": declared_over_handwritten(),
        "queues": queue_rates(bench.queue_rounds),
        "turns": bench.turns,
        "repeat_s": bench.search.repeat_s,
        "notes": [cores.note] if cores.note else [],
    }


def record(name: str, folder: Path, cores: CorePlan) -> Recording:
    """A recording of the format: by its own sender where one is installed, else by the emulator. Raises RuntimeError."""
    from nanet import _core

    file = folder / f"{name}.pcap"
    if name == "spead-64-48" and importlib.util.find_spec("spead2"):
        sender = f"spead2 {importlib.metadata.version('spead2')}"
        _record_heaps(file)
    else:
        sender, per_unit = "nanet emulate format", UNIT_BYTES // PAYLOAD_BYTES
        packets = UNITS * (per_unit + _ends(formats.load(name)))
        command = [sys.executable, "-m", "nanet", "emulate", "format", name, "--pcap", str(file), "--packets", str(packets),
                   "--payload", str(PAYLOAD_BYTES), "--unit-packets", str(per_unit)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"cannot make packets of {name} ({done.stderr.strip()}) choose another format")
    reader, sizes = _core.PcapPackets(str(file)), []
    while (packet := reader.next()) is not None:
        sizes.append(len(packet[4]))
    return Recording(name, sender, file, len(sizes), sum(sizes), max(sizes), cores)


def _ends(declared: formats.DeclaredFormat) -> int:
    """Leader and trailer of a unit, where a format has them."""
    plan = declared.declaration
    return sum(bool(conditions) for conditions in (plan.first_when, plan.last_when)) if plan.variants else 0


def _record_heaps(file: Path) -> None:
    """UNITS heaps of spead2's sender, by an engine that records what comes."""
    import numpy as np
    import spead2
    import spead2.send

    port = unused_port()
    config = _engine_config("raw", port, CorePlan(None, None, frozenset()))
    config["links"][0]["record"] = {"file": str(file), "bytes_max": 2 * UNITS * UNIT_BYTES}
    random = np.random.default_rng(1)
    with Engine(config) as engine:
        stream = spead2.send.UdpStream(
            spead2.ThreadPool(1), [("127.0.0.1", port)], spead2.send.StreamConfig(max_packet_size=PAYLOAD_BYTES + 64, rate=200e6)
        )
        for number in range(1, UNITS + 1):
            group = spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, 48, 0))
            group.add_item(
                0x3300, "data", "a heap", (UNIT_BYTES,), np.uint8, value=random.integers(0, 256, UNIT_BYTES, dtype=np.uint8)
            )
            stream.send_heap(group.get_heap(descriptors="none", data="all"), number)
        _settle(engine)
    assert engine.result is not None
    if engine.result["counters"]["bytes_accepted"] < UNITS * UNIT_BYTES:
        raise RuntimeError("spead2's heaps cannot be recorded (this machine lost some of them) try again when it is quieter")


def _measured(recording: Recording, bench: AssembleBench, say: Callable[[str], None]) -> FormatRates:
    name = recording.format
    trials: dict[str, Trial] = {"ours": engine_trial(name), "link": engine_trial("raw")}
    peer = "link alone"
    if name == "spead-64-48" and (bench.spead2 or importlib.util.find_spec("spead2")):
        trials["peer"], peer = spead2_trial(bench.spead2), spead2_name(bench.spead2)
    turns: dict[str, list[RateTurn]] = {who: [] for who in trials}
    for _ in range(bench.turns):
        for who, trial in trials.items():
            turns[who].append(search(trial, recording, bench.search))
            say(
                f"{name:12} {peer if who == 'peer' else who:10} {turns[who][-1]['gbit_per_s']:7.2f} Gb/s  {turns[who][-1]['limited_by']}"
            )
    medians = {who: statistics.median(one["gbit_per_s"] for one in of) for who, of in turns.items()}
    theirs = medians.get("peer", medians["link"])
    ours, link = latency(recording, name, bench.latency_units), latency(recording, "raw", bench.latency_units)
    return {
        "name": name,
        "sender": recording.sender,
        "unit_bytes": UNIT_BYTES,
        "packet_bytes": recording.packet_bytes,
        "packets_per_unit": recording.packets / UNITS,
        "loss_free_gbit_per_s": medians["ours"],
        "link_gbit_per_s": medians["link"],
        "peer_gbit_per_s": theirs,
        "peer": peer,
        "ratio_to_peer": medians["ours"] / theirs if theirs else None,
        "ratio_to_link": medians["ours"] / medians["link"] if medians["link"] else None,
        "turns": turns,
        "p50_us": _percentile(ours, 50),
        "p99_us": _percentile(ours, 99),
        "link_p50_us": _percentile(link, 50),
        "link_p99_us": _percentile(link, 99),
        "latency_units": len(ours),
    }


def search(trial: Trial, recording: Recording, how: RateSearch) -> RateTurn:
    """The highest rate that passes, by bisection."""
    failures: dict[float, Failure] = {}

    def passes(rate: float) -> bool:
        good = again = 0
        while good < how.repeats:
            failure = trial(recording, rate, how.repeat_s)
            if failure is None:
                good += 1
            elif failure == "receiver" or again == AGAIN_MAX:
                failures[rate] = failure
                return False
            else:
                again += 1
        return True

    rate = bisect(how, passes)
    above = [failure for one, failure in sorted(failures.items()) if one > rate]
    return {"gbit_per_s": rate * recording.gbit_per_packet, "limited_by": above[0] if above else "search range"}


def play(recording: Recording, to: int, rate: float, seconds: float) -> Sent:
    """Whole laps at that rate, by a thread on the sender's core."""
    from nanet import _core

    laps = max(1, round(rate * seconds / recording.packets))
    replay = _core.Replay({"file": str(recording.file), "to": f"udp://127.0.0.1:{to}", "pace": "packets", "rate": rate, "laps": laps,
                           "only_port": 0, "layout": "padded", "source_id": 0, "fine_time": 0})  # fmt: skip

    def work() -> None:
        if recording.cores.emulator is not None:
            keep_to({recording.cores.emulator})
        replay.run()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    done = replay.snapshot()
    packets = int(done["packets_sent"]) - int(done["tx_dropped"])
    return Sent(packets, laps, packets == laps * recording.packets and packets / done["elapsed_s"] > KEPT_SHARE * rate)


def judged(lost: bool, core_wait_s: float, sent: Sent) -> Failure | None:
    """Who failed, if anyone did."""
    if lost:
        return "machine" if core_wait_s > CORE_TAKEN_S else "receiver" if sent.kept else "sender"
    return None if sent.kept else "sender"


def engine_trial(protocol: str) -> Trial:
    """By an engine whose link has this protocol."""

    def trial(recording: Recording, rate: float, seconds: float) -> Failure | None:
        port = unused_port()
        with Engine(_engine_config(protocol, port, recording.cores)) as engine:
            sent = play(recording, port, rate, seconds)
            _settle(engine)
        assert engine.result is not None
        counters = engine.result["counters"]
        accepted = counters["packets_accepted"] + counters["packets_marker"]
        whole = protocol == "raw" or counters["units_complete"] == sent.laps * UNITS
        return judged(accepted < sent.packets or not whole, engine.result["core_wait_s"], sent)

    return trial


def _engine_config(protocol: str, port: int, cores: CorePlan) -> dict[str, Any]:
    link: dict[str, Any] = {"name": "sender", "endpoint": f"udp://127.0.0.1:{port}", "protocol": protocol, "memory_region": "main",
                            "packet_bytes_max": PACKET_BYTES_MAX}  # fmt: skip
    if protocol != "raw":
        link["assemble"] = {"streams_max": 4, "units_open": 8, "timeout_us": TIMEOUT_US}
    return {"version": 1, "memory_regions": [{"name": "main", "buffer_bytes": 2 * UNIT_BYTES, "buffer_count": 32}], "links": [link],
            "processor": {"kind": "count"}, "cpu_cores": {"receive": cores.engine}}  # fmt: skip


def _settle(engine: Engine) -> None:
    """Until no more comes."""
    last, until = engine.counters(), time.monotonic() + SETTLE_LONGEST_S
    while time.monotonic() < until:
        time.sleep(SETTLE_S)
        now = engine.counters()
        if now == last:
            return
        last = now


def spead2_name(folder: Path | None) -> str:
    """Which spead2 receives, and how. Raises RuntimeError."""
    done = subprocess.run(
        _spead2_ends("about"), env=_spead2_environment(folder), capture_output=True, text=True, check=False, timeout=READY_WITHIN_S
    )
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(
            f"spead2 cannot be used ({why}) name a folder made by: pip install --target FOLDER --no-binary spead2 spead2"
        )
    about = json.loads(done.stdout)
    how = "with super-packets" if about["super_packets"] else "one packet at a time"
    return f"spead2 {about['version']}, {how}, heaps from its ring stream"


def _spead2_ends(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nanet.bench.spead2_ends", *arguments]


def _spead2_environment(folder: Path | None) -> dict[str, str]:
    return dict(os.environ) | ({"PYTHONPATH": str(folder.resolve())} if folder else {})


def spead2_trial(folder: Path | None) -> Trial:
    """By spead2's own receiver: its C++ thread takes the packets, Python sees heaps only."""

    def trial(recording: Recording, rate: float, seconds: float) -> Failure | None:
        port, core = unused_port(), recording.cores.engine
        command = _spead2_ends(
            "receive", "127.0.0.1", str(port), str(UNIT_BYTES), str(PACKET_BYTES_MAX), str(-1 if core is None else core)
        )
        receiver = subprocess.Popen(command, env=_spead2_environment(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        try:
            assert receiver.stdout is not None
            readable, _, _ = select.select([receiver.stdout], [], [], READY_WITHIN_S)
            if not readable or receiver.stdout.readline().strip() != "ready":
                raise RuntimeError("spead2's receiver does not start (it said nothing) import spead2 by hand to see why")
            waited_s = _core_wait_s(receiver.pid)
            sent = play(recording, port, rate, seconds)
            time.sleep(3 * SETTLE_S)
            waited_s = _core_wait_s(receiver.pid) - waited_s
            receiver.terminate()
            text, _ = receiver.communicate(timeout=READY_WITHIN_S)
        finally:
            end(receiver)
        return judged(json.loads(text)["heaps"] < sent.laps * UNITS, waited_s, sent)

    return trial


def _core_wait_s(pid: int) -> float:
    """How long its threads were ready to run while something else had their cores."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError):
            total += int(task.read_text().split()[1])
    return total * 1e-9


def latency(recording: Recording, protocol: str, units: int) -> list[float]:
    """Of each unit that came whole, or of its last packet with protocol raw: [us] from the call that sends it to the program."""
    port_number = unused_port()
    options: dict[str, Any] = (
        {} if protocol == "raw" else {"assemble": {"streams_max": 4, "units_open": 8, "timeout_us": TIMEOUT_US}}
    )
    cores, everywhere = recording.cores, os.sched_getaffinity(0)
    if cores.engine is not None:
        keep_to({cores.engine})  # on the sender's core, where a wake-up may put it, it would wait for the sender's next pause
    with contextlib.ExitStack() as after, open_port(f"udp://127.0.0.1:{port_number}", protocol=protocol, buffer_count=32, buffer_bytes=2 * UNIT_BYTES,
                   packet_bytes_max=PACKET_BYTES_MAX, timeout_us=0, **options) as port:  # fmt: skip
        after.callback(os.sched_setaffinity, 0, everywhere)
        command = [sys.executable, "-m", "nanet.bench.assemble_ends", str(recording.file), "127.0.0.1", str(port_number), str(UNITS), str(units),
                   str(LATENCY_GAP_S), str(-1 if cores.emulator is None else cores.emulator)]  # fmt: skip
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as sender:
            came = dict(_arrivals(port.completions(READY_WITHIN_S / 2), recording, units))
            text, _ = sender.communicate()
    sent = json.loads(text)
    return [(at - sent[unit]) * 1e-3 for unit, at in came.items()]


def _arrivals(completions: Iterable[Any], recording: Recording, units: int) -> Iterator[tuple[int, int]]:
    """Which of the units that were sent came, and when [ns]."""
    per_unit, seen = recording.packets // UNITS, 0
    for completion in completions:
        now = time.monotonic_ns()
        if completion.unit is None:
            before, seen = seen, seen + completion.packet_count
            for unit in range(before // per_unit, seen // per_unit):
                yield unit, now
            done = seen // per_unit
        else:
            if completion.unit.complete:
                yield seen, now
            seen += 1
            done = seen
        if done >= units:
            return


def declared_over_handwritten(program: Path = BENCH_FORMATS) -> float | None:
    """What bench_formats measures; None: it is not built, or this is not the repository's root."""
    if not program.is_file():
        return None
    text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return float(next(line for line in text.splitlines() if line.startswith("declared over hand-written")).split()[-2])


def csv_rows(result: AssembleResult) -> list[tuple[str, str, float, str]]:
    """Rows for the CSV."""
    rows = []
    for one in result["formats"]:
        rows += [(one["name"], "loss_free", one["loss_free_gbit_per_s"], "Gb/s"), (one["name"], "peer", one["peer_gbit_per_s"], "Gb/s"),
                 (one["name"], "link", one["link_gbit_per_s"], "Gb/s"), (one["name"], "p99", one["p99_us"], "us"),
                 (one["name"], "link_p99", one["link_p99_us"], "us")]  # fmt: skip
    return rows


def _percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)] if values else 0.0
