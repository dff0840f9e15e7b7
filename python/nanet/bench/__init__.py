# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: rate, latency, rings. Each gives a result (docs/json.md) and rows for the one CSV that figures are made from."""
