# SPDX-License-Identifier: Apache-2.0
"""Registers over AXI4-Lite, one access at a time."""

from common.bench import Bench


class Registers:
    def __init__(self, bench: Bench, prefix: str = "s_axil") -> None:
        self.bench, self.prefix = bench, prefix
        for name in ("awvalid", "wvalid", "arvalid"):
            self._signal(name).value = 0

    def _signal(self, name: str):  # type: ignore[no-untyped-def]
        return getattr(self.bench.dut, f"{self.prefix}_{name}")

    async def write(self, address: int, value: int) -> None:
        self._signal("awaddr").value, self._signal("wdata").value = address, value
        left = {"aw": self._signal("awready"), "w": self._signal("wready")}
        for name in left:
            self._signal(f"{name}valid").value = 1
        for _ in range(100):
            await self.bench.wait(1)
            for name in [name for name, ready in left.items() if ready.value == 1]:
                self._signal(f"{name}valid").value = 0
                del left[name]
            if self._signal("bvalid").value == 1:
                assert self._signal("bresp").value == 0, f"register {address:#x} cannot be written"
                return
        raise AssertionError(f"register {address:#x}: no answer")

    async def read(self, address: int) -> int:
        self._signal("araddr").value = address
        self._signal("arvalid").value = 1
        for _ in range(100):
            await self.bench.wait(1)
            if self._signal("arready").value == 1:
                self._signal("arvalid").value = 0
            if self._signal("rvalid").value == 1:
                assert self._signal("rresp").value == 0, f"register {address:#x} cannot be read"
                return int(self._signal("rdata").value)
        raise AssertionError(f"register {address:#x}: no answer")
