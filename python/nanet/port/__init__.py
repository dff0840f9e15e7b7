# SPDX-License-Identifier: Apache-2.0
"""Datagrams for programs: buffers of many packets, seen without a copy."""
