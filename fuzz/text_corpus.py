# SPDX-License-Identifier: Apache-2.0
"""Inputs of what is parsed in Python: the control channel, rendezvous, remote memory's control, pages, YAML and checkpoints."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
Inputs = Iterator[tuple[str, bytes]]


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
