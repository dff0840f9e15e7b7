# SPDX-License-Identifier: Apache-2.0
"""What `nanet rdma serve`, `put`, `get` and `bench` write."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import Base


class Lane(TypedDict):
    """A path that UCX has opened."""

    transport: Annotated[str, "each path that UCX has opened"]
    device: Annotated[str, "that it goes over"]


class TransferPath(TypedDict):
    """How bytes travel."""

    lanes: Annotated[list[Lane], "what UCX has opened"]
    sided: Annotated[str, "`one_sided`, `emulated` or `not_known`"]
    gpudirect: Annotated[str, "`none`, `not known`, `GPUDirect RDMA` or `peer to peer (cuda_ipc)`"]
    text: Annotated[str, "the same for people"]


class Way(TypedDict):
    """What UCX reported about transfers of a size class (a power of two)."""

    operation: Annotated[str, "`put` or `get`"]
    bytes: Annotated[int, "of that transfer"]
    text: Annotated[str, "such as `copied by this CPU`, or in UCX's words"]


class ServeResult(Base):
    """What `nanet rdma serve` writes."""

    region: Annotated[str, "its name"]
    bytes: Annotated[int, "of the region"]
    memory: Annotated[str, "`shared`, `host`, `cuda:N` or `pinned:N`"]
    address: Annotated[str, "that it listened on"]
    port: Annotated[int, "that it listened on; 0 of a Unix socket"]
    elapsed_s: Annotated[float, "how long it served"]
    connections_at_end: Annotated[int, "open when it was stopped"]
    connections_at_once: Annotated[int, "the most that were seen open together"]
    refused: Annotated[int, "connections and atomics refused: name, token, rights, malformed message, too many"]
    ucx_version: Annotated[str, "of the library that was loaded"]


class MovedResult(Base):
    """What `nanet rdma put` and `nanet rdma get` write."""

    region: Annotated[str, "its name"]
    offset_bytes: Annotated[int, "where in the region"]
    bytes: Annotated[int, "of the file, or that were read"]
    seconds: Annotated[
        float,
        "from the first slice to the connection closed in order, so that all is in the target's memory; reading or writing the file is in it",
    ]
    bytes_per_s: Annotated[float, "`bytes` over `seconds`"]
    path: Annotated[TransferPath, "how the bytes travelled"]
    ways: Annotated[list[Way], "what UCX reported about the first transfer of each size class (a power of two)"]
    require: Annotated[str | None, "what was required of the path, or null"]
    ucx_version: Annotated[str, "of the library that was loaded"]


class TransferLatency(TypedDict):
    """Of one transfer [us]."""

    min: Annotated[float, "the shortest; of `put_latency` half a round trip, like all of these"]
    p50: Annotated[float, "half are at most this long"]
    p99: Annotated[float, "99 % of them"]
    p99_9: Annotated[float, "99.9 % of them"]
    max: Annotated[float, "the longest"]
    mean: Annotated[float, "of all"]


class RunFigures(TypedDict):
    """One of our runs."""

    count: Annotated[int, "transfers"]
    seconds: Annotated[float, "of the run"]
    bytes_per_s: Annotated[float, "as of the measurement"]
    messages_per_s: Annotated[float, "as of the measurement"]
    latency_us: Annotated[TransferLatency | None, "null for bandwidths"]
    right: Annotated[bool, "every byte was what it had to be"]
    way: Annotated[str | None, "as of the measurement"]


class PeerRun(TypedDict):
    """One run of ucx_perftest."""

    count: Annotated[int, "transfers"]
    bytes_per_s: Annotated[float, "as it tells it"]
    messages_per_s: Annotated[float, "as it tells it"]
    p50_us: Annotated[float, "of its last 2048 transfers, as it tells it"]
    mean_us: Annotated[float, "of all"]


class PeerFigures(TypedDict):
    """ucx_perftest, medians over the rounds."""

    bytes_per_s: Annotated[float, "as it tells it"]
    messages_per_s: Annotated[float, "as it tells it"]
    p50_us: Annotated[float, "of its last 2048 transfers, as it tells it"]
    mean_us: Annotated[float, "of all"]
    rounds: Annotated[list[PeerRun], "each of its runs"]


class TransferMeasurement(TypedDict):
    """A test at a size, medians over the rounds."""

    test: Annotated[
        str,
        "`put_bandwidth`, `get_bandwidth`, `put_bidirectional_bandwidth`, `put_latency`, `put_flush_latency` or `get_latency`",
    ]
    message_bytes: Annotated[int, "size of a transfer"]
    depth: Annotated[int, "transfers in flight at once; 1 for latencies"]
    count: Annotated[int, "transfers of a run; of `put_latency` round trips, of `put_bidirectional_bandwidth` puts of each side"]
    bytes_per_s: Annotated[float, "of `put_latency` and `put_bidirectional_bandwidth`, both directions together"]
    messages_per_s: Annotated[float, "the same"]
    latency_us: Annotated[TransferLatency | None, "null for bandwidths"]
    right: Annotated[bool, "every byte was what it had to be"]
    way: Annotated[str | None, "what UCX reported about the path of such transfers; null: nothing"]
    peer: Annotated[PeerFigures | None, "null without `--peer`, and where ucx_perftest has no such test"]
    ratio_to_peer: Annotated[
        float | None,
        "bandwidths: ours over the peer's, more is better; latencies: our p50 over the peer's, less is better",
    ]
    rounds: Annotated[list[RunFigures], "each of our runs"]


class TransferPeer(TypedDict):
    """The peer."""

    name: Annotated[str, "`ucx_perftest`"]
    version: Annotated[str, "of its UCX"]


class TransferBenchResult(Base):
    """What `nanet rdma bench` writes."""

    path: Annotated[TransferPath, "as in `nanet rdma put`, for the path from this side to the other"]
    require: Annotated[str | None, "what was required of it, or null"]
    transports: Annotated[str, "as UCX_TLS, of ours and the peer"]
    memory: Annotated[str, "of this side"]
    target_memory: Annotated[str, "of the other side"]
    depth: Annotated[int, "asked for"]
    batch: Annotated[int, "a flush after this many transfers; 0: after the last"]
    duration_s: Annotated[float, "of each run, where the number of transfers was not given"]
    rounds: Annotated[int, "how often each was measured"]
    core: Annotated[int | None, "of this side; null: not pinned"]
    target_core: Annotated[int | None, "of the other"]
    ucx_version: Annotated[str, "of the library here"]
    target_ucx_version: Annotated[str, "at the other side"]
    peer: Annotated[TransferPeer | None, "null without `--peer`"]
    ratio_to_peer: Annotated[float | None, "of the put bandwidths at 1 MiB; null where it was not measured"]
    right: Annotated[bool, "every byte was what it had to be"]
    measurements: Annotated[list[TransferMeasurement], "by test and size"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]
