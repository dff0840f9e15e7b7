# SPDX-License-Identifier: Apache-2.0
"""A simulated torus of APEnet+ nodes: remote memory access between nodes of gateware, cycle by cycle, from Python.

    torus = nanet.torus.Torus("2x2x1")
    rows = torus.allocate(0, (4, 100), np.float64)     # memory of node 0, zeros
    halo = torus.allocate(3, (4, 100), np.float64)
    rows[:] = 1
    torus.put(rows, torus.share(halo, write=True))
    torus.settle()
    print(halo.sum(), torus.take(3), torus.cycle)

Router, links and network interface are the RTL of gateware/rtl, verilated; docs/design/apenet-rdma.md says what they do. It needs a nanet that was built with
a Verilator (`make links` in a clone); without one, Torus raises SetupError.
"""

from nanet.torus.serve import ServedTorus
from nanet.torus.torus import DIRECTIONS, MESSAGE_BYTES_MAX, Completion, NeighbourState, Region, Torus, native_torus

__all__ = ["DIRECTIONS", "MESSAGE_BYTES_MAX", "Completion", "NeighbourState", "Region", "ServedTorus", "Torus", "native_torus"]
