# SPDX-License-Identifier: Apache-2.0
"""What can be configured of a link: where packets come from, over which kind of link, and who may send them."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nanet.config.base import Model, Name, check_endpoint, check_power_of_two, problem, setting
from nanet.config.components import Faults, Record, Source
from nanet.config.forms import Mac, Network, PciAddress
from nanet.config.plugins import KindName, Settings, Unknown, current_kinds, unknown_kind

__all__ = ["Dpdk", "Faults", "Gateware", "LinkConfig", "Pcap", "Record", "Source", "Ucx", "Xdp", "room_bytes"]

LINK_SCHEMES = ("udp", "xdp", "dpdk", "ucx", "gateware", "pcap")
FRAME_PACKET_BYTES_MAX = 9014  # of the links below which no kernel puts fragments together
XDP_IN_PLACE_BYTES_MAX = 3784  # of a payload in one frame
GPU_SPLIT_BYTES = 66  # Ethernet, IPv4, UDP, packet header, first event header
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


class Xdp(Model):
    """What an AF_XDP link needs besides an interface."""

    queues: tuple[Annotated[int, Field(ge=0, le=1023)], ...] = setting(
        (), "Queues of the interface to receive from; none: all of them. Packets in other queues go to the kernel", max_length=64
    )
    frame_count: int = setting(
        8192, "Frames of each queue, a power of two; half of them are for sending", unit="frames", ge=64, le=1 << 20,
        too_small="kernel_dropped at every pause of the receiving thread",
        too_big="the working set exceeds the caches",
    )  # fmt: skip
    zero_copy: Literal["automatic", "required", "off"] = setting(
        "automatic", "automatic: if the driver supports it; required: refuse to start without it; off: the kernel copies"
    )
    attach: Literal["automatic", "driver", "generic"] = setting(
        "automatic",
        "Where the steering program runs. driver: in the NIC's driver; generic: after it, on any NIC; automatic: the better of the two",
    )
    tx_wait_us: int = setting(
        100, "How long a send may wait for room in the ring", unit="us", ge=0, le=1_000_000,
        too_small="answers_dropped in a burst",
        too_big="the sending thread does nothing else meanwhile",
    )  # fmt: skip
    huge_pages: bool = setting(
        True, "Try huge pages for the frames; if there are none, ordinary pages are used and this is reported"
    )
    payloads: Literal["copied", "in_place"] = setting(
        "copied",
        "copied: each payload is copied into a buffer of the memory region, and its frame is free at once; in_place: it stays in its frame"
        " until the buffer that names it is given back, so each queue gets frames for all packets of the region in addition to frame_count",
    )

    @model_validator(mode="after")
    def _shape(self) -> Xdp:
        check_power_of_two("frame_count", self.frame_count, "the kernel's rings have such sizes")
        if len(set(self.queues)) < len(self.queues):
            raise problem("a queue is named twice", "each has one socket", "name each once")
        return self


class Dpdk(Model):
    """What a DPDK link needs: a device and memory."""

    device: str = setting(
        ...,
        "What DPDK calls it: '0000:3b:00.0', or a virtual device such as 'net_af_packet0,iface=eth1'",
        min_length=1,
        max_length=255,
    )
    address: str | None = setting(
        None, "The link's own IPv4 address with prefix length, 10.0.0.2/24; null: the endpoint's, with /24",
        pattern=r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$",
    )  # fmt: skip
    gateway: str | None = setting(
        None, "IPv4 of the router to destinations outside the link's own network; null: none", pattern=r"^\d{1,3}(\.\d{1,3}){3}$"
    )
    arp_wait_ms: int = setting(
        3000, "How long to wait at start for a destination's MAC address (ARP)", unit="ms", ge=1, le=60_000,
        too_small="a peer that starts later keeps this one from starting",
        too_big="a missing peer is noticed late",
    )  # fmt: skip
    tx_wait_us: int = setting(
        100, "How long a send may wait for room in the device's ring", unit="us", ge=0, le=1_000_000,
        too_small="answers_dropped in a burst",
        too_big="the sending thread does nothing else meanwhile",
    )  # fmt: skip
    eal_arguments: tuple[str, ...] = setting(
        (), "More arguments for DPDK's environment abstraction layer (EAL); those of the first link count"
    )
    huge_pages: bool = setting(False, "Use huge pages; a NIC needs them, virtual devices do not")
    memory_mib: int = setting(
        256, "Memory for DPDK's pools", unit="MiB", ge=32, le=1 << 16,
        too_small="DPDK does not start",
    )  # fmt: skip
    descriptors: int = setting(
        1024, "Length of the device's receive and send rings", unit="packets", ge=64, le=1 << 15,
        too_small="kernel_dropped at every pause of the receiving thread",
        too_big="the working set exceeds the caches",
    )  # fmt: skip
    split_bytes: int | None = setting(
        None, "The NIC writes this many bytes of each frame into one buffer and the rest into another; null: frames stay whole."
        " Refused where the device cannot do so. 66: Ethernet, IPv4, UDP, packet header and first event header",
        unit="bytes", ge=42, le=1024,
    )  # fmt: skip
    payload_memory: Literal["dpdk", "host", "gpu"] = setting(
        "dpdk",
        "Where packets are received (if the NIC splits them: their payloads). dpdk: DPDK's memory; host: huge pages of the link's own;"
        " gpu: memory of the processor's GPU, with split_bytes 66 and payloads that stay in place",
    )
    payloads: Literal["copied", "in_place"] = setting(
        "copied",
        "copied: each payload is copied into a buffer of the memory region; in_place: it stays where the device wrote it until the buffer"
        " that names it is given back, with payload_memory host (frames whole) or gpu, which implies it",
    )

    @property
    def in_place(self) -> bool:
        """Whether payloads stay where the device wrote them."""
        return self.payloads == "in_place" or self.payload_memory == "gpu"

    @model_validator(mode="after")
    def _payloads(self) -> Dpdk:
        if self.payload_memory == "gpu" and self.split_bytes != GPU_SPLIT_BYTES:
            raise problem(
                f"payload_memory gpu with split_bytes {self.split_bytes}", "the host has to keep 24 bytes of each payload",
                f"set split_bytes: {GPU_SPLIT_BYTES}",
            )  # fmt: skip
        if self.in_place and self.payload_memory == "dpdk":
            raise problem(
                "payloads in_place in DPDK's memory",
                "that is not one piece of memory that a consumer can be pointed to",
                "set payload_memory: host",
            )
        if self.in_place and self.payload_memory == "host" and self.split_bytes is not None:
            raise problem(
                f"payloads in_place with split_bytes {self.split_bytes}", "a consumer on the host reads each in one piece",
                "remove split_bytes",
            )  # fmt: skip
        return self


class Ucx(Model):
    """What a UCX link needs: rings that remote writers fill, and who may fill them."""

    ring_count: int = setting(
        1, "Rings, one for each sender: its region is ring-0, ring-1, ...", unit="rings", ge=1, le=1024,
        too_small="further senders are refused",
        too_big="memory, and one more poll for each empty ring",
    )  # fmt: skip
    slot_count: int = setting(
        1024, "Payloads that each ring has room for, each of the link's packet_bytes_max", unit="payloads", ge=1, le=1 << 20,
        too_small="its sender waits at every pause of the receiving thread; nothing is lost",
        too_big="the working set exceeds the caches",
    )  # fmt: skip
    memory: Literal["shared", "host"] = setting(
        "shared", "shared: memory that writers on this machine map; host: locked memory of this process, for RDMA hardware"
    )
    transports: str = setting(
        "", "As in UCX_TLS, such as posix or rc_verbs; senders need the same. Empty: shared memory at a loopback address, elsewhere RDMA"
        " hardware (rc, dc) of the device that owns the address",
        max_length=255, pattern=r"^[!-~]*$",
    )  # fmt: skip
    trust_network: bool = setting(
        False, "UCX's TCP may be used, where it is named in transports, or where the address is of no RDMA hardware. It checks no keys: whoever"
        " reaches that interface has full control over this process",
    )  # fmt: skip
    allow_root: bool = setting(
        False, "Receive as root. Otherwise root is refused unless run.user gives it up: a sender could use what this process may do",
    )  # fmt: skip
    token_file: str | None = setting(
        None,
        "File with the token that a sender must prove to know, 1 to 16 hexadecimal digits, readable by its owner only; null: NANET_RDMA_TOKEN of the"
        " environment, else none, and then the endpoint must be on loopback",
        min_length=1,
    )


class Gateware(Model):
    """A card with the NIC of gateware/ in place of the simulated one. Not yet run on hardware."""

    card: PciAddress = setting(
        ...,
        "PCI address of the card as lspci -D writes it, '0000:65:00.0', in quotes; vfio-pci must have it (driverctl set-override ADDRESS vfio-pci)",
    )
    mac: Mac = setting(
        ..., "Ethernet address that the card gets, '02:00:00:00:00:01', in quotes; no other station on its network may have it"
    )
    next_hop: Mac | None = setting(
        None,
        "Ethernet address of the station that answers go to, the receiver or the router to it: the NIC answers ARP but sends no requests;"
        " null: no answers leave through this link",
    )


class Pcap(Model):
    """How a recording is played."""

    port: int | None = setting(None, "Play packets to this UDP port only; null: all", ge=1, le=65535)
    pace: Literal["original", "packets", "maximum"] = setting(
        "original",
        "original: the gaps of the recording; packets: packets_per_s; maximum: as fast as the engine takes them, with no loss",
    )
    packets_per_s: float | None = setting(None, "Rate, with pace packets", unit="packets/s", gt=0.0, le=1e9)

    @model_validator(mode="after")
    def _rate(self) -> Pcap:
        if (self.pace == "packets") != (self.packets_per_s is not None):
            raise problem(
                f"pace {self.pace} {'without' if self.packets_per_s is None else 'with'} packets_per_s",
                "pace packets has a rate, the others have none", "set both or neither",
            )  # fmt: skip
        return self


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
                "remove sources, or use protocol: mgp",
            )
        return self

    @property
    def scheme(self) -> str:
        """Which kind of link: `udp`, `xdp`, `dpdk`, `ucx`, `gateware` or `pcap`, or one of a plug-in."""
        return self.endpoint.partition("://")[0]

    @property
    def in_place(self) -> bool:
        """Whether payloads stay where the NIC or the kernel wrote them, and the memory region only says where."""
        return (self.dpdk is not None and self.dpdk.in_place) or (self.xdp is not None and self.xdp.payloads == "in_place")

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
