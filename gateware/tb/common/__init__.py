# SPDX-License-Identifier: Apache-2.0
"""Helpers of all benches: clock and reset, streams with random pauses, scoreboard, counters, frames and their faults."""
