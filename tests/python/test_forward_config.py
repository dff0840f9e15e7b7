# SPDX-License-Identifier: Apache-2.0
"""Configurations of nodes that forward events, and of nodes that take them in: what is accepted and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from nanet.config import EngineConfig
from pydantic import ValidationError

SOURCE = {"name": "board0", "source_id": 0x1C, "source_sub_id": 0}


def config(link: dict[str, Any] | None = None, processor: dict[str, Any] | None = None, **changes: Any) -> EngineConfig:
    plain: dict[str, Any] = {
        "version": 1,
        "memory_regions": [{"name": "m"}],
        "links": [{"name": "in", "endpoint": "udp://127.0.0.1:6200", "memory_region": "m", "sources": [SOURCE]} | (link or {})],
        "processor": {"kind": "forward", "forward": {"endpoint": "udp://127.0.0.1:6210"}} | (processor or {}),
    }
    return EngineConfig.model_validate(plain | changes)


def test_a_node_that_forwards() -> None:
    forward = config().processor.forward
    assert forward is not None
    assert (forward.source_id, forward.source_sub_id, forward.packet_bytes_max) == (0x1C, 0, 1472)


def test_a_node_that_takes_events_in() -> None:
    node = config({"protocol": "m2egp"}, {"kind": "rich", "forward": None}, answers={"endpoint": "udp://127.0.0.1:6300"})
    assert node.links[0].protocol == "m2egp"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"processor": {"forward": None}}, "no destination"),
        ({"processor": {"kind": "rich"}}, "processor rich sends no events"),
        ({"processor": {"kind": "count"}}, "processor count sends no events"),
        ({"answers": {"endpoint": "udp://127.0.0.1:6300"}}, "processor forward makes none"),
        ({"processor": {"forward": {"endpoint": "udp://127.0.0.1:6200"}}}, "the engine's own link"),
        ({"processor": {"forward": {"endpoint": "udp://127.0.0.1:6210", "packet_bytes_max": 1473}}}, "multiple of 2"),
        ({"processor": {"forward": {"endpoint": "udp://127.0.0.1:6210", "packet_bytes_max": 278}}}, "280"),
        ({"link": {"protocol": "raw", "sources": []}}, "the processor cannot read"),
        ({"link": {"protocol": "m2egp", "sources": []}}, "with protocol m2egp"),
        ({"link": {"sources": [SOURCE, SOURCE | {"name": "b", "source_sub_id": 1}]}}, "no merge"),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        config(**changes)
