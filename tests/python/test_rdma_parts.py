# SPDX-License-Identifier: Apache-2.0
"""The parts of `nanet rdma` that need no UCX: sizes, tokens, requirements, the doctor on a made-up system, the peer's output, the report."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_rdma import rdma_result
from nanet import SetupError, rdma
from nanet.machine.channel import Channel
from nanet.machine.gpu_driver import ATTRIBUTES, Driver, Gpu
from nanet.rdma import acs, bench, doctor, perftest, serve, tokens, tools, transfer, units
from nanet.rdma.control import Control
from nanet.rdma.measurement import Measurement
from nanet.rdma.memory import Memory, parse_memory, transports_for
from nanet.rdma.require import Require, refusals
from nanet.report import write_report

FLAGS = "--enable-mt --with-verbs --with-cuda"
BUILD = tools.UcxBuild("1.22.0", FLAGS, ("tcp", "posix", "rc_verbs", "ud_verbs", "cuda_copy", "tcp"))
WITHOUT = tools.UcxBuild("1.22.0", "--without-verbs --with-cuda", ("tcp", "posix"))
H200 = Gpu(0, "NVIDIA H200", 140.0, "0000:17:00.0", dict.fromkeys(ATTRIBUTES, 1))
NO_GPU = Driver(problem="libcuda.so.1 is missing")
GID = "0000:0000:0000:0000:0000:ffff:0a09:0901"


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("8", 8), ("64KiB", 65536), ("1 GiB", 1 << 30), ("1GB", 10**9), ("1.5kB", 1500), ("0.5 MiB", 1 << 19), ("7B", 7)],
)
def test_sizes(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1 Gb", "1GIB", "0.3B", "1e3", "GiB", "999999999TiB", "1.2.3"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(SetupError, match="is not a size"):
        units.parse_size(text)


def test_gb_and_gib_are_told_apart() -> None:
    assert units.both_text(1 << 30) == "1.074 GB (1 GiB)"
    assert units.both_text(12) == "12 B"
    assert units.both_text(1000) == "1 kB (0.9766 KiB)"
    assert units.rate_text(2**30) == "1.074 GB/s (1 GiB/s)"
    assert [units.size_text(size) for size in (8, 1000, 1024, 3 << 20, 1 << 30)] == ["8 B", "1000 B", "1 KiB", "3 MiB", "1 GiB"]


def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(" 00ffffffffffffff\n")
    file.chmod(0o600)
    monkeypatch.setenv(tokens.VARIABLE, "1f")
    assert tokens.read_token(file) == 0x00FFFFFFFFFFFFFF
    assert tokens.read_token(None) == 0x1F
    monkeypatch.delenv(tokens.VARIABLE)
    assert tokens.read_token(None) == 0
    for bad in ("", "0", "xyz", "0" * 17, "12 34"):
        file.write_text(bad)
        with pytest.raises(SetupError, match="no token in") as refused:
            tokens.read_token(file)
        assert not bad or bad == "0" or bad not in str(refused.value)
    file.write_text("12")
    file.chmod(0o640)
    with pytest.raises(SetupError, match="others than its owner may open it"):
        tokens.read_token(file)
    with pytest.raises(SetupError, match="cannot be read"):
        tokens.read_token(tmp_path / "absent")
    file.write_bytes(b"\xff\xfe")
    file.chmod(0o600)
    with pytest.raises(SetupError, match="it is not text"):
        tokens.read_token(file)


def test_a_path_that_is_not_as_required_is_told_from_other_refusals() -> None:
    refusal = "the way to h port 1 is not RDMA (tcp/lo) name other transports, or do not require it"
    with pytest.raises(rdma.NotDone, match="is not RDMA"), refusals(Require.RDMA):
        raise SetupError(refusal)
    with pytest.raises(SetupError, match="is not RDMA"), refusals(None):
        raise SetupError(refusal)
    with pytest.raises(SetupError, match="no answer"), refusals(Require.RDMA):
        raise SetupError("no answer from h port 1 (nothing) see")


def test_places() -> None:
    assert transfer.parse_remote("127.0.0.1:7300") == ("127.0.0.1", 7300)
    assert transfer.parse_remote("[::1]:1") == ("::1", 1)
    for bad in ("", "host", ":1", "::1:5", "host:", "host:port", "host:70000", "host:-1"):
        with pytest.raises(SetupError, match="is not an address"):
            transfer.parse_remote(bad)


def test_a_sweep_has_its_ends_and_the_sizes_that_are_compared() -> None:
    assert bench.sweep(8, 1 << 30, 4)[:4] == (8, 32, 128, 512)
    assert {8, 64 << 10, 1 << 20, 1 << 30} <= set(bench.sweep(8, 1 << 30, 4))
    assert bench.sweep(5, 5, 2) == (5,)
    assert bench.sweep(1, 4, 1.1) == (1, 2, 3, 4)
    for bad in ((0, 8, 2), (16, 8, 2), (8, 16, 1), (8, 16, float("nan"))):
        with pytest.raises(SetupError, match="cannot be measured"):
            bench.sweep(*bad)


def test_the_peers_output() -> None:
    text = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n1000,0.074,0.105,0.104,72.00,100.00,9532509,9532510\n"
    told = perftest.parse(text, "", 8)
    assert told == {"count": 1000, "bytes_per_s": 100 * 2**20, "messages_per_s": 9532510, "p50_us": 0.074, "mean_us": 0.104}
    with pytest.raises(rdma.NotDone, match="no such device"):
        perftest.parse("", "a line\nno such device\n", 8)
    with pytest.raises(rdma.NotDone, match="it said nothing"):
        perftest.parse("", "", 8)


def test_the_peer_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(["once", "twice", {"count": 1}])

    def one(*_: object) -> object:
        now = next(said)
        if isinstance(now, str):
            raise rdma.NotDone(now)
        return now

    monkeypatch.setattr(perftest.Perftest, "_run", one)
    peer = perftest.Perftest(tools.Tools(Path("."), {}), "1.22.0", "", None, None)
    assert peer.run(Measurement.PUT_LATENCY, 8, depth=1, count=1, timeout_s=1.0) == {"count": 1}
    said = iter(["a", "b", "the third"])
    with pytest.raises(rdma.NotDone, match="the third"):
        peer.run(Measurement.PUT_LATENCY, 8, depth=1, count=1, timeout_s=1.0)


def test_ucx_info_that_does_not_run_is_a_finding(tmp_path: Path) -> None:
    assert tools.read_build(tools.Tools(tmp_path, {})).problem
    (tmp_path / "ucx_info").write_text("#!/bin/sh\necho cannot open shared object\n")
    (tmp_path / "ucx_info").chmod(0o755)
    assert tools.read_build(tools.Tools(tmp_path, {"PATH": "/bin:/usr/bin"})).problem == "cannot open shared object"


def test_ucx_info_is_read_without_its_builders_folders(tmp_path: Path) -> None:
    said = "# Library version: 1.22.0\n# Configured with: --prefix=/home/x --enable-mt --with-cuda=/usr/local/cuda\n#      Transport: tcp\n"
    (tmp_path / "ucx_info").write_text(f"#!/bin/sh\ncat <<E\n{said}E\n")
    (tmp_path / "ucx_info").chmod(0o755)
    told = tools.read_build(tools.Tools(tmp_path, {"PATH": "/bin:/usr/bin"}))
    assert (told.version, told.flags, set(told.transports), told.problem) == ("1.22.0", "--enable-mt --with-cuda", {"tcp"}, "")


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def nic_files(name: str = "mlx5_0", *, state: str = "4: ACTIVE", gid: str = GID, hardware: bool = True) -> dict[str, str]:
    port = f"sys/class/infiniband/{name}/ports/1"
    empty = doctor.NO_GID
    return {
        f"{port}/state": state, f"{port}/link_layer": "Ethernet", f"{port}/rate": "400 Gb/sec (4X NDR)",
        f"{port}/gids/0": empty, f"{port}/gids/1": gid, f"{port}/gid_attrs/types/1": "RoCE v2",
    } | ({f"sys/class/infiniband/{name}/device/vendor": "0x15b3"} if hardware else {})  # fmt: skip


MACHINE = {
    "proc/sys/kernel/osrelease": "6.8.0-amd64",
    "sys/module/ib_uverbs/refcnt": "1", "dev/infiniband/uverbs0": "",
    "sys/module/nvidia_peermem/refcnt": "0",
}  # fmt: skip


def found(
    root: Path,
    files: dict[str, str],
    build: tools.UcxBuild | None = BUILD,
    driver: Driver = Driver(13000, "", (H200,)),
    **changes: Any,
) -> dict[str, doctor.Check]:
    write(root, files)
    plain: dict[str, Any] = {"ucx_version": "1.22.0", "ucx_problem": "", "locked_bytes": None, "shared_bytes": 1 << 34}
    every = doctor.checks(doctor.System(root, driver, build=build, **plain | changes))
    assert len({check.name for check in every}) == len(every)
    for check in every:
        assert check.found
        assert (check.state == "ok") == (check.mend == "")
    return {check.name: check for check in every}


def test_doctor_where_all_is_there(tmp_path: Path) -> None:
    checks = found(tmp_path, MACHINE | nic_files())
    assert {check.state for check in checks.values()} == {"ok"}
    assert checks["UCX build"].found == f"1.22.0: {FLAGS}"
    assert checks["UCX over verbs"].found == "rc_verbs, ud_verbs"
    assert checks["UCX with CUDA"].found == "cuda_copy"
    assert checks["GPU memory"].found == "cuda:0 NVIDIA H200 140 GiB"
    assert checks["GPU to GPU"].found == "not possible here: one GPU"
    assert checks["mlx5_0"].found == f"hardware; port 1 Ethernet ACTIVE 400 Gb/sec (4X NDR), RoCE v2 GIDs: 1 {GID}"
    assert checks["ib_uverbs"].found == "loaded, /dev/infiniband has uverbs0"
    assert "kernel 6.8.0-amd64, a GPU that exports them" in checks["dma-buf"].found
    assert "nvidia_peermem is loaded" in checks["nvidia_peermem"].found


def test_doctor_where_nothing_is_there(tmp_path: Path) -> None:
    checks = found(tmp_path, {}, WITHOUT, NO_GPU, locked_bytes=8 << 20)
    assert {check.state for check in checks.values()} == {"ok"}
    assert checks["RDMA devices"].found == "none in /sys/class/infiniband"
    assert "--without-verbs" in checks["UCX over verbs"].found
    assert "no GPU: libcuda.so.1 is missing; built with CUDA" in checks["UCX with CUDA"].found
    assert checks["dma-buf"].found.startswith("not possible here: kernel not known")
    assert checks["GPU memory"].found == "none to use (no GPU: libcuda.so.1 is missing)"
    assert checks["GPU to GPU"].found == "not possible here: no GPU (libcuda.so.1 is missing)"
    assert "8 MiB may be locked" in checks["locked memory"].found


def test_doctor_of_two_gpus(tmp_path: Path) -> None:
    two = (H200, replace(H200, index=1))
    checks = found(tmp_path, MACHINE, driver=Driver(13000, "", two, ((0, 1), (1, 0))))
    assert checks["GPU memory"].found == "cuda:0 NVIDIA H200 140 GiB, cuda:1 NVIDIA H200 140 GiB"
    assert checks["GPU to GPU"].found == "each of 2 can reach the others' memory (cuda_ipc)"
    checks = found(tmp_path, {}, driver=Driver(13000, "", two, ((1, 0),)))
    assert checks["GPU to GPU"].found.startswith("by way of the host for GPU 0 from 1 (")


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("UCX over verbs", {"build": WITHOUT}, "built without InfiniBand and RoCE (--without-verbs): mlx5_0 cannot be used"),
        ("UCX over verbs", {"build": tools.UcxBuild("1.22.0", FLAGS, ("tcp",))}, "no transport, though there is mlx5_0"),
        ("UCX with CUDA", {"build": WITHOUT}, "built with CUDA, but no transport here"),
        ("UCX with CUDA", {"build": tools.UcxBuild("1.22.0", "--with-cuda=no", ("tcp",))}, "built without CUDA"),
        ("UCX build", {"build": tools.UcxBuild(problem="no libucp.so.0")}, "ucx_info fails: no libucp.so.0"),
        ("UCX build", {"build": tools.UcxBuild("1.18.1", "", ("tcp",))}, "ucx_info is of 1.18.1, the library of 1.22.0"),
        ("locked memory", {"locked_bytes": 8 << 20}, "8 MiB may be locked: no larger region can be registered with mlx5_0"),
        ("shared memory", {"shared_bytes": 64 << 20}, "0.0625 GiB free in /dev/shm"),
        ("mlx5_0", {"files": nic_files(state="1: DOWN")}, "port 1 is DOWN"),
        ("mlx5_0", {"files": nic_files(gid=doctor.NO_GID)}, "RoCE v2 GIDs: none: no RoCE v2 GID"),
        ("mlx5_1", {"files": {"sys/class/infiniband/mlx5_1/device/vendor": "0x15b3"}}, "hardware; no port"),
    ],
)  # fmt: skip
def test_doctor_warns_of_what_is_there_and_cannot_be_used(tmp_path: Path, name: str, change: dict[str, Any], text: str) -> None:
    checks = found(tmp_path, MACHINE | nic_files() | change.pop("files", {}), **change)
    assert checks[name].state == "warn"
    assert text in checks[name].found


def test_doctor_without_ucx_fails_and_says_what_to_install(tmp_path: Path) -> None:
    check = found(tmp_path, {}, None, NO_GPU, ucx_version="", ucx_problem="this nanet has no RDMA")["UCX"]
    assert (check.state, check.found, check.mend) == ("fail", "this nanet has no RDMA", rdma.INSTALL)


def test_doctor_of_modules(tmp_path: Path) -> None:
    checks = found(tmp_path, nic_files("rxe0", hardware=False) | {
        "proc/sys/kernel/osrelease": "6.1.0-1-amd64",
        "lib/modules/6.1.0-1-amd64/modules.dep": "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko: kernel/x.ko\n",
    })  # fmt: skip
    assert (checks["ib_uverbs"].state, checks["ib_uverbs"].mend) == ("warn", "sudo modprobe ib_uverbs")
    assert "sudo modprobe rdma_rxe" in checks["rdma_rxe"].found
    assert "not installed for this kernel" in checks["nvidia_peermem"].found
    assert checks["rxe0"].found.startswith("software; ")
    assert "no hardware RDMA NIC" in checks["dma-buf"].found
    write(tmp_path, {"sys/module/ib_uverbs/refcnt": "1", "sys/module/rdma_rxe/refcnt": "1"})
    checks = found(tmp_path, {})
    assert "/dev/infiniband has no uverbs device" in checks["ib_uverbs"].found
    assert checks["rdma_rxe"].found.startswith("loaded")


def config_space(control: int, *, before: tuple[int, ...] = (), size: int = 4096) -> bytes:
    """A bridge's configuration space: capabilities with these IDs, then ACS with this control register."""
    data = bytearray(size)
    at = 0x100
    for identity in before:
        data[at : at + 4] = (identity | 1 << 16 | (at + 0x40) << 20).to_bytes(4, "little")
        at += 0x40
    data[at : at + 4] = (acs.ACS_ID | 1 << 16).to_bytes(4, "little")
    data[at + acs.ACS_CONTROL : at + acs.ACS_CONTROL + 2] = control.to_bytes(2, "little")
    return bytes(data)


def acs_of(root: Path, spaces: dict[str, bytes], *, is_needed: bool = True) -> doctor.Check:
    for name, data in spaces.items():
        write(root, {f"{name}/class": "0x060400\n"})
        (root / name / "config").write_bytes(data)
    write(root, {"0000:99:00.0/class": "0x020000\n"})  # no bridge
    return acs.acs_check(root, is_needed)


def test_acs(tmp_path: Path) -> None:
    off, on = config_space(0x11, before=(1, 0x10)), config_space(0x1D, before=(1,))
    assert acs_of(tmp_path / "off", {"0000:00:01.0": off}).found == "none of 1 bridges redirects requests between devices"
    redirecting = acs_of(tmp_path / "on", {"0000:00:01.0": off, "0000:00:02.0": on})
    assert (redirecting.state, redirecting.found.split(":")[0]) == ("warn", "1 of 2 bridges redirect requests between devices")
    assert "setpci -s 0000:00:02.0 ECAP_ACS+0x6.w=0000" in redirecting.mend
    assert acs_of(tmp_path / "on", {}, is_needed=False).state == "ok"
    hidden = acs_of(tmp_path / "hidden", {"0000:00:01.0": on[:64]})
    assert (hidden.state, "may be read by root only" in hidden.found) == ("ok", True)
    assert acs_of(tmp_path / "none", {}).found == "no PCIe bridge is visible here"


def test_a_broken_chain_of_capabilities_ends(tmp_path: Path) -> None:
    data = bytearray(4096)
    data[0x100:0x104] = (1 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")  # its own next
    data[0x200:0x204] = b"\xff" * 4
    (tmp_path / "config").write_bytes(data)
    assert acs.redirects(tmp_path / "config") is False
    data[0x100:0x104] = (1 | 1 << 16 | 0xFFC << 20).to_bytes(4, "little")
    (tmp_path / "config").write_bytes(data)
    assert acs.redirects(tmp_path / "config") is False
    assert acs.redirects(tmp_path / "absent") is None


def test_the_control_socket_refuses_what_is_no_nanet() -> None:
    a, b = socket.socketpair()
    with Control(Channel(a)) as control, Channel(b) as there:
        assert control.receive(0.0) is None
        there.send_json({"do": "rest"}, 5.0)
        assert control.receive(5.0) == {"do": "rest"}
        there.send(b"hello", 5.0)
        with pytest.raises(rdma.NotDone, match="it says no JSON object"):
            control.receive(5.0)
        there.send(b"[" * 4090, 5.0)
        with pytest.raises(rdma.NotDone, match="it says no JSON object"):
            control.receive(5.0)
        there.socket.send(b"x" * 5000)
        with pytest.raises(rdma.NotDone, match="4096 are the most"):
            control.receive(5.0)


def test_without_the_native_module_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import nanet.cli

    monkeypatch.setitem(sys.modules, "nanet._rdma", None)
    for command in (["serve", "--region", "r", "--size", "1", "--read", "--allow-root"], ["put", __file__, "--to", "127.0.0.1:1", "--region", "r"],
                    ["bench", "--size", "8"]):  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["nanet", "rdma", *command])
        with pytest.raises(SystemExit) as ended:
            nanet.cli.main()
        said = capsys.readouterr()
        assert ended.value.code == 1
        assert said.err.startswith("nanet: this nanet has no RDMA (")
        assert said.err.endswith(") run make links in a clone, or pip install 'nanet[rdma]'\n")


def test_memory_by_name() -> None:
    assert parse_memory("shared") == Memory("shared", 0)
    assert parse_memory("cuda") == Memory("cuda", 0)
    assert parse_memory("pinned:3") == Memory("pinned", 3)
    assert [str(parse_memory(text)) for text in ("host", "cuda:1", "pinned")] == ["host", "cuda:1", "pinned:0"]
    assert [parse_memory(text).is_device for text in ("shared", "cuda", "pinned")] == [False, True, False]
    for bad in ("", "gpu", "cuda:", "cuda:-1", "cuda:99999", "CUDA", "cuda:1:2", "cuda-managed", "shared:0"):
        with pytest.raises(SetupError, match=r"memory '"):
            parse_memory(bad)
    with pytest.raises(SetupError, match="the driver moves it"):
        parse_memory("managed")


def test_root_serves_only_if_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.os, "geteuid", lambda: 0)
    with pytest.raises(SetupError, match=r"region r is not served as root \(.+\) start as another account"):
        serve.serve(serve.Exposure("r", 8, read=True, write=False), print)
    serve.check_account("r", allow_root=True)
    monkeypatch.setattr(serve.os, "geteuid", lambda: 1000)
    serve.check_account("r", allow_root=False)


def test_cudas_transports_come_with_a_gpus_memory() -> None:
    cuda, shared, pinned = Memory("cuda"), Memory("shared"), Memory("pinned")
    assert transports_for("posix", shared, cuda) == "posix,cuda"
    assert transports_for("posix", shared, pinned) == "posix"
    assert transports_for("", cuda, cuda) == ""


def test_no_cpu_polls_a_gpus_memory() -> None:
    cuda, shared = Memory("cuda"), Memory("shared")
    assert bench.chosen_tests(None, shared, shared) == tuple(Measurement)
    assert set(Measurement) - set(bench.chosen_tests(None, shared, cuda)) == {Measurement.PUT_LATENCY}
    assert bench.chosen_tests([Measurement.GET_LATENCY], cuda, cuda) == (Measurement.GET_LATENCY,)
    with pytest.raises(SetupError, match="ask for put_flush_latency"):
        bench.chosen_tests([Measurement.PUT_LATENCY], cuda, shared)


@pytest.mark.parametrize(
    ("own", "other", "visible", "expected"),
    [
        ("shared", "host", None, {}),
        ("cuda:1", "cuda:0", None, "0,1"),
        ("cuda:0", "cuda:1", None, "1,0"),
        ("cuda:2", "cuda:2", None, "2"),
        ("cuda:2", "shared", None, "2"),
        ("shared", "cuda:1", "5,GPU-7", "GPU-7"),
    ],
)
def test_the_peer_sees_the_gpus_that_are_meant(
    monkeypatch: pytest.MonkeyPatch, own: str, other: str, visible: str | None, expected: Any
) -> None:
    """Its server takes the first, its client the one after it."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    peer = perftest.Perftest(tools.Tools(Path("."), {}), "1.22.0", "", None, None, parse_memory(own), parse_memory(other))
    assert peer._gpus() == ({"CUDA_VISIBLE_DEVICES": expected} if expected else {})


@pytest.mark.parametrize("ratio", [None, 0.97])
def test_report(tmp_path: Path, ratio: float | None) -> None:
    result = rdma_result(ratio)
    write_report(result, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert text.count('<svg class="wide"') == text.count('<svg class="narrow"') == 2
    assert "posix/memory &lt;one-sided&gt;" in text
    assert ("put, ucx_perftest" in text) == (ratio is not None)
    assert ("There is no peer in this run" in text) == (ratio is None)
    assert "a note" in text
    result["measurements"][0]["right"] = result["right"] = False
    write_report(result, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "There were wrong bytes" in text
    assert "WRONG" in text


def test_report_of_one_size_has_no_chart(tmp_path: Path) -> None:
    result = rdma_result(None)
    result["measurements"] = [one for one in result["measurements"] if one["message_bytes"] == 8 and one["test"] == "get_latency"]
    write_report(result, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Too few sizes" in text
    assert "It was not measured" in text


def test_csv_rows() -> None:
    rows = bench.csv_rows(rdma_result(0.5))
    assert ("put_bandwidth 8 bytes", "ratio_to_peer", 0.5, "") in rows
    assert len([one for one in rows if one[1].startswith("latency_")]) == 3 * 3 * 6
