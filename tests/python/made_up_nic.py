# SPDX-License-Identifier: Apache-2.0
"""What a made-up NIC says of the time that packets took in it, and what a made-up node counts."""

from __future__ import annotations

from typing import Any


def nic_times() -> dict[str, Any]:
    """Ten packets, one of which took very long, and no buffer."""
    written = {
        "name": "written", "sample": "packet", "count": 10, "min_cycles": 16, "max_cycles": 9000, "sum_cycles": 9160,
        "bins": [
            {"from_cycles": 16, "to_cycles": 16, "count": 6}, {"from_cycles": 32, "to_cycles": 39, "count": 3},
            {"from_cycles": 7168, "to_cycles": None, "count": 1},
        ],
    }  # fmt: skip
    completed = {
        "name": "completed", "sample": "buffer", "count": 0, "min_cycles": 0, "max_cycles": 0, "sum_cycles": 0, "bins": [],
    }  # fmt: skip
    return {"clock": "made up", "cycle_ns": 6.4, "stages": [written, completed]}


def node_counts(*, overflow: int = 0, packet: int = 100, complete: int = 1440) -> list[dict[str, Any]]:
    """A node of two ports. Each had 100 frames, 90 packets of 16 events; 1,440 of the events were complete, 10 were not, of which 5 were dropped."""
    rx = {"parsed": 95, "fcs": 3, "runt": 0}
    reply = {"answered_arp": 2, "busy": 0, "replied": 2}
    payloads = {"to_events": 94, "refused": 0, "full": 1, "no_route": 0, "forwarded": 0, "sent_to": 0}
    merge = {
        "length": 0,
        "format": 0,
        "checksum": 0,
        "full": 0,
        "packet": 90,
        "marker": 4,
        "part": 1440,
        "late": 0,
        "jump": 0,
        "disabled": 0,
    }
    groups: list[dict[str, Any]] = []
    for port in (0, 1):
        for name, counts in (
            ("wire", {"frames": 100, "held": 0}),
            ("rx", rx),
            ("reply", reply),
            ("port", payloads),
            ("merge", merge),
        ):
            groups.append({"name": name, "port": port, "counts": dict(counts)})
    groups[-1]["counts"] |= {"part": 1437, "late": 3}
    events = {"complete": complete, "missing": 8, "overflow": 2, "incomplete": 5, "cut": 1, "packet": packet}
    host = {"stored": 100, "overflow": overflow, "no_buffer": 0}
    for name, counts in (
        ("events", events),
        ("host", host),
        ("node", {"to_host": packet}),
        ("given", {"packets": 100, "events": 1445}),
    ):
        groups.append({"name": name, "port": None, "counts": counts})
    return groups


def floor_counts() -> list[dict[str, Any]]:
    """A node with links of two floors. 50 packets came, of which 3 could not go and 2 wait; each floor sent 100 frames, of which one was bad, and the host had no
    buffer for one of 200 packets."""
    drops = dict.fromkeys(
        ("drop_head", "drop_floor", "drop_cut", "drop_code", "drop_symbol", "unplaced", "control_only", "full", "overrun"), 0
    )
    km3 = drops | {"drop_crc": 1, "placed": 99}
    none = ("bad_head", "wrong_floor", "no_slot", "wrong_run", "wrong_time", "too_late", "again", "bad_record", "no_frame")
    fibre = {"received": 50, "carried": 45, "untimed": 2, "no_room": 1, "held": 2} | dict.fromkeys(none, 0)
    packets = {"packet": 101, "queue_full": 1, "no_route": 0, "forwarded": 100, "error_gps": 1}
    groups: list[dict[str, Any]] = [{"name": "fibre", "port": None, "counts": fibre}]
    for port in (0, 1):
        groups.append({"name": "floor", "port": port, "counts": {"frames": 100}})
        groups.append({"name": "link_state", "port": port, "counts": {"aligned": 1, "slip_bits": 7}})
        groups.append({"name": "km3", "port": port, "counts": km3 | packets})
    groups.append({"name": "host", "port": None, "counts": {"stored": 199, "no_buffer": 1}})
    return [*groups, {"name": "given", "port": None, "counts": {"packets": 199}}]
