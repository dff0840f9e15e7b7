# SPDX-License-Identifier: Apache-2.0
"""rdma_port: three nodes put, get and tell each other of it; after each test every byte of every memory is compared, and every completion."""

from typing import Any

import cocotb
from common import rdma
from common.bench import SHORT
from rdma_bench import NODES, READ_ONLY, READ_WRITE, RdmaBench, started

SIZES = (1, 2, 15, 16, 17, 31, 33, 64, 255, 256, 4064, 4065, 4080, 4081, 4096, 8159, 8161)


async def traffic(bench: RdmaBench, messages: int, largest: int = 9000) -> None:
    """Messages of any kind between any nodes, from and to any byte."""
    rng = bench.rng
    for _ in range(messages):
        node, to = rng.randrange(NODES), rng.randrange(NODES)
        size = min(rng.choice([rng.choice(SIZES), rng.randrange(1, 100), rng.randrange(1, largest)]), largest)
        kind = rng.random()
        if kind < 0.2:
            await bench.event(node, to)
        elif kind < 0.6:
            await bench.put(node, to, size)
        else:
            await bench.get(node, to, size)


@cocotb.test
async def messages_land_whole(dut: Any) -> None:
    bench = await started(dut)
    dut.pause_rate.value = 40
    await bench.put(0, 1, 65536)
    await traffic(bench, 40 if SHORT else 120)
    await bench.quiet()
    await bench.check()
    assert set(bench.counts()) == {"landed", "event", "get"}, bench.counts()
