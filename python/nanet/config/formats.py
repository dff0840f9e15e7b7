# SPDX-License-Identifier: Apache-2.0
"""Declared packet formats: those of a file, those that are shipped, and those that a configuration names. docs/declared-formats.md"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanet.config.components import Format
from nanet.config.errors import ConfigError, Document, load_document, nearest, validated

__all__ = ["DeclaredFormat", "current_formats", "load", "shipped_names", "with_formats"]

SHIPPED = Path(__file__).resolve().parent.parent / "formats"


@dataclass(frozen=True)
class DeclaredFormat:
    """A format and what it is called."""

    name: str
    declaration: Format

    def keys(self) -> dict[str, Any]:
        """As the native decoder takes it."""
        return self.declaration.model_dump(mode="json")


def shipped_names() -> list[str]:
    """Of the formats that come with nanet."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def load(name_or_file: str) -> DeclaredFormat:
    """A shipped format by its name, or the one that a file declares. Raises ConfigError, with the line."""
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml"):
        if name_or_file not in shipped_names():
            raise ConfigError(
                [
                    f"no format has the name '{name_or_file}' (none of that name is shipped) {nearest(name_or_file, shipped_names())}, or a file.yaml"
                ]
            )
        path = SHIPPED / f"{name_or_file}.yaml"
    return DeclaredFormat(path.stem, validated(Format, load_document(path)))


_CURRENT: ContextVar[Mapping[str, Any]] = ContextVar("formats of the configuration that is validated", default={})  # noqa: B039


def current_formats() -> Mapping[str, Any]:
    """By name, as the configuration that is validated right now declares them; what is wrong with them is said elsewhere."""
    return _CURRENT.get()


@contextlib.contextmanager
def with_formats(said: Any) -> Iterator[Any]:
    """Validates with the formats that a configuration declares, and with the shipped ones that its links name: gives the configuration with
    these written out."""
    if not isinstance(said, dict):
        yield said
        return
    declared = said.get("formats", {})
    declared = dict(declared) if isinstance(declared, dict) else {}
    links = said.get("links")
    for link in links if isinstance(links, (list, tuple)) else (said,):  # a port is its own link
        name = link.get("protocol") if isinstance(link, dict) else getattr(link, "protocol", None)
        if isinstance(name, str) and name not in declared and name in shipped_names():
            declared[name] = load_document(SHIPPED / f"{name}.yaml").data
    if declared:
        said = {**said, "formats": declared}
    token = _CURRENT.set(declared)
    try:
        yield said
    finally:
        _CURRENT.reset(token)


def dumped(name: str) -> dict[str, Any]:
    """`{name: keys}` of a format of the current configuration, for the native module; nothing if it is not one, or not valid."""
    said = current_formats().get(name)
    if said is None:
        return {}
    try:
        format_ = said if isinstance(said, Format) else validated(Format, Document("", said))
    except ConfigError:
        return {}
    return {name: format_.model_dump(mode="json")}
