#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs that fuzz targets begin with and that need no luck: corpus/TARGET/NAME.bin, the same bytes each time.

From test vectors for the packet formats, from the declarations that are shipped, by hand here for all others. What the fuzzers found besides lies in
the same folders, named by its SHA-1. Runs where the package does: .venv/bin/python fuzz/make_corpus.py
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path

from format_corpus import (
    MGP,
    changed_formats,
    declarations,
    made_packets,
    packet_of,
    padded_of_fewer_bits,
    refused_packets,
    shipped,
    tree,
)
from frame_corpus import dpdk_frames, pcap, udp_frames, xdp_frames
from nanet.format.make import Faults
from text_corpus import channel, checkpoint, control, pages, rendezvous, yaml

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
        yield f"{file}-of-fewer-bits", b"\1" + tree(padded_of_fewer_bits()) + every
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


def km3_daq() -> Inputs:
    """Messages of each type, good ones and others."""

    def slice_(
        kind: int, hits: bytes, *, run: int = 9, tick: int = 8, module: int = 101, version: int = 1, frames: int = 1
    ) -> bytes:
        head = struct.pack("<iiiII", 1, run, 7, 1_500_000_000, tick)
        frame = struct.pack("<II", 56 + len(hits), 101) + head + struct.pack("<iI4Ii", module, 1, 0, 0, 0, 0, len(hits) // 6) + hits
        body = head + struct.pack("<i", frames) + frame * (frames > 0)
        return struct.pack("<iih", 10 + len(body), kind, version) + body

    def other(kind: int, version: int, body: bytes) -> bytes:
        return struct.pack("<iihiiiII", 30 + len(body), kind, version, 1, 9, 7, 1_500_000_000, 8) + body

    hits = b"".join(struct.pack(">BiB", k % 31, 1_000 * k, 20 * k) for k in range(12)) + struct.pack(">BiB", 5, 11_010, 10)
    l0, summary = slice_(1002, hits), other(2001, 6, struct.pack("<iiI4I31B", 1, 101, 1, 0, 0, 0, 0, *range(31)))
    hit = struct.pack("<iB", 101, 3) + struct.pack(">iB", 50, 30)
    event = other(
        10001, 4, struct.pack("<QQi", 3, 1, 0) + struct.pack("<i", 1) + hit + struct.pack("<Q", 1) + struct.pack("<i", 2) + hit * 2
    )
    yield from (
        ("l0", l0), ("all", l0 + slice_(1002, hits, tick=6_250_008) + slice_(1005, b"") + summary + event), ("summary", summary), ("event", event),
        ("floor", slice_(1002, hits[: 6 * 5])), ("run", slice_(1002, hits, run=-1)), ("tick", slice_(1003, hits, tick=1 << 28)),
        ("module", slice_(1004, hits, module=-1)), ("frames", slice_(1002, b"", frames=-1)), ("version", slice_(1002, b"", version=2)), ("cut", l0[:-1]),
        ("short", l0[:5]), ("length", struct.pack("<ii", 7, 1002)), ("other", struct.pack("<ii", 8, 4242) + l0), ("left", struct.pack("<i", len(l0) + 1) + l0[4:] + b"x"),
        ("records", other(2001, 6, struct.pack("<i", -1))), ("early", other(2001, 6, struct.pack("<i", 2))), ("frame", l0.replace(struct.pack("<I", 101), struct.pack("<I", 102), 1)),
        ("empty", b""),
    )  # fmt: skip


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
    "fuzz_km3_daq": km3_daq,
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
