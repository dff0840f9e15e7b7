# SPDX-License-Identifier: Apache-2.0
"""`nanet examples`: its options, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def examples(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print this example; without a name, list all.")] = None,
    to: Annotated[Path | None, typer.Option("--to", metavar="FOLDER", help="Copy it there, or all without a name.")] = None,
) -> None:
    """List the examples, print one, or copy them to a folder."""
    from nanet.run import examples as example_files

    chosen = example_files.examples() if name is None else {name: example_files.example(name)}
    if to is not None:
        for path in chosen.values():
            print(example_files.copy(path, to), flush=True)
    elif name is not None:
        print(chosen[name].read_text(encoding="utf-8"), end="", flush=True)
    else:
        width = max(map(len, chosen))
        for one, path in chosen.items():
            print(f"{one:<{width}}  {example_files.summary(path)}", flush=True)
