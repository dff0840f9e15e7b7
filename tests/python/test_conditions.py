# SPDX-License-Identifier: Apache-2.0
"""Conditions: the compiled table against Python's own evaluation of the same expression, and every way to write one wrongly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nanet.config import conditions

NAMES = list(conditions.QUANTITIES)


def test_states_are_all_different_and_complete() -> None:
    states = conditions.states()
    rows = np.stack([states[name] for name in NAMES], axis=1)
    assert rows.shape == (126 * 64, 7)
    assert len(np.unique(rows, axis=0)) == len(rows)
    kinds = ("electrons", "muons", "pions", "kaons", "others")
    assert (sum(states[kind] for kind in kinds) == states["rings"]).all()
    expected = sum(1 for mix in itertools.product(range(5), repeat=5) if sum(mix) <= 4)
    assert expected == 126


NUMBERS = st.one_of(st.sampled_from(NAMES), st.integers(-70, 70).map(str))
SUMS = st.one_of(NUMBERS, st.tuples(NUMBERS, st.sampled_from(["+", "-"]), NUMBERS).map(lambda p: f"({' '.join(p)})"))
COMPARISONS = st.tuples(SUMS, st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]), SUMS).map(" ".join)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        inner.map(lambda text: f"not ({text})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(CONDITIONS)
def test_answers_are_those_of_python(text: str) -> None:
    found = conditions.answers(text)
    states = conditions.states()
    for index in range(0, len(found), 61):
        values = {name: int(states[name][index]) for name in NAMES}
        assert bool(found[index]) == bool(eval(text, {"__builtins__": {}}, values)), (text, values)


def test_pack_puts_each_condition_into_its_bit() -> None:
    table = np.frombuffer(conditions.pack(["rings >= 2", "electrons == 1", "True", "multiplicity > 62"]), dtype=np.uint8)
    states = conditions.states()
    assert ((table & 1) == (states["rings"] >= 2)).all()
    assert ((table >> 1 & 1) == (states["electrons"] == 1)).all()
    assert (table >> 2 & 1 == 1).all()
    assert ((table >> 3) == (states["multiplicity"] == 63)).all()
    assert conditions.pack([]) == bytes(8064)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ring >= 2", "unknown quantity 'ring'"),
        ("rings", "is a number (it must be true or false)"),
        ("rings and electrons", "'rings' is a number (true or false is needed here)"),
        ("not rings", "'rings' is a number"),
        ("(rings > 1) + 1 > 0", "is true or false (a number is needed here)"),
        ("rings * 2 > 1", "cannot be part of a condition"),
        ("rings in 3", "uses an unknown comparison"),
        ("rings > 1.5", "cannot be part of a condition"),
        ("rings > 99999999999999999999", "cannot be part of a condition"),
        ("__import__('os')", "cannot be part of a condition"),
        ("rings >", "cannot read the condition"),
        ("", "cannot read the condition"),
        ("(" * 300, "cannot read the condition"),
        ("rings > 1 " + "or rings > 1 " * 60, "a condition of"),
        ("rings.real > 1", "cannot be part of a condition"),
    ],
)
def test_mistakes_are_named(text: str, expected: str) -> None:
    with pytest.raises(conditions.ConditionError) as caught:
        conditions.check(text)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_conditions() -> None:
    with pytest.raises(conditions.ConditionError, match="5 conditions"):
        conditions.pack(["rings > 1"] * 5)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    refused = ""
    try:
        conditions.check(text)
    except conditions.ConditionError as error:
        refused = str(error)
    assert "\n" not in refused or "\n" in text


def test_truth_table_joins_equal_ranges() -> None:
    rows = conditions.truth_table(["rings >= 1 and multiplicity < 30", "electrons == 2"])
    assert len({row.mix["rings"] for row in rows}) == 5
    two = [row for row in rows if row.mix == {"rings": 2, "electrons": 2}]
    assert [(row.multiplicity, row.holds) for row in two] == [((0, 29), (True, True)), ((30, 63), (False, True))]
    none = [row for row in rows if row.mix["rings"] == 0]
    assert [(row.multiplicity, row.holds) for row in none] == [((0, 63), (False, False))]
    covered = sum(row.multiplicity[1] - row.multiplicity[0] + 1 for row in rows)
    assert covered == 64 * 15


def test_truth_table_with_a_momentum_hypothesis() -> None:
    rows = conditions.truth_table(["muons == 1"], kinds=("electrons", "muons", "pions", "kaons"))
    assert len(rows) == 126
    assert all(row.holds == (row.mix["muons"] == 1,) for row in rows)
