# SPDX-License-Identifier: Apache-2.0
"""How well each ring finder does against truth, on seeded Monte Carlo events. docs/physics.md says what the words mean."""

from nanet.physics.study import Study, run

__all__ = ["Study", "run"]
