# SPDX-License-Identifier: Apache-2.0
"""Time slices and events as KM3NeT's programs read them: recorded dumps, beside what km3pipe 11.0.0 reads of them, hit by hit.

Where km3pipe is installed (`pip install km3pipe`, half a gigabyte) it reads each file here; else what it read once is compared, as a sum over all
hits: `python tests/python/test_km3_files.py` says these sums where it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from km3net_testdata import data_path
from nanet.cli.app import app
from nanet.config import formats
from nanet.config.errors import ConfigError
from nanet.format import make
from nanet.km3 import daq, files
from nanet.km3.detector import Detector
from nanet.km3.recordings import Modules, coincident, collect, modules_of_strings, summary_of
from typer.testing import CliRunner

HAS_KM3PIPE = importlib.util.find_spec("km3pipe") is not None
SLICES = ("IO_TSL1_1003", "IO_TSSN")
DUMPS = (*SLICES, "IO_EVT", "IO_SUM")
BY_KM3PIPE = {  # messages, hits, and a sum over all of each hit and of the head of each message, as read by km3pipe 11.0.0
    "IO_TSL1_1003": (10, 18000, "544dc4ff100c72a3"),
    "IO_TSSN": (3, 58, "cfdb4a4d5d963ed3"),
    "IO_EVT": (3, 375, "9a4f9f8a2baed734"),
    "IO_SUM": (3, 0, "23d2edc233a9c8b3"),
}


def dump(name: str) -> bytes:
    return Path(data_path(f"daq/{name}.dat")).read_bytes()


def ours(data: bytes) -> tuple[int, int, str]:
    """Of each message its head and its hits, in words that do not depend on who read them."""
    rows: list[Any] = []
    hits, count = 0, 0
    for one in daq.read(data):
        count += 1
        rows.append([one.header.number, one.header.second, one.header.tick * 16])
        if isinstance(one, daq.Slice):
            for frame in one.frames:
                rows += [[frame.module, *hit] for hit in frame.hits.tolist()]
                hits += len(frame.hits)
        elif isinstance(one, daq.Event):
            rows.append([one.header.detector, one.header.run, one.counter, one.mask, one.overlays])
            rows += [*map(list, one.triggered.tolist()), *map(list, one.hits.tolist())]
            hits += len(one.hits)
        else:
            rows += [[int(row["module"]), row["status"].tolist(), row["rates"].tolist()] for row in one.modules]
    return count, hits, hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def theirs(data: bytes) -> tuple[int, int, str]:
    """The same of km3pipe."""
    from km3pipe.io import daq as their

    rows: list[Any] = []
    hits, count, at = 0, 0, 0
    while at < len(data):
        length, kind = struct.unpack_from("<ii", data, at)
        message = io.BytesIO(data[at : at + length])
        at, count = at + length, count + 1
        if kind < 2000:
            info, _, found = their.TimesliceParser()._parse_timeslice(message)
            rows.append([int(info[name][0]) for name in ("frame_index", "timestamp", "nanoseconds")])
            rows += [[int(hit[name]) for name in ("dom_id", "channel_id", "time", "tot")] for hit in found]
            hits += len(found)
            continue
        their.DAQPreamble(file_obj=message)
        one = their.DAQEvent(message) if kind == 10001 else their.DAQSummaryslice(message)
        head = one.header
        rows.append([head.time_slice, head.time_stamp, head.ticks * 16])
        if kind == 10001:
            rows.append([head.det_id, head.run, one.trigger_counter, one.trigger_mask, one.overlays])
            rows += [*map(list, one.triggered_hits.tolist()), *map(list, one.snapshot_hits.tolist())]
            hits += one.n_snapshot_hits
        else:
            for module, rates in one.summary_frames.items():
                words = [word & 0xFFFF_FFFF for word in one.dom_status[module]]
                rows.append([module, words, [_byte_of(rate) for rate in rates]])
    return count, hits, hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def _byte_of(rate_hz: float) -> int:
    return round(np.log(rate_hz / 2000) * 255 / np.log(1000)) & 255 if rate_hz else 0


@pytest.mark.parametrize("name", DUMPS)
def test_a_recorded_dump_is_read_as_km3pipe_reads_it_and_written_as_it_was(name: str) -> None:
    data = dump(name)
    assert ours(data) == BY_KM3PIPE[name]
    assert b"".join(map(daq.encode, daq.read(data))) == data
    if HAS_KM3PIPE:
        assert theirs(data) == BY_KM3PIPE[name]


def test_a_cut_or_damaged_dump_is_refused_with_its_place() -> None:
    data = dump("IO_TSSN")
    messages = list(daq.read(data))
    ends = [0, *np.cumsum([len(daq.encode(one)) for one in messages]).tolist()]
    for end in range(len(data)):
        if end in ends:
            assert len(list(daq.read(data[:end]))) == ends.index(end)
        else:
            with pytest.raises(daq.DaqError, match="byte"):
                list(daq.read(data[:end]))
    for at in range(0, len(data), 7):  # no damage does worse than a refusal
        for bit in (0, 7):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            with contextlib.suppress(daq.DaqError):
                list(daq.read(bytes(damaged)))
    with pytest.raises(daq.DaqError, match="version 0, and 1 is known"):
        list(daq.read(data[:8] + b"\0" + data[9:]))
    passed_over: Counter[int] = Counter()
    assert len(list(daq.read(struct.pack("<ii", 8, 4242) + data, passed_over))) == 3
    assert passed_over == {4242: 1}


def made_tower() -> tuple[list[bytes], dict[tuple[int, int], list[tuple[int, int, int]]]]:
    """Packets of three floors in two slices, written after docs/formats-km3.md, and the hits in them; one floor sees nothing in slice 6."""
    random, packets, truth = np.random.default_rng(3), [], {}
    for index in (5, 6):
        for floor in (1, 2, 3):
            count = 0 if (index, floor) == (6, 2) else 200
            times = sorted(int(time) for time in random.integers(-50, 200_000_000, count))
            hits = [(int(random.integers(6)), time, int(random.integers(1, 256))) for time in times]
            data = b"".join(struct.pack(">BiB", *hit) for hit in hits)
            truth[index, floor] = hits
            for at in range(0, max(1, len(data)), 600):
                last = at + 600 >= len(data)
                head = struct.pack(
                    ">4sBBBBIIIIII", b"KM3F", 1, floor, 1, last, 9, index, 1_500_000_000, 12_500_000 * (index - 5), at, 0
                )
                packets.append(head + data[at : at + 600])
    packets.append(struct.pack(">4sBBBBIIIIII", b"KM3F", 1, 1, 5, 1, 9, 5, 1_500_000_000, 0, 0, 0))  # instruments
    return packets, truth


def test_a_tower_becomes_slices_whatever_the_order_of_its_packets() -> None:
    packets, truth = made_tower()
    np.random.default_rng(1).shuffle(packets)
    found = collect([*packets, packets[3], b"", b"something else"])
    assert sum(found.packets.values()) == len(packets) + 3
    assert {name: found.packets[name] for name in ("duplicate", "other_kinds", "other")} == {
        "duplicate": 1,
        "other_kinds": 1,
        "other": 2,
    }
    assert found.units_incomplete == 0
    assert [one.header for one in found.slices] == [
        daq.Header(1, 9, index, 1_500_000_000, 12_500_000 * (index - 5)) for index in (5, 6)
    ]
    for one in found.slices:
        assert [frame.module for frame in one.frames] == [257, 258, 259]
        for frame in one.frames:
            assert frame.hits.tolist() == truth[one.header.number, frame.module & 255]
    (came,) = daq.read(daq.encode(found.slices[0]))
    assert isinstance(came, daq.Slice)
    assert [frame.hits.tolist() for frame in came.frames] == [frame.hits.tolist() for frame in found.slices[0].frames]
    lost = next(packet for packet in packets if struct.unpack_from(">I", packet, 24) == (600,))
    assert collect(packet for packet in packets if packet is not lost).units_incomplete == 1


def test_names_of_modules_are_the_detector_files() -> None:
    detector = Detector.towers(1, 3)
    packets, _ = made_tower()
    ids = {int(one["number"]): int(one["id"]) for one in detector.floors}
    found = collect(packets, Modules(detector))
    assert [frame.module for frame in found.slices[0].frames] == [ids[floor] for floor in (1, 2, 3)]
    assert found.slices[0].header.detector == detector.id


def test_recorded_modules_become_slices() -> None:
    """The packets of `clb.dqd`, each behind its length."""
    data, packets, at = Path(data_path("daq/clb.dqd")).read_bytes(), [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<i", data, at)
        packets.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    found = collect(packets)
    hits = [packet[28:] for packet in packets]
    assert b"".join(frame.hits.tobytes() for one in found.slices for frame in one.frames) == b"".join(hits)
    assert [(one.header.number, len(one.frames[0].hits)) for one in found.slices] == [(0, 229 + 141), (1, 229)]
    numbers = [struct.unpack_from(">i", packet, 8)[0] for packet in packets[:2]]
    assert found.slices[0].frames[0].queue_status == max(numbers) << 16 | 2
    assert found.units_incomplete == 1  # of the first slice the recording has two packets of more


def test_the_coincidences_are_those_of_two_loops() -> None:
    packets, truth = made_tower()
    for places in (2, 0):
        for one in collect(packets).slices:
            made = coincident(one, Modules(), window_ns=200_000, charge=250, places=places)
            for frame in made.frames:
                hits = truth[one.header.number, frame.module & 255]
                alone = [
                    hit for hit in hits if hit[2] > 250 or any(
                        other[0] != hit[0] and (not places or other[0] // places == hit[0] // places) and abs(other[1] - hit[1]) <= 200_000
                        for other in hits)
                ]  # fmt: skip
                assert frame.hits.tolist() == alone
                assert places == 2 or len(alone) > 40 or not hits


def string_packet(module: int, hits: list[tuple[int, int, int]]) -> bytes:
    """Of a module's CLB, written after km3net-clb."""
    return struct.pack(">7I", 0x54544443, 9, 0, 1_500_000_000, 0, module, 0) + b"".join(struct.pack(">BiB", *hit) for hit in hits)


BY_CHARGE = [(3, 1000 * k, tot) for k, tot in enumerate((24, 25, 26, 27, 67, 68, 255), start=1)]
"""Far from each other."""
PAIR = [(0, 50_000, 10), (30, 50_015, 10)]
"""Of a module, and of no place of a floor."""


def test_the_charge_of_a_strings_hit_is_its_time_over_threshold(tmp_path: Path) -> None:
    """25 tenths of a photo-electron are 67 ns, of packets and of dumps, as the trigger has it: more than that is a seed."""
    hits = [*BY_CHARGE, *PAIR]
    make.write_pcap(tmp_path / "string.pcap", iter([string_packet(808, hits)]), 1e6, 7200)
    assert CliRunner().invoke(app, ["km3", "export", str(tmp_path / "string.pcap"), str(tmp_path / "string.dat")]).exit_code == 0
    for source in ("string.pcap", "string.dat"):
        assert level_1(tmp_path / source) == [hit for hit in hits if hit[2] > 67 or hit in PAIR]
        assert level_1(tmp_path / source, "--charge", "10") == [hit for hit in hits if hit[2] > 26 or hit in PAIR]
        assert level_1(tmp_path / source, "--charge", "0") == PAIR
        assert level_1(tmp_path / source, "--place", "2") == [hit for hit in hits if hit[2] > 67]


def test_the_charge_of_a_floors_hit_is_what_the_floor_says(tmp_path: Path) -> None:
    data = b"".join(struct.pack(">BiB", *hit) for hit in BY_CHARGE)
    packet = struct.pack(">4sBBBBIIIIII", b"KM3F", 1, 1, 1, 1, 9, 5, 1_500_000_000, 0, 0, 0) + data
    make.write_pcap(tmp_path / "tower.pcap", iter([packet]), 1e6, 7100)
    assert CliRunner().invoke(app, ["km3", "export", str(tmp_path / "tower.pcap"), str(tmp_path / "tower.dat")]).exit_code == 0
    for source in ("tower.pcap", "tower.dat"):
        assert level_1(tmp_path / source) == [hit for hit in BY_CHARGE if hit[2] > 25]


def level_1(source: Path, *options: str) -> list[Any]:
    """Hits of the L1 slice that the command makes."""
    to = source.parent / "l1.dat"
    done = CliRunner().invoke(app, ["km3", "export", str(source), str(to), "--level", "L1", *options])
    assert done.exit_code == 0, done.output
    (made,) = files.read(to)
    assert isinstance(made, daq.Slice)
    return [hit for frame in made.frames for hit in frame.hits.tolist()]


def test_a_detector_file_says_which_modules_of_a_dump_are_a_strings() -> None:
    few = [(0, 1000, 30)]  # no channel says whose it is
    (slice_,) = collect([string_packet(808, few)]).slices
    text = "1 2\n" + "".join(
        f"{module} 1 {floor} {pms}\n" + f"{module} 0 0 {floor} 0 0 1 0\n" * pms for module, floor, pms in ((808, 1, 31), (9, 2, 6))
    )
    modules = Modules(Detector.from_detx(text))
    assert modules_of_strings([slice_], modules, None) == {808}
    assert modules_of_strings([slice_], Modules(), None) == set()


def test_a_summary_says_rates_within_a_step() -> None:
    packets, truth = made_tower()
    (made, _) = (summary_of(one, 0.004) for one in collect(packets).slices)  # 200 hits in 4 ms: 8 kHz a PM
    for row in made.modules:
        counts = Counter(hit[0] for hit in truth[5, int(row["module"]) & 255])
        for channel in range(31):
            rate = counts[channel] / 0.004
            said = 2000 * 1000 ** (int(row["rates"][channel]) / 255) if row["rates"][channel] else 0
            assert said == pytest.approx(rate, rel=0.014)
    (came,) = daq.read(daq.encode(made))
    assert isinstance(came, daq.Summary)
    assert came.modules.tobytes() == made.modules.tobytes()


KINDS_OF_EVERY_THIRD = 5


def event_packets(times: list[int], *, payload: int = 24 + 12 * 5) -> list[bytes]:
    """An event of the trigger with hits at these times [1/1024 ns], of which every third began a seed, written after docs/formats-km3.md."""
    hits = b"".join(
        struct.pack(">BBBBq", 1, 1 + k % 3, k % 6 + 32 * KINDS_OF_EVERY_THIRD * (k % 3 == 0), 10 + k, time)
        for k, time in enumerate(times)
    )
    whole = struct.pack(">4Iq", len(times), 5, 3, 0, min(times)) + hits
    return [
        struct.pack(">4s7I", b"KM3E", 9, 7, 41, 1_500_000_001, 8, at, len(whole)) + whole[at : at + payload]
        for at in range(0, len(whole), payload)
    ]


def test_events_have_the_times_that_modules_said() -> None:
    detector = Detector.towers(1, 3)
    modules = Modules(detector)
    offsets = {(int(one["floor"]), int(one["number"])): float(one["time_offset_ns"]) for one in detector.pms}
    times = [1024 * (100 + 7 * k) + 300 for k in range(17)]
    packets = event_packets(times)
    assert len(packets) == 3
    decoder = _decoder()
    for packet in packets:
        assert decoder.decode(packet)[0] == ""
    (event,) = collect(reversed(packets), modules).events
    assert event.header == daq.Header(detector.id, 9, 7, 1_500_000_001, 8)
    assert (event.counter, event.mask) == (41, 3)
    expected = [round(time / 1024 - offsets[k % 3, k % 6]) for k, time in enumerate(times)]
    assert sorted(event.hits["time_ns"].tolist()) == sorted(expected)
    assert sorted(event.hits["tot"].tolist()) == list(range(10, 27))
    assert sorted(event.triggered["tot"].tolist()) == list(range(10, 27, 3))
    assert set(event.triggered["mask"].tolist()) == {KINDS_OF_EVERY_THIRD}
    of_all = {tuple(hit) for hit in event.hits.tolist()}
    assert all(tuple(hit)[:-1] in of_all for hit in event.triggered.tolist())
    assert collect(packets[1:], modules).events_incomplete == 1


def _decoder() -> Any:
    from nanet import _core

    return _core.FormatDecoder(formats.load("km3-event").keys())


def test_what_is_made_here_is_read_as_it_is_meant() -> None:
    packets, truth = made_tower()
    found = collect([*packets, *event_packets([1024, 2048, 9000])])
    made = b"".join(map(daq.encode, [*found.slices, *[summary_of(one, 0.004) for one in found.slices], *found.events]))
    assert ours(made)[:2] == (5, sum(map(len, truth.values())) + 3)
    if HAS_KM3PIPE:
        assert theirs(made) == ours(made)


def test_whatever_bits_of_packets_are_wrong_a_dump_can_be_written() -> None:
    packets, _ = made_tower()
    packets = [*packets, *event_packets([1024, 2048, 9000]), struct.pack(">7I", 0x54544443, 9, 0, 5, 0, 808, 0) + bytes(12)]
    random = np.random.default_rng(4)
    for _ in range(150):
        damaged = [bytearray(packet) for packet in packets]
        for one in random.choice(len(packets), 3):
            damaged[one][random.integers(min(32, len(damaged[one])))] ^= 1 << random.integers(8)
        found = collect(map(bytes, damaged))
        assert sum(found.packets.values()) == len(packets)
        for message in (*found.slices, *found.events):
            (came,) = daq.read(daq.encode(message))
            assert came.header == message.header


def test_what_no_message_can_say_is_left_out_and_counted() -> None:
    (good,) = event_packets([1024])
    for at, value in ((4, 1 << 31), (8, 1 << 31), (20, 62_500_000)):
        bad = good[:at] + struct.pack(">I", value) + good[at + 4 :]
        assert collect([bad, good]).packets == {"bad_head": 1, "accepted": 1}
    for times in ([0, 1024 << 31], [-(1 << 62), 0], [-(1 << 62), 1 << 62]):
        found = collect(event_packets(times))
        assert (found.events, found.events_incomplete) == ([], 1)
    early = b"".join((good[:16], bytes(8), good[24:-8], struct.pack(">q", -1024)))  # before second 0
    assert collect([early]).events_incomplete == 1


def test_an_event_that_begins_before_its_slice_has_an_earlier_time() -> None:
    (event,) = collect(event_packets([1024 * -1000, 1024 * 500])).events
    assert (event.header.second, event.header.tick) == (1_500_000_000, 62_500_000 + 8 - 63)  # 63 x 16 ns
    assert event.hits["time_ns"].tolist() == [8, 1508]


def test_hdf5_has_every_message(tmp_path: Path) -> None:
    messages = [one for name in DUMPS for one in daq.read(dump(name))]
    files.write(tmp_path / "all.h5", messages)
    with h5py.File(tmp_path / "all.h5") as file:
        assert file["group_info"]["group_id"].tolist() == list(range(len(messages)))
        for number, one in enumerate(messages):
            if isinstance(one, daq.Summary):
                continue
            where = "hits" if isinstance(one, daq.Event) else "timeslice_hits"
            begin, count = (int(file[where]["_indices"][name][number]) for name in ("index", "n_items"))
            columns = [file[where][name][begin : begin + count].tolist() for name in ("dom_id", "channel_id", "time", "tot")]
            parts = [one.hits] if isinstance(one, daq.Event) else [frame.hits for frame in one.frames]
            modules = [one.hits["module"]] if isinstance(one, daq.Event) else [np.full(len(f.hits), f.module) for f in one.frames]
            assert columns[0] == np.concatenate(modules).tolist()
            for column, name in zip(columns[1:], ("channel", "time_ns", "tot"), strict=True):
                assert column == np.concatenate([part[name] for part in parts]).tolist()
        assert int(file["hits/triggered"][:].sum()) == 182 + 49 + 6  # as the events say
    if HAS_KM3PIPE:
        _compare_by_pump(tmp_path / "all.h5", messages)


EDGES = {
    "run_id": lambda one, value: one._replace(header=one.header._replace(run=value)),
    "frame_index": lambda one, value: one._replace(header=one.header._replace(number=value)),
    "nanoseconds": lambda one, value: one._replace(header=one.header._replace(tick=value % (1 << 32))),
    "dom_id": lambda one, value: one._replace(frames=(one.frames[0]._replace(module=value),)),
}


@pytest.mark.parametrize("column", EDGES)
def test_a_number_that_hdf5_of_km3pipe_has_not_is_refused_in_a_line(column: str, tmp_path: Path) -> None:
    """Such as run -1 of a dump: its numbers are signed. A dump of it is written again as it was."""
    good = daq.Slice(
        "L0", daq.Header(1, 1, 0, 1_500_000_000, 0), (daq.Frame(daq.Header(1, 1, 0, 1_500_000_000, 0), 101, np.zeros(1, daq.HIT)),)
    )
    for value, is_said in ((7, True), (-1, False)):
        data = daq.encode(EDGES[column](good, value))
        (tmp_path / "from.dat").write_bytes(data)
        files.write(tmp_path / "to.dat", files.read(tmp_path / "from.dat"))
        assert (tmp_path / "to.dat").read_bytes() == data
        if is_said:
            files.write(tmp_path / "to.h5", files.read(tmp_path / "from.dat"))
            continue
        with pytest.raises(ConfigError, match=rf"^{column} \S+ cannot be written .* write a dump: \.dat$"):
            files.write(tmp_path / "not.h5", files.read(tmp_path / "from.dat"))
        assert not (tmp_path / "not.h5").exists()


def test_a_slice_of_fewer_frames_than_none_is_refused() -> None:
    data = daq.encode(daq.Slice("L0", daq.Header(1, 1, 0, 0, 0), ()))
    with pytest.raises(daq.DaqError, match="-1 frames at byte 0"):
        list(daq.read(data[:-4] + struct.pack("<i", -1)))


@pytest.mark.parametrize("what", ["detector", "module"])
def test_a_detector_file_whose_numbers_no_message_has_is_refused(what: str) -> None:
    number = 1 << 31
    text = f"{number if what == 'detector' else 1} 1\n{number if what == 'module' else 5} 1 1 1\n1 0 0 0 0 0 1 0\n"
    with pytest.raises(ConfigError, match=f"{what} {number} has no name"):
        Modules(Detector.from_detx(text))


def _compare_by_pump(path: Path, messages: list[daq.Message]) -> None:
    """km3pipe reads the file, group by group."""
    import km3pipe

    pump = km3pipe.io.hdf5.HDF5Pump(filename=str(path))
    for number, one in enumerate(messages):
        blob = pump.get_blob(number)
        if isinstance(one, daq.Slice):
            assert blob["TimesliceInfo"]["frame_index"][0] == one.header.number
            assert blob["TimesliceHits"]["time"].tolist() == [int(t) for frame in one.frames for t in frame.hits["time_ns"]]
        elif isinstance(one, daq.Event):
            assert blob["EventInfo"]["trigger_mask"][0] == one.mask
            assert blob["Hits"]["dom_id"].tolist() == one.hits["module"].tolist()
            assert blob["Hits"]["time"].tolist() == one.hits["time_ns"].tolist()
        else:
            assert blob["SummarysliceFrames"]["dom_id"].tolist() == one.modules["module"].tolist()
    pump.finish()


def test_a_file_that_cannot_be_read_or_named_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.dat").write_bytes(dump("IO_EVT")[:100])
    with pytest.raises(ConfigError, match=r"cut\.dat"):
        files.read(tmp_path / "cut.dat")
    with pytest.raises(ConfigError, match=r"end it in \.dat or \.h5"):
        files.write(tmp_path / "all.root", [])


def test_the_command_exports_a_recording(tmp_path: Path, check_keys: Callable[[dict[str, Any], str], None]) -> None:
    packets, truth = made_tower()
    recording, detector = tmp_path / "tower.pcap", tmp_path / "tower.detx"
    make.write_pcap(recording, iter([*packets, *event_packets([1024, 2048])]), 1e6, 7100)
    Detector.towers(1, 3).write(detector)
    arguments = [
        "km3",
        "export",
        str(recording),
        str(tmp_path / "all.dat"),
        "--detector",
        str(detector),
        "--json",
        str(tmp_path / "all.json"),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "all.json").read_text())
    check_keys(result, "km3 export")
    assert result["messages"] == {"L0": 2, "event": 1}
    assert result["hits"] == sum(map(len, truth.values())) + 2
    done = CliRunner().invoke(
        app, ["km3", "export", str(tmp_path / "all.dat"), str(tmp_path / "l1.h5"), "--level", "L1", "--level", "summary"]
    )
    assert done.exit_code == 0, done.output
    assert "2 L1, 2 summary" in done.output
    made = [one for one in files.read(tmp_path / "all.dat") if isinstance(one, daq.Slice)]
    assert [[frame.hits.tolist() for frame in one.frames] for one in made] == [
        [truth[k, floor] for floor in (1, 2, 3)] for k in (5, 6)
    ]
    assert CliRunner().invoke(app, ["km3", "export", str(recording), str(tmp_path / "all.root")]).exit_code == 2
    assert CliRunner().invoke(app, ["km3", "export", str(recording), str(tmp_path / "all.dat"), "--level", "L9"]).exit_code == 2


if __name__ == "__main__":
    for each in DUMPS:
        print(f'    "{each}": {theirs(dump(each))},')
