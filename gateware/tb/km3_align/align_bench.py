# SPDX-License-Identifier: Apache-2.0
"""What the tests of km3_align, km3_phase and km3_tx_align have in common."""

from typing import Any

from common.bench import PARAMETERS

SLIDE_BITS = PARAMETERS.get("SLIDE_BITS", 1)
WORD = 20
STEPS = 40
LOCK_WORDS = 450
COMMAS, ATTEMPTS, SEARCH_CYCLES = 8, 2, 300  # of km3_align, whose GAP_CYCLES are as many
BAD_COST, BAD_LIMIT = 4, 16
TARGET, GAP_CYCLES, SETTLE_CYCLES, TRIES = STEPS // 2, 8, 2 * STEPS + 8, 4  # of km3_tx_align
PULSES = ("slide", "restart", "lost", "error_place", "tx_slide", "error_phase", "failed", "error_value")
READ_PULSES = ("read_slide", "read_error", "read_failed")
INPUTS = ("s_bits", "says_bad", "a_toggle", "b_toggle", "read_valid", "read_phase", "forget", "value_valid", "value")


def all_at_rest(dut: Any) -> None:
    for name in INPUTS:
        getattr(dut, name).value = 0
