# SPDX-License-Identifier: Apache-2.0
"""The command `nanet`. Exit codes: 0 all well, 1 the promise was broken (loss, or p99.9 over the budget), 2 usage or set-up."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from typing import NoReturn

__all__ = ["main"]

USAGE, STOPPED = 2, 130
STOPPED_LINE = "nanet: stopped (Ctrl-C)"


def main() -> None:
    """Runs the command line; whatever is wrong with what was asked is one line on stderr and exit code 2."""
    _stop_at_once()
    try:
        _check_streams()
        _run()
    except ImportError as error:
        if _lacks_memory(error):
            _fail_for_memory()
        if "_core" not in f"{error.name} {error}":
            raise
        from nanet.machine.check import REINSTALL, why_not_loaded

        _fail(f"the native module cannot be used ({why_not_loaded(error)}) {REINSTALL}")
    except KeyboardInterrupt:
        print(STOPPED_LINE, file=sys.stderr)
        sys.exit(STOPPED)
    except MemoryError:
        _fail_for_memory()
    finally:
        _stop_at_once()  # nothing is left that would have to be put in order


def _run() -> None:
    from nanet.cli.app import app
    from nanet.cli.named import named
    from nanet.config.errors import ConfigError

    if signal.getsignal(signal.SIGINT) is _say_stopped:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        named(app, sys.argv[1:])(prog_name="nanet")  # also as python -m nanet: completion is for this name
    except ConfigError as error:
        _fail(str(error))
    except RuntimeError as error:  # OutputError, EngineError, SockperfError
        if _lacks_memory(error):
            _fail_for_memory()
        if type(error) is RuntimeError:
            raise
        _fail(str(error))
    except ValueError as error:  # nanet._core.SetupError
        if type(error).__name__ != "SetupError":
            raise
        _fail(str(error))
    except OSError as error:
        _fail(_line_of(error))


def _stop_at_once() -> None:
    """Ctrl-C while modules are loaded, or after all was done: an exception in there could be taken for a broken module."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _say_stopped)


def _say_stopped(*_: object) -> NoReturn:
    if sys.stderr is not None:
        os.write(2, f"{STOPPED_LINE}\n".encode())
    os._exit(STOPPED)


def _check_streams() -> None:
    """What is closed becomes /dev/null: else the first socket would have its number. Figures need a standard output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)  # the lowest number that is free is this one
            if number == 1:
                _fail("cannot write to standard output (it is closed) open it, or send it to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names of files may hold any bytes


def _line_of(error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    if error.filename is None and _is_of_standard_output(error):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what it still holds goes there at the end
        return f"cannot write to standard output ({why}) send it elsewhere"
    what = f"{error.filename} cannot be used" if error.filename is not None else "the system refused something"
    return f"{what} ({why}) see nanet doctor, or name another file"


def _is_of_standard_output(error: OSError) -> bool:
    """A full disk is: files of ours that are full have errors of their own. A broken pipe is, if that pipe is broken."""
    if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return True
    poll = select.poll()
    poll.register(1, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _lacks_memory(error: Exception) -> bool:
    return any(text in str(error).lower() for text in ("cannot allocate memory", "failed to map segment", "can't start new thread"))


def _fail_for_memory() -> NoReturn:
    _fail("there is not enough memory (the machine's is used up, or ulimit -v is too low) ask for less, or raise the limit")


def _fail(line: str) -> NoReturn:
    if sys.stderr is not None:
        print(f"nanet: {line.removeprefix('nanet: ')}", file=sys.stderr)
    sys.exit(USAGE)
