# SPDX-License-Identifier: Apache-2.0
"""Units from floors' packets to destinations: every byte, holes, queues that are full, connections that end and come again."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import nanet
import pytest
from made_up_km3 import packets, unit_bytes
from nanet.config.km3_server import Data, Destination
from nanet.km3.destinations import LOSSES
from nanet.km3.messages import Floor
from nanet.km3.relay import Relay, Stream
from nanet.km3.units import Received, Unit, UnitReader, packet_count, unit_head
from nanet.km3.units import packets as cut
from nanet.machine.ports import unused_port

FLOORS = [Floor(1, 1), Floor(1, 2)]


class Listener:
    """A destination: keeps what comes. `reads` may be switched off."""

    def __init__(self, port: int = 0) -> None:
        self.socket = socket.create_server(("127.0.0.1", port))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.port: int = self.socket.getsockname()[1]
        self.units: list[Received] = []
        self.problems: list[str] = []
        self.reads = threading.Event()
        self.reads.set()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._closing = True
        self.reads.set()
        self._thread.join()
        self.socket.close()

    def _serve(self) -> None:
        self.socket.settimeout(0.05)
        while not self._closing:
            try:
                connected = self.socket.accept()[0]
            except TimeoutError:
                continue
            with connected:
                self._take(connected)

    def _take(self, connected: socket.socket) -> None:
        reader = UnitReader()
        connected.settimeout(0.05)
        while not self._closing and not reader.problem:
            if not self.reads.wait(0.05):
                continue
            try:
                piece = connected.recv(1 << 16)
            except TimeoutError:
                continue
            if not piece:
                return
            self.units.extend(reader.feed(piece))
        self.problems.extend(filter(None, [reader.problem]))


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


def data_at(port: int, **changes: Any) -> Data:
    return Data(
        **({"endpoint": f"udp://127.0.0.1:{port}", "buffer_count": 64, "buffer_bytes": 65536, "timeout_us": 50000} | changes)
    )


def wait_for(what: Callable[[], object], within_s: float = 20.0) -> None:
    end_s = time.monotonic() + within_s
    while not what() and time.monotonic() < end_s:
        time.sleep(0.005)
    assert what()


def balance(books: dict[str, Any]) -> int:
    return int(books["units_in"] - books["units_sent"] - books["units_waiting"] - sum(books[name] for name in LOSSES))


class Floors:
    """Sends units and remembers them."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.address = ("127.0.0.1", port)
        self.sent: dict[tuple[int, int, int], bytes] = {}

    def send(self, floor: int, kind: int, slice_: int, records: int, *, skip: int | None = None, **more: Any) -> bytes:
        data = unit_bytes(kind, floor * 1000 + slice_, records)
        self.sent[floor, kind, slice_] = data
        for number, packet in enumerate(packets(floor, kind, 7, slice_, data, **more)):
            if number != skip:
                self.socket.sendto(packet, self.address)
        return data


def test_the_head_of_a_unit_is_these_bytes() -> None:
    unit = Unit(1, 3, 2, 7, 9, 0x65920080, 5, is_complete=False, is_untimed=True)
    head = unit_head(unit, 100, [[0, 10], [20, 100]], 0x1122334455667788)
    assert head == bytes.fromhex(
        "4B4D3355 00000074 01 03 02 03 00000007 00000009 65920080 00000005 00000002 1122334455667788 00000000 0000000A 00000014 00000064"
    )
    reader = UnitReader()
    whole = head + bytes(range(100))
    found = [one for at in range(len(whole)) for one in reader.feed(whole[at : at + 1])]
    assert found == [Received(unit, 0x1122334455667788, ((0, 10), (20, 100)), bytes(range(100)))]
    assert not reader.problem


@pytest.mark.parametrize(
    ("at", "put"), [(0, b"X"), (4, b"\xff"), (9, b"\0"), (10, b"\x06"), (10, b"\0"), (11, b"\x04"), (24, b"\xff"), (28, b"\xff")]
)
def test_a_connection_that_is_wrong_is_refused(at: int, put: bytes) -> None:
    head = bytearray(unit_head(Unit(1, 3, 2, 7, 9, 1, 5), 0, [], 0))
    head[at : at + 1] = put
    reader = UnitReader()
    assert list(reader.feed(bytes(head))) == []
    assert reader.problem
    assert list(reader.feed(unit_head(Unit(1, 3, 2, 7, 9, 1, 5), 0, [], 0))) == []


@pytest.mark.parametrize("kind", [1, 3, 5])
def test_a_unit_that_is_cut_is_what_floors_send(kind: int) -> None:
    data = unit_bytes(kind, 1, 8000)
    unit = Unit(1, 4, kind, 7, 9, 1_000_000, 0)
    made = [head + data[begin:end] for head, begin, end in cut(unit, len(data), [], 5)]
    assert made == list(packets(4, kind, 7, 9, data, payload=8940, sequence=5))
    assert packet_count(kind, len(data), []) == len(made)


def test_a_unit_with_holes_is_cut_at_them_and_has_no_last_packet() -> None:
    unit = Unit(1, 4, 1, 7, 9, 1, 0, is_complete=False)
    made = list(cut(unit, 30000, [[0, 12000], [18000, 30000]], 0))
    assert [(begin, end) for _, begin, end in made] == [(0, 8940), (8940, 12000), (18000, 26940), (26940, 30000)]
    assert {head[7] for head, _, _ in made} == {0}
    assert packet_count(1, 30000, [[0, 12000], [18000, 30000]]) == 4


def test_slices_of_which_nothing_came_are_counted() -> None:
    stream = Stream()
    for run, slice_ in [(1, 5), (1, 8), (1, 7), (2, 0), (2, 1)]:
        stream.take(run, slice_)
    assert (stream.slices_missing, stream.missing) == (1, 0)


def test_every_byte_comes_to_every_destination(listener: Listener) -> None:
    port, onward = unused_port(), unused_port()
    destinations = [
        Destination(name="trigger", endpoint=listener.endpoint),
        Destination(name="manager", endpoint=f"udp://127.0.0.1:{onward}", kinds=("hydrophone_0", "instruments")),
    ]
    floors, seen = Floors(port), {}
    with nanet.open(f"udp://127.0.0.1:{onward}", protocol="km3-floor", packet_bytes_max=9000, buffer_count=256) as manager:
        with Relay(data_at(port), destinations, FLOORS) as relay:
            for slice_ in range(20):
                for floor in (1, 2):
                    floors.send(floor, 1, slice_, 1000)
                    floors.send(floor, 3, slice_, 500)
                    floors.send(floor, 5, slice_, 3 if slice_ % 4 else 0)  # an instrument that has nothing to say
                wait_for(lambda: relay.books()["units_in"] == len(floors.sent))
            wait_for(lambda: len(listener.units) == len(floors.sent))
            books = relay.books()
        for completion in manager.completions(0.5):
            unit = completion.unit
            assert unit is not None
            assert unit.complete
            seen[unit.stream >> 3 & 255, unit.stream & 7, unit.number & 0xFFFFFFFF] = unit.array().tobytes()
        assert manager.counters()["packets_bad_format"] == 0
    assert {(*one.unit[1:3], one.unit.slice): one.data for one in listener.units} == floors.sent
    assert {one.unit.run for one in listener.units} == {7}
    assert {(one.unit.second, one.unit.tick) for one in listener.units} == {(1_000_000, 0)}
    assert [one.sequence for one in listener.units] == list(range(len(floors.sent)))
    assert seen == {key: data for key, data in floors.sent.items() if key[1] != 1}
    assert books["units_in"] == 120
    assert [balance(one) for one in books["destinations"].values()] == [0, 0]
    assert (books["destinations"]["trigger"]["units_in"], books["destinations"]["manager"]["units_in"]) == (120, 80)
    assert books["units_copied"] == 0
    assert sum(one["bytes"] for one in books["streams"]) == sum(map(len, floors.sent.values()))


def test_holes_untimed_units_and_strange_floors_are_told(listener: Listener) -> None:
    port = unused_port()
    floors = Floors(port)
    with Relay(data_at(port), [Destination(name="trigger", endpoint=listener.endpoint)], FLOORS) as relay:
        whole = floors.send(1, 1, 0, 1000, skip=2)
        floors.send(1, 3, 0, 10, flags=2)
        floors.send(9, 1, 0, 10)
        floors.socket.sendto(b"KM3F" + bytes(100), floors.address)
        wait_for(lambda: len(listener.units) == 2)
        wait_for(lambda: relay.books()["port"].get("packets_unknown_stream") == 1)
        wait_for(lambda: relay.books()["port"].get("packets_bad_format") == 1)
        streams = {(one["floor"], one["kind"]): one for one in relay.books()["streams"]}
    by_kind = {one.unit.kind: one for one in listener.units}
    assert by_kind[3].unit.is_untimed
    assert by_kind[3].unit.is_complete
    hole = by_kind[1]
    assert not hole.unit.is_complete
    assert hole.ranges == ((0, 2400), (3600, 6000))
    assert (hole.data[:2400], hole.data[3600:]) == (whole[:2400], whole[3600:])
    assert (streams[1, "hits"]["incomplete"], streams[1, "hydrophone_0"]["untimed"]) == (1, 1)


def test_a_run_begins_anew_with_the_same_slices(listener: Listener) -> None:
    port = unused_port()
    floors = Floors(port)
    with Relay(data_at(port, timeout_us=5_000_000), [Destination(name="trigger", endpoint=listener.endpoint)], FLOORS) as relay:
        for run in (7, 8):
            for packet in packets(1, 1, run, 0, unit_bytes(1, run, 10)):
                floors.socket.sendto(packet, floors.address)
        wait_for(lambda: len(listener.units) == 2)
        assert relay.run_of(Floor(1, 1)) is not None
        assert relay.run_of(Floor(1, 1))[0] == 8  # type: ignore[index]
        assert relay.run_of(Floor(1, 2)) is None
    assert [one.unit.run for one in listener.units] == [7, 8]


def test_a_destination_that_stands_still_costs_others_nothing_and_its_own_losses_have_a_name(listener: Listener) -> None:
    still = Listener()
    still.reads.clear()
    port = unused_port()
    destinations = [
        Destination(name="still", endpoint=still.endpoint, queue_bytes=1 << 20, stalled_s=60),
        Destination(name="trigger", endpoint=listener.endpoint),
    ]
    floors = Floors(port)
    with Relay(data_at(port, timeout_us=5_000_000), destinations, FLOORS) as relay:  # no unit is cut on a machine that others use
        for slice_ in range(400):
            floors.send(1 + slice_ % 2, 3, slice_ // 2, 15000)
            wait_for(lambda: len(listener.units) == slice_ + 1)  # noqa: B023
        books = relay.books()
        assert books["destinations"]["still"]["queue_full"] > 0
        assert books["units_copied"] > 0
        assert books["port"].get("units_no_buffer", 0) == 0
        still.reads.set()
        wait_for(lambda: relay.books()["destinations"]["still"]["units_waiting"] == 0)
        wait_for(lambda: len(still.units) == relay.books()["destinations"]["still"]["units_sent"])
        floors.send(1, 3, 500, 100)
        wait_for(lambda: still.units[-1].unit.slice == 500)
        wait_for(lambda: relay.books()["destinations"]["trigger"]["units_sent"] == 401)
        books = relay.books()["destinations"]
    still.close()
    assert balance(books["still"]) == balance(books["trigger"]) == 0
    for units in (still.units, listener.units):
        for one in units:
            assert one.data == floors.sent[one.unit.floor, one.unit.kind, one.unit.slice]
    gaps = [one.sequence for one in still.units]
    assert len(gaps) == len(set(gaps)) == books["still"]["units_sent"]
    assert gaps[-1] == 400  # who receives knows what is missing
    assert not still.problems


def test_a_destination_that_is_killed_and_returns() -> None:
    first = Listener()
    port = unused_port()
    floors = Floors(port)
    to = Destination(name="trigger", endpoint=first.endpoint, reconnect_s=0.02)
    with Relay(data_at(port), [to], FLOORS) as relay:
        outlet = relay.outlets[0]
        floors.send(1, 1, 0, 100)
        wait_for(lambda: len(first.units) == 1)
        first.close()
        wait_for(lambda: not outlet.is_connected)
        for slice_ in range(1, 10):
            floors.send(1, 1, slice_, 100)
        wait_for(lambda: relay.books()["units_in"] == 10)
        second = Listener(first.port)
        wait_for(lambda: len(second.units) == 9)
        books = relay.books()["destinations"]["trigger"]
        assert list(outlet.notes)[:3] == [
            "trigger: connected",
            "trigger: the connection ended (it closed the connection)",
            outlet.notes[2],
        ]
        assert outlet.notes[-1] == "trigger: connected"
    second.close()
    assert [one.unit.slice for one in second.units] == list(range(1, 10))
    assert (books["units_sent"], books["breaks"], books["connects"]) == (10, 1, 2)


def test_units_that_a_killed_destination_did_not_acknowledge_are_named() -> None:
    first = Listener()
    first.reads.clear()
    port = unused_port()
    floors = Floors(port)
    to = Destination(name="trigger", endpoint=first.endpoint, reconnect_s=0.02, queue_bytes=1 << 24, stalled_s=0.2)
    with Relay(data_at(port), [to], FLOORS) as relay:
        for slice_ in range(200):
            floors.send(1, 3, slice_, 15000)
            wait_for(lambda: relay.books()["units_in"] == slice_ + 1)  # noqa: B023
        wait_for(lambda: relay.books()["destinations"]["trigger"].get("breaks", 0) >= 1)
        first.close()
        books = relay.books()["destinations"]["trigger"]
        assert books["unacknowledged"] > 0
        assert balance(books) == 0
    books = relay.books()["destinations"]["trigger"]
    assert balance(books) == 0
    assert books["units_waiting"] == 0


def test_what_waits_for_a_destination_that_never_came_is_named_at_the_end() -> None:
    port, nobody = unused_port(), unused_port()
    floors = Floors(port)
    relay = Relay(data_at(port), [Destination(name="trigger", endpoint=f"tcp://127.0.0.1:{nobody}")], FLOORS)
    with relay:
        for slice_ in range(5):
            floors.send(1, 1, slice_, 10)
        wait_for(lambda: relay.books()["units_in"] == 5)
        wait_for(lambda: relay.books()["destinations"]["trigger"].get("connects_failed", 0) > 0)
    books = relay.books()["destinations"]["trigger"]
    assert (books["left_at_end"], books["units_sent"], balance(books)) == (5, 0, 0)


def test_a_udp_destination_that_no_one_listens_at_disturbs_nothing(listener: Listener) -> None:
    port = unused_port()
    destinations = [
        Destination(name="gone", endpoint=f"udp://127.0.0.1:{unused_port()}", kinds=("hits",)),
        Destination(name="trigger", endpoint=listener.endpoint),
    ]
    floors = Floors(port)
    with Relay(data_at(port), destinations, FLOORS) as relay:
        for slice_ in range(10):
            floors.send(1, 1, slice_, 10)
        wait_for(lambda: len(listener.units) == 10)
        wait_for(lambda: relay.books()["destinations"]["gone"]["units_waiting"] == 0)
        books = relay.books()["destinations"]["gone"]
    assert balance(books) == 0
    assert books["nobody_listens"] > 0


def test_the_numbers_of_packets_jump_over_what_was_dropped() -> None:
    from nanet.km3.destinations import Parcel, UdpOutlet

    class Nothing:
        def release(self) -> None: ...

    outlet = UdpOutlet(Destination(name="x", endpoint="udp://127.0.0.1:9", kinds=("hits",), queue_bytes=65536), threading.Lock())
    unit = Unit(1, 1, 1, 7, 0, 1, 0)
    for size in (6000, 60000, 6000):  # the second one finds no room
        outlet.offer(Parcel(unit, memoryview(bytes(size)), [], Nothing()))
    assert [number for number, _ in outlet._queue] == [0, 8]
    assert outlet.books()["queue_full"] == 1


def test_books_of_ports_count_what_no_unit_tells() -> None:
    assert Counter(LOSSES) == Counter(("queue_full", "unacknowledged", "refused", "left_at_end"))
    assert struct.calcsize(">IIBBBBIIIIIQ") == 40
