#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formal proofs with yosys and Boolector, both from PyPI: `formal/NAME_formal.sv` around the module NAME.

Usage: prove.py [NAME...]      Exit status: 0 all hold, 1 one does not, 2 usage.

The assertions of the module, and those around it, hold for ever: in every behaviour from reset on, by induction, for the parameters named there.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
GATEWARE = HERE.parent
WORK = GATEWARE.parent / "build" / "gateware" / "formal"


class Proof(NamedTuple):
    cycles: int  # of the induction
    reader: str  # who reads the source: yosys itself, or slang, which takes all of the language
    memories_open: bool = False  # what is read of a memory may be anything: less to think about, and more than the module needs


PROOFS = {
    "arbiter_rr": Proof(4, "yosys"),
    "clop_writer": Proof(2, "slang"),
    "event_select": Proof(4, "yosys"),
    "frame_fifo": Proof(4, "yosys"),
    "router": Proof(4, "yosys"),
    "rx_fifo": Proof(2, "slang"),
    "tx_fifo": Proof(2, "slang"),
    "tx_ring": Proof(2, "slang", memories_open=True),
    "write_arbiter": Proof(2, "slang"),
}
READ_TOO = {"clop_writer": ["contract_pkg"], "tx_ring": ["contract_pkg"]}
TIMEOUT_S = 600  # a proof takes seconds; one that does not end is one that fails
TOOLS = ["yosys", "yosys-smtbmc", "yosys-witness", "boolector"]


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(PROOFS))
    if unknown:
        print(f"error: no proof of {', '.join(unknown)} (known: {', '.join(PROOFS)}) name one of these", file=sys.stderr)
        return 2
    make_tools()
    return 1 if [name for name in names or PROOFS if not prove(name)] else 0


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


def prove(name: str) -> bool:
    # Only what the modules need: yosys' own reader does not take every package (the registers' has unpacked structures).
    files = [
        GATEWARE / "rtl" / f"{part}.sv" for part in dict.fromkeys(["nanet_pkg", *READ_TOO.get(name, []), "arbiter_rr", name])
    ] + [HERE / f"{name}_formal.sv"]
    task = WORK / f"{name}.sby"
    proof = PROOFS[name]
    names = " ".join(path.name for path in files)
    top = f"{name}_formal"
    free = "flatten\nmemory_collect\ndelete t:$mem_v2\nsetundef -undriven -anyseq\n" if proof.memories_open else ""
    read = {
        "yosys": f"read_verilog -formal -sv {names}\nprep -top {top}\n",
        "slang": f"read_slang -j 1 -D FORMAL=1 --no-synthesis-define --top {top} {names}\nprep -top {top}\n{free}async2sync\nchformal -lower\n",
    }[proof.reader]
    task.write_text(
        f"[options]\nmode prove\ndepth {proof.cycles}\ntimeout {TIMEOUT_S}\n[engines]\nsmtbmc boolector\n[script]\n{read}"
        + ("" if name == "arbiter_rr" else "chformal -assert -remove *arbiter_rr*\n")  # it has a proof of its own
        + "[files]\n"
        + "\n".join(map(str, files))
        + "\n",
        encoding="utf-8",
    )
    result = subprocess.run(["yowasp-sby", "-f", task.name], cwd=WORK, check=False, capture_output=True, text=True)
    good = result.returncode == 0
    print(f"formal {name}: {'holds for ever' if good else 'FAILED'}", flush=True)
    if not good:
        print("\n".join(result.stdout.splitlines()[-25:]))
    return good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
