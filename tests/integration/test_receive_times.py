# SPDX-License-Identifier: Apache-2.0
"""A run whose packets the kernel stamps: from the sender, by the time in MGP's header, and from the kernel to the engine."""

from __future__ import annotations

from loops import emulator_config, engine_config, free_ports, run


def test_a_run_says_how_long_packets_took() -> None:
    (port,) = free_ports(1)
    udp = {"timestamps": "software", "sent": {"at": 8, "bytes": 4, "clock": "monotonic"}}
    engine = engine_config(port, None, link={"udp": udp, "gro": False}, processor={"kind": "count"})
    sent, result = run(engine, emulator_config(port, None, events_total=20_000, rate_events_per_s=1e5))
    (link,) = result["links"]
    stages = {stage["name"]: stage for stage in link["nic_times"]["stages"]}
    assert list(stages) == ["sender_to_kernel", "kernel_before_sender", "kernel_to_user"]
    packets = link["stats"]["rx_packets"]
    assert packets >= sent["packets_sent"]
    # The kernel begins to stamp a moment after the socket asked for it. Markers say no time of sending: theirs is far off, either way.
    assert packets / 2 < stages["kernel_to_user"]["count"] <= packets
    assert sum(stages[name]["count"] for name in ("sender_to_kernel", "kernel_before_sender")) == stages["kernel_to_user"]["count"]
    assert stages["sender_to_kernel"]["count"] > sent["packets_sent"] / 2
    assert 0 < stages["sender_to_kernel"]["min_cycles"] < 1e9
    for stage in stages.values():
        assert sum(bin_["count"] for bin_ in stage["bins"]) == stage["count"]
    assert any("right for senders on this machine only" in note for note in result["notes"])


def test_without_stamps_there_are_no_times() -> None:
    (port,) = free_ports(1)
    engine = engine_config(port, None, processor={"kind": "count"})
    _, result = run(engine, emulator_config(port, None, events_total=2000))
    assert result["links"][0]["nic_times"] is None
