# SPDX-License-Identifier: Apache-2.0
"""A balance sheet as a table."""

from __future__ import annotations

from nanet.report.page import number, table
from nanet.result.keys.hops import BalanceSheet


def hop_table(balance: BalanceSheet) -> str:
    """A row a hop. balance: of nanet.result.hops.sheet."""
    rows = [
        [hop["hop"], hop["unit"], number(hop["in"]), number(hop["out"]), ", ".join(f"{k} {v:,}" for k, v in hop["named"].items()),
         number(hop["unexplained"])]
        for hop in balance["hops"]
    ]  # fmt: skip
    return table(["hop", "unit", "in", "out", "named", "unexplained"], rows, numbers=[2, 3, 5])
