# SPDX-License-Identifier: Apache-2.0
"""What only the extra `km3` installs: the commands that do without do not ask for it."""

from __future__ import annotations

from nanet.config.errors import ConfigError

try:
    from scipy import optimize, signal, stats
except ImportError as error:
    raise ConfigError(["there are no fits and intervals (SciPy is not installed) pip install 'nanet[km3]'"]) from error

__all__ = ["optimize", "signal", "stats"]
