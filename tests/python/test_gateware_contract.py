# SPDX-License-Identifier: Apache-2.0
"""What the gateware has of the NIC contract is made from include/nanet/contract.hpp: it is current, it is what a compiler makes of the header, and a header
that changes is noticed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "gateware" / "scripts"))
import make_contract

ROOT = Path(__file__).parents[2]
HEADER = make_contract.HEADER.read_text(encoding="utf-8")


def check(header: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(make_contract, "HEADER", header)
    return make_contract.main(["--check"])


def test_what_was_made_is_current() -> None:
    assert make_contract.main(["--check"]) == 0


def test_a_compiler_agrees(tmp_path: Path) -> None:
    """Sizes and places of every field, and every value, as assertions that C++ checks."""
    contract = make_contract.read(HEADER)
    claims = []
    for struct in contract.structs:
        claims.append(f"sizeof({struct.name}) == {struct.bytes}")
        for one in struct.fields:
            claims.append(f"offsetof({struct.name}, {one.name}) == {one.at}")
            claims.append(f"sizeof({struct.name}::{one.name}) == {one.bytes * one.count}")
        claims += [f"{struct.name}::{name} == {value}" for name, (value, _) in struct.constants.items()]
    claims += [f"int(CompletionKind::{name}) == {value}" for name, (value, _) in contract.kinds.items()]
    claims += [f"status::{name} == {value}" for name, (value, _) in contract.status.items()]
    assert len(claims) > 60
    source = tmp_path / "claims.cpp"
    asserts = "\n".join(f"static_assert({claim});" for claim in claims)
    source.write_text(f'#include "nanet/contract.hpp"\nusing namespace nanet;\n{asserts}\n', encoding="utf-8")
    command = [
        os.environ.get("CXX", "c++"),
        "-std=c++20",
        "-fsyntax-only",
        "-Wno-invalid-offsetof",
        f"-I{ROOT / 'include'}",
        str(source),
    ]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


CHANGES = {
    "a value": ("packet_sent = 2", "packet_sent = 4"),
    "a status": ("error = 1u << 5", "error = 1u << 8"),
    "a field has another name": ("std::uint32_t packets_lost;", "std::uint32_t lost;"),
    "two fields change places": (
        "std::uint8_t clop;\n  std::uint8_t packet_events_max;",
        "std::uint8_t packet_events_max;\n  std::uint8_t clop;",
    ),
    "a field is wider": ("std::uint16_t source;", "std::uint32_t source;"),
    "a constant": ("run_start = 0x8000", "run_start = 0x4000"),
    "a struct has another name": ("struct alignas(64) TxDescriptor", "struct alignas(64) TxRequest"),
    "a field of a type that is not known": ("std::uint64_t address;      // of the payload", "Address address;  //"),
    "an assertion of another size": ("sizeof(Completion) == 64", "sizeof(Completion) == 128"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_header_that_changes_is_noticed(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = CHANGES[change]
    assert HEADER.count(before) == 1
    header = tmp_path / "contract.hpp"
    header.write_text(HEADER.replace(before, after), encoding="utf-8")
    assert check(header, monkeypatch) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_a_comment_that_changes_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tmp_path / "contract.hpp"
    header.write_text(HEADER.replace("// written last", "// at the end"), encoding="utf-8")
    assert check(header, monkeypatch) == 0
