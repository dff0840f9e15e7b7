# SPDX-License-Identifier: Apache-2.0
"""The RICH for programs: rings of many events, and where its photomultipliers are."""
