# SPDX-License-Identifier: Apache-2.0
"""YAML: the scalars of YAML 1.2, what is refused and where, and every configuration there is reads as it did."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from nanet.config import base, engine
from nanet.config import yaml as config_yaml
from nanet.config.errors import ConfigError, load_document, parse_document, validated

ROOT = Path(__file__).parents[2]
LIGHT = (ROOT / "examples" / "first_light.yaml").read_text()


class Before(yaml.SafeLoader):
    """PyYAML, and 1e6 as a number: what read configurations until now."""


Before.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(?:[0-9][0-9_]*)(?:\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def texts() -> Iterator[tuple[str, str]]:
    """Every YAML of examples, pages and tests."""
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        yield path.name, path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for index, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", path.read_text(), flags=re.MULTILINE | re.DOTALL)):
            yield f"{path.name} {index}", block
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path != Path(__file__):
            for node in ast.walk(ast.parse(path.read_text())):
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and re.search(r"^version: 1\n(?!version)", node.value, re.M)
                ):
                    yield f"{path.name}:{node.lineno}", node.value


@pytest.mark.parametrize(("name", "text"), list(texts()), ids=lambda value: value if "\n" not in value else "")
def test_what_there_is_reads_as_before(name: str, text: str) -> None:
    assert parse_document(text).data == yaml.load(text, Before)


def test_there_is_something_to_compare() -> None:
    names = [name for name, _ in texts()]
    assert sum(name.endswith(".yaml") for name in names) >= 10
    assert sum(".md " in name for name in names) >= 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", 10), ("0o17", 15), ("0x1C", 28), ("-7", -7), ("+7", 7), ("1e6", 1e6), ("1.5E-3", 1.5e-3), (".5", 0.5), ("5.", 5.0),
        (".inf", float("inf")), ("-.INF", float("-inf")), ("~", None), ("null", None), ("", None), ("true", True), ("FALSE", False),
        ("1:4", "1:4"), ("190:20:30", "190:20:30"), ("yes", "yes"), ("No", "No"), ("on", "on"), ("OFF", "OFF"), ("y", "y"),
        ("1_000", "1_000"), ("0b11", "0b11"), ("2020-01-01", "2020-01-01"), ("=", "="), ("'1'", "1"), ("!!str 1", "1"), ("!!float 1", 1.0),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    data = parse_document(f"a: {text}").data
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def bomb(middle: str) -> str:
    lines = ["k0: &a0 {x: 1}"]
    for level in range(9):
        lines.append(f"k{level + 1}: &a{level + 1} " + middle % ", ".join([f"*a{level}"] * 9))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("a: 1\n[1, 2]: 3", 2, "a sequence is a key and no text"),
        ("a: {{b: 1}}", 1, "a mapping is a key and no text"),
        ("b: 1\n2: 1", 2, "'2' is a key and no text"),
        ("a: 1\nb: {c: 1, c: 2}", 2, "key 'c' appears twice"),
        ("a: 1\nversion: &a [*a]", 2, "*a stands within what it stands for"),
        (bomb("[%s]"), 4, "it has more than 100 aliases, those within others counted each time"),
        (bomb("{<<: [%s]}"), 4, "it has more than 100 aliases, those within others counted each time"),
        ("a: &a 1\nb: [" + "*a, " * 101 + "]", 2, "it has more than 100 aliases, those within others counted each time"),
        ("a:\n " + "[" * 50 + "]" * 50, 2, "it is nested deeper than 50"),
        ("a:\n " + "[" * 5000, 2, "it is nested deeper than 50"),
        ("a: [" + "1, " * 20_001 + "]", 1, "it has more than 20,000 values, those of aliases counted each time"),
        ("a: 1\n" * 300_000, 1, "it is larger than 1 MiB"),
        ("a: 1\nb: !!python/name:os.system", 2, "could not determine a constructor for the tag"),
        ("a: !!int x", 1, "'x' is no int"),
        ("a: 1\nb: !!map x", 2, "a scalar is no map"),
        ("a: !!map [{{b: 1}}]", 1, "a sequence is no map"),
        ("a: " + "9" * 5000, 1, "is no int"),
        ("a: 1\nb: \x07", 2, "the character 0x0007 is not allowed"),
        ("a: *b", 1, "found undefined alias 'b'"),
    ],
)  # fmt: skip
def test_refused_as_one_line_with_its_place(text: str, where: int, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_document(text, "f.yaml")
    (line,) = refused.value.problems
    assert line.startswith(f"f.yaml:{where}: not usable as YAML (")
    assert f"{why}" in line
    assert "\n" not in line


def test_a_hundred_aliases_and_fifty_levels_are_taken() -> None:
    assert parse_document("a: &a 1\nb: [" + "*a, " * 100 + "]").data["b"] == [1] * 100
    assert parse_document("a: " + "[" * 48 + "]" * 48).data["a"]
    assert parse_document("a: &a {b: 1}\nc: {<<: *a, d: 2}").data["c"] == {"b": 1, "d": 2}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("version: 1", "version: true", "version: true is not allowed (it is not a number) write a number, without quotes"),
        ("version: 1", "version: yes", "version: 'yes' is not allowed (it is not a number) write a number, without quotes"),
        ("version: 1", "version: '1'", "version: '1' is not allowed (it is not a number) write a number, without quotes"),
        ("huge_pages: true", "huge_pages: yes", "'yes' is not allowed (it is not true or false) write true or false, without quotes"),
        ("huge_pages: true", "huge_pages: 1", "1 is not allowed (it is not true or false) write true or false, without quotes"),
        ("buffer_count: 64", "buffer_count: 1:4", "'1:4' is not allowed (it is not a number) write a number, without quotes"),
        ("buffer_count: 64", "buffer_count: .nan", "nan is not allowed (input should be a finite number)"),
        ("buffer_count: 64", "'{{x}}': 64", "unknown key '{{x}}' in memory_regions[0]"),
        ("buffer_count: 64", '"a\\0\\nb": 64', "unknown key 'a\\x00\\nb' in memory_regions[0]"),
        ("udp://127.0.0.1:6200", '"udp://{a}{{b}}"', "endpoint 'udp://{a}{{b}}' has no usable port"),
        ("udp://127.0.0.1:6200", '"udp://a\\0b:1"', "'udp://a\\x00b:1' is not allowed (it has a NUL character) remove it"),
        ("run: {", "run: {duration_s: .inf, ", "run.duration_s: inf is not allowed"),
        ("run: {", "run: {duration_s: 1e300, ", "run.duration_s: 1e+300 is not allowed"),
    ],
)  # fmt: skip
def test_values_that_are_none(old: str, new: str, line: str) -> None:
    assert old in LIGHT
    with pytest.raises(ConfigError) as refused:
        validated(engine.EngineConfig, parse_document(LIGHT.replace(old, new), "f.yaml"))
    assert line in refused.value.problems[0]
    assert refused.value.problems[0].startswith("f.yaml:")
    assert refused.value.problems[0].isprintable()


def test_braces_in_a_text_are_braces() -> None:
    assert base.problem("'{a}'", "{{b}}", "{").message() == "'{a}' ({{b}}) {"


@pytest.mark.parametrize("content", [b"a: \xff", b"x" * (config_yaml.BYTES_MAX + 1)])
def test_files_that_are_no_configuration(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"it is not UTF-8 text|it is larger than 1 MiB"):
        load_document(tmp_path / "f.yaml")


@pytest.mark.parametrize("path", ["a\0b", "/dev/null/x", "."])
def test_names_that_are_no_file(path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_document(Path(path))
    assert refused.value.problems[0].isprintable()
    assert refused.value.problems[0].startswith("cannot read ")
