# SPDX-License-Identifier: Apache-2.0
"""Declared packet formats: packets checked, shown, made, and given to Wireshark. The language is docs/declared-formats.md."""
