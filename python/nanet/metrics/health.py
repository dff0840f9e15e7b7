# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an engine, from two or more looks at its counters: a GPU given up, a stop, no progress while packets come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from nanet.config.engine import EngineConfig
from nanet.result.keys.engine import EngineMetrics

STALL_S = 2.0
"""Work that waits this long, none of which is done, means that a thread hangs."""

EVENTS_DONE = (
    "events_answered", "events_discarded", "events_unjudged", "events_forwarded", "parts_merged", "parts_late", "parts_duplicate",
    "parts_no_room", "parts_unjudged", "events_bad_body",
)  # fmt: skip


@dataclass
class Progress:
    """Whether something is done while there is more and more to do. Times in s."""

    limit_s: float
    wanted: int = 0  # as of the last progress
    done: int = 0
    waiting_since_s: float | None = None

    def stalled(self, wanted: int, done: int, now_s: float) -> bool:
        """True when for limit_s more was wanted than at the last progress and nothing was done."""
        if done != self.done or wanted == self.wanted:
            self.wanted, self.done, self.waiting_since_s = wanted, done, None
            return False
        if self.waiting_since_s is None:
            self.waiting_since_s = now_s
        return now_s - self.waiting_since_s >= self.limit_s


class Health:
    """Looks at readings of an engine. The more often it looks, the sooner it knows; any thread may look."""

    def __init__(self, config: EngineConfig, clock_s: Callable[[], float] = time.monotonic) -> None:
        limit_s = STALL_S + max(link.timeout_us for link in config.links) / 1e6
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._receiving = {name: Progress(limit_s) for link in config.links for name in link.inputs()}
        self._processing = Progress(limit_s)
        self._processes = config.done_counter() is not None
        self._ending = False

    def end(self) -> None:
        """The run ends: from now on it is not healthy."""
        self._ending = True

    def look(self, now: EngineMetrics) -> list[str]:
        """What is wrong, a sentence each; empty while all is well. now: of `Engine.metrics`."""
        reasons = [str(fault) for fault in now["faults"]]
        if self._ending or not now["running"]:
            reasons.append("the engine has stopped" if not now["running"] else "the engine is about to stop")
            return reasons
        now_s = self._clock_s()
        with self._lock:
            for link in now["links"]:
                progress, stats = self._receiving.get(link["name"]), link["stats"]
                if progress and progress.stalled(stats["rx_kernel_dropped"], stats["rx_packets"], now_s):
                    reasons.append(f"link {link['name']}: the kernel drops packets and the engine takes none")
            counters = now["counters"]
            wanted = counters["events_received"] + counters["packets_clop_full"]
            if self._processing.stalled(wanted, sum(counters[name] for name in EVENTS_DONE), now_s) and self._processes:
                reasons.append("packets arrive and no event is processed")
        return reasons
