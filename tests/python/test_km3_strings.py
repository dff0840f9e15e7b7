# SPDX-License-Identifier: Apache-2.0
"""Emulated strings: packets as the declared format reads them, rates as they were asked for, and what the command sends."""

from __future__ import annotations

import json
import math
import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nanet import _core
from nanet.cli.app import app
from nanet.config import formats
from nanet.config.km3_strings import Strings
from nanet.km3.recordings import collect
from nanet.run import km3_strings
from typer.testing import CliRunner

SMALL = Strings(modules=3, duration_s=0.3, packet_hits=100)


def packets(config: Strings, slice_: int) -> list[bytes]:
    return [packet for _, packet in km3_strings._made(config, slice_)[0]]


def test_packets_are_those_of_the_declared_format_and_become_slices() -> None:
    decoder = _core.FormatDecoder(formats.load("km3net-clb").keys())
    sent = [packet for slice_ in range(3) for packet in packets(SMALL, slice_)]
    for packet in sent:
        refusal, meaning = decoder.decode(packet)
        assert refusal == ""
        assert meaning["payload_bytes"] <= 600
    found = collect(sent)
    assert found.units_incomplete == 0
    assert [one.header.number for one in found.slices] == [0, 1, 2]
    assert [one.header[3:] for one in found.slices] == [(1_500_000_000, 6_250_000 * slice_) for slice_ in range(3)]
    for slice_, one in enumerate(found.slices):
        assert [frame.module for frame in one.frames] == [101, 102, 103]
        for frame in one.frames:
            assert frame.hits.tobytes() == km3_strings.hits_of(SMALL, slice_, frame.module).tobytes()
            assert (np.diff(frame.hits["time_ns"].astype(np.int64)) >= 0).all()


def test_a_module_without_light_sends_a_packet_without_hits() -> None:
    dark = Strings(modules=1, singles_hz=0, coincidences_hz=())
    (packet,) = packets(dark, 4)
    assert len(packet) == 28


def test_rates_are_those_that_were_asked_for() -> None:
    config = Strings(modules=1, singles_hz=5000, coincidences_hz=(800.0, 0.0, 50.0), slice_ms=1000)
    hits = km3_strings.hits_of(config, 0, 101)
    expected = 31 * 5000 + 2 * 800 + 4 * 50
    assert abs(hits.size - expected) < 5 * math.sqrt(expected)
    counts = Counter(hits["channel"].tolist())
    assert set(counts) == set(range(31))
    assert max(counts.values()) - min(counts.values()) < 10 * math.sqrt(5000)
    times, channels = hits["time_ns"].astype(np.int64), hits["channel"]
    near = int(((np.diff(times) <= 10) & (np.diff(channels.astype(int)) != 0)).sum())
    by_chance = expected**2 * 10e-9 * 30 / 31
    assert abs(near - by_chance - 800 - 3 * 50) < 5 * math.sqrt(by_chance + 950)
    assert hits["tot"].mean() == pytest.approx(26.9, abs=0.1)


def test_the_command_says_what_it_sent(tmp_path: Path, check_keys: Callable[[dict[str, Any], str], None]) -> None:
    came: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(30.0)
        (tmp_path / "strings.yaml").write_text(
            json.dumps(
                {"destination": f"udp://127.0.0.1:{listener.getsockname()[1]}", "modules": 2, "duration_s": 0.2, "singles_hz": 500}
            )
        )
        expected = sum(len(packets(Strings(modules=2, singles_hz=500), slice_)) for slice_ in range(2))
        taker = threading.Thread(target=lambda: came.extend(listener.recv(2048) for _ in range(expected)))
        taker.start()
        arguments = [
            "emulate",
            "km3",
            "--kind",
            "strings",
            "--config",
            str(tmp_path / "strings.yaml"),
            "--json",
            str(tmp_path / "sent.json"),
        ]
        done = CliRunner().invoke(app, arguments)
        taker.join()
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "sent.json").read_text())
    check_keys(result, "emulate km3 --kind strings")
    assert (result["slices"], result["packets_sent"], result["tx_dropped"]) == (2, expected, 0)
    found = collect(came)
    assert sum(len(frame.hits) for one in found.slices for frame in one.frames) == result["hits"]
