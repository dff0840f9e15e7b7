# SPDX-License-Identifier: Apache-2.0
"""The keys of what the command line itself puts together: `nanet tune`, `validate` and `version`."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import Base, Config
from nanet.tune.keys import KnobKeys, StepKeys


class TuneResult(Base):
    """What `nanet tune` writes."""

    mode: Annotated[str, "`plan`, `apply`, `undo`"]
    undo_file: Annotated[str, "where the values from before are kept"]
    knobs: Annotated[list[KnobKeys], "what was found; empty list with `undo`"]
    steps: Annotated[list[StepKeys], "what was written; empty with `plan`"]


class GpuCode(TypedDict):
    """The GPU code of a build."""

    cuda_version: Annotated[int, "1000 major + 10 minor"]
    architectures: Annotated[str, "that it was compiled for"]


class BuildKeys(TypedDict):
    """A build."""

    version: Annotated[str, "of the native module"]
    commit: Annotated[str, "of the source tree; `unknown` where there was none"]
    compiler: Annotated[str, "name and number"]
    build_type: Annotated[str, "CMake's, such as Release"]
    simd: Annotated[str, "instruction set in use"]
    back_ends: Annotated[dict[str, bool], "by name, whether it is built in"]
    gpu_code: Annotated[GpuCode | None, "of the GPU code; null without"]


class VersionResult(Base):
    """What `nanet version` writes."""

    build: Annotated[BuildKeys, "of the native module that is loaded"]


class ValidateResult(Base):
    """What `nanet validate` writes of any configuration."""

    valid: Annotated[bool, "true or false; if it is false, only this and `problems` are there"]
    problems: Annotated[list[str], "a line each"]


class ValidResult(ValidateResult):
    """What `nanet validate` writes of a valid one."""

    config: Annotated[Config, "with every default filled in"]
    conditions: Annotated[list[str], "their names"]
    truth_table: Annotated[
        list[dict[str, int | bool | list[int]]],
        "rows: rings of each kind, range of `multiplicity`, and the answer of each condition",
    ]
