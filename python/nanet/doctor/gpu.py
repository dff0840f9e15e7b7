# SPDX-License-Identifier: Apache-2.0
"""The GPU part of `nanet doctor`: driver, GPUs, what nanet was built for, and each way to bring packets to a GPU, with the reason where it cannot."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nanet.machine.check import OK, WARN, Check, Lister, Reader
from nanet.machine.gpu_driver import COMPUTE_MODE_PROHIBITED, Driver, Gpu

NVIDIA, MELLANOX = "0x10de", "0x15b3"
RDMA_WRITES_ORDERED = 100  # CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER: for the GPU itself
LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib",
    "/usr/local/lib/x86_64-linux-gnu", "/usr/local/lib/aarch64-linux-gnu", "/usr/local/lib64",
    "/opt/mellanox/dpdk/lib/x86_64-linux-gnu", "/opt/mellanox/dpdk/lib/aarch64-linux-gnu",
)  # fmt: skip


@dataclass(frozen=True)
class Obstacle:
    """What a way lacks: problem (why). `command` mends it on this machine as it is; empty where hardware or software has to be added."""

    text: str
    command: str = ""


@dataclass(frozen=True)
class Machine:
    """What the checks look at. `code` is build_info()["gpu_code"], None without GPU code in this nanet; `back_ends` those built in."""

    read: Reader
    names: Lister
    driver: Driver
    code: Mapping[str, Any] | None
    back_ends: Mapping[str, bool]


def gpu_checks(machine: Machine) -> list[Check]:
    """All findings about GPUs."""
    gpus = machine.driver.gpus
    return [
        _driver(machine), *(_gpu(gpu) for gpu in gpus), _code(machine),
        _pinned(machine), _dma_buf(machine), _peer_memory(machine), _dpdk(machine), _gdrcopy(machine),
    ]  # fmt: skip


def runs_on(architectures: str, capability: int) -> bool:
    """Whether code for these architectures (as CMake names them, blanks between) runs on a GPU of this capability (90: sm_90)."""
    for word in architectures.split():
        named = re.fullmatch(r"(\d+)([af]?)(-real|-virtual)?", word)
        if named is None:
            return True  # all, all-major, native: CMake chose
        number, special, kind = int(named[1]), named[2], named[3]
        machine_code = capability // 10 == number // 10 and capability >= number
        if number == capability or (
            not special and ((kind != "-virtual" and machine_code) or (kind != "-real" and capability >= number))
        ):
            return True
    return False


def _driver(machine: Machine) -> Check:
    driver = machine.driver
    if driver.gpus:
        release = machine.read("/sys/module/nvidia/version")
        return Check("GPU driver", OK, f"CUDA {_version(driver.cuda_version)}" + (f", release {release}" if release else ""))
    card = _pci_device(machine, NVIDIA, "0x03")
    if card is None:
        return Check("GPU driver", OK, f"no GPU ({driver.problem})")
    text = f"a GPU at {card}, but no driver for it ({driver.problem})"
    return Check("GPU driver", WARN, text, "install NVIDIA's driver, 580 or newer, then: sudo modprobe nvidia && nvidia-smi")


def _gpu(gpu: Gpu) -> Check:
    name = f"GPU {gpu.index}"
    major, minor = divmod(gpu.capability, 10)
    text = f"{gpu.name}, compute capability {major}.{minor}, {gpu.memory_gib:g} GiB"
    if gpu.link is None:
        text += f", PCIe {gpu.bus_id} (the driver does not report the link's width)"
    else:
        text += f", PCIe {gpu.bus_id} Gen{gpu.link.generation} x{gpu.link.width}"
        if gpu.link.width < gpu.link.width_max:
            return Check(
                name,
                WARN,
                f"{text} of x{gpu.link.width_max}: copies and reads in place are slower",
                "put it into a slot with all lanes",
            )
    if gpu.attributes["kernel_time_limit"]:
        text += "; the driver ends kernels after a few seconds (it drives a display)"
        return Check(
            name, WARN, text, "choose another GPU for the persistent runtime, or: sudo systemctl isolate multi-user.target"
        )
    if gpu.attributes["compute_mode"] == COMPUTE_MODE_PROHIBITED:
        return Check(name, WARN, f"{text}; its compute mode forbids every program", f"sudo nvidia-smi -i {gpu.index} -c DEFAULT")
    return Check(name, OK, text)


def _code(machine: Machine) -> Check:
    name, driver = "GPU code", machine.driver
    if machine.code is None:
        if driver.gpus:
            return Check(name, WARN, "not built in: this nanet uses CPUs only", "make cuda")
        return Check(name, OK, "not built in (make cuda builds it, on any machine)")
    built, architectures = int(machine.code["cuda_version"]), str(machine.code["architectures"])
    text = f"CUDA {_version(built)}, for {architectures}"
    if driver.gpus and driver.cuda_version // 1000 < built // 1000:
        text += f"; the driver runs code up to CUDA {_version(driver.cuda_version)}"
        return Check(name, WARN, text, "install a driver for it: 580 or newer")
    strangers = [gpu for gpu in driver.gpus if not runs_on(architectures, gpu.capability)]
    if strangers:
        text += f"; it does not run on GPU {', '.join(str(gpu.index) for gpu in strangers)}"
        wanted = ";".join(sorted({str(gpu.capability) for gpu in driver.gpus}))
        return Check(name, WARN, text, f"make cuda CUDA_ARCHITECTURES='{wanted}'")
    return Check(name, OK, text)


# ---- the ways of a packet to a GPU. Each says `can: ...`, or `cannot: problem (why), ...; suggestion`.


def _pinned(machine: Machine) -> Check:
    able, obstacles = _with_attribute(machine, "map_host_memory", "map host memory")
    text = f"GPU {_numbers(able)} reads buffers in host memory in place, and payloads where an xdp:// or dpdk:// link leaves them (payloads: in_place)"
    if able and not all(gpu.attributes["register_host_memory"] for gpu in able):
        text += ", but only those that CUDA allocated (no huge pages: cudaHostRegister is not supported)"
    elif able and not all(gpu.attributes["same_host_addresses"] for gpu in able):
        text += ", at addresses of its own"
    return _way("packets to pinned memory", obstacles, text, "any NVIDIA GPU with its driver will do, and any NIC")


def _dma_buf(machine: Machine) -> Check:
    able, obstacles = _with_attribute(machine, "dma_buf", "export dma-buf", "needs the open kernel modules and Linux 5.12")
    nics, absent = _rdma_nics(machine)
    text = f"{', '.join(nics)} writes into memory of GPU {_numbers(able)}{_link_note(machine, 'rdma')}"
    return _way("packets by dma-buf", obstacles + absent, text, "needs a data-centre GPU and a ConnectX or another RDMA NIC")


def _peer_memory(machine: Machine) -> Check:
    able, obstacles = _with_attribute(machine, "gpudirect_rdma", "do GPUDirect RDMA")
    nics, absent = _rdma_nics(machine)
    text = f"{', '.join(nics)} writes into memory of GPU {_numbers(able)}{_link_note(machine, 'rdma')}"
    obstacles += absent + _module(machine, "nvidia_peermem")
    return _way("packets by peer memory", obstacles, text, "needs a data-centre GPU, a ConnectX NIC and the module nvidia_peermem")


def _dpdk(machine: Machine) -> Check:
    """What `payload_memory: gpu` of a dpdk:// link needs."""
    able, obstacles = _with_attribute(machine, "gpudirect_rdma", "do GPUDirect RDMA")
    ordered = [gpu for gpu in able if gpu.attributes["rdma_writes_ordering"] >= RDMA_WRITES_ORDERED]
    if able and not ordered:
        obstacles.append(Obstacle("no GPU here sees a NIC's writes in order (its driver says so)"))
    nic = _pci_device(machine, MELLANOX, "0x02")
    if nic is None:
        obstacles.append(Obstacle(f"no ConnectX NIC (no network device of PCI vendor {MELLANOX[2:]})"))
    if not _has_library(machine, "librte_net_mlx5.so"):
        obstacles.append(Obstacle("no driver for a ConnectX in DPDK (librte_net_mlx5.so is missing)"))
    obstacles += _module(machine, "nvidia_peermem")
    text = f"the NIC at {nic} can be told to write into memory of GPU {_numbers(ordered)} (payload_memory: gpu; not yet run on hardware)"
    text += _link_note(machine, "dpdk") + ("" if machine.code is not None else ", but this nanet has no GPU code")
    return _way("packets by DPDK", obstacles, text, "needs a data-centre GPU, a ConnectX NIC and the module nvidia_peermem")


def _gdrcopy(machine: Machine) -> Check:
    able, obstacles = _with_attribute(machine, "gpudirect_rdma", "do GPUDirect RDMA")
    obstacles += _module(machine, "gdrdrv")
    if not any(obstacle.text.startswith("module") for obstacle in obstacles) and "gdrdrv" not in machine.names("/dev"):
        obstacles.append(Obstacle("no device file (/dev/gdrdrv is missing)"))
    if not _has_library(machine, "libgdrapi.so"):
        obstacles.append(Obstacle("no library (libgdrapi.so is missing)"))
    text = f"the CPU writes into memory of GPU {_numbers(able)}"
    return _way("CPU writes by gdrcopy", obstacles, text, "needs a data-centre GPU, and gdrcopy with its kernel module")


def _way(name: str, obstacles: list[Obstacle], can: str, needs: str) -> Check:
    """A way that some commands would open is a warning; one that this machine was not made for is none."""
    if not obstacles:
        return Check(name, OK, f"can: {can}")
    text = "cannot: " + ", ".join(obstacle.text for obstacle in obstacles)
    if all(obstacle.command for obstacle in obstacles):
        return Check(name, WARN, text, " && ".join(obstacle.command for obstacle in obstacles))
    return Check(name, OK, f"{text}; {needs}")


def _with_attribute(machine: Machine, key: str, verb: str, why: str = "its driver says so") -> tuple[list[Gpu], list[Obstacle]]:
    """The GPUs that can do it, and what stands against it where none can."""
    able = [gpu for gpu in machine.driver.gpus if gpu.attributes[key]]
    if able:
        return able, []
    if not machine.driver.gpus:
        return [], [Obstacle(f"no GPU ({machine.driver.problem})")]
    return [], [Obstacle(f"no GPU here can {verb} ({why})")]


def _rdma_nics(machine: Machine) -> tuple[list[str], list[Obstacle]]:
    """RDMA NICs that are hardware: those made by software have no PCI device."""
    folder = "/sys/class/infiniband"
    nics = [name for name in sorted(machine.names(folder)) if machine.read(f"{folder}/{name}/device/vendor")]
    return nics, [] if nics else [Obstacle(f"no RDMA NIC (no hardware in {folder})")]


def _module(machine: Machine, module: str) -> list[Obstacle]:
    if module in machine.names("/sys/module"):
        return []
    file = module.replace("_", "[-_]")
    if re.search(rf"/{file}\.ko", machine.read(f"/lib/modules/{platform.release()}/modules.dep")):
        return [Obstacle(f"module {module} is not loaded (it is installed)", f"sudo modprobe {module}")]
    return [Obstacle(f"module {module} is not loaded (nor installed for this kernel)")]


def _pci_device(machine: Machine, vendor: str, kind: str) -> str | None:
    """The address of the first PCI device of a vendor whose class begins with `kind`."""
    folder = "/sys/bus/pci/devices"
    for address in sorted(machine.names(folder)):
        if machine.read(f"{folder}/{address}/vendor") == vendor and machine.read(f"{folder}/{address}/class").startswith(kind):
            return address
    return None


def _has_library(machine: Machine, name: str) -> bool:
    """Whether a shared library lies in a usual folder, or in one for DPDK's drivers below it."""
    for folder in LIBRARY_FOLDERS:
        names = machine.names(folder)
        drivers = [f"{folder}/dpdk/{pmds}" for pmds in machine.names(f"{folder}/dpdk")] if "dpdk" in names else []
        if any(entry.startswith(name) for place in (folder, *drivers) for entry in machine.names(place)):
            return True
    return False


def _link_note(machine: Machine, back_end: str) -> str:
    return "" if machine.back_ends.get(back_end) else f", but this nanet has no {back_end} link built in"


def _numbers(gpus: list[Gpu]) -> str:
    return ", ".join(str(gpu.index) for gpu in gpus)


def _version(cuda_version: int) -> str:
    return f"{cuda_version // 1000}.{cuda_version % 1000 // 10}"
