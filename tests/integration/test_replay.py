# SPDX-License-Identifier: Apache-2.0
"""Recordings played again: the answers of a replay are those of the live run, bit for bit; and raw data becomes packets."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import yaml
from loops import emulator_config, engine_config, free_ports, nanet, wait_for
from nanet import wire
from nanet.config.errors import ConfigError
from nanet.run import emulate, replay
from nanet.run.process import EngineProcess
from nanet.wire import mep
from test_commands import CheckKeys

EVENTS = 20_000


class Listener:
    """Keeps every datagram that comes to a port of its own, until left."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.05)
        self.url = f"udp://127.0.0.1:{self.socket.getsockname()[1]}"
        self.packets: list[bytes] = []
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()
        self.socket.close()

    def _listen(self) -> None:
        while True:
            try:
                self.packets.append(self.socket.recv(65536))
            except TimeoutError:
                if self._leaving.is_set():
                    return

    def primitives(self) -> npt.NDArray[np.void]:
        """All primitives that came, in order of time."""
        parts = [wire.parse_mtp(packet).primitives for packet in self.packets]
        return np.sort(np.concatenate(parts), order=("timestamp", "fine_time", "id"))


def answers_of(config_changes: dict[str, Any], boards: int, play: Any) -> tuple[npt.NDArray[np.void], dict[str, Any], Any]:
    """(primitives, the engine's result, what play gives) of an engine to which play(port) sends."""
    (port,) = free_ports(1)
    with Listener() as listener:
        config = engine_config(port, int(listener.url.rpartition(":")[2]), boards, **config_changes)
        with EngineProcess(config) as process:
            played = play(port)
            result = process.stop()
    return listener.primitives(), result, played


@pytest.mark.parametrize(("boards", "layout"), [(1, "padded"), (4, "packed")])
def test_a_replay_is_answered_as_the_live_run(tmp_path: Path, boards: int, layout: str) -> None:
    file = tmp_path / "live.pcap"

    def live(port: int) -> dict[str, Any]:
        return emulate.run(emulator_config(port, None, boards, layout=layout, events_total=EVENTS, rate_events_per_s=2e5))

    link = {"record": {"file": str(file)}}
    expected, engine, emulated = answers_of({"link": link}, boards, live)
    assert len(expected) == emulated["sent"] == EVENTS
    assert engine["losses"] == {}

    for pace in ("original", "4e5"):

        def play(port: int, pace: str = pace) -> dict[str, Any]:
            return replay.run(replay.options_from_text(file, f"udp://127.0.0.1:{port}", pace))

        answers, again, played = answers_of({}, boards, play)
        assert np.array_equal(answers, expected), pace
        assert (again["losses"], played["tx_dropped"], replay.passed_over(played)) == ({}, 0, {})
        assert played["packets_sent"] == engine["links"][0]["stats"]["rx_packets"]
        assert played["events_sent"] == EVENTS * boards
        for name in ("packets_accepted", "packets_marker", "events_received", "rings_found", "events_answered"):
            assert again["counters"][name] == engine["counters"][name], name


@pytest.mark.parametrize(
    ("boards", "topology", "pcap"),
    [
        (1, "run_to_completion", None),
        (4, "pipelined", {"pace": "maximum"}),
        (1, "pipelined", {"pace": "packets", "packets_per_s": 50_000.0}),
    ],
)
def test_a_recording_is_a_link(tmp_path: Path, boards: int, topology: str, pcap: dict[str, Any] | None) -> None:
    file = tmp_path / "live.pcap"

    def live(port: int) -> dict[str, Any]:
        return emulate.run(emulator_config(port, None, boards, layout="packed", events_total=EVENTS, rate_events_per_s=2e5))

    expected, engine, _ = answers_of({"link": {"record": {"file": str(file)}}}, boards, live)
    with Listener() as listener:
        link = {"endpoint": f"pcap://{file}", "pcap": pcap}
        config = engine_config(1, int(listener.url.rpartition(":")[2]), boards, link=link, topology=topology)
        (tmp_path / "play.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
        nanet("run", tmp_path / "play.yaml", "--quiet", "--json", tmp_path / "play.json")  # ends by itself
    again = json.loads((tmp_path / "play.json").read_text())
    assert np.array_equal(listener.primitives(), expected)
    assert again["losses"] == {}
    assert again["links"][0]["path"].startswith(f"pcap file {file}, ")
    assert again["links"][0]["stats"]["rx_packets"] == engine["links"][0]["stats"]["rx_packets"]
    for name in ("packets_accepted", "packets_marker", "events_received", "rings_found", "events_answered"):
        assert again["counters"][name] == engine["counters"][name], name


def test_laps_are_runs_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "live.pcap"

    def live(port: int) -> dict[str, Any]:
        return emulate.run(emulator_config(port, None, events_total=3200))

    answers_of({"link": {"record": {"file": str(file)}}}, 1, live)

    def play(port: int) -> dict[str, Any]:
        return replay.run(replay.options_from_text(file, f"udp://127.0.0.1:{port}", "20000p", laps=3))

    answers, engine, played = answers_of({}, 1, play)
    assert len(answers) == 3 * 3200
    assert (played["laps_done"], played["events_sent"]) == (3, 3 * 3200)
    assert engine["losses"] == {}
    assert engine["sources"][0]["counters"]["source_restarts"] == 2


def test_the_command(tmp_path: Path, check_keys: CheckKeys) -> None:
    event = wire.EventRecord(timestamp=1000, fine_time=7, event_number=0, hits=[100, 200, 300, 400])
    packet = wire.build_mgp([event] * 16, source_id=0x1C, source_sub_id=0)
    file, result = tmp_path / "made.pcap", tmp_path / "result.json"
    file.write_bytes(pcap([packet] * 100))
    with Listener() as listener:
        said = nanet("replay", file, "--to", listener.url, "--pace", "max", "--laps", "2", "--json", result).stdout
        wait_for(lambda: len(listener.packets) == 200, "the arrival of all packets")
    assert set(listener.packets) == {packet}
    assert "200 packets (3,200 events)" in said
    found = json.loads(result.read_text())
    check_keys(found, "replay")
    assert found["recording"]["records"] == 100
    assert "cannot replay" in nanet("replay", __file__, "--to", listener.url, expect=2).stderr
    assert "pace" in nanet("replay", file, "--to", listener.url, "--pace", "fast", expect=2).stderr


def test_original_pace_keeps_the_gaps(tmp_path: Path) -> None:
    file = tmp_path / "slow.pcap"
    file.write_bytes(pcap([b"one", b"two", b"three"], gap_ns=100_000_000))
    with Listener() as listener:
        result = replay.run(replay.options_from_text(file, listener.url, "original", laps=2))
    assert listener.packets == [b"one", b"two", b"three"] * 2
    assert result["elapsed_s"] >= 0.5  # five gaps of 0.1 s; how much more is the machine's


def test_raw_data_becomes_packets(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    timestamps = np.cumsum(rng.integers(1, 200, 400)) + 1000
    hits = [[(int(c), 2 * int(t), 30) for c, t in zip(rng.choice(488, 9, False), rng.integers(-16, 16, 9), strict=True)]
            for _ in range(4 * 400)]  # fmt: skip
    file = tmp_path / "raw.mep"
    with file.open("wb") as out:
        for first in range(0, 400, 50):
            for board in range(4):
                events = [
                    (int(timestamps[e]), mep.build_tdc_data(int(timestamps[e]), hits[4 * e + board], source_sub_id=board))
                    for e in range(first, first + 50)
                ]
                out.write(mep.build_mep(events, source_id=0x1C, source_sub_id=board, first_event_number=first))
    with Listener() as listener:
        result = replay.run(replay.options_from_text(file, listener.url, "2000p"))
        wait_for(lambda: len(listener.packets) == result["packets_sent"], "the arrival of all packets")
    assert replay.passed_over(result) == {}
    assert result["events_sent"] == 1600
    packets = [wire.parse_mgp(packet) for packet in listener.packets]
    for board in range(4):
        own = [packet for packet in packets if packet.source_sub_id == board]
        assert [packet.is_marker for packet in own] == [True] + [False] * (len(own) - 4) + [True] * 3
        data = own[1:-3]
        assert [packet.sequence for packet in data] == list(range(len(data)))
        assert own[-1].next_event_number == 400
        events = [(int(row["timestamp"]), packet.hits_of(i)) for packet in data for i, row in enumerate(packet.events)]
        assert [timestamp for timestamp, _ in events] == timestamps.tolist()
        for e, (_, found) in enumerate(events):
            expected = sorted((512 * board + channel, time // 2) for channel, time, _ in hits[4 * e + board])
            channels, times = wire.hit_channels(found).tolist(), wire.hit_times(found).tolist()
            assert sorted(zip(channels, times, strict=True)) == expected

    def play(port: int) -> dict[str, Any]:
        return replay.run(replay.options_from_text(file, f"udp://127.0.0.1:{port}", "original"))

    answers, engine, _ = answers_of({}, 4, play)
    assert answers["timestamp"].tolist() == timestamps.tolist()
    assert engine["counters"]["events_complete"] == 400
    assert engine["losses"] == {}


def engine_on(file: Path, folder: Path, *, expect: int) -> dict[str, Any]:
    """The result of `nanet run` on a recording of one board."""
    config = engine_config(1, None, link={"endpoint": f"pcap://{file}"}, processor={"kind": "count"})
    (folder / "play.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    nanet("run", folder / "play.yaml", "--quiet", "--json", folder / "play.json", expect=expect)
    found: dict[str, Any] = json.loads((folder / "play.json").read_text())
    return found


def test_a_run_that_refused_all_that_came_has_kept_no_promise(tmp_path: Path) -> None:
    """It lost nothing that a sequence number would tell of, but it judged nothing either; a marker alone is accepted."""
    whole = wire.build_mgp(
        [wire.EventRecord(timestamp=1000, fine_time=7, event_number=0, hits=[100])], source_id=0x1C, source_sub_id=0
    )
    marker = wire.build_marker(7, source_id=0x1C, source_sub_id=0, run_start=True)
    damaged = whole[:-1] + bytes([whole[-1] ^ 1])
    file = tmp_path / "damaged.pcap"
    for packets, expected in (([damaged] * 5, 1), ([damaged, whole], 0), ([damaged, marker], 0)):
        file.write_bytes(pcap(packets))
        result = engine_on(file, tmp_path, expect=expected)
        assert result["losses"] == {}
        assert result["verdict"]["reasons"] == ["no packet was accepted: packets_bad_checksum 5"] * expected


def test_what_a_recording_link_passes_over_breaks_the_promise(tmp_path: Path) -> None:
    """A fragment, a packet that the capture cut, rubbish at the end: none of them is passed over without a word."""
    packet = wire.build_mgp(
        [wire.EventRecord(timestamp=1000, fine_time=7, event_number=0, hits=[100])] * 16, source_id=0x1C, source_sub_id=0
    )
    whole = pcap([packet])
    header, record = whole[:24], whole[24:]
    fragment = record[:16] + record[16:22] + b"\x20\x00" + record[24:]
    cut = record[:8] + (40).to_bytes(4, "little") + record[12 : 16 + 40]
    file = tmp_path / "good.pcap"
    file.write_bytes(whole)
    assert engine_on(file, tmp_path, expect=0)["losses"] == {}

    file = tmp_path / "bad.pcap"
    file.write_bytes(header + record + fragment + cut + b"\xff" * 50_000)
    result = engine_on(file, tmp_path, expect=1)
    assert result["losses"] == {"file_fragments": 1, "file_cut": 1, "file_bytes_damaged": 50_000}
    assert result["verdict"]["reasons"] == ["lost file_fragments 1, file_cut 1, file_bytes_damaged 50,000"]
    assert result["balance"]["hops"][0]["named"] == {"skipped_fragment": 1, "skipped_cut": 1}
    assert result["counters"]["packets_accepted"] == 1


def test_a_recording_that_stopped_says_so(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    file = tmp_path / "short.pcap"
    config = engine_config(port, None, link={"record": {"file": str(file), "bytes_max": 5000}}, processor={"kind": "count"})
    with EngineProcess(config) as process:
        emulate.run(emulator_config(port, None, events_total=160, drain_ms=1))
        engine = process.stop()
    stats = engine["links"][0]["stats"]
    assert stats["recorded"] > 0
    assert stats["recorded"] + stats["unrecorded"] == stats["rx_packets"]
    assert stats["unrecorded"] > 0
    (note,) = [note for note in engine["notes"] if str(file) in note]
    assert "stopped before the end" in note


def test_options_that_cannot_be() -> None:
    for changes in ({"pace": "-3"}, {"pace": "0"}, {"pace": "fast"}, {"to": "127.0.0.1:1"}, {"layout": "loose"}, {"laps": -1}):
        plain: dict[str, Any] = {"file": Path("x.pcap"), "to": "udp://127.0.0.1:1", "pace": "max"}
        with pytest.raises(ConfigError):
            replay.options_from_text(**(plain | changes))


def pcap(payloads: list[bytes], gap_ns: int = 1000) -> bytes:
    """A nanosecond pcap file of raw IPv4 packets."""
    words = [0xA1B23C4D, 0x00040002, 0, 0, 262144, 101]
    file = np.array(words, "<u4").tobytes()
    for number, payload in enumerate(payloads):
        seconds, ns = divmod(number * gap_ns, 1_000_000_000)
        ip = bytes.fromhex("4500") + (28 + len(payload)).to_bytes(2, "big") + bytes.fromhex("0000400040110000 7f000001 7f000001")
        udp = b"".join(value.to_bytes(2, "big") for value in (40000, 6200, 8 + len(payload), 0))
        packet = ip + udp + payload
        file += np.array([seconds, ns, len(packet), len(packet)], "<u4").tobytes() + packet
    return file
