#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Would the benches see it? Puts faults into the modules of rtl/, one at a time, and counts those that a module's bench finds.

Usage: mutate.py [--mutants N] [--seed S] [--floor SHARE] [--jobs J] [--json FILE] [MODULE...]

For each module that has a bench: N faults (mutations.py says which kinds), chosen at random by the seed, as evenly over the kinds as there are.
Each is linted by itself; what lint refuses is counted as `refused` and is no merit of the bench. The others go into one build, and the short form of
the bench runs once for each until its first failure. What survives one set of the bench's parameters goes to the next, to the last of them, and so from
one bench of the module to the next:

  failed     a test of the bench failed
  assertion  the simulation stopped: an assertion of the RTL
  hung       it took more than four times the CPU time of the sound module
  survived   no one saw it, with no set of parameters
  equivalent no one can see it: tb/equivalent_mutants.toml says why

The kill rate is (failed + assertion + hung) / (those + survived). Exit status: 0; 1 a rate below --floor, or a module that
fails without a fault; 2 usage.
"""

import argparse
import json
import math
import os
import random
import resource
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mutations
import run_tests
import sources
from mutations import Mutant
from run_tests import Bench, CheckFailed

HERE = run_tests.HERE
FOLDER = run_tests.BUILD / "mutants"
KILLS = ("failed", "assertion", "hung")
OUTCOMES = (*KILLS, "survived", "equivalent", "refused")
HANG_FACTOR = 4
SLACK_S = 4  # of CPU time
EXIT_HUNG = ("-24", "-9")  # SIGXCPU, and SIGKILL behind it


@dataclass
class Result:
    module: str
    bench: str
    possible: int  # faults there are to choose from
    outcomes: dict[Mutant, str] = field(default_factory=dict)
    wall_s: float = 0.0

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.outcomes.values())

    @property
    def kill_rate(self) -> float:
        killed = sum(self.counts[kind] for kind in KILLS)
        return killed / (killed + self.counts["survived"]) if killed + self.counts["survived"] else 1.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Faults put into the gateware, and which of them its benches find")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--mutants", type=int, default=20, metavar="N", help="faults a module (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice and of the benches (default 1)")
    parser.add_argument(
        "--floor", type=float, default=0.0, metavar="SHARE", help="the kill rate of all modules together that must be reached"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="simulations at once")
    parser.add_argument("--json", type=Path, default=HERE.parent / "out" / "gateware_mutation.json", metavar="FILE")
    options = parser.parse_args(arguments)
    declared = tomllib.loads((HERE / "tb" / "benches.toml").read_text(encoding="utf-8"))
    benches_of: dict[str, list[Bench]] = {}
    for name, entry in declared.items():
        for module in entry.get("modules", [name]):
            benches_of.setdefault(module, []).extend(benches(name, entry))
    unknown = sorted(set(options.modules) - set(benches_of))
    if unknown or options.mutants < 1 or options.jobs < 1:
        print(
            f"error: no module with a bench {', '.join(unknown)} (known: {', '.join(benches_of)}) name one of these",
            file=sys.stderr,
        )
        return 2
    run_tests.use_tools_of_this_python()
    results = []
    try:
        for module in excuses():  # of all of them: a module that has changed is seen whichever are asked for
            equivalent(module)
        for module in options.modules or benches_of:
            results.append(examine(module, benches_of[module], options.mutants, options.seed, options.jobs))
    except CheckFailed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return summary(results, options.seed, options.floor, options.json)


def benches(name: str, entry: dict[str, Any]) -> list[Bench]:
    return [Bench(name, parameters) for parameters in entry["parameters"]]


def choose(module: str, count: int, seed: int) -> tuple[list[Mutant], int]:
    """`count` faults of the module, in turn from each kind, and how many there are in all."""
    rng = random.Random(f"{seed} {module}")
    every = mutations.mutants(source_of(module).read_text(encoding="utf-8"))
    kinds: dict[str, list[Mutant]] = {}
    for mutant in every:
        kinds.setdefault(mutant.kind, []).append(mutant)
    for of_kind in kinds.values():
        rng.shuffle(of_kind)
    chosen: list[Mutant] = []
    while len(chosen) < min(count, len(every)):
        for of_kind in kinds.values():
            if of_kind and len(chosen) < count:
                chosen.append(of_kind.pop())
    return chosen, len(every)


def examine(module: str, benches: list[Bench], count: int, seed: int, jobs: int) -> Result:
    """All about one module: choose, lint, and for each set of parameters build once and run what has survived the sets before it."""
    started = time.monotonic()
    chosen, possible = choose(module, count, seed)
    result = Result(module, benches[0].module, possible)
    folder = FOLDER / module
    folder.mkdir(parents=True, exist_ok=True)
    text = source_of(module).read_text(encoding="utf-8")
    found = dict.fromkeys(chosen, "refused")
    with ThreadPoolExecutor(jobs) as pool:
        clean = list(pool.map(lambda item: lints(module, folder, item[0], mutations.plain(text, item[1])), enumerate(chosen, 1)))
        left = {number: mutant for number, (mutant, good) in enumerate(zip(chosen, clean, strict=True), 1) if good}
        found.update(dict.fromkeys(left.values(), "survived"))
        excused = excused_of(module, text, chosen)
        for bench in benches:
            limit_s = build(module, bench, folder, mutations.schemata(text, left), seed)
            for number, outcome in zip(
                left, pool.map(lambda it, b=bench, s=limit_s: run(module, b, folder, it, seed, s), left), strict=True
            ):
                found[left[number]] = outcome
            left = {number: mutant for number, mutant in left.items() if found[mutant] == "survived" and mutant not in excused}
            if not left:
                break
    result.outcomes = {
        mutant: "equivalent" if outcome == "survived" and mutant in excused else outcome for mutant, outcome in found.items()
    }
    result.wall_s = time.monotonic() - started
    print(line_of(result), flush=True)
    for mutant, outcome in result.outcomes.items():
        if outcome == "survived":
            print(
                f"  survived: {source_of(module).relative_to(HERE.parent)}:{mutant.line}: {mutant.kind}: {mutant.change}",
                flush=True,
            )
    return result


def excused_of(module: str, text: str, chosen: list[Mutant]) -> set[Mutant]:
    """Those of them that tb/equivalent_mutants.toml says no one can see."""
    excuses = equivalent(module)
    places = {mutant: text.count(mutant.before, 0, mutant.unit.start) + 1 for mutant in chosen}
    return {mutant for mutant, place in places.items() if {(mutant.before, mutant.after, at) for at in (place, 0)} & excuses}


def source_of(module: str) -> Path:
    return sources.paths()[module]


def excuses() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((HERE / "tb" / "equivalent_mutants.toml").read_text(encoding="utf-8"))


def equivalent(module: str) -> set[tuple[str, str, int]]:
    """Before, after, and at which of the places that read so: 0 for all of them."""
    entries = excuses().get(module, [])
    text = source_of(module).read_text(encoding="utf-8")
    for entry in entries:
        if entry["before"] not in text:
            raise CheckFailed(
                f"an excuse for {module} is old (it has no `{entry['before']}`) take it out of equivalent_mutants.toml"
            )
    return {(entry["before"], entry["after"], entry.get("place", 0)) for entry in entries if entry["why"]}


def lints(module: str, folder: Path, number: int, text: str) -> bool:
    path = folder / f"lint{number}" / f"{module}.sv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    good = (
        run_tests.lint_result(module, files_with(module, [path]), ["-Wno-WIDTH"]).returncode == 0
    )  # a stuck bit is as wide as an int
    path.unlink()
    path.parent.rmdir()
    return good


def files_with(module: str, instead: list[Path], *tops: Path) -> list[Path]:
    """The sources of the module, and of `tops`, with other files in place of the module's own."""
    paths = sources.sources_of(sources.paths()[module], *tops)
    packages = [path for path in instead if path.stem.endswith("_pkg")]
    return packages + [
        other for path in paths for other in ([path] if path.stem != module else sorted(set(instead) - set(packages)))
    ]


def build(module: str, bench: Bench, folder: Path, text: str, seed: int) -> float:
    """One simulation with all faults; returns the CPU seconds that a run may take: some times what it takes without a fault."""
    package, woven = folder / "mutation_pkg.sv", folder / f"{module}.sv"
    package.write_text(mutations.PACKAGE, encoding="utf-8")
    woven.write_text(text, encoding="utf-8")
    # A fault may be what Verilator warns of; those that lint refuses are not here.
    run_tests.build_bench(bench, folder / "build", files_with(module, [package, woven], bench.top), ("-Wno-fatal",))
    before_s = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = run(module, bench, folder, 0, seed, 600.0)
    after_s = resource.getrusage(resource.RUSAGE_CHILDREN)
    if outcome != "survived":
        log = run_tests.tail(folder / "run0" / "test.log")
        raise CheckFailed(f"{bench.name} fails without a fault ({outcome}, see below) mend it first\n{log}")
    return SLACK_S + HANG_FACTOR * (after_s.ru_utime + after_s.ru_stime - before_s.ru_utime - before_s.ru_stime)


def run(module: str, bench: Bench, folder: Path, number: int, seed: int, limit_s: float) -> str:
    """What the bench says of fault `number`, 0 being none."""
    os.environ["COCOTB_MAX_FAILURES"] = "1"
    os.environ["SIM_CMD_PREFIX"] = f"prlimit --cpu={math.ceil(limit_s)}:{math.ceil(limit_s) + 2} --core=0"
    tests = f"test_{module}" if (HERE / "tb" / bench.module / f"test_{module}.py").exists() else ""
    try:
        results = run_tests.simulate(
            bench, folder / "build", folder / f"run{number}", seed, (f"+mutant={number}",), short=True, tests=tests
        )
    except RuntimeError as stopped:
        return "hung" if str(stopped).endswith(EXIT_HUNG) else "assertion"
    cases = list(ElementTree.parse(results).iter("testcase"))
    bad = any(case.find(kind) is not None for case in cases for kind in ("failure", "error"))
    return "failed" if bad or not cases else "survived"


def line_of(result: Result) -> str:
    counts = result.counts
    words = " ".join(f"{counts[outcome]:>{max(8, len(outcome))}}" for outcome in OUTCOMES)
    return f"{result.module:<14} {len(result.outcomes):>4} of {result.possible:>4} {words} {100 * result.kill_rate:>5.0f} % {result.wall_s:>6.0f} s"


def summary(results: list[Result], seed: int, floor: float, path: Path) -> int:
    total = Result("all", "", sum(result.possible for result in results), wall_s=sum(result.wall_s for result in results))
    for number, result in enumerate(results):
        for mutant, outcome in result.outcomes.items():
            total.outcomes[Mutant(mutant.unit, mutant.kind, number, mutant.before, mutant.after)] = outcome
    heads = " ".join(f"{outcome:>{max(8, len(outcome))}}" for outcome in OUTCOMES)
    print(f"\n{'module':<14} {'faults':>12} {heads} {'killed':>7} {'wall':>8}")
    for result in [*results, total]:
        print(line_of(result))
    document = {
        "seed": seed,
        "kill_rate": total.kill_rate,
        "modules": {
            result.module: {"bench": result.bench, "possible": result.possible, "kill_rate": result.kill_rate}
            | {outcome: result.counts[outcome] for outcome in OUTCOMES}
            | {
                "survivors": [
                    {"line": mutant.line, "kind": mutant.kind, "before": mutant.before, "after": mutant.after}
                    for mutant, outcome in result.outcomes.items()
                    if outcome == "survived"
                ]
            }
            for result in results
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(f"mutation: {100 * total.kill_rate:.1f} % of the faults are found, seed {seed}, {path}")
    if total.kill_rate < floor:
        print(
            f"error: {100 * total.kill_rate:.1f} % is less than {100 * floor:.0f} % (the survivors stand above) make the benches see them",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
