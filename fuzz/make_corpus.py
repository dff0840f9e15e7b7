#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the wire fuzz targets, one file a test vector: corpus/TARGET/VECTORFILE-NAME.bin."""

from pathlib import Path

FUZZ = Path(__file__).resolve().parent
VECTORS = FUZZ.parent / "tests" / "vectors"
TARGETS = {
    "fuzz_mgp": ("wire_mgp_padded", "wire_mgp_packed", "wire_mgp_marker"),
    "fuzz_mtp": ("wire_mtp",),
    "fuzz_m2egp": ("wire_m2egp",),
    "fuzz_mep": ("wire_mep",),
}


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


def main() -> None:
    for target, files in TARGETS.items():
        folder = FUZZ / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            for name, payload in payloads(VECTORS / f"{file}.txt").items():
                (folder / f"{file}-{name}.bin").write_bytes(payload)


if __name__ == "__main__":
    main()
