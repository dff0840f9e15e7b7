#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What metrics cost: the same load without metrics, without them once more, and with /metrics read every 100 ms, in turn, over several rounds.

    .venv/bin/python scripts/metrics_cost.py     # on a machine that does nothing else; under four minutes

Three latencies, of each p50, p99 and p99.9 as medians over the rounds, and their ratio:
    whole      from an event's last packet to its answer, in the emulator
    clean      the same without what overlaps a stall of the emulator's own thread
    residence  from the packet's arrival in the engine to its answer's handing to the kernel, measured by the engine
With fewer than three cores whoever asks and whoever answers share a core with the emulator: then the first shows the emulator's stalls, and the
other two tell. `noise` is the ratio of the runs without metrics to those without once more: a cost smaller than its distance from 1 is none that can be
seen on this machine. `lowest` and `highest` are of the ratios of single rounds.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

PERCENTILES = ("p50", "p99", "p99_9")
SERIES = ("whole", "clean", "residence")
HALVES = ("without", "again", "scraped")  # the second is like the first: what it differs by is the machine
SCRAPE_EVERY_S = 0.1


def main() -> int:
    parser = argparse.ArgumentParser(description="what metrics cost")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--duration", type=float, default=8.0, help="of each run; a round has three [s]")
    parser.add_argument("--rate", type=float, default=1e6, help="events/s")
    parser.add_argument("--boards", type=int, default=1, choices=(1, 4))
    parser.add_argument("--port", type=int, default=6200, help="UDP port of the engine; TCP PORT + 50 is that of the metrics")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--scrape", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.scrape:
        return scrape(arguments.scrape)
    result = measure(arguments)
    print_table(result)
    from nanet.result import files

    files.write_json(arguments.json, result)
    rows = [
        (f"{series}@{arguments.rate:.0f}", f"{how}_{name}", float(result[how][series][name]), "us" if how in HALVES else "1")
        for how in (*HALVES, "ratio", "noise")
        for series in SERIES
        for name in PERCENTILES
        if result[how][series]
    ]
    files.append_csv(arguments.csv, "metrics_cost", rows)
    return 0 if result["lost"] == 0 else 1


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    from nanet.loop.run import Loop, loop_configs, run_loop
    from nanet.machine.facts import plan_cores
    from nanet.result import files

    cores = plan_cores()
    address = f"127.0.0.1:{arguments.port + 50}"
    halves: dict[str, list[dict[str, Any]]] = {how: [] for how in HALVES}
    lost, scrapes, scrape_s = 0, 0, 0.0
    for number in range(arguments.rounds):
        for how in turned(HALVES, number):
            metrics = address if how == "scraped" else None
            loop = Loop(
                rate_events_per_s=arguments.rate, duration_s=arguments.duration, boards=arguments.boards, port=arguments.port, metrics=metrics
            )  # fmt: skip
            with scraper(metrics, sorted(cores.others)) as counts:
                one = run_loop(*loop_configs(loop, cores), cores)
            if one["emulator"]["stopped_early"]:
                raise KeyboardInterrupt
            lost += one["lost"]
            scrapes, scrape_s = scrapes + counts[0], scrape_s + counts[1]
            halves[how].append(
                {"whole": one["latency_us"], "clean": one["emulator"]["latency_clean_us"], "residence": one["engine"]["latency_us"]}
            )
        print(f"round {number + 1}: " + "; ".join(f"{how} {brief(halves[how][-1])}" for how in halves), flush=True)
    return files.base("metrics_cost") | {how: {series: medians_of(rounds, series) for series in SERIES} for how, rounds in halves.items()} | {
        "ratio": ratios(halves, "scraped", median), "lowest": ratios(halves, "scraped", min), "highest": ratios(halves, "scraped", max),
        "noise": ratios(halves, "again", median), "rounds": halves, "lost": lost, "scrapes": scrapes,
        "scrape_mean_ms": 1e3 * scrape_s / scrapes if scrapes else None,
        "rate_events_per_s": arguments.rate, "duration_s": arguments.duration,
    }  # fmt: skip


def turned(words: Sequence[str], by: int) -> list[str]:
    """The words in turned order, so that each is first, second and last equally often."""
    by %= len(words)
    return [*words[by:], *words[:by]]


def ratios(
    halves: dict[str, list[dict[str, Any]]], how: str, over: Callable[[Iterable[float]], float]
) -> dict[str, dict[str, float] | None]:
    """Of runs `how` to those without metrics: the ratio of the medians, or the lowest or highest of single rounds."""
    found: dict[str, dict[str, float] | None] = {}
    for series in SERIES:
        without, other = (medians_of(halves[each], series) for each in ("without", how))
        if without is None or other is None:
            found[series] = None
            continue
        pairs = list(zip(halves[how], halves["without"], strict=True))
        found[series] = {
            name: other[name] / without[name]
            if over is median
            else over(one[series][name] / two[series][name] for one, two in pairs)
            for name in PERCENTILES
        }
    return found


def medians_of(rounds: list[dict[str, Any]], series: str) -> dict[str, float] | None:
    if any(one[series] is None for one in rounds):
        return None
    return {name: median(one[series][name] for one in rounds) for name in PERCENTILES}


def brief(half: dict[str, Any]) -> str:
    return f"p99.9 whole {half['whole']['p99_9']:.1f}, residence {half['residence']['p99_9']:.1f} us"


def print_table(result: dict[str, Any]) -> None:
    print(f"\n{'':12}{'':8}{'without us':>12}{'scraped us':>12}{'ratio':>8}{'lowest':>8}{'highest':>8}{'noise':>8}")
    for series in SERIES:
        for name in PERCENTILES:
            if result["ratio"][series] and result["noise"][series]:
                without, scraped = result["without"][series][name], result["scraped"][series][name]
                of = "".join(f"{result[key][series][name]:8.3f}" for key in ("ratio", "lowest", "highest", "noise"))
                print(f"{series:12}{name:8}{without:12.2f}{scraped:12.2f}{of}")
    if result["scrapes"]:
        print(f"{result['scrapes']} scrapes, {result['scrape_mean_ms']:.1f} ms each; lost {result['lost']} events")


@contextmanager
def scraper(address: str | None, cores: list[int]) -> Iterator[list[float]]:
    """A process that reads the metrics while the block runs; afterwards [scrapes, seconds in them]. None: [0, 0]."""
    counts = [0, 0.0]
    if address is None:
        yield counts
        return
    command = [sys.executable, __file__, "--scrape", f"http://{address}/metrics"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        os.sched_setaffinity(process.pid, cores)
        try:
            yield counts
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=30)
    number, seconds = said.split()
    counts[:] = [int(number), float(seconds)]


def scrape(url: str) -> int:
    """Reads `url` every SCRAPE_EVERY_S until SIGTERM; prints how often, and how many seconds that took. Before it is there it is not counted."""
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    number, seconds, due_s = 0, 0.0, time.monotonic()
    while not ended:
        begin_s = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                answer.read()
        except OSError:
            pass
        else:
            number, seconds = number + 1, seconds + time.monotonic() - begin_s
        due_s += SCRAPE_EVERY_S
        time.sleep(max(0.0, due_s - time.monotonic()))
    print(number, seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
