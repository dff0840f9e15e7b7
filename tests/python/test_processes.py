# SPDX-License-Identifier: Apache-2.0
"""Processes of other programs: when a server is ready, and its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nanet.bench import sockperf
from nanet.machine.facts import CorePlan
from nanet.machine.ports import unused_port
from nanet.machine.processes import end, has_bound

BINDS = (
    "import socket, sys, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"
)
NO_CORES = CorePlan(None, None, frozenset())


def test_a_server_is_waited_for_until_it_has_its_port() -> None:
    port = unused_port()
    with subprocess.Popen([sys.executable, "-c", BINDS, str(port)]) as server:
        assert has_bound(server, port, 60)
        assert not has_bound(server, unused_port(), 0.05)
        end(server)


def test_a_server_that_has_ended_is_not_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as server:
        server.wait()
        assert not has_bound(server, 1, 3600)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, silent: int) -> Path:
    """A sockperf first on the PATH whose client sees no answer so many times, then some. Returns the count of its calls as a file's size."""
    calls = folder / "calls"
    program = folder / "sockperf"
    program.write_text(f"""#!{sys.executable}
import sys
arguments = sys.argv[1:]
if arguments[0] == "server":
    sys.argv[1] = arguments[arguments.index("-p") + 1]
    exec({BINDS!r})
with open({str(calls)!r}, "a") as file:
    file.write("x")
if len(open({str(calls)!r}).read()) <= {silent}:
    print("sockperf: No valid observations found. Try tune parameters: --time/--mps/--reply-every")
else:
    print("Round trip is 8 usec\\nTotal 9 observations\\n---> percentile 50.000 =    8.000")
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return calls


@pytest.mark.parametrize("silent", [0, sockperf.ATTEMPTS - 1])
def test_sockperf_that_saw_no_answer_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: int) -> None:
    calls = stand_in(tmp_path, monkeypatch, silent)
    assert sockperf.ping_pong(NO_CORES, message_bytes=100, duration_s=1, port=unused_port()).latency_us["p50"] == 8
    assert calls.stat().st_size == silent + 1


def test_sockperf_that_never_sees_an_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch, 99)
    with pytest.raises(sockperf.SockperfError, match="gave no percentiles"):
        sockperf.ping_pong(NO_CORES, message_bytes=100, duration_s=1, port=unused_port())
    assert calls.stat().st_size == sockperf.ATTEMPTS
