# SPDX-License-Identifier: Apache-2.0
"""The configuration: what is valid, and the one line that is said about what is not."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from nanet.config import emulator, engine, rich
from nanet.config import l0tp as l0tp_config
from nanet.config.errors import ConfigError, nearest, parse_document, validated
from nanet.config.schema import emulator_schema, engine_schema, format_schema, km3_schema, l0tp_schema

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.yaml") if path.stem not in ("km3_server", "l0tp"))
GRAMMAR = re.compile(r"^.+ \(.+\) .+$")

GOOD: dict[str, Any] = {
    "version": 1,
    "memory_regions": [{"name": "rich"}],
    "links": [{"name": "boards", "endpoint": "udp://127.0.0.1:6200", "memory_region": "rich", "sources": [{"name": "a"}]}],
    "answers": {"endpoint": "udp://127.0.0.1:6300"},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """GOOD with the value at a dotted path replaced."""
    data = copy.deepcopy(GOOD)
    here: Any = data
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        here = here[part] if isinstance(here, list) else here.setdefault(part, {})
    here[last] = value
    return data


def problems(data: Any, model: Any = engine.EngineConfig) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validated(model, data)
    assert all("\n" not in line for line in caught.value.problems)
    return caught.value.problems


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"first_light.yaml", "four_boards.yaml", "own_port.yaml"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid(path: Path) -> None:
    loaded = engine.load(path)
    again = engine.EngineConfig.model_validate(loaded.model_dump(mode="json"))
    assert again == loaded


def test_the_trigger_processor_example_is_valid() -> None:
    import jsonschema

    path = ROOT / "examples" / "l0tp.yaml"
    loaded = l0tp_config.load(path)
    assert l0tp_config.L0tpConfig.model_validate(loaded.model_dump(mode="json")) == loaded
    jsonschema.validate(yaml.safe_load(path.read_text()), l0tp_schema())


def test_defaults_are_filled_in() -> None:
    loaded = validated(engine.EngineConfig, GOOD)
    assert loaded.topology == "run_to_completion"
    assert loaded.links[0].batch_size == 128
    assert loaded.processor.cuts.electron_radius_mm == 189.65
    assert loaded.run.budget_us == 1000
    with pytest.raises(Exception, match="frozen"):
        loaded.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("links.0.bach_size", 3, "unknown key 'bach_size' in links[0] (the schema has no such key) did you mean 'batch_size'?"),
        ("procesor", {}, "unknown key 'procesor' in the top level (the schema has no such key) did you mean 'processor'?"),
        ("memory_regions.0.buffer_count", 48, "buffer_count 48 is not a power of two"),
        ("memory_regions.0.buffer_bytes", 65600 + 1, "is not a multiple of 4096"),
        ("memory_regions.0.kind", "device", "'rich' cannot be device memory (the kernel copies the packets"),
        ("memory_regions.0.kind", "host_pinned", "memory region 'rich' is host_pinned (an engine"),
        ("memory_regions.0.buffer_bytes", 8192, "has no room for link 'boards' (with gro, one super-packet needs 65536 B)"),
        ("links.0.memory_region", "rihc", "unknown memory region 'rihc' (it is none of memory_regions) did you mean 'rich'?"),
        (
            "links.0.protocol",
            "mpg",
            "'mpg' is not allowed (it must be one of raw, mgp, m2egp, or a declared format) did you mean 'mgp'?",
        ),
        (
            "links.0.protocol",
            "km3_floor",
            "'km3_floor' is not allowed (it must be one of raw, mgp, m2egp, or a declared format) did you mean 'km3-floor'?",
        ),
        (
            "links.0.protocol",
            "?",
            "or a declared format) nanet format list prints the formats; for one of a plug-in add plugins: [FILE.so]",
        ),
        ("links.0.protocol", None, "links[0].protocol: null is not allowed (it must be one of raw, mgp, m2egp"),
        ("links.0.protocol", ["mgp"], "is not allowed (it must be one of raw, mgp, m2egp"),
        ("links.0.protocol", {"mgp": 1}, "is not allowed (it must be one of raw, mgp, m2egp"),
        ("links.0.protocol", "a" * 5000, f"protocol: '{'a' * 57}...' is not allowed"),
        ("links.0.faults", True, "links[0].faults: true is not allowed (it must be a table of keys and values) it means"),
        ("processor", "rich", "processor: 'rich' is not allowed (it must be a table of keys and values) it means"),
        (
            "links.0.gateware",
            {"line_gbps": 11},
            "links[0].gateware.line_gbps: 11 is not allowed (it must be one of 1, 10) did you mean 1?",
        ),
        ("links.0.endpoint", "127.0.0.1:6200", "has no scheme"),
        ("links.0.endpoint", "tcp://127.0.0.1:6200", "here it can be udp, xdp, dpdk, ucx, gateware, torus, pcap"),
        ("links.0.endpoint", "udp://127.0.0.1", "has no usable port"),
        ("links.0.endpoint", "udp://127.0.0.1:0", "has no usable port"),
        ("links.0.endpoint", "udp://127.0.0.999:1", "has no usable address"),
        ("links.0.endpoint", "udp://a b:1", "has no usable address"),
        ("links.0.sources", [], "link 'boards' has no sources"),
        ("links.0.sources", [{"name": "a"}, {"name": "b"}], "source 0x1c sub 0 appears 2 times"),
        ("links.0.sources", [{"name": "a"}, {"name": "b", "source_sub_id": 1}], "2 sources but no merge"),
        ("links.0.faults", {"loss": 0.6, "corrupt": 0.6}, "the probabilities add up to 1.2"),
        ("links.0.faults", {"loss": 1.5}, "links[0].faults.loss: 1.5 is not allowed"),
        ("answers.endpoint", "udp://127.0.0.1:6200", "answers: packets go to the engine's own link 'boards'"),
        ("cpu_cores.receive", 4096, "there is no CPU core 4096"),
        (
            "cpu_cores.realtime_priority",
            50,
            "cpu_cores.realtime_priority without a core (the thread could pre-empt whatever runs on any core",
        ),
        ("cpu_cores", {"receive": 0, "realtime_priority": 100}, "cpu_cores.realtime_priority: 100 is not allowed"),
        ("cpu_cores.process", 0, "run_to_completion has one thread only"),
        ("processor.kind", "count", "answers are configured (processor count makes none)"),
        ("processor.cuts", {"radius_min_mm": 300}, "radius_min_mm 300 is not below radius_max_mm 210"),
        ("processor.merge", {"open_events_max": 1000}, "open_events_max 1000 is not a power of two"),
        ("waiting.spin", -2, "waiting.spin: -2 is not allowed"),
        ("run.budget_us", "soon", "run.budget_us: 'soon' is not allowed"),
        ("version", 2, "version: 2 is not allowed"),
    ],
)
def test_mistakes_are_one_line(path: str, value: Any, expected: str) -> None:
    lines = problems(changed(path, value))
    assert len(lines) == 1
    assert expected in lines[0]
    assert GRAMMAR.match(lines[0])


def test_the_same_core_twice() -> None:
    data = changed("cpu_cores", {"receive": 0, "process": 0}) | {"topology": "pipelined"}
    assert "core 0 appears 2 times (each must be unique) give each stage a core of its own" in problems(data)[0]


def test_missing_keys_are_named() -> None:
    data = copy.deepcopy(GOOD)
    del data["links"][0]["endpoint"], data["version"]
    lines = problems(data)
    assert any("missing key 'endpoint' in links[0]" in line for line in lines)
    assert any("missing key 'version' in the top level" in line for line in lines)


def test_line_numbers_and_one_line_with_the_rest_counted(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("version: 1\nname: x\nmemory_regions:\n  - {name: rich, bufer_count: 4}\nlinks: []\n")
    with pytest.raises(ConfigError) as caught:
        engine.load(path)
    assert "bad.yaml:4: unknown key 'bufer_count' in memory_regions[0]" in str(caught.value)
    assert str(caught.value).endswith("[and 1 more: nanet validate shows all]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the configuration is nothing"),
        ("- 1", "the configuration is a list"),
        ("version: 1\nversion: 1", "key 'version' appears twice"),
        ("version: [1", "not usable as YAML"),
        ("a: \x00", "not usable as YAML"),
        ("a: !!python/object:os.system 1", "not usable as YAML"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(expected)) as caught:
        engine.load(path)
    assert "\n" not in str(caught.value)


def test_no_file() -> None:
    with pytest.raises(ConfigError, match=r"cannot read nothing\.yaml \(no such file or directory\)"):
        engine.load("nothing.yaml")


def test_numbers_with_an_exponent_are_numbers() -> None:
    assert parse_document("a: 1e6\nb: 2.5e-3\nc: 0x1C\nd: 1e").data == {"a": 1e6, "b": 2.5e-3, "c": 28, "d": "1e"}


def test_nearest() -> None:
    assert nearest("loops", ["loss", "delay"]) == "did you mean 'loss'?"
    assert nearest("zzz", ["loss", "delay"]) == "known: loss, delay"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"boards": 4, "destinations": ["udp://127.0.0.1:1", "udp://127.0.0.1:2"]}, "2 destinations for 4 board(s)"),
        ({"events_per_packet": 20}, "events_per_packet 20 does not fit the padded layout"),
        ({"packet_bytes": 1000}, "packet_bytes 1000 does not fit the padded layout"),
        ({"layout": "packed", "packet_bytes": 1001}, "packet_bytes 1001 is odd"),
        ({"pause_s": 1.0}, "pause_s is set but spill_s is 0"),
        ({"destinations": [], "answers": None}, "there are neither destinations nor answers"),
        ({"answers": "udp://127.0.0.1:6200"}, "answers and a destination are both udp://127.0.0.1:6200"),
        ({"boards": 3}, "boards: 3 is not allowed (it must be one of 1, 4)"),
        ({"monte_carlo": {"momentum_min_gev": 50}}, "momentum_min_gev 50 is above momentum_max_gev 35"),
        ({"monte_carlo": {"fractions": {"e": 0, "mu": 0, "pi": 0, "K": 0}}}, "all fractions are 0"),
        ({"answers": None, "xdp": {"interface": "eth0"}}, "xdp without answers"),
        ({"xdp": {"interface": "eth0", "frame_count": 1000}}, "frame_count 1000"),
        ({"monte_carlo": {"hits_max": 64}}, "monte_carlo.hits_max 64 does not fit the padded layout"),
        ({"monte_carlo": {"ring_count_shares": [0, 0, 0, 0, 0]}}, "all ring_count_shares are 0"),
        ({"monte_carlo": {"ring_count_shares": [0, 1]}}, "ring_count_shares"),
        ({"monte_carlo": {"dead_channels": ["480-490"]}}, "dead_channels has 488 (there is no photomultiplier)"),
        ({"boards": 4, "first_sub_id": 253}, "first_sub_id 253 leaves no room"),
        ({"boards": 4, "layout": "packed", "first_sub_id": 1}, "first_sub_id 1 does not fit the packed layout"),
        ({"detectors": {"detectors": []}}, "there is no detector"),
        ({"detectors": {"detectors": [{"name": "a", "source_id": 26}, {"name": "b", "source_id": 26}]}}, "have source_id 0x1A"),
        ({"detectors": {}, "rate_events_per_s": 0}, "detectors, but rate_events_per_s is 0"),
        ({"detectors": {}, "destinations": []}, "detectors or decisions without destinations"),
        ({"decisions": "udp://127.0.0.1:6200"}, "decisions and another endpoint are both udp://127.0.0.1:6200"),
        ({"finder": {"name": "alma"}}, "finder.name: 'alma' is not allowed (it must be one of math, "),
        ({"finder": {"name": "alma"}}, "did you mean 'almagest'?"),
        ({"finder": {"hits_min": 5}}, "missing key 'name' in finder (it says which kind it is) add 'name: ...'"),
    ],
)
def test_emulator_mistakes(change: dict[str, Any], expected: str) -> None:
    lines = problems(change, emulator.EmulatorConfig)
    assert expected in lines[0]
    assert GRAMMAR.match(lines[0])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "name", "run", "kind"]), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_data_is_refused_in_single_lines(data: Any) -> None:
    assert all("(" in line for line in problems(data))  # no such data has links


@given(st.text(max_size=200))
def test_any_text_is_refused_in_single_lines(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(engine.EngineConfig, parse_document(text, "x.yaml"))
    assert all("\n" not in line for line in caught.value.problems)


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("schema.json", engine_schema()),
        ("schema-emulator.json", emulator_schema()),
        ("schema-l0tp.json", l0tp_schema()),
        ("schema-km3.json", km3_schema()),
        ("schema-format.json", format_schema()),
    ],
)
def test_published_schema_is_current(name: str, schema: dict[str, Any]) -> None:
    published = json.loads((ROOT / "docs" / name).read_text())
    assert published == json.loads(json.dumps(schema)), f"docs/{name} is old: nanet schema [--emulator|--l0tp] --json docs/{name}"


def test_schema_accepts_the_examples() -> None:
    import jsonschema

    for path in EXAMPLES:
        jsonschema.validate(yaml.safe_load(path.read_text()), engine_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(GOOD | {"unknown": 1}, engine_schema())


@pytest.mark.parametrize(
    "schema", [engine_schema(), emulator_schema(), l0tp_schema(), km3_schema()], ids=["engine", "emulator", "l0tp", "km3"]
)
def test_every_field_is_described(schema: dict[str, Any]) -> None:
    for model in [schema, *schema["$defs"].values()]:
        for name, field in model["properties"].items():
            target = schema["$defs"].get(field.get("$ref", "").removeprefix("#/$defs/"), {})
            assert len(field.get("description", target.get("description", ""))) >= 5, name


def test_finders_are_those_of_the_library() -> None:
    """Names, cuts and defaults."""
    from nanet import _core
    from nanet.config import components
    from nanet.config.rich import RANGE, UNUSED, Decision

    defaults = _core.default_finder_cuts()
    assert sum(name.endswith("Finder") for name in components.__all__) == len(_core.finder_names()) + 1
    for name in _core.finder_names():
        ours = Decision.model_validate({"finder": {"name": name}}).finder.model_dump()
        assert ours.pop("name") == name
        theirs = defaults.get(name, {})
        assert list(ours) == list(theirs)
        assert {cut for cut, value in ours.items() if value is None} <= {*RANGE, *UNUSED}  # which follow from the cuts on rings
        known = {cut: value for cut, value in ours.items() if value is not None}
        assert all(abs(value - theirs[cut]) <= 1e-6 * abs(value) for cut, value in known.items()), name


def test_default_cuts_are_those_of_the_library() -> None:
    from nanet import _core

    ours = rich.Cuts().model_dump()
    theirs = _core.default_cuts()
    assert ours.keys() == theirs.keys()
    assert ours.pop("momentum_gev") is None
    assert theirs.pop("momentum_gev") is None
    assert all(abs(ours[name] - theirs[name]) < 1e-4 for name in ours)
