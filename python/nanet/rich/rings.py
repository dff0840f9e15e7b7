# SPDX-License-Identifier: Apache-2.0
"""Rings of many events: find them, judge them as the engine does, and make events to try it on.

    events = nanet.monte_carlo(1000, mean_hits=12)
    rings = nanet.find_rings(events.hits, events.counts, "almagest")
    ids = nanet.primitive_ids(rings)

The native functions do the work; the engine uses the same ones, so the answers have the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from nanet.config.emulator import MonteCarlo
    from nanet.config.rich import Decision

__all__ = ["SimulatedEvents", "find_rings", "fit_rings", "judge", "monte_carlo", "pm_positions", "primitive_ids"]


class SimulatedEvents(NamedTuple):
    """Events with what is true of them."""

    hits: NDArray[np.uint16]
    """uint16 [events, width]: as in packets, the first counts[i] of row i."""
    counts: NDArray[np.uint32]
    """uint32 [events]: hits of each event."""
    truth: NDArray[np.void]
    """Structured [events]: particle, disk, ring_hits, noise_hits, momentum_gev, x_mm, y_mm, radius_mm; of the first ring where there
    are several."""


def pm_positions() -> NDArray[np.float32]:
    """Where the photomultiplier of each channel is, float32 [2048, 2]: x, y [mm] in its disk; NaN where a channel has none."""
    from nanet import _core

    return _core.pm_positions()


def fit_rings(hits: ArrayLike, counts: ArrayLike) -> NDArray[np.void]:
    """One ring through all hits of each event: the MATH fit, vectorised.

    hits: uint16 [events, width], as in packets (docs/formats.md): channel in bits 0 to 10, time in bits 11 to 15; counts: uint32 [events],
    hits of each row.
    Returns a structured array [events]: x_mm, y_mm, radius_mm, rms_mm, time_ns, hits, status (bit 0: a ring; bit 1: only the first 128
    hits were used). Raises SetupError where hits and counts do not fit together.
    """
    from nanet import _core

    return _core.fit_rings(*_events(hits, counts))


def find_rings(
    hits: ArrayLike, counts: ArrayLike, finder: str = "math", cuts: Mapping[str, float] | None = None
) -> NDArray[np.void]:
    """The rings of each event, up to four.

    hits, counts: as for fit_rings. finder: math, almagest, triplets, mixture and others (docs/physics.md compares them).
    cuts: of that finder, such as {"hits_min": 5} of almagest; what is not named keeps its default (nanet schema shows all).
    Returns a structured array [events]: count, mapped_hits, truncated (1: only the first 128 hits were used), more_rings (1: four were found,
    and there were more), rings [4] of x_mm, y_mm, radius_mm, rms_mm, time_ns, hits, status.
    Raises SetupError for a finder or a cut that there is not, and where hits and counts do not fit together.
    """
    from nanet import _core

    return _core.find_rings(finder, dict(cuts or {}), *_events(hits, counts))


def judge(rings: NDArray[np.void], decision: Decision | None = None) -> NDArray[np.void]:
    """What the engine says of each event's rings.

    rings: [events], as find_rings returns them. decision: cuts and conditions, such as the processor of an engine's configuration;
    None: the default cuts, no conditions.
    Returns a structured array [events]: rings, electrons, muons, pions, kaons (how many good ones of each kind), multiplicity (hits with
    a photomultiplier, at most 63), good_rings (bit k: ring k is good), radius_mm (of the good ring with most hits, 0 without),
    primitive_id (docs/formats.md). Raises SetupError where rings is another array.
    """
    from nanet import _core
    from nanet.config.rich import Decision

    plain = np.ascontiguousarray(rings)
    if plain.ndim != 1 or plain.dtype.names != ("count", "mapped_hits", "truncated", "more_rings", "rings"):
        raise _core.SetupError(
            f"these are not rings of events ({plain.dtype}, {plain.ndim} dimensions) pass what find_rings returned"
        )
    settings = (decision or Decision()).model_dump(mode="json", include={"cuts", "conditions"})
    return _core.judge(settings, plain.view(np.uint8))


def primitive_ids(rings: NDArray[np.void], decision: Decision | None = None) -> NDArray[np.uint16]:
    """The answer to each event, uint16 [events], as the engine would send it. Arguments and errors are those of judge."""
    ids: NDArray[np.uint16] = judge(rings, decision)["primitive_id"]
    return ids


def monte_carlo(event_count: int, config: MonteCarlo | None = None, **settings: Any) -> SimulatedEvents:
    """Simulated events, always the same for a seed.

    config: a nanet.config.emulator.MonteCarlo; or its fields by name, such as seed=7, mean_hits=12, noise_hits=1.2.
    Raises ConfigError for a wrong setting.
    """
    from nanet import _core
    from nanet.config.emulator import MonteCarlo
    from nanet.config.errors import ConfigError, validated

    if config is not None and settings:
        raise ConfigError([f"config together with {', '.join(settings)} (it has these settings too) give one or the other"])
    if event_count < 0:
        raise ConfigError([f"{event_count} events cannot be made (a count is not negative) give 0 or more"])
    return SimulatedEvents(*_core.monte_carlo((config or validated(MonteCarlo, settings)).model_dump(mode="json"), event_count))


def _events(hits: ArrayLike, counts: ArrayLike) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    return _whole_numbers("hits", hits, np.uint16, 2), _whole_numbers("counts", counts, np.uint32, 1)


def _whole_numbers(name: str, given: ArrayLike, dtype: Any, dimensions: int) -> NDArray[Any]:
    """In one piece, of this type: no number is changed on the way. No copy where it is so already."""
    array = np.asarray(given)
    if array.ndim != dimensions or (array.dtype.kind not in "ui" and array.size):
        _refuse(name, f"{array.dtype} of {array.ndim} dimensions", f"pass {np.dtype(dtype)} of {dimensions}")
    if array.dtype != dtype and array.size and not 0 <= int(array.min()) <= int(array.max()) <= np.iinfo(dtype).max:
        _refuse(name, f"numbers from {array.min()} to {array.max()}", f"they must fit into {np.dtype(dtype)}")
    return np.ascontiguousarray(array, dtype=dtype)


def _refuse(name: str, why: str, suggestion: str) -> None:
    from nanet._core import SetupError

    raise SetupError(f"{name} cannot be used ({why}) {suggestion}")
