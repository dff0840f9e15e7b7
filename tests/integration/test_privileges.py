# SPDX-License-Identifier: Apache-2.0
"""A run that gives up root once it listens: what it is then, and that it goes on working."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import yaml
from loops import check_event_books, check_packet_books, emulator_config, engine_config, free_ports, nanet
from nanet.run import emulate


def identity(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(
        line.split(":\t", 1) for line in lines if line.startswith(("Uid", "Gid", "Groups", "CapEff", "CapPrm", "NoNewPrivs"))
    )


def me() -> str:
    """The account to become: nobody for root, itself for anyone else, who can become no other."""
    return "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


def test_every_thread_becomes_the_account_and_the_books_balance(tmp_path: Path) -> None:
    port, answers = free_ports()
    config = engine_config(port, answers).model_dump(mode="json")
    config["run"]["user"] = me()
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    ready, ready_in = os.pipe()
    command = [sys.executable, "-m", "nanet", "run", tmp_path / "config.yaml", "--quiet", "--json", tmp_path / "result.json"]
    process = subprocess.Popen([*command, "--ready-fd", str(ready_in)], pass_fds=(ready_in,))
    os.close(ready_in)
    try:
        assert os.read(ready, 6) == b"ready\n"
        entry = pwd.getpwnam(me())
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        assert len(threads) > 1
        for thread in threads:
            is_now = identity(thread)
            assert is_now["Uid"].split() == [str(entry.pw_uid)] * 4
            assert is_now["Gid"].split() == [str(entry.pw_gid)] * 4
            assert int(is_now["CapEff"], 16) == 0
            assert int(is_now["CapPrm"], 16) == 0
        assert identity(process.pid)["NoNewPrivs"] == "1"
        emulated = emulate.run(emulator_config(port, answers))
    finally:
        process.terminate()
        process.wait(30)
        os.close(ready)
    engine = json.loads((tmp_path / "result.json").read_text())
    check_packet_books(emulated, engine)
    check_event_books(emulated, engine)
    assert emulated["lost"] == 0


def test_an_account_that_cannot_be_had_is_refused_before_anything_starts(tmp_path: Path) -> None:
    port, answers = free_ports()
    config = engine_config(port, answers).model_dump(mode="json")
    for user, why in (("nobody-knows-me", "does not know it"), ("root", "no privilege would be dropped")):
        config["run"]["user"] = user
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        done = nanet("run", tmp_path / "config.yaml", expect=2)
        assert why in done.stderr
