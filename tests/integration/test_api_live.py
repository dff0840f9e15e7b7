# SPDX-License-Identifier: Apache-2.0
"""nanet.Engine against emulated boards, and nanet.rdma between two processes."""

from __future__ import annotations

import re
import subprocess
import sys

import nanet
import numpy as np
import pytest
from loops import check_packet_books, emulator_config, engine_config, free_ports
from nanet import rdma
from nanet.run import emulate

OTHER_SIDE = """
import sys
import nanet
import numpy as np
from nanet import rdma
with rdma.connect(sys.argv[1], "results", token=int(sys.argv[2])) as connection:
{}
"""


def test_an_engine_in_this_process_answers_every_event() -> None:
    receive, answers = free_ports()
    engine = nanet.Engine(engine_config(receive, answers))
    assert not engine.running
    with engine:
        assert engine.running
        sent = emulate.run(emulator_config(receive, answers, events_total=20_000, rate_events_per_s=2e5))
        assert engine.counters()["events_received"] > 0
    assert not engine.running
    assert engine.result is not None
    assert engine.result == engine.stop()
    assert (sent["lost"], set(sent["mistakes"].values())) == (0, {0})
    assert engine.result["counters"]["events_answered"] == sent["sent"]
    assert engine.counters()["events_answered"] == sent["sent"]
    check_packet_books(sent, engine.result)
    with pytest.raises(ValueError, match="it runs once"):
        engine.start()


def test_a_port_that_is_taken_is_a_set_up_error() -> None:
    receive, answers = free_ports()
    with nanet.Engine(engine_config(receive, answers)), pytest.raises(nanet.SetupError, match=str(receive)):
        nanet.Engine(engine_config(receive, answers))


def other_side(target: rdma.Target, code: str, token: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs code with `connection` in another process, while this one serves."""
    text = OTHER_SIDE.format("\n".join(f"    {line}" for line in code.splitlines()))
    command = [sys.executable, "-c", text, f"127.0.0.1:{target.port}", str(token)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            target.serve(0.02)
        out, err = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def test_put_and_get_between_processes() -> None:
    with rdma.expose("results", 4096, read=True, write=True) as target:
        target.memory[:4] = (1, 2, 3, 4)
        done = other_side(
            target,
            "connection.put(np.arange(100, dtype='<u4'), offset_bytes=64)\nconnection.flush()\n"
            "print(connection.get(0, 4).tolist(), connection.size_bytes, connection.may_read, connection.may_write)\n"
            "print(bool(connection.path['text']), connection.get().nbytes, connection.get(64, 400).view('<u4').sum())\n",
        )
        assert done.stderr == ""
        assert done.stdout == "[1, 2, 3, 4] 4096 True True\nTrue 4096 4950\n"
        assert target.memory[64:464].view("<u4").tolist() == list(range(100))
        kept = target.memory
    assert kept[0] == 1  # readable after the region was taken back
    with pytest.raises(ValueError, match="the target is closed"):
        target.serve(0.0)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("connection.put(b'x' * 5000)", "SetupError: 5000 bytes from 0 on are not in the region (it has 4096)"),
        ("connection.put(b'x', offset_bytes=-1)", "SetupError: 1 bytes from -1 on are not in the region"),
        ("connection.get(4000, 97)", "SetupError: 97 bytes from 4000 on are not in the region"),
        ("connection.put(np.zeros((4, 4))[:, ::2])", "SetupError: a ndarray cannot be put (its bytes are not contiguous)"),
        ("connection.put('text')", "SetupError: a str cannot be put (it is neither bytes nor an array)"),
        ("connection.put(b'x', offset_bytes=1.5)", "SetupError: 1.5 is no number of bytes"),
        ("connection.get(0, 1 << 70)", "bytes from 0 on are not in the region (it has 4096)"),
        ("connection.get(0, -1)", "SetupError: -1 bytes from 0 on are not in the region"),
        ("connection.put(b'x')", "NotDone: the transfer was not done ("),
        ("connection.close()\nconnection.get()", "ValueError: the connection is closed"),
    ],
)
def test_what_cannot_be_done_is_one_line(code: str, words: str) -> None:
    with rdma.expose("results", 4096, read=True) as target:
        done = other_side(target, code)
        assert done.returncode == 1
        assert words in done.stderr.splitlines()[-1]
        assert not np.any(target.memory)


def test_a_token_is_asked_for() -> None:
    with rdma.expose("results", 64, read=True, token=0x1234) as target:
        assert other_side(target, "print(connection.get().sum())", token=0x1234).stdout == "0\n"
        assert re.search(r"(SetupError|NotDone): ", other_side(target, "pass", token=0x1235).stderr.splitlines()[-1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rdma.expose("r", 64, read=True, address="0.0.0.0", token=0), "without a token"),
        (lambda: rdma.connect("nowhere", "r"), "is not an address"),
        (lambda: rdma.connect("127.0.0.1:1", "r", require="magic"), "'magic' cannot be required of a path"),
    ],
)
def test_wrong_places_are_set_up_errors(call: object, words: str) -> None:
    with pytest.raises(nanet.SetupError, match=re.escape(words)):
        call()  # type: ignore[operator]
