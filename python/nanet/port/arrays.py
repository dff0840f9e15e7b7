# SPDX-License-Identifier: Apache-2.0
"""Arrays to and from other libraries without a copy: a buffer as a GPU sees it, and anybody's array as bytes to send.

DLPack and __cuda_array_interface__ are the seams; docs/design/gpu-python.md says which library takes what.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from nanet.port.port import Completion

__all__ = ["CPU", "CUDA", "CUDA_HOST", "DeviceArray", "Waitable", "dlpack", "host_bytes"]

# Kinds of DLPack devices.
CPU = 1
CUDA = 2
CUDA_HOST = 3  # memory of the host that CUDA sees

Export: TypeAlias = Callable[[int, int], Any]  # (kind, number) of a DLPack device -> the array as that device sees it


class Waitable(Protocol):
    """An event or a stream of CuPy, PyTorch or Numba."""

    def synchronize(self) -> object:
        """Returns when the GPU has come there."""


class DeviceArray:
    """A part of pinned memory as a GPU sees it, no copy: an array for CuPy, PyTorch and Numba.

    cupy.asarray, torch.as_tensor(..., device="cuda"), numba.cuda.as_cuda_array and the kernels of Numba take it as it is. The GPU
    may write there too, until the completion is released; from then on every access raises ValueError. What was made of it before
    stays memory that can be read, as long as it lives, but shows newer packets.
    """

    def __init__(self, completion: Completion, address: int, shape: tuple[int, ...], dtype: DTypeLike, export: Export) -> None:
        self._completion = completion
        self._address = address
        self._export = export
        self.shape = shape
        """Length in each dimension, in C order."""
        self.dtype = np.dtype(dtype)
        """Type of an item."""

    def __repr__(self) -> str:
        return f"<nanet.DeviceArray {self.dtype} {list(self.shape)}, GPU {self._completion.port.device_index}>"

    @property
    def address(self) -> int:
        """Where the GPU sees the first byte, for a kernel that takes an address."""
        self._completion.check_held()
        return self._address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3. Not read-only, since PyTorch takes no array that is; no stream, since the packets are there already."""
        address = self.address if math.prod(self.shape) else 0
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (address, False), "strides": None, "version": 3, "stream": None,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        """(kind, number) of the GPU."""
        return CUDA, self._completion.port.device_index or 0

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The DLPack capsule. Raises BufferError for a device that does not see the memory, and for copy=True."""
        return dlpack(self._completion, self._export, dl_device or self.__dlpack_device__(), max_version, copy)


def dlpack(
    completion: Completion, export: Export, device: tuple[int, int], max_version: tuple[int, int] | None, copy: bool | None
) -> Any:
    """What `export` gives for a DLPack device, as a capsule."""
    completion.check_held()
    gpu = completion.port.device_index
    seen = [(CPU, 0)] if gpu is None else [(CPU, 0), (CUDA_HOST, 0), (CUDA, gpu)]
    if tuple(device) not in seen:
        kind = completion.port.config.memory_kind
        raise BufferError(
            f"DLPack device {tuple(device)} does not see the buffer (memory {kind} is seen by {', '.join(map(str, seen))})"
            " ask for one of these, or copy"
        )
    return export(*device).__dlpack__(max_version=max_version, copy=copy)


def host_bytes(payload: Any) -> memoryview | bytes | NDArray[np.uint8]:
    """The bytes of `payload` in C order where the host can read them: in place if it can, otherwise a copy.

    payload: bytes, an array of NumPy, CuPy, PyTorch or Numba, or a Completion. With one of a GPU this waits for the GPU: for the
    stream that the array names, or else for all its work. Nothing keeps the payload alive but the caller.
    Raises TypeError for anything else, ValueError for an array of a GPU with gaps, SetupError without GPU code in nanet.
    """
    seen_by_gpu = getattr(payload, "__cuda_array_interface__", None)
    if seen_by_gpu is not None:
        return _from_gpu(seen_by_gpu)
    try:
        view = memoryview(payload)
    except TypeError:
        if not hasattr(payload, "__dlpack__"):
            raise
        view = memoryview(np.from_dlpack(payload))
    return view if view.c_contiguous else view.tobytes()


def _from_gpu(interface: dict[str, Any]) -> NDArray[np.uint8]:
    from nanet import _core

    shape, item_bytes = interface["shape"], np.dtype(interface["typestr"]).itemsize
    step = item_bytes
    for length, stride in zip(reversed(shape), reversed(interface.get("strides") or ()), strict=False):
        if length > 1 and stride != step:
            raise ValueError("the array has gaps (it is a view of a larger one) send a contiguous copy of it")
        step *= length
    return np.asarray(_core.host_view(interface["data"][0], math.prod(shape) * item_bytes, interface.get("stream") or 0))
