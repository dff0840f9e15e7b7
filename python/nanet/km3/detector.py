# SPDX-License-Identifier: Apache-2.0
"""Where the photomultipliers of a KM3NeT detector are, and what its units of hits say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nanet import _core

__all__ = ["Detector"]


class Detector:
    """Floors (of a tower) or modules (of a string) and their PMs. Made by read(), named(), from_detx() or towers()."""

    def __init__(self, native: _core.Km3Detector) -> None:
        self.native = native

    @classmethod
    def from_detx(cls, text: str) -> Detector:
        """From the text of a detector file, versions 1 to 5. Raises SetupError, which names the line."""
        from nanet import _core

        return cls(_core.Km3Detector.from_detx(text))

    @classmethod
    def read(cls, path: str | Path) -> Detector:
        """From a .detx file."""
        return cls.from_detx(Path(path).read_text(encoding="utf-8"))

    @classmethod
    def named(cls, path: Path) -> Detector:
        """As read(), of a file that a command names: what cannot be read is ConfigError."""
        from nanet.config.errors import ConfigError

        try:
            return cls.read(path)
        except (OSError, UnicodeDecodeError) as error:
            why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigError([f"cannot read detector {path} ({why}) give a file .detx"]) from None

    @classmethod
    def towers(cls, count: int = 1, floors: int = 14, distance_m: float = 100.0) -> Detector:
        """Standard towers on a square, distance_m apart: floors 20 m apart with bars of 8 m and 6 PMs."""
        from nanet import _core

        return cls(_core.Km3Detector.from_towers(count, floors, distance_m))

    def write(self, path: str | Path) -> None:
        """As a .detx file of version 3."""
        Path(path).write_text(self.native.to_detx(), encoding="utf-8")

    @property
    def id(self) -> int:
        return self.native.id()

    @property
    def time_base_ns(self) -> float:
        """Smallest time offset of all PMs: what calibrated times leave out."""
        return self.native.time_base_ns()

    @property
    def pms(self) -> NDArray[np.void]:
        """Structured [PMs]: id, floor (index in floors), number and place on it, end (0 none, 1 or 2), status, x_m y_m z_m, dx dy dz,
        time_offset_ns."""
        return self.native.pms()

    @property
    def floors(self) -> NDArray[np.void]:
        """Structured [floors]: id, tower, number, first_pm (index in pms), pm_count."""
        return self.native.floors()

    def decode(self, floor: int, unit: bytes, kind: str = "hits") -> tuple[NDArray[np.void], dict[str, Any]]:
        """Hits of a unit of bytes that one floor sent, calibrated, and what was wrong with it by name.

        kind: hits or sampled_hits (docs/formats-km3.md), or clb: hits of a string's module.
        """
        return self.native.decode(floor, kind, np.frombuffer(unit, np.uint8))
