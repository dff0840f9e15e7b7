#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formal proofs with yosys and Boolector, both from PyPI: `formal/NAME_formal.sv` around the module NAME.

Usage: prove.py [--holds | --refuses] [NAME...]      Exit status: 0 all is as it should be, 1 something is not, 2 usage.

The assertions of the module, and those around it, hold for ever: in every behaviour from reset on, by induction, for the parameters named there.
And each proof refuses every broken module of formal/broken.toml: from reset on an assertion fails within a few cycles. --holds, --refuses: only that.
"""

import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
GATEWARE = HERE.parent
sys.path.insert(0, str(GATEWARE))
import sources  # noqa: E402

WORK = GATEWARE.parent / "build" / "gateware" / "formal"


class Proof(NamedTuple):
    cycles: int  # of the induction, or in which all cases come
    reader: str  # who reads the source: yosys itself, or slang, which takes all of the language
    memories_open: bool = False  # what is read of a memory may be anything: less to think about, and more than the module needs
    clocks_free: bool = False  # each clock is an input as any other, and may stand
    all_cases: bool = False  # nothing is kept from cycle to cycle but which case it is: no induction


PROOFS = {
    "apelink_unstuff": Proof(2, "slang"),
    "apenet_route": Proof(2, "slang"),
    "arbiter_rr": Proof(4, "yosys"),
    "async_fifo": Proof(3, "slang", clocks_free=True),
    "clop_writer": Proof(2, "slang"),
    "comma_align": Proof(4, "slang"),
    "credit_giver": Proof(2, "slang"),
    "dec_8b10b": Proof(7, "slang"),
    "event_gather": Proof(2, "slang"),
    "event_select": Proof(4, "yosys"),
    "frame_fifo": Proof(4, "yosys"),
    "km3_align": Proof(2, "slang"),
    "part_buffer": Proof(2, "slang"),
    "rdma_regions": Proof(2, "slang"),
    "router": Proof(2, "slang"),
    "rx_fifo": Proof(2, "slang"),
    "secded_decode": Proof(11, "slang", all_cases=True),
    "skid": Proof(2, "slang"),
    "tx_fifo": Proof(2, "slang"),
    "tx_ring": Proof(2, "slang", memories_open=True),
    "write_arbiter": Proof(2, "slang"),
}
READ_TOO = {
    "apelink_unstuff": ["apenet_pkg", "apelink_stuff"],
    "apenet_route": ["apenet_pkg"],
    "async_fifo": ["reset_sync", "sync_bits"],
    "clop_writer": ["contract_pkg"],
    "comma_align": ["code_8b10b_pkg"],
    "km3_align": ["code_8b10b_pkg"],
    "credit_giver": ["apenet_pkg", "credit_taker"],
    "dec_8b10b": ["code_8b10b_pkg", "enc_8b10b"],
    "part_buffer": ["event_pkg"],
    "rdma_regions": ["apenet_pkg", "rdma_pkg"],
    "secded_decode": ["secded_pkg", "secded_encode"],
    "tx_ring": ["contract_pkg"],
}
TIMEOUT_S = 600  # a proof takes seconds; one that does not end is one that fails
TOOLS = ["yosys", "yosys-smtbmc", "yosys-witness", "boolector"]
FAILED = "Assert failed in"


class Broken(NamedTuple):
    """A fault in a module: `before`, which stands there once, turned into `after`. cycles: from reset to the first failed assertion, at most."""

    name: str
    before: str
    after: str
    cycles: int


def main(arguments: list[str]) -> int:
    only = [argument for argument in arguments if argument in ("--holds", "--refuses")]
    names = [argument for argument in arguments if argument not in only]
    unknown = sorted(set(names) - set(PROOFS))
    if unknown:
        print(f"error: no proof of {', '.join(unknown)} (known: {', '.join(PROOFS)}) name one of these", file=sys.stderr)
        return 2
    make_tools()
    broken = read_broken()
    failed = 0
    for name in names or PROOFS:
        if "--refuses" not in only:
            failed += not prove(name)
        if "--holds" not in only:
            failed += sum(not refuses(name, number, fault) for number, fault in enumerate(broken[name]))
    return 1 if failed else 0


def make_tools() -> None:
    """The names under which the tools look for each other; each is called once, because at its first call it compiles itself and says so."""
    folder = WORK / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for tool in TOOLS:
        link = folder / tool
        link.unlink(missing_ok=True)
        link.symlink_to(Path(sys.executable).parent / f"yowasp-{tool}")
    os.environ["PATH"] = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    for tool in ("yosys", "boolector"):
        subprocess.run([tool, "--version"], check=False, capture_output=True)


def read_broken() -> dict[str, list[Broken]]:
    """Of each proof, at least one: a proof that refuses nothing proves nothing."""
    entries = tomllib.loads((HERE / "broken.toml").read_text(encoding="utf-8"))
    broken = {name: [Broken(**entry) for entry in entries[name]] for name in PROOFS}
    assert set(entries) == set(PROOFS), "broken.toml names a proof that there is not"
    return broken


def prove(name: str) -> bool:
    started = time.monotonic()
    mode = "bmc" if PROOFS[name].all_cases else "prove"
    result = run(name, f"mode {mode}\ndepth {PROOFS[name].cycles}", module_file(name), name)
    good = result.returncode == 0
    print(f"formal {name}: {'holds for ever' if good else 'FAILED'} ({time.monotonic() - started:.0f} s)", flush=True)
    if not good:
        print("\n".join(result.stdout.splitlines()[-25:]))
    return good


def refuses(name: str, number: int, fault: Broken) -> bool:
    text = module_file(name).read_text(encoding="utf-8")
    if text.count(fault.before) != 1:
        print(f"formal {name}: {fault.name}: the text to break stands there {text.count(fault.before)} times, not once")
        return False
    path = WORK / "broken" / f"{name}-{number}" / f"{name}.sv"  # sby empties a folder of the task's name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(fault.before, fault.after), encoding="utf-8")
    started = time.monotonic()
    result = run(name, f"mode bmc\ndepth {fault.cycles}", path, f"{name}-{number}", "REFUSES=1")
    good = result.returncode == 2 and FAILED in result.stdout
    print(
        f"formal {name}: {'refuses' if good else 'DOES NOT REFUSE'}: {fault.name} ({time.monotonic() - started:.0f} s)", flush=True
    )
    if not good:
        print("\n".join(result.stdout.splitlines()[-25:]))
    return good


def module_file(name: str) -> Path:
    return sources.paths()[name]


def run(name: str, options: str, module: Path, task: str, define: str = "HOLDS=1") -> subprocess.CompletedProcess[str]:
    """sby with the proof `name` around `module`, in the folder `task`. define: with REFUSES a proof may look at less, to find a fault sooner."""
    # Only what the modules need: yosys' own reader does not take every package (the registers' has unpacked structures).
    parts = dict.fromkeys(["nanet_pkg", *READ_TOO.get(name, []), "arbiter_rr", name])
    files = [module if part == name else module_file(part) for part in parts] + [HERE / f"{name}_formal.sv"]
    proof = PROOFS[name]
    names = " ".join(path.name for path in files)
    top = f"{name}_formal"
    free = "flatten\nmemory_collect\ndelete t:$mem_v2\nsetundef -undriven -anyseq\n" if proof.memories_open else ""
    clocks = "clk2fflogic" if proof.clocks_free else "async2sync"
    read = {
        "yosys": f"read_verilog -formal -D{define} -sv {names}\nprep -top {top}\n",
        "slang": f"read_slang -j 1 -D FORMAL=1 -D {define} --no-synthesis-define --top {top} {names}\nprep -top {top}\n{free}{clocks}\nchformal -lower\n",
    }[proof.reader]
    (WORK / f"{task}.sby").write_text(
        f"[options]\n{options}\nmulticlock {'on' if proof.clocks_free else 'off'}\ntimeout {TIMEOUT_S}\n[engines]\nsmtbmc boolector\n[script]\n{read}"
        + ("" if name == "arbiter_rr" else "chformal -assert -remove *arbiter_rr*\n")  # it has a proof of its own
        + "[files]\n"
        + "\n".join(map(str, files))
        + "\n",
        encoding="utf-8",
    )
    return subprocess.run(["yowasp-sby", "-f", f"{task}.sby"], cwd=WORK, check=False, capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
