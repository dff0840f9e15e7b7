# SPDX-License-Identifier: Apache-2.0
"""Inputs of what reads frames and recordings: UDP, ARP, ICMP and NDP in Ethernet, AF_XDP, DPDK and pcap."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Inputs = Iterator[tuple[str, bytes]]


def ip_packet(
    payload: bytes, *, options: bytes = b"", fragment: int = 0x4000, protocol: int = 17, ip_bytes: int = -1, udp_bytes: int = -1
) -> bytes:
    """IPv4 and UDP, or what says so; checksums are 0, since no reader looks at them. Lengths: -1 the right one."""
    header_bytes = 20 + len(options)
    udp = struct.pack(">HHHH", 300, 400, len(payload) + 8 if udp_bytes < 0 else udp_bytes, 0) + payload
    total = header_bytes + len(udp) if ip_bytes < 0 else ip_bytes
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x40 | header_bytes // 4, 0, total, 7, fragment, 64, protocol, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"
    )
    return head + options + udp


def ipv6_packet(payload: bytes, *, headers: tuple[int, ...] = (), then: int = 17, ip_bytes: int = -1, udp_bytes: int = -1) -> bytes:
    """IPv6 with extension headers of 16 bytes each, then UDP or what `then` says it is. Lengths: -1 the right one."""
    udp = struct.pack(">HHHH", 300, 400, len(payload) + 8 if udp_bytes < 0 else udp_bytes, 0) + payload
    kinds = (*headers, then)
    body = b"".join(bytes([after, 1]) + bytes(14) for after in kinds[1:]) + udp
    head = struct.pack(">IHBB", 0x60000000, len(body) if ip_bytes < 0 else ip_bytes, kinds[0], 64)
    return head + b"\x20\1\x0d\xb8" + bytes(11) + b"\1" + b"\x20\1\x0d\xb8" + bytes(11) + b"\2" + body


def ipv6_packets() -> Inputs:
    """Every kind of packet that a reader of UDP over IPv6 tells from others."""
    hello = ipv6_packet(b"hello")
    yield "ipv6-udp", hello
    yield "ipv6-udp-odd", ipv6_packet(bytes(range(33)))
    yield "ipv6-headers", ipv6_packet(b"hello", headers=(0, 43, 60))
    yield "ipv6-header-cut", ipv6_packet(b"hello", headers=(0,))[:44]
    yield "ipv6-header-longer", ipv6_packet(b"hello", headers=(0, 60))[:54]
    yield "ipv6-fragment", ipv6_packet(b"hello", then=44)
    yield "ipv6-tcp", ipv6_packet(b"hello", then=6)
    yield "ipv6-cut", hello[:30]
    yield "ipv6-udp-cut", ipv6_packet(b"", ip_bytes=4)[:44]
    yield "ipv6-longer", ipv6_packet(b"hello", ip_bytes=40)
    yield "ipv6-no-length", ipv6_packet(b"hello", ip_bytes=0)
    yield "ipv6-udp-shorter", ipv6_packet(b"hello", udp_bytes=10)
    yield "ipv6-udp-longer", ipv6_packet(b"hello", udp_bytes=14)
    yield "ipv6-udp-too-short", ipv6_packet(b"hello", udp_bytes=7)


def frame(packet: bytes, *, tags: bytes = b"", kind: int = 0x0800) -> bytes:
    """An Ethernet frame around a packet."""
    return b"\x02\0\0\0\0\2\x02\0\0\0\0\1" + tags + struct.pack(">H", kind) + packet


def frames() -> Inputs:
    """Every kind of frame that a reader of UDP tells from others."""
    hello, tag = ip_packet(b"hello, world"), b"\x81\0\0\5"
    yield "udp", frame(hello)
    yield "udp-empty", frame(ip_packet(b""))
    yield "udp-odd", frame(ip_packet(bytes(range(33))))
    yield "padded", frame(ip_packet(b"a")) + bytes(17)
    yield "tag", frame(hello, tags=tag)
    yield "two-tags", frame(hello, tags=b"\x88\xa8\0\7" + tag)
    yield "old-tag", frame(hello, tags=b"\x91\0\0\7")
    yield "tag-cut", frame(b"", tags=tag)[:15]
    yield "many-tags", frame(hello, tags=tag * 30)
    yield "options", frame(ip_packet(b"hello", options=bytes([1] * 40)))
    yield "options-tags", frame(ip_packet(b"hello", options=bytes([1] * 40)), tags=tag * 2)
    yield "fragment", frame(ip_packet(b"hello", fragment=0x2000))
    yield "later-fragment", frame(ip_packet(b"hello", fragment=0x0010))
    yield "tcp", frame(ip_packet(b"hello", protocol=6))
    yield "ipv6", frame(b"\x60" + bytes(60), kind=0x86DD)
    yield "no-ipv4", frame(b"\x60" + hello[1:])
    yield "short-header", frame(b"\x44" + hello[1:])
    yield "ip-cut", frame(hello[:19])
    yield "udp-cut", frame(hello[:26])
    yield "payload-cut", frame(hello[:35])
    yield "no-ip-length", frame(ip_packet(b"hello", ip_bytes=0))
    yield "ip-longer", frame(ip_packet(b"hello", ip_bytes=40) + bytes(7))
    yield "ip-shorter", frame(ip_packet(b"hello", ip_bytes=30))
    yield "udp-shorter", frame(ip_packet(b"hello", udp_bytes=10))
    yield "udp-too-short", frame(ip_packet(b"hello", udp_bytes=7))
    yield "tiny", b"\x02\0\0"
    yield "checksum-zero", frame(ip_packet(struct.pack(">H", 0xFFFF - 0x174B)))


def udp_frames() -> Inputs:
    """Frames, and packets without one: what a recording of another link has."""
    yield from frames()
    yield from ipv6_packets()
    yield "ipv4-packet", ip_packet(b"hello")


def arp(kind: int, *, length: int = 4) -> bytes:
    """A request (1), a reply (2), or what is neither."""
    body = struct.pack(">HHBBH", 1, 0x0800, 6, length, kind) + b"\x02\0\0\0\0\1\x0a\0\0\1" + bytes(6) + b"\x0a\0\0\2"
    return (b"\xff" * 6 + b"\x02\0\0\0\0\1" + struct.pack(">H", 0x0806) + body).ljust(60, b"\0")


def echo(checksum: int) -> bytes:
    """A ping with such a checksum."""
    return frame(ip_packet(b"", protocol=1, ip_bytes=52)[:20] + struct.pack(">BBHHH", 8, 0, checksum, 1, 1) + bytes(range(24)))


def icmpv6(
    kind: int,
    body: bytes,
    *,
    hops: int = 255,
    source: bytes = bytes(15) + b"\1",
    destination: bytes = bytes(15) + b"\2",
    wrong: int = 0,
) -> bytes:
    """A frame of ICMPv6, with a right checksum unless `wrong` is added to it."""
    message = bytes([kind, 0, 0, 0]) + body
    words = struct.pack(">II", len(message), 58) + source + destination + message + bytes(len(message) % 2)
    total = sum(struct.unpack(f">{len(words) // 2}H", words))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    checksum = (0xFFFF - total + wrong) & 0xFFFF
    head = struct.pack(">IHBB", 0x60000000, len(message), 58, hops) + source + destination
    return frame(head + message[:2] + struct.pack(">H", checksum) + message[4:], kind=0x86DD)


def ndp_frames() -> Inputs:
    """Neighbour discovery: what is valid, and each way in which it is not."""
    own, group = bytes(15) + b"\2", b"\xff\2" + bytes(9) + b"\1\xff\0\0\2"
    mac = b"\2\0\0\0\0\1"
    ask, tell = bytes(4) + own, b"\x60\0\0\0" + own
    yield "ask", icmpv6(135, ask + b"\1\1" + mac, destination=group)
    yield "ask-no-mac", icmpv6(135, ask)
    yield "ask-nobody", icmpv6(135, ask, source=bytes(16), destination=group)
    yield "ask-nobody-mac", icmpv6(135, ask + b"\1\1" + mac, source=bytes(16), destination=group)
    yield "ask-nobody-elsewhere", icmpv6(135, ask, source=bytes(16))
    yield "ask-group", icmpv6(135, bytes(4) + group)
    yield "ask-other-options", icmpv6(135, ask + b"\5\2" + bytes(14) + b"\1\1" + mac)
    yield "ask-option-none", icmpv6(135, ask + b"\1\0" + mac)
    yield "ask-option-long", icmpv6(135, ask + b"\1\2" + mac)
    yield "ask-option-cut", icmpv6(135, ask + b"\1\1" + mac[:3])
    yield "ask-routed", icmpv6(135, ask, hops=254)
    yield "ask-wrong", icmpv6(135, ask, wrong=1)
    yield "ask-cut", icmpv6(135, ask)[:-1]
    yield "tell", icmpv6(136, tell + b"\2\1" + mac)
    yield "tell-all", icmpv6(136, b"\x20" + tell[1:] + b"\2\1" + mac, destination=b"\xff\2" + bytes(13) + b"\1")
    yield "tell-all-asked", icmpv6(136, tell, destination=b"\xff\2" + bytes(13) + b"\1")
    yield "tell-of-group", icmpv6(136, tell + b"\2\1" + mac, source=b"\xff\2" + bytes(13) + b"\1")
    yield "echo6-of-group", icmpv6(128, bytes(4) + b"hello", hops=64, source=b"\xff\2" + bytes(13) + b"\1")
    yield "router", icmpv6(134, bytes(20))
    yield "echo6", icmpv6(128, bytes(4) + b"hello", hops=64)
    yield "echo6-reply", icmpv6(129, bytes(4) + b"hello", hops=64)


def dpdk_frames() -> Inputs:
    """The same in pieces, and what a station understands besides."""
    for name, bytes_ in frames():
        yield name, b"\0\0\0\0\0\1" + bytes_
    for name, packet in ipv6_packets():
        yield name, b"\0\0\0\0\0\1" + frame(packet, kind=0x86DD)
    for name, bytes_ in ndp_frames():
        yield name, b"\0\0\0\0\0\1" + bytes_
    yield (
        "ipv6-fragment-later",
        b"\0\0\0\0\0\1" + frame(ipv6_packet(b"", headers=(44,), ip_bytes=24).replace(b"\x11\1\0\0", b"\x11\0\1\0"), kind=0x86DD),
    )
    whole6 = frame(ipv6_packet(bytes(range(100))), kind=0x86DD)
    for name, sizes in (("two", (1, 86)), ("three", (2, 60, 30)), ("early", (1, 20))):
        yield f"pieces-ipv6-{name}", bytes(sizes).ljust(5, b"\0") + b"\1" + whole6
    yield "raw-ipv6", b"\0\0\0\0\0\0" + ipv6_packet(b"hello")
    whole = frame(ip_packet(bytes(range(100))))
    options = frame(ip_packet(bytes(range(100)), options=bytes([1] * 40)), tags=b"\x81\0\0\5")
    for name, sizes in (
        ("two", (1, 66)),
        ("three", (2, 50, 30)),
        ("five", (4, 50, 0, 20, 60)),
        ("early", (1, 20)),
        ("no-head", (1, 0)),
    ):
        cut = bytes(sizes).ljust(5, b"\0") + b"\1"
        yield f"pieces-{name}", cut + whole
        yield f"pieces-{name}-options", cut + options
    yield "split-short", b"\1\x42\0\0\0\1" + frame(ip_packet(bytes(10)))
    yield "split-headers-only", b"\1\x2a\0\0\0\1" + frame(ip_packet(bytes(10)))
    yield "raw-ip", b"\0\0\0\0\0\0" + ip_packet(b"hello")
    yield "raw-ip-pieces", b"\1\x30\0\0\0\0" + ip_packet(bytes(60))
    for name, bytes_ in (
        ("request", arp(1)),
        ("reply", arp(2)),
        ("other", arp(3)),
        ("ipv6", arp(1, length=16)),
        ("cut", arp(1)[:41]),
    ):
        yield f"arp-{name}", b"\0\0\0\0\0\1" + bytes_
    for name, checksum in (("echo", 0x1234), ("echo-carry", 0xF900)):
        yield name, b"\0\0\0\0\0\1" + echo(checksum)


def xdp_frames() -> Inputs:
    """The same in frames of the kernel's."""
    for name, bytes_ in frames():
        yield name, bytes(5) + bytes_
    for name, packet in ipv6_packets():
        yield name, bytes(5) + frame(packet, kind=0x86DD)
    whole = frame(ip_packet(bytes(range(200))))
    for name, sizes in (("two", (1, 66)), ("three", (2, 50, 30)), ("five", (4, 50, 0, 20, 60)), ("early", (1, 20))):
        yield f"pieces-{name}", bytes(sizes).ljust(5, b"\0") + whole


def pcap() -> Inputs:
    """Files of each byte order, unit of time and kind of link, with each kind of frame; and files that end too early."""
    everything = [bytes_ for _, bytes_ in frames()]
    hello = ip_packet(b"hello")
    cooked = struct.pack(">HHH8sH", 0, 1, 6, bytes(8), 0x0800) + hello
    cooked2 = struct.pack(">HHIHBB8s", 0x0800, 0, 1, 1, 0, 6, bytes(8)) + hello

    def file(order: str, magic: int, kind: int, records: list[bytes]) -> bytes:
        head = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, kind)
        return head + b"".join(struct.pack(order + "IIII", 1, 2, len(one), len(one)) + one for one in records)

    for name, order, magic in (
        ("le-us", "<", 0xA1B2C3D4),
        ("be-us", ">", 0xA1B2C3D4),
        ("le-ns", "<", 0xA1B23C4D),
        ("be-ns", ">", 0xA1B23C4D),
    ):
        yield f"made-{name}", file(order, magic, 1, everything)
    yield "made-cooked", file("<", 0xA1B2C3D4, 113, [cooked, cooked[:10]])
    yield "made-cooked2", file("<", 0xA1B2C3D4, 276, [cooked2, cooked2[:10]])
    yield "made-raw", file("<", 0xA1B2C3D4, 101, [hello, b""])
    yield "made-other-link", file("<", 0xA1B2C3D4, 105, [hello])
    yield "made-pcapng", b"\x0a\x0d\x0d\x0a" + bytes(40)
    yield "made-other", b"\1\2\3\4" + bytes(40)
    yield "made-short", bytes(20)
    yield "made-cut", file("<", 0xA1B2C3D4, 1, everything[:2])[:-3]
    yield "made-cut-head", file("<", 0xA1B2C3D4, 1, everything[:2]) + bytes(9)
    yield "made-long-record", file("<", 0xA1B2C3D4, 1, []) + struct.pack("<IIII", 0, 0, 1 << 30, 0)


# --- packets by lanes ---
