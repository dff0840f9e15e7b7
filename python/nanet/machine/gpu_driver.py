# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's driver says of the GPUs here, asked through its C interfaces (libcuda, and NVML for the PCIe link).

Needs no CUDA toolkit, makes no context on a GPU, and works without GPU code in nanet. Numbers: cuda.h and nvml.h of CUDA 13.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

# CUdevice_attribute
ATTRIBUTES = {
    "multiprocessors": 16,
    "kernel_time_limit": 17,
    "map_host_memory": 19,
    "compute_mode": 20,
    "capability_major": 75,
    "capability_minor": 76,
    "same_host_addresses": 91,  # of registered host memory, on the GPU
    "register_host_memory": 99,
    "gpudirect_rdma": 116,
    "rdma_writes_ordering": 118,  # 0: none; 100: this GPU sees what a NIC writes in order; 200: others too
    "dma_buf": 124,
}
COMPUTE_MODE_PROHIBITED = 2


@dataclass(frozen=True)
class PcieLink:
    """Lanes in use and possible with this GPU in this slot; the generation possible (an idle link is slower for a while)."""

    generation: int
    width: int
    width_max: int


@dataclass(frozen=True)
class Gpu:
    """One GPU. `attributes` has the keys of ATTRIBUTES; one that this driver does not know is 0."""

    index: int
    name: str
    memory_gib: float
    bus_id: str
    attributes: dict[str, int] = field(default_factory=dict)
    link: PcieLink | None = None

    @property
    def capability(self) -> int:
        """10 * major + minor, as in sm_90."""
        return 10 * self.attributes["capability_major"] + self.attributes["capability_minor"]


@dataclass(frozen=True)
class Driver:
    """`cuda_version`: 1000 * major + 10 * minor, the newest that it runs; 0 without a driver. `problem`: why there are no GPUs."""

    cuda_version: int = 0
    problem: str = ""
    gpus: tuple[Gpu, ...] = ()
    peers: tuple[tuple[int, int], ...] = ()  # (GPU, other): it can read and write the other's memory without the host's


def ask_driver() -> Driver:
    """Never throws: a driver that is absent or broken is a finding."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Driver(problem="libcuda.so.1 is missing")
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    count = ctypes.c_int()
    for name, arguments in (("cuInit", [ctypes.c_uint(0)]), ("cuDeviceGetCount", [ctypes.byref(count)])):
        code = getattr(cuda, name)(*arguments)
        if code != 0:
            return Driver(version.value, f"{name}: {error_text(cuda, code)}")
    if count.value == 0:
        return Driver(version.value, "the driver sees no GPU")
    nvml = _load_nvml()
    gpus = tuple(_ask_gpu(cuda, nvml, index) for index in range(count.value))
    if nvml is not None:
        nvml.nvmlShutdown()
    return Driver(version.value, "", gpus, tuple(_ask_peers(cuda, count.value)))


def error_text(cuda: ctypes.CDLL, code: int) -> str:
    """What the driver calls an error (CUresult)."""
    text = ctypes.c_char_p()
    if cuda.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text)) != 0 or text.value is None:
        return f"error {code}"
    return text.value.decode()


def _ask_gpu(cuda: ctypes.CDLL, nvml: ctypes.CDLL | None, index: int) -> Gpu:
    device, size = ctypes.c_int(), ctypes.c_size_t()
    name, bus_id = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    cuda.cuDeviceGet(ctypes.byref(device), ctypes.c_int(index))
    cuda.cuDeviceGetName(name, ctypes.c_int(256), device)
    cuda.cuDeviceGetPCIBusId(bus_id, ctypes.c_int(32), device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    attributes = {}
    for key, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        known = cuda.cuDeviceGetAttribute(ctypes.byref(value), ctypes.c_int(number), device) == 0
        attributes[key] = value.value if known else 0
    link = _ask_link(nvml, bus_id.value) if nvml is not None else None
    return Gpu(index, name.value.decode(), round(size.value / 2**30, 1), bus_id.value.decode(), attributes, link)


def _ask_peers(cuda: ctypes.CDLL, count: int) -> Iterator[tuple[int, int]]:
    for one, other in itertools.permutations(range(count), 2):
        device, peer, can = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        cuda.cuDeviceGet(ctypes.byref(device), ctypes.c_int(one))
        cuda.cuDeviceGet(ctypes.byref(peer), ctypes.c_int(other))
        if cuda.cuDeviceCanAccessPeer(ctypes.byref(can), device, peer) == 0 and can.value:
            yield one, other


def _load_nvml() -> ctypes.CDLL | None:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return nvml if nvml.nvmlInit_v2() == 0 else None


def _ask_link(nvml: ctypes.CDLL, bus_id: bytes) -> PcieLink | None:
    handle = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByPciBusId_v2(ctypes.c_char_p(bus_id), ctypes.byref(handle)) != 0:
        return None
    values = []
    for what in ("MaxPcieLinkGeneration", "CurrPcieLinkWidth", "MaxPcieLinkWidth"):
        value = ctypes.c_uint()
        if getattr(nvml, f"nvmlDeviceGet{what}")(handle, ctypes.byref(value)) != 0:
            return None
        values.append(value.value)
    return PcieLink(*values)
