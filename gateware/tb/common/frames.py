# SPDX-License-Identifier: Apache-2.0
"""Frames for the benches, made by scapy and zlib, which know nothing of the modules."""

import random
import zlib
from ipaddress import IPv4Address
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

LOCAL_MAC = "02:4e:61:4e:65:74"
LOCAL_IP = "10.62.0.1"
SENDER_MAC = "02:00:00:00:00:07"
SENDER_IP = "10.62.0.7"
FRAME_BYTES_MIN = 60  # without the check sequence
FCS_BYTES = 4


def mac_number(mac: str) -> int:
    """As the modules take it: the first byte is the highest."""
    return int(mac.replace(":", ""), 16)


def group_mac(address: str) -> str:
    """Ethernet address of an IPv4 group: the last 23 bits of its own (RFC 1112, 6.4)."""
    last = IPv4Address(address).packed[1:]
    return f"01:00:5e:{last[0] & 0x7F:02x}:{last[1]:02x}:{last[2]:02x}"


def random_group(rng: random.Random) -> str:
    return str(IPv4Address(0xE000_0000 | rng.getrandbits(28)))


def with_fcs(frame: bytes) -> bytes:
    return frame + zlib.crc32(frame).to_bytes(4, "little")


def random_frame(rng: random.Random, size: int) -> bytes:
    """Any bytes: `size` of them, without the check sequence."""
    return rng.randbytes(size)


def udp_packet(payload: bytes, *, source_port: int = 6666, port: int = 6001, vlan: int | None = None, **changes: Any) -> Any:
    """A scapy packet to the local addresses. changes: fields of a layer by its name, as `IP={"flags": "MF"}`."""
    layers = {
        "Ether": {"src": SENDER_MAC, "dst": LOCAL_MAC},
        "IP": {"src": SENDER_IP, "dst": LOCAL_IP, "ttl": 64},
        "UDP": {"sport": source_port, "dport": port},
    }
    for layer, fields in changes.items():
        layers[layer] |= fields
    tag = Dot1Q(vlan=vlan) if vlan is not None else None
    ether = Ether(**layers["Ether"]) / tag if tag is not None else Ether(**layers["Ether"])
    return ether / IP(**layers["IP"]) / UDP(**layers["UDP"]) / payload


def frame_of(packet: Any) -> bytes:
    """The packet's bytes, filled to the shortest frame."""
    return bytes(packet).ljust(FRAME_BYTES_MIN, b"\0")


def udp_frame(payload: bytes, **fields: Any) -> bytes:
    return frame_of(udp_packet(payload, **fields))


def sent_frame(payload: bytes, destination: dict[str, Any], local_address: str = LOCAL_IP) -> bytes:
    """What the send side makes of a payload: no UDP checksum, no identification. destination: mac, address, port, source_port."""
    packet = (
        Ether(src=LOCAL_MAC, dst=destination["mac"])
        / IP(src=local_address, dst=destination["address"], ttl=64, id=0, flags="DF")
        / UDP(sport=destination["source_port"], dport=destination["port"], chksum=0)
        / payload
    )
    return bytes(packet)
