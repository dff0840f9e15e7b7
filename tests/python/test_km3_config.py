# SPDX-License-Identifier: Apache-2.0
"""The configuration of `nanet km3 server`: the example is valid, and what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from nanet.config.errors import ConfigError, parse_document, validated
from nanet.config.km3_server import Km3ServerConfig, load
from nanet.config.schema import km3_schema

EXAMPLE = Path(__file__).parents[2] / "examples" / "km3_server.yaml"
FLOOR: dict[str, Any] = {"floor": 1, "control": "udp://127.0.0.1:7300"}


def problems(**keys: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validated(Km3ServerConfig, parse_document(yaml.safe_dump({"floors": [FLOOR]} | keys), "x.yaml"))
    return caught.value.problems


def test_the_example_is_valid() -> None:
    loaded = load(EXAMPLE)
    assert Km3ServerConfig.model_validate(loaded.model_dump(mode="json")) == loaded
    jsonschema.validate(yaml.safe_load(EXAMPLE.read_text()), km3_schema())
    assert [one.floor for one in loaded.floors] == [1, 2, 3, 4]


def test_one_floor_is_a_configuration() -> None:
    loaded = validated(Km3ServerConfig, {"floors": [FLOOR]})
    assert loaded.store.url == "sqlite:///km3.db"
    assert loaded.floors[0].tower == 1


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"floors": []}, "floors"),
        ({"floors": [FLOOR, FLOOR | {"control": "udp://127.0.0.1:7301"}]}, "floor 1/1 appears 2 times"),
        ({"floors": [FLOOR, FLOOR | {"floor": 2}]}, "control endpoint udp://127.0.0.1:7300 appears 2 times"),
        ({"floors": [FLOOR | {"high_voltage_v": [1200]}]}, "high_voltage_v"),
        ({"floors": [FLOOR | {"threshold_pe": [11] * 6}]}, "threshold_pe"),
        ({"destinations": [{"name": "a", "endpoint": "http://127.0.0.1:1"}]}, "unknown kind"),
        ({"destinations": [{"name": "a", "endpoint": "udp://127.0.0.1:1"}]}, "sampled hits over udp"),
        ({"destinations": [{"name": "a", "endpoint": "tcp://127.0.0.1:1", "kinds": ["light"]}]}, "kinds"),
        ({"data": {"buffer_count": 100}}, "no power of two"),
        ({"data": {"buffer_bytes": 65537}}, "no multiple of 4096"),
        ({"alarms": [{"name": "a", "parameter": "temperature"}]}, "has no bound"),
        ({"alarms": [{"name": "a", "parameter": "temperature", "above": 10, "below": 10}]}, "never cleared"),
        ({"alarms": [{"name": "a", "parameter": "pressure", "above": 10}]}, "parameter"),
        ({"alarms": [{"name": "a", "parameter": "temperature", "above": 10, "floors": [2]}]}, "there is no such floor"),
        ({"alarms": [{"name": "a", "parameter": "threshold_0", "above": 10}]}, "monitor does not read threshold_0"),
        ({"contrl": {}}, "did you mean 'control'?"),
    ],
)
def test_what_is_wrong_is_told(keys: dict[str, Any], says: str) -> None:
    found = problems(**keys)
    assert any(says in line for line in found), found
    assert all(line.startswith("x.yaml:") for line in found)
