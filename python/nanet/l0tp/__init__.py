# SPDX-License-Identifier: Apache-2.0
"""The L0 trigger processor: its configuration (`config`) and a plain model of its rules (`model`) that the tests hold it against."""
