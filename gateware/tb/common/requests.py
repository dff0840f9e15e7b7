# SPDX-License-Identifier: Apache-2.0
"""ARP and echo requests to the station as scapy makes them, and the answer to each."""

from typing import Any

from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Dot1Q, Ether

from common.frames import LOCAL_IP, LOCAL_MAC, SENDER_IP, SENDER_MAC

BROADCAST = "ff:ff:ff:ff:ff:ff"


def arp_request(vlan: int | None = None, **fields: Any) -> Any:
    """fields: of ARP."""
    arp = ARP(**({"op": 1, "hwsrc": SENDER_MAC, "psrc": SENDER_IP, "hwdst": "00:00:00:00:00:00", "pdst": LOCAL_IP} | fields))
    ether = Ether(src=SENDER_MAC, dst=BROADCAST)
    return ether / arp if vlan is None else ether / Dot1Q(vlan=vlan) / arp


def echo_request(data: bytes, vlan: int | None = None, **changes: Any) -> Any:
    """changes: fields of a layer by its name, as `IP={"ttl": 3}`."""
    layers: dict[str, dict[str, Any]] = {
        "Ether": {"src": SENDER_MAC, "dst": LOCAL_MAC},
        "IP": {"src": SENDER_IP, "dst": LOCAL_IP},
        "ICMP": {"type": 8},
    }
    for layer, fields in changes.items():
        layers[layer] |= fields
    ether = Ether(**layers["Ether"])
    return (ether if vlan is None else ether / Dot1Q(vlan=vlan)) / IP(**layers["IP"]) / ICMP(**layers["ICMP"]) / data


def answer_to(request: Any) -> bytes:
    """The frame that answers it, without filling and check sequence. A tag is not answered with a tag."""
    ether = Ether(src=LOCAL_MAC, dst=request[Ether].src)
    if ARP in request:
        asked = request[ARP]
        return bytes(ether / ARP(op=2, hwsrc=LOCAL_MAC, psrc=LOCAL_IP, hwdst=asked.hwsrc, pdst=asked.psrc))
    packet = IP(bytes(request[IP]))
    packet.src, packet.dst, packet.ttl = packet.dst, packet.src, 64
    packet[ICMP].type = 0
    del packet.chksum, packet[ICMP].chksum
    answer = bytearray(bytes(ether / packet))
    if answer[36:38] == b"\0\0":  # both are zero in this sum; the answer has the one that comes of the request's
        answer[36:38] = b"\xff\xff"
    return bytes(answer)


def refused_requests(size: int) -> dict[str, Any]:
    """For each drop counter of replier but drop_busy a request that it drops for that; size: data of those that carry some [B]."""
    return {
        "drop_arp_malformed": arp_request(hwlen=8),
        "drop_arp_other": arp_request(pdst="10.62.0.99"),
        "drop_icmp_length": echo_request(b"", IP={"len": 27}),
        "drop_icmp_checksum": echo_request(b"x" * size, ICMP={"chksum": 1}),
        "drop_icmp_other": echo_request(b"x" * size, ICMP={"type": 0}),
        "drop_echo_large": echo_request(bytes(1473)),
    }


REPLIER_DROPS = frozenset(refused_requests(0))
