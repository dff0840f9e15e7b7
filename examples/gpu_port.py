# SPDX-License-Identifier: Apache-2.0
"""Your own processor on a GPU: a CuPy kernel a completion counts hits by photomultiplier, in the buffers themselves.

Needs a GPU, CuPy, and nanet with GPU code (make cuda). Try it with: nanet emulate tel62 --answers ''
"""

import cupy
import nanet
from nanet import wire

count_hits = cupy.RawKernel(
    r"""
extern "C" __global__ void count_hits(const unsigned char* buffer, const uint2* index, unsigned int* counts) {
  const unsigned char* packet = buffer + index[blockIdx.x].x;  // MGP padded: a block a packet, a thread a place for a hit
  const unsigned event = threadIdx.x / 32, hit = threadIdx.x % 32;
  if (event >= packet[3]) return;  // event_count
  const unsigned char* header = packet + 16 + event * 72;
  if (hit >= header[5]) return;  // hit_count
  const unsigned channel = reinterpret_cast<const unsigned short*>(header + 8)[hit] & 2047;
  atomicAdd(&counts[channel], 1u);
}""",
    "count_hits",
)

counts = cupy.zeros(wire.BOARDS_MAX * wire.CHANNELS_PER_BOARD, cupy.uint32)
events = 0
with nanet.open("udp://127.0.0.1:6200", protocol="mgp", memory="host_pinned") as port:
    print("ready", flush=True)
    for completion in port.completions(timeout_s=5.0):  # each is given back when the GPU is done with it
        buffer, index = cupy.asarray(completion.device_buffer), cupy.asarray(completion.device_index)  # no copy
        count_hits((completion.packet_count,), (wire.MGP_EVENTS_MAX * wire.MGP_HITS_MAX,), (buffer, index, counts))
        events += completion.event_count

print(f"{events} events\nboard      hits  an event  silent PMs  loudest channel")
for board, channels in enumerate(counts.get().reshape(wire.BOARDS_MAX, -1)):
    hits, silent = int(channels.sum()), int((channels[:488] == 0).sum())  # a board has 488 photomultipliers
    if hits:
        loudest = board * wire.CHANNELS_PER_BOARD + int(channels.argmax())
        print(f"{board:5} {hits:9} {hits / events:9.2f} {silent:11} {loudest:16}")
