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
from km3net_testdata import data_path
from nanet import _core
from nanet.cli.app import app
from nanet.config import formats
from nanet.config.km3_strings import Strings
from nanet.format import make
from nanet.km3.detector import Detector
from nanet.km3.recordings import collect
from nanet.km3.trigger import HIT, Trigger
from nanet.run import km3_string_light, km3_strings
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
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
    dark = Strings(modules=1, singles_hz=0, coincidences_hz=(), muons_hz=0)
    (packet,) = packets(dark, 4)
    assert len(packet) == 28


def test_rates_are_those_that_were_asked_for() -> None:
    config = Strings(modules=1, singles_hz=5000, coincidences_hz=(800.0, 0.0, 50.0), slice_ms=1000, muons_hz=0)
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


def test_photomultipliers_look_where_a_detector_file_says() -> None:
    lines = Path(data_path("detx/orca_115strings_av23min20mhorizontal_18OMs_alt9mvertical_v1.detx")).read_text().splitlines()
    said = np.array([[float(word) for word in line.split()[4:7]] for line in lines[2:33]])
    assert np.abs(km3_string_light.DIRECTIONS - said).max() < 0.01


def test_neighbours_see_a_decay_together() -> None:
    """Pairs by the angle between them: counts against the formula of the facts, written here again."""
    seen = km3_string_light.seen_together(np.random.default_rng(3), 200_000, 2)
    assert (seen[:, 0] != seen[:, 1]).all()
    looks = km3_string_light.DIRECTIONS
    expected, found = Counter[int](), Counter[int]()
    for a in range(31):
        for b in range(a + 1, 31):
            cosine = float(looks[a] @ looks[b])
            expected[round(5 * cosine)] += math.exp(2.4347 * cosine - 0.68884 * cosine**2 + 1.3911 * cosine**3)  # type: ignore[assignment]
    for cosine in (looks[seen[:, 0]] * looks[seen[:, 1]]).sum(axis=1):
        found[round(5 * float(cosine))] += 1
    total = sum(expected.values())
    for bin_, weight in expected.items():
        share = weight / total
        assert abs(found[bin_] - share * len(seen)) < 5 * math.sqrt(share * len(seen)) + 1
    for row in km3_string_light.seen_together(np.random.default_rng(3), 500, 5):
        assert len(set(row.tolist())) == 5


MUONS = Strings(muons_hz=100, singles_hz=0, coincidences_hz=(), time_sigma_ns=0, light_pe_m=60)


def test_light_of_a_muon_comes_when_the_formula_says() -> None:
    """By the way of the light: the muon flies to where it leaves, at c, and the light to the module, at c/n, under the Cherenkov angle."""
    (track, *_) = km3_string_light.tracks(MUONS, 2)
    places = km3_string_light.module_places(MUONS)
    assert np.linalg.norm(track.direction) == pytest.approx(1)
    compared = 0
    for module, place in places.items():
        to = place - track.position_m
        along = to @ track.direction
        across = np.linalg.norm(to - along * track.direction)
        if across < 1:
            continue
        leaves = track.position_m + (along - across / math.tan(math.acos(1 / 1.38))) * track.direction
        way = float(np.linalg.norm(place - leaves))
        expected = track.time_ns + ((leaves - track.position_m) @ track.direction + 1.38 * way) / 0.299792458
        time_ns, mean = km3_string_light.muon_light(MUONS, track, place)
        assert time_ns == pytest.approx(expected, abs=1e-6)
        assert int(mean.argmax()) == int((km3_string_light.DIRECTIONS @ ((leaves - place) / way)).argmax())  # faces the light
        compared += 1
        assert module in places
    assert compared > 15


def test_no_slice_cuts_the_light_of_a_muon() -> None:
    """Hits of all slices are those of all muons, wherever the light falls."""
    slices, module = 30, 109
    light = [km3_string_light.light_of(MUONS, slice_, module) for slice_ in range(slices)]
    expected = sorted(round(time + slice_ * 1e8) for slice_, (_, times, _) in enumerate(light) for time in times)
    found = sorted(
        int(hit["time_ns"]) + slice_ * 10**8 for slice_ in range(slices) for hit in km3_strings.hits_of(MUONS, slice_, module)
    )
    assert len(found) > 100
    assert np.abs(np.array(found) - np.array([one for one in expected if 0 <= one < slices * 10**8])).max() <= 1


def test_the_trigger_finds_muons_in_noise() -> None:
    def events(config: Strings) -> tuple[int, int]:
        detector = Detector.from_detx(km3_string_light.detx(config))
        trigger = Trigger(detector, slice_ns=config.slice_ms * 1e6)
        count = 0
        for slice_ in range(2):
            hits = []
            for at, module in enumerate(km3_string_light.module_numbers(config)):
                made = km3_strings.hits_of(config, slice_, module)
                taken = np.zeros(made.size, HIT)
                taken["time_ns"], taken["pm"], taken["charge_pe"] = (
                    made["time_ns"],
                    31 * at + made["channel"].astype(np.uint32),
                    made["tot"] / 26.9,
                )
                hits.append(taken)
            count += len(trigger.take_slice(slice_, np.concatenate(hits)).events)
        return count + len(trigger.flush().events), sum(len(km3_string_light.tracks(config, slice_)) for slice_ in range(2))

    noise = Strings(muons_hz=0, singles_hz=1000, coincidences_hz=(70.0,), module_m=9)
    found, passed = events(noise.model_copy(update={"muons_hz": 50.0, "radius_m": 10.0}))
    assert passed > 4
    assert events(noise)[0] < found
    assert found > passed / 2


def test_a_recording_is_judged_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Strings(muons_hz=50, singles_hz=1000, coincidences_hz=(70.0,), module_m=9, radius_m=10)
    sent = [packet for slice_ in range(2) for packet in packets(config, slice_)]
    make.write_pcap(tmp_path / "strings.pcap", iter(sent), 1e6, 7200)
    (tmp_path / "strings.detx").write_text(km3_string_light.detx(config))
    page = (ROOT / "docs" / "design" / "km3-trigger.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(page.split("```python\n")[1].split("```")[0], {})
    events, _, counts = capsys.readouterr().out.partition(" ")
    assert int(events) > sum(len(km3_string_light.tracks(config, slice_)) for slice_ in range(2)) / 2
    assert f"'hits_in': {sum((len(packet) - 28) // 6 for packet in sent)}, " in counts


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
