# SPDX-License-Identifier: Apache-2.0
"""node_torus without a torus: registers, memory and interrupt are the host's alone, whatever anyone says in any cycle. With one it is in node_ape's bench."""

from typing import Any

import cocotb
from common.bench import SHORT, Bench, random_numbers

# Of each group what it is on either side, what goes on to the second, and what comes back from it.
GROUPS = (
    ("s_axil_", "host_", ("awvalid", "wvalid", "bready", "arvalid", "rready"), ("awready", "wready", "arready")),
    ("s_axil_", "host_", (), ("bresp", "bvalid", "rdata", "rresp", "rvalid")),
    ("host_write_", "mem_write_", ("valid", "first", "last", "gpu", "address", "bytes", "data", "keep"), ("ready",)),
    ("host_read_", "mem_read_", ("valid", "address", "bytes", "tag", "gpu"), ("ready",)),
    ("host_answer_", "mem_answer_", (), ("valid", "tag")),
    ("host_", "", ("irq",), ()),
)
WIRES = {to + name: of + name for of, to, on, _ in GROUPS for name in on} | {
    of + name: to + name for of, to, _, back in GROUPS for name in back
}
NOTHING = (
    "ape_tx_valid",
    "ape_tx_data",
    *(f"payload_{name}" for name in ("tdata", "tkeep", "tvalid", "tlast", "meta", "destination")),
)
UNSEEN = (
    *("now_ns", "now_cycles", "s_axil_awaddr", "s_axil_wdata", "s_axil_wstrb", "s_axil_araddr", "pages", "ape_link_up"),
    *("ape_tx_ready", "ape_rx_valid", "ape_rx_data", "payload_tready", "payload_forwarded", "payload_no_route"),
    *("mem_answer_data", "mem_answer_last", "mem_answer_error"),
)


@cocotb.test
async def it_is_wires(dut: Any) -> None:
    rng = random_numbers()
    bench = Bench(dut)
    inputs = {name: getattr(dut, name) for name in (*WIRES.values(), *UNSEEN)}
    for _ in range(200 if SHORT else 2000):
        shown = {name: rng.getrandbits(len(signal)) for name, signal in inputs.items()}
        for name, value in shown.items():
            inputs[name].value = value
        dut.rst.value = rng.randrange(2)
        await bench.wait(2)
        assert {name: int(getattr(dut, name).value) for name in WIRES} == {name: shown[of] for name, of in WIRES.items()}
        assert all(getattr(dut, name).value == 0 for name in NOTHING)
