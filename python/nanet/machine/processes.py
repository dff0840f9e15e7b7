# SPDX-License-Identifier: Apache-2.0
"""Processes of other programs."""

from __future__ import annotations

import subprocess
from typing import Any


def end(process: subprocess.Popen[Any]) -> None:
    """Ends a process that may have ended: in order, then by force."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
