#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of remote memory over RC verbs on any x86-64 machine: Debian's own kernel with soft-RoCE, booted in QEMU.

    make test-rdma            # or: python3 scripts/test_rdma.py [--folder build/test-rdma] [--jobs N] [--limit SECONDS]

Nothing is installed: Debian's packages are downloaded (about 170 MB, once; apt checks their signatures) and unpacked into the folder, QEMU,
UCX and the C library of both among them. The tests are built here against that UCX and run in the virtual machine (tests/rxe/init.sh). Needed
here: apt-get, dpkg-deb, Debian's archive keys, a C++20 compiler, CMake, Ninja and GoogleTest; no root, no KVM, no RDMA hardware.
The last line is `N passed, N failed`. Exit status: 0 if every test ran and passed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent
MIRROR = "http://deb.debian.org/debian"
# Programs are Debian 13's, whose UCX is the first of Debian's that this library can use (1.18, with verbs). The kernel is Debian 12's: on 13's
# (6.12) soft-RoCE reports the last receive of a connection twice, and UCX ends the process for it.
RELEASES = ("trixie", "bookworm")
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PACKAGES = (
    "busybox-static",
    "ibverbs-providers",
    "iproute2",
    "libssl3t64",
    "libstdc++6",
    "libucx-dev",
    "libucx0",
    "linux-image-amd64/bookworm",
    "qemu-system-x86",
)
KERNEL_MODULES = ("rdma_rxe", "ib_uverbs", "rdma_ucm", "dummy", "crc32_generic")
PROGRAMS = ("test_rdma", "test_rxe")
RUNS = 3  # of these, by init.sh
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# What UCX and libibverbs load by name.
PLUGINS = ("ucx/libuct_ib.so.0", "ucx/libuct_rdmacm.so.0", "ucx/libuct_cma.so.0", "libibverbs/librxe-rdmav34.so")


class Failure(Exception):
    """What cannot be set up: problem, why, suggestion."""

    def __init__(self, problem: str, why: str, suggestion: str) -> None:
        super().__init__(f"{problem} ({why}) {suggestion}")


def main() -> int:
    parser = argparse.ArgumentParser(description="tests over soft-RoCE in QEMU")
    parser.add_argument("--folder", type=Path, default=SOURCES / "build" / "test-rdma")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=400.0, help="of the virtual machine, from its start to its end [s]")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    try:
        root = unpack_packages(folder)
        programs = build(folder, root, arguments.jobs)
        (folder / "initramfs").write_bytes(initramfs(root, programs))
        log = boot(folder, root, arguments.limit)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return summary(log)


def run(command: list[str | Path], what: str, suggestion: str, **settings: str) -> str:
    try:
        done = subprocess.run(
            command, env={**os.environ, **settings}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except FileNotFoundError:
        raise Failure(what, f"no {command[0]} here", suggestion) from None
    if done.returncode != 0:
        print(done.stdout[-4000:], file=sys.stderr)
        raise Failure(what, f"{command[0]} ended with {done.returncode}", suggestion)
    return done.stdout


def unpack_packages(folder: Path) -> Path:
    """The packages and all that they depend on, under `folder`/root; their files are named in `folder`/packages.txt."""
    root, names = folder / "root", folder / "packages.txt"
    if names.exists():
        return root
    if platform.machine() != "x86_64":
        raise Failure("these tests cannot run", f"they are for x86-64, this is {platform.machine()}", "use such a machine")
    if not KEYS.exists():
        raise Failure("Debian's packages could not be checked", f"no {KEYS}", "apt-get install debian-archive-keyring")
    apt = folder / "apt"
    shutil.rmtree(root, ignore_errors=True)
    for part in ("lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()  # nothing is installed: so everything that is needed is downloaded
    (apt / "sources.list").write_text("".join(f"deb [signed-by={KEYS}] {MIRROR} {release} main\n" for release in RELEASES))
    (apt / "apt.conf").write_text(
        f'Dir::Etc::SourceList "{apt}/sources.list"; Dir::Etc::SourceParts "-"; Dir::Etc::Preferences "-";\n'
        f'Dir::Etc::PreferencesParts "-"; Dir::State "{apt}"; Dir::State::Lists "{apt}/lists"; Dir::State::status "{apt}/status";\n'
        f'Dir::Cache "{apt}/cache"; Dir::Cache::archives "{apt}/cache/archives"; APT::Architecture "amd64"; APT::Sandbox::User "";\n'
        'APT::Architectures "amd64"; Acquire::Languages "none"; APT::Install-Recommends "false";\n'
    )
    print(f"downloading Debian packages into {folder}", flush=True)
    suggestion = f"needed are apt-get and the way to {MIRROR}"
    for verb in (["update"], ["install", "--download-only", "--yes", *PACKAGES]):
        run(["apt-get", "--quiet=2", *verb], "cannot download packages", suggestion, APT_CONFIG=str(apt / "apt.conf"))
    packages = sorted((apt / "cache/archives").glob("*.deb"))
    for package in packages:
        run(["dpkg-deb", "--extract", package, root], "cannot unpack packages", "apt-get install dpkg")
    names.write_text("".join(f"{package.name}\n" for package in packages))
    shutil.rmtree(apt)
    return root


def loader(root: Path) -> list[str | Path]:
    """Runs a program of `root` here, with the C library that it was made for."""
    return [root / LIBRARIES / "ld-linux-x86-64.so.2", "--library-path", f"{root / LIBRARIES}:{root / LIBRARIES}/ucx"]


def build(folder: Path, root: Path, jobs: int) -> list[Path]:
    out = folder / "build"
    # UCX was linked to a newer C library than the one here; in the guest it has its own.
    settings = (f"UCX_ROOT={root}/usr", "CMAKE_BUILD_TYPE=Release", "NANET_UCX=ON", "NANET_TESTS=ON", "NANET_BENCH=OFF")
    linker = "CMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined"
    configure = ["cmake", "-S", SOURCES, "-B", out, "-G", "Ninja", *(f"-D{setting}" for setting in (*settings, linker))]
    run(configure, "cannot configure the tests", "the lines above say why")
    run(["cmake", "--build", out, "-j", str(jobs), "--target", *PROGRAMS], "cannot build the tests", "the lines above say why")
    return [out / program for program in PROGRAMS]


def initramfs(root: Path, programs: list[Path]) -> bytes:
    """The guest's files, as a cpio archive (newc)."""
    files = {"init": (SOURCES / "tests/rxe/init.sh").read_bytes(), "etc/libibverbs.d/rxe.driver": b"driver rxe\n"}
    files["bin/busybox"] = (root / "usr/bin/busybox").read_bytes()
    guest = {f"bin/{program.name}": program for program in programs}
    guest |= {"bin/ip": root / "usr/bin/ip", "bin/rdma": root / "usr/bin/rdma"}
    guest |= {f"{LIBRARIES}/{plugin}": root / LIBRARIES / plugin for plugin in PLUGINS}
    suggestion = "this machine's C library must not be newer than Debian 13's (2.41)"
    for path in tuple(guest.values()):
        needed = run([*loader(root), "--list", path], f"{path.name} would not start in the guest", suggestion, LD_LIBRARY_PATH="")
        guest |= {f"{LIBRARIES}/{Path(line).name}": Path(line) for line in re.findall(rf"({root}/\S+)", needed)}
    files |= {name: path.read_bytes() for name, path in guest.items()}
    files["lib64/ld-linux-x86-64.so.2"] = (root / LIBRARIES / "ld-linux-x86-64.so.2").read_bytes()
    modules = kernel_modules(root)
    files |= {f"modules/{name}.ko": data for name, data in modules.items()}
    files["modules/order"] = " ".join(modules).encode()
    folders = {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
    entries = [(name, 0o040755, b"") for name in sorted(folders | {"proc", "sys", "dev", "tmp"})]
    entries += [(name, 0o100755, data) for name, data in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    return b"".join(cpio_entry(inode, *entry) for inode, entry in enumerate(entries, start=1))


def cpio_entry(inode: int, name: str, mode: int, data: bytes) -> bytes:
    # inode, mode, user, group, links, time, bytes, device (2), device of a node (2), bytes of the name with its zero, checksum
    fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def kernel_modules(root: Path) -> dict[str, bytes]:
    """KERNEL_MODULES and what they depend on, in the order in which they can be loaded."""
    paths = {path.stem.replace("-", "_"): path for path in (root / "lib/modules").rglob("*.ko")}
    modules: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in modules:
            return
        if name not in paths:
            raise Failure("the kernel has not what the tests need", f"no module {name}", f"remove {root.parent} and try again")
        data = paths[name].read_bytes()
        found = re.search(rb"\0depends=([^\0]+)\0", data)
        for needed in found[1].decode().split(",") if found else ():
            add(needed)
        modules[name] = data

    for name in KERNEL_MODULES:
        add(name)
    return modules


def boot(folder: Path, root: Path, limit_s: float) -> str:
    """The guest's output. Its kernel writes to a serial line of its own, so that no line of a test is broken."""
    kernel = next((root / "boot").glob("vmlinuz-*"))
    logs = {"console": folder / "console.log", "tests": folder / "tests.log"}
    command = [*loader(root), root / "usr/bin/qemu-system-x86_64", "-L", root / "usr/share/qemu", "-L", root / "usr/share/seabios"]
    command += ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048", "-nodefaults", "-no-reboot"]
    command += ["-display", "none", "-nic", "none", "-kernel", kernel, "-initrd", folder / "initramfs"]
    command += ["-serial", f"file:{logs['console']}", "-serial", f"file:{logs['tests']}"]
    command += ["-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"]
    environment = {**os.environ, "QEMU_MODULE_DIR": str(root / LIBRARIES / "qemu")}
    for log in logs.values():
        log.unlink(missing_ok=True)
    print(f"booting {kernel.name} in QEMU; output in {logs['tests']}", flush=True)
    try:
        done = subprocess.run(command, env=environment, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        print(f"error: the guest did not end within {limit_s:.0f} s (see {logs['console']}) raise --limit", file=sys.stderr)
    else:
        if done.returncode != 0:
            print(f"error: QEMU ended with {done.returncode} (see above) see {logs['console']}", file=sys.stderr)
    return logs["tests"].read_text(errors="replace") if logs["tests"].exists() else ""


def summary(log: str) -> int:
    """Prints what did not pass and the last line. A test that was begun and not ended, or never begun, has failed."""

    def count(pattern: str) -> int:
        return len(re.findall(pattern, log, re.MULTILINE))

    passed = count(r"^\[       OK \] \S+.* \(\d+ ms\)$")
    promised = [int(number) for number in re.findall(r"^\[=+\] Running (\d+) tests?", log, re.MULTILINE)]
    failed = sum(promised) - passed
    ended = re.findall(r"^\S+ ended with (\d+)$", log, re.MULTILINE)
    whole = len(promised) == len(ended) == RUNS and all(promised)
    print(log if failed or not whole else "\n".join(re.findall(r"^Linux .*|^\[       OK \] .*", log, re.MULTILINE)))
    if not whole:
        print(f"error: not every program ran to its end ({len(ended)} of {RUNS} did) see its output above", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not whole or set(ended) != {"0"} else 0


if __name__ == "__main__":
    sys.exit(main())
