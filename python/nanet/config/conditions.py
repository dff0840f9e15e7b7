# SPDX-License-Identifier: Apache-2.0
"""Conditions on the rings of an event: readable expressions, compiled at start into the table of all their answers.

An expression combines whole numbers that are known of an event (`QUANTITIES`) with `+ -`, compares them with `< <= == != >= >`, and combines
comparisons with `and`, `or`, `not` and brackets, as in `rings >= 2 and electrons == 1 and not multiplicity > 40`. There are only 8064 different
verdicts (126 mixes of up to four rings of five kinds, times 64 multiplicities), so the compiled form is the answer for each, in the order in
which `include/nanet/rich/decision.hpp` numbers them; the engine looks it up.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONDITIONS_MAX",
    "MULTIPLICITY_MAX",
    "QUANTITIES",
    "ConditionError",
    "Row",
    "answers",
    "check",
    "names_in",
    "pack",
    "states",
    "truth_table",
]

CONDITIONS_MAX = 4
MULTIPLICITY_MAX = 63
RINGS_MAX = 4
TEXT_MAX = 500
QUANTITIES = {
    "rings": "good rings of any kind, 0 to 4",
    "electrons": "rings in the electron's window",
    "muons": "rings in the muon's window (needs momentum_gev)",
    "pions": "rings in the pion's window (needs momentum_gev)",
    "kaons": "rings in the kaon's window (needs momentum_gev)",
    "others": "rings of no known kind",
    "multiplicity": "hits with a photomultiplier, saturating at 63",
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.GtE: operator.ge, ast.Gt: operator.gt,
}  # fmt: skip


class ConditionError(ValueError):
    """`what` is wrong with an expression, `why`, and a `suggestion`."""

    def __init__(self, what: str, why: str, suggestion: str) -> None:
        super().__init__(f"{what} ({why}) {suggestion}")
        self.what, self.why, self.suggestion = what, why, suggestion


def _mixes() -> Iterator[tuple[int, int, int, int, int]]:
    """(rings, electrons, muons, pions, kaons), in the order of `ring_mix_index`."""
    for rings in range(RINGS_MAX + 1):
        for electrons in range(rings + 1):
            for muons in range(rings - electrons + 1):
                for pions in range(rings - electrons - muons + 1):
                    for kaons in range(rings - electrons - muons - pions + 1):
                        yield rings, electrons, muons, pions, kaons


@cache
def states() -> dict[str, NDArray[np.int64]]:
    """The quantities of every verdict: {name: int [126 x 64]}."""
    mixes = np.array(list(_mixes()), dtype=np.int64)
    columns = np.repeat(mixes, MULTIPLICITY_MAX + 1, axis=0).T
    named = dict(zip(("rings", "electrons", "muons", "pions", "kaons"), columns, strict=True))
    named["others"] = named["rings"] - columns[1:].sum(axis=0)
    named["multiplicity"] = np.tile(np.arange(MULTIPLICITY_MAX + 1), len(mixes))
    return named


def check(text: str) -> None:
    """Raises ConditionError if `text` is not a condition."""
    answers(text)


def names_in(text: str) -> set[str]:
    """The quantities that a valid condition asks about."""
    return {node.id for node in ast.walk(ast.parse(text.strip(), mode="eval")) if isinstance(node, ast.Name)}


def answers(text: str) -> NDArray[np.bool_]:
    """The answer for each verdict, bool [8064]. Raises ConditionError."""
    if len(text) > TEXT_MAX:
        raise ConditionError(
            f"a condition of {len(text)} characters", f"it may have {TEXT_MAX}", "split it into several conditions"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or "it is not an expression"
        raise ConditionError(
            f"cannot read the condition '{text}'", reason, "write it like: rings >= 2 and electrons == 1"
        ) from None
    value = _value(tree.body)
    if value.dtype != np.bool_:
        raise ConditionError(
            f"the condition '{text}' is a number", "it must be true or false", f"compare it, for example {text} >= 1"
        )
    return np.broadcast_to(value, states()["rings"].shape)


def _value(node: ast.expr) -> NDArray[Any]:
    """Of each verdict: int64 or bool, [8064] or a scalar array."""
    match node:
        case ast.Name(id=name) if name in QUANTITIES:
            return states()[name]
        case ast.Name(id=name):
            raise ConditionError(
                f"unknown quantity '{name}'", "a condition asks about " + ", ".join(QUANTITIES), "use one of these"
            )
        case ast.Constant(value=bool(value)):
            return np.asarray(value)
        case ast.Constant(value=int(value)) if abs(value) <= 10**6:
            return np.asarray(value, dtype=np.int64)
        case ast.BoolOp(op=op, values=values):
            parts = [_truth(value) for value in values]
            combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
            result = parts[0]
            for part in parts[1:]:
                result = combine(result, part)
            return result
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return np.asarray(np.logical_not(_truth(operand)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return np.asarray(-_number(operand))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1 if isinstance(op, ast.Add) else -1
            return np.asarray(_number(left) + sign * _number(right))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _comparison([left, *comparators], ops)
    raise ConditionError(
        f"'{ast.unparse(node)}' cannot be part of a condition",
        "there are whole numbers, quantities, + -, comparisons, and, or, not",
        "write it with these",
    )


def _comparison(operands: Sequence[ast.expr], ops: Sequence[ast.cmpop]) -> NDArray[Any]:
    values = [_number(operand) for operand in operands]
    result = np.asarray(True)
    for left, op, right, node in zip(values, ops, values[1:], operands[1:], strict=False):
        compare = COMPARISONS.get(type(op))
        if compare is None:
            raise ConditionError(
                f"'{ast.unparse(node)}' uses an unknown comparison", "there are < <= == != >= >", "use one of these"
            )
        result = np.logical_and(result, compare(left, right))
    return result


def _number(node: ast.expr) -> NDArray[Any]:
    value = _value(node)
    if value.dtype == np.bool_:
        raise ConditionError(f"'{ast.unparse(node)}' is true or false", "a number is needed here", "put brackets where they belong")
    return value


def _truth(node: ast.expr) -> NDArray[Any]:
    value = _value(node)
    if value.dtype != np.bool_:
        suggestion = f"compare it, for example {ast.unparse(node)} >= 1"
        raise ConditionError(f"'{ast.unparse(node)}' is a number", "true or false is needed here", suggestion)
    return value


def pack(texts: Sequence[str]) -> bytes:
    """One byte a verdict, bit c the answer of condition c: what the engine looks up. Raises ConditionError."""
    if len(texts) > CONDITIONS_MAX:
        raise ConditionError(f"{len(texts)} conditions", f"an answer has room for {CONDITIONS_MAX}", "combine some with or")
    table = np.zeros(states()["rings"].shape, dtype=np.uint8)
    for bit, text in enumerate(texts):
        table |= answers(text).astype(np.uint8) << bit
    return table.tobytes()


@dataclass(frozen=True)
class Row:
    """One line of the truth table: a mix of rings, a range of multiplicity (both ends in), and each condition's answer."""

    mix: dict[str, int]
    multiplicity: tuple[int, int]
    holds: tuple[bool, ...]


def truth_table(texts: Sequence[str], *, kinds: Sequence[str] = ("electrons",)) -> list[Row]:
    """The answers of all conditions, ranges of multiplicity with equal answers as one row.

    kinds: those that the configuration can find; mixes with other kinds cannot occur and are left out.
    """
    table = np.array([answers(text) for text in texts]).reshape(len(texts), -1, MULTIPLICITY_MAX + 1)
    rows = []
    names = ("rings", "electrons", "muons", "pions", "kaons")
    for index, mix in enumerate(_mixes()):
        named = dict(zip(names, mix, strict=True))
        if any(named[name] for name in names[1:] if name not in kinds):
            continue
        columns = table[:, index, :]
        begin = 0
        for end in range(MULTIPLICITY_MAX + 1):
            if end == MULTIPLICITY_MAX or (columns[:, end + 1] != columns[:, end]).any():
                shown = {name: named[name] for name in ("rings", *kinds)}
                rows.append(Row(shown, (begin, end), tuple(bool(value) for value in columns[:, begin])))
                begin = end + 1
    return rows
