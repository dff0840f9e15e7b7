# SPDX-License-Identifier: Apache-2.0
"""One side of `nanet rdma bench`: a region that the other side uses, a source of this one's puts and gets, and how they are filled and checked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from nanet._core import SetupError
from nanet.machine.facts import read_text
from nanet.rdma import native
from nanet.rdma.memory import CudaMemory, Memory, allocate

REGION = "bench"
PIECE_BYTES = 16 << 20  # of a GPU's memory at a time, through memory of the host; a multiple of 8


class Side:
    """Region and source of `size` bytes each, of one memory. Raises SetupError."""

    def __init__(
        self, address: str, size: int, memory: Memory, transports: str, token: int, *, trust_network: bool = False
    ) -> None:
        module = native()  # before memory is allocated
        problem = memory_problem(size, memory)
        if problem:
            raise SetupError(f"{size} bytes cannot be measured ({problem}) give a smaller --largest")
        self._region, self._source = allocate(memory, size), allocate(memory, size)
        self._is_device = memory.is_device
        self._own = {"token": token, "trust_network": trust_network}
        self.rank = module.Rank({
            "transports": transports, "trust_network": trust_network, "address": address, "port": 0, "region": REGION, "bytes": size, "memory": memory.kind,
            "given": self._region, "source_given": self._source, "read": True, "write": True, "token": token,
        })  # fmt: skip

    def connect(self, connection: dict[str, Any]) -> None:
        """To the other side's region; the token and whether the network is trusted are this side's, whatever the other says."""
        self.rank.connect(connection | self._own)

    def fill(self, of_region: bool, size: int, seed: int) -> None:
        """Writes the pattern to the first `size` bytes of the region, or of the source."""
        if not self._is_device:
            self.rank.fill(of_region, size, seed)
            return
        scratch = np.empty(min(size, PIECE_BYTES), np.uint8)
        for at in range(0, size, PIECE_BYTES):
            piece = scratch[: min(PIECE_BYTES, size - at)]
            native().fill_pattern(piece, seed, at)
            self._part(of_region).write(at, piece)

    def check(self, of_region: bool, size: int, seed: int) -> int:
        """The first place that differs from the pattern; `size`: none."""
        if not self._is_device:
            return int(self.rank.check(of_region, size, seed))
        scratch = np.empty(min(size, PIECE_BYTES), np.uint8)
        for at in range(0, size, PIECE_BYTES):
            piece = scratch[: min(PIECE_BYTES, size - at)]
            self._part(of_region).read(at, piece)
            differs = int(native().first_difference(piece, seed, at))
            if differs < piece.size:
                return at + differs
        return size

    def _part(self, of_region: bool) -> CudaMemory:
        part = self._region if of_region else self._source
        assert part is not None
        return part


def memory_problem(size: int, memory: Memory) -> str | None:
    """Why two regions of `size` bytes of the host cannot be had; None: they can. The kernel would promise them, and end a process when they are used."""
    if memory.is_device:  # the driver refuses by itself
        return None
    found = re.search(r"^MemAvailable: +(\d+) kB", read_text("/proc/meminfo"), flags=re.MULTILINE)
    if found is None or 2 * size <= int(found[1]) * 1024:
        return None
    return f"two regions of {size} bytes take {2 * size >> 20} MiB, {int(found[1]) >> 10} MiB are free"
