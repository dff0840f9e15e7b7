# SPDX-License-Identifier: Apache-2.0
"""Whole runs with declared formats: MGP, declared, gives the answers and counters of the hand-written one, hostile packets included; commands; tshark."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from loops import ROOT, emulator_config, engine_config, free_ports, nanet
from nanet.config import formats
from nanet.format import make
from nanet.format.make import Faults, Made, MakeOptions
from nanet.run import emulate
from test_replay import EVENTS, Listener, pcap

MGP = ROOT / "examples" / "formats" / "mgp.yaml"
VECTORS = ROOT / "tests" / "vectors"


def mgp_payloads() -> list[bytes]:
    """The vectors, as they are, cut, and with each byte of their headers damaged."""
    random.seed(3)
    all_ = []
    for name in ("padded", "packed", "marker"):
        for block in (VECTORS / f"wire_mgp_{name}.txt").read_text().split("\n[")[1:]:
            payload = b""
            for line in block.splitlines():
                key, _, value = line.partition(" = ")
                payload += bytes.fromhex(value) if key == "hex" else bytes(int(value)) if key == "zeros" else b""
            all_ += [payload, payload[: random.randrange(len(payload) + 1)]]
            for at in range(min(len(payload), 40)):
                all_.append(payload[:at] + bytes([random.randrange(256)]) + payload[at + 1 :])
    return all_


def played(file: Path, folder: Path, protocol: str, **changes: Any) -> tuple[dict[str, Any], Any]:
    with Listener() as listener:
        link = {"endpoint": f"pcap://{file}", "protocol": protocol}
        declared = {"mine": formats.load(str(MGP)).keys()} if protocol == "mine" else {}
        answers = int(listener.url.rpartition(":")[2])
        config = engine_config(1, answers, link=link, formats=declared, **changes)
        (folder / "play.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
        nanet("run", folder / "play.yaml", "--quiet", "--json", folder / "play.json", expect=None)
        return json.loads((folder / "play.json").read_text()), listener.primitives()


def test_hostile_packets_are_counted_alike(tmp_path: Path) -> None:
    file = tmp_path / "hostile.pcap"
    file.write_bytes(pcap(mgp_payloads()))
    ours, _ = played(file, tmp_path, "mine")
    theirs, _ = played(file, tmp_path, "mgp")
    for result in (ours, theirs):
        del result["counters"]["answers_sent"]  # packets: how many answers share one is a matter of time
    assert ours["counters"] == theirs["counters"]
    assert ours["losses"] == theirs["losses"]
    for name in ("packets_bad_length", "packets_bad_format", "packets_bad_checksum", "packets_accepted"):
        assert theirs["counters"][name] > 0, name


@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_a_run_is_answered_alike(tmp_path: Path, layout: str) -> None:
    file = tmp_path / "live.pcap"
    (port,) = free_ports(1)
    from nanet.run.process import EngineProcess

    recording = engine_config(port, None, link={"record": {"file": str(file)}}, processor={"kind": "count"})
    with EngineProcess(recording) as process:
        emulate.run(emulator_config(port, None, layout=layout, events_total=EVENTS, rate_events_per_s=2e5))
        process.stop()
    ours, our_answers = played(file, tmp_path, "mine")
    theirs, their_answers = played(file, tmp_path, "mgp")
    assert len(their_answers) == EVENTS
    assert np.array_equal(our_answers, their_answers)
    assert ours["losses"] == theirs["losses"] == {}
    for name in ("packets_accepted", "packets_marker", "events_received", "rings_found", "events_answered"):
        assert ours["counters"][name] == theirs["counters"][name], name


@pytest.mark.parametrize("name", ["ejfat", "spead-64-48", "jungfrau", "gvsp", "vdif"])
def test_an_engine_puts_declared_units_together(tmp_path: Path, name: str) -> None:
    """Of two streams in turn; a format without streams has one."""
    declared, file = formats.load(name), tmp_path / "units.pcap"
    streams = 2 if declared.declaration.stream else 1
    payloads = list(make.packets(declared, MakeOptions(packets=512, streams=streams), Faults(), Made()))
    make.write_pcap(file, iter(payloads), 50_000.0, 6200)
    nanet("format", "check", name, file, "--quiet", "--json", tmp_path / "check.json")
    units = json.loads((tmp_path / "check.json").read_text())["units"]
    plain = {
        "version": 1, "memory_regions": [{"name": "main", "buffer_bytes": 1 << 21, "buffer_count": 64}], "processor": {"kind": "count"},
        "run": {"budget_us": 60_000_000},
        "links": [{"name": "a", "endpoint": f"pcap://{file}", "protocol": name, "memory_region": "main", "packet_bytes_max": 9000,
                   "pcap": {"pace": "maximum"}}],
    }  # fmt: skip
    (tmp_path / "play.yaml").write_text(yaml.safe_dump(plain))
    nanet("run", tmp_path / "play.yaml", "--quiet", "--json", tmp_path / "play.json", expect=None)
    counters = json.loads((tmp_path / "play.json").read_text())["counters"]
    assert counters["units_begun"] == units
    assert counters["units_complete"] >= units - streams  # the last of a stream may have been cut off
    assert counters["units_complete"] + counters["units_flushed"] + counters["units_timed_out"] == units
    assert counters["packets_bad_format"] == counters["packets_bad_length"] == 0


def test_the_commands(tmp_path: Path, check_keys: Any) -> None:
    file = tmp_path / "made.pcap"
    nanet("format", "list", "--json", tmp_path / "list.json")
    check_keys(json.loads((tmp_path / "list.json").read_text()), "format list")
    nanet("emulate", "format", "jungfrau", "--pcap", file, "--packets", "256", "--json", tmp_path / "made.json")
    check_keys(json.loads((tmp_path / "made.json").read_text()), "emulate format")
    done = nanet("format", "check", "jungfrau", file, "--json", tmp_path / "check.json")
    checked = json.loads((tmp_path / "check.json").read_text())
    check_keys(checked, "format check")
    assert (checked["packets"], checked["accepted"], checked["units"]) == (256, 256, 2)
    assert "place 1,040,384" in done.stdout
    assert "stream 0, unit 0, place 0," in done.stdout
    with_fields = nanet("format", "check", "jungfrau", file, "--fields").stdout
    assert "detector 0x3" in with_fields
    refused = nanet("format", "check", "rtp", file, "--quiet", expect=1)
    assert "256 not_accepted" in refused.stdout
    shown = nanet("format", "show", "jungfrau").stdout
    assert "byte 46" in shown
    assert "16 bits, unsigned, lsb_first [4, 1024]" in shown
    assert "x 100 ns" in shown
    assert nanet("format", "check", MGP).stdout == "mgp: valid\n"
    assert '"FormatField"' in nanet("format", "schema").stdout
    assert "give one of them" in nanet("emulate", "format", "rtp", expect=2).stderr


def test_what_of_a_recording_was_not_looked_at(tmp_path: Path) -> None:
    """A cut file, and packets that were recorded in part, are named as a replay names them, and are no success."""
    file = tmp_path / "made.pcap"
    nanet("emulate", "format", "rtp", "--pcap", file, "--packets", "8", "--payload", "64")
    whole = file.read_bytes()
    (tmp_path / "cut.pcap").write_bytes(whole[:-30])
    head, record = whole[:24], (len(whole) - 24) // 8
    records = [whole[at : at + record] for at in range(24, len(whole), record)]
    (tmp_path / "snap.pcap").write_bytes(head + b"".join(one[:8] + (50).to_bytes(4, "little") + one[12:66] for one in records))
    assert nanet("format", "check", "rtp", file, "--quiet").stdout.endswith("passed over: 0\n")
    cut = nanet("format", "check", "rtp", tmp_path / "cut.pcap", "--quiet", "--json", tmp_path / "cut.json", expect=1)
    assert cut.stdout.startswith("7 packets: 7 accepted")
    assert f"passed over: bytes_damaged {record - 30}" in cut.stdout
    checked = json.loads((tmp_path / "cut.json").read_text())
    assert (checked["passed_over"]["bytes_damaged"], checked["skipped"]) == (record - 30, 0)
    assert "passed over: skipped_cut 8" in nanet("format", "check", "rtp", tmp_path / "snap.pcap", "--quiet", expect=1).stdout
    assert "passed over: skipped_port 8" in nanet("format", "check", "rtp", file, "--port", "6201", "--quiet", expect=1).stdout
    assert "65535" in nanet("format", "check", "rtp", file, "--port", "70000", expect=2).stderr


def test_packets_to_no_one_are_said() -> None:
    (port,) = free_ports(1)
    to = f"udp://127.0.0.1:{port}"
    done = nanet("emulate", "format", "ejfat", "--to", to, "--packets", "500", "--rate", "5000", expect=1)
    assert "not received: tx_refused " in done.stdout


def test_the_emulator_sends_at_its_rate() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        to = f"udp://127.0.0.1:{receiver.getsockname()[1]}"
        nanet("emulate", "format", "ejfat", "--to", to, "--packets", "200", "--rate", "1000", "--payload", "512", "--seed", "4")
        received = [receiver.recv(2048) for _ in range(200)]
    assert received == list(
        make.packets(formats.load("ejfat"), MakeOptions(packets=200, payload_bytes=512, seed=4), Faults(), Made())
    )


def dissected(plugin: str, capture: Path, filter_name: str, *fields: str) -> list[list[str]]:
    """The fields of each packet as tshark prints them. Not as root: Wireshark 4.4 takes no script from root."""
    user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)
        (place / "plugin.lua").write_text(plugin)
        shutil.copy(capture, place / "it.pcap")
        for one in place.iterdir():
            one.chmod(0o644)
        names = [word for field in (*fields, "refused") for word in ("-e", f"{filter_name}.{field}")]
        command = ["tshark", "-X", f"lua_script:{place / 'plugin.lua'}", "-r", str(place / "it.pcap"), "-d", f"udp.port==6200,{filter_name}",
                   "-T", "fields", *names]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, timeout=200, check=False,
            env={"HOME": folder, "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}, **user,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "lua" not in done.stderr.lower(), done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", [*formats.shipped_names()])
def test_wireshark_sees_the_same_fields(tmp_path: Path, name: str) -> None:
    from nanet import _core
    from nanet.format import dissector

    declared, file = formats.load(name), tmp_path / "made.pcap"
    decoder = _core.FormatDecoder(declared.keys())
    payloads = list(make.packets(declared, MakeOptions(packets=40), Faults(), Made()))
    make.write_pcap(file, iter(payloads), 1000.0, 6200)
    names = list(dict.fromkeys(field.name for field in declared.declaration.header))
    filter_name = "nanet_" + name.replace("-", "_")
    rows = dissected(dissector.source(declared), file, filter_name, *names)
    assert len(rows) == len(payloads)
    for payload, row in zip(payloads, rows, strict=True):
        values = decoder.fields(payload)
        assert [int(text) for text in row[: len(names)]] == [values[one] for one in names]
        assert len(row) == len(names) or row[len(names)] == ""  # nothing is marked as refused
