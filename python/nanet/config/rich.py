# SPDX-License-Identifier: Apache-2.0
"""How rings are found and judged: the finder and its cuts, the cuts on a ring, kinds by radius, conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import field_validator, model_validator

from nanet.config import conditions
from nanet.config.base import Model, Name, problem, setting
from nanet.config.components import Cuts, Finder, MathFinder
from nanet.config.conditions import Row
from nanet.config.forms import Channels

__all__ = ["Condition", "Cuts", "Decision", "Mask"]

RANGE = ("radius_min_mm", "radius_max_mm", "center_max_mm")  # of rings; in old configurations of a finder
UNUSED = ("triplet_radius_min_mm", "triplet_radius_max_mm")


class Condition(Model):
    """A question about an event's rings, answered by one bit of the primitive."""

    name: Name = setting(..., "Name in reports and in the truth table")
    when: str = setting(
        ...,
        "Expression over rings, electrons, muons, pions, kaons, others and multiplicity, such as: rings >= 2 and electrons == 1",
    )

    @field_validator("when")
    @classmethod
    def _readable(cls, text: str) -> str:
        try:
            conditions.check(text)
        except conditions.ConditionError as error:
            raise problem(error.what, error.why, error.suggestion) from None
        return text


class Mask(Model):
    """Photomultipliers whose hits are left out before rings are looked for; they are counted as hits_masked."""

    channels: Channels = setting(
        (), "Channels that are left out: numbers, and ranges such as 100-107",
        too_big="rings through these photomultipliers lose hits",
    )  # fmt: skip
    file: str | None = setting(
        None, "File of more of them, a number or a range a line, with comments after #; null: none", min_length=1
    )
    hot: bool = setting(
        False,
        "Mask hot channels too when they are found during the run: those that fire more than 4 times as often as their neighbours, by more"
        " than chance explains. Not on a GPU",
    )

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, said: Any) -> Any:
        """With the file's channels among the others: results, and whoever reads them, then know what was left out."""
        if not isinstance(said, dict) or not isinstance(name := said.get("file"), str):
            return said
        try:
            lines = Path(name).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise problem(f"mask file {name} cannot be read", str(why).lower(), "give the path of a file of channels") from None
        listed = [text for line in lines if (text := line.partition("#")[0].strip())]
        return said | {"channels": [*said.get("channels", ()), *listed]}


class Decision(Model):
    """How an event's hits become an answer."""

    mask: Mask = setting(Mask, "Photomultipliers whose hits are left out")
    finder: Finder = setting(MathFinder, "Which ring finder, and its cuts")
    cuts: Cuts = setting(Cuts, "When a found ring counts, and as what")
    conditions: tuple[Condition, ...] = setting(
        (), "Up to four conditions; their answers replace the radius class in the primitive (bits 10 to 13)",
        max_length=conditions.CONDITIONS_MAX,
    )  # fmt: skip

    @model_validator(mode="after")
    def _conditions(self) -> Decision:
        names = [condition.name for condition in self.conditions]
        for name in names:
            if names.count(name) > 1:
                raise problem(f"condition {name} appears {names.count(name)} times", "each must be unique", "rename one")
        for condition in self.conditions:
            for kind in ("muons", "pions", "kaons"):
                if self.cuts.momentum_gev is None and kind in conditions.names_in(condition.when):
                    raise problem(
                        f"condition {condition.name} asks for {kind}",
                        "without a momentum hypothesis only electrons are identified",
                        "set cuts.momentum_gev",
                    )
        return self

    @model_validator(mode="after")
    def _range(self) -> Decision:
        """A limit that an old configuration gives to the finder is one of the cuts, unless they say it themselves."""
        said = {name: value for name in RANGE if (value := getattr(self.finder, name, None)) is not None}
        moved = {name: value for name, value in said.items() if name not in self.cuts.model_fields_set}
        if moved:
            whole = self.cuts.model_dump() | moved
            object.__setattr__(self, "cuts", Cuts.model_validate(whole))  # frozen, and not given to anyone yet
        return self

    def old_names(self) -> list[str]:
        """A line for each setting that has another name now."""
        lines = []
        for name in (*RANGE, *UNUSED):
            if getattr(self.finder, name, None) is not None:
                new = name.removeprefix("triplet_")
                lines.append(f"finder.{name} is an old name (one range holds for every finder) write cuts.{new}")
        return lines

    def truth_table(self) -> list[Row]:
        """The answers of all conditions for every possible event."""
        kinds = ("electrons",) if self.cuts.momentum_gev is None else ("electrons", "muons", "pions", "kaons")
        return conditions.truth_table([condition.when for condition in self.conditions], kinds=kinds)
