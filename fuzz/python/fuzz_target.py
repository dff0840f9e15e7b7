# SPDX-License-Identifier: Apache-2.0
"""What every Python fuzz target needs: coverage-guided fuzzing by Atheris with libFuzzer's arguments, replay without it, and virtual time.

python fuzz/python/fuzz_NAME.py [libFuzzer's arguments] FOUND CORPUS    fuzzes
python fuzz/python/fuzz_NAME.py --replay CORPUS                         gives every input to the target once (`make coverage`)
"""

from __future__ import annotations

import contextlib
import functools
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

IS_REPLAY = "--replay" in sys.argv
TURN_S = 0.001  # that pass each time somebody looks at the clock


@contextlib.contextmanager
def instrumented(*modules: str) -> Iterator[None]:
    """What is imported within tells the fuzzer which lines ran: these modules, and none else."""
    if IS_REPLAY:
        yield
        return
    import atheris

    with atheris.instrument_imports(include=list(modules)):
        yield


def run(check: Callable[[bytes], None]) -> None:
    """Gives inputs to `check`; what it raises is a find."""
    if IS_REPLAY:
        inputs = sorted(one for one in Path(sys.argv[-1]).iterdir() if one.is_file())
        for one in inputs:
            check(one.read_bytes())
        print(f"replayed {len(inputs)} inputs")
        sys.exit(0 if inputs else 1)
    import atheris

    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


class Bytes:
    """Numbers and pieces from the front of an input; zeros after its end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def number(self) -> int:
        """0 to 255."""
        return self.piece(1)[0] if self else 0

    def piece(self, size: int) -> bytes:
        """So many, or what there is."""
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        """All that is left."""
        return self.piece(len(self._data))


class Clock:
    """In the place of the module `time`: nobody waits, and whoever asks for the time finds that some has passed."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        self.now_s += TURN_S
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Passes them at once."""
        self.now_s += seconds


def in_virtual_time(*modules: Any) -> None:
    """These modules look at a clock of ours, and `nanet.machine.channel`, if it is among them, finds at once that nothing more comes in the time it has."""
    clock = Clock()

    def ready(wait: Any, sockets: Any, within_s: float, *event: int) -> Any:
        found = wait(sockets, 0.0, *event)
        if not found:
            clock.sleep(max(0.0, within_s))
        return found

    for module in modules:
        module.time = SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep)
        if hasattr(module, "ready"):
            module.ready = functools.partial(ready, module.ready)


class Loopback(socket.socket):
    """One end of a socket pair that takes itself for a TCP socket: no port is used up, however many there are."""

    @property
    def family(self) -> int:  # type: ignore[override]
        return socket.AF_INET

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 7

    def setsockopt(self, *_: Any) -> None:  # type: ignore[override]
        """A Unix socket has none of TCP's."""


@contextlib.contextmanager
def spoken_to(said: bytes, *, goes_on: bool = False) -> Iterator[tuple[socket.socket, socket.socket]]:
    """(our end, the other end) of a connection where the other one has said so much; then it closed its side, or goes on."""
    end, other = socket.socketpair()
    ours = Loopback(fileno=end.detach())
    try:
        other.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            other.sendall(said)
        if not goes_on:
            other.shutdown(socket.SHUT_WR)
        yield ours, other
    finally:
        ours.close()
        other.close()


def heard(other: socket.socket) -> bytes:
    """All that our end has said."""
    said = b""
    with contextlib.suppress(BlockingIOError, ConnectionError):
        while piece := other.recv(1 << 16):
            said += piece
    return said
