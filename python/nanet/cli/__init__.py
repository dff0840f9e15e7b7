# SPDX-License-Identifier: Apache-2.0
"""The command `nanet`. Exit codes: 0 all well, 1 the promise was broken (loss, or p99.9 over the budget), 2 usage or set-up."""

from __future__ import annotations

import sys

from nanet.cli.app import app

__all__ = ["app", "main"]

USAGE = 2


def main() -> None:
    """Runs the command line; whatever is wrong with what was asked is one line on stderr and exit code 2."""
    from nanet.config_errors import ConfigError
    from nanet.engine_process import EngineError

    try:
        app()
    except ConfigError as error:
        _fail(str(error))
    except EngineError as error:
        _fail(str(error))
    except RuntimeError as error:  # SockperfError
        if type(error) is RuntimeError:
            raise
        _fail(str(error))
    except ValueError as error:  # nanet._core.SetupError
        if type(error).__name__ != "SetupError":
            raise
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(line: str) -> None:
    print(f"nanet: {line.removeprefix('nanet: ')}", file=sys.stderr)
    sys.exit(USAGE)
