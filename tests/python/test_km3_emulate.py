# SPDX-License-Identifier: Apache-2.0
"""`nanet emulate km3`, a tower or strings: what cannot be sent, and options that say nothing, are told in one line and by one rule."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from nanet import SetupError
from nanet.cli.app import app
from nanet.config.errors import ConfigError
from nanet.config.km3_strings import Strings
from typer.testing import CliRunner, Result

KINDS = ("tower", "strings")


def emulate(kind: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["emulate", "km3", "--kind", kind, *options])


def unused_ports(count: int) -> list[int]:
    """Of which no one listens."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_no_one_finds_is_refused_before_the_start(kind: str) -> None:
    done = emulate(kind, "--duration", "0.2", "--to", "udp://no.such.host.invalid:1")
    assert isinstance(done.exception, SetupError)
    assert "cannot find host 'no.such.host.invalid' of endpoint 'udp://no.such.host.invalid:1' (" in str(done.exception)


def test_strings_look_a_host_name_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        done = emulate("strings", "--duration", "0.1", "--to", f"udp://localhost:{listener.getsockname()[1]}")
        assert (done.exit_code, listener.recv(2048)[:4]) == (0, b"TTDC")


@pytest.mark.parametrize("kind", KINDS)
def test_who_refuses_packets_is_named(kind: str, tmp_path: Path) -> None:
    where = f"udp://127.0.0.1:{unused_ports(1)[0]}"
    done = emulate(kind, "--duration", "0.2", "--to", where, "--json", str(tmp_path / "sent.json"))
    result = json.loads((tmp_path / "sent.json").read_text())
    assert result["tx_refused"] > 0
    assert result["refused_by"] == {where: result["tx_refused"]}
    assert done.exit_code == 1
    line = f"nanet: packets were refused by {where} ({result['tx_refused']:,} notices came that no one listens there) start the receiver first"
    assert line in done.output.splitlines()


def test_of_several_destinations_the_one_that_refuses_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listens, refuses = f"udp://127.0.0.1:{listener.getsockname()[1]}", f"udp://127.0.0.1:{unused_ports(1)[0]}"
        done = emulate("tower", "--duration", "0.2", "--floors", "3", "--to", refuses, "--to", listens, "--to", refuses)
    assert done.exit_code == 1
    assert f"packets were refused by {refuses} (" in done.output


@pytest.mark.parametrize(
    "option",
    [["--truth", "t.h5"], ["--muons", "9"], ["--floors", "3"], ["--samples", "9"], ["--pool", "5"], ["--control", "udp://127.0.0.1:9"], ["--core", "0"]],
)  # fmt: skip
def test_an_option_that_says_nothing_of_strings_is_refused(
    option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = emulate("strings", "--duration", "0.1", *option)
    assert done.exit_code == 2
    assert f"{option[0]} says nothing of strings" in done.output
    assert list(tmp_path.iterdir()) == []


def test_strings_send_whole_slices_and_at_least_one() -> None:
    done = emulate("strings", "--duration", "0.05")
    assert isinstance(done.exception, ConfigError)
    assert "nothing is sent in 0.05 s (a slice has 100 ms, and only whole ones are sent)" in str(done.exception)
    assert [Strings(duration_s=0.57, slice_ms=10).slices, Strings(duration_s=0.579, slice_ms=10).slices] == [57, 57]
