# SPDX-License-Identifier: Apache-2.0
"""How deep the halos of ranks should be: a model from what the ranks measure before they begin.

With halos of k rows a rank exchanges edges once in k sweeps (one pass), and sweeps some rows twice. Its own rows are n. A part of m rows that goes
k sweeps on computes k (m + k - 1) rows of cells, since of each sweep before the last it needs rows around itself. So one pass takes

    edges(k)  = 2 (2 k - 1) row(k)              the k rows at either side, before anything is sent
    middle(k) = (n - 2 k + k - 1) row(k)        the rest, beside the exchange
    pass(k)   = edges(k) + max(middle(k), exchange(k))

where row(k) is the time of k sweeps of one row, as one of many, and exchange(k) that of k rows to either side, both measured. The k with the
smallest pass(k) / k is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanet.stencil.keys import HaloKeys

CANDIDATES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Prediction:
    """Of halos of so many rows."""

    halo_rows: int
    row_s: float
    """k sweeps of one row; the slowest rank's."""
    exchange_s: float
    """k rows to either side; the slowest rank's."""
    edges_s: float
    middle_s: float
    pass_s: float

    @property
    def sweep_s(self) -> float:
        """What a sweep takes on average."""
        return self.pass_s / self.halo_rows

    def plain(self) -> HaloKeys:
        """As a result has it."""
        return {
            "halo_rows": self.halo_rows,
            "row_s": self.row_s,
            "exchange_s": self.exchange_s,
            "edges_s": self.edges_s,
            "middle_s": self.middle_s,
            "pass_s": self.pass_s,
            "sweep_s": self.sweep_s,
        }


def read(keys: HaloKeys) -> Prediction:
    """From a result."""
    return Prediction(keys["halo_rows"], keys["row_s"], keys["exchange_s"], keys["edges_s"], keys["middle_s"], keys["pass_s"])


def candidates(rows_min: int) -> list[int]:
    """Depths that ranks with so many rows can have."""
    return [depth for depth in CANDIDATES if depth <= rows_min]


def predict(halo_rows: int, rows: int, row_s: float, exchange_s: float, sides: int) -> Prediction:
    """One pass of a rank with so many own rows, and so many neighbours (0 to 2)."""
    edge_rows = sides * min(halo_rows, rows / max(sides, 1))
    edges_s = (edge_rows + sides * (halo_rows - 1)) * row_s
    middle_rows = rows - edge_rows
    middle_s = (middle_rows + halo_rows - 1) * row_s if middle_rows > 0 else 0.0
    pass_s = edges_s + max(middle_s, exchange_s if sides else 0.0)
    return Prediction(halo_rows, row_s, exchange_s, edges_s, middle_s, pass_s)


def best(predictions: Sequence[Prediction]) -> Prediction:
    """The one with the quickest sweep; of equals the thinnest halo."""
    return min(predictions, key=lambda one: (one.sweep_s, one.halo_rows))


def table(predictions: Sequence[Prediction], chosen: int) -> list[str]:
    """For people: a line a depth."""
    lines = ["halo rows   edges     middle    exchange  pass      a sweep [ms]"]
    for one in predictions:
        times = "  ".join(f"{1e3 * value:8.3f}" for value in (one.edges_s, one.middle_s, one.exchange_s, one.pass_s, one.sweep_s))
        lines.append(f"{one.halo_rows:9d}  {times}{'  <- taken' if one.halo_rows == chosen else ''}")
    return lines
