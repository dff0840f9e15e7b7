#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/nanet/config/finders.py: one model per ring finder, whose fields are the cuts of include/nanet/rich/*.hpp with their comments.

The C++ headers say each cut's unit, default and effect once; this carries it to the configuration. A test compares the file with what this
writes. `scripts/make_finder_config.py [--check]`: exit 1 when the file is not current.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python" / "nanet" / "config" / "finders.py"
FINDERS = {
    "math": (None, "One ring by the algebraic fit of all hits: the fastest, but any noise corrupts it."),
    "pomh": ("center_scan", "One ring: the sharpest peak of the distance histograms of all candidate centres, centre by centre."),
    "domh": ("center_scan", "The same rings as pomh, laid out for vector units: centres side by side."),
    "hough": ("hough", "One ring: the highest cell of an accumulator over centre and radius, coarse and then fine."),
    "tripls": ("tripls", "One ring: the circles through many triplets of hits that agree, and a fit of the hits close to them."),
    "histogram": ("histogram", "Several rings: peaks of the distance histograms, ring by ring, which then share the hits."),
    "almagest": ("almagest", "Several rings from Almagest's triplets: the fastest finder of several rings."),
    "triplets": ("triplets", "Several rings: best-scoring circle through three hits, robust joint refit."),
    "mixture": (
        "mixture_cuts",
        "Several rings and noise as a mixture, fitted by expectation maximisation: the best rings, but slow.",
    ),
}
# Limits of a finder's search: the engine sets them from the cuts on rings (src/rich/search_range.hpp). What an old configuration says of
# them is read still.
OLD = {
    "radius_min_mm": "Old name of cuts.radius_min_mm, which holds for every finder",
    "radius_max_mm": "Old name of cuts.radius_max_mm, which holds for every finder",
    "center_max_mm": "Old name of cuts.center_max_mm, which holds for every finder",
    "triplet_radius_min_mm": "Not used any more: it follows from cuts.radius_min_mm",
    "triplet_radius_max_mm": "Not used any more: it follows from cuts.radius_max_mm",
}
TYPES = {"float": "float", "std::uint32_t": "int"}
UNITS = {"mm": "mm", "mm2": "mm^2", "ns": "ns"}
LINE_MAX = 118
WORDS = {"min": "smallest", "max": "largest"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The ring finders and their cuts. Written by scripts/make_finder_config.py from the headers in include/nanet/rich: change those."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nanet.config.base import Model, setting

'''


@dataclass(frozen=True)
class Cut:
    """A member of a struct of cuts."""

    name: str
    type: str
    default: str
    comment: str


def cuts_of(header: str) -> list[Cut]:
    """The members of the struct ...Cuts in include/nanet/rich/HEADER.hpp, in order; one without a comment has that of the member before."""
    text = (ROOT / "include" / "nanet" / "rich" / f"{header}.hpp").read_text(encoding="utf-8")
    body = re.search(r"struct \w*Cuts \{(.*?)template <class Visit>", text, re.DOTALL)
    assert body, header
    found: list[Cut] = []
    comment: list[str] = []
    ended = False
    for line in map(str.strip, body[1].splitlines()):
        if line.startswith("//"):
            comment = [*comment, line[2:].strip()] if not ended else [line[2:].strip()]
            ended = False
        elif line:
            member = re.fullmatch(r"(float|std::uint32_t) (\w+) = ([\d.]+)F?;", line)
            assert member, f"{header}: {line}"
            found.append(Cut(member[2], TYPES[member[1]], member[3], " ".join(comment)))
            ended = True
    return found


def field(cut: Cut) -> str:
    """The field's line of source."""
    if cut.name in OLD:
        return f'    {cut.name}: {cut.type} | None = setting(None, "{OLD[cut.name]}", unit="mm", ge=0)\n'
    suffix = cut.name.rpartition("_")[2]
    unit = UNITS.get(suffix)
    what, small, big = described(cut, unit)
    arguments = [cut.default if cut.type == "int" or "." in cut.default else f"{cut.default}.0", repr_text(what)]
    if unit:
        arguments.append(f'unit="{unit}"')
    if small:
        arguments.append(f"too_small={repr_text(small)}")
    if big:
        arguments.append(f"too_big={repr_text(big)}")
    low, high = limits(cut)
    arguments.append(f"ge={low}")
    if high is not None:
        arguments.append(f"le={high}")
    lines = [""]
    for argument in arguments:
        if lines[-1] and len(lines[-1]) + len(argument) > LINE_MAX:
            lines.append("")
        lines[-1] += f"{argument}, "
    body = "".join(f"        {line.rstrip()}\n" for line in lines)
    return f"    {cut.name}: {cut.type} = setting(\n{body}    )  # fmt: skip\n"


def described(cut: Cut, unit: str | None) -> tuple[str, str, str]:
    """What the cut is, and the effects of too small and too big."""
    text = cut.comment
    if unit:
        text = re.sub(rf"^{re.escape(unit)}\s*[,.;]\s*", "", text)
        text = re.sub(rf"^{re.escape(unit)} (?=from|between)", "distance ", text)
    effects = re.search(r"Too (?:small|narrow): (.*?)(?:[;.] [Tt]oo (?:big|wide): (.*?))?\.?$", text)
    what = re.split(r"Too (?:small|narrow|big)", text)[0].strip().rstrip(".;,") if effects else text.rstrip(".")
    if not what or what.startswith(("corrected", "rms of")):
        words = [WORDS.get(word, word) for word in cut.name.removesuffix("_mm").split("_")]
        what = " ".join([words[-1], *words[:-1]]) + (f", {what}" if what else " of a ring")
    return what[0].upper() + what[1:], effects[1].strip() if effects else "", (effects[2] or "").strip() if effects else ""


def limits(cut: Cut) -> tuple[str, str | None]:
    """Lowest and highest value: from the comment where it says them."""
    if cut.name in ("min_hits", "hits_min"):
        return "4", "128"
    if cut.name.endswith("_use"):
        return "0", "1"
    if between := re.search(r"\b(\d+) to (\d+)\b", cut.comment):
        return between[1], between[2]
    if most := re.search(r"at most (\d+)\b", cut.comment):
        return ("1" if cut.type == "int" and "0:" not in cut.comment else "0"), most[1]
    if cut.name == "rings_max":
        return "1", "4"
    return "0", None


def repr_text(text: str) -> str:
    """A literal with double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def source() -> str:
    """The whole file."""
    classes = [f"{name.capitalize()}Finder" for name in FINDERS]
    listed = "".join(f'    "{name}",\n' for name in sorted(["Finder", *classes]))
    written: set[str] = set()
    parts = [HEAD, f"__all__ = [\n{listed}]\n"]
    for (name, (header, summary)), class_name in zip(FINDERS.items(), classes, strict=True):
        base = "".join(map(str.capitalize, header.removesuffix("_cuts").split("_"))) + "Cuts" if header else "Model"
        if header and header not in written:
            written.add(header)
            parts.append(f'\n\nclass {base}(Model):\n    """Cuts of include/nanet/rich/{header}.hpp."""\n\n')
            parts.extend(field(cut) for cut in cuts_of(header))
        parts.append(f'\n\nclass {class_name}({base}):\n    """{summary}"""\n\n')
        parts.append(f'    name: Literal["{name}"] = setting("{name}", "Name of the finder")\n')
    union = "\n    | ".join(classes)
    parts.append(f'\n\nFinder = Annotated[\n    {union},\n    Field(discriminator="name"),\n]\n')
    return "".join(parts)


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        if TARGET.read_text(encoding="utf-8") == source():
            return 0
        print(f"{TARGET.name} is not current (a header changed) run scripts/make_finder_config.py", file=sys.stderr)
        return 1
    TARGET.write_text(source(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
