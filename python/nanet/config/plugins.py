# SPDX-License-Identifier: Apache-2.0
"""What plug-ins add to the names that a configuration can use.

The names of nanet's own kinds stand in the models. While a configuration with `plugins` is validated, `with_plugins()` lets the models take those of the
plug-ins too, which the native module has loaded and asked.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from nanet.config.base import problem
from nanet.config.errors import nearest
from nanet.config.formats import current_formats, shipped_names

if TYPE_CHECKING:
    from nanet.config.engine import EngineConfig

__all__ = [
    "KindName", "Kinds", "PluginPath", "Settings", "Unknown", "check_engine", "check_plugins", "choices", "current_kinds", "load_kinds", "names_added", "unknown_kind", "with_plugins",
]  # fmt: skip


@dataclass(frozen=True)
class Kinds:
    """All kinds by name, nanet's own and those of plug-ins, with what the native module says of each."""

    paths: tuple[str, ...]  # of the plug-ins
    protocols: Mapping[str, Mapping[str, Any]]
    processors: Mapping[str, Mapping[str, Any]]
    links: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Unknown(Kinds):
    """Of plug-ins that do not load: any name may be theirs, and that they do not load is said once."""


@functools.lru_cache
def load_kinds(paths: tuple[str, ...]) -> Kinds:
    """Loads the plug-ins, which stay loaded, and says what there is with them. Raises nanet._core.SetupError."""
    from nanet import _core

    return Kinds(paths, **_core.kinds(list(paths)))


def names_added(paths: tuple[str, ...]) -> list[str]:
    """What plug-ins add: `protocol camera`, `link camera`. Raises nanet._core.SetupError."""
    own, every = load_kinds(()), load_kinds(paths)
    whats = ("protocols", "processors", "links")
    return [f"{what[:-1]} {name}" for what in whats for name in getattr(every, what) if name not in getattr(own, what)]


_CURRENT: ContextVar[Kinds | None] = ContextVar("kinds of the configuration that is validated", default=None)


def current_kinds() -> Kinds | None:
    """Of the configuration that is validated right now; None: it has no plug-ins."""
    return _CURRENT.get()


@contextlib.contextmanager
def with_plugins(said: Any) -> Iterator[None]:
    """Validates with the plug-ins that a configuration names, as it was written. What is wrong with them PluginPath and check_plugins() say."""
    paths = said.get("plugins") if isinstance(said, dict) else None
    kinds = None
    if isinstance(paths, (list, tuple)) and paths:
        try:
            kinds = load_kinds(tuple(map(str, paths)))
        except ValueError:
            kinds = Unknown((), {}, {}, {})
    token = _CURRENT.set(kinds)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def check_plugins(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The plug-ins, which load, one beside the other."""
    try:
        load_kinds(paths) if paths else None
    except ValueError as error:
        raise PydanticCustomError("nanet", "{text}", {"text": str(error)}) from None
    return paths


def check_engine(config: EngineConfig) -> None:
    """The rules between the components, which the native module knows: it makes the processor, but opens nothing."""
    from nanet import _core

    if isinstance(current_kinds(), Unknown):
        return
    try:
        _core.check_engine(config.model_dump(mode="json"))
    except _core.SetupError as error:
        raise PydanticCustomError("nanet", "{text}", {"text": str(error)}) from None


PluginPath = Annotated[str, Field(min_length=1), AfterValidator(lambda path: check_plugins((path,))[0])]


def unknown_kind(what: str, name: str, known: Mapping[str, Any]) -> PydanticCustomError:
    """A name that is neither ours nor a plug-in's."""
    names = ", ".join(known)
    suggestion = nearest(name, known)
    return problem(
        f"unknown {what} '{name}'", f"with these plug-ins it can be {names}", suggestion if "?" in suggestion else "use one of them"
    )


@dataclass(frozen=True)
class KindName:
    """Marks a text that is one of `names`, or with plug-ins one of theirs. what: protocol or processor."""

    what: str
    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        own = core_schema.literal_schema(list(self.names))
        text = core_schema.plain_serializer_function_ser_schema(str)
        return core_schema.no_info_wrap_validator_function(self._check, own, serialization=text)

    def __get_pydantic_json_schema__(self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        theirs = {
            "description": "A declared format, or with plug-ins a name of theirs.",
            "pattern": "^[A-Za-z][A-Za-z0-9_.-]*$",
            "type": "string",
        }
        return {"anyOf": [{"enum": list(self.names), "type": "string"}, theirs]}

    def _check(self, value: Any, own: Callable[[Any], Any]) -> Any:
        kinds = current_kinds()
        if self.what == "protocol" and isinstance(value, str) and value in current_formats():
            return value
        if not isinstance(value, str) or (kinds is None and value in self.names):
            return own(value)
        if kinds is None:
            why, suggestion = f"it must be one of {', '.join(self.names)}", nearest(value, self.names)
            if self.what == "protocol":
                why += ", or a declared format"
                suggestion = nearest(value, [*self.names, *current_formats(), *shipped_names()])
                suggestion = suggestion if "?" in suggestion else "nanet format list prints the formats"
            raise problem(f"'{value}' is not allowed", why, f"{suggestion}; for one of a plug-in add plugins: [FILE.so]")
        known = kinds.protocols if self.what == "protocol" else kinds.processors
        if isinstance(kinds, Unknown) or value in known:
            return value
        raise unknown_kind(self.what, value, known)


def choices(kinds: Mapping[str, str]) -> str:
    """The names with what each means, for a description."""
    return "; ".join(f"{name}: {said}" for name, said in kinds.items())


def _check_settings(settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for number in _numbers(settings):
        if not -(1 << 63) <= number < 1 << 63:
            raise problem(f"the number {number} is not usable", "it has more than 64 bits", "write a smaller one, or a text")
    return settings


def _numbers(value: JsonValue) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)


Settings = Annotated[dict[str, JsonValue], AfterValidator(_check_settings), WithJsonSchema({"type": "object"})]
