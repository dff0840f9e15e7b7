# SPDX-License-Identifier: Apache-2.0
"""The command `nanet`. Exit codes: 0 all well, 1 the promise was broken (loss, or p99.9 over the budget), 2 usage or set-up."""

from __future__ import annotations

import sys

__all__ = ["main"]

USAGE = 2


def main() -> None:
    """Runs the command line; whatever is wrong with what was asked is one line on stderr and exit code 2."""
    try:
        _run()
    except ImportError as error:
        if "_core" not in f"{error.name} {error}":
            raise
        from nanet.doctor_check import REINSTALL, why_not_loaded

        _fail(f"the native module cannot be used ({why_not_loaded(error)}) {REINSTALL}")
    except KeyboardInterrupt:
        sys.exit(130)


def _run() -> None:
    from nanet.cli.app import app
    from nanet.config_errors import ConfigError
    from nanet.engine_process import EngineError

    try:
        app(prog_name="nanet")  # also as python -m nanet: completion is for this name
    except (ConfigError, EngineError) as error:
        _fail(str(error))
    except RuntimeError as error:  # SockperfError
        if type(error) is RuntimeError:
            raise
        _fail(str(error))
    except ValueError as error:  # nanet._core.SetupError
        if type(error).__name__ != "SetupError":
            raise
        _fail(str(error))


def _fail(line: str) -> None:
    print(f"nanet: {line.removeprefix('nanet: ')}", file=sys.stderr)
    sys.exit(USAGE)
