#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs that fuzz targets begin with and that need no luck: corpus/TARGET/NAME.bin, the same bytes each time.

From test vectors for the packet formats, from the declarations that are shipped, by hand here for all others. What the fuzzers found besides lies in
the same folders, named by its SHA-1. Runs where the package does: .venv/bin/python fuzz/make_corpus.py
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterator
from pathlib import Path

from format_corpus import (
    MGP,
    changed_formats,
    declarations,
    made_packets,
    packet_of,
    padded_of_7_bits,
    refused_packets,
    shipped,
    tree,
)
from nanet.format.make import Faults

FUZZ = Path(__file__).resolve().parent
VECTORS = FUZZ.parent / "tests" / "vectors"
OF_VECTORS = {
    "fuzz_mgp": ("wire_mgp_padded", "wire_mgp_packed", "wire_mgp_marker"),
    "fuzz_mtp": ("wire_mtp",),
    "fuzz_m2egp": ("wire_m2egp",),
    "fuzz_mep": ("wire_mep",),
}
Inputs = Iterator[tuple[str, bytes]]


def payloads(path: Path) -> dict[str, bytes]:
    """Payload of each vector by name; the file format is told at the head of each file."""
    found: dict[str, bytearray] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            name = line[1 : line.index("]")]
            found[name] = bytearray()
        elif line.startswith("hex = "):
            found[name] += bytes.fromhex(line[6:])
        elif line.startswith("zeros = "):
            found[name] += bytes(int(line[8:]))
    return {key: bytes(value) for key, value in found.items()}


# --- frames ---


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


def packet_check() -> Inputs:
    """Each vector, for 1, 4, 7 and 32 lanes; and lengths that checksums are summed in other pieces for."""
    for number, file in enumerate(("wire_mgp_padded", "wire_mgp_packed", "wire_mgp_marker", "wire_m2egp")):
        for name, payload in payloads(VECTORS / f"{file}.txt").items():
            if len(payload) <= 1500:
                yield f"{file}-{name}", bytes([number]) + payload
    for size in (0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 66):
        yield f"bytes-{size}", b"\2" + bytes(range(size))
    yield "bytes-5000", b"\3" + bytes(i * 7 % 251 for i in range(5000))
    for name, format_, events, size in (
        ("padded", 1, 16, 1168),
        ("packed", 2, 3, 40),
        ("merged", 3, 3, 40),
        ("other", 9, 1, 40),
        ("flags", 0xC1, 1, 1168),
    ):
        yield f"no-hits-{name}", b"\1" + bytes([0x10, 0, format_, events]) + bytes(size - 4)
    yield "too-many-events", b"\1" + bytes([0x10, 0, 1, 200]) + bytes(1164)
    yield "no-such-board", b"\1" + bytes([0x10, 200, 2, 1]) + bytes(36)
    yield "too-many-hits", b"\1" + bytes([0x10, 0, 1, 1]) + bytes(12 + 5) + b"\xff" + bytes(1146)
    yield "too-many-hits-merged", b"\1" + bytes([0x10, 0, 3, 1]) + bytes(12 + 5) + b"\xff" + bytes(600)


# --- remote memory ---


def rdma_messages() -> Inputs:
    """Each message right, and each number of it wrong."""
    name, secrets = b"region".ljust(64, b"\0"), bytes(range(32))

    def head(magic: bytes, *, version: int = 2, number: int = 0) -> bytes:
        return magic + struct.pack("<HH", version, number)

    def answer(address: int, size: int, key_bytes: int) -> bytes:
        return struct.pack("<QQHHI", address, size, 3, 0, key_bytes)

    right = {
        "greeting": head(b"NRDG") + secrets,
        "hello": head(b"NRDH", number=6) + secrets + secrets + name,
        "welcome": head(b"NRDW") + secrets,
        "open": head(b"NRDO") + b"an address",
        "fetch": head(b"NRDF") + struct.pack("<QQ", 16, 3),
        "before": head(b"NRDB") + struct.pack("<Q", 9),
        "answer": head(b"NRDA") + answer(1 << 40, 4096, 5) + b"an address" + b"a key",
    }
    for kind, message in right.items():
        yield kind, message
        yield f"{kind}-magic", b"X" + message[1:]
        yield f"{kind}-short", message[:-1]
        yield f"{kind}-long", message + b"\0"
        yield f"{kind}-version", message[:4] + b"\x07\0" + message[6:]
    for name_bytes in (0, 64, 65):
        yield f"hello-name-{name_bytes}", head(b"NRDH", number=name_bytes) + secrets + secrets + name
    yield "open-empty", head(b"NRDO")
    yield "open-longest", head(b"NRDO") + bytes(16384)
    yield "open-too-long", head(b"NRDO") + bytes(16385)
    yield "answer-refused", head(b"NRDA", number=1) + answer(0, 0, 0)
    yield "answer-no-address", head(b"NRDA") + answer(0, 8, 5) + b"a key"
    yield "answer-wraps", head(b"NRDA") + answer(2**64 - 8, 9, 0) + b"x"
    yield "answer-ends-last", head(b"NRDA") + answer(2**64 - 8, 7, 0) + b"x"
    yield "answer-key-longer-than-it", head(b"NRDA") + answer(0, 8, 9) + b"a key"
    yield "answer-key-too-long", head(b"NRDA") + answer(0, 8, 4001) + bytes(4002)


def notify_ring() -> Inputs:
    """A ring that is used as it should, and one whose writer does what it likes. Operations are those of the target: low 3 bits, 5 more."""
    give, take, anywhere, notice, ahead, counter, right = range(7)
    words = struct.pack("<Q", 0xFFFF_FFFF_FFFF_FFFF)
    yield "orderly", bytes([4, 100] + [right, 50, right, 100, take, take, give, give] * 5)
    yield "turned-round", bytes([4, 100] + [right, 1, right, 2, right, 3, take, take, take, give | 2 << 3, give | 1 << 3, give] * 4)
    yield "full", bytes([3, 64] + [right, 9] * 3 + [take] * 5 + [give] * 3 + [take] * 3)
    yield "overrun", bytes([3, 64] + [right, 9] * 5 + [take] * 5 + [give] * 3 + [take] * 3)
    yield "too-long", bytes([2, 10] + [right, 200, take, right, 5, take, give] * 3)
    yield "empty-payloads", bytes([2, 1] + [right, 0, take, give] * 4)
    yield (
        "anywhere",
        bytes([5, 20]) + b"".join(bytes([anywhere | k << 3]) + words + bytes([take, right, 7, take, give]) for k in range(8)),
    )
    yield (
        "notices",
        bytes([5, 20])
        + b"".join(bytes([notice | k << 3]) + struct.pack("<Q", (k + 1) << 16 | 9) + bytes([take]) for k in range(5)),
    )
    yield "ahead", bytes([5, 20, ahead | 3 << 3, right, 7, take, ahead, right, 7, take, give])
    yield "counter", bytes([5, 20, right, 7, take, counter]) + words + bytes([give, right, 7, take])
    yield "no-slots", bytes([0, 20, 1, 2, 3])
    yield "no-bytes", bytes([17 * 3 + 4, 0, 1])
    head = struct.pack("<QIIII", 0x474E49524E41554E, 1, 4, 100, 128)
    yield "head", struct.pack("<Q", 192 + 4 * 128) + head
    yield "head-larger-than-region", struct.pack("<Q", 192 + 4 * 128 - 1) + head
    yield "head-slots", struct.pack("<Q", 2**63) + head[:12] + struct.pack("<III", 1 << 21, 100, 128)
    yield "head-bytes", struct.pack("<Q", 2**63) + head[:16] + struct.pack("<II", 65536, 65536)
    yield "head-slot-bytes", struct.pack("<Q", 2**63) + head[:20] + struct.pack("<I", 64)
    yield "head-version", struct.pack("<Q", 2**63) + head[:8] + struct.pack("<I", 2) + head[12:]


# --- event building and triggers ---


def merger() -> Inputs:
    """Memories that fill and forget: operation 9 is a run of 24 events, of one source or (bit 7) complete."""
    for name, run in (("complete", 0x89), ("one-source", 0x09), ("both", 0)):
        runs = bytes([run] * 55) if run else bytes([0x89] * 25 + [0x09] * 30)
        for sources in (1, 2):
            yield f"forgets-{name}-{sources}", bytes([sources - 1, 10, 3, 20]) + runs + bytes([0, 0, 5, 0, 1, 7])
            yield (
                f"forgets-{name}-{sources}-late",
                bytes([sources - 1, 10, 5, 20]) + bytes([12, 255]) + runs + bytes([10, 0, 0, 9, 9, 0, 3, 5]),
            )
    yield "forgets-jumps", bytes([1, 10, 3, 20]) + bytes([10, 3, 9, 9, 10, 2, 8, 9, 0x89] * 8)


def part_table() -> Inputs:
    """Tables whose ring has no room left: runs of complete events, released but never expired."""
    for name, shape, turns in (("unlisted", 0, 14), ("unlisted-expires", 3, 15)):
        yield name, bytes([0, 10, shape, 20]) + bytes([0x89, 15] * turns + [0, 0, 1, 13, 15, 9, 14, 15])
        yield f"{name}-open", bytes([1, 10, shape, 20]) + bytes([0x89, 15] * turns + [0x09, 0, 0, 1, 13, 15, 0x89, 15])


def assembler() -> Inputs:
    """Any packets, with each choice of units open, buffers, what becomes of incomplete units, and how places are counted."""
    for number in range(40):
        blocks = [hashlib.sha256(bytes([number, block])).digest() for block in range(63)]
        yield f"any-{number}", bytes([number % 3, number // 2 % 4, number // 4, number % 2]) + b"".join(blocks)
    for name, declared in declarations():
        if "unit" not in declared:
            continue
        # Of units of a few packets, since a buffer of the target has 4096 bytes.
        made = [*made_packets(name, 16, 120, Faults(0.1, 0.1, 0.1, 0.05))]
        merged = (b"\1\0\1", b"\2\0\1", b"\5\0\1") if name in ("ejfat", "vtp") else ()
        for merging in (b"\0", *merged):
            yield f"{name}-{merging[0]}", bytes([0, 1, 3, 2]) + tree(declared) + merging + b"".join(made + made[::-1])


def formats() -> Inputs:
    """Any declarations, of words that fit and words that do not, and packets for them; those that are shipped, and some with what they lack."""
    for number in range(64):
        blocks = b"".join(hashlib.sha256(b"format" + bytes([number, block])).digest() for block in range(10))
        yield f"any-{number}", b"\0" + (blocks if number % 2 == 0 else bytes(one % 24 if one % 3 else 3 for one in blocks))
    for name, declared in declarations():
        made = [*made_packets(name, 6, 64, Faults()), *made_packets(name, 6, 64, Faults(damage=1.0))]
        yield name, b"\1" + tree(declared) + b"".join(made) + packet_of(b"") + packet_of(bytes(range(64)))
    for name, whole in refused_packets():
        yield (
            f"refused-{name}",
            b"\1" + tree(shipped(name.split("-")[0].replace("spead", "spead-64-48"))) + packet_of(whole),
        )
    for file in OF_VECTORS["fuzz_mgp"]:
        every = b"".join(packet_of(one) for one in payloads(VECTORS / f"{file}.txt").values())
        yield file, b"\1" + tree(shipped(MGP)) + every
        yield f"{file}-of-7-bits", b"\1" + tree(padded_of_7_bits()) + every
    for name, declared in changed_formats():
        packets_of = made_packets(name.split(" ")[0], 3, 64, Faults())
        yield name.replace(" ", "-"), b"\1" + tree(declared) + b"".join(packets_of)


def l0tp() -> Inputs:
    """Packets of sources that are none of the inputs', and taken in parts."""
    config = bytes([2, 0, 0, 10, 10, 10])
    empty = struct.pack("<IHBB", 0, 8, 0, 200)
    for source in (0, 200):
        for layout in ("<IHBB", "<HHBBH"):
            yield (
                f"source-{source}-{len(layout)}",
                config + bytes([8 << 3]) + struct.pack(layout, 0, 8, 0, source, *([0] if len(layout) == 6 else [])),
            )
    yield "unknown", config + bytes([8 << 3]) + empty
    yield "in-parts", config + bytes([0xFA, 0x0C, 1, 2, 3, 4, 5, 6, 1, 0xFA, 0x10, 0, 1, 2, 3, 4])


def km3_detector() -> Inputs:
    """A file of each version, and what is refused of one."""
    pm = "1 1.5 2.5 100.25 0 0 -1 10.5"
    for version in range(1, 6):
        status = " 0" if version >= 3 else ""
        head = "7 1\n" if version == 1 else f"7 v{version}\n0.5 9999999999.0\nUTM WGS84 33N 587600.0 4016800.0 -3450.0\n1\n"
        module = {4: "11 1 2 1 2 3 1 0 0 0 0.5 2", 5: "11 1 2 1 2 3 1 0 0 0 0.5 0 2"}.get(version, "11 1 2 2")
        yield f"v{version}", f"# a comment\n{head}{module}\n {pm}{status}\n\n {pm.replace('1', '2', 1)}{status}\r\n".encode()
    for name, text in (
        ("empty", ""), ("version", "7 v9\n"), ("cut", "7 1\n11 1 2 2\n 1 1.5"), ("modules", "7 99999999999\n"), ("pms", "7 1\n11 1 2 300\n"),
        ("number", "7 1\n11 1 2 1\n 1 nan inf 1e999 0 0 0 0\n"), ("twice", f"7 2\n11 1 1 1\n {pm}\n11 1 2 1\n {pm}\n"),
    ):  # fmt: skip
        yield f"refused-{name}", text.encode()


def km3_hits() -> Inputs:
    """Records of both kinds, good ones and others, and light of a track, which is an event."""

    def hit(pm: int, time_ns: int, charge: int = 10) -> bytes:
        return struct.pack(">BiB", pm, time_ns, charge)

    yield "short", b"".join(hit(pm, 20_000 * pm + 100_000) for pm in range(8)) + b"\1\2"
    yield "times", hit(0, -(2**31)) + hit(1, 2**31 - 1) + hit(2, -100) + hit(3, 1_000_100)
    yield "event", b"".join(hit(pm, 500_000 + 4 * pm, 90) for pm in range(6))
    yield "no-room", b"".join(hit(k % 6, 1_000 * k, 40) for k in range(100))
    yield (
        "sampled",
        hit(0, 100) + b"\3\0abc" + hit(5, 200) + b"\0\0" + hit(6, 1) + b"\0\0" + hit(1, 1) + b"\0\1" + hit(1, 1) + b"\xff\0",
    )


# --- Python's readers ---


def message(value: object) -> bytes:
    """A frame of nanet.channel."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return len(data).to_bytes(8, "little") + data


def channel() -> Inputs:
    """By the target's number of what is tried: JSON 0, frames 1, objects 2, introduce 3, door 4; 255 a door that is full."""
    deep, good = "[" * 17 + "]" * 17, '{"a": [1, 2.5, null, true, "\u00e9\\" ["]}'
    for name, text in (
        ("good", good),
        ("deep", deep),
        ("deep-enough", deep[1:-1]),
        ("none", "{"),
        ("number", "5"),
        ("very-deep", "[" * 1500),
    ):
        yield f"json-{name}", b"\0" + text.encode()
        yield f"object-{name}", b"\2" + text.encode()
    frames_ = message(b"one") + message(b"") + message(b"three" * 20)
    yield "frames", b"\1" + bytes(8) + frames_
    yield "frames-pieces", b"\1" + bytes([0, 1, 2, 3, 4, 5, 6, 7]) + frames_
    yield "frames-cut", b"\1" + bytes([200] * 8) + frames_[:-4]
    yield "frames-too-long", b"\1" + bytes([200] * 8) + message(b"one") + (301).to_bytes(8, "little")
    challenge = "c4" * 32
    greeting = {"nanet": "nanet fuzz", "version": 1, "challenge": challenge}
    yield "introduce-good", b"\3\3"
    yield "introduce-silent", b"\3\4"
    yield "introduce-gone", b"\3\0"
    yield "introduce-other", b"\3\0" + message({"nanet": "other"})
    yield "introduce-version", b"\3\0" + message(greeting | {"version": 2})
    yield "introduce-no-object", b"\3\0" + message([1])
    yield "introduce-refused", b"\3\1" + json.dumps({"error": "x" * 300}).encode()
    yield "introduce-wrong", b"\3\1" + json.dumps({"proof": "\u00e9"}).encode()
    for name, how in (("good", 1), ("refuse", 17), ("version", 3), ("proof", 5), ("silent", 8), ("goes-on", 9)):
        yield f"door-{name}", bytes([4, how]) + b'{"rank": 1}'
    yield "door-about", b"\4\1[1]"
    yield "door-about-none", b"\4\1{"
    yield "door-part", b"\4\x08" + message(b"{}")[:5]
    yield "door-gone", b"\4\0"
    yield "door-no-object", b"\4\0" + message(b"[]")
    yield "door-too-long", b"\4\0" + (4097).to_bytes(8, "little")
    yield "door-full", b"\xff\2\0"
    yield "door-full-gone", b"\xff\0\1"


def rendezvous() -> Inputs:
    """By the target's number: place 0, environment 1, file 2, rank 0 3, rank 1 4; 255 a run of one."""
    for name, text in (
        ("port", "node1:7700"),
        ("ipv6", "[::1]:7"),
        ("path", "./meet"),
        ("no-port", "node1:"),
        ("large", "h:65536"),
        ("none", ""),
    ):
        yield f"place-{name}", b"\0" + text.encode()
    for name, text in (
        ("own", "1\x002"),
        ("mpi", "-\0-\x000\x004"),
        ("slurm", "\0".join("------") + "\x003\x003\x002\x004"),
        ("bad", "2\x002"),
        ("none", "-"),
    ):
        yield f"environment-{name}", b"\1" + text.encode()
    for name, text in (("good", b"127.0.0.1 700\n"), ("port", b"h 0\n"), ("word", b"h\n"), ("bytes", b"\xff \xff")):
        yield f"file-{name}", b"\2" + text
    mine, null = message(b"theirs"), message(b"null")
    for name, how, text in (
        ("good", 0, mine + null * 2), ("file", 4, mine + null * 2), ("all", 128, message(b"5") + null * 2), ("all-no-json", 128, message(b"{")),
        ("gone", 0, mine), ("gone-before", 0, b""), ("part", 8, mine[:11]), ("silent", 8, b""), ("strangers", 48, mine + null * 2),
        ("nobody", 64 + 48, b"x"), ("too-large", 0, (2**40).to_bytes(8, "little")), ("framed", 2, b"theirs"),
    ):  # fmt: skip
        yield f"rank0-{name}", bytes([3, how]) + text
    for name, about in (
        ("rank", '{"rank": 2, "count": 2}'),
        ("count", '{"rank": 1, "count": 3}'),
        ("text", '{"rank": "1", "count": 2}'),
        ("none", "{}"),
    ):
        yield f"rank0-about-{name}", b"\3\1" + about.encode() + b"\n"
    yield "rank0-twice", b"\3\x10" + twice()
    every = message(b"[1, 2]")
    for name, how, text in (
        ("good", 0, every * 2), ("file", 20, every * 2), ("no-file", 4, b""), ("gone", 0, b""), ("silent", 8, b""), ("part", 8, every[:9]),
        ("other", 1, message({"nanet": "other"})), ("nobody", 1, b""), ("refused", 1, message({"nanet": "nanet stencil", "version": 2})), ("no-json", 0, every + message(b"{")),
    ):  # fmt: skip
        yield f"rank1-{name}", bytes([4, how]) + text
    yield "alone", b"\xff"


def twice() -> bytes:
    """Who is rank 1 already, and knows the secret."""
    challenge, about = "c4" * 32, '{"rank": 1, "count": 2}'
    spoken = json.dumps([1, "connects", "nanet stencil", challenge, challenge, about]).encode()
    proof = hmac.new(b"secret", spoken, hashlib.sha256).hexdigest()
    return message({"version": 1, "challenge": challenge, "about": about, "proof": proof})


def control() -> Inputs:
    """Sessions of the two ends of `nanet rdma bench`."""
    objects = message({"status": "ok"}) + message({})
    for name, how, text in (
        ("good", 5, objects), ("closes", 1, objects), ("gone", 1 | 4 | 16, objects), ("silent", 5, b""), ("no-object", 5, message(b"[]")), ("one", 7, b'{"a": 1}'),
        ("no-json", 5, message(b"{")), ("too-long", 5, (4097).to_bytes(8, "little")), ("nobody", 8, b""), ("greets-wrongly", 0, message(b"{}")),
        ("refuses", 2, b'{"error": "no"}'), ("wrong-proof", 2, b'{"proof": "0"}'), ("says-nothing", 4, b""), ("more", 5, objects * 3),
        ("closes-after-three", 1, objects + message({})),
    ):  # fmt: skip
        yield name, bytes([how]) + text


def pages() -> Inputs:
    """Requests in pieces, by clients of every temper: closes 1, is gone 2, talks on 4; too many of them 128."""
    get = b"GET / HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n"
    for name, how, text in (
        ("get", 0, get), ("get-closes", 1, get), ("get-gone", 2, get), ("get-talks", 4, get), ("head", 0, get.replace(b"GET", b"HEAD")), ("post", 0, get.replace(b"GET", b"POST")),
        ("large", 0, get.replace(b"/ ", b"/large?x=1 ")), ("large-gone", 2, get.replace(b"/ ", b"/large ")), ("broken", 0, get.replace(b"/ ", b"/broken ")),
        ("missing", 0, get.replace(b"/ ", b"/other ")), ("part", 0, get[:-4]), ("part-closes", 1, get[:-4]), ("old", 0, get.replace(b"HTTP/1.1", b"HTTP/2")),
        ("words", 0, b"GET /\n\n"), ("fields", 0, get[:16] + b"a: b\r\n" * 110 + b"\r\n"), ("nothing", 0, b""), ("gone", 2, b""), ("too-long", 0, b"x" * 8300),
        ("many", 128, b""), ("too-many", 130, b""),
    ):  # fmt: skip
        yield name, bytes([60, 60, 60, 60, 60, 60, 60, 60, how]) + text
        yield f"{name}-pieces", bytes([1, 0, 2, 0, 1, 0, 3, 60, how]) + text


def yaml() -> Inputs:
    """A configuration, and what YAML can hold besides."""
    for path in sorted((FUZZ.parent / "examples").glob("*.yaml"))[:3]:
        if path.stat().st_size < 4000:
            yield f"example-{path.stem}", path.read_bytes()
    texts = {
        "core": "a: [1, 0o17, 0x1F, -3, +4, 1.5, .5, 1e3, -.inf, .nan, true, False, null, ~, '', \"x\", no, 010, 1:4]\nb: {c: |\n  text\n}\n",
        "block": "a:\n  - b: >\n      folded\n      text\n  - |\n    lines\n- c\n",
        "merge": "a: &a {b: 1, c: 2}\nd:\n  <<: *a\n  c: 3\ne:\n  <<: [*a, *a]\n",
        "merge-value": "a: <<\n",
        "alias-inside": "a: &a [*a]\n",
        "alias-bomb": "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\n",
        "values": "a: &a [" + "x," * 300 + "]\nb: [" + "*a," * 80 + "]\n",
        "deep": "[" * 60 + "]" * 60,
        "twice": "a: 1\na: 2\n",
        "key-number": "1: a\n",
        "key-list": "? [1]\n: a\n",
        "key-null": "~: a\n",
        "tags": "a: !!int '7'\nb: !!str 7\nc: !!float '1'\nd: !!bool 'true'\ne: !!null ''\nf: !!seq [1]\ng: !!map {a: 1}\n",
        "tag-wrong": "a: !!int x\n",
        "tag-map": "a: !!map x\nb: !!map [1]\n",
        "long-key": "'" + "\U0001f4a1" * 900 + "': 1\n",
        "tag-unknown": "a: !thing x\n",
        "tag-of-python": "a: !!python/object/apply:os.system ['true']\n",
        "tag-set": "a: !!set {b, c}\n",
        "digits": "a: " + "7" * 500 + "\n",
        "long-word": "a: !!int " + "x" * 60 + "\n",
        "control": "a: \x01\n",
        "two": "a: 1\n---\nb: 2\n",
        "empty": "",
        "comment": "# nothing\n",
        "unclosed": "a: [1, 2\n",
        "unknown-alias": "a: *b\n",
        "escapes": 'a: "\\x41\\u00e9\\U0001F600\\n\\t\\0"\n',
        "date": "a: 2001-12-14\n",
        "top-list": "- 1\n- 2\n",
        "top-scalar": "text\n",
        "bytes": "a: \ufffd\n",
    }
    for name, text in texts.items():
        yield name, text.encode()


def checkpoint() -> Inputs:
    """By the target's number: bytes 0, a good one cut or longer 1, one byte changed 2, an HDF5 file of something else 3."""
    yield "nothing", b"\0"
    yield "text", b"\0a field"
    yield "undigested", b"\0\x89HDF\r\n\x1a\n" + bytes(600)
    yield "good", b"\1"
    yield "longer", b"\1xx"
    yield "cut", b"\1x"
    yield "changed", b"\2\0\x0a\1"
    yield "changed-head", b"\2\5\0\x80"
    yield "changed-by-nothing", b"\2\0\0\0"
    yield "folder", b"\0\xff"
    yield "sealed-nonsense", b"\3\xff text"
    for index in range(14):
        yield f"field-{index}", bytes([3, 0, 0, 0, index])
    for index in range(1, 7):
        yield f"sweeps-{index}", bytes([3, 0, 0, index, 0])
    for index in range(1, 6):
        yield f"format-{index}", bytes([3, 0, index, 0, 0])


MADE = {
    "fuzz_merger": merger,
    "fuzz_part_table": part_table,
    "fuzz_assembler": assembler,
    "fuzz_formats": formats,
    "fuzz_l0tp": l0tp,
    "fuzz_channel": channel,
    "fuzz_rendezvous": rendezvous,
    "fuzz_control": control,
    "fuzz_pages": pages,
    "fuzz_yaml": yaml,
    "fuzz_checkpoint": checkpoint,
    "fuzz_udp_frame": udp_frames,
    "fuzz_dpdk_frames": dpdk_frames,
    "fuzz_xdp_frames": xdp_frames,
    "fuzz_pcap": pcap,
    "fuzz_packet_check": packet_check,
    "fuzz_rdma_messages": rdma_messages,
    "fuzz_notify_ring": notify_ring,
    "fuzz_km3_detector": km3_detector,
    "fuzz_km3_hits": km3_hits,
}


def main() -> None:
    for target, files in OF_VECTORS.items():
        for file in files:
            write(target, ((f"{file}-{name}", payload) for name, payload in payloads(VECTORS / f"{file}.txt").items()))
    for target, inputs in MADE.items():
        write(target, inputs())


def write(target: str, inputs: Inputs) -> None:
    folder = FUZZ / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in inputs:
        (folder / f"{name}.bin").write_bytes(data)


if __name__ == "__main__":
    main()
