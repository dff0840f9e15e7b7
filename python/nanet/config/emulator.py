# SPDX-License-Identifier: Apache-2.0
"""What the emulator of readout boards and L0 trigger processor can be told. Same rules as engine.py."""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict, model_validator

from nanet.config.base import problem
from nanet.config.components import Emulator, Fractions, MonteCarlo
from nanet.config.errors import load_document, validated
from nanet.config.rich import Decision

__all__ = ["EmulatorConfig", "Fractions", "MonteCarlo", "load"]


def load(path: str | Path) -> EmulatorConfig:
    """The emulator configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(EmulatorConfig, load_document(Path(path)))


class EmulatorConfig(Emulator, Decision):
    """Readout boards that send, and the L0 trigger processor that checks what comes back, in one thread on one clock.

    finder, cuts and conditions are the engine's: each answer is checked against the emulator's own.
    """

    model_config = ConfigDict(title="nanet emulator configuration")

    @model_validator(mode="after")
    def _one_mask(self) -> EmulatorConfig:
        if self.mask.hot:
            raise problem("mask.hot is true", "answers are checked against one mask", "remove it, and set mask.channels")
        return self
