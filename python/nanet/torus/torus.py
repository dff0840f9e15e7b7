# SPDX-License-Identifier: Apache-2.0
"""A torus of simulated nodes, their memories as numpy arrays, and what goes between them: PUT, GET, EVENT.

A node has 63 pages of 64 KiB. Offsets and sizes are bytes, times cycles of the RTL, whose clock is 175 MHz. One thread uses a torus.
"""

from __future__ import annotations

import functools
import importlib
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nanet._core import SetupError
from nanet.torus import registers
from nanet.torus.registers import DIRECTIONS, OWN, NodeRegisters, TorusBooks, torus_books

__all__ = ["DIRECTIONS", "MESSAGE_BYTES_MAX", "Completion", "NeighbourState", "Region", "Torus", "native_torus"]

MESSAGE_BYTES_MAX = 261_105
"""Of one PUT or GET."""
ALIGN_BYTES = 64  # of what is allocated; a region begins at a multiple of 16
CYCLES_AT_ONCE = 4096  # between two looks whether Ctrl-C was pressed
PACKET_TYPES = {0x01: "PUT", 0x03: "GET", 0x11: "EVENT"}
ERROR = 3  # Completion::kind of include/nanet/contract.hpp
TIMEOUT = 1 << 1  # and a bit of its status

WIRE_CYCLES_MAX = 4096
PERIOD_MAX = 1_000_000_000  # of hosts' beats [cycles]
CYCLES_MAX = 2**63 - 1
OFFSET_MAX = 2**40 - 1  # 40 bits in a packet
DIMENSIONS_MAX = 64  # of an array of numpy
NODES_MAX = 4  # of a dimension: what the table of messages has room for

Made = TypeVar("Made")


def native_torus() -> Any:
    """The module nanet._torus. Raises SetupError where this nanet was built without a Verilator."""
    try:
        return importlib.import_module("nanet._torus")
    except ImportError as error:
        why = (
            "it was built without a Verilator"
            if isinstance(error, ModuleNotFoundError)
            else f"its module cannot be loaded: {error}"
        )
        raise SetupError(f"this nanet simulates no torus ({why}) run make links in a clone") from None


@dataclass(frozen=True)
class Region:
    """Memory that a node shares, and what others have to know to use it: the key. Torus.share makes it."""

    node: int
    index: int
    """Of the node's regions, 0 to 15."""
    nonce: int
    """32 bits; with another one nothing is read or written."""
    size_bytes: int = 0
    """For the one who uses it: the other node knows its own."""


@dataclass(frozen=True)
class Completion:
    """What became of a message, as the node's completion queue has it."""

    packet_type: str
    """`PUT` and `EVENT`: one that came. `GET`: one of this node, whose answer is there."""
    source: int
    """The node that sent it; of a GET the one that was asked."""
    number: int
    """Of the message, from its sender to this node."""
    process: int
    """As the sender gave it."""
    value: int
    """Of an EVENT."""
    size_bytes: int
    """That landed."""
    tag: int
    """Of a GET, as it was given."""
    time_ns: int
    """When it was made, from cycle 0 on."""
    failed: bool
    """Parts of it never came."""
    timed_out: bool
    """... within two ticks of the node (0.5 million cycles); else its sender's next message was there first."""


@dataclass(frozen=True)
class NeighbourState:
    """What a node knows of the neighbour at one of its links, by LO|FA|MO."""

    has_link: bool
    is_silent: bool
    """Nothing is heard of it: the node or the cable is dead. The rest says nothing then."""
    is_host_silent: bool
    host_says: int
    """What its host says of itself: 0 when it is well."""
    since_cycle: int
    """When this came to be known."""

    @property
    def text(self) -> str:
        """In a word or two: `ok`, `silent`, `host silent`, `says N`, or `-` where there is no link."""
        if not self.has_link:
            return "-"
        if self.is_silent:
            return "silent"
        return "host silent" if self.is_host_silent else f"says {self.host_says}" if self.host_says else "ok"


class Torus:
    """A torus of simulated nodes with network interfaces. Nothing happens but in run and settle."""

    def __init__(self, shape: str, wire_cycles: int = 16) -> None:
        """shape: nodes of each dimension, such as 4x2x1, at most 4 of each and at least 2 in all. wire_cycles: how long a word is on a cable, 2 to 4096.

        Raises SetupError for what cannot be had, and where this nanet was built without a Verilator.
        """
        native = native_torus()
        _check_shape(shape)
        wire_cycles = whole_number("wire_cycles", wire_cycles, 2, WIRE_CYCLES_MAX)
        self._native = refused(lambda: native.RdmaTorus(shape, wire_cycles))
        self._region = native.Region
        self.shape: tuple[int, int, int] = self._native.shape
        """Nodes of x, y and z; node number n is at x = n % shape[0], and so on."""
        self.size: int = self._native.size
        """How many nodes there are."""
        self._memory_bytes = int(self._native.memory(0).size)
        self._begins = [self.memory(node).__array_interface__["data"][0] for node in range(self.size)]
        self._used = [0] * self.size
        self._looks_cycles = max(CYCLES_AT_ONCE, int(self._native.looks_cycles))

    @property
    def cycle(self) -> int:
        """Cycles that were simulated."""
        return int(refused(lambda: self._native.cycle))

    def distance(self, from_node: int, to_node: int) -> int:
        """Links between two nodes, the shorter way round in each dimension."""
        self._check_node(from_node)
        self._check_node(to_node)
        return int(self._native.distance(from_node, to_node))

    # --- memory ---

    def memory(self, node: int) -> NDArray[np.uint8]:
        """All memory of a node, uint8 [4128768], not a copy."""
        self._check_node(node)
        view: NDArray[np.uint8] = refused(lambda: self._native.memory(node))
        return view

    def allocate(self, node: int, shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """An array of zeros in the memory of a node, where none was before. Raises SetupError if there is no room: nothing is given back."""
        memory = self.memory(node)
        kind, shape = _checked_type(dtype), _checked_lengths(shape)
        size = math.prod(shape) * kind.itemsize
        begin = -(-self._used[node] // ALIGN_BYTES) * ALIGN_BYTES
        if begin + size > memory.size:
            raise SetupError(
                f"{size} bytes are not free at node {node} (it has {memory.size}, and {begin} are in use) use a smaller array"
            )
        self._used[node] = begin + size
        found: NDArray[Any] = memory[begin : begin + size].view(kind).reshape(shape)
        found[...] = np.zeros((), kind)
        return found

    def share(self, array: NDArray[Any], *, read: bool = False, write: bool = False) -> Region:
        """Lets other nodes read or write an array, which lies in the memory of a node. At most 16 of a node, those withdrawn among them.

        array: of allocate, or any part of memory that begins at a multiple of 16 bytes, without gaps. Raises SetupError.
        """
        node, offset = self._place(array)
        native = refused(lambda: self._native.share(node, offset, array.nbytes, read, write))
        return Region(node, native.index, native.nonce, array.nbytes)

    def withdraw(self, region: Region) -> None:
        """No packet that is judged from some cycles on may use it. Raises SetupError if it was not shared, or was withdrawn before."""
        refused(lambda: self._native.withdraw(self._key(region)))

    # --- messages: each is a job of the node that sends it, which takes them one after the other ---

    def put(self, source: NDArray[Any], to: Region, offset_bytes: int = 0, *, process: int = 0) -> None:
        """From the memory of a node into a region, from offset_bytes on. The node of the region has a completion then, with this process.

        source: as for share, from any byte on, 1 to 261105 bytes. It is read while the torus is simulated.
        What the region's node refuses is no error here: it is counted there. Raises SetupError for what cannot be sent.
        """
        node, local = self._place(source)
        offset_bytes, process = (
            whole_number("offset_bytes", offset_bytes, 0, OFFSET_MAX),
            whole_number("process", process, 0, 0xFFFF),
        )
        refused(lambda: self._native.put(node, local, source.nbytes, self._key(to), offset_bytes, process))

    def get(
        self, into: Region, source: Region, size_bytes: int, *, into_offset_bytes: int = 0, offset_bytes: int = 0, tag: int = 0
    ) -> None:
        """Asks for a part of the region `source`, to land in `into`, a region of the node that asks, which it may write. Raises SetupError.

        The node that asks has a completion with this tag when all of it is there, or some time after it was refused.
        """
        into_key, of = self._key(into), self._key(source)
        into_offset_bytes = whole_number("into_offset_bytes", into_offset_bytes, 0, OFFSET_MAX)
        offset_bytes = whole_number("offset_bytes", offset_bytes, 0, OFFSET_MAX)
        size_bytes, tag = whole_number("size_bytes", size_bytes, 1, MESSAGE_BYTES_MAX), whole_number("tag", tag, 0, 2**64 - 1)
        refused(lambda: self._native.get(into_key, into_offset_bytes, size_bytes, of, offset_bytes, tag))

    def event(self, from_node: int, to_node: int, value: int = 0, *, process: int = 0) -> None:
        """Tells another node a value of 16 bits, which stands in its completion. Raises SetupError."""
        self._check_node(from_node)
        self._check_node(to_node)
        value, process = whole_number("value", value, 0, 0xFFFF), whole_number("process", process, 0, 0xFFFF)
        refused(lambda: self._native.event(from_node, to_node, value, process))

    def take(self, node: int) -> list[Completion]:
        """The completions of a node since the last call. Its queue has room for 1024: who never takes them has packets dropped (`queue`)."""
        self._check_node(node)
        return [self._completion(one) for one in refused(lambda: self._native.take(node))]

    def counters(self, node: int) -> dict[str, int]:
        """What became of the packets that came to a node, by name, and of its jobs (docs/design/apenet-rdma.md). `lost` is to be 0 in a torus that is whole."""
        self._check_node(node)
        found: dict[str, int] = refused(lambda: self._native.counts(node))
        return found

    def registers(self) -> list[NodeRegisters]:
        """What each node counts in its registers. Simulates the cycles, some thousands, in which the hosts read them; a node that stands still is not read."""
        return refused(lambda: registers.read(self._native, self.size))

    def books(self, nodes: list[NodeRegisters] | None = None) -> TorusBooks:
        """injected = delivered + each loss by its name, of all nodes, from their registers: of those that were read before, or as they are now."""
        return torus_books(nodes or self.registers(), self.shape)

    # --- LO|FA|MO: who knows of whom that it has stopped; docs/design/lofamo.md ---

    def watch(self, beat_cycles: int = 500, period_cycles: int = 1200) -> None:
        """Every host beats from now on each `beat_cycles`, and is silent for its node when none came for `period_cycles`. Raises SetupError."""
        beat_cycles = whole_number("beat_cycles", beat_cycles, 1, PERIOD_MAX)
        period_cycles = whole_number("period_cycles", period_cycles, 1, PERIOD_MAX)
        if beat_cycles > period_cycles:
            text = f"hosts that beat each {beat_cycles} cycles cannot be watched each {period_cycles}"
            raise SetupError(f"{text} (a beat must come in every period) give a longer period")
        refused(lambda: self._native.watch(beat_cycles, period_cycles))

    def stop_host(self, node: int, *, stopped: bool = True) -> None:
        """The host of a node beats no more, or again."""
        self._check_node(node)
        refused(lambda: self._native.set_host(node, not stopped))

    def stop_node(self, node: int, *, stopped: bool = True) -> None:
        """The logic of a node stands still, and its links with it, or goes on. What was on the way to it meanwhile is lost."""
        self._check_node(node)
        refused(lambda: self._native.set_logic(node, not stopped))

    def host_says(self, node: int, what: int) -> None:
        """What a host says of itself with its next beat: 0 when it is well, 1 to 127. Raises SetupError."""
        self._check_node(node)
        what = whole_number("what", what, 0, 127)
        refused(lambda: self._native.say(node, what))

    def cut(self, node: int, direction: str, *, whole: bool = False) -> None:
        """Cuts the cable at a node in one of DIRECTIONS, or mends it. Its links stay up, and wait. Raises SetupError."""
        self._check_node(node)
        if direction not in DIRECTIONS:
            raise SetupError(f"{direction!r} is no direction (there are: {', '.join(DIRECTIONS)}) give one of these")
        refused(lambda: self._native.set_cable(node, DIRECTIONS.index(direction), whole))

    def neighbours(self, node: int) -> dict[str, NeighbourState]:
        """What a node knows of each neighbour, by direction."""
        self._check_node(node)
        found = refused(lambda: self._native.neighbours(node))
        return {direction: NeighbourState(*one) for direction, one in zip(DIRECTIONS, found, strict=True)}

    def changes(self, node: int) -> tuple[int, dict[str, int]]:
        """How often the interrupt of a node has told its host of changes, and how often each of DIRECTIONS, and `node`, had changed then."""
        self._check_node(node)
        interrupts, seen = refused(lambda: self._native.changes(node))
        return interrupts, dict(zip((*DIRECTIONS, OWN), seen, strict=True))

    def own_state(self, node: int) -> str:
        """What host and logic of a node know of each other: `ok`, `host silent`, `says N`, or `logic silent` (which the host sees)."""
        self._check_node(node)
        state = int(refused(lambda: self._native.state(node)))
        if self._native.is_logic_silent(node):
            return "logic silent"
        return "host silent" if state & 1 else f"says {state >> 1}" if state else "ok"

    def place(self, node: int) -> tuple[int, int, int]:
        """x, y and z of a node."""
        self._check_node(node)
        x, y, _ = self.shape
        return node % x, node // x % y, node // x // y

    # --- time ---

    def run(self, cycles: int) -> None:
        """Simulates so many cycles. Raises SetupError."""
        left = whole_number("cycles", cycles, 0, CYCLES_MAX)
        while left > 0:
            step = min(left, CYCLES_AT_ONCE)
            refused(functools.partial(self._native.run, step))
            left -= step

    def settle(self, cycles: int = 200_000) -> bool:
        """Simulates until nothing has happened anywhere for a while. False: after so many cycles something still does.

        A message of which a part never came, and a GET that was refused, fail later than that: see Completion.timed_out. Raises SetupError.
        """
        end = self.cycle + whole_number("cycles", cycles, 1, CYCLES_MAX)
        while self.cycle < end:
            if refused(lambda: self._native.settle(self._looks_cycles)):
                return True
        return False

    def _place(self, array: NDArray[Any]) -> tuple[int, int]:
        """The node in whose memory an array lies, and where."""
        if not isinstance(array, np.ndarray):
            raise SetupError(
                f"{_shown(array)} is no array (only the memory of nodes can be sent and shared) give one from Torus.allocate"
            )
        if not array.flags.c_contiguous or array.nbytes == 0:
            raise SetupError(
                "this array cannot be used (it has gaps, or nothing is in it) use a part of an array that has rows in one piece"
            )
        address = array.__array_interface__["data"][0]
        for node, begin in enumerate(self._begins):
            if begin <= address and address + array.nbytes <= begin + self._memory_bytes:
                return node, address - begin
        raise SetupError(
            "this array lies in no node (only their memory can be sent and shared) copy it into one from Torus.allocate"
        )

    def _key(self, region: Region) -> Any:
        if not isinstance(region, Region):
            raise SetupError(
                f"{_shown(region)} is no region (it says whose memory, and with which key) give what Torus.share returned"
            )
        self._check_node(region.node)
        index, nonce = whole_number("index", region.index, 0, 0xFF), whole_number("nonce", region.nonce, 0, 0xFFFF_FFFF)
        return refused(lambda: self._region(region.node, index, nonce))

    def _check_node(self, node: int) -> None:
        if not 0 <= _index(node) < self.size:
            raise SetupError(f"there is no node {_shown(node)} (nodes have the numbers 0 to {self.size - 1}) give one of these")

    def _completion(self, one: np.void) -> Completion:
        place = int(one["source"])
        x, y, z = place & 63, place >> 6 & 31, place >> 11
        failed = one["kind"] == ERROR
        return Completion(
            PACKET_TYPES.get(int(one["packet_type"]), hex(one["packet_type"])), x + self.shape[0] * (y + self.shape[1] * z),
            int(one["number"]), int(one["process"]), int(one["value"]), int(one["bytes"]), int(one["tag"]), int(one["time_ns"]),
            bool(failed), bool(failed and one["status"] & TIMEOUT),
        )  # fmt: skip


def _shown(value: object) -> str:
    """A value in a message: short, however long it is."""
    text = repr(value) if isinstance(value, int | float | str | bytes | tuple | None) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _index(value: object) -> int:
    """A whole number; -1, which is none of what is asked for here, for anything else."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return -1


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """That number, or a SetupError that names it."""
    number = _index(value)
    if not least <= number <= most:
        raise SetupError(f"{name} cannot be {_shown(value)} (a whole number from {least} to {most} is needed) give one of these")
    return number


def _check_shape(shape: object) -> None:
    nodes = (
        [int(one) for one in shape.split("x")]
        if isinstance(shape, str) and re.fullmatch("[0-9]{1,2}(x[0-9]{1,2}){0,2}", shape)
        else []
    )
    if not nodes or min(nodes) < 1 or max(nodes) > NODES_MAX or math.prod(nodes) < 2:
        raise SetupError(
            f"{_shown(shape)} is no torus that can be simulated here (at most {NODES_MAX} nodes a dimension, at least 2 in all) write '4x2x1'"
        )


def _checked_type(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise SetupError(f"{_shown(dtype)} is no type of numpy (an array in a node has one) give one such as 'f8'") from None
    if kind.hasobject or kind.itemsize == 0:
        raise SetupError(f"an array of {kind} cannot lie in a node (its items are not bytes there) give another type")
    return kind


def _checked_lengths(shape: object) -> tuple[int, ...]:
    lengths = tuple(_index(one) for one in shape) if isinstance(shape, tuple | list) else (_index(shape),)
    if len(lengths) > DIMENSIONS_MAX or any(length < 0 for length in lengths):
        raise SetupError(
            f"an array cannot have the shape {_shown(shape)} (its lengths are whole numbers, not negative) give another shape"
        )
    return lengths


def refused(call: Callable[[], Made]) -> Made:
    """What the native module cannot do as one kind of error."""
    try:
        return call()
    except ValueError as error:
        raise SetupError(str(error)) from None
    except TypeError:
        raise SetupError("an argument is of another type than it is to be (docs/api.md says of which) give another") from None
