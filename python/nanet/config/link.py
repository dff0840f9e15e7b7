# SPDX-License-Identifier: Apache-2.0
"""What can be configured of a link: where packets come from, over which kind of link, and who may send them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, model_validator
from pydantic_core import PydanticCustomError

from nanet.config.base import Name, check_endpoint, problem, setting
from nanet.config.components import LINKS, PROTOCOLS, Link, LinkSections
from nanet.config.formats import current_formats, dumped
from nanet.config.plugins import KindName, Settings, Unknown, choices, current_kinds, unknown_kind

__all__ = ["LinkConfig", "ProtocolName", "link_facts"]


def check_link_endpoint(url: str) -> str:
    """Where a link listens, or the file that it plays. What follows the scheme of a plug-in's link, the plug-in reads."""
    kinds, (scheme, separator, rest) = current_kinds(), url.partition("://")
    if kinds is not None and separator and scheme not in LINKS:
        if not isinstance(kinds, Unknown) and scheme not in kinds.links:
            raise unknown_kind("kind of link", scheme, kinds.links)
        if not rest:
            raise problem(f"endpoint '{url}' names no place", "only its kind is said", f"write {scheme}://PLACE")
        return url
    if not url.startswith("pcap://"):
        return check_endpoint(url, tuple(LINKS))
    if url == "pcap://":
        raise problem(f"endpoint '{url}' names no file", "a recording is played from one", "write pcap://out/run.pcap")
    return url


ProtocolName = Annotated[str, KindName("protocol", tuple(PROTOCOLS))]
LinkEndpoint = Annotated[str, AfterValidator(check_link_endpoint)]


class LinkConfig(Link, LinkSections):
    """One place where packets come from."""

    endpoint: LinkEndpoint = setting(
        ..., f"Where to listen: {'; '.join(LINKS.values())}. udp://0.0.0.0:PORT listens on every address"
    )
    protocol: ProtocolName = setting(
        "mgp", f"What its packets are. {choices(PROTOCOLS)}; or the name of a declared format whose packets hold events"
    )
    memory_region: Name = setting(..., "Name of the memory region that packets are received into")
    settings: Settings | None = setting(None, "What a link of a plug-in needs, keys of its own; only there; null: nothing")

    @property
    def scheme(self) -> str:
        """Which kind of link: one of LINKS, or one of a plug-in."""
        return self.endpoint.partition("://")[0]

    def merges(self) -> bool:
        """Whether a node merges the events of its senders before the engine sees them."""
        return self.gateware is not None and self.gateware.merge is not None

    def inputs(self) -> tuple[str, ...]:
        """What it is called in results: its name, or with several queues NAME.0 and so on, since each is a link of its own there."""
        queues = self.udp.queues if self.udp is not None else 1
        if self.xdp is not None and self.xdp.split_queues:
            queues = len(self.xdp.queues)
        if self.dpdk is not None:
            queues = self.dpdk.queues
        return (self.name,) if queues == 1 else tuple(f"{self.name}.{queue}" for queue in range(queues))

    @model_validator(mode="after")
    def _rules(self) -> LinkConfig:
        for key in LinkSections.model_fields:
            if getattr(self, key) is not None and key != self.scheme:
                raise problem(
                    f"link '{self.name}' has a section {key}", f"its endpoint is {self.endpoint}",
                    f"write {key}://{self.endpoint.partition('://')[2]}, or remove the section",
                )  # fmt: skip
        if self.protocol in current_formats() and not dumped(self.protocol):
            return self  # what is wrong with its format is said there
        if not isinstance(current_kinds(), Unknown) and (broken := link_facts(self)["broken_rule"]) is not None:
            key, what, why, suggestion = broken
            raise problem(what, why, suggestion, key)
        return self


def link_facts(link: LinkConfig) -> dict[str, Any]:
    """What the native module says of a link: `broken_rule`, (key, problem, why, suggestion) or None; `in_place`; `room`, the bytes that a
    buffer needs and why. With the plug-ins of the configuration that is validated."""
    from nanet import _core

    kinds = current_kinds()
    plugins = list(kinds.paths) if kinds is not None else []
    try:
        facts: dict[str, Any] = _core.link_facts(link.model_dump(mode="json"), plugins, dumped(link.protocol))
    except _core.SetupError as error:
        raise PydanticCustomError("nanet", "{text}", {"text": str(error)}) from None
    return facts
