# SPDX-License-Identifier: Apache-2.0
"""The machine that nanet runs on: its cores, memory, GPUs, ports, network namespaces, signals, privileges and processes."""
