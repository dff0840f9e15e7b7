# SPDX-License-Identifier: Apache-2.0
"""The comparison of links over a real veth pair. Where namespaces are not allowed it is tested that this is said, and how."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from loops import nanet, wait_for
from nanet import _core
from nanet.bench import links
from nanet.machine.netns import Namespace, NamespaceError, VethPair
from test_commands import QUIET_BUDGET, CheckKeys

HOLD = """import signal, time
from nanet.machine.netns import VethPair
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore it
with VethPair():
    print('made', flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def a_pair(**options: bool | int) -> Iterator[VethPair | None]:
    """A pair; None, said aloud, where the machine does not allow one."""
    try:
        pair = VethPair(**options).__enter__()  # type: ignore[arg-type]
    except NamespaceError as error:
        if "run as root" not in str(error):
            raise
        warnings.warn(f"NOT RUN, no network namespaces here: {error}", stacklevel=3)
        yield None
        return
    try:
        yield pair
    finally:
        pair.__exit__(None, None, None)


def left_over(pid: int) -> list[str]:
    folder = Path("/run/netns")
    return [path.name for path in folder.iterdir() if path.name.startswith(f"nanet-{pid}-")] if folder.exists() else []


def test_a_datagram_crosses_the_cable() -> None:
    home = os.readlink("/proc/thread-self/ns/net")
    with a_pair() as pair:
        if pair is None:
            return
        before = pair.boards.counts()
        with pair.engine.namespace.entered():
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            assert os.readlink("/proc/thread-self/ns/net") != home
        assert os.readlink("/proc/thread-self/ns/net") == home
        with pair.boards.namespace.entered():
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with receiver, sender:
            receiver.bind((pair.engine.address, 6200))
            receiver.settimeout(10)
            sender.sendto(b"x" * 100, (pair.engine.address, 6200))
            assert receiver.recvfrom(200)[1][0] == pair.boards.address
        crossed = pair.boards.counts() - before
        assert (crossed.tx_frames, crossed.tx_bytes, crossed.rx_frames) == (1, 142, 0)
        assert pair.engine.counts().rx_frames == 1
        assert len(left_over(os.getpid())) == 2
    assert not left_over(os.getpid())


def test_the_calling_thread_alone_moves() -> None:
    started, done = threading.Event(), threading.Event()
    seen: list[int] = []

    def wait() -> None:
        seen.append(threading.get_native_id())
        started.set()
        done.wait(30)

    other = threading.Thread(target=wait)
    other.start()
    started.wait(30)
    try:
        with a_pair() as pair:
            if pair is None:
                return
            home = os.readlink("/proc/thread-self/ns/net")
            with pair.engine.namespace.entered():
                assert os.readlink("/proc/thread-self/ns/net") != home
                assert os.readlink(f"/proc/self/task/{seen[0]}/ns/net") == home
    finally:
        done.set()
        other.join()


def test_shapes_of_a_pair() -> None:
    with a_pair(mtu=9000, queues=2, coalesced=False, engine_address=False) as pair:
        if pair is None:
            return
        for end in (pair.boards, pair.engine):
            command = ["ip", "-n", end.namespace.name, "-d", "-j", "address", "show", "dev", end.interface]
            shown = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]
            assert (shown["mtu"], shown["num_rx_queues"], shown["gso_max_segs"]) == (9000, 2, 1)
            assert len(shown["addr_info"]) == (1 if end is pair.boards else 0)
    with a_pair(together=True) as pair:
        assert pair is None or len(left_over(os.getpid())) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_removes_the_pair(number: signal.Signals) -> None:
    with a_pair() as pair:
        if pair is None:
            return
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "made\n"
        assert len(left_over(holder.pid)) == 2
        holder.send_signal(number)
        holder.wait(30)
    wait_for(lambda: not left_over(holder.pid), "removal of the namespaces", 5.0)


def test_a_namespace_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError), Namespace("nanet-0-none").entered():
        pass


def test_no_ip_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NamespaceError, match=r"apt-get install iproute2"), VethPair():
        pass


def test_bench_latency_of_a_link(tmp_path: Path, check_keys: CheckKeys) -> None:
    arguments = (
        "--link",
        "gro",
        "--short",
        "--lowest",
        "1e3",
        "--highest",
        "2e5",
        "--out",
        tmp_path,
        "--json",
        tmp_path / "l.json",
    )
    with a_pair() as pair:
        allowed = pair is not None
    if not allowed:
        assert "run as root" in nanet("bench", "latency", *arguments, expect=2).stderr
        return
    done = nanet("bench", "latency", *arguments, "--csv", tmp_path / "f.csv", *QUIET_BUDGET, expect=None)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a busy machine lost something
    result = json.loads((tmp_path / "l.json").read_text())
    check_keys(result, "bench latency --link")
    assert result["unexplained_packets"] == 0, done.stdout
    (link,) = result["links"]
    assert (link["name"], link["reason"], link["unexplained_packets"]) == ("gro", None, 0)
    assert link["critical_rate_events_per_s"] >= 1e3
    assert [load["share"] for load in link["loads"]] == [0.1, 0.5, 0.9]
    assert (link["alone"], link["long_run"], link["boards"]) == (None, None, "socket")
    for load in [*link["loads"], link["one_in_flight"]]:
        assert load["latency_us"]["min"] <= load["latency_us"]["p50"] <= load["latency_us"]["max"]
        assert len(load["runs"][0]["balance"]["hops"]) == 10
    assert set(result["peers"]) == {"sockperf", "spead2", "testpmd"}
    assert "gro@50%" in (tmp_path / "f.csv").read_text()
    assert "Balance sheets" in (tmp_path / "bench-latency-links.html").read_text()


def test_every_link_of_this_build_balances(tmp_path: Path, check_keys: CheckKeys) -> None:
    """All that can run here runs, loses nothing at a low rate, and has every packet explained; what cannot says why."""
    with a_pair() as pair:
        if pair is None:
            return
    done = nanet(
        "bench", "rate", "--link", "all", "--no-peers", "--no-alone", "--short", "--lowest", "1e4", "--highest", "1e5", "--out", tmp_path, "--json",
        tmp_path / "r.json", expect=None, timeout_s=280,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    result = json.loads((tmp_path / "r.json").read_text())
    check_keys(result, "bench rate --link")
    assert result["unexplained_packets"] == 0, done.stdout
    assert [link["name"] for link in result["links"]] == list(links.NAMES)
    back_ends = _core.build_info()["back_ends"]
    for variant, link in zip(links.VARIANTS, result["links"], strict=True):
        if link["reason"] is None:
            assert link["runs"] >= 2
            assert link["path"]
        else:
            assert ("not in this build" in link["reason"]) != back_ends[variant.back_end], link["reason"]
            warnings.warn(f"NOT RUN: {variant.name}: {link['reason']}", stacklevel=1)
    assert all(link["reason"] is None for link in result["links"][:4]), done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if "---" not in line and "report" not in line) <= 100


@pytest.mark.parametrize("boards", ["socket", "answers-xdp", "xdp"])
def test_boards_by_every_way_links_alone_and_a_long_run(tmp_path: Path, boards: str, check_keys: CheckKeys) -> None:
    """However the emulator sends and receives, each packet has its place in the sheet, alone and in a long run too."""
    name = "spinning"
    if boards != "socket" and not _core.build_info()["back_ends"]["xdp"]:
        warnings.warn(f"NOT RUN: boards by {boards}: nanet was built without xdp", stacklevel=1)
        return
    with a_pair() as pair:
        if pair is None:
            return
    done = nanet(
        "bench", "rate", "--link", name, "--no-peers", "--short", "--lowest", "1e4", "--highest", "1e5", "--boards-via", boards,
        "--long-run", "2000", "--share", "0.8", "--out", tmp_path, "--json", tmp_path / "r.json", "--csv", tmp_path / "f.csv", expect=None,
        timeout_s=120,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a busy machine lost something
    result = json.loads((tmp_path / "r.json").read_text())
    check_keys(result, "bench rate --link")
    assert result["unexplained_packets"] == 0, done.stdout
    (link,) = result["links"]
    assert (link["boards"], link["unexplained_at"]) == (boards, [])
    assert link["alone"]["critical_rate_packets_per_s"] >= 1e4 / 16
    run = link["long_run"]
    assert run["share"] == 0.8
    assert run["rate_events_per_s"] == pytest.approx(0.8 * link["critical_rate_events_per_s"])
    assert 1500 < run["packets"] < 2500  # Poisson
    assert run["packets"] * 16 == run["sent"]
    assert (run["lost"] == 0) == (sum(run["losses"].values()) == 0)
    assert run["balance"]["unexplained_packets"] == 0
    assert f"{name}: {run['packets']:,} packets in" in done.stdout
    assert "sequence numbers" in done.stdout
    assert f"{name} alone" in done.stdout
    text = (tmp_path / "f.csv").read_text()
    assert "alone_critical_rate_packets" in text
    assert f"{name}@80%-long" in text


def test_a_link_that_cannot_run_is_an_error_if_named(tmp_path: Path) -> None:
    assert "there is no link 'token-ring' to compare" in nanet("bench", "rate", "--link", "token-ring", expect=2).stderr
    absent = [one.name for one in links.VARIANTS if links.missing(one)]
    for name in absent[:1]:
        error = nanet("bench", "rate", "--link", f"gro,{name}", "--out", tmp_path, "--short", "--no-peers", expect=2).stderr
        assert f"link {name} cannot be compared (not in this build" in error
