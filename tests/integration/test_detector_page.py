# SPDX-License-Identifier: Apache-2.0
"""docs/detector-map.md and docs/formats.md alone are enough to make a ring, to send it and to know the answer.

Nothing of the package is used for that, only the pages' map, equations and byte tables; the package is asked for the answers.
"""

from __future__ import annotations

import csv
import math
import re
import socket
import struct
from pathlib import Path

import numpy as np
from loops import engine_config, free_ports, sender
from nanet.run.process import EngineProcess

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "detector-map.md").read_text()
MAP = {int(row["channel"]): row for row in csv.DictReader((DOCS / "rich-map.csv").open())}
PLACES = {channel: (float(row["x_mm"]), float(row["y_mm"])) for channel, row in MAP.items()}


def ring_of(x_mm: float, y_mm: float, radius_mm: float, hits: int, disk: int) -> list[int]:
    """Channels nearest to points at equal angles on a circle, where one is within 9 mm."""
    channels, places = zip(*((c, p) for c, p in PLACES.items() if c >> 10 == disk), strict=True)
    found = []
    for k in range(hits):
        angle = 2 * math.pi * k / hits
        point = (x_mm + radius_mm * math.cos(angle), y_mm + radius_mm * math.sin(angle))
        distances = [math.dist(point, place) for place in places]
        if min(distances) <= 9.0:
            found.append(channels[distances.index(min(distances))])
    return found


def answer_of(channels: list[int]) -> int:
    """The primitive ID by the page: least squares, cuts with their defaults, bits."""
    places = np.array([PLACES[c] for c in channels if c in PLACES]).reshape(-1, 2)
    hits, radius, good = len(places), 0.0, False
    if hits >= 4 and np.linalg.matrix_rank(places - places[0]) == 2:
        x, y = places.T
        (a2, b2, c), *_ = np.linalg.lstsq(np.column_stack([x, y, np.ones(hits)]), x * x + y * y, rcond=None)
        radius = math.sqrt(c + (a2 * a2 + b2 * b2) / 4)
        d2 = (x - a2 / 2) ** 2 + (y - b2 / 2) ** 2
        rms = math.sqrt(float(np.mean((d2 - radius**2) ** 2))) / (2 * radius)
        good = 70 <= radius <= 210 and math.hypot(a2, b2) / 2 <= 200 and rms * math.sqrt(hits / (hits - 3)) <= 10
    electron = good and abs(radius - 189.65) <= 6
    radius_class = min(int(radius // 16), 15) if good else 0
    return 1 << 14 | radius_class << 10 | electron << 9 | good << 8 | good << 6 | min(hits, 63)


def padded(events: list[list[int]]) -> bytes:
    """An MGP padded packet of RICH's board 0, sequence 0, by docs/formats.md; event k is at timestamp 1000 + k."""
    body = b""
    for k, channels in enumerate(events):
        body += struct.pack("<IBBH", 1000 + k, 7, len(channels), k) + struct.pack("<32H", *channels, *[0] * (32 - len(channels)))
    head, body = struct.pack("<BBBBII", 0x1C, 0, 1, len(events), 0, 0), body.ljust(1152, b"\0")
    words = struct.unpack(f"<{(len(head) + len(body)) // 2}H", head + body)
    first = sum(words) % 65535
    second = sum((len(words) - k) * word for k, word in enumerate(words)) % 65535
    return head + struct.pack("<I", second << 16 | first) + body


def primitives(payload: bytes) -> list[tuple[int, int, int]]:
    """(timestamp, fine time, primitive ID) of an MTP packet, by docs/formats.md."""
    words = [payload[at : at + 4] for at in range(8, len(payload), 4)]
    high, found = int.from_bytes(payload[:3], "little"), []
    for word in words:
        if word[3] == 0:
            high = int.from_bytes(word[:3], "little")
        else:
            found.append((high << 8 | word[1], word[0], word[2] | word[3] << 8))
    return found


def example() -> tuple[list[int], int]:
    """The worked example of the page: channels, primitive ID."""
    text = PAGE.partition("## A worked example\n")[2]
    channels = re.search(r"channels:\s*([\d\s]+)", text)
    identity = re.search(r"primitive ID:\s*(0x[0-9a-f]{4})", text)
    assert channels
    assert identity
    return [int(word) for word in channels[1].split()], int(identity[1], 16)


def events() -> list[list[int]]:
    rings = [ring_of(20.0 * k - 80, 50 - 11.0 * k, 72.0 + 17 * k, 10 + 2 * k, k % 2) for k in range(8)]
    others = [
        [],
        [5, 700, 1300],  # three hits are no ring
        [0, 2, 16, 18, 24],  # nor is a line, or what is near one
        [1178, 2017, 175, 563],  # nor one about a centre that is too far out
        [488, 511, 1000, 2047],  # channels without a photomultiplier
        rings[6][:9] + ring_of(-20, -30, 100, 12, 0),  # two rings, of which the fit makes one bad one
        [*rings[7][:12], 2040],  # a hit without a photomultiplier counts for nothing
    ]
    return [*rings, *others, example()[0]]


def test_the_map_is_the_formula_of_the_page() -> None:
    tables = re.findall(r"\| (upper|lower) \|((?: \(-?\d+, -?\d+, \d+\) \|){6})", PAGE)
    strips = {half: [tuple(map(int, strip)) for strip in re.findall(r"\((-?\d+), (-?\d+), (\d+)\)", row)] for half, row in tables}
    cell = re.search(r"supercell[^\n]*:((?: \(\d, \d\)){8})", PAGE)
    assert cell
    steps = [tuple(map(int, step)) for step in re.findall(r"\((\d), (\d)\)", cell[1])]
    made = {}
    for board in range(4):
        pm = 0
        for i0, j0, supercells in strips["lower" if board % 2 else "upper"]:
            for k in range(supercells):
                for di, dj in steps:
                    i, j = i0 + 5 * k + di, j0 - k + dj
                    made[512 * board + pm] = (i, j, 9 * i, round(9 * math.sqrt(3) * j, 4))
                    pm += 1
    assert made == {c: (int(r["i"]), int(r["j"]), float(r["x_mm"]), float(r["y_mm"])) for c, r in MAP.items()}


def test_the_worked_example_follows_from_the_page() -> None:
    channels, identity = example()
    assert len(channels) >= 10
    assert answer_of(channels) == identity


def test_whoever_has_the_pages_alone_knows_the_answers() -> None:
    port, answers = free_ports()
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", answers))
    listener.settimeout(20.0)
    sent = events()
    found: list[tuple[int, int, int]] = []
    with listener, EngineProcess(engine_config(port, answers)) as process, sender(port) as out:
        out.send(padded(sent))
        while len(found) < len(sent):
            found += primitives(listener.recv(2048))
        process.stop()
    expected = [(1000 + k, 7, answer_of(channels)) for k, channels in enumerate(sent)]
    assert found == expected
    assert len({identity for _, _, identity in expected}) > 8
