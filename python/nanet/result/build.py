# SPDX-License-Identifier: Apache-2.0
"""What this nanet is: version, commit, compiler, and the back-ends that it was built with."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["UNKNOWN", "Build", "build", "of_info", "version"]

UNKNOWN = "unknown"


def version() -> str:
    """The version of this package."""
    try:
        return importlib.metadata.version("nanet")
    except importlib.metadata.PackageNotFoundError:
        return "0+source"


@dataclass(frozen=True)
class Build:
    """The facts of a build. What the native module does not say is `unknown`."""

    version: str
    commit: str
    compiler: str
    build_type: str
    simd: str
    back_ends: tuple[str, ...]
    left_out: tuple[str, ...]

    def lines(self) -> list[str]:
        """As `nanet version` prints them."""
        rows = {
            "commit": self.commit,
            "compiler": self.compiler,
            "build type": self.build_type,
            "vector code": self.simd,
            "back-ends": ", ".join(self.back_ends) or "none",
            "left out": ", ".join(self.left_out) or "none",
        }
        return [f"nanet {self.version}", *(f"{name:<12} {value}" for name, value in rows.items())]


def build() -> Build:
    """Of the native module that is loaded."""
    from nanet import _core

    return of_info(version(), _core.build_info())


def of_info(version: str, info: Mapping[str, Any]) -> Build:
    """From nanet._core.build_info()."""
    back_ends: dict[str, bool] = info["back_ends"]

    def said(key: str) -> str:
        return str(info.get(key) or UNKNOWN)

    return Build(
        version=version,
        commit=said("commit"),
        compiler=said("compiler"),
        build_type=said("build_type"),
        simd=said("simd"),
        back_ends=tuple(name for name, there in back_ends.items() if there),
        left_out=tuple(name for name, there in back_ends.items() if not there),
    )
