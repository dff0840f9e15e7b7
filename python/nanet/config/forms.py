# SPDX-License-Identifier: Apache-2.0
"""Texts and numbers of a configuration that have a form of their own: a component's struct names it for a key, and it is checked here."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt

from nanet.config.base import Core, Endpoint, Name, check_endpoint, problem

__all__ = ["Channels", "Core", "Endpoint", "Expression", "Mac", "Name", "Network", "PciAddress", "Quoted", "SendEndpoint"]

CHANNEL_COUNT = 2048

SendEndpoint = Annotated[str, AfterValidator(lambda url: check_endpoint(url, ("udp", "torus")))]


def channel_numbers(items: Iterable[int | str]) -> tuple[int, ...]:
    """The channels that numbers and ranges such as 100-107 name, in order, each once. Raises a problem."""
    channels: set[int] = set()
    for item in items:
        match = re.fullmatch(r"(\d{1,4})(?:\s*-\s*(\d{1,4}))?", str(item).strip(), re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if last >= CHANNEL_COUNT or first > last:
            raise problem(
                f"channel {item!r} is none", f"channels are 0 to {CHANNEL_COUNT - 1}", "write numbers and ranges such as 100-107"
            )
        channels.update(range(first, last + 1))
    return tuple(sorted(channels))


Channels = Annotated[tuple[StrictInt | str, ...], AfterValidator(channel_numbers)]


def check_network(text: str) -> str:
    """An address or network of IPv4 or IPv6, with its prefix length."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        suggestion = "write it as 10.0.0.7, 10.0.0.0/24 or 2001:db8::/32"
        raise problem(f"'{text}' is not an address or network", str(error), suggestion) from None


Network = Annotated[str, AfterValidator(check_network)]


def check_quoted(value: Any) -> Any:
    """Anything but a number; YAML takes 0101 for one, and 0000:03:00.0 and 52:54:00:12:34:56 for numbers in base 60."""
    if isinstance(value, (int, float)):
        raise problem(f"{value} is a number", "YAML reads digits, also between colons, as one", "put it in quotes")
    return value


Quoted = Annotated[str, BeforeValidator(check_quoted)]


def check_pci_address(text: str) -> str:
    """A PCI address with its domain, in lower case."""
    if not re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", text):
        raise problem(
            f"'{text}' is not a PCI address",
            "it is domain:bus:device.function in lower case",
            "write it as lspci -D does, such as 0000:3b:00.0",
        )
    return text


PciAddress = Annotated[str, BeforeValidator(check_quoted), AfterValidator(check_pci_address)]


def check_mac(text: str) -> str:
    """The Ethernet address of one station, in lower case."""
    if not re.fullmatch(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}", text):
        raise problem(
            f"'{text}' is not an Ethernet address", "one has six bytes in hexadecimal digits", "write it as 02:00:00:00:00:01"
        )
    if int(text[:2], 16) & 1 or text.strip("0:") == "":
        raise problem(
            f"'{text}' is not the address of a station", "it is a group address, or zero", "write that of one network port"
        )
    return text.lower()


Mac = Annotated[str, BeforeValidator(check_quoted), AfterValidator(check_mac)]


def expression_text(value: Any) -> Any:
    """An expression as text; a whole number is one."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Expression = Annotated[str, BeforeValidator(expression_text), Field(min_length=1, max_length=200)]
