# SPDX-License-Identifier: Apache-2.0
"""The process that has the tile which `nanet stencil --mode paper` and `stream` move: it exposes the tile, and serves until it is told to end.

`with TileOwner(...) as owner:` starts it, on this machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from typing import Any, Self

from nanet._core import SetupError
from nanet.stencil.field import DTYPES, bands, made_rows, row_crcs
from nanet.stencil.ranks import native_tiles

READY_WITHIN_S = 120.0  # the pages of a tile of some GB are touched first
TURN_MS = 1


class TileOwner:
    """A tile in a process of its own. `port` is where it listens on loopback; it ends with this process."""

    def __init__(self, rows: int, columns: int, dtype: str, transports: str, token: int, *, trust_network: bool = False) -> None:
        self._given = {
            "rows": rows,
            "columns": columns,
            "dtype": dtype,
            "transports": transports,
            "trust_network": trust_network,
            "token": token,
            "address": "127.0.0.1",
        }
        self.port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nanet.stencil.owner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Through the pipe: the token is in it, and a command line can be read by every process of the machine.
        with contextlib.suppress(BrokenPipeError):  # then it says nothing either
            self._process.stdin.write(json.dumps(self._given).encode() + b"\n")
            self._process.stdin.flush()
        line = b""
        if select.select([self._process.stdout], [], [], READY_WITHIN_S)[0]:
            line = self._process.stdout.readline()
        if not line.startswith(b"port "):
            self.__exit__()
            raise SetupError(
                f"the owner of a tile of {self._given['rows']} x {self._given['columns']} did not start"
                f" ({line.decode().strip() or 'it said nothing'}) check the free memory, and the size of /dev/shm"
            )
        self.port = int(line.split()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def crcs(self) -> bytes:
        """CRC-32 of each row, as stencil_field.row_crcs has it: the owner reads its own memory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"crcs\n")
        self._process.stdin.flush()
        return bytes.fromhex(self._process.stdout.readline().decode())


def make_owner(given: dict[str, Any]) -> Any:
    """The native owner, its tile filled with the field that `nanet stencil` starts from."""
    tiles = native_tiles()
    kind = tiles.OwnerF32 if given["dtype"] == "fp32" else tiles.OwnerF64
    owner = kind(given)
    rows, columns = given["rows"], given["columns"]
    for begin, end in bands(0, rows, columns * DTYPES[given["dtype"]].itemsize):
        owner.load(made_rows(begin, end, columns, given["dtype"]), begin)
    return owner


def _crcs(owner: Any, given: dict[str, Any]) -> bytes:
    row_bytes = given["columns"] * DTYPES[given["dtype"]].itemsize
    return b"".join(row_crcs(owner.store(begin, end - begin)) for begin, end in bands(0, given["rows"], row_bytes))


def _main() -> int:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    text = b""
    while not text.endswith(b"\n"):  # nothing follows before this side has said where it listens
        text += (more := os.read(0, 4096))
        if not more:
            return 0
    given = json.loads(text)
    try:
        owner = make_owner(given)
    except SetupError as error:
        print(error, flush=True)
        return 2
    print(f"port {owner.port}", flush=True)
    while True:
        owner.serve(TURN_MS)
        if select.select([sys.stdin], [], [], 0)[0]:
            if not os.read(0, 64):
                return 0
            print(_crcs(owner, given).hex(), flush=True)


if __name__ == "__main__":
    sys.exit(_main())
