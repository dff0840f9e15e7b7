# SPDX-License-Identifier: Apache-2.0
"""Missing packets are asked for: frames of Aravis's camera through a relay that loses some and answers GVCP's PACKETRESEND_CMD, as the camera itself does
not. Wireshark reads the same requests."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import nanet
import numpy as np
import pytest
from loops import free_ports
from nanet.bench.camera import camera, stream_to
from nanet.config.engine import load
from nanet.config.errors import ConfigError
from nanet.format import make

FRAME_WIDTH, FRAME_HEIGHT, DATA_BYTES = 2048, 24, 1400  # 36 packets, the last one shorter
PACKETS = 36
RESENT = 0x0100  # status of a packet that is sent again


class Relay:
    """Between a camera and a receiver: packets of 16-bit blocks, of which it forgets some at first, and all requests. lost: packet IDs of every block
    that do not pass; refused: those that do not even when asked for."""

    def __init__(self, to: int, lost: set[int], refused: set[int] = frozenset()) -> None:
        self.requests: list[bytes] = []
        self._to, self._lost, self._refused = ("127.0.0.1", to), lost, refused
        self._kept: dict[tuple[int, int], bytes] = {}
        self._stream, self._control = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        for one in (self._stream, self._control):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            one.bind(("127.0.0.1", 0))
        self.stream_port, self.control_port = self._stream.getsockname()[1], self._control.getsockname()[1]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        self._stream.close()
        self._control.close()

    def take(self, packet: bytes) -> None:
        """One from the camera."""
        if packet[4] & 0x80:  # extended
            block, number = struct.unpack_from(">QI", packet, 8)
        else:
            block, number = struct.unpack_from(">HI", packet, 2)
            number &= 0xFFFFFF
        self._kept[block, number] = packet
        if number not in self._lost:
            self._stream.sendto(packet, self._to)

    def answer(self, request: bytes) -> None:
        """As GigE Vision says: those packets again, with a status that says so."""
        self.requests.append(request)
        key, flags, command, size, _, channel, block, first, last = struct.unpack_from(">BBHHHHHII", request)
        if flags == 0x10:
            (block,) = struct.unpack_from(">Q", request, 20)
        assert (key, command, size, channel) == (0x42, 0x40, len(request) - 8, 0)
        for number in range(first, last + 1):
            packet = self._kept.get((block, number))
            if packet is not None and number not in self._refused:
                self._stream.sendto(struct.pack(">H", RESENT) + packet[2:], self._to)

    def _run(self) -> None:
        while not self._done.is_set():
            for one in select.select([self._stream, self._control], [], [], 0.05)[0]:
                packet = one.recv(65536)
                if one is self._stream:
                    self.take(packet)
                else:
                    self.answer(packet)


def opened(number: int, relay_control: int, **resend: int) -> nanet.Port:
    return nanet.open(
        f"udp://127.0.0.1:{number}", protocol="gvsp", buffer_count=16, buffer_bytes=1 << 16, packet_bytes_max=1500,
        assemble={"streams_max": 1, "units_open": 4, "timeout_us": 1_500_000,
                  "resend": {"endpoint": f"udp://127.0.0.1:{relay_control}", "after_us": 2000, "again_us": 50_000, **resend}},
    )  # fmt: skip


@pytest.mark.needs_program("arv-fake-gv-camera-0.8")
def test_frames_of_a_camera_come_whole_though_packets_are_lost() -> None:
    wanted_frames = 6
    (number,) = free_ports(1)
    with Relay(number, {1, 7, 8, 20}) as relay, opened(number, relay.control_port) as port, camera() as control:
        stream_to(control, relay.stream_port, DATA_BYTES, FRAME_WIDTH, FRAME_HEIGHT)
        wanted = np.add.outer(np.arange(FRAME_HEIGHT), np.arange(FRAME_WIDTH))
        frames = []
        for completion in port.completions(10.0):
            unit = completion.unit
            assert unit is not None
            assert unit.complete
            frames.append(unit.number)
            assert np.array_equal(unit.array(np.uint8, (FRAME_HEIGHT, FRAME_WIDTH)), (wanted + unit.number) % 255)
            if len(frames) == wanted_frames:
                break
        counters = port.counters()
    assert frames == list(range(frames[0], frames[0] + wanted_frames))
    assert counters["resends_came"] >= 4 * wanted_frames
    assert counters["packets_lost_network"] == counters["packets_bad_format"] == counters["resends_not_came"] == 0


def frame(block: int, payload: bytes) -> list[bytes]:
    """Leader, payloads and trailer of a frame, in packets of GVSP; extended ones where the block needs them."""
    parts = [payload[at : at + DATA_BYTES] for at in range(0, len(payload), DATA_BYTES)]
    kinds = [(1, b""), *((3, part) for part in parts), (2, b"")]
    if block > 0xFFFF:
        return [struct.pack(">HHIQI", 0, 0, (0x80 | kind) << 24, block, number) + part for number, (kind, part) in enumerate(kinds)]
    return [struct.pack(">HHI", 0, block, kind << 24 | number) + part for number, (kind, part) in enumerate(kinds)]


@contextlib.contextmanager
def played(frames: dict[int, bytes], lost: set[int], refused: set[int], **resend: int) -> Iterator[tuple[nanet.Port, Relay]]:
    """Frames by their block, all of them at the port, or at least sent."""
    (number,) = free_ports(1)
    with Relay(number, lost, refused) as relay, opened(number, relay.control_port, **resend) as port:
        for block, payload in frames.items():
            for packet in frame(block, payload):
                relay.take(packet)
        yield port, relay


def some_frames(*blocks: int) -> dict[int, bytes]:
    random = np.random.default_rng(4)
    return {block: random.integers(0, 256, FRAME_WIDTH * FRAME_HEIGHT, dtype=np.uint8).tobytes() for block in blocks}


def read_by_wireshark(requests: list[bytes], file: Path) -> list[tuple[int, ...]]:
    """Block, first and last packet of each."""
    make.write_pcap(file, iter(requests), 1000.0, 3956)
    names = ("extendedblockid" if requests[0][1] else "blockid", "firstpacketid", "lastpacketid")
    command = [
        "tshark",
        "-r",
        str(file),
        "-d",
        "udp.port==3956,gvcp",
        "-T",
        "fields",
        *(word for name in names for word in ("-e", f"gvcp.cmd.resend.{name}")),
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return [tuple(int(number, 0) for number in line.split("\t")) for line in text.splitlines()]


@pytest.mark.needs_program("tshark")
@pytest.mark.parametrize("first_block", [1, 0x123456789ABC])
def test_requests_are_bounded_and_what_wireshark_reads(tmp_path: Path, first_block: int) -> None:
    """Of each frame the last payload and the trailer are lost too, and no frame before says how long it is; one payload never comes."""
    frames = some_frames(first_block, first_block + 1)
    with played(frames, {3, 4, 5, 12, 36, 37}, {12}, tries_max=2) as (port, relay):
        got = {}
        for completion in port.completions(4.0):
            assert completion.unit is not None
            got[completion.unit.number] = (completion.unit.packets_missing, completion.unit.array().copy())
            if len(got) == len(frames):
                break
        counters = port.counters()
        requests = list(relay.requests)
    assert got.keys() == frames.keys()
    for block, (missing, bytes_there) in got.items():
        assert missing == 1
        same = bytes_there == np.frombuffer(frames[block], np.uint8)
        assert np.all(np.delete(same, slice(11 * DATA_BYTES, 12 * DATA_BYTES)))
    assert (counters["resends_asked"], counters["resends_came"], counters["resends_not_came"]) == (8, 6, 2), "an end is no packet"
    assert counters["resend_requests"] == len(requests)
    read = read_by_wireshark(requests, tmp_path / "it.pcap")
    for block in frames:
        assert sorted(packets for one, *packets in read if one == block) == [[3, 5], [12, 12], [12, 12], [36, 36]]


CONFIG = """
version: 1
memory_regions: [{name: main, buffer_bytes: 65536, buffer_count: 16}]
links:
  - name: camera
    endpoint: "udp://127.0.0.1:6200"
    protocol: PROTOCOL
    memory_region: main
    assemble: ASSEMBLE
processor: {kind: count}
"""
CAMERA = '{resend: {endpoint: "udp://127.0.0.1:3956"}}'


@pytest.mark.parametrize(
    ("protocol", "assemble", "problem"),
    [
        ("gvsp", CAMERA, None),
        ("ejfat", CAMERA, "have no numbers that a request could name"),
        ("gvsp", "{timeout_us: 500, resend: {endpoint: 'udp://127.0.0.1:3956'}}", "their unit is closed after timeout_us, 500"),
        ("gvsp", "{resend: {endpoint: camera}}", "camera"),
        ("moench", "{merge: {streams: [1, 2], part_bytes: 8, by: time}}", None),
        ("ejfat", "{merge: {streams: [1, 2], part_bytes: 8, by: time}}", "the packets of this protocol say none"),
    ],
)
def test_a_configuration_is_judged_before_anything_is_opened(
    tmp_path: Path, protocol: str, assemble: str, problem: str | None
) -> None:
    file = tmp_path / "it.yaml"
    file.write_text(CONFIG.replace("PROTOCOL", protocol).replace("ASSEMBLE", assemble))
    if problem is None:
        load(file)
        return
    with pytest.raises(ConfigError, match=problem) as refused:
        load(file)
    assert "it.yaml:9" in str(refused.value)
