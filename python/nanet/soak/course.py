# SPDX-License-Identifier: Apache-2.0
"""The course of a soak: boards, engine and faults as time goes on, and what is seen of them.

Terms: a *phase* is a time with one setting of the fault injector; *period* is explained in plan.py, *life* in lives.py.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nanet.config.components import Faults, Record
from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.config.errors import validated
from nanet.machine.facts import CorePlan, keep_to
from nanet.machine.netns import VethPair
from nanet.machine.signals import StopSignals
from nanet.result import books
from nanet.result.keys.emulator import EmulatorResult, EmulatorSnapshot
from nanet.result.keys.engine import EngineEnd
from nanet.run import emulate
from nanet.run.native import NativeEmulator, make_emulator
from nanet.run.process import EngineError, EngineProcess
from nanet.soak.books import Fault, Look, Rate
from nanet.soak.faults import UNDISTURBED, FaultMaker
from nanet.soak.lives import Life, Lives, add_up, packets_lost
from nanet.soak.plan import PACKETS, Plan, Planned
from nanet.soak.verdict import FAULTS
from nanet.soak.watch import (
    WINDOW_S,
    Samples,
    Stalls,
    descriptor_count,
    overflow_stall_ns,
    receive_buffer_bytes,
    rss_bytes,
    steal_ns,
)

ONE_FAULT, OF_ALL_FAULTS = 0.01, 0.003  # probability of a fault that is alone, and of each of six together
CYCLE = ("off", "loss", "off", "duplicate", "off", "reorder", "off", "corrupt", "off", "truncate", "off", "delay", "off", "all")
PHASE_MAX_S = 30.0
DELAY_US = 300
LOSSES_OF_A_STALL = ("packets_lost_kernel", "packets_clop_full")
TICK_S = 0.1  # with faults of the machine
QUIET_S = 0.3
RECORD_BYTES_MAX = 1 << 40  # the disk ends before


@dataclass(frozen=True)
class Schedule:
    """When which faults of packets are on, where the machine has none: a warm-up without, then CYCLE over and over, and an end without, so
    that the end markers come through."""

    duration_s: float

    @property
    def warm_up_s(self) -> float:
        """The part at the start whose memory is not judged."""
        return min(60.0, 0.2 * self.duration_s)

    @property
    def phase_s(self) -> float:
        """Length of a phase: so short that every fault is on at least once."""
        return min(PHASE_MAX_S, (self.end_at_s - self.warm_up_s) / len(CYCLE))

    @property
    def end_s(self) -> float:
        """The part at the end without faults."""
        return min(10.0, 0.08 * self.duration_s)

    @property
    def end_at_s(self) -> float:
        """When it begins."""
        return self.duration_s - self.end_s

    def phase(self, time_s: float) -> str:
        """Of CYCLE, at this time since the start."""
        if time_s < self.warm_up_s or time_s >= self.end_at_s:
            return "off"
        return CYCLE[int((time_s - self.warm_up_s) / self.phase_s) % len(CYCLE)]


def phase_of(plan: Plan, schedule: Schedule, time_s: float) -> str:
    """What the fault injector does at a time."""
    if plan.always:
        return schedule.phase(time_s)
    share = plan.packets_at(time_s)
    return "off" if share is None else CYCLE[int(share * len(CYCLE))]


def faults_of(phase: str) -> Faults:
    """What a phase of CYCLE puts into the links."""
    if phase == "off":
        return Faults()
    chances = dict.fromkeys(FAULTS, OF_ALL_FAULTS) if phase == "all" else {phase: ONE_FAULT}
    return validated(Faults, chances | {"delay_us": DELAY_US})


def stall_ns(engine: EngineConfig, boards: EmulatorConfig) -> int:
    """The shortest stall that explains an overflow at this rate."""
    packets_per_s = boards.rate_events_per_s * boards.boards / boards.events_per_packet
    return overflow_stall_ns(receive_buffer_bytes(min(link.socket_buffer_bytes for link in engine.links)), packets_per_s)


@dataclass
class Watched:
    """What is there after the run."""

    samples: Samples
    stalls: Stalls
    emulated: EmulatorResult | None = None  # None: they have not ended
    engine: EngineEnd | None = None  # the result of the last life; None: it did not end in order
    lives: list[Life] = field(default_factory=list)
    gap_packets: int = 0
    life_starts_s: list[float] = field(default_factory=lambda: [0.0])
    phases: dict[str, int] = field(default_factory=dict)  # name -> how often it began
    phases_counted: dict[str, int] = field(default_factory=dict)  # in lives that said what the injector did
    faults: list[Fault] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    stopped_early: bool = False

    @property
    def longest_life_s(self) -> tuple[float, float]:
        """From when to when one process was the engine for the longest time: there memory and descriptors are judged."""
        ends = [
            *self.life_starts_s[1:],
            float("inf") if len(self.life_starts_s) == 1 else float(self.emulated["elapsed_s"]) if self.emulated else 0.0,
        ]
        return max(zip(self.life_starts_s, ends, strict=True), key=lambda life: life[1] - life[0])


class Course:
    """`Course(...).run()`. Raises EngineError and nanet._core.SetupError."""

    def __init__(
        self, engine: EngineConfig, emulator: EmulatorConfig, plan: Plan, cores: CorePlan, pair: VethPair | None, seed: int,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._engine, self._boards, self._plan, self._cores, self._pair = engine, emulator, plan, cores, pair
        self._seed, self._say = seed, say
        self._schedule = Schedule(plan.duration_s)
        self._watched = Watched(Samples(plan.duration_s), Stalls(enough_ns=stall_ns(engine, emulator)))

    def run(self) -> Watched:
        """Until the boards are done, a signal comes, or the engine ends."""
        watched, affinity = self._watched, os.sched_getaffinity(0)
        with contextlib.ExitStack() as stack:
            stop = stack.enter_context(StopSignals())
            lives = Lives(
                self._life, [int(link.endpoint.rpartition(":")[2]) for link in self._engine.links if link.scheme == "udp"]
            )
            stack.callback(lives.close)
            keep_to(self._cores.others)
            stack.callback(keep_to, affinity)
            with self._pair.boards.namespace.entered() if self._pair is not None else contextlib.nullcontext():
                emulator = make_emulator(self._boards)
            self._emulator: NativeEmulator = emulator
            gc.collect()
            maker = stack.enter_context(FaultMaker(lives, self._pair, self._seed, self._packets_sent))
            self._emulator.start()
            watch = _Watch(self, lives, maker, stop)
            watch.until_the_end()
            self._emulator.stop()
            watched.emulated = emulate.make_result(self._boards, self._emulator.snapshot())
            keep_to(affinity)
            sent = self._packets_sent()
            lives.look(sent)
            lives.settle_gap(sent)
            watched.engine = None if lives.gone else lives.stop(sent)
            watch.final_look(watched.emulated, add_up([life.counters for life in lives.ended]))
        watched.lives, watched.gap_packets, watched.stopped_early = lives.ended, lives.gap_packets, stop.stopped
        return watched

    def _life(self, prefix: Sequence[str], record: str | None) -> EngineProcess:
        engine = self._engine
        if record is not None:
            first = engine.links[0].model_copy(update={"record": Record(file=record, bytes_max=RECORD_BYTES_MAX)})
            engine = engine.model_copy(update={"links": (first, *engine.links[1:])})
        namespace = None if self._pair is None else self._pair.engine.namespace
        return EngineProcess(engine, namespace, injects_faults=True, prefix=prefix)

    def _packets_sent(self) -> int:
        return int(self._emulator.snapshot()["packets_sent"])


class _Watch:
    """Looks at everything, tick by tick, while the boards send, and makes the faults when they are due."""

    def __init__(self, course: Course, lives: Lives, maker: FaultMaker, stop: StopSignals) -> None:
        self._plan, self._schedule, self._say = course._plan, course._schedule, course._say
        self._watched, self._emulator, self._cores = course._watched, course._emulator, course._cores
        self._boards = course._boards
        self._lives, self._maker, self._stop = lives, maker, stop
        self._start = time.monotonic()
        self._queue = deque(self._plan.planned)
        self._fault: tuple[Planned, Fault] | None = None
        self._recovered_before_s = 0.0  # from the beginning of a fault that must not disturb
        self._rate, self._rate_since_s = Rate(), 0.0
        self._recovered_s: float | None = None
        self._excused_until_s = -1.0
        self._phase, self._phases_of_life, self._life_count = "off", dict[str, int](), 0
        self._quiet: tuple[int, float, tuple[int, int] | None] = (-1, 0.0, None)  # packets sent, since when, reading then
        self._looked_at = -1  # period

    def _now_s(self) -> float:
        return time.monotonic() - self._start

    def until_the_end(self) -> None:
        """Ends when the boards are done, at a signal, or when the engine ended by itself without a fault."""
        duration_s, planned = self._plan.duration_s, bool(self._plan.planned)
        slow_s = min(1.0, self._schedule.phase_s / 4, duration_s / 80)
        tick_s = min(TICK_S, slow_s) if planned else slow_s
        sample_at_s = look_at_s = say_at_s = 0.0
        say_every_s = max(5.0, min(600.0, duration_s / 24))
        while not self._emulator.wait(0.0) and not self._stop.wait(tick_s):
            if not self._revived():
                break
            now_s = self._now_s()
            self._inject(now_s)
            if now_s >= sample_at_s:
                sample_at_s = now_s + slow_s * 0.99
                self._sample(now_s)
            if not planned and now_s < look_at_s:
                continue
            snapshot = self._emulator.snapshot()
            reading = self._lives.look(int(snapshot["packets_sent"]))
            if planned:
                self._step_fault(now_s, snapshot)
                self._read_books(now_s, snapshot, reading)
            if now_s < look_at_s:
                continue
            look_at_s = now_s + 1.0
            lost = self._look_at_stalls(now_s, snapshot)
            if now_s >= say_at_s:
                say_at_s = now_s + say_every_s
                self._say(self._line(now_s, snapshot, lost))
        self._finish()

    def _finish(self) -> None:
        """No fault outlives the boards."""
        if self._fault is not None:
            self._end_fault(self._now_s())
            self._close_fault()
        self._count_phases()
        for kept, count in self._phases_of_life.items():
            self._watched.phases_counted[kept] = self._watched.phases_counted.get(kept, 0) + count

    def final_look(self, emulated: EmulatorResult, counters: Mapping[str, int]) -> None:
        """The books after the end of all."""
        self._look(self._plan.period(float(emulated["elapsed_s"])), emulated, counters, int(emulated["mistakes"]["stale_answers"]))
        self._watched.stalls.end(
            float(emulated["elapsed_s"]), overflows(counters, emulated), in_fault=self._now_s() < self._excused_until_s
        )

    def _revived(self) -> bool:
        """Whether there is an engine, or none because of a fault. One that dies in a fault that should not kill it is started again."""
        if self._fault is None:
            return self._lives.process.alive()
        planned, fault = self._fault
        if (planned.kind == "kill" and fault.end_s is None) or (not self._lives.gone and self._lives.process.alive()):
            return True
        if not self._lives.gone:
            fault.problems.append("the engine ended by itself")
            self._maker.end(planned.kind)
            self._lives.bury()
        try:
            self._lives.begin(int(self._emulator.snapshot()["packets_sent"]))
        except EngineError as error:
            fault.problems.append(f"the engine did not start again: {error}")
            return False
        return True

    def _inject(self, now_s: float) -> None:
        """Tells the engine what the fault injector is to do now."""
        self._count_phases()
        wanted = phase_of(self._plan, self._schedule, now_s)
        if wanted == self._phase:
            return
        self._phase = wanted
        self._watched.phases[wanted] = self._watched.phases.get(wanted, 0) + 1
        self._phases_of_life[wanted] = self._phases_of_life.get(wanted, 0) + 1
        for link in self._lives.config.links:
            for name in link.inputs():
                self._lives.process.set_faults(name, faults_of(wanted))

    def _count_phases(self) -> None:
        """Keeps those of a life that ended in order; a new life begins without faults."""
        if len(self._lives.ended) == self._life_count:
            return
        if self._lives.ended[-1].result is not None:
            for kept, count in self._phases_of_life.items():
                self._watched.phases_counted[kept] = self._watched.phases_counted.get(kept, 0) + count
        self._life_count, self._phases_of_life, self._phase = len(self._lives.ended), {}, "off"
        self._watched.life_starts_s.append(self._now_s())

    def _step_fault(self, now_s: float, snapshot: EmulatorSnapshot) -> None:
        if self._fault is None:
            if self._queue and now_s >= self._queue[0].start_s:
                self._begin_fault(now_s)
            return
        planned, fault = self._fault
        over = self._plan.in_pause(now_s) or self._plan.period(now_s) != fault.period
        again = self._rate.look(now_s, int(snapshot["sent"]), int(snapshot["answered"]))
        if again and self._recovered_s is None:
            self._recovered_s = now_s - self._rate_since_s
        if fault.end_s is not None:
            if again or over:
                self._close_fault()
        elif over or (now_s >= fault.begin_s + planned.length_s and self._may_end(fault)):
            self._end_fault(now_s)

    def _may_end(self, fault: Fault) -> bool:
        """A fault that must not disturb lasts until the rate is reached, and every fault until it has happened."""
        return self._maker.has_happened(fault.kind) and (self._recovered_s is not None or fault.kind not in UNDISTURBED)

    def _begin_fault(self, now_s: float) -> None:
        planned = self._queue.popleft()
        if self._plan.period(now_s) != planned.period or self._plan.in_pause(now_s):
            return  # this process stood still for so long: the result says that the fault never came
        fault = Fault(planned.kind, planned.period, now_s)
        self._fault = (planned, fault)
        self._excused_until_s = float("inf")
        if planned.kind != PACKETS:
            fault.problems += self._maker.begin(planned.kind)
        self._measure(now_s)

    def _end_fault(self, now_s: float) -> None:
        """Undoes it. A fault that must not disturb has its time to recover from its beginning, and from its end."""
        assert self._fault is not None
        planned, fault = self._fault
        if fault.end_s is not None:
            return
        if fault.kind in UNDISTURBED:
            self._recovered_before_s = self._recovered_s if self._recovered_s is not None else float("inf")
        else:
            self._recovered_before_s = 0.0
        if planned.kind != PACKETS:
            fault.problems += self._maker.end(planned.kind)
        fault.end_s = self._now_s()
        self._measure(now_s)

    def _measure(self, since_s: float) -> None:
        self._rate, self._rate_since_s = Rate(), since_s
        self._recovered_s = None

    def _close_fault(self) -> None:
        """Its part of the period is over."""
        assert self._fault is not None
        _, fault = self._fault
        self._fault = None
        self._excused_until_s = self._now_s() + WINDOW_S
        if self._recovered_s is not None and self._recovered_before_s < float("inf"):
            fault.recover_s = max(self._recovered_s, self._recovered_before_s)
        self._watched.faults.append(fault)
        within = "never in its period" if fault.recover_s is None else f"after {fault.recover_s:.1f} s"
        problems = "".join(f"; {problem}" for problem in fault.problems)
        self._say(f"{self._now_s():9.0f} s  {fault.kind:8} at {fault.begin_s:.0f} s: rate reached again {within}{problems}")

    def _read_books(self, now_s: float, snapshot: EmulatorSnapshot, reading: tuple[int, int]) -> None:
        """Once a pause, when nothing has been sent for a while and the engine has told twice since then what it counted."""
        period, sent = self._plan.period(now_s), int(snapshot["packets_sent"])
        quiet_sent, since_s, then = self._quiet
        if not self._plan.in_pause(now_s) or sent != quiet_sent or (then is not None and then[0] != reading[0]):
            self._quiet = (sent, now_s, None)
        elif then is None and now_s >= since_s + QUIET_S:
            self._quiet = (sent, since_s, reading)
        elif then is not None and reading[1] >= then[1] + 2 and self._looked_at != period:
            self._looked_at = period
            self._lives.settle_gap(sent)
            self._look(period, snapshot, self._lives.counters(), int(snapshot["stale_answers"]))

    def _look(self, period: int, boards: EmulatorResult | EmulatorSnapshot, counters: Mapping[str, int], stale: int) -> None:
        look = Look(period, int(boards["sent"]), int(boards["answered"] or 0), counters, self._gap_events(), stale)
        self._watched.looks.append(look)

    def _gap_events(self) -> int:
        """The bound of what no engine counted, in events. Merged, those of which a killed engine saw no part are in it."""
        packets, boards = self._lives.gap_packets, self._boards.boards
        if boards > 1:
            packets += sum(packets_lost(life.counters) for life in self._lives.ended if life.result is None) + boards * boards
        return packets * self._boards.events_per_packet // boards

    def _sample(self, now_s: float) -> None:
        pid, own = self._lives.process.pid, os.getpid()
        if not self._lives.gone:
            self._watched.samples.add(now_s, (rss_bytes(pid), rss_bytes(own), descriptor_count(pid), descriptor_count(own)))

    def _look_at_stalls(self, now_s: float, snapshot: EmulatorSnapshot) -> dict[str, int]:
        engine_cores = [] if self._cores.engine is None else [self._cores.engine]
        stalled = {
            "engine_core_wait": self._lives.core_wait_ns(), "steal": steal_ns(engine_cores),
            "emulator_stalls": int(snapshot["stalls"]["total_ns"]),
        }  # fmt: skip
        lost = overflows(self._lives.counters(), snapshot)
        self._watched.stalls.look(now_s, stalled, lost, in_fault=now_s < self._excused_until_s)
        return lost

    def _line(self, now_s: float, snapshot: EmulatorSnapshot, lost: Mapping[str, int]) -> str:
        pid, fault = self._lives.process.pid, self._phase if self._fault is None else self._fault[1].kind
        return (
            f"{now_s:9.0f} s  faults {fault:9}  sent {int(snapshot['sent']):,}  answered {int(snapshot['answered']):,}"
            f"  overflow {books.lost_text(lost)}  engine {rss_bytes(pid) / 2**20:.1f} MiB, {descriptor_count(pid)} descriptors"
        )


def overflows(counters: Mapping[str, int], emulated: EmulatorResult | EmulatorSnapshot) -> dict[str, int]:
    """What is lost where somebody did not come to take it in time."""
    totals = {name: int(counters.get(name, 0)) for name in LOSSES_OF_A_STALL}
    return totals | {"answers_kernel_dropped": int(emulated["answers_kernel_dropped"])}
