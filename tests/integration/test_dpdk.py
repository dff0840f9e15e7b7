# SPDX-License-Identifier: Apache-2.0
"""A whole engine behind DPDK: a recording that DPDK's own pcap driver plays is answered as the live run was, whosever memory it lands in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nanet
import numpy as np
import pytest
import yaml
from loops import emulator_config, engine_config, free_ports, wait_for
from nanet import _core
from nanet.config.errors import ConfigError
from nanet.run import emulate
from nanet.run.process import EngineProcess
from test_replay import EVENTS, Listener, answers_of


def dpdk_link(port: int, device: str, **dpdk: Any) -> dict[str, Any]:
    """What of an engine's link is to be another one for DPDK."""
    return {"endpoint": f"dpdk://127.0.0.1:{port}", "dpdk": {"device": device} | dpdk}


@pytest.mark.parametrize(("memory", "payloads"), [("dpdk", "copied"), ("host", "copied"), ("host", "in_place")])
def test_a_recording_played_by_dpdk_is_answered_as_the_live_run(tmp_path: Path, memory: str, payloads: str) -> None:
    file = tmp_path / "live.pcap"
    ports: list[int] = []

    def live(port: int) -> dict[str, Any]:
        ports.append(port)
        return emulate.run(emulator_config(port, None, events_total=EVENTS, rate_events_per_s=2e5))

    expected, engine, _ = answers_of({"link": {"record": {"file": str(file)}}}, 1, live)
    link = dpdk_link(ports[0], f"net_pcap0,rx_pcap={file}", payload_memory=memory, payloads=payloads)
    with Listener() as listener:
        config = engine_config(1, int(listener.url.rpartition(":")[2]), link=link)
        if not _core.build_info()["back_ends"]["dpdk"]:
            with pytest.raises(ConfigError, match=r"libnanet_link_dpdk\.so is neither in"), EngineProcess(config):
                pass
            return
        with EngineProcess(config) as process:
            wait_for(lambda: process.counters().get("events_answered") == EVENTS, "the last answer")
            again = process.stop()
    assert np.array_equal(listener.primitives(), expected)
    assert again["losses"] == {}
    assert ("received into memory of the link's own" in again["links"][0]["path"]) == (memory == "host")
    stats = again["links"][0]["stats"]
    assert stats["rx_packets"] == engine["links"][0]["stats"]["rx_packets"]
    assert stats["rx_copied_bytes"] == (0 if payloads == "in_place" else stats["rx_bytes"])


def test_an_engine_without_the_module_says_what_is_missing(tmp_path: Path) -> None:
    package = Path(nanet.__file__).parent
    shutil.copytree(package, tmp_path / "nanet", ignore=shutil.ignore_patterns("libnanet_link_*", "__pycache__"))
    config = engine_config(1, None, link=dpdk_link(free_ports(1)[0], "net_ring0"))
    (tmp_path / "engine.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    done = subprocess.run(
        [sys.executable, "-m", "nanet", "run", str(tmp_path / "engine.yaml"), "--quiet"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "link boards cannot be opened (libnanet_link_dpdk.so is neither in" in said, done.stderr
    assert "then run make links" in said
