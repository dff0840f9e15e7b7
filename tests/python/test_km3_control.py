# SPDX-License-Identifier: Apache-2.0
"""Slow control: the bytes of a message, and a client that asks floors which behave and others which do not."""

from __future__ import annotations

import dataclasses
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from made_up_km3 import GET, PING, SET, MadeUpFloor
from nanet.km3.control import Client
from nanet.km3.messages import ANSWER, BY_NAME, BY_NUMBER, PARAMETERS, REQUEST, Command, Floor, Message, Status, decode, encode

FLOOR = Floor(1, 3)
REQUEST_BYTES = bytes.fromhex("4B4D3343 01 03 02 00 0000002A 0010 0000 00000019 00000000 00000000")
ANSWER_BYTES = bytes.fromhex("4B4D3341 01 03 02 03 0000002A 0010 0000 FFFFFFE7 65920080 03B9AC9F")


@pytest.fixture
def floor() -> Iterator[MadeUpFloor]:
    with MadeUpFloor(FLOOR.floor) as made:
        yield made


def client_of(*floors: MadeUpFloor, **changes: object) -> Client:
    addresses = {Floor(one.tower, one.floor): ("127.0.0.1", one.port) for one in floors}
    return Client(addresses, **({"timeout_s": 0.1, "tries_max": 3} | changes))  # type: ignore[arg-type]


def wait_for_count(client: Client, name: str, count: int = 1) -> None:
    end_s = time.monotonic() + 10
    while client.counters().get(name, 0) < count and time.monotonic() < end_s:
        time.sleep(0.005)
    assert client.counters().get(name, 0) >= count, client.counters()


def test_a_message_is_these_bytes() -> None:
    request = Message(FLOOR, Command.SET, 42, 16, 25)
    assert encode(request) == REQUEST_BYTES
    assert decode(REQUEST_BYTES, REQUEST) == request
    answer = Message(FLOOR, Command.SET, 42, 16, -25, Status.OUT_OF_BOUNDS, 0x65920080, 62_499_999)
    assert decode(ANSWER_BYTES) == answer
    assert encode(answer, ANSWER) == ANSWER_BYTES


@pytest.mark.parametrize(
    ("name", "at", "put"),
    [
        ("bad_magic", 3, b"\x43"),
        ("bad_floor", 5, b"\0"),
        ("bad_command", 6, b"\0"),
        ("bad_command", 6, b"\x07"),
        ("bad_status", 7, b"\x06"),
        ("bad_parameter", 6, b"\x05"),
        ("bad_reserved", 15, b"\x01"),
        ("bad_tick", 24, struct.pack(">I", 62_500_000)),
    ],
)
def test_a_field_that_is_wrong_has_a_name(name: str, at: int, put: bytes) -> None:
    assert decode(ANSWER_BYTES[:at] + put + ANSWER_BYTES[at + len(put) :]) == name


def test_lengths_and_requests_that_are_wrong() -> None:
    assert {decode(ANSWER_BYTES[:length]) for length in range(28)} == {"bad_length"}
    assert decode(ANSWER_BYTES + b"\0") == "bad_length"
    assert decode(REQUEST_BYTES) == "bad_magic"
    assert decode(REQUEST_BYTES[:7] + b"\x01" + REQUEST_BYTES[8:], REQUEST) == "bad_status"


def test_parameters_are_those_of_the_page() -> None:
    assert [one.number for one in PARAMETERS] == [*range(6), *range(16, 22), 32, 33, *range(64, 68), *range(80, 86)]
    assert {one.number for one in PARAMETERS if one.is_settable} == {*range(6), *range(16, 22), 32, 33}
    assert len(BY_NAME) == len(BY_NUMBER) == len(PARAMETERS)
    assert (BY_NAME["high_voltage_5"].most, BY_NAME["threshold_0"].most, BY_NAME["rate_5"].number) == (20000, 1000, 85)


def test_a_floor_is_asked_and_answers(floor: MadeUpFloor) -> None:
    heard = []
    with client_of(floor, heard=heard.append) as client:
        assert client.request(FLOOR, Command.SET, 2, 12000).is_done
        got = client.request(FLOOR, Command.GET, 2)
        assert got.answer is not None
        assert (got.outcome, got.answer.value, got.tries) == ("done", 12000, 1)
        assert client.request(FLOOR, Command.SET, 2, 20001).outcome == "out_of_bounds"
        assert client.request(FLOOR, Command.GET, 99).outcome == "no_such_parameter"
        assert client.request(FLOOR, Command.PING).is_done
        assert client.round_trips().count == 5
        assert client.counters() == {"requests": 5, "answered": 5}
    assert [one.outcome for one in heard] == ["done", "done", "out_of_bounds", "no_such_parameter", "done"]
    sequences = [struct.unpack_from(">I", data, 8)[0] for data in floor.heard]
    assert [(one - sequences[0]) % 2**32 for one in sequences] == [0, 1, 2, 3, 4]


def test_a_request_that_was_lost_is_sent_again_with_the_same_bytes_and_done_once(floor: MadeUpFloor) -> None:
    floor.faults = {"loses_first"}
    with client_of(floor) as client:
        done = client.request(FLOOR, Command.SET, 1, 500)
        assert (done.outcome, done.tries) == ("done", 2)
        assert client.counters()["repeats"] == 1
        assert client.round_trips().count == 0  # which sending was answered is not known
    assert floor.heard[0] == floor.heard[1]
    assert floor.done == [(SET, 1, 500)]


def test_a_silent_floor_ends_its_own_requests_only(floor: MadeUpFloor) -> None:
    with MadeUpFloor(4, faults=["silent"]) as silent, client_of(floor, silent) as client:
        waits = client.submit(Floor(1, 4), Command.PING)
        assert client.request(FLOOR, Command.PING).is_done
        assert not waits.done()
        ended = waits.result(timeout=10)
        assert (ended.outcome, ended.tries, ended.answer) == ("no_answer", 3, None)
        assert len(silent.heard) == 3
        assert client.counters() == {"requests": 2, "answered": 1, "no_answer": 1, "repeats": 2}


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("wrong_floor", "wrong_floor"),
        ("wrong_sequence", "unknown_sequence"),
        ("wrong_command", "wrong_request"),
        ("stranger", "wrong_sender"),
    ],
)
def test_what_is_no_answer_to_the_request_is_named_and_changes_nothing(floor: MadeUpFloor, fault: str, name: str) -> None:
    floor.faults = {fault, "only_wrong"}
    with client_of(floor, timeout_s=0.05, tries_max=2) as client:
        assert client.request(FLOOR, Command.GET, 64).outcome == "no_answer"
        wait_for_count(client, name, 2)
        floor.faults = {fault}
        done = client.request(FLOOR, Command.GET, 64)
        assert done.answer is not None
        assert done.answer.value == 1850


def test_garbage_and_second_answers_are_named(floor: MadeUpFloor) -> None:
    floor.faults = {"garbage", "twice"}
    with client_of(floor) as client:
        for _ in range(5):
            assert client.request(FLOOR, Command.PING).is_done
        wait_for_count(client, "answered_again", 5)
        assert client.counters()["bad_length"] == 5
        assert client.counters()["bad_magic"] == 5
    assert [command for command, _, _ in floor.done] == [PING] * 5


def test_a_floor_has_one_request_on_its_way_and_a_queue_that_ends(floor: MadeUpFloor) -> None:
    floor.faults = {"silent"}
    with client_of(floor, queue_max=4, timeout_s=30.0) as client:
        futures = [client.submit(FLOOR, Command.GET, one) for one in range(16, 22)]
        refused = [one.result(timeout=5).outcome for one in futures if one.done()]
        assert set(refused) == {"queue_full"}
        assert 1 <= len(refused) <= 2  # whether the first had left the queue
        waits = [one for one in futures if not one.done()]
        time.sleep(0.05)
        assert len(floor.heard) == 1
    assert {one.result(timeout=5).outcome for one in waits} == {"closed"}
    assert client.request(FLOOR, Command.PING).outcome == "closed"


def test_requests_of_a_floor_are_done_in_their_order(floor: MadeUpFloor) -> None:
    floor.faults = {"loses_first"}
    with client_of(floor, timeout_s=0.01) as client:
        futures = [client.submit(FLOOR, Command.SET, 0, value) for value in range(10)]
        assert all(one.result(timeout=10).is_done for one in futures)
    assert [value for _, _, value in floor.done] == list(range(10))


def test_a_port_where_no_one_listens_is_no_answer() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = taken.getsockname()
    with Client({FLOOR: address}, timeout_s=0.02, tries_max=2) as client:
        assert client.request(FLOOR, Command.PING).outcome == "no_answer"


def test_a_value_that_fits_no_field_is_the_callers_error(floor: MadeUpFloor) -> None:
    with client_of(floor) as client:
        with pytest.raises(struct.error):
            client.submit(FLOOR, Command.SET, 0, 1 << 31)
        assert client.request(FLOOR, Command.GET, 16).is_done
    assert floor.done == [(GET, 16, 0)]


def test_an_exchange_cannot_be_changed(floor: MadeUpFloor) -> None:
    with client_of(floor) as client, pytest.raises(dataclasses.FrozenInstanceError):
        client.request(FLOOR, Command.PING).outcome = "done"  # type: ignore[misc]
