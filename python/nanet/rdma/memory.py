# SPDX-License-Identifier: Apache-2.0
"""The kinds of memory that `nanet rdma` can use, and memory of CUDA, allocated through the driver's C interface (libcuda).

Needs no CUDA toolkit and works without GPU code in nanet. Numbers: cuda.h of CUDA 13.
"""

from __future__ import annotations

import ctypes
import re
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet._core import SetupError
from nanet.machine.gpu_driver import error_text

HOST_KINDS = ("shared", "host")
CUDA_KINDS = ("cuda", "pinned")
HOST_ALLOC_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context
OTHER = "use --memory shared or host"


@dataclass(frozen=True)
class Memory:
    """A kind, and for CUDA's the GPU: of `cuda` the one whose memory it is, of `pinned` one through whose driver it is pinned."""

    kind: str = "shared"
    device: int = 0

    @property
    def is_device(self) -> bool:
        """Whether no CPU can touch it."""
        return self.kind == "cuda"

    @property
    def is_cuda(self) -> bool:
        """Whether CUDA allocates it."""
        return self.kind in CUDA_KINDS

    def __str__(self) -> str:
        return f"{self.kind}:{self.device}" if self.is_cuda else self.kind


def parse_memory(text: str) -> Memory:
    """`shared`, `host`, `cuda[:DEVICE]` or `pinned[:DEVICE]`. Raises SetupError."""
    found = re.fullmatch(r"([a-z]+)(?::(\d{1,4}))?", text, flags=re.ASCII)
    kind = found[1] if found else text
    if kind == "managed":
        why = "the driver moves it between host and GPU while a NIC or another process writes to it"
        raise SetupError(f"memory '{text}' cannot be used ({why}) use cuda or pinned")
    if found is None or (kind not in HOST_KINDS and kind not in CUDA_KINDS):
        raise SetupError(f"there is no memory '{text}' (there are shared, host, cuda and pinned) name one of these")
    if kind in HOST_KINDS and found[2] is not None:
        raise SetupError(f"memory '{text}' cannot be used ({kind} memory does not belong to a GPU) write {kind}")
    return Memory(kind, int(found[2] or 0))


def transports_for(named: str, *memories: Memory) -> str:
    """As UCX_TLS: a list of ours with CUDA's transports beside it where a GPU's memory takes part. A list that a user gave is not changed."""
    return f"{named},cuda" if named and any(one.is_device for one in memories) else named


def allocate(memory: Memory, size: int) -> CudaMemory | None:
    """Of CUDA if that is wanted; None: the library allocates it itself. Raises SetupError."""
    return CudaMemory(memory, size) if memory.is_cuda else None


class CudaMemory:
    """`bytes` bytes of a GPU, or of the host and pinned, zeroed, at `address`. Freed when nothing refers to it any more.

    Makes the GPU's primary context current in the thread that calls, which UCX needs of a thread that serves or uses such memory.
    """

    def __init__(self, memory: Memory, size: int) -> None:
        if size <= 0:
            raise SetupError(f"{size} bytes of memory {memory} cannot be allocated (nothing to expose) give 1 or more")
        self.memory, self.bytes = memory, size
        self._what = f"{size} bytes of memory {memory}"
        self._cuda = _load(self._what)
        count, device, self._context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if memory.device >= count.value:
            there = f"this machine has {count.value}, counted from 0" if count.value else "the driver sees no GPU"
            raise SetupError(f"{self._what} cannot be allocated ({there}) name another GPU, or {OTHER}")
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(memory.device))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self.make_current()
        place = ctypes.c_uint64()
        if memory.is_device:
            self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
        else:
            self._call("cuMemHostAlloc", ctypes.byref(place), ctypes.c_size_t(size), ctypes.c_uint(HOST_ALLOC_PORTABLE))
        self.address = place.value
        # At the end of the process the driver frees it, after whatever still uses it.
        weakref.finalize(self, _free, self._cuda, self._context, self.address, memory.is_device).atexit = False
        if memory.is_device:
            self._call("cuMemsetD8_v2", place, ctypes.c_ubyte(0), ctypes.c_size_t(size))
            self._call("cuCtxSynchronize")
        else:
            ctypes.memset(self.address, 0, size)

    def make_current(self) -> None:
        """For a thread other than the one that allocated it."""
        self._call("cuCtxSetCurrent", self._context)

    def write(self, offset_bytes: int, data: NDArray[np.uint8]) -> None:
        """Copies data (uint8, contiguous) to it. All of it is there afterwards."""
        at = self._place(offset_bytes, data)
        if self.memory.is_device:
            self._call("cuMemcpyHtoD_v2", at, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.size))
            self._call("cuCtxSynchronize")
        else:
            ctypes.memmove(at.value, data.ctypes.data, data.size)

    def read(self, offset_bytes: int, data: NDArray[np.uint8]) -> None:
        """Fills data (uint8, contiguous) from it."""
        at = self._place(offset_bytes, data)
        if self.memory.is_device:
            self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(data.ctypes.data), at, ctypes.c_size_t(data.size))
        else:
            ctypes.memmove(data.ctypes.data, at.value, data.size)

    def _place(self, offset_bytes: int, data: NDArray[np.uint8]) -> ctypes.c_uint64:
        if offset_bytes < 0 or offset_bytes + data.size > self.bytes or not data.flags.c_contiguous:
            raise ValueError(f"{data.size} bytes at {offset_bytes} of {self._what}")
        self.make_current()
        return ctypes.c_uint64(self.address + offset_bytes)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code != 0:
            raise SetupError(f"{self._what} cannot be used ({name}: {error_text(self._cuda, code)}) see nvidia-smi, or {OTHER}")


def _load(what: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        text = f"{what} cannot be allocated (no GPU: libcuda.so.1 is missing)"
        raise SetupError(f"{text} install NVIDIA's driver if there is a GPU, or {OTHER}") from None


def _free(cuda: ctypes.CDLL, context: ctypes.c_void_p, address: int, is_device: bool) -> None:
    cuda.cuCtxSetCurrent(context)
    if is_device:
        cuda.cuMemFree_v2(ctypes.c_uint64(address))
    else:
        cuda.cuMemFreeHost(ctypes.c_void_p(address))
