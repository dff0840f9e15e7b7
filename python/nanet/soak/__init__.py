# SPDX-License-Identifier: Apache-2.0
"""Hours of boards against an engine, with faults of packets and of the machine."""
