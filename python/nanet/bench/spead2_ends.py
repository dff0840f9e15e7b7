# SPDX-License-Identifier: Apache-2.0
"""Both ends of a run of spead2, each a process in its namespace: `receive ADDRESS PORT HEAP PACKET CORE` and
`send ADDRESS PORT HEAP PACKET CORE RATE SECONDS`; and `about`, which spead2 that is.

Heaps are large (1 MiB), so that the packets are handled by the library's C++ thread on CORE and Python sees a thousand heaps a second at
most. Each end writes one line of JSON when it has done its work; the receiver writes `ready` when it listens and ends when the stream does,
or on SIGTERM.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from typing import TypedDict

import numpy as np

RECEIVE_BUFFER_BYTES = 1 << 26  # as ours
HEAPS_OPEN = 8
HEAPS_A_CALL = 8  # of the sender: Python is out of the way for 8 MiB
LONGER_MAX = 2.0  # than asked for: a sender that needs more has not kept its rate, and sends no more
BURST_BYTES = (
    1 << 20
)  # after which the sender looks whether it is ahead of its rate; its default of 64 KiB makes it sleep every 56 packets


UDP_GRO = 104  # linux/udp.h; Python's socket module has no name for it


class About(TypedDict):
    """A build of spead2."""

    version: str
    super_packets: bool  # its receiver asks the kernel for packets put together (UDP_GRO), which PyPI's wheels cannot


class ReceivedHeaps(TypedDict):
    """What the receiver says at its end."""

    heaps: int
    packets: int
    incomplete_heaps: int


class SentHeaps(TypedDict):
    """What the sender says at its end."""

    heaps: int
    bytes: int
    elapsed_s: float


def about() -> About:
    """By the socket that a receiver of this build opens."""
    import spead2
    import spead2.recv

    from nanet.machine.ports import unused_port

    stream = spead2.recv.Stream(spead2.ThreadPool(1))
    stream.add_udp_reader(unused_port(), bind_hostname="127.0.0.1")
    asked = False
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(number))) as one:
            asked = asked or bool(one.getsockopt(socket.IPPROTO_UDP, UDP_GRO))
    stream.stop()
    return {"version": spead2.__version__, "super_packets": asked}


def receive(address: str, port: int, heap_bytes: int, packet_bytes: int, core: int) -> ReceivedHeaps:
    """Takes heaps until the stream ends: how many, and packets, were received."""
    import spead2
    import spead2.recv

    logging.disable(logging.WARNING)  # a line for every heap that lost a packet
    pool = spead2.MemoryPool(heap_bytes, heap_bytes + 4096, 4 * HEAPS_OPEN, 4 * HEAPS_OPEN)
    stream = spead2.recv.Stream(
        spead2.ThreadPool(1, [core] if core >= 0 else []),
        spead2.recv.StreamConfig(max_heaps=HEAPS_OPEN, memory_allocator=pool),
        spead2.recv.RingStreamConfig(heaps=HEAPS_OPEN),
    )
    stream.add_udp_reader(port, max_size=packet_bytes, buffer_size=RECEIVE_BUFFER_BYTES, bind_hostname=address)
    signal.signal(signal.SIGTERM, lambda number, frame: stream.stop())
    print("ready", flush=True)
    whole = sum(1 for heap in stream if not isinstance(heap, spead2.recv.IncompleteHeap))
    stats = stream.stats
    return {"heaps": whole, "packets": stats["packets"], "incomplete_heaps": stats["incomplete_heaps_evicted"]}


def send(
    address: str, port: int, heap_bytes: int, packet_bytes: int, core: int, packets_per_s: float, duration_s: float
) -> SentHeaps:
    """Sends heaps at a rate of packets for a time, or for LONGER_MAX times that: how many, and how long it took."""
    import spead2
    import spead2.send

    config = spead2.send.StreamConfig(
        rate=packets_per_s * packet_bytes, max_packet_size=packet_bytes, max_heaps=2 * HEAPS_A_CALL, burst_size=BURST_BYTES
    )
    stream = spead2.send.UdpStream(spead2.ThreadPool(1, [core] if core >= 0 else []), [(address, port)], config, 1 << 20)
    items = spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, 48, 0))
    items.add_item(
        id=None, name="data", description="a heap", shape=(heap_bytes,), dtype=np.uint8, value=np.zeros(heap_bytes, np.uint8)
    )
    count = max(1, round(packets_per_s * duration_s * packet_bytes / heap_bytes))
    start, sent, sent_bytes = time.monotonic(), 0, 0
    while sent < count and time.monotonic() < start + LONGER_MAX * duration_s:
        heaps = [items.get_heap(data="all", descriptors="none") for _ in range(min(HEAPS_A_CALL, count - sent))]
        sent_bytes += stream.send_heaps([spead2.send.HeapReference(heap) for heap in heaps], spead2.send.GroupMode.SERIAL)
        sent += len(heaps)
    elapsed_s = time.monotonic() - start
    time.sleep(0.2)  # so that the end of the stream does not meet a full buffer
    stream.send_heap(items.get_end())
    return {"heaps": sent, "bytes": sent_bytes, "elapsed_s": elapsed_s}


def main(arguments: list[str]) -> None:
    """See the head of this file."""
    if arguments == ["about"]:
        print(json.dumps(about()), flush=True)
        return
    role, address, *numbers = arguments
    port, heap_bytes, packet_bytes, core = (int(number) for number in numbers[:4])
    if role == "receive":
        print(json.dumps(receive(address, port, heap_bytes, packet_bytes, core)), flush=True)
    else:
        print(json.dumps(send(address, port, heap_bytes, packet_bytes, core, float(numbers[4]), float(numbers[5]))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
