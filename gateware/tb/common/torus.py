# SPDX-License-Identifier: Apache-2.0
"""Where a packet goes in a torus, a hop at a time, as docs/design/torus.md says: the benches' reference, written from that page."""

from dataclasses import dataclass

Place = tuple[int, int, int]
LINK_PORTS = 6  # those of x+1, x-1, y+1, y-1, z+1, z-1; from there on local ones
PAYLOAD_BYTES_MAX = 4096


@dataclass(frozen=True)
class Hop:
    """port: by which it leaves, on which channel and with how many hops. drop: the name of its end, if it leaves by none."""

    port: int = -1
    vc: int = 0
    hops: int = 0
    drop: str = ""


@dataclass(frozen=True)
class Node:
    at: Place
    shape: Place
    links: int  # a bit for each link that there is
    local_ports: int

    def hop(self, to: Place, to_port: int, came: int, came_vc: int, hops: int = 0, size_bytes: int = 0) -> Hop:
        """came: the port by which the packet came."""
        local = came >= LINK_PORTS
        if local:
            hops = 0
        if size_bytes > PAYLOAD_BYTES_MAX:
            return Hop(drop="length")
        if any(t >= k for t, k in zip(to, self.shape, strict=True)):
            return Hop(drop="outside")
        left = [d for d in range(3) if to[d] != self.at[d]]
        if left and not local and left[0] < came // 2:
            return Hop(drop="turn")
        if not left:
            return Hop(LINK_PORTS + to_port, 0, hops) if to_port < self.local_ports else Hop(drop="port")
        d = left[0]
        straight = not local and came // 2 == d
        step = (1 if came % 2 else -1) if straight else self.enters(d, to[d])
        port = 2 * d + (step < 0)
        if not self.links >> port & 1:
            return Hop(drop="port")
        if hops >= sum(k // 2 for k in self.shape):
            return Hop(drop="hops")
        wraps = not 0 <= self.at[d] + step < self.shape[d]
        return Hop(port, int(wraps or (straight and came_vc == 1)), hops + 1)

    def enters(self, d: int, target: int) -> int:
        """The direction in which a packet goes round a ring that it enters here."""
        k = self.shape[d]
        if k == 2:
            return 1 if self.links >> 2 * d & 1 else -1
        up, down = (target - self.at[d]) % k, (self.at[d] - target) % k
        if up == down:
            return -1 if sum(self.at) % 2 else 1
        return 1 if up < down else -1

    def neighbour(self, port: int) -> Place:
        d, step = port // 2, -1 if port % 2 else 1
        place = list(self.at)
        place[d] = (place[d] + step) % self.shape[d]
        return place[0], place[1], place[2]


def walk(source: Place, to: Place, shape: Place) -> list[tuple[Place, int, int, int]]:
    """The channels that a packet takes from node to node: the node that sends, dimension, direction, virtual channel."""
    channels: list[tuple[Place, int, int, int]] = []
    at, came, vc, hops = source, LINK_PORTS, 0, 0
    while True:
        node = Node(at, shape, 0b111111, 1)
        hop = node.hop(to, 0, came, vc, hops)
        assert not hop.drop, (source, to, shape, hop)
        if hop.port >= LINK_PORTS:
            return channels
        channels.append((at, hop.port // 2, -1 if hop.port % 2 else 1, hop.vc))
        at, came, vc, hops = node.neighbour(hop.port), hop.port ^ 1, hop.vc, hop.hops
