# SPDX-License-Identifier: Apache-2.0
"""The machine as `nanet tune` sees it: files of /proc and /sys, ethtool, and limits. Tests give it a root folder of their own.

A *target* names one value that can be read and written: the path of a file below /proc or /sys, or `ethtool IF OPTION` with one
of the options of ETHTOOL_OPTIONS. All values are text.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nanet.machine.check import Lister, Reader

ETHTOOL_S = 10.0  # no driver takes so long to answer
ETHTOOL_OPTIONS = {  # option -> how it is shown, how it is set
    "rx": ("-g", "-G"),
    "rx-usecs": ("-c", "-C"),
    "adaptive-rx": ("-c", "-C"),
}
CORE_LISTS = ("/smp_affinity_list", "/watchdog_cpumask")  # targets that hold cores: the kernel may write them in other words
CORE_MASKS = ("/workqueue/cpumask",)

EthtoolRunner = Callable[[Sequence[str]], str]  # arguments -> what it prints; raises OSError when it cannot, or is not there


class TuneError(RuntimeError):
    """Why `nanet tune` did not begin. str() reads `problem (why) suggestion`."""


@dataclass(frozen=True)
class System:
    """How the machine is read and written. `read` gives empty text, and `names` no names, for what is not there or not readable."""

    read: Reader
    names: Lister
    write: Callable[[str, str], None]  # path, text; raises OSError
    ethtool: EthtoolRunner
    memlock_bytes: int | None  # what this process may lock; None: without limit
    privileged: bool  # root
    rtprio_max: int = 0  # highest real-time priority that this account may have without being root; 0: none

    def get(self, target: str) -> str:
        """The value of a target, in the one way that this module writes it; empty when it cannot be read."""
        if target.startswith("ethtool "):
            _, interface, option = target.split(" ")
            return self.ethtool_values(interface, ETHTOOL_OPTIONS[option][0]).get(option, "")
        text = self.read(target)
        if "[" in text:  # always [madvise] never
            return text.partition("[")[2].partition("]")[0]
        if target.endswith(CORE_LISTS):
            return cores_text(cores_of(text))
        return mask_text(mask_cores(text)) if text and target.endswith(CORE_MASKS) else text

    def put(self, target: str, value: str) -> None:
        """Writes a target. Raises OSError."""
        if target.startswith("ethtool "):
            _, interface, option = target.split(" ")
            self.ethtool([ETHTOOL_OPTIONS[option][1], interface, option, value])
        else:
            self.write(target, value)

    def ethtool_values(self, interface: str, show: str) -> dict[str, str]:
        """What `ethtool -g` or `-c` says of an interface: `rx` and `rx-max`, or `rx-usecs` and `adaptive-rx`. Only what the driver has."""
        try:
            text = self.ethtool([show, interface])
        except OSError:
            return {}
        values = _rings(text) if show == "-g" else _coalescing(text)
        return {name: value for name, value in values.items() if value not in ("", "n/a")}

    def online(self) -> frozenset[int]:
        """The cores that run."""
        return cores_of(self.read("/sys/devices/system/cpu/online")) or frozenset(range(os.cpu_count() or 1))

    def interfaces(self) -> list[str]:
        """The network interfaces of this network namespace, whatever /sys shows."""
        return [line.partition(":")[0].strip() for line in self.read("/proc/net/dev").splitlines() if ":" in line]


def this_system(root: Path = Path("/")) -> System:
    """This machine, or what lies below `root` in its place."""

    def at(path: str) -> Path:
        return root / path.lstrip("/")

    def read(path: str) -> str:
        try:
            return at(path).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def names(path: str) -> list[str]:
        try:
            return sorted(entry.name for entry in at(path).iterdir())
        except OSError:
            return []

    def write(path: str, text: str) -> None:
        # Not by write_text: a write to /proc must come in one piece, and nothing may be made that was not there.
        descriptor = os.open(at(path), os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    locked = None if soft == resource.RLIM_INFINITY else soft
    rtprio_max, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    return System(read, names, write, run_ethtool, locked, os.geteuid() == 0, 99 if rtprio_max < 0 else rtprio_max)


def run_ethtool(arguments: Sequence[str]) -> str:
    """Runs ethtool. Raises OSError when it is not there, or when it says no."""
    environment = os.environ | {"LC_ALL": "C", "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    try:
        done = subprocess.run(
            ["ethtool", *arguments], capture_output=True, text=True, timeout=ETHTOOL_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"ethtool did not answer within {ETHTOOL_S:g} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ethtool ended with status {done.returncode}"]
        raise OSError(lines[-1].removeprefix("netlink error: "))
    return done.stdout


def cores_of(text: str) -> frozenset[int]:
    """Cores from the kernel's list format, such as `0-3,8`; none when it is no such list."""
    cores: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return frozenset()
        cores.update(range(int(first), int(last or first) + 1))
    return frozenset(cores)


def cores_text(cores: frozenset[int]) -> str:
    """The same back, as the kernel writes it."""
    parts: list[str] = []
    for core in sorted(cores):
        if core - 1 not in cores:
            parts.append(str(core))
        elif core + 1 not in cores:
            parts[-1] += f"-{core}"
    return ",".join(parts)


def mask_cores(text: str) -> frozenset[int]:
    """Cores from a mask in hexadecimal with commas, such as `00000001,ffffffff`; none when it is no such mask."""
    try:
        mask = int(text.replace(",", ""), 16)
    except ValueError:
        return frozenset()
    return frozenset(core for core in range(mask.bit_length()) if mask >> core & 1)


def mask_text(cores: frozenset[int]) -> str:
    """The same back, in groups of 32 bits as the kernel takes it."""
    mask = sum(1 << core for core in cores)
    groups = [f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(mask.bit_length(), 1), 32)]
    return ",".join(reversed(groups)).lstrip("0") or "0"


def _rings(text: str) -> dict[str, str]:
    most, _, now = text.partition("Current hardware settings:")
    return {"rx-max": _after(most, "RX:"), "rx": _after(now, "RX:")}


def _coalescing(text: str) -> dict[str, str]:
    return {"adaptive-rx": _after(text, "Adaptive RX:"), "rx-usecs": _after(text, "rx-usecs:")}


def _after(text: str, label: str) -> str:
    for line in text.splitlines():
        if line.strip().startswith(label):
            words = line.strip().removeprefix(label).split()
            return words[0] if words else ""
    return ""
