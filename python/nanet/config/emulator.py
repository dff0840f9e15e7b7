# SPDX-License-Identifier: Apache-2.0
"""What the emulator of readout boards and L0 trigger processor can be told. Same rules as engine.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, model_validator

from nanet.config.base import problem
from nanet.config.components import Emulator, Fractions, MonteCarlo
from nanet.config.engine import EngineConfig
from nanet.config.errors import ConfigError, load_document, validated
from nanet.config.rich import Decision

__all__ = ["EmulatorConfig", "Fractions", "MonteCarlo", "decision_of", "load"]


def load(path: str | Path) -> EmulatorConfig:
    """The emulator configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(EmulatorConfig, load_document(Path(path)))


def decision_of(engine: EngineConfig) -> dict[str, Any]:
    """What makes an engine's answers, as keys of the emulator that checks them. Raises ConfigError."""
    if engine.processor.kind != "rich":
        raise ConfigError(
            [
                f"no answers of engine '{engine.name}' can be checked (its processor is {engine.processor.kind}) give one of kind rich"
            ]
        )
    whole = engine.processor.model_dump(mode="json")
    whole["mask"]["hot"] = False  # no channel of the emulator is
    return {key: whole[key] for key in Decision.model_fields}


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
