# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGINT as a request to end in order, taken by the control thread and by no thread of the data path."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})


class StopSignals:
    """`with StopSignals() as stop: ... stop.wait(1.0)`. Threads made inside never see these signals.

    They are blocked, and waited for. A handler is there as well: libraries may have made threads before, in which they are not
    blocked and would end the process. Outside the main thread nothing is changed and `wait` only waits.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._main = threading.current_thread() is threading.main_thread()
        self._old_handlers: dict[signal.Signals, Any] = {}
        self._old_mask: set[int] = set()

    def __enter__(self) -> Self:
        if self._main:
            self._old_handlers = {one: signal.signal(one, self._handle) for one in SIGNALS}
            self._old_mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._main:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._old_mask)
            for one, handler in self._old_handlers.items():
                signal.signal(one, handler)

    def wait(self, timeout_s: float) -> bool:
        """Waits at most timeout_s. True: a signal has come, now or before."""
        if not self._main:
            threading.Event().wait(timeout_s)
        elif not self.stopped:
            found = signal.sigtimedwait(SIGNALS, max(0.0, timeout_s))
            # CPython returns what is no signal at all where the process was stopped (SIGSTOP) until after the time-out.
            if found is not None and found.si_signo in SIGNALS:
                self.stopped = True
        return self.stopped

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.stopped = True
