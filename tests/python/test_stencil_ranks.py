# SPDX-License-Identifier: Apache-2.0
"""Ranks of `nanet stencil`: the bits of one process, whatever starts them; what happens when one dies or stands still; the model of the halo's depth."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from nanet import SetupError
from nanet.machine.channel import Channel
from nanet.machine.ports import unused_port
from nanet.stencil import ranks as stencil_ranks
from nanet.stencil.cpu import StencilOptions
from nanet.stencil.model import best, candidates, predict, table
from nanet.stencil.rendezvous import SECRET, Place, RankError, Rendezvous, place_of, rank_of_environment
from stencil_reference import can_move_tiles, command, reference_crc32, words

ROOT = Path(__file__).resolve().parents[2]
Record = Callable[[str, object], None]


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize(("ranks", "halo_rows"), [(2, None), (3, 5), (4, 1)])
def test_ranks_give_the_bits_and_norms_of_one_process(
    tmp_path: Path, record_property: Record, dtype: str, ranks: int, halo_rows: int | None
) -> None:
    if not can_move_tiles(record_property):
        return
    file = tmp_path / "ranks.json"
    options = ["--size", "61x90", "--dtype", dtype, "--sweeps", 47, "--norm-every", 10, "--json", file]
    assert command(*options).returncode == 0
    alone = json.loads(file.read_text())
    done = command(*options, "--ranks", ranks, *(["--halo-rows", halo_rows] if halo_rows else []))
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    assert found["crc32"] == alone["crc32"] == reference_crc32(61, 90, dtype, 47)
    assert found["norms"] == alone["norms"]
    assert found["mean"] == pytest.approx(alone["mean"], rel=1e-12)
    assert (found["ranks"], alone["ranks"]) == (ranks, 1)
    assert halo_rows in (None, found["halo_rows"])
    assert len(found["model"]) == (1 if halo_rows else len(candidates(61 // ranks)))
    assert "<- taken" in done.stdout
    assert "one-sided" in found["path"]


@pytest.mark.parametrize(
    ("names", "transports"),
    [
        (("SLURM_PROCID", "SLURM_NTASKS"), "tcp"),
        (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ""),
        (("PMI_RANK", "PMI_SIZE"), "tcp"),
    ],
)
def test_ranks_that_a_launcher_starts_meet_at_a_port_or_by_a_file(
    tmp_path: Path, record_property: Record, names: tuple[str, str], transports: str
) -> None:
    if not can_move_tiles(record_property):
        return
    place = f"127.0.0.1:{unused_port(socket.SOCK_STREAM)}" if transports else str(tmp_path / "meet")
    file = tmp_path / "ranks.json"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI"))}
    processes = [
        subprocess.Popen(
            words("--ranks", "env", "--rendezvous", place, "--size", "80x70", "--sweeps", 60, "--json", file, "--no-progress",
                  *(["--transports", transports, "--trust-network"] if transports else [])),
            env=environment | {names[0]: str(rank), names[1]: "3", SECRET: "of this test"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]  # fmt: skip
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    found = json.loads(file.read_text())
    assert found["crc32"] == reference_crc32(80, 70, "fp64", 60)
    assert "3 ranks" in said[0]
    assert said[1:] == ["", ""]
    assert ("emulated" if transports else "one-sided") in found["path"]


@pytest.mark.parametrize(("blow", "text"), [(signal.SIGKILL, "rank 1 was ended by SIGKILL"), (signal.SIGSTOP, "")])
@pytest.mark.parametrize("transports", ["", "tcp"])
def test_a_rank_that_dies_or_stands_still_ends_the_run(
    tmp_path: Path, record_property: Record, blow: signal.Signals, text: str, transports: str
) -> None:
    if not can_move_tiles(record_property):
        return
    checkpoint = tmp_path / "field.h5"
    launcher = subprocess.Popen(
        words("--ranks", 3, "--size", "90x64", "--sweeps", 10**9, "--checkpoint", checkpoint, "--checkpoint-every", 500,
              "--timeout", 4, "--no-progress", *(["--transports", transports, "--trust-network"] if transports else [])),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(checkpoint.exists)  # they sweep
    ranks = children(launcher.pid)
    assert len(ranks) == 3
    for rank in ranks:  # what a rank shows to other accounts has no secret in it
        environment = dict(one.split("=", 1) for one in Path(f"/proc/{rank}/environ").read_text().split("\0") if "=" in one)
        assert environment[SECRET] not in Path(f"/proc/{rank}/cmdline").read_text()
    os.kill(ranks[1], blow)
    begin_s = time.monotonic()
    _, said = launcher.communicate(timeout=100)
    assert launcher.returncode == 1, said
    assert text in said
    assert "the run is over" in said
    assert any(f"rank {rank}: " in said for rank in (0, 2)), said
    assert time.monotonic() - begin_s < 90  # two time limits, and a machine that is busy
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)


JOB_SCRIPT = ROOT / "examples" / "stencil_slurm.sh"
ADVISED = re.findall(r"add (--[a-z-]+(?: [a-z]+(?:,[a-z]+)+)?)", JOB_SCRIPT.read_text())


@pytest.mark.parametrize("advised", ["", *ADVISED])
def test_the_job_script_does_what_it_says(tmp_path: Path, record_property: Record, advised: str) -> None:
    """With an srun that starts four processes on this machine, and nothing else of Slurm; also with each option that its text advises."""
    assert ADVISED
    if not can_move_tiles(record_property):
        return
    tools = {
        "scontrol": "#!/bin/sh\necho 127.0.0.1\n",
        "srun": '#!/bin/sh\nshift\nfor r in 1 2 3; do SLURM_PROCID=$r SLURM_NTASKS=4 "$@" & done\n'
        'SLURM_PROCID=0 SLURM_NTASKS=4 "$@"; code=$?\nwait\nexit $code\n',
        "nanet": f'#!/bin/sh\nexec {sys.executable} -m nanet "$@"\n',
    }
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI", "SLURM_"))}
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": str(os.getpid()), "SLURM_JOB_NODELIST": "x"}
    given = [str(JOB_SCRIPT), *advised.split(), "--size", "64", "--sweeps", "50", "--json", "out.json", "--no-progress"]
    done = subprocess.run(given, cwd=tmp_path, env=environment, capture_output=True, check=False, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["crc32"] == reference_crc32(64, 64, "fp32", 50)
    assert found["ranks"] == 4
    assert (tmp_path / "field.h5").exists()
    assert (tmp_path / "field.png").exists()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """In the order in which they were started."""
    return sorted(int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


# --- the rendezvous ---


def meet(
    count: int, body: Callable[[Rendezvous], None], place: Place, secrets: list[str] | None = None
) -> list[BaseException | None]:
    """`body` in a thread a rank; what each raised."""
    raised: list[BaseException | None] = [None] * count

    def run(rank: int) -> None:
        try:
            with Rendezvous(rank, count, place, "", 3.0, secrets[rank] if secrets else "s") as ranks:
                body(ranks)
        except (RankError, SetupError) as error:
            raised[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return raised


def test_ranks_exchange_what_they_have(tmp_path: Path) -> None:
    found: dict[int, object] = {}

    def body(ranks: Rendezvous) -> None:
        every = ranks.all({"rank": ranks.rank})
        gathered = ranks.gather(bytes([ranks.rank]) * 3_000_000)
        shared = ranks.share(b"x" * 70_000 if ranks.rank == 0 else None)
        order: list[int] = []
        ranks.in_turn(lambda: order.append(ranks.rank), 0.0)
        found[ranks.rank] = (every, [len(one) for one in gathered or []], len(shared), order)

    assert meet(3, body, place_of(str(tmp_path / "meet"))) == [None] * 3
    every = [{"rank": rank} for rank in range(3)]
    assert found == {rank: (every, [3_000_000] * 3 if rank == 0 else [], 70_000, [rank]) for rank in range(3)}
    assert not (tmp_path / "meet").exists()


def test_whoever_has_another_secret_is_turned_away(tmp_path: Path) -> None:
    raised = meet(3, lambda ranks: None, place_of(str(tmp_path / "meet")), ["a", "a", "b"])
    assert raised[1] is None
    assert str(raised[0]).startswith("not all ranks arrived (missing after 3 s: 2; turned away for another secret: 1)")
    assert "does not meet rank 0" in str(raised[2])
    assert "(turned away: another secret)" in str(raised[2])
    assert not (tmp_path / "meet").exists()  # also where the run ends before it began


def test_a_secret_is_any_text(tmp_path: Path) -> None:
    assert (
        meet(2, lambda ranks: ranks.all(1) and None, place_of(str(tmp_path / "meet")), ["秘密 π \U0001f511 \udcff"] * 2)
        == [None] * 2
    )


def test_a_rank_that_says_nothing_is_named(tmp_path: Path) -> None:
    def body(ranks: Rendezvous) -> None:
        if ranks.rank == 2:
            time.sleep(5)
        else:
            ranks.all(1)

    raised = meet(3, body, place_of(str(tmp_path / "meet")))
    assert str(raised[0]).startswith("nothing came from rank 2 within 3 s")
    assert str(raised[1]).startswith(("rank 0 is gone", "nothing came from rank 0 within 3 s"))


@pytest.mark.parametrize(("each_s", "is_late"), [(0.5, True), (20.0, False)])
def test_a_turn_has_its_time_beside_the_limit_and_no_more(tmp_path: Path, each_s: float, is_late: bool) -> None:
    def body(ranks: Rendezvous) -> None:
        ranks.in_turn(lambda: time.sleep(5 if ranks.rank == 1 else 0), each_s)

    raised = meet(3, body, place_of(str(tmp_path / "meet")))
    if is_late:
        assert str(raised[0]).startswith("nothing came from rank 1 within 3.5 s")
        assert all(raised)
    else:
        assert raised == [None] * 3


@pytest.mark.parametrize(
    "rubbish", [(2**40).to_bytes(8, "little"), (4090).to_bytes(8, "little") + b"[" * 4090, (2).to_bytes(8, "little") + b"[]"]
)
def test_what_is_no_rank_is_turned_away(rubbish: bytes) -> None:
    port = unused_port(socket.SOCK_STREAM)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as other:
                    other.sendall(rubbish)
            except OSError:
                pass
            time.sleep(0.01)

    noise = threading.Thread(target=disturb)
    noise.start()
    raised = meet(2, lambda ranks: ranks.all(1) and None, place_of(f"127.0.0.1:{port}"))
    stop.set()
    noise.join()
    assert raised == [None, None]


def test_silent_strangers_take_no_ranks_place_and_no_time() -> None:
    """Each would have kept rank 0 busy for 3 s, the whole time that the ranks have."""
    port, strangers = unused_port(socket.SOCK_STREAM), []

    def body(ranks: Rendezvous) -> None:
        ranks.all(1)

    def crowd() -> None:
        while len(strangers) < 20:
            try:
                strangers.append(socket.create_connection(("127.0.0.1", port), timeout=1))
            except OSError:
                time.sleep(0.001)

    noise = threading.Thread(target=crowd)
    noise.start()
    rank0 = threading.Thread(target=lambda: found.extend(meet_as(0, port, body)))
    found: list[BaseException | None] = []
    rank0.start()
    noise.join(60)  # all are there before the rank comes
    found += meet_as(1, port, body)
    rank0.join(60)
    for one in strangers:
        one.close()
    assert found == [None, None]


def meet_as(rank: int, port: int, body: Callable[[Rendezvous], None]) -> list[BaseException | None]:
    try:
        with Rendezvous(rank, 2, place_of(f"127.0.0.1:{port}"), "", 3.0, "s") as ranks:
            body(ranks)
    except (RankError, SetupError) as error:
        return [error]
    return [None]


def test_a_message_that_drips_does_not_outlast_its_time() -> None:
    a, b = socket.socketpair()
    stop = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            b.sendall((10**6).to_bytes(8, "little"))
            while not stop.wait(0.1):
                b.sendall(b"x")

    ranks = Rendezvous(0, 2, Place(), "", 1.0, "s")
    ranks._peers[1] = Channel(a)
    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(RankError, match="only a part of a message came from rank 1 within 1 s"):
        ranks.gather(b"")
    stop.set()
    thread.join()
    b.close()
    ranks.__exit__()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: place_of("nowhere"), "nowhere is not a meeting place"),
        (lambda: place_of("host:0"), "host:0 is not a meeting place"),
        (lambda: rank_of_environment({}), "this process is not a rank"),
        (
            lambda: rank_of_environment({"SLURM_PROCID": "3", "SLURM_NTASKS": "3"}),
            "SLURM_PROCID=3 and SLURM_NTASKS=3 are not a rank",
        ),
        (lambda: run_rank("node1:7700"), "ranks do not meet without a secret"),
        (lambda: run_rank(""), "the ranks do not know where to meet"),
        (lambda: run_rank("127.0.0.1:7700", rows=4, count=5), "4 rows cannot be swept by 5 ranks"),
        (lambda: run_rank("127.0.0.1:7700", rows=3, count=3), "3 rows cannot be swept by 3 ranks"),
        (lambda: run_rank("127.0.0.1:7700", rows=5, count=3), "5 rows cannot be swept by 3 ranks"),
        (lambda: run_rank("127.0.0.1:7700", halo_rows=33, rows=99), "halos of 33 rows are not possible"),
    ],
)
def test_refusals(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], text: str) -> None:
    monkeypatch.delenv(SECRET, raising=False)
    with pytest.raises(SetupError) as refused:
        call()
    assert str(refused.value).startswith(text + " ("), refused.value


def run_rank(rendezvous: str, rows: int = 30, count: int = 2, halo_rows: int | None = None) -> None:
    among = stencil_ranks.RankOptions(rendezvous, halo_rows=halo_rows)
    stencil_ranks.run_rank(StencilOptions(rows=rows, columns=30), among, 0, count)


def test_without_ucx_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(SetupError, match=r"this nanet moves no tiles \(it was built without UCX"):
        stencil_ranks.run_ranks(StencilOptions(), stencil_ranks.RankOptions(), 2)


# --- the model ---


def test_the_model_is_the_one_that_is_written_down() -> None:
    one = predict(4, 100, 2e-3, 0.5, 2)
    assert one.edges_s == pytest.approx(2 * (4 + 3) * 2e-3)
    assert one.middle_s == pytest.approx((100 - 8 + 3) * 2e-3)
    assert one.pass_s == pytest.approx(one.edges_s + 0.5)  # the exchange is longer than the middle
    assert one.sweep_s == pytest.approx(one.pass_s / 4)
    alone = predict(4, 100, 2e-3, 0.5, 0)
    assert alone.pass_s == pytest.approx((100 + 3) * 2e-3)


def test_the_model_weighs_exchanges_against_rows_swept_twice() -> None:
    def chosen(row_s: float, exchange_s: float) -> int:
        return best([predict(depth, 64, row_s * depth, exchange_s, 2) for depth in candidates(64)]).halo_rows

    assert chosen(1e-6, 1e-9) == 1  # exchanges cost nothing, and a sweep as much in a pass as alone
    assert chosen(1e-6, 1e-2) == 32  # nothing but exchanges
    assert candidates(5) == [1, 2, 4]
    lines = table([predict(depth, 64, 1e-6, 1e-6, 2) for depth in (1, 2)], 2)
    assert [line.endswith("<- taken") for line in lines] == [False, False, True]
