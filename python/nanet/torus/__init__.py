# SPDX-License-Identifier: Apache-2.0
"""The APEnet+ torus of gateware/: load curves of verilated nodes, beside those of a simulator that others know."""
