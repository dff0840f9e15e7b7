# SPDX-License-Identifier: Apache-2.0
"""What can be configured: the models, and what reads them from files. docs/design/config.md

For programs: the models of an engine's configuration, here, also those of `nanet.config.components`. Those of the emulator are in
`nanet.config.emulator`, of the L0 trigger processor in `nanet.config.l0tp`. Loaded when first used: who needs an error alone does not wait for
all models.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanet.config.components import *
    from nanet.config.engine import EngineConfig as EngineConfig
    from nanet.config.engine import Metrics as Metrics
    from nanet.config.engine import PortConfig as PortConfig
    from nanet.config.engine import Processor as Processor
    from nanet.config.engine import Run as Run
    from nanet.config.engine import load as load
    from nanet.config.errors import ConfigError as ConfigError
    from nanet.config.link import LinkConfig as LinkConfig
    from nanet.config.rich import Decision as Decision

_HOMES = {
    "ConfigError": "errors",
    "Decision": "rich",
    "LinkConfig": "link",
    **dict.fromkeys(("EngineConfig", "Metrics", "PortConfig", "Processor", "Run", "load"), "engine"),
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name, "components")
    if home == "components" and not name[0].isupper():
        raise AttributeError(f"module 'nanet.config' has no attribute '{name}'")
    return getattr(importlib.import_module(f"nanet.config.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *importlib.import_module("nanet.config.components").__all__])
