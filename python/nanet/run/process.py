# SPDX-License-Identifier: Apache-2.0
"""An engine, or an L0 trigger processor, in a process of its own: started with a configuration, waited for until it is ready, stopped,
asked for its result.

The parent talks to `nanet run` and `nanet l0tp` through pipes (ready, status) and one JSON file; the data go over real sockets.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypedDict, TypeVar

from nanet.config.base import Model
from nanet.config.components import Faults
from nanet.config.engine import EngineConfig
from nanet.config.l0tp import L0tpConfig
from nanet.machine.netns import Namespace
from nanet.result.hops import at_rest
from nanet.result.keys.base import Base, Counts
from nanet.result.keys.engine import EngineEnd
from nanet.result.keys.hops import HopLook
from nanet.result.keys.l0tp import L0tpEnd

READY_WITHIN_S = 30.0
STOP_WITHIN_S = 20.0


Result = TypeVar("Result", bound=Base)


class EngineError(RuntimeError):
    """The process did not start, or ended early. The text is its last line of error output."""


class _Process(Generic[Result]):
    """`with ...Process(config) as process: ...; result = process.stop()`. It listens when `__enter__` returns."""

    def __init__(
        self, config: Model, command: str, what: str, namespace: Namespace | None = None, prefix: Sequence[str] = ()
    ) -> None:
        self._model = config
        self._prefix = [*(namespace.prefix() if namespace is not None else ()), *prefix]
        self._command = command
        self._what = what
        self._folder = tempfile.TemporaryDirectory(prefix="nanet-")
        self._process: subprocess.Popen[bytes] | None = None
        self._result: Result | None = None

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        (folder / "config.yaml").write_text(json.dumps(self._model.model_dump(mode="json")), encoding="utf-8")
        ready_fd, ready_in = os.pipe()
        pipes = {"--ready-fd": ready_in, **self._open_pipes()}
        command = [
            *self._prefix, sys.executable, "-m", "nanet", self._command, str(folder / "config.yaml"), "--quiet", "--json",
            str(folder / "result.json"), *(word for option, end in pipes.items() for word in (option, str(end))),
        ]  # fmt: skip
        with (folder / "errors").open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=tuple(pipes.values()),
                start_new_session=True,  # Ctrl-C reaches the parent alone, which stops its children in order
            )
        for end in pipes.values():
            os.close(end)
        try:
            self._wait_ready(ready_fd)
        except BaseException:
            self.__exit__()
            raise
        finally:
            os.close(ready_fd)
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._close_pipes()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """Its process ID."""
        assert self._process is not None
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Ends it at once, as a crash would (SIGKILL). It leaves no result."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> Result:
        """Lets it drain and end; its result as `nanet run --json` writes it, with the exit code under `exit_code`."""
        if self._result is not None:
            return self._result
        assert self._process is not None
        if self.alive():
            self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise EngineError(f"{self._what} did not stop within {STOP_WITHIN_S:.0f} s (it hangs) report this") from None
        path = Path(self._folder.name) / "result.json"
        if not path.exists() or path.stat().st_size == 0:  # a run that becomes another account opens it before
            raise EngineError(self._last_error(code))
        result: Result = json.loads(path.read_text(encoding="utf-8")) | {"exit_code": code}
        self._result = result
        return result

    def _wait_ready(self, ready_fd: int) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            readable, _, _ = select.select([ready_fd], [], [], 0.2)
            if readable:
                if os.read(ready_fd, 16):
                    return
                raise EngineError(self._last_error(self._process.wait(STOP_WITHIN_S)))
        raise EngineError(f"{self._what} was not ready within {READY_WITHIN_S:.0f} s (the machine is busy?) try again")

    def _last_error(self, code: int) -> str:
        text = (Path(self._folder.name) / "errors").read_text(encoding="utf-8", errors="replace").strip()
        return text.splitlines()[-1] if text else f"{self._what} ended with exit code {code} (it said nothing) report this"

    def _open_pipes(self) -> dict[str, int]:
        """The process' ends of more pipes, by the option that tells it."""
        return {}

    def _close_pipes(self) -> None:
        """Our ends of these."""


@dataclass(frozen=True)
class Reading:
    """What an engine had counted at one moment."""

    number: int  # of readings that it has published; another number is another moment
    counters: Mapping[str, int]
    hops: Sequence[HopLook]  # of nanet.result.hops.Balance.look


class StatusLine(TypedDict):
    """What an engine in a process of its own says of itself, a line each time."""

    counters: Counts
    hops: list[HopLook]


class EngineProcess(_Process[EngineEnd]):
    """An engine, which reports once a second what it has counted, and can be told to inject faults into what it receives."""

    def __init__(
        self,
        config: EngineConfig,
        namespace: Namespace | None = None,
        *,
        injects_faults: bool = False,
        prefix: Sequence[str] = (),
    ) -> None:
        """namespace: the network namespace to run in; None: the caller's.

        injects_faults: set_faults will be called. It makes the control thread check for commands ten times a second.
        prefix: a program, and its arguments, that becomes the engine (exec), such as `unshare`.
        """
        super().__init__(config, "run", "the engine", namespace, prefix)
        self.config = config
        self._injects_faults = injects_faults
        self._reading = Reading(0, {}, ())
        self._status_fd = self._control_fd = -1
        self._status_rest = b""

    def counters(self) -> dict[str, int]:
        """The newest totals that the engine published (once a second); after stop() the final ones."""
        return dict(self.reading().counters)

    def reading(self) -> Reading:
        """The newest one (once a second); after stop() the final one."""
        if self._result is not None:
            final = self._result
            hops = [at_rest(hop) for hop in final["balance"]["hops"]]
            return Reading(self._reading.number + 1, final["counters"] | final["losses"], hops)
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._status_fd, 65536):
                self._status_rest += data
        *lines, self._status_rest = self._status_rest.split(b"\n")
        if lines:
            newest: StatusLine = json.loads(lines[-1])
            self._reading = Reading(self._reading.number + len(lines), newest["counters"], newest["hops"])
        return self._reading

    def set_faults(self, link: str, faults: Faults) -> None:
        """Changes the faults of a link that was configured with some, within a quarter of a second; its seed stays. Does nothing once it has ended."""
        order = json.dumps({"faults": {link: faults.model_dump(mode="json")}}).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control_fd, order)

    def _open_pipes(self) -> dict[str, int]:
        self._status_fd, status_in = os.pipe()
        os.set_blocking(self._status_fd, False)
        if not self._injects_faults:
            return {"--status-fd": status_in}
        control_out, self._control_fd = os.pipe()
        return {"--status-fd": status_in, "--control-fd": control_out}

    def _close_pipes(self) -> None:
        for end in (self._status_fd, self._control_fd):
            if end >= 0:
                os.close(end)
        self._status_fd = self._control_fd = -1


class L0tpProcess(_Process[L0tpEnd]):
    """An L0 trigger processor."""

    def __init__(self, config: L0tpConfig) -> None:
        super().__init__(config, "l0tp", "the L0 trigger processor")
