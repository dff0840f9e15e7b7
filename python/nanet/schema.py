# SPDX-License-Identifier: Apache-2.0
"""The JSON schemas of the configurations; docs/schema.json and docs/schema-emulator.json are these, written out."""

from __future__ import annotations

from typing import Any

from nanet.config import EngineConfig
from nanet.emulator_config import EmulatorConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def engine_schema() -> dict[str, Any]:
    """Schema of what `nanet run` and `nanet validate` read."""
    return {"$schema": DIALECT} | EngineConfig.model_json_schema()


def emulator_schema() -> dict[str, Any]:
    """Schema of what `nanet emulate tel62 --config` reads."""
    return {"$schema": DIALECT} | EmulatorConfig.model_json_schema()
