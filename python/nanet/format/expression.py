# SPDX-License-Identifier: Apache-2.0
"""Expressions of a declaration, whose texts the native module has checked: their value, and the fields that give them one."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping

__all__ = ["fields_of", "solve", "value_of"]


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@functools.cache
def fields_of(text: str) -> tuple[str, ...]:
    """The fields in an expression, in order."""
    found = dict.fromkeys(node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name))
    return tuple(found)


def value_of(text: str, fields: Mapping[str, int]) -> int:
    """What it is with these fields."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return int(number)
            case ast.Name(id=name):
                return fields[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -value(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return value(left) + value(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return value(left) - value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return value(left) * value(right)
        raise ValueError(f"no expression: {text}")

    return value(_parsed(text))


def solve(text: str, wanted: int, name: str, fields: Mapping[str, int]) -> int | None:
    """The value of the field `name` with which the expression, of the first degree in it, is as wanted; None: there is none."""
    at_0 = value_of(text, {**fields, name: 0})
    slope = value_of(text, {**fields, name: 1}) - at_0
    if slope == 0 or (wanted - at_0) % slope != 0:
        return None
    return (wanted - at_0) // slope
