# SPDX-License-Identifier: Apache-2.0
"""UCX's own programs (ucx_info, ucx_perftest): where they are, with which library they run, and what ucx_info says."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class Tools:
    """Programs of one UCX. `environment` is that of this process, and where the programs find their library."""

    folder: Path
    environment: dict[str, str] = field(repr=False)

    def program(self, name: str) -> str:
        """The path of one of them."""
        return str(self.folder / name)


@dataclass(frozen=True)
class UcxBuild:
    """What ucx_info says. problem: why it says nothing, else empty."""

    version: str = ""
    flags: str = ""
    transports: tuple[str, ...] = ()
    problem: str = ""


def find_tools() -> Tools | None:
    """Those of the package libucx-cu13, whose library is what nanet is built with unless told otherwise, else those of UCX_ROOT or PATH."""
    found = importlib.util.find_spec("libucx")
    if found is not None and found.origin is not None:
        root = Path(found.origin).parent
        if (root / "bin" / "ucx_info").exists():
            # The package's programs name a place for their library that only its builder had.
            before = os.environ.get("LD_LIBRARY_PATH")
            library = f"{root / 'lib'}{':' + before if before else ''}"
            return Tools(root / "bin", dict(os.environ) | {"LD_LIBRARY_PATH": library})
    place = shutil.which("ucx_info", path=os.pathsep.join([*_ucx_root(), os.environ.get("PATH", "")]))
    return Tools(Path(place).parent, dict(os.environ)) if place else None


def read_build(tools: Tools) -> UcxBuild:
    """Asks ucx_info. Never throws: a tool that does not run is a finding."""
    try:
        about, devices = _output(tools, "-v"), _output(tools, "-d")
    except (OSError, subprocess.SubprocessError) as error:
        return UcxBuild(problem=str(error))
    version = re.search(r"^# Library version: (\S+)", about, flags=re.MULTILINE)
    flags = re.search(r"^# Configured with: (.*)$", about, flags=re.MULTILINE)
    if version is None:
        return UcxBuild(problem=(about.strip() or "it said nothing").splitlines()[-1])
    transports = re.findall(r"^# +Transport: (\S+)", devices, flags=re.MULTILINE)
    return UcxBuild(version[1], _short(flags[1]) if flags else "", tuple(transports))


def _output(tools: Tools, option: str) -> str:
    done = subprocess.run(
        [tools.program("ucx_info"), option],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
        env=tools.environment,
    )
    return done.stdout + done.stderr


def _short(flags: str) -> str:
    """Without the folders of who built it."""
    kept = [word for word in flags.split() if not word.startswith(("--prefix", "--with-sysroot", "--with-gnu-ld"))]
    return " ".join(re.sub(r"^(--with-\w+)=/.*", r"\1", word) for word in kept)


def _ucx_root() -> list[str]:
    root = os.environ.get("UCX_ROOT")
    return [str(Path(root) / "bin")] if root else []
