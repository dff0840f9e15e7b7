# SPDX-License-Identifier: Apache-2.0
"""An engine in a process of its own: started with a configuration, waited for until it is ready, stopped, asked for its result.

The parent talks to `nanet run` through two pipes (ready, status) and one JSON file; the data go over real sockets.
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
from pathlib import Path
from typing import Any, Self

from nanet.config import EngineConfig

READY_WITHIN_S = 30.0
STOP_WITHIN_S = 20.0


class EngineError(RuntimeError):
    """The engine process did not start, or ended early. The text is its last line of error output."""


class EngineProcess:
    """`with EngineProcess(config) as engine: ...; result = engine.stop()`. The engine listens when `__enter__` returns."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.status: dict[str, int] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="nanet-")
        self._process: subprocess.Popen[bytes] | None = None
        self._status_fd = -1
        self._status_rest = b""
        self._result: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        (folder / "engine.yaml").write_text(json.dumps(self.config.model_dump(mode="json")), encoding="utf-8")
        ready_fd, ready_in = os.pipe()
        self._status_fd, status_in = os.pipe()
        os.set_blocking(self._status_fd, False)
        command = [
            sys.executable, "-m", "nanet", "run", str(folder / "engine.yaml"), "--quiet", "--json", str(folder / "engine.json"),
            "--ready-fd", str(ready_in), "--status-fd", str(status_in),
        ]  # fmt: skip
        with (folder / "errors").open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(ready_in, status_in),
                start_new_session=True,  # Ctrl-C reaches the parent alone, which stops the engine in order
            )
        os.close(ready_in)
        os.close(status_in)
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
        if self._status_fd >= 0:
            os.close(self._status_fd)
            self._status_fd = -1
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """The engine's process ID."""
        assert self._process is not None
        return self._process.pid

    def counters(self) -> dict[str, int]:
        """The newest totals that the engine published (once a second)."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._status_fd, 65536):
                self._status_rest += data
        *lines, self._status_rest = self._status_rest.split(b"\n")
        if lines:
            self.status = json.loads(lines[-1])
        return self.status

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> dict[str, Any]:
        """Lets it drain and end; its result as `nanet run --json` writes it, with the exit code under `exit_code`."""
        if self._result is not None:
            return self._result
        assert self._process is not None
        if self.alive():
            self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise EngineError(f"the engine did not stop within {STOP_WITHIN_S:.0f} s (it hangs) report this") from None
        path = Path(self._folder.name) / "engine.json"
        if not path.exists():
            raise EngineError(self._last_error(code))
        self._result = json.loads(path.read_text(encoding="utf-8")) | {"exit_code": code}
        return self._result

    def _wait_ready(self, ready_fd: int) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            readable, _, _ = select.select([ready_fd], [], [], 0.2)
            if readable:
                if os.read(ready_fd, 16):
                    return
                raise EngineError(self._last_error(self._process.wait(STOP_WITHIN_S)))
        raise EngineError(f"the engine was not ready within {READY_WITHIN_S:.0f} s (the machine is busy?) try again")

    def _last_error(self, code: int) -> str:
        text = (Path(self._folder.name) / "errors").read_text(encoding="utf-8", errors="replace").strip()
        return text.splitlines()[-1] if text else f"the engine ended with exit code {code} (it said nothing) report this"
