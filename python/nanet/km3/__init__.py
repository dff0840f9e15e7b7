# SPDX-License-Identifier: Apache-2.0
"""The chain of KM3NeT between the floors of a tower and what judges them: slow control, units, runs, alarms, positions. docs/design/km3-server.md"""
