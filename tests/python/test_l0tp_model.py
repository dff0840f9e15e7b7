# SPDX-License-Identifier: Apache-2.0
"""The native L0 trigger processor against its plain model, call by call, on random streams; and its configuration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from l0tp_reference import CALIBRATIONS_MAX, TURN, Decision, L0tpModel
from nanet import _core, wire
from nanet.config.errors import ConfigError, parse_document, validated
from nanet.config.l0tp import L0tpConfig

set_hypothesis_home_dir(Path(__file__).resolve().parents[2] / "build" / "hypothesis")  # not in the source tree

DEFAULT = L0tpConfig().model_dump(mode="json")
SOURCES = [0x1C, 0x18, 0x20, 0x30, 0x10, 0x24, 0x04]
NAMES = ["RICH", "CHOD", "NewCHOD", "MUV3", "LAV", "LKr", "CEDAR"]
FRAME_TICKS = 65536


def native_decisions(records: Any) -> list[Decision]:
    return [
        Decision(int(d["timestamp"]) << 8 | int(d["fine_time"]), *(int(d[n]) for n in Decision.__dataclass_fields__ if n != "time"))
        for d in records
    ]


class Pair:
    """Both processors with the same calls; every answer and every counter must be the same after each."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.model = L0tpModel(config)
        self.native = _core.L0TriggerProcessor(config)
        self.decisions: list[Decision] = []

    def take(self, datagram: bytes, now_ns: int) -> None:
        self.model.take(datagram, now_ns)
        self.native.take(datagram, now_ns)

    def decide(self, now_ns: int) -> None:
        self._same(self.model.decide(now_ns), self.native.decide(now_ns))

    def flush(self) -> None:
        self._same(self.model.flush(), self.native.flush())

    def _same(self, expected: list[Decision], found: Any) -> None:
        assert native_decisions(found) == expected
        self.decisions += expected
        self.check_counters()

    def check_counters(self) -> dict[str, Any]:
        counters: dict[str, Any] = self.native.counters()
        assert counters == self.model.counters()
        for one in counters["inputs"]:
            lost = sum(one[name] for name in ("late", "out_of_range", "duplicates", "calibrations_no_room"))
            assert one["primitives"] == one["stored"] + one["calibrations"] + lost
        reference = counters["inputs"][self.model.reference]
        assert reference["stored"] == reference["overwritten"] + counters["decided"] + counters["pending"]
        refused = sum(counters[f"packets_{reason}"] for reason in ("bad_length", "bad_format", "unknown_source"))
        assert counters["packets"] == counters["packets_good"] + refused
        return counters


def pattern(value: int, care: int) -> str:
    return "".join(str(value >> bit & 1) if care >> bit & 1 else "x" for bit in reversed(range(16)))


def random_masks(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    masks = []
    for i in range(count):
        care = [int(rng.choice([0, 0, 1 << int(rng.integers(0, 15)), 0xFFFF, 0x4001])) for _ in NAMES]
        value = [int(rng.choice([0, 0x4001, 0x4000, int(rng.integers(0, 65536))])) for _ in NAMES]
        bits = {name: pattern(v, c) for name, v, c in zip(NAMES, value, care, strict=True) if c}
        downscaling = int(rng.choice([1, 1, 2, 3, 10]))
        masks.append({"name": f"m{i}", "bits": bits, "downscaling": downscaling, "enabled": bool(rng.random() < 0.9)})
    return masks


def inputs_of(cuts_ns: Iterable[float]) -> list[dict[str, Any]]:
    return [{"name": n, "source_id": s, "time_cut_ns": cut} for n, s, cut in zip(NAMES, SOURCES, cuts_ns, strict=False)]


def random_config(rng: np.random.Generator, bits: int) -> dict[str, Any]:
    cell_ns = wire.TIMESTAMP_NS / (1 << bits)
    return {
        "read_lag_us": float(rng.choice([0.0, 1.6, 7.8, 14.6, 19.5])),
        "masks": random_masks(rng, int(rng.integers(0, 17))),
        "inputs": inputs_of(float(rng.choice([0.0, 1.0, 2.0, min(6.0, cell_ns), cell_ns])) for _ in NAMES),
        "reference": NAMES[int(rng.integers(0, 7))],
        "fine_time_bits": bits,
        "silence_us": int(rng.choice([0, 1, 500])),
    }


def packet_of(source: int, frame_time: int, primitives: list[tuple[int, int]]) -> bytes:
    """primitives: (ticks, ID)."""
    rows = np.array([(t % TURN >> 8, t & 255, i) for t, i in primitives], wire.PRIMITIVE)
    return wire.build_mtp(rows, source_id=source, source_sub_id=0, first_timestamp=frame_time % TURN >> 8)


def run_stream(seed: int, bits: int, start: int, frames: int) -> Pair:
    """Detectors that see the same few events a frame, some late, some wild, some broken; every third stream is tame."""
    rng = np.random.default_rng(seed)
    wild = (0.0, 0.02, 0.2)[seed % 3]
    pair = Pair(random_config(rng, bits))
    memory_ticks = 16384 * (256 >> bits)
    time, now_ns = start, 1_000
    ids = [0x4000, 0x4001, 0x4041, 0x0100, 0x7FFF]
    for _ in range(frames):
        events = time + rng.integers(0, FRAME_TICKS, rng.integers(0, 9))
        for source in rng.permutation([*SOURCES, 0x08]):
            seen = [int(e + rng.normal(0, 30)) for e in events if rng.random() < 0.8]
            seen += [int(time + rng.integers(0, FRAME_TICKS)) for _ in range(rng.integers(0, 3))]
            shift = rng.choice(
                [0, 0, 0, 0, 0, 0, -FRAME_TICKS, -5 * FRAME_TICKS, -memory_ticks, memory_ticks // 2, memory_ticks, TURN // 2]
            )
            primitives = [(max(t, 0) + (int(shift) if rng.random() < wild else 0), int(rng.choice(ids))) for t in seen]
            primitives = [(t, i | 0x8000 if rng.random() < 0.03 else i) for t, i in primitives]
            primitives += primitives[: rng.integers(0, 2)]  # repeated
            payload = packet_of(int(source), time + (int(shift) if rng.random() < wild / 2 else 0), primitives)
            if rng.random() < 0.05:
                payload = payload[: rng.integers(0, len(payload) + 1)]
            elif rng.random() < 0.05:
                payload = payload[:6] + bytes([payload[6] ^ 1]) + payload[7:]
            now_ns += int(rng.integers(0, 500))
            pair.take(payload, now_ns)
            if rng.random() < 0.7:
                pair.decide(now_ns)
        if rng.random() < wild:
            pair.decide(now_ns + int(rng.choice([1_000, 600_000])))
        time += FRAME_TICKS
        if rng.random() < wild / 2:
            time += int(rng.choice([-FRAME_TICKS, 2 * FRAME_TICKS, 2 * memory_ticks]))
    pair.flush()
    return pair


@pytest.mark.parametrize("bits", [0, 1, 2, 3])
@pytest.mark.parametrize("start", [0, TURN - 20 * FRAME_TICKS, 7_777 * FRAME_TICKS], ids=["from 0", "across the wrap", "middle"])
def test_streams(bits: int, start: int) -> None:
    decided = 0
    for seed in range(3):
        pair = run_stream(100 * bits + seed, bits, start, 40)
        counters = pair.check_counters()
        decided += counters["decided"]
    assert decided > 100


def test_streams_meet_every_counter() -> None:
    """What the streams above are worth: together they make each counter move."""
    total: dict[str, int] = {}
    for seed in range(2, 20, 3):
        counters = run_stream(seed, seed % 4, seed * 1_000_000, 60).check_counters()
        groups = [{k: v for k, v in counters.items() if isinstance(v, int)}, *counters["inputs"], *counters["masks"]]
        for group in groups:
            for name, value in group.items():
                total[name] = total.get(name, 0) + value
    never = {name for name, value in total.items() if value == 0}
    assert never == {"pending", "pending_calibrations", "calibrations_no_room"}


@settings(max_examples=150, deadline=None)
@given(
    bits=st.integers(0, 3),
    cut=st.integers(0, 256),
    lag=st.integers(0, 2000),
    reference=st.integers(0, 2),
    calls=st.lists(
        st.one_of(
            st.tuples(
                st.integers(0, 2), st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([0x100, 0x4001, 0x8100])), max_size=6)
            ),
            st.just("decide"),
        ),
        max_size=25,
    ),
    anchor=st.sampled_from([0, TURN - 1500, 12_345]),
)
def test_any_close_primitives(bits: int, cut: int, lag: int, reference: int, calls: list[Any], anchor: int) -> None:
    """Few distinct times close together, so that cells, cuts and ties meet in every way."""
    pair = Pair(
        {
            "inputs": inputs_of([min(cut, 256 >> bits) * wire.TICK_NS] * 3), "reference": NAMES[reference], "fine_time_bits": bits,
            "read_lag_us": lag * wire.TICK_NS / 1000, "silence_us": 0,
            "masks": [{"name": "m", "bits": {"RICH": "0100_0000_0000_0001"}, "downscaling": 2, "enabled": True}],
        }
    )  # fmt: skip
    for call in calls:
        if call == "decide":
            pair.decide(0)
        else:
            source, primitives = call
            pair.take(packet_of(SOURCES[source], anchor, [(anchor + t, i) for t, i in primitives]), 5)
    pair.flush()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(st.binary(max_size=60), st.tuples(st.sampled_from([*SOURCES, 8]), st.binary(max_size=15).map(lambda b: b * 4)))
    )
)
def test_any_bytes(payloads: list[Any]) -> None:
    pair = Pair(DEFAULT)
    for payload in payloads:
        if isinstance(payload, tuple):
            source, body = payload
            count = sum(body[i] != 0 for i in range(3, len(body), 4))
            payload = bytes([1, 2, 3, source]) + (8 + len(body)).to_bytes(2, "little") + bytes([count, 0]) + body
        pair.take(payload, 1)
        pair.decide(1)
    pair.flush()


def test_a_jump_in_time_and_a_wild_detector() -> None:
    pair = Pair({**DEFAULT, "masks": [{"name": "any", "bits": {}, "downscaling": 1, "enabled": True}]})
    for spill in (10 * FRAME_TICKS, TURN // 3, 2 * FRAME_TICKS):
        for frame in range(40):
            time = spill + frame * FRAME_TICKS
            for source in SOURCES[:5]:
                pair.take(packet_of(source, time, [(time + 100, 0x4000)]), 1)
                pair.decide(1)
            pair.take(packet_of(SOURCES[6], time + TURN // 2, [(time + TURN // 2, 0x4000)]), 1)
    assert pair.check_counters()["time_jumps"] == 2
    assert len(pair.decisions) > 100


@pytest.mark.parametrize("bits", [0, 1, 2, 3])
def test_edges_of_the_window(bits: int) -> None:
    """Random streams hardly ever meet the first and the last cell that can be written."""
    cell_ticks = 256 >> bits
    start = 300 * FRAME_TICKS
    for edge in (-16384, 0, 16383, 32767):
        for ticks in (-1, 0, 1):
            pair = Pair({**DEFAULT, "inputs": inputs_of([3.0] * 7), "fine_time_bits": bits, "read_lag_us": 0})
            for _ in range(2):  # the header alone sets the window; the second time it has moved
                pair.take(packet_of(SOURCES[1], start, [(start + edge * cell_ticks + ticks, 0x4000)]), 1)
                pair.take(packet_of(SOURCES[0], start, [(start + edge * cell_ticks + ticks, 0x4000)]), 1)
                pair.check_counters()
                pair.decide(1)
            pair.flush()


def test_more_calibrations_than_there_is_room_for() -> None:
    pair = Pair(DEFAULT)
    for i in range(10):
        pair.take(packet_of(SOURCES[1], 0, [(1000 + i, 0x8000 + j) for j in range(50)]), 7)
    pair.decide(7)
    assert len(pair.decisions) == CALIBRATIONS_MAX
    assert pair.check_counters()["inputs"][1]["calibrations_no_room"] == 500 - CALIBRATIONS_MAX


def problems(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        validated(L0tpConfig, parse_document(text, "l0tp.yaml"))
    return "\n".join(caught.value.problems)


def test_config_default_and_masks() -> None:
    text = """
version: 1
reference: CHOD
fine_time_bits: 1
masks:
  - name: electron and no muon
  """
    assert "name" in problems(text)
    config = validated(
        L0tpConfig,
        parse_document(
            """
fine_time_bits: 3
inputs:
  - {name: RICH, source_id: 0x1C, time_cut_ns: 2}
  - {name: MUV3, source_id: 0x30, time_cut_ns: 3.1}
masks:
  - name: electron_and_no_muon
    bits: {RICH: "01xx_xx11_xxxx_xxxx", MUV3: "0000_0000_0000_0000"}
    downscaling: 5
  - {name: all, enabled: false}
"""
        ),
    )
    plain = config.model_dump(mode="json")
    assert plain["masks"][1] == {"name": "all", "bits": {}, "downscaling": 1, "enabled": False}
    assert L0tpModel(plain).cuts == [20, 31]
    _core.L0TriggerProcessor(plain)
    _core.L0TriggerProcessor(DEFAULT)
    assert L0tpModel(DEFAULT).lag == 16416


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("inputs: []", "inputs: [] is not allowed"),
        ("reference: RIHC", "did you mean 'RICH'?"),
        ("inputs: [{name: A, source_id: 4}, {name: A, source_id: 5}]\nreference: A", "two inputs have name A"),
        ("inputs: [{name: A, source_id: 4}, {name: B, source_id: 4}]\nreference: A", "two inputs have source_id 4"),
        ("fine_time_bits: 3", "more than a cell of 3.11888 ns"),
        ("fine_time_bits: 2\nread_lag_us: 52", "more than half of the memory's 102.2 us"),
        ("masks: [{name: m, bits: {LAV: 0000000000000001}}]", "put it in quotes"),
        ("masks: [{name: m, bits: {LAV: '01x'}}]", "has 3 bits"),
        ("masks: [{name: m, bits: {LAV: '01x2xxxxxxxxxxxx'}}]", "has other characters"),
        ("masks: [{name: m, bits: {LAVA: 'xxxxxxxxxxxxxxxx'}}]", "did you mean 'LAV'?"),
        ("masks: [{name: m}, {name: m}]", "two masks are named 'm'"),
        ("masks: [{name: m, downscaling: 0}]", "downscaling"),
        ("masks: [" + ",".join(f"{{name: m{i}}}" for i in range(17)) + "]", "at most 16 items"),
    ],
)
def test_config_mistakes(text: str, part: str) -> None:
    assert part in problems(text)


def test_a_rule_names_the_line_of_its_key() -> None:
    text = "inputs:\n- {name: A, source_id: 4}\n- name: B\n  source_id: 4\nreference: C\nmasks:\n- name: m\n  bits:\n    A: 01x\n"
    assert problems(text).startswith("l0tp.yaml:9: masks[0]: pattern '01x' of A has 3 bits (")
    text = text.replace("01x", "x" * 16)
    assert problems(text).startswith("l0tp.yaml:4: two inputs have source_id 4 (")
    assert problems(text.replace("source_id: 4\nref", "source_id: 5\nref")).startswith("l0tp.yaml:5: reference is 'C' (")


def test_native_refuses_what_the_model_would_not_send() -> None:
    changes: list[dict[str, Any]] = [{"fine_time_bits": 4}, {"reference": "none"}, {"inputs": []}, {"read_lag_us": 1e5}]
    for change in changes:
        with pytest.raises(_core.SetupError):
            _core.L0TriggerProcessor({**DEFAULT, **change})
