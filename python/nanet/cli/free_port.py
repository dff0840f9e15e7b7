# SPDX-License-Identifier: Apache-2.0
"""The value of `--port`: the default moves on to the next free ports, a port that was asked for does not."""

from __future__ import annotations

import sys

import typer

# With these no port of this machine is used: links are compared in network namespaces, a configuration names its own ports.
ELSEWHERE = ("link", "config")


def free_port(context: typer.Context, port: int) -> int:
    """Callback of the option. The parameters of ELSEWHERE are eager, so that they are known here."""
    from nanet.machine import ports

    if context.resilient_parsing or any(context.params.get(name) for name in ELSEWHERE):
        return port
    source = context.get_parameter_source("port")
    chosen, note = ports.choose(port, named=source is not None and source.name == "COMMANDLINE")
    if note is not None:
        print(f"nanet: {note}", file=sys.stderr, flush=True)
    return chosen
