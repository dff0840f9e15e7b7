# SPDX-License-Identifier: Apache-2.0
"""Where ranks find each other: rank 0 listens at a place that all know, the others connect, and small messages go through it.

Place: `HOST:PORT`, or the path of a file that all can read, into which rank 0 writes where it listens. The field's data never goes this way.
Ranks prove to each other that they know the secret of the run (nanet.channel); strangers, however many and however slow, keep no rank out.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanet._core import SetupError
from nanet.machine.channel import Channel, ChannelError, Door, Refused, Visitor, introduce, read_json

PURPOSE = "nanet stencil"
SECRET = "NANET_STENCIL_SECRET"
MESSAGE_BYTES_MAX = 2**30
GREET_S_MAX = 5.0  # for one try
SEND_S_MAX = 60.0  # for a message, once it has begun
TURN_S = 0.001  # the neighbours are served between two

# (rank, count) in the environment of who started us: our own launcher, Open MPI, MPICH and other PMI, PMIx, Slurm.
RANK_VARIABLES = (
    ("NANET_RANK", "NANET_RANKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


class RankError(RuntimeError):
    """A rank is gone or did not answer: problem (why) suggestion. The run is over."""


def rank_of_environment(environment: Mapping[str, str]) -> tuple[int, int]:
    """(rank, count) as the launcher set them. Raises SetupError."""
    for rank_name, count_name in RANK_VARIABLES:
        if rank_name in environment and count_name in environment:
            rank, count = environment[rank_name], environment[count_name]
            if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
                raise SetupError(
                    f"{rank_name}={rank} and {count_name}={count} are not a rank (0 to the count - 1) start it with srun or mpirun"
                )
            return int(rank), int(count)
    names = ", ".join(name for name, _ in RANK_VARIABLES[1:])
    raise SetupError(f"this process is not a rank (none of {names} is set) start it with srun or mpirun, or give --ranks N")


@dataclass(frozen=True)
class Place:
    """Where rank 0 listens."""

    host: str = ""
    port: int = 0
    file: Path | None = None

    @property
    def is_loopback(self) -> bool:
        return self.host in ("127.0.0.1", "::1", "localhost")


def place_of(text: str) -> Place:
    """`HOST:PORT`, or a path with a slash in it. Raises SetupError."""
    if "/" in text:
        return Place(file=Path(text))
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
        raise SetupError(f"{text} is not a meeting place (HOST:PORT, or a path with a slash) write node1:7700 or ./meet")
    return Place(host.strip("[]"), int(port))


class Rendezvous:
    """`with Rendezvous(...) as ranks: all = ranks.gather(mine)`. Every rank makes the same calls in the same order."""

    def __init__(self, rank: int, count: int, place: Place, address: str, timeout_s: float, secret: str) -> None:
        self.rank, self.count = rank, count
        self.address = address
        """Where this rank is reached by the others; found out if it was empty."""
        self._place, self._timeout_s, self._secret = place, timeout_s, secret
        self._idle: Callable[[], None] = lambda: None
        self._peers: dict[int, Channel] = {}  # rank 0: of every other; others: of rank 0

    def __enter__(self) -> Rendezvous:
        if self.count == 1:
            self.address = self.address or "127.0.0.1"
            return self
        try:
            if self.rank == 0:
                self._listen()
            else:
                self._connect()
        except BaseException:  # else the file would send ranks that come later to a port that is another's by then
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._peers.values():
            peer.close()
        if self.rank == 0 and self._place.file:
            self._place.file.unlink(missing_ok=True)

    def when_idle(self, call: Callable[[], None]) -> None:
        """What to call about every millisecond while this rank waits for others."""
        self._idle = call

    def gather(self, mine: bytes) -> list[bytes] | None:
        """At rank 0 what each rank gave, by rank; None elsewhere. Raises RankError."""
        if self.rank != 0:
            self._send(0, mine)
            return None
        found: dict[int, bytes] = {0: mine}
        for rank in range(1, self.count):
            found[rank] = self._receive(rank)
        return [found[rank] for rank in range(self.count)]

    def share(self, mine: bytes | None) -> bytes:
        """What rank 0 gave, everywhere. Raises RankError."""
        if self.rank != 0:
            return self._receive(0)
        assert mine is not None
        for rank in range(1, self.count):
            self._send(rank, mine)
        return mine

    def all(self, mine: Any) -> list[Any]:
        """What each rank gave, everywhere; anything that JSON can hold. Raises RankError."""
        found = self.gather(json.dumps(mine).encode())
        every = self.share(
            json.dumps([_value(rank, one) for rank, one in enumerate(found)]).encode() if found is not None else None
        )
        whole: list[Any] = read_json(every)
        return whole

    def in_turn(self, call: Callable[[], None], each_s: float) -> None:
        """Calls it in one rank after the other; returns everywhere when the last is done. Each has so long beside the time limit."""
        self._timeout_s += each_s
        try:
            for rank in range(self.count):
                if rank == self.rank:
                    call()
                self.all(None)
        finally:
            self._timeout_s -= each_s

    # --- set-up ---

    def _listen(self) -> None:
        host = self._place.host or self.address or "127.0.0.1"
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            server = socket.create_server((host, self._place.port), family=family, backlog=max(128, self.count))
        except OSError as error:
            raise SetupError(
                f"rank 0 cannot listen at {host} port {self._place.port} ({error.strerror}) name an address of its machine, and a free port"
            ) from None
        with server:
            self.address = self.address or server.getsockname()[0]
            if self._place.file:
                write_atomically(self._place.file, f"{self.address} {server.getsockname()[1]}\n")
            self._await_ranks(Door(server, PURPOSE, self._secret))

    def _await_ranks(self, door: Door) -> None:
        deadline = time.monotonic() + self._timeout_s
        with door:
            while len(self._peers) < self.count - 1:
                visitor = door.next(max(0.0, deadline - time.monotonic()))
                if visitor is not None:
                    self._take(visitor)
                elif time.monotonic() >= deadline:
                    missing = ", ".join(map(str, sorted(set(range(1, self.count)) - set(self._peers))))
                    others = f"; turned away for another secret: {door.wrong}" if door.wrong else ""
                    raise RankError(
                        f"not all ranks arrived (missing after {self._timeout_s:g} s: {missing}{others}) look at why they did not start"
                    )

    def _take(self, visitor: Visitor) -> None:
        """Who knows the secret becomes a rank, if it is one of this run."""
        rank, count = visitor.about.get("rank"), visitor.about.get("count")
        if count != self.count or not isinstance(rank, int) or not 0 < rank < self.count:
            visitor.refuse(f"rank {str(rank)[:20]} of {str(count)[:20]} is none of {self.count} ranks")
        elif rank in self._peers:
            visitor.refuse(f"rank {rank} is there already")
        else:
            with contextlib.suppress(ChannelError):  # it is gone again, and may come again
                self._peers[rank] = visitor.admit()

    def _connect(self) -> None:
        deadline = time.monotonic() + self._timeout_s
        why = "nothing listens there"
        while time.monotonic() < deadline:
            host, port = self._where()
            if host:
                try:
                    self._greet(host, port, max(0.1, min(GREET_S_MAX, deadline - time.monotonic())))
                    return
                except Refused as error:
                    why = f"turned away: {error.strerror}"
                    break
                except OSError as error:
                    why = error.strerror or str(error)
            time.sleep(0.05)
        where = str(self._place.file or f"{self._place.host}:{self._place.port}")
        raise RankError(f"rank {self.rank} does not meet rank 0 at {where} ({why}) check the place, rank 0, and {SECRET}")

    def _where(self) -> tuple[str, int]:
        if self._place.file is None:
            return self._place.host, self._place.port
        try:
            host, port = self._place.file.read_text(encoding="ascii").split()
            return (host, int(port)) if 0 < int(port) < 65536 else ("", 0)
        except (OSError, ValueError):
            return "", 0

    def _greet(self, host: str, port: int, within_s: float) -> None:
        channel = Channel(socket.create_connection((host, port), timeout=within_s))
        try:
            introduce(channel, PURPOSE, self._secret, {"rank": self.rank, "count": self.count}, within_s)
        except OSError:
            channel.close()
            raise
        self.address = self.address or channel.own_address
        self._peers[0] = channel

    # --- messages ---

    def _send(self, rank: int, data: bytes) -> None:
        try:
            self._peers[rank].send(data, min(self._timeout_s, SEND_S_MAX))
        except ChannelError as error:
            raise self._gone(rank, error) from None

    def _receive(self, rank: int) -> bytes:
        """A message must begin within the time limit, and be whole within SEND_S_MAX of that, however its bytes are spread."""
        peer = self._peers[rank]
        deadline, begun = time.monotonic() + self._timeout_s, False
        try:
            while (message := peer.receive(TURN_S, MESSAGE_BYTES_MAX)) is None:
                self._idle()
                if peer.has_begun and not begun:
                    begun, deadline = True, time.monotonic() + min(self._timeout_s, SEND_S_MAX)
                if time.monotonic() > deadline:
                    what = "only a part of a message" if begun else "nothing"
                    raise RankError(f"{what} came from rank {rank} within {self._timeout_s:g} s (it hangs, or is far slower)"
                                    " check that rank, or give a longer timeout")  # fmt: skip
        except ChannelError as error:
            raise self._gone(rank, error) from None
        return message

    def _gone(self, rank: int, error: OSError) -> RankError:
        return RankError(f"rank {rank} is gone ({error.strerror or error or 'it closed'}) see why it ended")


def write_atomically(path: Path, text: str) -> None:
    """Whole or not at all; readable by this user only."""
    partial = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(partial, path)


def _value(rank: int, text: bytes) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise RankError(f"rank {rank} says what is no message ({error}) look at whether all ranks are of one nanet") from None
