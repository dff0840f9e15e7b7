# SPDX-License-Identifier: Apache-2.0
"""Where a SystemVerilog module of rtl/ can be made wrong, and what it then reads: the faults that mutate.py puts in.

Kinds: an operator turned into its neighbour (== !=, < <=, + -, && ||, & |, << >>, a negation left out), a constant one off, another state, a
condition negated, an assignment left out, a bit stuck. Changed are the design's own statements: procedural assignments, conditions, `assign`,
`wire NAME = ...`, what a port is connected to. Left alone are declarations, parameters, elaboration checks, assertions and what only a proof sees.

`mutants(text)` lists every change; `plain(text, mutant)` is the source with one of them, `schemata(text, chosen)` one source with all of `chosen`,
of which `mutation_pkg::selected` picks one when the simulation begins (0: none), so that one build serves them all.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import sources

NEIGHBOURS = {
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "+": "-",
    "-": "+",
    "&&": "||",
    "||": "&&",
    "&": "|",
    "|": "&",
    "^": "|",
    "<<": ">>",
    ">>": "<<",
}
TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/|\(\*.*?\*\))"
    r"|(?P<text>\"[^\"]*\")"
    r"|(?P<based>\d*'[sS]?[bdhoBDHO][0-9a-fA-F_]+)"
    r"|(?P<fill>'[01])"
    r"|(?P<number>\d[\d_]*)"
    r"|(?P<name>[$A-Za-z_][$\w]*(?:::[A-Za-z_]\w*)?|`\w+)"
    r"|(?P<mark><<<|>>>|===|!==|<=|>=|==|!=|&&|\|\||<<|>>|\+:|-:|\+=|-=|\|=|&=|\+\+|--|'\{|[^\s\w])",
    re.DOTALL,
)
CONSTANT = re.compile(r"(\w+::)?[A-Z][A-Z0-9_]+")
OPEN, CLOSE = ("(", "[", "{", "'{"), (")", "]", "}")
ASSIGNS = ("=", "<=", "+=", "-=", "|=", "&=")
CONSTANT_FUNCTIONS = ("$bits", "$clog2", "$onehot", "$onehot0")
CONTEXT = 30  # characters either side of a change that are shown
CHECKS = ("assert", "assume", "cover")
PACKAGE = """// SPDX-License-Identifier: Apache-2.0
// Which of the faults put into the modules is there: +mutant=NUMBER, 0 none.
package mutation_pkg;
  function automatic int chosen();
    if (!$value$plusargs("mutant=%d", chosen)) chosen = 0;
  endfunction
  int selected = chosen();
endpackage
"""


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Unit:
    """A stretch of source that is changed as one: form is statement (with its semicolon), or expression."""

    form: str
    start: int
    end: int


@dataclass(frozen=True)
class Mutant:
    unit: Unit
    kind: str
    line: int
    before: str
    after: str

    @property
    def change(self) -> str:
        """What is different, with some of what stands around it."""
        before, after = " ".join(self.before.split()), " ".join(self.after.split())
        same = 0
        while same < min(len(before), len(after)) and before[same] == after[same]:
            same += 1
        rest = 0
        while rest < min(len(before), len(after)) - same and before[-1 - rest] == after[-1 - rest]:
            rest += 1
        first, tail = max(0, same - CONTEXT), max(0, rest - CONTEXT)
        return (
            f"`{before[first : len(before) - tail]}` -> `{after[first : len(after) - tail]}`" if after else f"`{before}` left out"
        )


def plain(text: str, mutant: Mutant) -> str:
    return text[: mutant.unit.start] + mutant.after + text[mutant.unit.end :]


def schemata(text: str, chosen: dict[int, Mutant]) -> str:
    """The source with all of `chosen`, each under its number."""
    by_unit: dict[Unit, list[tuple[int, str]]] = {}
    for number, mutant in chosen.items():
        by_unit.setdefault(mutant.unit, []).append((number, mutant.after))
    for unit, changes in sorted(by_unit.items(), key=lambda item: -item[0].start):
        original = text[unit.start : unit.end]
        if unit.form == "statement":
            tests = "".join(f"if (mutation_pkg::selected == {number}) begin {after} end else " for number, after in changes)
            woven = f"begin {tests}begin {original} end end"
        else:
            tests = "".join(f"mutation_pkg::selected == {number} ? ({after}) : " for number, after in changes)
            woven = f"({tests}({original}))"
        text = text[: unit.start] + woven + text[unit.end :]
    return text


def mutants(text: str) -> list[Mutant]:
    """Every change of a source, in its order, none twice."""
    return list(dict.fromkeys(Scanner(text).module()))


def visible(text: str) -> str:
    """The same length, with spaces for what is not the design: blocks of `ifdef FORMAL` and `ifndef SYNTHESIS`, `wire unused`, and what must hold."""

    def spaces(match: re.Match[str]) -> str:
        return re.sub(r"\S", " ", match[0])

    text = re.sub(r"`ifdef FORMAL.*?`endif|`ifndef SYNTHESIS.*?`endif|wire unused\w* = [^;]*;", spaces, text, flags=re.DOTALL)
    return re.sub(r"// --- what must hold ---.*(?=endmodule)", spaces, text, flags=re.DOTALL)


@cache
def outputs_of(module: str) -> frozenset[str]:
    """Names of its ports that are outputs."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\[[^\]]*\]", "", sources.paths()[module].read_text(encoding="utf-8"))
    return frozenset(re.findall(r"\boutput\b[\w:\s]*?(\w+)\s*[,)]", text))


class Scanner:
    """Walks over one module. It knows the SystemVerilog that the rules of docs/design/gateware.md leave."""

    def __init__(self, text: str) -> None:
        self.text = text
        matches = TOKEN.finditer(visible(text))
        self.tokens = [Token(str(m.lastgroup), m[0], m.start(), m.end()) for m in matches if m.lastgroup != "space"]
        self.at = 0
        self.states: dict[str, list[str]] = {}
        for names in re.findall(r"enum\b[^{;]*\{([^}]*)\}", visible(text)):
            members = re.findall(r"[A-Z]\w*", re.sub(r"=[^,]*|//[^\n]*", "", names))
            self.states |= dict.fromkeys(members, members)

    # --- where the statements are ---

    def module(self) -> Iterator[Mutant]:
        while self.at < len(self.tokens) and self._now() != "module":
            self.at += 1
        self._to(";")
        while self.at < len(self.tokens) and self._now() != "endmodule":
            yield from self._item()

    def _item(self) -> Iterator[Mutant]:
        word = self._now()
        if word in ("always_ff", "always_comb"):
            self.at += 1
            yield from self._statement()
        elif word in ("assign", "wire"):
            first = self.at
            self._to(";")
            yield from self._continuous(first, self.at - 1)
        elif word in ("for", "if"):
            self.at += 1
            self._skip_group()
        elif word in ("begin", "end", "else", ":", "generate", "endgenerate"):
            self.at += 2 if word == ":" else 1
        elif word == "function":
            self._to("endfunction")
        else:
            first = self.at
            self._to(";")
            yield from self._instance(first, self.at - 1)

    def _statement(self) -> Iterator[Mutant]:
        word = self._now()
        if word == "@":
            self.at += 1
            self._skip_group()
            yield from self._statement()
        elif word == "begin":
            self.at += 1
            self._skip_label()
            while self._now() != "end":
                yield from self._statement()
            self.at += 1
            self._skip_label()
        elif word == "if":
            self.at += 1
            first = self.at
            self._skip_group()
            yield from self._expression(
                Unit("expression", self._start(first + 1), self._end(self.at - 2)), first + 1, self.at - 1, "condition"
            )
            yield from self._statement()
            if self._now() == "else":
                self.at += 1
                yield from self._statement()
        elif word == "for":
            self.at += 1
            self._skip_group()
            yield from self._statement()
        elif word in ("unique", "priority"):
            self.at += 1
            yield from self._statement()
        elif word == "case":
            self.at += 1
            self._skip_group()
            labels: set[str] = set()
            while self._now() != "endcase":
                label = self._skip_case_label()
                inside = list(self._statement())
                # After labels for every state no one comes to the default: what it does is all the same.
                if label != ["default"] or not any(labels >= set(self.states.get(name, "?")) for name in labels):
                    yield from inside
                labels.update(label)
            self.at += 1
        else:
            first = self.at
            self._to(";")
            yield from self._assignment(first, self.at - 1)

    def _assignment(self, first: int, semicolon: int) -> Iterator[Mutant]:
        texts = [token.text for token in self.tokens[first:semicolon]]
        if any(check in texts for check in CHECKS) or not texts:
            return
        at = self._top_level(first, semicolon, ASSIGNS)
        if at is None:
            return  # a declaration
        unit = Unit("statement", self._start(first), self._end(semicolon))
        yield from self._expression(unit, at + 1, semicolon, "value")
        yield self._mutant(unit, "dropped assignment", first, "")

    def _continuous(self, first: int, semicolon: int) -> Iterator[Mutant]:
        at = self._top_level(first, semicolon, ("=",))
        if at is not None and at + 1 < semicolon:
            yield from self._expression(
                Unit("expression", self._start(at + 1), self._end(semicolon - 1)), at + 1, semicolon, "value"
            )

    def _instance(self, first: int, semicolon: int) -> Iterator[Mutant]:
        """`MODULE #(...) NAME (.port(expression), ...);`: the ports, not the parameters."""
        texts = [token.text for token in self.tokens[first : first + 3]]
        if len(texts) < 3 or texts[0] not in sources.paths() or (texts[1] != "#" and texts[2] != "("):
            return  # a declaration, also one like `logic [(N + 7) / 8 - 1:0] name;`
        outputs = outputs_of(texts[0])
        at = first + 1
        if texts[1] == "#":
            at = self._matching(first + 2) + 1
        at += 1
        while at < semicolon:
            if self.tokens[at].text == "." and self.tokens[at + 2].text == "(":
                close = self._matching(at + 2)
                inside = self.tokens[at + 3 : close]
                if self.tokens[at + 1].text not in outputs and any(
                    token.kind in ("based", "fill", "number") or token.text in (*NEIGHBOURS, "!", "~") for token in inside
                ):  # else it is a name, of which its own statements are changed
                    yield from self._expression(
                        Unit("expression", self._start(at + 3), self._end(close - 1)), at + 3, close, "port"
                    )
                at = close
            at += 1

    # --- what can be wrong with one ---

    def _expression(self, unit: Unit, first: int, end: int, role: str) -> Iterator[Mutant]:
        frozen = self._frozen(first, end)
        for index in range(first, end):
            if index not in frozen:
                yield from self._token(unit, index, first)
        body = self.text[self._start(first) : self._end(end - 1)]
        head, tail = self.text[unit.start : self._start(first)], self.text[self._end(end - 1) : unit.end]
        if role == "condition":
            yield self._mutant(unit, "negated condition", first, f"!({body})")
        elif end > first + 1 or (self.tokens[first].kind == "name" and not CONSTANT.fullmatch(self.tokens[first].text)):
            # Not of a constant alone: one of the two would leave it as it is, the other make it one off, as above.
            if any(token.text == "'{" or token.text in self.states for token in self.tokens[first:end]):
                return
            yield self._mutant(unit, "stuck bit", first, f"{head}({body}) & ~1{tail}")
            yield self._mutant(unit, "stuck bit", first, f"{head}({body}) | 1{tail}")

    def _token(self, unit: Unit, index: int, first: int) -> Iterator[Mutant]:
        token = self.tokens[index]
        before = self.tokens[index - 1] if index > first else None
        after_operand = before is not None and (before.kind in ("name", "number", "based", "fill") or before.text in CLOSE)
        if token.kind == "mark":
            if after_operand and token.text in NEIGHBOURS:
                yield self._swap(unit, "operator", index, NEIGHBOURS[token.text])
            elif not after_operand and token.text in ("!", "~"):
                yield self._swap(unit, "operator", index, "")
            elif token.text == "?":
                start = self._condition_start(index, first)
                condition = self.text[self._start(start) : self._end(index - 1)]
                after = self.text[unit.start : self._start(start)] + f"!({condition})" + self.text[self._end(index - 1) : unit.end]
                yield self._mutant(unit, "negated condition", index, after)
        elif token.kind == "number":
            value = int(token.text.replace("_", ""))
            yield self._swap(unit, "constant", index, str(value + 1))
            if value:
                yield self._swap(unit, "constant", index, str(value - 1))
        elif token.kind == "based":
            for value in self._neighbours_of(token.text):
                yield self._swap(unit, "constant", index, value)
        elif token.kind == "fill":
            yield self._swap(unit, "constant", index, "'1" if token.text == "'0" else "'0")
        elif token.text in self.states:
            for state in self.states[token.text]:
                if state != token.text:
                    yield self._swap(unit, "state", index, state)
        elif token.kind == "name" and CONSTANT.fullmatch(token.text) and self._text(index + 1) != "[":
            yield self._swap(unit, "constant", index, f"({token.text} + 1)")
            yield self._swap(unit, "constant", index, f"({token.text} - 1)")

    @staticmethod
    def _neighbours_of(text: str) -> list[str]:
        width, base, digits = re.fullmatch(r"(\d*)'[sS]?([bdhoBDHO])(\w+)", text).groups()  # type: ignore[union-attr]
        value = int(digits.replace("_", ""), {"b": 2, "d": 10, "h": 16, "o": 8}[base.lower()])
        modulus = 1 << int(width or 32)
        found = {(value + 1) % modulus, (value - 1) % modulus} - {value}
        return [f"{width}'h{other:X}" for other in sorted(found)]

    def _frozen(self, first: int, end: int) -> set[int]:
        """Indices of tokens that must stay constants: widths, sizes of casts, counts of repetitions, ranges."""
        frozen: set[int] = set()
        for index in range(first, end):
            text = self.tokens[index].text
            if text == "[":
                close = self._matching(index)
                colon = self._top_level(index + 1, close, (":", "+:", "-:"))
                if colon is not None:
                    frozen |= set(range(index + 1 if self.tokens[colon].text == ":" else colon, close))
                if re.fullmatch(r"(\w+::)?[A-Z][A-Z0-9_]*", self.tokens[index - 1].text):
                    frozen |= set(range(index, close))
            elif text in CONSTANT_FUNCTIONS:
                frozen |= set(range(index, self._matching(index + 1) + 1))
            elif text == "'" and index + 1 < end and self.tokens[index + 1].text == "(":
                frozen |= set(range(self._operand_start(index - 1), index))
            elif (
                text == "{"
                and index + 2 < end
                and self.tokens[index + 2].text == "{"
                and self.tokens[index + 1].kind in ("number", "name")
            ):
                frozen.add(index + 1)
        return frozen

    # --- steps over the tokens ---

    def _now(self) -> str:
        return self.tokens[self.at].text

    def _text(self, index: int) -> str:
        return self.tokens[index].text if index < len(self.tokens) else ""

    def _start(self, index: int) -> int:
        return self.tokens[index].start

    def _end(self, index: int) -> int:
        return self.tokens[index].end

    def _to(self, mark: str) -> None:
        """After the next `mark` that is not in brackets."""
        depth = 0
        while True:
            text = self._now()
            depth += (text in OPEN) - (text in CLOSE)
            self.at += 1
            if depth == 0 and text == mark:
                return

    def _skip_group(self) -> None:
        if self._now() != "(":
            raise ValueError(f"'(' expected before {self._now()!r}")
        self.at = self._matching(self.at) + 1

    def _skip_label(self) -> None:
        if self._now() == ":":
            self.at += 2

    def _skip_case_label(self) -> list[str]:
        first = self.at
        while self._now() != ":":
            if self._now() == "default" and self.tokens[self.at + 1].text != ":":
                break
            self.at = self._matching(self.at) if self._now() in OPEN else self.at
            self.at += 1
        self.at += 1
        return [token.text for token in self.tokens[first : self.at] if token.kind == "name"]

    def _matching(self, index: int) -> int:
        depth = 0
        for place in range(index, len(self.tokens)):
            depth += (self.tokens[place].text in OPEN) - (self.tokens[place].text in CLOSE)
            if depth == 0:
                return place
        raise ValueError(f"no end of {self.tokens[index].text!r}")

    def _operand_start(self, index: int) -> int:
        """Of the operand that ends at `index`: a name, a number, a group, a call."""
        depth = 0
        while True:
            depth += (self.tokens[index].text in CLOSE) - (self.tokens[index].text in OPEN)
            if depth == 0:
                called = self.tokens[index].text == "(" and self.tokens[index - 1].text in CONSTANT_FUNCTIONS
                return index - 1 if called else index
            index -= 1

    def _condition_start(self, question: int, first: int) -> int:
        depth = 0
        for index in range(question - 1, first - 1, -1):
            text = self.tokens[index].text
            if depth == 0 and (text in OPEN or text in (",", "?", ":")):
                return index + 1
            depth += (text in CLOSE) - (text in OPEN)
        return first

    def _top_level(self, first: int, end: int, marks: tuple[str, ...]) -> int | None:
        depth = 0
        for index in range(first, end):
            text = self.tokens[index].text
            if depth == 0 and text in marks:
                return index
            depth += (text in OPEN) - (text in CLOSE)
        return None

    def _swap(self, unit: Unit, kind: str, index: int, replacement: str) -> Mutant:
        token = self.tokens[index]
        after = self.text[unit.start : token.start] + replacement + self.text[token.end : unit.end]
        return self._mutant(unit, kind, index, after)

    def _mutant(self, unit: Unit, kind: str, index: int, after: str) -> Mutant:
        line = self.text.count("\n", 0, self.tokens[index].start) + 1
        return Mutant(unit, kind, line, self.text[unit.start : unit.end], after)
