# SPDX-License-Identifier: Apache-2.0
"""Frames of a GigE Vision camera: `python -m nanet.bench.camera [--frames N] [--turns N] [--height ROWS]`.

The camera is Aravis's, in software, with frames of 2048 bytes a row, as fast as it makes them. They go over loopback to a port that puts them together and
to one that only takes packets (protocol raw), in turns. The time of a frame is that from its last packet, the trailer, as the kernel stamps it on the
interface for a listener of its own, to the frame in the hands of this program; of raw packets, to the one that holds the trailer. Needs CAP_NET_RAW and
CAP_NET_ADMIN.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nanet.machine.facts import keep_to, plan_cores
from nanet.machine.ports import unused_port
from nanet.port.port import Port
from nanet.port.port import open as open_port

GVCP_PORT = 3956
WRITE_REGISTER = 0x82
PRIVILEGE, STREAM_PORT, STREAM_PACKET_BYTES, STREAM_ADDRESS = 0x0A00, 0x0D00, 0x0D04, 0x0D18  # of every GigE Vision camera
WIDTH, HEIGHT, ACQUISITION, FRAME_PERIOD_US = 0x100, 0x104, 0x124, 0x138  # of this one, as its GenICam description says
IP_UDP_BYTES = 28
TRAILER = 2
BLOCKS = 65535  # after which their numbers begin again, at 1
ROW_BYTES, DATA_BYTES = 2048, 8192
LONGEST_S = 30.0
PORT_FREE_WITHIN_S = 5.0
SO_TIMESTAMPNS, SO_ATTACH_FILTER, SO_RCVBUFFORCE, ETH_P_IP = 35, 26, 33, 0x0800
LOAD_8, LOAD_16, JUMP_IF_EQUAL, RETURN, SNAP_BYTES = 0x30, 0x28, 0x15, 0x06, 64  # classic BPF
SHORT_BYTES = 64  # leaders and trailers are


class Control:
    """A few registers by GVCP."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(2)
        self._number = 0

    def write(self, register: int, value: int) -> None:
        """One register, acknowledged; a camera that has only just started is asked again. Raises RuntimeError."""
        self._number += 1
        for _ in range(10):
            self._socket.sendto(
                struct.pack(">BBHHHII", 0x42, 1, WRITE_REGISTER, 8, self._number, register, value), ("127.0.0.1", GVCP_PORT)
            )
            try:
                status, answer, _, number = struct.unpack(">HHHH", self._socket.recv(600)[:8])
            except (ConnectionRefusedError, TimeoutError):
                continue
            if (status, answer, number) == (0, WRITE_REGISTER + 1, self._number):
                return
        raise RuntimeError(
            "the camera does not answer (it has not started, or has ended) start arv-fake-gv-camera-0.8 by hand to see why"
        )

    def close(self) -> None:
        """Of its socket."""
        self._socket.close()


def _wait_for_port() -> None:
    """The kernel gives a camera's port back a moment after the camera was killed."""
    deadline = time.monotonic() + PORT_FREE_WITHIN_S
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", GVCP_PORT))
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"no camera can start (UDP port {GVCP_PORT} of 127.0.0.1: {error.strerror}) run one at a time"
                    ) from None
            else:
                return
        time.sleep(0.01)


@contextlib.contextmanager
def camera(core: int | None = None) -> Iterator[Control]:
    """The camera, controlled; on a core of its own if one is given. Raises RuntimeError where another one runs."""
    _wait_for_port()
    command = ["arv-fake-gv-camera-0.8", "-i", "127.0.0.1", "-s", "nanet"]
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT) as process:
        control = Control()
        try:
            control.write(PRIVILEGE, 2)
            yield control
            control.write(ACQUISITION, 0)
        finally:
            control.close()
            process.kill()


def stream_to(control: Control, port: int, data_bytes: int, width: int, height: int, period_us: int = 50_000) -> None:
    """Frames to that port of 127.0.0.1, in packets with as many bytes of data."""
    settings = {STREAM_PORT: port, STREAM_ADDRESS: 0x7F000001, STREAM_PACKET_BYTES: data_bytes + 8 + IP_UDP_BYTES,
                WIDTH: width, HEIGHT: height, FRAME_PERIOD_US: period_us, ACQUISITION: 1}  # fmt: skip
    for register, value in settings.items():
        control.write(register, value)


class Trailers:
    """When the last packet of each frame to a port of loopback was sent, as the kernel says [ns since 1970], by frame."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        # Ethernet and IPv4 without options, UDP to the port, a GVSP header of 8 bytes with this content.
        tests = [(LOAD_16, 12, ETH_P_IP), (LOAD_8, 23, socket.IPPROTO_UDP), (LOAD_16, 36, port), (LOAD_8, 46, TRAILER)]
        code = []
        for number, (load, at, value) in enumerate(tests):
            code += [(load, 0, 0, at), (JUMP_IF_EQUAL, 0, 2 * (len(tests) - number) - 1, value)]
        code += [(RETURN, 0, 0, SNAP_BYTES), (RETURN, 0, 0, 0)]
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
        header = struct.pack("HL", len(code), ctypes.addressof(program))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, header)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self._socket.bind(("lo", ETH_P_IP))
        self._socket.setblocking(False)

    def all(self) -> dict[int, int]:
        """Those so far."""
        found = {}
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, control, _, _ = self._socket.recvmsg(SNAP_BYTES, 256)
                (block,) = struct.unpack_from(">H", packet, 44)
                stamp = next(data for level, kind, data in control if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS))
                seconds, nanoseconds = struct.unpack("qq", stamp[:16])
                found[block] = seconds * 1_000_000_000 + nanoseconds
        return found

    def close(self) -> None:
        """Of its socket."""
        self._socket.close()


@dataclass
class Turns:
    """Of one kind of port."""

    us: list[float] = field(default_factory=list)
    frames: int = 0
    lost: int = 0  # frames that came incomplete or not at all; raw: packets
    elapsed_s: float = 0.0


def _opened(protocol: str, number: int, frame_bytes: int) -> Port:
    options: dict[str, Any] = (
        {"assemble": {"streams_max": 1, "units_open": 4, "timeout_us": 1_000_000}} if protocol == "gvsp" else {}
    )
    return open_port(f"udp://127.0.0.1:{number}", protocol=protocol, buffer_count=16, buffer_bytes=max(1 << 17, frame_bytes),
                     packet_bytes_max=DATA_BYTES + 8, **options)  # fmt: skip


def _ends(port: Port, protocol: str) -> Iterator[tuple[int, int, bool]]:
    """Of each frame that ends: its block, when it was in the hands of this program [ns since 1970], and whether it is whole."""
    for completion in port.completions(LONGEST_S):
        now = time.time_ns()
        if protocol == "gvsp":
            assert completion.unit is not None
            yield completion.unit.number, now, completion.unit.complete
            continue
        whole = memoryview(completion.buffer)
        for at in completion.index["offset"][completion.index["bytes"] < SHORT_BYTES].tolist():
            status, block, kind = struct.unpack_from(">HHI", whole, at)
            if kind >> 24 == TRAILER:
                yield block, now, status == 0


def turn(protocol: str, frames: int, height: int, turns: Turns) -> None:
    """So many frames of the camera, over a port of that protocol."""
    number, cores, everywhere = unused_port(), plan_cores(), os.sched_getaffinity(0)
    with contextlib.ExitStack() as after:
        after.callback(os.sched_setaffinity, 0, everywhere)
        if cores.engine is not None:
            keep_to({cores.engine})
        trailers = Trailers(number)
        after.callback(trailers.close)
        port = after.enter_context(_opened(protocol, number, ROW_BYTES * height))
        control = after.enter_context(camera(cores.emulator))
        stream_to(control, number, DATA_BYTES, ROW_BYTES, height, period_us=1)
        ends: dict[int, int] = {}
        for block, now, whole in _ends(port, protocol):
            turns.lost += 0 if whole else 1
            ends[block] = now
            if len(ends) == frames:
                break
        counters = port.counters()
        sent = trailers.all()
    if len(ends) < frames or not ends.keys() <= sent.keys():
        raise RuntimeError(
            f"only {len(ends)} of {frames} frames came, {len(sent)} of their last packets were seen (the camera stopped) try again"
        )
    first, *_, last = ends
    turns.lost += (last - first) % BLOCKS + 1 - len(ends) + int(counters["packets_lost_kernel"] + counters["packets_lost_network"])
    turns.frames += len(ends)
    turns.elapsed_s += (sent[last] - sent[first]) * 1e-9
    turns.us += [(ends[block] - sent[block]) * 1e-3 for block in ends]


def percentile(values: list[float], percent: int) -> float:
    """Of some values."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def measure(frames: int, turns: int, height: int) -> dict[str, Any]:
    """p50 and p99 of both kinds of port [us], what was lost, and how fast the camera was."""
    units, raw = Turns(), Turns()
    for _ in range(turns):
        turn("gvsp", frames, height, units)
        turn("raw", frames, height, raw)
    return {
        "frame_bytes": ROW_BYTES * height, "frames": units.frames, "frames_lost": units.lost, "raw_lost": raw.lost,
        "frames_per_s": (units.frames - turns) / units.elapsed_s,
        "p50_us": percentile(units.us, 50), "p99_us": percentile(units.us, 99),
        "raw_p50_us": percentile(raw.us, 50), "raw_p99_us": percentile(raw.us, 99),
        "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=300, help="of each turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--height", type=int, default=1024, help="rows of 2048 bytes; 1024 are 2 MiB")
    options = parser.parse_args(arguments)
    try:
        print(json.dumps(measure(options.frames, options.turns, options.height), indent=1))
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except PermissionError:
        print("error: the kernel's stamps cannot be read (they need CAP_NET_RAW and CAP_NET_ADMIN) run it as root", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
