# SPDX-License-Identifier: Apache-2.0
"""Boards, engine and L0 trigger processor against each other on one machine: what demo, bench and soak share."""
