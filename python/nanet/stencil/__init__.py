# SPDX-License-Identifier: Apache-2.0
"""Five-point Jacobi sweeps over an array: on the cores of this machine, on its GPUs, by processes that share a field.

For programs: `jacobi` on all cores, here; `nanet.stencil.gpu.jacobi` on GPUs.
"""

from nanet.stencil.cpu import NORM, Swept, jacobi

__all__ = ["NORM", "Swept", "jacobi"]
