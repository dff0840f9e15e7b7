# SPDX-License-Identifier: Apache-2.0
"""Receive datagrams as a program of your own would want them: buffers of many packets, seen without a copy.

    with nanet.open("udp://127.0.0.1:6200", protocol="mgp", sources=[nanet.config.Source(name="rich")]) as port:
        for completion in port.completions(timeout_s=1.0):
            packets = completion.array(nanet.wire.MGP_PACKET)
            port.send("udp://127.0.0.1:6300", answer)

Terms are those of the NIC contract: packets are received into a circular list of buffers (CLOP); a completion says that a
buffer is filled; releasing it gives the buffer back. While all buffers are held, further packets are dropped and counted.
One thread uses a port. What a view shows after its completion was released may change: copy what is to be kept. It stays
readable memory for as long as any view of it lives, even after the port was closed.

With memory="host_pinned" a GPU reads the buffers in place: completion.device_buffer is an array for CuPy, PyTorch and Numba, and
a completion is released only when the GPU has done what it was given (examples/gpu_port.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nanet.config import formats
from nanet.config.components import Source
from nanet.config.engine import PortConfig
from nanet.config.errors import ConfigError, validated
from nanet.port.arrays import CPU, CUDA_HOST, DeviceArray, Waitable, dlpack, host_bytes
from nanet.port.views import SampleView, sample_view

if TYPE_CHECKING:
    from nanet import _core

__all__ = ["Completion", "DeviceArray", "Port", "Unit", "open", "open_queues"]

STATUS_NAMES = ("full", "timeout", "flush", "gap", "truncated", "error", "run_start", "in_place", "unit", "incomplete")


def open(  # noqa: A001
    endpoint: str,
    *,
    protocol: str = "raw",
    sources: Iterable[Source | dict[str, Any]] | None = None,
    buffer_count: int = 16,
    buffer_bytes: int = 1 << 18,
    memory: Literal["host", "host_pinned"] = "host",
    **options: Any,
) -> Port:
    """Listens on `endpoint` (udp://ADDRESS:PORT) and returns the port.

    protocol: "raw" for any datagrams, "mgp" for ours, checked for header, checksum, source and sequence; the name of a shipped format, or
    FILE.yaml of one (docs/declared-formats.md), whose packets are put together to units.
    sources: who may send, mgp only; None: the RICH's first board.
    buffer_count: power of two. buffer_bytes: multiple of 4096, 65536 at least (without gro: a packet).
    memory: "host_pinned": CUDA's GPU that is current in this thread reads the buffers in place; needs a GPU and nanet with GPU code.
    options: further fields of nanet.config.PortConfig.
    Raises ConfigError for a wrong value, nanet._core.SetupError where the machine refuses.
    """
    given = {"buffer_count": buffer_count, "buffer_bytes": buffer_bytes, "memory_kind": memory}
    config = _config(endpoint, protocol, sources, given | options)
    if config.udp is not None and config.udp.queues > 1:
        queues = config.udp.queues
        raise ConfigError([f"one port for {queues} queues (a port is of one thread, which takes one queue) call nanet.open_queues"])
    return Port(config)


def open_queues(
    endpoint: str, queues: int, *, protocol: str = "raw", sources: Iterable[Source | dict[str, Any]] | None = None, **options: Any
) -> tuple[Port, ...]:
    """Ports over several queues of one endpoint, one for each thread of the program (docs/design/queues.md).

    options: as for `open`. Of them udp says how packets are steered: {"steer_by": "key", "key_at": 2, "key_bytes": 2}; without: by flow.
    Each port has memory of its own, so buffer_count is that of each. Raises what `open` does.
    """
    if "memory" in options:
        options["memory_kind"] = options.pop("memory")
    udp = dict(options.pop("udp", None) or {}) | {"queues": queues}
    config = _config(endpoint, protocol, sources, options | {"udp": udp})
    return tuple(Port(config.model_copy(update={"queue": queue})) for queue in range(queues))


def _config(endpoint: str, protocol: str, sources: Iterable[Source | dict[str, Any]] | None, options: dict[str, Any]) -> PortConfig:
    if sources is None:
        sources = [Source(name="rich")] if protocol == "mgp" else []
    plain = [source.model_dump() if isinstance(source, Source) else source for source in sources]
    if protocol.endswith((".yaml", ".yml")):
        declared = formats.load(protocol)
        protocol, options = declared.name, {"formats": {declared.name: declared.keys()}} | options
    return validated(PortConfig, {"endpoint": endpoint, "protocol": protocol, "sources": plain} | options)


class Port:
    """An open port: a context manager that gives completions and sends."""

    def __init__(self, config: PortConfig) -> None:
        from nanet import _core

        self.config = config
        self._native: _core.Port | None = _core.Port(config.model_dump(mode="json"))
        self.device_index: int | None = self._native.device_index
        """Number of the GPU that sees the buffers, as CUDA counts; None with memory host."""
        self._destinations: dict[str, int] = {}
        self._held: deque[Completion] = deque()

    @cached_property
    def sample_view(self) -> SampleView:
        """What the units of the port's format are, as its declaration says."""
        return sample_view(self.config.formats[self.config.protocol])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<nanet.Port {self.config.endpoint} {self.config.protocol}{'' if self._native else ' closed'}>"

    def poll(self, timeout_s: float = 0.0) -> Completion | None:
        """The next filled buffer, or None when there is none within timeout_s. It is held until it is released."""
        view = self._open().poll(timeout_s)
        if view is None:
            return None
        completion = Completion(self, view)
        self._held.append(completion)
        return completion

    def completions(self, timeout_s: float | None = None) -> Iterator[Completion]:
        """Filled buffers, each released when the next one is asked for; ends after timeout_s without a packet (None: never)."""
        while True:
            completion = self.poll(timeout_s if timeout_s is not None else 3600.0)
            if completion is None:
                if timeout_s is not None:
                    return
                continue
            try:
                yield completion
            finally:
                completion.release()

    def send(self, destination: str, payload: Any) -> bool:
        """Sends one datagram at once. False: the kernel did not take it.

        payload: bytes, an array of NumPy, CuPy, PyTorch or Numba without gaps, or a completion. It is read where it lies, in pinned
        memory too; only what is in a GPU's own memory is copied to the host first. Of a GPU's array, its stream is waited for.
        """
        native = self._open()
        index = self._destinations.get(destination)
        if index is None:
            index = self._destinations[destination] = native.add_destination(destination)
        return bool(native.send(index, host_bytes(payload)))

    def streams(self) -> list[dict[str, int]]:
        """The books of each stream of units that came, in the order of their first packets: stream, packets_accepted, packets_refused,
        packets_lost, units_complete, units_incomplete, units_no_buffer, units_lost. Empty where packets are not put together."""
        return list(self._open().streams())

    def counters(self) -> dict[str, int]:
        """Totals by name since the port was opened; docs/design/books.md explains each."""
        return {name: int(count) for name, count in self._open().counters().items()}

    @property
    def notes(self) -> list[str]:
        """What the machine could not give, one line each."""
        return list(self._open().notes)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native is None

    def close(self) -> None:
        """Stops listening. Views of buffers stay readable."""
        self._held.clear()
        self._native = None

    def _open(self) -> _core.Port:
        if self._native is None:
            raise ValueError("the port is closed (its with block has ended) open it again")
        return self._native

    def _wait_for_gpu(self) -> None:
        if self._native is not None and self.device_index is not None:
            self._native.wait_for_gpu()

    def _release(self) -> None:
        while self._held and self._held[0].released:
            self._held.popleft()
            if self._native is not None:
                self._native.release()


class Completion:
    """One filled buffer. As a context manager it is released at the end of the block."""

    def __init__(self, port: Port, view: _core.CompletionView) -> None:
        self.port = port
        self._view = view
        self.released = False
        self.bytes: int = view.bytes
        """Bytes in use, from the start of the buffer."""
        self.packet_count: int = view.packet_count
        """Packets in the packet index."""
        self.event_count: int = view.event_count
        """Events in those packets, as their headers say; 0 with protocol raw."""
        self.packets_lost: int = view.packets_lost
        """Packets newly known to be missing since the completion before; 0 with protocol raw."""
        self.stride_bytes: int = view.stride_bytes
        """Not 0: every packet is this long and they lie back to back."""
        self.first_packet_ns: int = view.first_packet_ns
        """Arrival of the oldest packet, CLOCK_MONOTONIC [ns]."""
        self.last_packet_ns: int = view.last_packet_ns
        """Arrival of the newest packet, CLOCK_MONOTONIC [ns]."""
        self._status: int = view.status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __len__(self) -> int:
        return self.packet_count

    def __repr__(self) -> str:
        return f"<nanet.Completion {self.packet_count} packets, {self.bytes} B, {'|'.join(sorted(self.status)) or 'batch'}>"

    @property
    def status(self) -> frozenset[str]:
        """Why it was handed over and what happened: full, timeout, flush, gap, truncated, error,
        run_start, in_place, unit, incomplete."""
        return frozenset(name for bit, name in enumerate(STATUS_NAMES) if self._status >> bit & 1)

    @property
    def unit(self) -> Unit | None:
        """What the buffer is, where packets are put together to units; None: a batch of packets."""
        return Unit(self, self._view.unit) if "unit" in self.status else None

    @property
    def buffer(self) -> NDArray[np.uint8]:
        """The bytes in use, uint8 [bytes], read-only, no copy."""
        self.check_held()
        return self._view.buffer

    @property
    def device_buffer(self) -> DeviceArray:
        """`buffer` as a GPU sees it, uint8 [bytes], no copy. Raises SetupError unless the port's memory is host_pinned."""
        self.check_held()
        return DeviceArray(self, self._view.device_address, (self.bytes,), np.uint8, self._view.array)

    @property
    def device_index(self) -> DeviceArray:
        """`index` as a GPU sees it, uint32 [packet_count, 2], no copy: offset, and bytes + 65536 * source. Raises as device_buffer does."""
        self.check_held()
        return DeviceArray(self, self._view.device_index_address, (self.packet_count, 2), np.uint32, self._view.index_array)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Host memory, or with host_pinned, host memory that CUDA sees."""
        return (CPU if self.port.device_index is None else CUDA_HOST), 0

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """`buffer` as a DLPack capsule, no copy, read-only except for a GPU.

        dl_device: (kind, number); with host_pinned it is also seen as CPU and as CUDA.
        Raises BufferError for a device that does not see the memory, and for copy=True.
        """
        return dlpack(self, self._view.array, dl_device or self.__dlpack_device__(), max_version, copy)

    @property
    def index(self) -> NDArray[Any]:
        """Where each packet is: structured [packet_count] with offset, bytes, source."""
        self.check_held()
        return self._view.index

    def array(self, dtype: DTypeLike) -> NDArray[Any]:
        """All packets as one structured array [packet_count], read-only, no copy.

        dtype: layout of a packet, at most as long as the packets are (the rest of each is skipped).
        Raises ValueError when the packets differ in length or in their distance (see `packets`), or are shorter than dtype.
        """
        layout = np.dtype(dtype)
        if self.packet_count == 0:
            return np.empty(0, dtype=layout)
        first, distance, size = self._raster()
        if layout.itemsize > size:
            raise ValueError(f"a packet has {size} B (the dtype has {layout.itemsize}) use a dtype that fits")
        return np.ndarray((self.packet_count,), dtype=layout, buffer=self.buffer, offset=first, strides=(distance,))

    def _raster(self) -> tuple[int, int, int]:
        """(place of the first packet, distance from one to the next, length of each); packets of odd lengths may lie 8 bytes and more apart."""
        if self.stride_bytes != 0:
            return 0, self.stride_bytes, self.stride_bytes
        places, sizes = self.index["offset"].astype(np.int64), self.index["bytes"]
        if sizes.min() != sizes.max():
            raise ValueError(f"the packets differ in length ({sizes.min()} to {sizes.max()} B) use packets()")
        distances = np.diff(places)
        if distances.size and distances.min() != distances.max():
            raise ValueError(
                "the packets do not lie at equal distances (the kernel joined some, or one between them was refused) use packets()"
            )
        return int(places[0]), int(distances[0]) if distances.size else 0, int(sizes[0])

    def packets(self) -> Iterator[memoryview]:
        """Each packet's bytes, read-only, no copy, whatever their lengths."""
        whole = memoryview(self.buffer)
        for offset, size in zip(self.index["offset"].tolist(), self.index["bytes"].tolist(), strict=True):
            yield whole[offset : offset + size]

    def release(self, after: Waitable | None = None) -> None:
        """Gives the buffer back; twice is the same as once. Buffers go back in the order in which they came.

        after: an event or a stream that is waited for before. None: with host_pinned, all that the GPU was given so far.
        Raises SetupError when the GPU has failed, with the buffer given back.
        """
        if self.released:
            return
        self.released = True
        try:
            if after is not None:
                after.synchronize()
            else:
                self.port._wait_for_gpu()
        finally:
            self.port._release()

    def check_held(self) -> None:
        """Raises ValueError once it was released."""
        if self.released:
            raise ValueError("this completion was released (its buffer may hold newer packets) copy what you need to keep")


class Unit:
    """A unit (frame, event, heap) put together from many packets: the buffer of a completion. No copy; valid while the completion is held."""

    def __init__(self, completion: Completion, head: dict[str, int]) -> None:
        self.completion = completion
        self.stream: int = head["stream"]
        """Who sent it."""
        self.number: int = head["unit"]
        """Which unit of its stream it is."""
        self.time: int = head["time"]
        """As its packets say; 0: they say none."""
        self.bytes: int = head["bytes"]
        """Its length; of an incomplete one of which no packet said it, up to the last byte that came."""
        self.bytes_missing: int = head["bytes_missing"]
        """Bytes in its holes."""
        self.packet_count: int = head["packet_count"]
        """Packets that are in it."""
        self.packets_missing: int = head["packets_missing"]
        """As many of its longest packets as its holes have room for."""
        self.piece_bytes: int = head["piece_bytes"]
        """Longest payload of a packet."""

    def __repr__(self) -> str:
        missing = f", {self.bytes_missing} B missing" if self.bytes_missing else ""
        return f"<nanet.Unit {self.number} of stream {self.stream}, {self.bytes} B{missing}>"

    @property
    def complete(self) -> bool:
        """Whether every byte came."""
        return "incomplete" not in self.completion.status

    @property
    def present(self) -> NDArray[np.uint32]:
        """The bytes that came, uint32 [ranges, 2], read-only, no copy: first byte and first one after, ascending, a hole between any two."""
        self.completion.check_held()
        return self.completion._view.present

    def array(self, dtype: DTypeLike = np.uint8, shape: int | tuple[int, ...] = -1) -> NDArray[Any]:
        """The unit as an array of that dtype and shape, read-only, no copy. What lies in its holes (`mask`) has no meaning.

        Raises ValueError when it has another length.
        """
        return self.completion.buffer.view(np.dtype(dtype)).reshape(shape)

    def view(self) -> NDArray[Any]:
        """The numbers that the format's declaration says (`payload: {samples: }`), in its shape, whose first dimension grows with the
        packets of a unit; bytes where it says nothing. Read-only, no copy; only numbers that no dtype has (14 bits) are unpacked, a copy.

        For a GPU: cupy.asarray(completion.device_buffer).view(unit.view().dtype). Raises ValueError when the unit has another length.
        """
        return self.completion.port.sample_view.array(self.completion.buffer)

    def view_mask(self) -> NDArray[np.bool_]:
        """True where a number of `view` is missing, of the same shape. For numpy.ma.masked_array."""
        return self.completion.port.sample_view.mask(self.bytes, self.present)

    def mask(self, dtype: DTypeLike = np.uint8, shape: int | tuple[int, ...] = -1) -> NDArray[np.bool_]:
        """True where something is missing: bool, as many elements as `array` has with the same dtype and shape. For numpy.ma.masked_array."""
        size = np.dtype(dtype).itemsize
        if self.bytes % size:
            raise ValueError(f"the unit has {self.bytes} B (the dtype has {size}) use a dtype that fits")
        missing = np.ones(self.bytes // size, dtype=np.bool_)
        for begin, end in self.present.tolist():
            missing[-(-begin // size) : end // size] = False
        return missing.reshape(shape)
