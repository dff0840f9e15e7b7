# SPDX-License-Identifier: Apache-2.0
"""What all models of a configuration are made of: described fields, errors in the project's grammar, checked types."""

from __future__ import annotations

import functools
import inspect
import ipaddress
import os
import re
import typing
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

__all__ = [
    "Byte",
    "Core",
    "Endpoint",
    "Model",
    "Name",
    "check_core",
    "check_endpoint",
    "online_cores",
    "problem",
    "ruled",
    "same_as",
    "setting",
]


ModelT = TypeVar("ModelT", bound=BaseModel)


def problem(what: str, why: str, suggestion: str, key: str = "") -> PydanticCustomError:
    """An error of ours inside a validator, in the project's grammar. key: of the model, whose line is the one to look at."""
    return PydanticCustomError(
        "nanet", "{text}", {"text": f"{what} ({why}) {suggestion}", "key": key}
    )  # braces in a text are no fields


def ruled(model: ModelT, component: type[BaseModel]) -> ModelT:
    """The model, if it breaks none of the rules that stand beside the component's C++ struct. Only a check loads the native module."""
    from nanet import _core

    keys = model.model_dump(mode="json", include=set(component.model_fields))
    if (broken := _core.broken_rule(component.__name__, keys)) is not None:
        key, what, why, suggestion = broken
        raise problem(what, why, suggestion, key)
    return model


def setting(
    default: Any,
    what: str,
    *,
    unit: str | None = None,
    too_small: str | None = None,
    too_big: str | None = None,
    **constraints: Any,
) -> Any:
    """A field whose description says unit and the effect of a value that is too small or too big."""
    text = what + (f" [{unit}]" if unit else "") + "."
    if too_small:
        text += f" Too small: {too_small}."
    if too_big:
        text += f" Too big: {too_big}."
    extra: dict[str, Any] | None = {"unit": unit} if unit else None
    if isinstance(default, (dict, list)) or callable(default):
        factory = default if callable(default) else (lambda: default)
        return Field(default_factory=factory, description=text, json_schema_extra=extra, **constraints)
    return Field(default, description=text, json_schema_extra=extra, **constraints)


def same_as(model: type[BaseModel], name: str, **changes: Any) -> Any:
    """A field like `name` of another model: its constraints and description, and its default if that is not changed."""
    field = copy(model.model_fields[name])
    for key, value in changes.items():
        setattr(field, key, value)
    return field


def online_cores() -> frozenset[int]:
    """The CPU cores that the kernel has online."""
    try:
        text = Path("/sys/devices/system/cpu/online").read_text().strip()
    except OSError:
        return frozenset(range(os.cpu_count() or 1))
    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    return frozenset(cores)


TORUS_NODES_MAX = 64  # 4x4x4
IPV6_SCHEMES = ("udp", "xdp", "dpdk")  # the links that know IPv6 too


def check_endpoint(url: str, schemes: Sequence[str] = ("udp",)) -> str:
    """`udp://ADDRESS:PORT` with an IPv4 address, an IPv6 address in brackets, or a host name, which is looked up once, before the start.

    schemes: those that are allowed.
    """
    scheme, separator, rest = url.partition("://")
    suggestion = "write it as udp://ADDRESS:PORT, for example udp://127.0.0.1:6200"
    if not separator:
        raise problem(f"endpoint '{url}' has no scheme", "an endpoint is a URL", suggestion)
    if scheme not in schemes:
        raise problem(f"endpoint '{url}' is of an unknown kind", f"here it can be {', '.join(schemes)}", suggestion)
    if scheme == "torus":
        return f"torus://{_torus_node(url, rest)}"
    host, colon, port = rest.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise problem(f"endpoint '{url}' has no usable port", "a port is a number from 1 to 65535", suggestion)
    if host.startswith("["):
        return f"{scheme}://{_ipv6_host(scheme, host, url)}:{int(port)}"
    if re.fullmatch(r"[0-9.]*", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise problem(f"endpoint '{url}' has no usable address", "it is not an IPv4 address", suggestion) from None
    elif not re.fullmatch(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*", host) or len(host) > 253:
        raise problem(f"endpoint '{url}' has no usable address", "it is neither an IPv4 address nor a host name", suggestion)
    return f"{scheme}://{host}:{int(port)}"


def _torus_node(url: str, number: str) -> int:
    """A node of a simulated torus has a number in place of an address."""
    if not re.fullmatch(r"[0-9]{1,4}", number, re.ASCII) or int(number) >= TORUS_NODES_MAX:
        raise problem(f"endpoint '{url}' names no node", f"there are at most {TORUS_NODES_MAX}", "write it as torus://3")
    return int(number)


def _ipv6_host(scheme: str, host: str, url: str) -> str:
    if scheme not in IPV6_SCHEMES:
        raise problem(f"endpoint '{url}' has no usable address", f"{scheme} knows IPv4 only", "use udp://, or an IPv4 address")
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1] if host.endswith(']') else host)}]"
    except ValueError:
        suggestion = f"write it as {scheme}://[2001:db8::1]:6200"
        raise problem(f"endpoint '{url}' has no usable address", "it is not an IPv6 address in brackets", suggestion) from None


def check_core(core: int) -> int:
    """A core that this machine has."""
    cores = online_cores()
    if core not in cores:
        names = f"{min(cores)} to {max(cores)}" if len(cores) > 1 else f"{min(cores)}"
        raise problem(f"there is no CPU core {core}", f"this machine has {names}", "choose one of those, or null")
    return core


Endpoint = Annotated[str, AfterValidator(lambda url: check_endpoint(url))]
Core = Annotated[int, Field(ge=0), AfterValidator(check_core)]
Byte = Annotated[int, Field(ge=0, le=255)]
Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9_.-]+$")]


class Model(BaseModel):
    """Frozen, no key that is not in the schema, and no text or true where a number stands."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=False, allow_inf_nan=False
    )

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # Not those that tell models of a union apart: Pydantic allows no validator there, and they have names to choose from.
        names = [
            name for name, said in inspect.get_annotations(cls).items() if not str(said).startswith(("Literal['", 'Literal["'))
        ]
        if names:  # by a name of its own, so that no subclass takes it away
            checked = field_validator(*names, mode="before", check_fields=False)(classmethod(_of_its_kind))
            setattr(cls, f"_of_its_kind_{cls.__name__}", checked)


def _of_its_kind(model: type[BaseModel], value: Any, info: ValidationInfo) -> Any:
    kinds = _kinds(model, str(info.field_name))
    for one in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(one, str) and "\0" in one:
            raise problem(f"{one!r} is not allowed", "it has a NUL character", "remove it")
        if kinds <= {bool, int, float} and type(one) in (bool, int, float, str) and not _may_be(type(one), kinds):
            wanted = "true or false" if kinds == {bool} else "a number"
            raise problem(f"{_as_yaml(one)} is not allowed", f"it is not {wanted}", f"write {wanted}, without quotes")
    return value


@functools.cache
def _kinds(model: type[BaseModel], name: str) -> frozenset[type]:
    """Of the scalars that a field takes, in a list or not; `object` stands for whatever is none."""

    def of(annotation: Any) -> Iterator[type]:
        if typing.get_origin(annotation) is typing.Literal:
            yield from map(type, typing.get_args(annotation))
        elif typing.get_origin(annotation) is Annotated:
            yield from of(typing.get_args(annotation)[0])
        elif arguments := [one for one in typing.get_args(annotation) if one not in (type(None), ...)]:
            for one in arguments:
                yield from of(one)
        else:
            yield annotation if annotation in (bool, int, float) else object

    return frozenset(of(model.model_fields[name].annotation))


def _may_be(kind: type, kinds: frozenset[type]) -> bool:
    """Numbers stand for each other, as far as the field's own check allows."""
    return kind in kinds or (kind in (int, float) and bool(kinds & {int, float}))


def _as_yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
