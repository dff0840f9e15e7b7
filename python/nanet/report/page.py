# SPDX-License-Identifier: Apache-2.0
"""The page around the sections of a report, and the parts that every report shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources

import jinja2
import yaml

from nanet.result.keys.base import Base, Config

DENSE_COLUMNS = 7  # a table of more has smaller letters, so that it fits on a wide screen


@dataclass(frozen=True)
class Figure:
    """One number that a reader should not have to look for."""

    name: str
    value: str
    unit: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and a body of HTML made by us."""

    title: str
    body: str
    text: str = ""


@dataclass
class Page:
    """All of a report."""

    title: str
    over: str
    headline: str
    lead: str
    kept: bool
    footer: str
    figures: list[Figure] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    definitions: str = ""


def render(content: Page) -> str:
    """The page as one HTML text."""
    files = resources.files("nanet.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=False)
    template = environment.from_string((files / "page.html.j2").read_text(encoding="utf-8"))
    style = (files / "style.css").read_text(encoding="utf-8")
    return template.render(style=style, **content.__dict__) + "\n"


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = (), styles: Mapping[int, str] | None = None
) -> str:
    """A table in a box that scrolls where the screen is narrower; `numbers`: columns set right; `styles`: class of a row by its index.

    Cells are text, not HTML.
    """
    styles = styles or {}
    head = "".join(f"<th{_number(n, numbers)}>{escape(name)}</th>" for n, name in enumerate(columns))
    body = ""
    for index, row in enumerate(rows):
        cells = "".join(f"<td{_number(n, numbers)}>{escape(cell)}</td>" for n, cell in enumerate(row))
        style = f' class="{styles[index]}"' if index in styles else ""
        body += f"<tr{style}>{cells}</tr>"
    kind = "scroll dense" if len(columns) > DENSE_COLUMNS else "scroll"
    return f'<div class="{kind}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def facts_section(result: Base, configs: Mapping[str, Config], notes: Sequence[str]) -> Section:
    """Machine, notes and configurations."""
    machine = result["machine"]
    names = {"memory_gib": "memory [GiB]", "cpu": "CPU"}
    rows = [[names.get(name, name), str(value)] for name, value in machine.items()]
    rows.append(["nanet", str(result["nanet"])])
    rows += [["note", note] for note in notes]
    body = table(["", ""], rows)
    for name, config in configs.items():
        text = yaml.safe_dump(config, sort_keys=False, width=110)
        body += f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
    return Section("Machine and configuration", body)


def footer(result: Base) -> str:
    """Who made this page, and when."""
    return f"Made by nanet {result['nanet']}, {result['date']}. All latencies are from CLOCK_MONOTONIC of one machine."


def number(value: float) -> str:
    """An integer with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\u2009")


def us(value: float | None) -> str:
    """Microseconds with a sensible number of digits."""
    if value is None:
        return "\u2013"
    return f"{value:.1f}" if abs(value) < 1000 else number(value)


def _number(column: int, numbers: Sequence[int]) -> str:
    return ' class="n"' if column in numbers else ""
