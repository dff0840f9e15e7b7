# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet torus` and `nanet bench torus` write, and of what their program says."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import ELSEWHERE, Base, Counts


class PointLatency(TypedDict):
    """Cycles from the birth of a packet, source queue included, to its last word."""

    mean: Annotated[float, "from the birth of a packet, its wait in the source included, to its last word [cycles]"]
    min: Annotated[int, "the least"]
    p50: Annotated[int, "half of the packets"]
    p99: Annotated[int, "99 % of them"]
    max: Annotated[int, "the most"]


class Books(TypedDict):
    """Of all packets of a run, once nothing is on its way."""

    injected: Annotated[int, "packets that went into the torus, each of which is in what follows"]
    good: Annotated[int, "came, every word, the order of their sender and the number of hops compared"]
    flagged: Annotated[int, "came, and say themselves that they are bad"]
    wrong: Annotated[int, "came and are not what was sent"]
    losses: Annotated[
        Counts, "by the names of docs/design/torus.md and apelink.md, those that are not 0; `in_wires`: in a cable that was cut"
    ]
    is_balanced: Annotated[bool, "whether `injected` is the sum of all others"]


class Point(TypedDict):
    """A load."""

    pattern: Annotated[str, "where each node sends: uniform, neighbour, tornado, complement, transpose, rotate, hot_spot"]
    shape: Annotated[str, "nodes of each dimension"]
    payload_bytes: Annotated[int, "of every packet"]
    wire_cycles: Annotated[int, "that a word is on a cable, with its lanes, each way"]
    seed: Annotated[int, "of the random numbers"]
    window_cycles: Annotated[int, "that were measured, after as long a warm-up as the command says"]
    offered: Annotated[float, "words a node and cycle that its source makes, header and footer included"]
    accepted: Annotated[float, "words a node and cycle that came in the window"]
    accepted_worst_node: Annotated[float, "the same of the node to which fewest came"]
    is_saturated: Annotated[
        bool, "sources outrun the torus: less than 95 % of what is offered came, or not all came long after the window"
    ]
    latency_cycles: Annotated[
        PointLatency | None,
        "of packets that were born in the window and came; null: none did. Beyond saturation it says only how long was measured",
    ]
    mean_hops: Annotated[float, "links that a packet went over"]
    books: Annotated[Books, "of all packets of the run"]
    link_words: Annotated[
        list[list[float]], "of each node, words a cycle that it sent to x+1, x-1, y+1, y-1, z+1, z-1; control words included"
    ]
    node_cycles: Annotated[int, "simulated, of all nodes"]
    wall_s: Annotated[float, "that it took"]
    problems: Annotated[list[str], "what is not as it must be, a sentence each; empty when all is"]


class Reference(TypedDict):
    """BookSim 2 with the same pattern, shape and packets."""

    pattern: Annotated[str, "as `curves[]`"]
    shape: Annotated[str, "as `curves[]`"]
    latency_cycles: Annotated[list[list[float]], "[offered, cycles] of BookSim 2, whose channels are 2 cycles long"]
    accepted_at_full_load: Annotated[float, "words a node and cycle at an offered load of 1"]


class TorusResult(Base):
    """What `nanet torus curves` and `nanet torus patterns` write."""

    threads: Annotated[int, "of the simulation"]
    cycles_per_wall_second: Annotated[float, "simulated, of one node, by all threads together; of the machine, not of the node"]
    curves: Annotated[list[Point], "a load each"]
    reference: Annotated[list[Reference], "of these patterns and shapes, where there is one"]
    problems: Annotated[list[str], "of all loads"]


class Fault(TypedDict):
    """A cable that is cut under load and comes back."""

    node: Annotated[int, "at one end of the cable"]
    port: Annotated[int, "of that node: 0 to 5 are x+1, x-1, y+1, y-1, z+1, z-1"]
    silent_cycles: Annotated[
        int, "until both ends knew that the other is silent, from the first cycle in which no word could come; 0: one did not"
    ]
    packets_after: Annotated[int, "good ones that came over the cable after it was back, in both directions"]
    false_alarms: Annotated[int, "other links that took their neighbour for silent"]
    books: Annotated[Books, ELSEWHERE, "as `curves[].books` of `nanet torus curves`"]
    problems: Annotated[list[str], "what is not as it must be, a sentence each"]


class FaultsResult(Base):
    """What `nanet torus faults` writes."""

    threads: Annotated[int, "of the simulation"]
    shape: Annotated[str, "nodes of each dimension"]
    offered: Annotated[float, "words a node and cycle, uniform"]
    faults: Annotated[list[Fault], "a cable each"]
    problems: Annotated[list[str], "of all of them"]


class WatchedNeighbour(TypedDict):
    """What a node knows of a neighbour."""

    direction: Annotated[str, "the link: `x+` to `z-`"]
    text: Annotated[str, "`ok`, `silent` (nothing is heard of it), `host silent`, `says N`; `-`: there is no link"]
    after_cycles: Annotated[int | None, "from the faults until this was known; null: all is well, or there is no link"]


class WatchedNode(TypedDict):
    """A node, and what it knows."""

    place: Annotated[list[int], "x, y and z"]
    itself: Annotated[str, "what its host and its logic know of each other: `ok`, `host silent`, `says N`, `logic silent`"]
    neighbours: Annotated[list[WatchedNeighbour], "at each link"]
    interrupts: Annotated[int, "by which its host was told of changes, since the torus began"]
    changes: Annotated[
        Counts, "how often it was told then of each link, `x+` to `z-`, and of what `node` itself tells its neighbours"
    ]


class WatchResult(Base):
    """What `nanet torus watch` writes."""

    shape: Annotated[str, "nodes of each dimension"]
    wire_cycles: Annotated[int, "that a word is on a cable, with its lanes, each way"]
    beat_cycles: Annotated[int, "between two beats of a host"]
    period_cycles: Annotated[int, "without a beat after which a host is silent"]
    cycles: Annotated[int, "that were simulated after the faults"]
    nodes: Annotated[list[WatchedNode], "by number"]


class ServedPuts(TypedDict):
    """From the cycle in which the simulation takes a PUT from its host to that in which its completion is made."""

    count: Annotated[int, "that came"]
    min: Annotated[int, "the least [cycles]; 0 without any"]
    mean: Annotated[float, "[cycles]"]
    max: Annotated[int, "the most [cycles]"]


class ServedBooks(TypedDict):
    """Of all nodes together, from their registers."""

    injected: Annotated[int, "packets that nodes gave to their routers, each of which is in what follows"]
    delivered: Annotated[int, "that did what they were for: written, told, asked"]
    losses: Annotated[Counts, "by name, those that are not 0: of messages, and `link_...`, `router_...`"]
    unexplained: Annotated[int, "in flight, or in a cable that is cut; else 0"]


class ServedRegisters(TypedDict):
    """What a node counts in its registers, as its host reads them."""

    messages: Annotated[Counts, "[of the node's messages](gateware-registers.md#ape_countcount29)"]
    links: Annotated[dict[str, Counts], "[of each link](gateware-registers.md#link_count6count10), `x+` to `z-`"]
    router: Annotated[
        dict[str, Counts],
        "[of what came to its router](gateware-registers.md#router_count7count6) by a link, or from the `node` itself: each drop by its reason",
    ]


class ServeResult(Base):
    """What `nanet torus serve` writes."""

    shape: Annotated[str, "nodes of each dimension"]
    wire_cycles: Annotated[int, "that a word is on a cable, with its lanes, each way"]
    threads: Annotated[int, "that simulated"]
    cycles: Annotated[int, "that were simulated; time stands still without traffic"]
    busy_s: Annotated[float, "that they took [s]"]
    puts: Annotated[ServedPuts, "how long PUTs took"]
    nodes: Annotated[list[Counts], "what each node counted, by number: [names](design/apenet-rdma.md#what-becomes-of-a-packet)"]
    registers: Annotated[list[ServedRegisters], "the same and more by node, read in its registers at the end"]
    books: Annotated[ServedBooks, "of all nodes together"]


class Link(TypedDict):
    """A link whose sender always has a packet."""

    efficiency_4096: Annotated[
        float, "payload words a cycle, 4096 B a packet, nothing but credits in the other direction; measured, not the formula"
    ]
    efficiency_256: Annotated[float, "the same with 256 B"]
    wire_cycles: Annotated[int, "each way"]


class HopCycles(TypedDict):
    """Router and link of an idle torus, without the wire."""

    min: Annotated[int, "through router and link, without wire and lanes, nothing else on the way, by all six links"]
    max: Annotated[int, "the most; a CREDIT that is just leaving is one more"]
    spread: Annotated[int, "`max` - `min`"]


class Put(TypedDict):
    """Small PUTs from host to host, one hop, one at a time, of an idle torus."""

    bytes: Annotated[int, "of each PUT"]
    puts: Annotated[int, "that were made, by all six links"]
    cycles: Annotated[
        int, "the most, from a job's hand-over to the last word of its completion in the other memory; with what the next two say"
    ]
    wire_cycles: Annotated[int, "of them on the cable, with its lanes"]
    host_read_cycles: Annotated[int, "of them until the modelled host answers the read of the data"]
    spread: Annotated[int, "the most less the least"]
    rtl_ns: Annotated[float, "`cycles` without wire and host, at 175 MHz [ns]"]


class Saturation(TypedDict):
    """Accepted at an offered load of 1."""

    uniform_4x4x4: Annotated[
        float | None, "words a node and cycle that a torus of 4x4x4 takes at an offered load of 1; null: not run"
    ]


class BenchTorusResult(Base):
    """What `nanet bench torus` writes."""

    threads: Annotated[int, "of the simulation"]
    link: Annotated[Link, "one link"]
    hop_cycles: Annotated[HopCycles, "one hop"]
    put: Annotated[Put, "remote memory access"]
    curves: Annotated[list[Point], ELSEWHERE, "as `nanet torus curves`"]
    reference: Annotated[list[Reference], ELSEWHERE, "as `nanet torus curves`"]
    saturation: Annotated[Saturation, "where more load brings no more"]
    cycles_per_wall_second: Annotated[float, "simulated, of a torus of 2x2x2 at half load; of the machine, not of the torus"]
    problems: Annotated[list[str], "what is not as it must be, a sentence each; empty when all is"]
