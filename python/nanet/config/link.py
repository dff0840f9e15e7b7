# SPDX-License-Identifier: Apache-2.0
"""What can be configured of a link: where packets come from, over which kind of link, and who may send them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, model_validator

from nanet.config.base import Model, Name, check_endpoint, problem, setting
from nanet.config.components import Dpdk, Faults, Gateware, Pcap, Record, Source, Ucx, Xdp
from nanet.config.forms import Network
from nanet.config.plugins import KindName, Settings, Unknown, current_kinds, unknown_kind

__all__ = ["Dpdk", "Faults", "Gateware", "LinkConfig", "Pcap", "Record", "Source", "Ucx", "Xdp", "room_bytes"]

LINK_SCHEMES = ("udp", "xdp", "dpdk", "ucx", "gateware", "pcap")
FRAME_PACKET_BYTES_MAX = 9014  # of the links below which no kernel puts fragments together
XDP_IN_PLACE_BYTES_MAX = 3784  # of a payload in one frame
SOCKET_KEYS = ("gro", "socket_buffer_bytes")
WITHOUT_SENDER_ADDRESSES = {  # why, what to do instead, and why there is nothing to poll
    "ucx": (
        "a ring does not say from which address it is filled", "remove senders; ucx.token_file says who may send",
        "there is no socket or NIC to poll",
    ),
    "card": (
        "a card says which entry of its match table a packet matches, not who sent it", "remove senders", "there is no socket with a card",
    ),
}  # fmt: skip


def check_link_endpoint(url: str) -> str:
    """Where a link listens, or the file that it plays. What follows the scheme of a plug-in's link, the plug-in reads."""
    kinds, (scheme, separator, rest) = current_kinds(), url.partition("://")
    if kinds is not None and separator and scheme not in LINK_SCHEMES:
        if not isinstance(kinds, Unknown) and scheme not in kinds.links:
            raise unknown_kind("kind of link", scheme, kinds.links)
        if not rest:
            raise problem(f"endpoint '{url}' names no place", "only its kind is said", f"write {scheme}://PLACE")
        return url
    if not url.startswith("pcap://"):
        return check_endpoint(url, LINK_SCHEMES)
    if url == "pcap://":
        raise problem(f"endpoint '{url}' names no file", "a recording is played from one", "write pcap://out/run.pcap")
    return url


LinkEndpoint = Annotated[str, AfterValidator(check_link_endpoint)]


class LinkConfig(Model):
    """One place where packets come from."""

    name: Name = setting(..., "Name in reports")
    endpoint: LinkEndpoint = setting(
        ...,
        "Where to listen: udp://ADDRESS:PORT, a socket; xdp://ADDRESS:PORT, AF_XDP; dpdk://ADDRESS:PORT, DPDK; ucx://ADDRESS:PORT,"
        " rings that remote writers fill through UCX; gateware://ADDRESS:PORT, a socket whose packets go through the simulated NIC,"
        " or a card with that NIC, whose own address it is; or pcap://FILE, a recording to play. udp://0.0.0.0:PORT listens on every address",
    )
    protocol: Annotated[str, KindName("protocol", ("mgp", "m2egp", "raw"))] = setting(
        "mgp",
        "mgp: packets of readout boards, with sequence numbers and checksum; m2egp: the same for merged events, from a node"
        " that forwards; raw: any datagrams, counted and handed over",
    )
    memory_region: Name = setting(..., "Name of the memory region that packets are received into")
    batch_size: int = setting(
        128, "Most packets in one receive call", unit="packets", ge=1, le=4096,
        too_small="a system call for every few packets, which lowers the critical rate",
        too_big="the first packet of a batch waits for the last one",
    )  # fmt: skip
    timeout_us: int = setting(
        0, "Hand a buffer over when its oldest packet is this old; 0: after every batch", unit="us", ge=0, le=1_000_000,
        too_small="small buffers, so more hand-overs per second",
        too_big="latency at low rates",
    )  # fmt: skip
    socket_buffer_bytes: int = setting(
        1 << 26, "Receive buffer requested from the kernel; what it grants is reported", unit="bytes", ge=4096, le=1 << 31,
        too_small="packets_lost_kernel at every pause of the receiving thread",
        too_big="packets that are late instead of lost after a long pause",
    )  # fmt: skip
    packet_bytes_max: int = setting(
        1472, "Longest payload that is accepted; 1472 fits a 1500-byte MTU, 8972 a 9000-byte one", unit="bytes",
        ge=24, le=65507,
        too_small="packets are refused as packets_truncated",
        too_big="more room kept free at the end of each buffer",
    )  # fmt: skip
    gro: bool = setting(True, "Take many packets of equal size in one piece from the kernel (UDP_GRO)")
    busy_poll_us: int = setting(
        0, "Let the kernel poll the NIC this long in a receive call (SO_BUSY_POLL); 0: off", unit="us", ge=0, le=1_000_000,
        too_big="time in which the thread does nothing else",
    )  # fmt: skip
    interface: str | None = setting(
        None,
        "Network interface. udp: use this one whatever the routes say; xdp: null is the one that has the address; not with dpdk and ucx",
        min_length=1, max_length=15,
    )  # fmt: skip
    xdp: Xdp | None = setting(None, "What only an xdp:// link needs; null: the defaults")
    dpdk: Dpdk | None = setting(None, "What only a dpdk:// link needs; required there")
    ucx: Ucx | None = setting(None, "What only a ucx:// link needs; null: the defaults")
    gateware: Gateware | None = setting(None, "The card of a gateware:// link, not yet run on hardware; null: its NIC is simulated")
    pcap: Pcap | None = setting(None, "How a pcap:// link plays its file; null: at its own pace")
    settings: Settings | None = setting(None, "What a link of a plug-in needs, keys of its own; only there; null: nothing")
    senders: tuple[Network, ...] = setting(
        (), "IPv4 addresses or networks (10.0.0.0/24) that may send here; packets from others are refused and counted; none: anyone",
        max_length=64,
    )  # fmt: skip
    sources: tuple[Source, ...] = setting(
        (), "Which boards may send here, by the ID in their packets; others are refused and counted"
    )
    faults: Faults | None = setting(None, "Faults injected on purpose; null: none")
    record: Record | None = setting(None, "Recording of what arrives; null: none")

    @property
    def numbered(self) -> bool:
        """Whether its packets name their source and have sequence numbers. While a configuration with plug-ins is validated."""
        kinds = current_kinds()
        known = kinds.protocols.get(self.protocol) if kinds is not None else None
        return bool(known["numbered"]) if known is not None else self.protocol != "raw"

    @model_validator(mode="after")
    def _sources(self) -> LinkConfig:
        if self.numbered and not self.sources:
            raise problem(
                f"link '{self.name}' has no sources",
                f"with protocol {self.protocol} every packet of an unknown source is refused",
                "add sources: [{name: board0, source_id: 0x1C, source_sub_id: 0}]",
            )
        if not self.numbered and self.sources:
            raise problem(
                f"link '{self.name}' has sources but protocol {self.protocol}",
                f"{self.protocol} datagrams carry no source ID",
                "remove sources, or choose a protocol whose packets name their source",
            )
        return self

    @property
    def scheme(self) -> str:
        """Which kind of link: `udp`, `xdp`, `dpdk`, `ucx`, `gateware` or `pcap`, or one of a plug-in."""
        return self.endpoint.partition("://")[0]

    @property
    def in_place(self) -> bool:
        """Whether payloads stay where the NIC or the kernel wrote them, and the memory region only says where."""
        return (self.dpdk is not None and (self.dpdk.payloads == "in_place" or self.dpdk.payload_memory == "gpu")) or (
            self.xdp is not None and self.xdp.payloads == "in_place"
        )

    @model_validator(mode="after")
    def _in_place(self) -> LinkConfig:
        if not self.in_place:
            return self
        for key, why in (("faults", "they are put into copies"), ("record", "a recording is made of copies")):
            if getattr(self, key) is not None:
                raise problem(
                    f"link '{self.name}' has {key}, but its payloads stay in place", why, f"remove {key}, or set payloads: copied"
                )
        if self.xdp is not None and self.packet_bytes_max > XDP_IN_PLACE_BYTES_MAX:
            raise problem(
                f"packet_bytes_max {self.packet_bytes_max} of link '{self.name}'", "a payload in place lies in one frame",
                f"set at most {XDP_IN_PLACE_BYTES_MAX}, or payloads: copied",
            )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _of_plugin(self) -> LinkConfig:
        if self.scheme in LINK_SCHEMES:
            if self.settings is not None:
                raise problem(f"link '{self.name}' has settings", f"{self.scheme} is of no plug-in", "remove settings")
            return self
        for key in (*SOCKET_KEYS, "interface", "busy_poll_us"):
            if getattr(self, key) != LinkConfig.model_fields[key].default:
                raise problem(
                    f"link '{self.name}' has {key}", f"{self.scheme} is of a plug-in", f"remove {key}, or see its settings"
                )
        kinds = current_kinds()
        known = kinds.links.get(self.scheme) if kinds is not None else None
        if self.senders and known is not None and not known["names_senders"]:
            raise problem(f"link '{self.name}' has senders", f"{self.scheme} does not say who sent a packet", "remove senders")
        return self

    @model_validator(mode="after")
    def _kind(self) -> LinkConfig:
        kind = self.scheme
        for key in ("xdp", "dpdk", "ucx", "gateware", "pcap"):
            if getattr(self, key) is not None and key != kind:
                raise problem(
                    f"link '{self.name}' has a section {key}", f"its endpoint is {self.endpoint}",
                    f"write {key}://{self.endpoint.partition('://')[2]}, or remove the section",
                )  # fmt: skip
        if kind == "dpdk" and self.dpdk is None:
            raise problem(
                f"link '{self.name}' has no device", "DPDK does not know a NIC by its address",
                "add dpdk: {device: 'net_af_packet0,iface=eth1'}",
            )  # fmt: skip
        whys = {
            "dpdk": "with DPDK the device determines it", "ucx": "UCX chooses it", "pcap": "it plays a file",
            "gateware": "its wire is simulated" if self.gateware is None else "the card is its interface",
        }  # fmt: skip
        if (why := whys.get(kind)) is not None and self.interface is not None:
            raise problem(f"link '{self.name}' has an interface", why, "remove interface")
        if kind == "udp":
            return self
        for key in SOCKET_KEYS:
            if getattr(self, key) != LinkConfig.model_fields[key].default:
                raise problem(f"link '{self.name}' has {key}", f"{kind} has no socket buffer and no super-packets", f"remove {key}")
        if kind in ("xdp", "dpdk") and self.packet_bytes_max > FRAME_PACKET_BYTES_MAX:
            raise problem(
                f"packet_bytes_max {self.packet_bytes_max} of link '{self.name}'",
                f"{kind} takes whole frames, whose payload has at most {FRAME_PACKET_BYTES_MAX} B", "lower it, or use udp://",
            )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _without_sender_addresses(self) -> LinkConfig:
        kind = "card" if self.gateware is not None else self.scheme
        if kind not in WITHOUT_SENDER_ADDRESSES:
            return self
        why, instead, not_polled = WITHOUT_SENDER_ADDRESSES[kind]
        if self.senders:
            raise problem(f"link '{self.name}' has senders", why, instead)
        if self.busy_poll_us:
            raise problem(f"link '{self.name}' has busy_poll_us", not_polled, "remove busy_poll_us")
        return self

    @model_validator(mode="after")
    def _card(self) -> LinkConfig:
        if self.gateware is None:
            return self
        if self.endpoint.startswith("gateware://0.0.0.0:"):
            raise problem(
                f"link '{self.name}' has no address of its own", "a card answers to one, and the kernel does not assign it",
                "write its endpoint as gateware://ADDRESS:PORT",
            )  # fmt: skip
        return self


def room_bytes(link: LinkConfig) -> tuple[int, str]:
    """Bytes that a buffer of a link must have room for, and why."""
    if link.in_place:
        return 0, "a buffer of records is as large as they need"
    if link.scheme == "udp" and link.gro:
        return 65536, "with gro, one super-packet"
    return link.packet_bytes_max, f"packet_bytes_max {link.packet_bytes_max}"
