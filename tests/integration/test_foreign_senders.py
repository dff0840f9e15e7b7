# SPDX-License-Identifier: Apache-2.0
"""Packets that no one here made, through the shipped formats: heaps of spead2, a camera of Aravis, ffmpeg's RTP, and recordings of telescopes and of
KM3NeT's optical modules. Every byte is compared with what its sender, or its own reader, says that it is."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

import nanet
import numpy as np
import pytest
from loops import free_ports
from loops import nanet as run_nanet
from nanet import _core
from nanet.bench import camera as bench_camera
from nanet.bench.camera import camera, stream_to
from nanet.config import formats
from nanet.format import make

QUIET_S = 0.5  # after which no more packets come
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def opened(protocol: str, timeout_us: int = 200_000) -> tuple[nanet.Port, int]:
    """A port that puts units of up to 4 MiB together, and its number."""
    (number,) = free_ports(1)
    port = nanet.open(
        f"udp://127.0.0.1:{number}", protocol=protocol, buffer_count=16, buffer_bytes=1 << 22, packet_bytes_max=9000,
        assemble={"streams_max": 16, "units_open": 4, "timeout_us": timeout_us},
    )  # fmt: skip
    return port, number


def bound() -> socket.socket:
    """A socket with room for all that a test sends."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    one.bind(("127.0.0.1", 0))
    one.settimeout(QUIET_S)
    return one


def waiting(receiver: socket.socket) -> list[bytes]:
    """The datagrams that come until none does."""
    found = []
    with contextlib.suppress(TimeoutError):
        while True:
            found.append(receiver.recv(65536))
    return found


# ---- spead2

HEAP_BYTES = [9, 1400, 100_000, 1 << 20, 77_777]  # what is shorter stands in the header


def send_heaps(port: int, heaps: list[Bytes]) -> None:
    """By spead2's own sender, in packets of 1472 B, and then the end of the stream."""
    import spead2
    import spead2.send

    config = spead2.send.StreamConfig(rate=50e6, max_packet_size=1472)
    stream = spead2.send.UdpStream(spead2.ThreadPool(1), [("127.0.0.1", port)], config)
    for number, heap in enumerate(heaps, 1):
        group = spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, 48, 0))
        group.add_item(0x3300, "samples", "of a digitiser", heap.shape, np.uint8, value=heap)
        stream.send_heap(group.get_heap(descriptors="none", data="all"), number)
    stream.send_heap(spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, 48, 0)).get_end(), len(heaps) + 1)


def some_heaps() -> list[Bytes]:
    random = np.random.default_rng(5)
    return [random.integers(0, 256, size, dtype=np.uint8) for size in HEAP_BYTES]


@pytest.mark.needs_package("spead2")
def test_every_byte_of_spead2s_heaps_comes() -> None:
    heaps = some_heaps()
    port, number = opened("spead-64-48")
    with port:
        send_heaps(number, heaps)
        got = {}
        for completion in port.completions(QUIET_S):
            unit = completion.unit
            assert unit is not None
            assert unit.complete
            got[unit.number] = unit.array().copy()
        counters = port.counters()
    assert sorted(got) == list(range(1, len(heaps) + 2))  # the end of the stream is a heap, too
    for count, heap in enumerate(heaps, 1):
        assert np.array_equal(got[count], heap)
    assert counters["units_complete"] == len(heaps) + 1
    assert counters["packets_lost_network"] == counters["packets_late"] == counters["packets_bad_format"] == 0


@pytest.mark.needs_package("spead2")
def test_heaps_of_spead2_have_holes_where_packets_are_left_out() -> None:
    heap = some_heaps()[3]
    with bound() as relay:
        send_heaps(relay.getsockname()[1], [heap])
        packets = waiting(relay)[:-1]
    decoder = _core.FormatDecoder(formats.load("spead-64-48").keys())
    meanings = [decoder.decode(packet)[1] for packet in packets]
    left_out = {0, 5, 6, 300, len(packets) - 1}
    port, number = opened("spead-64-48", timeout_us=100_000)
    with port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for k in reversed(range(len(packets))):
            if k not in left_out:
                sender.sendto(packets[k], ("127.0.0.1", number))
        completion = port.poll(5.0)
        assert completion is not None
        unit = completion.unit
        assert unit is not None
        missing = np.zeros(len(heap), dtype=np.bool_)
        for k in left_out:
            missing[meanings[k]["place"] : meanings[k]["place"] + meanings[k]["payload_bytes"]] = True
        assert not unit.complete
        assert np.array_equal(unit.mask(), missing)
        assert np.array_equal(unit.array()[~missing], heap[~missing])
        assert unit.bytes_missing == missing.sum()
        assert port.counters()["packets_lost_network"] == unit.packets_missing == len(left_out)


# ---- Aravis's camera


@pytest.mark.needs_program("arv-fake-gv-camera-0.8")
@pytest.mark.parametrize(("height", "data_bytes"), [(24, 7964), (21, 7168)])
def test_frames_of_a_camera_come_whole(height: int, data_bytes: int) -> None:
    """The second has packets that are all equally long, so that its trailer alone says where a frame ends."""
    width, wanted_frames = 2048, 6
    port, number = opened("gvsp", timeout_us=5_000_000)
    with port, camera() as control:
        stream_to(control, number, data_bytes, width, height)
        wanted = np.add.outer(np.arange(height), np.arange(width))
        frames = []
        for completion in port.completions(10.0):
            unit = completion.unit
            assert unit is not None
            assert unit.complete
            frames.append(unit.number)
            assert np.array_equal(unit.array(np.uint8, (height, width)), (wanted + unit.number) % 255)
            if len(frames) == wanted_frames:
                break
        counters = port.counters()
    assert frames == list(range(frames[0], frames[0] + wanted_frames))
    assert counters["packets_late"] == counters["packets_lost_network"] == counters["packets_bad_format"] == 0
    assert (width * height % data_bytes == 0) == (height == 21)


@pytest.mark.needs_program("arv-fake-gv-camera-0.8")
def test_frames_of_a_camera_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    """From the kernel's stamps, which not everyone may read."""
    status = bench_camera.main(["--frames", "12", "--turns", "1", "--height", "24"])
    said = capsys.readouterr()
    if status == 2:
        assert os.geteuid() != 0
        assert "CAP_NET_RAW" in said.err
        return
    result = json.loads(said.out)
    assert (result["frame_bytes"], result["frames"], result["frames_lost"], result["raw_lost"]) == (2048 * 24, 12, 0, 0)
    assert 0 < result["raw_p50_us"] <= result["raw_p99_us"]
    assert 0 < result["p50_us"] <= result["p99_us"]


# ---- ffmpeg


@pytest.mark.needs_program("ffmpeg")
def test_sound_of_ffmpeg_comes_in_rtp(tmp_path: Path) -> None:
    """16-bit samples, big-endian, of which every one is compared."""
    samples = np.random.default_rng(3).integers(-32768, 32768, 24_000, dtype=np.int16)
    (tmp_path / "sound.raw").write_bytes(samples.tobytes())
    with bound() as receiver, bound() as control:
        to = f"rtp://127.0.0.1:{receiver.getsockname()[1]}?rtcpport={control.getsockname()[1]}&pkt_size=1000"
        command = ["ffmpeg", "-nostdin", "-v", "error", "-f", "s16le", "-ar", "48000", "-ac", "1", "-i", str(tmp_path / "sound.raw"),
                   "-c:a", "pcm_s16be", "-f", "rtp", to]  # fmt: skip
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
        packets = waiting(receiver)
    decoder = _core.FormatDecoder(formats.load("rtp").keys())
    sound, sequences, times = b"", [], []
    for packet in packets:
        refusal, meaning = decoder.decode(packet)
        assert refusal == ""
        sound += packet[meaning["payload_offset"] :][: meaning["payload_bytes"]]
        sequences.append(meaning["sequence"])
        times.append(decoder.fields(packet)["timestamp"])
    assert sound == samples.astype(">i2").tobytes()
    assert len({decoder.decode(packet)[1]["stream"] for packet in packets}) == 1
    assert np.all(np.diff(sequences) % 65536 == 1)
    assert np.array_equal(np.diff(times) % 2**32, [(len(packet) - 12) // 2 for packet in packets[:-1]])
    make.write_pcap(tmp_path / "sound.pcap", iter(packets), 1000.0, 5004)
    run_nanet("format", "check", "rtp", tmp_path / "sound.pcap", "--quiet", "--json", tmp_path / "check.json")
    assert json.loads((tmp_path / "check.json").read_text())["accepted"] == len(packets)


# ---- baseband's recordings

VDIF_SAMPLES = ("sample.vdif", "sample_mwa.vdif", "sample_arochime.vdif", "sample_bps1.vdif", "sample_drao_corrupted.vdif")


def recorded(name: str) -> bytes:
    import baseband.data

    return (Path(baseband.data.__file__).parent / name).read_bytes()


@pytest.mark.needs_package("baseband")
@pytest.mark.parametrize("name", VDIF_SAMPLES)
def test_recorded_frames_are_what_baseband_says(name: str) -> None:
    """Every frame, of the damaged recording too, in whose headers stands nonsense that both have to read alike."""
    import io

    from baseband.vdif import VDIFHeader

    decoder, whole, at, frames = _core.FormatDecoder(formats.load("vdif").keys()), recorded(name), 0, 0
    while at < len(whole):
        theirs = VDIFHeader.fromfile(io.BytesIO(whole[at:]), verify=False)
        packet = whole[at : at + theirs.frame_nbytes]
        refusal, meaning = decoder.decode(packet)
        assert refusal == ""
        said = decoder.fields(packet)
        names = {"second": "seconds", "frame": "frame_nr", "epoch": "ref_epoch", "station": "station_id", "thread": "thread_id",
                 "bits_less_1": "bits_per_sample", "channels_log2": "lg2_nchan", "words8": "frame_length", "legacy": "legacy_mode",
                 "invalid": "invalid_data", "complex": "complex_data", "version": "vdif_version"}  # fmt: skip
        assert {ours: said[ours] for ours in names} == {ours: int(theirs[one]) for ours, one in names.items()}
        assert (meaning["payload_offset"], meaning["payload_bytes"]) == (theirs.nbytes, theirs.payload_nbytes)
        at += theirs.frame_nbytes
        frames += 1
    assert frames > 1
    assert decoder.decode(whole[-theirs.frame_nbytes : -1])[0] == "payload_too_long"  # its end is lost


@pytest.mark.needs_package("baseband")
def test_recorded_frames_sent_to_a_port_are_units() -> None:
    from baseband import vdif
    from baseband.data import SAMPLE_VDIF

    theirs = {}
    with vdif.open(SAMPLE_VDIF, "rb") as file:
        for _ in range(16):
            frame = file.read_frame()
            theirs[int(frame.header["thread_id"]), int(frame.header["frame_nr"])] = np.asarray(frame.payload.words).view(np.uint8)
    whole = recorded("sample.vdif")
    port, number = opened("vdif")
    with port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for at in range(0, len(whole), 5032):
            sender.sendto(whole[at : at + 5032], ("127.0.0.1", number))
        got = {}
        for completion in port.completions(QUIET_S):
            unit = completion.unit
            assert unit is not None
            got[unit.stream & 0x3FF, unit.number & 0xFFFFFF] = unit.array().copy()
    assert got.keys() == theirs.keys()
    assert all(np.array_equal(got[key], theirs[key]) for key in theirs)


# ---- KM3NeT's optical modules


@pytest.mark.needs_package("km3net_testdata")
def test_recorded_packets_of_optical_modules_hold_hits(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("km3net_testdata")
    assert spec is not None
    assert spec.origin is not None
    recording = (Path(spec.origin).parent / "data" / "daq" / "clb.dqd").read_bytes()
    packets, at = [], 0
    while at < len(recording):  # each after its length
        (size,) = struct.unpack_from("<I", recording, at)
        packets.append(recording[at + 4 : at + 4 + size])
        at += 4 + size
    decoder = _core.FormatDecoder(formats.load("km3net-clb").keys())
    hit = np.dtype([("channel", "u1"), ("time_ns", ">u4"), ("over_threshold_ns", "u1")])
    for packet in packets:
        refusal, meaning = decoder.decode(packet)
        assert refusal == ""
        kind, run, number, second, tick, dom, status = struct.unpack_from(">7I", packet)
        assert decoder.fields(packet) == {"type": kind, "run": run, "udp_sequence": number, "second": second, "tick": tick, "dom": dom,
                                          "status": status}  # fmt: skip
        assert (meaning["stream"], meaning["time"]) == (817_803_008, second * 62_500_000 + tick)
        hits = np.frombuffer(packet, hit, offset=meaning["payload_offset"])
        assert hits["channel"].max() < 31  # as many photomultipliers as there are
        assert hits["time_ns"].max() < 100_000_000  # of a time slice
    assert [len(packet) for packet in packets] == [1402, 874, 1402]
    make.write_pcap(tmp_path / "clb.pcap", iter(packets), 1000.0, 56015)
    run_nanet("format", "check", "km3net-clb", tmp_path / "clb.pcap", "--quiet", "--json", tmp_path / "check.json")
    assert json.loads((tmp_path / "check.json").read_text())["accepted"] == len(packets)
