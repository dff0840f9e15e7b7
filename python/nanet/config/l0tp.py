# SPDX-License-Identifier: Apache-2.0
"""The L0 trigger processor's settings. Same rules as nanet/config/engine.py; meaning of the terms in docs/design/l0tp.md.

A mask gives, for each input it cares about, the primitive ID as 16 characters, bit 15 first: `0` and `1` must match, `x` may be
either, `_` is a separator. An input without a match shows 16 zeros, which no primitive ID can be, so `"0000_0000_0000_0000"` is a veto.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict

from nanet.config.base import setting
from nanet.config.components import Input, L0tp, Mask, NodeWaiting
from nanet.config.errors import load_document, validated

__all__ = ["Input", "L0tpConfig", "Mask", "NodeWaiting", "load"]


def load(path: str | Path) -> L0tpConfig:
    """The L0 trigger processor's configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(L0tpConfig, load_document(Path(path)))


class L0tpConfig(L0tp):
    """A whole L0 trigger processor: inputs, alignment memory and masks."""

    model_config = ConfigDict(title="nanet L0 trigger processor configuration")

    version: Literal[1] = setting(1, "Version of this schema")
