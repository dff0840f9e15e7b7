# SPDX-License-Identifier: Apache-2.0
"""Ports of a loop: the default moves on to free ones and says so, a port that was named does not."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from nanet import ConfigError
from nanet.cli.options import PortOption
from nanet.machine import ports
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def an_address_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs beside these tests has ports too: other tests those of 127.0.0.1, these tests in another process those of its own address."""
    monkeypatch.setattr(ports, "ADDRESS", f"127.83.{os.getpid() >> 8 & 255}.{os.getpid() & 255}")


def free_block() -> int:
    """A port whose block is free, as are the 20 blocks after it."""
    return next(port for port in range(21_000, 60_000, 997) if all(ports.taken_port(port + n) is None for n in range(20)))


@pytest.fixture(params=ports.BLOCK)
def taken(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """(first port of a block, the port of it that is taken)."""
    port = free_block()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((ports.ADDRESS, port + request.param))
        yield port, port + request.param


def test_a_free_block_is_taken_as_it_is() -> None:
    port = free_block()
    assert ports.choose(port, named=False) == (port, None)
    assert ports.choose(port, named=True) == (port, None)


def test_the_default_moves_on_and_says_so(taken: tuple[int, int]) -> None:
    port, other = taken
    chosen, note = ports.choose(port, named=False)
    assert chosen == port + 1
    assert ports.taken_port(chosen) is None
    assert note == (
        f"another program has UDP port {other}: using {chosen} and the ports {chosen + 100}, {chosen + 200}, {chosen + 300}"
    )


@pytest.mark.parametrize("port", [0, -5, 65_236, 65_300, 70_000])
def test_a_port_that_there_is_not_is_refused(port: int) -> None:
    with pytest.raises(ConfigError) as refused:
        ports.choose(port, named=True)
    assert (
        str(refused.value) == f"UDP port {port} cannot be used (it and those 100, 200, 300 above it are 1 to 65535) use 1 to 65235"
    )


def test_a_named_port_is_an_error_with_a_suggestion(taken: tuple[int, int]) -> None:
    port, other = taken
    with pytest.raises(ConfigError) as refused:
        ports.choose(port, named=True)
    assert str(refused.value) == (f"UDP port {other} cannot be used (another program has it) use --port {port + 1}, which is free")


def commands(default: int) -> typer.Typer:
    """Two commands with the option: one with what makes it not apply."""
    app = typer.Typer()

    @app.command()
    def loop(port: PortOption = default) -> None:
        print(port)

    @app.command()
    def compare(port: PortOption = default, link: str | None = typer.Option(None, is_eager=True)) -> None:
        print(port)

    return app


def test_the_option_tells_the_default_from_what_was_named(taken: tuple[int, int]) -> None:
    port, other = taken
    app = commands(port)
    moved = CliRunner().invoke(app, ["loop"])
    assert moved.stdout == f"{port + 1}\n"
    assert moved.stderr.startswith(f"nanet: another program has UDP port {other}: using {port + 1} ")
    refused = CliRunner().invoke(app, ["loop", "--port", str(port)])
    assert isinstance(refused.exception, ConfigError)
    assert CliRunner().invoke(app, ["compare", "--port", str(port), "--link", "all"]).stdout == f"{port}\n"


def test_every_command_with_a_loop_has_it() -> None:
    from nanet.cli.app import app
    from nanet.cli.free_port import ELSEWHERE

    root = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for command in (root["demo"], root["soak"], root["bench"].commands["rate"], root["bench"].commands["latency"]):
        by_name = {parameter.name: parameter for parameter in command.params}
        assert by_name["port"].callback is not None, command.name
        assert all(by_name[name].is_eager for name in ELSEWHERE if name in by_name), command.name


def test_an_unused_port_is_none_that_the_kernel_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another program gets it between the question and its use."""
    first, last = (int(word) for word in ports.KERNELS_RANGE.read_text().split())
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        port = ports.unused_port(kind)
        assert port >= ports.PRIVATE_FROM
        assert not first <= port <= last
    given = tmp_path / "range"
    given.write_text("1024\t65535\n")  # the kernel gives all
    monkeypatch.setattr(ports, "KERNELS_RANGE", given)
    assert ports.unused_port() >= ports.PRIVATE_FROM
    given.write_text("1024\t65435\n")  # all but a hundred
    assert ports.unused_port() > 65_435
