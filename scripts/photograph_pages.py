#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Photographs HTML reports on a wide and on a narrow screen, in light and in dark, and says what cannot be read.

    scripts/photograph_pages.py [--out FOLDER] [PAGE.html ...]

Without pages: one of each kind of report, of the made-up results that the tests use. Needs Chromium (or Chrome). A page is
photographed in columns, to be read from left to right. Exit status 1: a page scrolls sideways, text is too small, or labels of a
chart lie on one another.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WIDTHS = (1100, 390)
SCHEMES = {"dark": 0, "light": 1}  # Blink's numbers
TEXT_MIN_PX = 10.5
COLUMN_PX, GAP_PX = 1500, 12
TIME_S = 120
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--virtual-time-budget=4000")  # fmt: skip
# A window is never narrower than 500 px: so the page is shown in a frame of the width that is meant.
LOOK = """
const page = document.querySelector('iframe').contentDocument, root = page.documentElement, view = page.defaultView;
const seen = one => one.getClientRects().length && view.getComputedStyle(one).visibility !== 'hidden';
const found = {height: root.scrollHeight, sideways: root.scrollWidth - root.clientWidth, small: [], over: []};
for (const svg of page.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')].filter(seen);
  for (const text of texts) {
    const px = parseFloat(view.getComputedStyle(text).fontSize) * text.getScreenCTM().a;
    if (px < SMALLEST) found.small.push(text.textContent + ' ' + px.toFixed(1));
  }
  const boxes = texts.map(text => text.getBoundingClientRect());
  boxes.forEach((a, n) => boxes.slice(0, n).forEach((b, m) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 4) found.over.push(texts[n].textContent + ' on ' + texts[m].textContent);
  }));
}
for (const cell of page.querySelectorAll('td, th, p, dd, dt')) {
  const px = parseFloat(view.getComputedStyle(cell).fontSize);
  if (seen(cell) && px < SMALLEST) found.small.push(cell.textContent.slice(0, 20) + ' ' + px.toFixed(1));
}
document.body.textContent = JSON.stringify(found);
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="HTML files; none: one of each kind, of made-up results")
    parser.add_argument("--out", type=Path, default=Path("out/photographs"), help="where the photographs go")
    options = parser.parse_args()
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        sys.exit("error: no photographs (there is no Chromium on this machine) install the package chromium")
    options.out.mkdir(parents=True, exist_ok=True)
    unreadable = 0
    for page in options.pages or made_up_pages(options.out):
        html = page.read_text(encoding="utf-8")
        for width in WIDTHS:
            for scheme in SCHEMES:
                unreadable += photograph(program, html, width, scheme, options.out / f"{page.stem}-{width}-{scheme}.png")
    return 1 if unreadable else 0


def made_up_pages(folder: Path) -> Iterator[Path]:
    """One page of each kind of report, written to the folder."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from made_up_pages import all_results
    from nanet.report import write_report

    for name, result in all_results():
        write_report(result, folder / f"{name}.html")
        yield folder / f"{name}.html"


def photograph(program: str, html: str, width: int, scheme: str, picture: Path) -> bool:
    """Writes a picture, prints a line, and says whether something on the page cannot be read."""
    found = look(program, html, width, scheme)
    columns = -(-found["height"] // COLUMN_PX)
    high = min(found["height"], COLUMN_PX)
    shifted = [frame(html, width, found["height"], f"margin-top:{-n * COLUMN_PX}px") for n in range(columns)]
    body = "".join(f'<div style="overflow:hidden;height:{high}px">{one}</div>' for one in shifted)
    size = f"--window-size={max(500, columns * (width + GAP_PX))},{high + 100}"
    browse(
        program,
        document(f'<div style="display:flex;gap:{GAP_PX}px">{body}</div>'),
        scheme,
        f"--screenshot={picture.resolve()}",
        size,
    )
    wrong = {
        "scrolls sideways by px": [str(found["sideways"])] * (found["sideways"] > 0),
        "too small": found["small"],
        "covered": found["over"],
    }
    said = "; ".join(f"{what}: {', '.join(dict.fromkeys(these))}" for what, these in wrong.items() if these)
    print(f"{picture}: {found['height']} px high{'; ' + said if said else ''}", flush=True)
    return bool(said)


def look(program: str, html: str, width: int, scheme: str) -> dict[str, Any]:
    """What a browser says of the page: height, how far it scrolls sideways [px], text that is too small, labels on one another."""
    script = f"<script>addEventListener('load', () => {{ {LOOK.replace('SMALLEST', str(TEXT_MIN_PX))} }})</script>"
    text = browse(program, document(frame(html, width, 900, "") + script), scheme, "--dump-dom", "--window-size=1400,1000")
    body = re.search(r"<body[^>]*>(.*?)</body>", text, flags=re.DOTALL)
    if body is None:
        sys.exit("error: no photographs (the browser says nothing of the page) start it by hand with --dump-dom")
    found: dict[str, Any] = json.loads(unescape(body[1]))
    return found


def browse(program: str, html: str, scheme: str, *arguments: str) -> str:
    """Opens a document and returns what the browser prints."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.html"
        path.write_text(html, encoding="utf-8")
        own = (f"--user-data-dir={folder}/profile", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}")
        command = [program, *OPTIONS, *own, *arguments, path.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIME_S, check=True).stdout


def document(body: str) -> str:
    return (
        '<!doctype html><html style="color-scheme: light dark"><head><meta charset="utf-8"></head>'
        f'<body style="margin:0">{body}</body></html>'
    )


def frame(html: str, width: int, height: int, style: str) -> str:
    return f'<iframe width="{width}" height="{height}" style="border:0;display:block;{style}" srcdoc="{escape(html)}"></iframe>'


if __name__ == "__main__":
    sys.exit(main())
