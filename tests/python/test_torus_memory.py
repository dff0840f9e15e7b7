# SPDX-License-Identifier: Apache-2.0
"""nanet.torus: PUT, GET and EVENT between the memories of simulated nodes, against numpy; what a key does not allow changes nothing."""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable

import nanet
import numpy as np
import pytest
from nanet import SetupError
from nanet.torus import MESSAGE_BYTES_MAX, Region, Torus

Record = Callable[[str, object], None]
SIZES = (1, 16, 17, 300, 4080, 4081, 9000)


@pytest.fixture
def pair(record_property: Record) -> Torus | None:
    """Two nodes; None where this nanet has none."""
    return made("2x1x1", record_property)


def made(shape: str, record_property: Record, wire_cycles: int = 5) -> Torus | None:
    """Where there is none, the summary of the tests counts the test as not run."""
    try:
        return Torus(shape, wire_cycles)
    except SetupError as error:
        if "without a Verilator" not in str(error):
            raise
        record_property("not_run", f"a test of the simulated torus ({error})")
        return None


def test_each_node_puts_gets_and_tells(record_property: Record) -> None:
    torus = made("2x2x1", record_property)
    if torus is None:
        return
    random = np.random.default_rng(5)
    nodes = range(torus.size)
    room = 2 * 10_000 * torus.size
    sources, targets = [torus.allocate(n, 0x8000) for n in nodes], [torus.allocate(n, room) for n in nodes]
    for memory in sources + targets:
        memory[:] = random.integers(0, 256, memory.size, np.uint8)
    readable, writable = [torus.share(one, read=True) for one in sources], [torus.share(one, write=True) for one in targets]
    wanted = [torus.memory(n).copy() for n in nodes]
    images = [one[0x8000 : 0x8000 + room] for one in wanted]
    told: list[set[tuple[object, ...]]] = [set() for _ in nodes]
    for turn, (a, b) in enumerate((a, b) for a in nodes for b in nodes):
        size, at = SIZES[turn % len(SIZES)], int(random.integers(0, 0x4000))
        put_to, got_to = 20_000 * a + at % 97, 20_000 * b + 10_000 + at % 89
        torus.put(sources[a][at : at + size], writable[b], put_to, process=turn)
        torus.get(writable[a], readable[b], size, into_offset_bytes=got_to, offset_bytes=at, tag=turn << 40)
        torus.event(a, b, at, process=turn)
        images[b][put_to : put_to + size] = sources[a][at : at + size]
        images[a][got_to : got_to + size] = sources[b][at : at + size]
        told[b] |= {("PUT", a, turn, 0, size, 0), ("EVENT", a, turn, at, 0, 0)}
        told[a].add(("GET", b, 0, 0, size, turn << 40))
    assert torus.settle()
    for n in nodes:
        np.testing.assert_array_equal(torus.memory(n), wanted[n], f"memory of node {n}")
        completions = torus.take(n)
        assert not any(one.failed for one in completions)
        assert {(one.packet_type, one.source, one.process, one.value, one.size_bytes, one.tag) for one in completions} == told[n]
        assert len(completions) == len(told[n])
        assert all(0 < one.time_ns <= torus.cycle * 1000 / 175 for one in completions)
        counters = torus.counters(n)
        assert (counters["event"], counters["get"], counters["gone_good"]) == (4, 4, 12)
        assert sum(counters[name] for name in ("gone_bad", "refused", "missed", "lost")) == 0
        assert torus.take(n) == []


def test_an_array_of_numbers_goes_from_node_to_node(record_property: Record) -> None:
    torus = made("3x1x1", record_property)
    if torus is None:
        return
    sent, field = torus.allocate(0, (4, 100), np.float64), torus.allocate(2, (10, 100), np.float64)
    sent[:] = np.random.default_rng(1).normal(size=sent.shape)
    torus.put(sent, torus.share(field, write=True), 3 * 100 * 8)
    before = torus.cycle
    torus.run(50)
    assert torus.cycle == before + 50
    assert torus.settle()
    np.testing.assert_array_equal(field[3:7], sent)
    assert not field[:3].any()
    assert not field[7:].any()
    assert (torus.shape, torus.distance(0, 2)) == ((3, 1, 1), 1)


def test_what_a_key_does_not_allow_changes_nothing(pair: Torus | None) -> None:
    if pair is None:
        return
    own, to_read, to_write = pair.allocate(0, 256), pair.allocate(1, 256), pair.allocate(1, 256)
    own[:] = 7
    to_read[:] = 1
    into = pair.share(pair.allocate(0, 256), write=True)
    readable, writable = pair.share(to_read, read=True), pair.share(to_write, write=True)
    before = [pair.memory(n).copy() for n in (0, 1)]
    pair.put(own, dataclasses.replace(writable, nonce=writable.nonce ^ 1))
    pair.put(own, dataclasses.replace(writable, index=9))
    pair.put(own, dataclasses.replace(writable, index=16))  # the node has 16
    pair.put(own, readable)
    pair.put(own, writable, 1)
    pair.put(own[:1], writable, 1 << 39)
    pair.get(into, dataclasses.replace(readable, nonce=0), 8)
    pair.get(into, writable, 8)
    pair.get(into, readable, 8, offset_bytes=249)
    assert pair.settle()
    pair.withdraw(writable)
    assert "cannot be withdrawn (it was before)" in refusal(lambda: pair.withdraw(writable))
    pair.run(8)
    pair.put(own, writable)
    assert pair.settle()
    for n in (0, 1):
        np.testing.assert_array_equal(pair.memory(n), before[n])
    counters = pair.counters(1)
    assert {name: counters[name] for name in ("landed", "key", "rights", "bounds", "refused")} == {
        "landed": 0, "key": 4, "rights": 1, "bounds": 2, "refused": 3,
    }  # fmt: skip
    assert not any(one.failed is False for one in pair.take(1))
    pair.put(own, pair.share(to_read, write=True))  # and a good one after all that
    assert pair.settle()
    np.testing.assert_array_equal(to_read, own)


def test_a_get_that_was_refused_fails_in_time(pair: Torus | None) -> None:
    if pair is None:
        return
    into, of = pair.share(pair.allocate(0, 64), write=True), pair.share(pair.allocate(1, 64), write=True)
    pair.get(into, of, 64, tag=3)
    pair.run(4000)
    assert pair.take(0) == []
    pair.run(2 * 262_144)  # two ticks of the node's table of messages
    (one,) = pair.take(0)
    assert (one.packet_type, one.source, one.tag, one.size_bytes, one.failed, one.timed_out) == ("GET", 1, 3, 0, True, True)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SetupError) as refused:
        call()
    return str(refused.value)


def test_what_cannot_be_is_refused(pair: Torus | None) -> None:
    if pair is None:
        return
    for shape in ("5x1x1", "4x4x5", "two", "", "1x1x1", "0x2x1", "2x2x1x1", "2x1x1 ", "2x1x\u0661", None, (2, 1, 1), 2):
        assert "is no torus that can be simulated here (at most 4 nodes a dimension" in refusal(lambda shape=shape: Torus(shape))
    for cycles in (1, -1, 4097, 10**9, 2.5, "16", None):
        assert refusal(lambda cycles=cycles: Torus("2x1x1", cycles)).startswith(
            f"wire_cycles cannot be {cycles!r} (a whole number from 2"
        )
    whole = pair.memory(1)
    region = pair.share(whole, write=True)
    assert refusal(lambda: pair.share(np.zeros(16, np.uint8))).startswith("this array lies in no node")
    assert refusal(lambda: pair.share(whole[::2])).startswith("this array cannot be used (it has gaps")
    assert refusal(lambda: pair.share(whole[8:16])).startswith("a region of 8 B from 8 (no memory of the node)")
    assert refusal(lambda: pair.withdraw(Region(1, 3, 0))).startswith("region 3 of node 1 cannot be withdrawn")
    assert refusal(lambda: pair.put(whole[: MESSAGE_BYTES_MAX + 1], region)).startswith("a message of 261106 B cannot be sent")
    assert refusal(lambda: pair.put(whole[:8], region, -1)).startswith(
        "offset_bytes cannot be -1 (a whole number from 0 to 1099511627775"
    )
    assert refusal(lambda: pair.put(whole[:8], region, process=1 << 16)).startswith(
        "process cannot be 65536 (a whole number from 0 to 65535"
    )
    assert refusal(lambda: pair.put(whole[:8], Region(2, 0, 0))).startswith("there is no node 2 (nodes have the numbers 0 to 1)")
    assert refusal(lambda: pair.get(region, region, 0)).startswith("size_bytes cannot be 0 (a whole number from 1 to 261105")
    assert refusal(lambda: pair.event(0, 1, 1 << 16)).startswith("value cannot be 65536")
    assert refusal(lambda: pair.share([1, 2], read=True)).startswith("a list is no array")  # type: ignore[arg-type]
    assert refusal(lambda: pair.put(whole[:8], None)).startswith("None is no region")  # type: ignore[arg-type]
    assert refusal(lambda: pair.run(-1)).startswith("cycles cannot be -1")
    assert refusal(lambda: pair.allocate(0, 4_128_769)).startswith("4128769 bytes are not free at node 0")
    for _ in range(15):
        pair.share(whole[:16])
    assert refusal(lambda: pair.share(whole[:16])).startswith("no more regions")


def test_a_node_that_is_none_is_refused_by_all(pair: Torus | None) -> None:
    if pair is None:
        return
    calls = (
        pair.memory, pair.take, pair.counters, pair.neighbours, pair.own_state, pair.place, pair.stop_host, pair.stop_node,
        lambda node: pair.host_says(node, 1), lambda node: pair.cut(node, "x+"), lambda node: pair.event(node, 0),
        lambda node: pair.event(0, node), lambda node: pair.distance(0, node), lambda node: pair.allocate(node, 1),
    )  # fmt: skip
    for call in calls:
        for node in (2, -1, 1.5, "0", None):
            expected = f"there is no node {node!r} (nodes have the numbers 0 to 1) give one of these"
            assert refusal(lambda call=call, node=node: call(node)) == expected


def test_an_array_that_cannot_be_takes_no_room(pair: Torus | None) -> None:
    if pair is None:
        return
    first = pair.allocate(0, 64)
    for shape in (-16, (-4, -4), 2.5, "4", None, (1,) * 65):
        assert "(its lengths are whole numbers, not negative)" in refusal(lambda shape=shape: pair.allocate(0, shape))
    for shape in ((2**32, 2**32), (2**62, 4), 10**30):
        assert "bytes are not free at node 0" in refusal(lambda shape=shape: pair.allocate(0, shape))
    for dtype in (object, "nonsense", "U0", [("a", "O")]):
        assert refusal(lambda dtype=dtype: pair.allocate(0, 4, dtype)).endswith((" another type", " such as 'f8'"))
    second = pair.allocate(0, 64)
    assert second.__array_interface__["data"][0] - first.__array_interface__["data"][0] == 64


def test_memory_outlives_the_torus(pair: Torus | None) -> None:
    if pair is None:
        return
    memory = pair.allocate(0, 1000)
    memory[:] = 5
    del pair
    assert memory.sum() == 5000


def test_a_second_thread_is_refused_while_one_simulates(pair: Torus | None) -> None:
    if pair is None:
        return
    seen: list[str] = []
    begun = threading.Event()

    def ask() -> None:
        begun.set()
        while not seen and running.is_alive():
            try:
                pair.event(0, 1)
            except SetupError as error:
                seen.append(str(error))

    running = threading.Thread(target=lambda: (begun.wait(), pair.run(20_000)))
    running.start()
    ask()
    running.join()
    assert seen
    assert seen[0].startswith("the torus is being simulated")


def test_without_a_verilator_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanet._torus", None)
    assert refusal(lambda: Torus("2x1x1")) == (
        "this nanet simulates no torus (it was built without a Verilator) run make links in a clone"
    )
    assert nanet.torus.Torus is Torus
