# SPDX-License-Identifier: Apache-2.0
"""An engine in this process, with its threads: what `nanet run` starts, for programs.

with nanet.Engine("my.yaml") as engine:
    time.sleep(10.0)
    print(engine.counters()["events_answered"])
print(engine.result["verdict"])
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nanet.config.engine import EngineConfig, load
from nanet.config.errors import ConfigError, validated

if TYPE_CHECKING:
    from nanet.result.keys.engine import EngineResult

__all__ = ["Engine"]


class Engine:
    """A configured engine. As a context manager it runs inside the block; once it has stopped, `result` says how it went."""

    def __init__(self, config: EngineConfig | str | Path | Mapping[str, Any]) -> None:
        """config: a nanet.config.EngineConfig, the path of a YAML file, or the same as a dictionary.

        run.duration_s is not used, and no metrics are served: that is what nanet run does. Raises ConfigError for a wrong
        configuration and for run.user, which would change the account of the whole process, and SetupError where the machine refuses.
        """
        from nanet.result import hops
        from nanet.run.native import make_engine

        if isinstance(config, str | Path):
            config = load(config)
        elif not isinstance(config, EngineConfig):
            config = validated(EngineConfig, dict(config))
        if config.run.user is not None:
            raise ConfigError(
                ["run.user is configured (this whole process would switch to that account) remove it, or use nanet run"]
            )
        self.config = config
        self.result: EngineResult | None = None
        """As `nanet run --json` writes it (docs/json.md); None until the engine has stopped."""
        self._balance = hops.Balance(config)
        self._native = make_engine(config)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<nanet.Engine {self.config.name} {'running' if self.running else 'not running'}>"

    def start(self) -> None:
        """Starts the threads; packets are received from now on. Once."""
        if self.result is not None:
            raise ValueError("this engine has stopped (it runs once) make another one")
        self._native.start()

    def stop(self) -> EngineResult:
        """Drains, answers what is open, ends the threads; returns `result`. Twice is the same as once."""
        from nanet.run import command

        if self.result is None:
            self._native.stop()
            self.result = command.make_result(self.config, self._native, self._balance)
        return self.result

    @property
    def running(self) -> bool:
        """Whether the threads run."""
        return bool(self._native.running)

    @property
    def inputs_finished(self) -> bool:
        """Whether every link plays a file, and all are at their ends."""
        return bool(self._native.inputs_finished)

    @property
    def notes(self) -> list[str]:
        """What the machine could not give, one line each."""
        return list(self._native.notes)

    @property
    def faults(self) -> list[str]:
        """Why GPUs were given up, one line each."""
        return list(self._native.faults)

    def counters(self) -> dict[str, int]:
        """Totals by name so far; docs/design/books.md explains each."""
        return {name: int(count) for name, count in self._native.snapshot()["counters"].items()}

    def flush(self) -> None:
        """Hands partly filled buffers over at once."""
        self._native.flush()
