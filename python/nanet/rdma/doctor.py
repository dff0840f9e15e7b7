# SPDX-License-Identifier: Apache-2.0
"""`nanet rdma doctor`: UCX and how it was built, RDMA devices and their addresses, modules, limits, and the ways from a NIC to a GPU.

As in `nanet doctor`, what is absent and not needed is ok, and says what it would need; what is there and cannot be used is a warning.
"""

from __future__ import annotations

import itertools
import os
import re
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nanet.machine.check import FAIL, OK, WARN, Check
from nanet.machine.gpu_driver import Driver, ask_driver
from nanet.rdma import INSTALL, NotDone, native
from nanet.rdma.acs import acs_check
from nanet.rdma.tools import UcxBuild, find_tools, read_build
from nanet.result import files
from nanet.result.keys.checks import ChecksResult

SHARED_MEMORY_BYTES = 1 << 30  # of /dev/shm: less, and a region of 1 GiB has no room there
DMA_BUF_SINCE = (5, 12)  # kernel that registers dma-bufs with RDMA NICs
ROCE_V2, NO_GID = "RoCE v2", "0000:0000:0000:0000:0000:0000:0000:0000"


@dataclass(frozen=True)
class System:
    """What the checks look at. root: where /proc, /sys and /dev are."""

    root: Path
    driver: Driver
    ucx_version: str  # empty: ucx_problem says why there is none
    ucx_problem: str
    build: UcxBuild | None  # None: UCX's tools are not there
    locked_bytes: int | None  # that this process may lock; None: all
    shared_bytes: int  # free in /dev/shm

    def text(self, path: str) -> str:
        """Of a small file; empty where there is none."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def names(self, path: str) -> list[str]:
        """In a folder; none where there is no such folder."""
        try:
            return sorted(one.name for one in (self.root / path).iterdir())
        except OSError:
            return []


def this_system() -> System:
    """This machine, this process, and the UCX that this nanet would use."""
    version, problem = "", ""
    try:
        version = str(native().ucx_version())
    except NotDone as error:
        problem = str(error).removesuffix(f" {INSTALL}")
    tools = find_tools()
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return System(
        Path("/"), ask_driver(), version, problem, read_build(tools) if tools else None,
        None if soft == resource.RLIM_INFINITY else soft, _free_bytes("/dev/shm"),
    )  # fmt: skip


def run(system: System | None = None) -> ChecksResult:
    """The result as `nanet rdma doctor --json` writes it."""
    found = checks(system or this_system())
    worst = next((state for state in (FAIL, WARN) if any(check.state == state for check in found)), OK)
    return {**files.base("rdma doctor"), "state": worst, "checks": [check.plain() for check in found]}


def checks(system: System) -> list[Check]:
    """All findings."""
    nics = system.names("sys/class/infiniband")
    return [
        _library(system), *_build(system, nics), _shared_memory(system), _locked(system, nics), _uverbs(system, nics), _soft_roce(system),
        *(_nic(system, nic) for nic in nics), *([] if nics else [Check("RDMA devices", OK, "none in /sys/class/infiniband")]),
        _gpu_memory(system), _gpu_to_gpu(system), _peer_memory(system), _dma_buf(system), acs_check(system.root / "sys/bus/pci/devices", _is_needed(system, nics)),
    ]  # fmt: skip


def _library(system: System) -> Check:
    if not system.ucx_version:
        return Check("UCX", FAIL, system.ucx_problem, INSTALL)
    return Check("UCX", OK, f"{system.ucx_version} is loaded")


def _build(system: System, nics: Sequence[str]) -> list[Check]:
    build = system.build
    if build is None:
        return [Check("UCX build", OK, f"not known: ucx_info is not next to it ({system.ucx_version or 'no UCX'})")]
    if build.problem:
        return [Check("UCX build", WARN, f"ucx_info fails: {build.problem}", "see whether the tools fit the library")]
    told = Check("UCX build", OK, f"{build.version}: {build.flags or 'it does not say'}")
    if build.version != system.ucx_version:
        text = (
            f"ucx_info is of {build.version}, the library of {system.ucx_version or 'no UCX'}: the lines on transports may be wrong"
        )
        told = Check("UCX build", WARN, text, "set PATH to the tools of the library")
    listed = sorted(set(build.transports))
    return [told, Check("UCX transports", OK, ", ".join(listed) or "none"), _verbs(build, nics), _cuda(system, build)]


def _verbs(build: UcxBuild, nics: Sequence[str]) -> Check:
    found = sorted({name for name in build.transports if re.match(r"rc|dc|ud", name)})
    if found:
        return Check("UCX over verbs", OK, ", ".join(found))
    if "--without-verbs" in build.flags:
        text = "this UCX was built without InfiniBand and RoCE (--without-verbs)"
        if nics:
            return Check("UCX over verbs", WARN, f"{text}: {', '.join(nics)} cannot be used", "set UCX_ROOT to a UCX with verbs")
        return Check("UCX over verbs", OK, text)
    if nics:
        text = f"no transport, though there is {', '.join(nics)}"
        return Check("UCX over verbs", WARN, text, "run ucx_info -d, and see the lines below")
    return Check("UCX over verbs", OK, "no transport (no RDMA device)")


def _cuda(system: System, build: UcxBuild) -> Check:
    found = sorted({name for name in build.transports if name.startswith(("cuda", "gdr"))})
    if found:
        return Check("UCX with CUDA", OK, ", ".join(found))
    built = re.search(r"--with-cuda(?!=no)", build.flags) is not None
    if not system.driver.gpus:
        return Check(
            "UCX with CUDA", OK, f"no transport (no GPU: {system.driver.problem}; built {'with' if built else 'without'} CUDA)"
        )
    if built:
        return Check("UCX with CUDA", WARN, "built with CUDA, but no transport here", "see UCX_LOG_LEVEL=info ucx_info -d")
    return Check("UCX with CUDA", WARN, "this UCX was built without CUDA: no memory of a GPU", "set UCX_ROOT to a UCX with CUDA")


def _shared_memory(system: System) -> Check:
    text = f"{system.shared_bytes / 2**30:.3g} GiB free in /dev/shm"
    if system.shared_bytes < SHARED_MEMORY_BYTES:
        mend = "mount -o remount,size=4G /dev/shm, or for a container --shm-size=4g"
        return Check("shared memory", WARN, f"{text}: larger regions cannot be shared", mend)
    return Check("shared memory", OK, text)


def _locked(system: System, nics: Sequence[str]) -> Check:
    if system.locked_bytes is None:
        return Check("locked memory", OK, "no limit")
    text = f"{system.locked_bytes / 2**20:.4g} MiB may be locked"
    if not nics:
        return Check("locked memory", OK, f"{text} (RDMA hardware would need more; shared memory and TCP do not)")
    mend = "ulimit -l unlimited, or '* - memlock unlimited' in /etc/security/limits.conf and a new log-in"
    return Check("locked memory", WARN, f"{text}: no larger region can be registered with {', '.join(nics)}", mend)


def _uverbs(system: System, nics: Sequence[str]) -> Check:
    name, loaded = "ib_uverbs", "ib_uverbs" in system.names("sys/module")
    devices = [one for one in system.names("dev/infiniband") if one.startswith("uverbs")]
    if loaded and (devices or not nics):
        return Check(name, OK, "loaded, " + (f"/dev/infiniband has {', '.join(devices)}" if devices else "no device"))
    if loaded:
        return Check(name, WARN, "loaded, but /dev/infiniband has no uverbs device", "give the container --device /dev/infiniband")
    if nics:
        return Check(name, WARN, f"the module is not loaded: programs cannot reach {', '.join(nics)}", "sudo modprobe ib_uverbs")
    return Check(name, OK, f"not loaded ({_installed(system, name)}; only RDMA devices need it)")


def _soft_roce(system: System) -> Check:
    if "rdma_rxe" in system.names("sys/module"):
        return Check("rdma_rxe", OK, "loaded: RoCE in software, for tests")
    return Check("rdma_rxe", OK, f"not loaded ({_installed(system, 'rdma_rxe')}; RoCE in software, for tests)")


def _nic(system: System, nic: str) -> Check:
    """One device with its ports, and the GIDs that RoCE needs."""
    folder = f"sys/class/infiniband/{nic}"
    kind = "hardware" if system.names(f"{folder}/device") else "software"
    parts, problems = [], []
    for port in system.names(f"{folder}/ports"):
        at = f"{folder}/ports/{port}"
        layer, state = system.text(f"{at}/link_layer"), system.text(f"{at}/state").rpartition(": ")[2]
        gids = _gids(system, at)
        part = f"port {port} {layer} {state} {system.text(f'{at}/rate')}".rstrip()
        if layer == "Ethernet":
            of_v2 = [f"{index} {gid}" for index, gid, form in gids if form == ROCE_V2]
            part += f", RoCE v2 GIDs: {'; '.join(of_v2) or 'none'}"
            if state == "ACTIVE" and not of_v2:
                problems.append("no RoCE v2 GID (the interface has no address)")
        else:
            part += f", {len(gids)} GIDs"
        if state != "ACTIVE":
            problems.append(f"port {port} is {state or 'in no state'}")
        parts.append(part)
    text = f"{kind}; {'; '.join(parts) or 'no port'}"
    if problems or not parts:
        mend = "ip addr add ADDRESS dev IF; ip link set IF up, or for InfiniBand: check cable and subnet manager"
        return Check(nic, WARN, f"{text}: {'; '.join(problems) or 'it has no port'}", mend)
    return Check(nic, OK, text)


def _gids(system: System, port: str) -> list[tuple[int, str, str]]:
    """(index, GID, type) of those that are set; a kernel refuses to tell the type of an empty one."""
    indices = sorted(int(one) for one in system.names(f"{port}/gids") if one.isdecimal())
    every = [(index, system.text(f"{port}/gids/{index}"), system.text(f"{port}/gid_attrs/types/{index}")) for index in indices]
    return [one for one in every if one[1] and one[1] != NO_GID]


def _gpu_memory(system: System) -> Check:
    """What --memory cuda and pinned need beside a UCX with CUDA."""
    gpus = system.driver.gpus
    if not gpus:
        return Check("GPU memory", OK, f"none to use (no GPU: {system.driver.problem})")
    return Check("GPU memory", OK, ", ".join(f"cuda:{gpu.index} {gpu.name} {gpu.memory_gib:g} GiB" for gpu in gpus))


def _gpu_to_gpu(system: System) -> Check:
    gpus, peers = system.driver.gpus, system.driver.peers
    if len(gpus) < 2:
        return Check("GPU to GPU", OK, f"not possible here: {'one GPU' if gpus else f'no GPU ({system.driver.problem})'}")
    apart = [
        f"{one} from {other}" for one, other in itertools.permutations((gpu.index for gpu in gpus), 2) if (one, other) not in peers
    ]
    if not apart:
        return Check("GPU to GPU", OK, f"each of {len(gpus)} can reach the others' memory (cuda_ipc)")
    return Check(
        "GPU to GPU", OK, f"by way of the host for GPU {', '.join(apart)} (the driver says so; nvidia-smi topo -p2p rw says why)"
    )


def _peer_memory(system: System) -> Check:
    loaded = [name for name in ("nvidia_peermem", "nv_peer_mem") if name in system.names("sys/module")]
    if loaded:
        return Check("nvidia_peermem", OK, f"{loaded[0]} is loaded: a NIC can reach GPU memory through it")
    why = _installed(system, "nvidia_peermem")
    if not system.driver.gpus:
        return Check("nvidia_peermem", OK, f"not loaded ({why}; no GPU: {system.driver.problem})")
    return Check("nvidia_peermem", OK, f"not loaded ({why}; dma-bufs are the newer method)")


def _dma_buf(system: System) -> Check:
    release = system.text("proc/sys/kernel/osrelease")
    numbers = tuple(int(one) for one in re.findall(r"\d+", release)[:2])
    missing = []
    if numbers < DMA_BUF_SINCE:
        missing.append(f"kernel {release or 'not known'} (5.12 is needed)")
    if not system.driver.gpus:
        missing.append(f"no GPU ({system.driver.problem})")
    elif not any(gpu.attributes.get("dma_buf") for gpu in system.driver.gpus):
        missing.append("no GPU here exports dma-bufs (its driver says so; the open kernel modules do)")
    if not any(system.names(f"sys/class/infiniband/{nic}/device") for nic in system.names("sys/class/infiniband")):
        missing.append("no hardware RDMA NIC")
    if missing:
        return Check("dma-buf", OK, f"not possible here: {'; '.join(missing)}")
    return Check("dma-buf", OK, f"kernel {release}, a GPU that exports them, and an RDMA NIC")


def _is_needed(system: System, nics: Sequence[str]) -> bool:
    """Whether a NIC and a GPU are there, which ACS would keep apart."""
    return bool(system.driver.gpus) and any(system.names(f"sys/class/infiniband/{nic}/device") for nic in nics)


def _installed(system: System, module: str) -> str:
    release = system.text("proc/sys/kernel/osrelease")
    listed = system.text(f"lib/modules/{release}/modules.dep") + system.text(f"lib/modules/{release}/modules.builtin")
    there = re.search(rf"/{module.replace('_', '[-_]')}\.ko", listed)
    return f"sudo modprobe {module}" if there else "not installed for this kernel"


def _free_bytes(path: str) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
