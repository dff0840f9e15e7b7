# SPDX-License-Identifier: Apache-2.0
"""`nanet l0tp`: the options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.options import JsonFile, ReadyFd


def l0tp(
    config: Annotated[Path, typer.Argument(help="YAML file of an L0 trigger processor, such as: nanet examples l0tp.")],
    duration: Annotated[
        float | None, typer.Option("--duration", metavar="S", help="How long to run; by default until stopped.")
    ] = None,
    json_file: JsonFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    ready_fd: ReadyFd = None,
) -> None:
    """Run the L0 trigger processor that CONFIG describes.

    Primitives in, triggers out, until SIGTERM or SIGINT (Ctrl-C).
    """
    from nanet.config import l0tp as models
    from nanet.run import l0tp as run

    result = run.run(models.load(config), run.RunOptions(duration, json_file, quiet, ready_fd))
    if quiet:
        return
    print(run.sentence(result), flush=True)
    if latency := result["latency_us"]:
        print(
            f"primitive to trigger: p50 {latency['p50']:.1f}  p99 {latency['p99']:.1f}  p99.9 {latency['p99_9']:.1f}"
            f"  max {latency['max']:.1f} us",
            flush=True,
        )
