# SPDX-License-Identifier: Apache-2.0
"""The JSON schemas of the configurations; docs/schema.json and docs/schema-*.json are these, written out."""

from __future__ import annotations

from typing import Any

from nanet.config.components import Format, Tower
from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.config.km3_server import Km3ServerConfig
from nanet.config.km3_strings import Strings
from nanet.config.l0tp import L0tpConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def engine_schema() -> dict[str, Any]:
    """Schema of what `nanet run` and `nanet validate` read."""
    return {"$schema": DIALECT} | EngineConfig.model_json_schema()


def emulator_schema() -> dict[str, Any]:
    """Schema of what `nanet emulate tel62 --config` reads."""
    return {"$schema": DIALECT} | EmulatorConfig.model_json_schema()


def l0tp_schema() -> dict[str, Any]:
    """Schema of what `nanet l0tp` reads."""
    return {"$schema": DIALECT} | L0tpConfig.model_json_schema()


def km3_schema() -> dict[str, Any]:
    """Schema of what `nanet km3 server` reads."""
    return {"$schema": DIALECT} | Km3ServerConfig.model_json_schema()


def tower_schema() -> dict[str, Any]:
    """Of `nanet emulate km3 --config`."""
    return {"$schema": DIALECT} | Tower.model_json_schema()


def strings_schema() -> dict[str, Any]:
    """Of `nanet emulate km3 --kind strings --config`."""
    return {"$schema": DIALECT} | Strings.model_json_schema()


def format_schema() -> dict[str, Any]:
    """Schema of a declared packet format, a file that `nanet format check` reads."""
    return {"$schema": DIALECT} | Format.model_json_schema()
