# SPDX-License-Identifier: Apache-2.0
"""What can be configured: one frozen model per component, validated whole before anything starts.

A configuration is a YAML file with `version: 1`. Every field says its unit, its default and what happens when it is too
small or too big; `nanet schema` prints the same as JSON schema. Bad input raises `ConfigError`, whose lines read
`problem (why) suggestion`. The models hold no objects of the running system: `model_dump(mode="json")` is all that the
native engine sees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, ModelWrapValidatorHandler, field_validator, model_validator

from nanet.config.base import Endpoint, Model, Name, problem, same_as, setting
from nanet.config.components import Answers, Cores, Forward, Gpu, MemoryRegion, Merge, Source, Waiting
from nanet.config.errors import load_document, nearest, validated
from nanet.config.forms import Network
from nanet.config.link import LinkConfig, room_bytes
from nanet.config.plugins import KindName, Kinds, PluginPath, Settings, check_plugins, load_kinds, with_plugins
from nanet.config.rich import Decision

__all__ = [
    "Answers", "Cores", "EngineConfig", "Forward", "Gpu", "MemoryRegion", "Merge", "Metrics", "PortConfig", "Processor", "Run", "Waiting", "load",
]  # fmt: skip

SCHEMA_VERSION = 1
MemoryKind: TypeAlias = Literal["host", "host_pinned", "device"]
GPU_PACKET_BYTES_MAX = 1472
GPU_PACKET_EVENTS_MAX = (GPU_PACKET_BYTES_MAX - 16) // 8  # of a packet of events without hits; each such packet has one of answers
GPU_MERGED_ANSWERS_MAX = 64  # of a packet of answers to events that a GPU has merged
MERGE_SOURCES_MAX = 8
OWN_PROCESSORS = ("rich", "forward", "count")


def load(path: str | Path) -> EngineConfig:
    """The engine configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(EngineConfig, load_document(Path(path)))


class Processor(Decision):
    """What is done with the events."""

    kind: Annotated[str, KindName("processor", OWN_PROCESSORS)] = setting(
        "rich", "rich: find the rings of each event; forward: send whole events on; count: only count packets and bytes"
    )
    runtime: Literal["cpu", "launch", "graph", "persistent"] = setting(
        "cpu",
        "Where events are judged. cpu: by the engine's own thread; persistent: by a kernel that stays on the GPU and takes buffers and"
        " answers on its own; launch: by a kernel that the host launches for each buffer; graph: the same as a captured graph",
    )
    gpu: Gpu = setting(Gpu, "How events are judged on GPUs; not with runtime cpu")
    merge: Merge | None = setting(None, "Event building; needed with more than one source; null: each packet holds whole events")
    forward: Forward | None = setting(None, "Where whole events go; with kind forward, and only then")
    settings: Settings | None = setting(None, "What a processor of a plug-in needs, keys of its own; only there; null: nothing")

    def place(self) -> str:
        """Who processes, for a person: `cpu`, or `persistent on GPU 0, 1`."""
        devices = ", ".join(map(str, self.gpu.devices))
        return "cpu" if self.runtime == "cpu" else f"{self.runtime} on GPU {devices}"


class Run(Model):
    """How long a run lasts and what it promises."""

    duration_s: float | None = setting(None, "End of the run; null: until SIGTERM or SIGINT", unit="s", gt=0.0, le=1e7)
    budget_us: int = setting(
        1000, "Promise: p99.9 of the latency stays below this, or the exit code is 1", unit="us", ge=1, le=3_600_000_000
    )
    user: Name | None = setting(
        None,
        "Account that the process switches to once sockets, memory and threads exist; null: it keeps the one it was started with",
    )


def check_http_endpoint(url: str) -> str:
    """`http://ADDRESS:PORT`, no path. Whether the address is one of this machine shows when it is bound, before anything starts."""
    match = re.fullmatch(r"http://([A-Za-z0-9.-]{1,253}):([0-9]{1,5})/?", url)
    if match is None or not 1 <= int(match[2]) <= 65535:
        raise problem(
            f"endpoint '{url}' is not usable", "metrics are served over HTTP, on an address and a port from 1 to 65535",
            "write it as http://ADDRESS:PORT, for example http://127.0.0.1:9400",
        )  # fmt: skip
    return f"http://{match[1]}:{int(match[2])}"


class Metrics(Model):
    """What a monitoring system reads while the engine runs. There is no authentication: choose an address that only it can reach."""

    endpoint: Annotated[str, AfterValidator(check_http_endpoint)] = setting(
        ..., "Where /metrics (Prometheus) and /health are served: http://ADDRESS:PORT; http://0.0.0.0:PORT: on every address"
    )

    def address(self) -> tuple[str, int]:
        """Host and port of the endpoint."""
        host, _, port = self.endpoint.removeprefix("http://").rpartition(":")
        return host, int(port)


class EngineConfig(Model):
    """A whole engine: links, memory, processor and answers."""

    model_config = ConfigDict(title="nanet engine configuration")

    version: Literal[1] = setting(..., "Version of this schema")
    name: Name = setting("nanet", "Name of this configuration in reports")
    topology: Literal["run_to_completion", "pipelined"] = setting(
        "run_to_completion", "run_to_completion: one thread receives, processes and sends; pipelined: one thread per stage"
    )
    plugins: tuple[PluginPath, ...] = setting(
        (),
        "Shared libraries with protocols, processors and links of their own, whose names can then be used; each was built against this"
        " nanet (docs/design/doors.md), and its code runs in this process. Paths, from the working directory",
        max_length=16,
    )
    cpu_cores: Cores = setting(Cores, "Pinning of threads to cores")
    memory_regions: tuple[MemoryRegion, ...] = setting(..., "Memory for received packets", min_length=1)
    links: tuple[LinkConfig, ...] = setting(..., "Where packets come from", min_length=1)
    processor: Processor = setting(Processor, "What is done with them")
    answers: Answers | None = setting(None, "Where answers go; null: no answers are sent")
    waiting: Waiting = setting(Waiting, "What a thread does when there is nothing to do")
    run: Run = setting(Run, "How long a run lasts and what it promises")
    metrics: Metrics | None = setting(None, "Counters and health over HTTP; null: nothing is served")

    @model_validator(mode="wrap")
    @classmethod
    def _with_plugins(cls, said: Any, handler: ModelWrapValidatorHandler[EngineConfig]) -> EngineConfig:
        with with_plugins(said):
            return handler(said)

    @field_validator("plugins")
    @classmethod
    def _plugins(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        return check_plugins(paths)

    def kinds(self) -> Kinds | None:
        """What can be named, with what the native module says of each; None: there are no plug-ins."""
        return load_kinds(self.plugins) if self.plugins else None

    def done_counter(self) -> str | None:
        """The counter of the events that the processor is done with; None: it looks at none."""
        kinds = self.kinds()
        if kinds is not None:
            done: str | None = kinds.processors[self.processor.kind]["done"]
            return done
        return {"rich": "events_answered", "forward": "events_forwarded"}.get(self.processor.kind)

    def raw_links(self) -> set[str]:
        """Names of the links whose packets have no sequence numbers."""
        kinds = self.kinds()
        if kinds is not None:
            return {link.name for link in self.links if not kinds.protocols[link.protocol]["numbered"]}
        return {link.name for link in self.links if link.protocol == "raw"}

    @model_validator(mode="after")
    def _whole(self) -> EngineConfig:
        self._check_names()
        self._check_via()
        self._check_cores()
        self._check_plugin_processor()
        self._check_processor()
        self._check_gpu()
        return self

    def _check_names(self) -> None:
        for region in self.memory_regions:
            if region.kind != "host":
                raise problem(
                    f"memory region '{region.name}' is {region.kind}",
                    "an engine whose processor runs on a GPU maps its memory for that GPU automatically", "set kind to host",
                )  # fmt: skip
        regions = [region.name for region in self.memory_regions]
        _no_twice("memory region", regions, "rename one")
        _no_twice("link", [link.name for link in self.links], "rename one")
        _no_twice("endpoint", [link.endpoint for link in self.links], "give each link a port of its own")
        _no_twice(
            "card", [link.gateware.card for link in self.links if link.gateware is not None], "give each link a card of its own"
        )
        sources = [source for link in self.links for source in link.sources]
        _no_twice("source name", [source.name for source in sources], "rename one")
        identities = [f"{source.source_id:#04x} sub {source.source_sub_id}" for source in sources]
        _no_twice("source", identities, "give each source a source_id and source_sub_id of its own")
        for link in self.links:
            if link.memory_region not in regions:
                raise problem(
                    f"link '{link.name}' uses the unknown memory region '{link.memory_region}'",
                    f"memory_regions has {', '.join(regions)}",
                    nearest(link.memory_region, regions),
                )
            region = self.memory_regions[regions.index(link.memory_region)]
            need, why = room_bytes(link)
            if region.buffer_bytes < need:
                raise problem(
                    f"a buffer of region '{region.name}' ({region.buffer_bytes} B) has no room for link '{link.name}'",
                    f"{why} needs {need} B",
                    f"raise buffer_bytes to at least {need}",
                )
            if self.answers and link.endpoint.replace(link.scheme, "udp", 1) in (self.answers.endpoint, *self.answers.copies):
                raise problem(
                    f"answers go to the engine's own link '{link.name}'",
                    f"both are {link.endpoint}",
                    "set answers.endpoint to the port of the L0 trigger processor",
                )

    def _check_via(self) -> None:
        via = self.answers.via if self.answers else None
        if via is None:
            return
        names = [link.name for link in self.links]
        if via not in names:
            raise problem(f"answers.via names the unknown link '{via}'", f"links has {', '.join(names)}", nearest(via, names))
        link = self.links[names.index(via)]
        if link.gateware is not None and link.gateware.next_hop is None:
            raise problem(
                f"answers cannot leave by link '{via}'", "its card answers ARP but does not ask where they go",
                "set gateware.next_hop to the Ethernet address of the receiver, or of the router to it",
            )  # fmt: skip
        receives_only = {"pcap": "it plays a file", "ucx": "over UCX it only receives"}.get(link.scheme)
        kinds = self.kinds()
        if kinds is not None and receives_only is None and not kinds.links[link.scheme]["sends"]:
            receives_only = f"{link.scheme} only receives"
        if receives_only is not None:
            raise problem(
                f"answers cannot leave by link '{via}'", receives_only, "remove via, so that they get a socket of their own"
            )

    def _check_cores(self) -> None:
        cores = self.cpu_cores
        if self.topology == "run_to_completion":
            for stage in ("process", "send"):
                if getattr(cores, stage) is not None:
                    raise problem(
                        f"cpu_cores.{stage} is set",
                        "run_to_completion has one thread only, on cpu_cores.receive",
                        f"set cpu_cores.{stage} to null, or topology to pipelined",
                    )
            return
        used = [str(core) for core in (cores.receive, cores.process, cores.send) if core is not None]
        _no_twice("core", used, "give each stage a core of its own, or null")

    def _check_forward(self) -> None:
        forward = self.processor.forward
        if self.processor.kind == "forward" and forward is None:
            raise problem(
                "processor forward has no destination", "events must go somewhere", "add forward: {endpoint: udp://ADDRESS:PORT}"
            )
        if self.processor.kind != "forward" and forward is not None:
            raise problem(
                "forward is configured", f"processor {self.processor.kind} sends no events", "remove it, or set kind to forward"
            )
        for link in self.links:
            if forward and forward.endpoint == link.endpoint:
                raise problem(
                    f"events go to the engine's own link '{link.name}'", f"both are {link.endpoint}",
                    "set forward.endpoint to a link of the next node",
                )  # fmt: skip

    def _check_mask(self) -> None:
        mask = self.processor.mask
        if self.processor.kind != "rich" and (mask.channels or mask.hot):
            raise problem(
                "mask is configured", f"processor {self.processor.kind} looks at no hits", "remove it, or set kind to rich"
            )
        if mask.hot and self.processor.runtime != "cpu":
            raise problem(
                "mask.hot is true",
                "a GPU counts the hits of channels but does not judge them during the run",
                "list them in mask.channels, or set runtime: cpu",
            )

    def _check_plugin_processor(self) -> None:
        processor, kinds = self.processor, self.kinds()
        if processor.kind in OWN_PROCESSORS:
            if processor.settings is not None:
                raise problem("processor.settings is configured", f"{processor.kind} is of no plug-in", "remove it")
            return
        facts = kinds.processors[processor.kind] if kinds is not None else {}
        for name, field in Processor.model_fields.items():
            if name not in ("kind", "settings", "merge") and getattr(processor, name) != field.get_default(
                call_default_factory=True
            ):
                raise problem(
                    f"processor.{name} is configured", f"{processor.kind} is of a plug-in, which reads its settings",
                    "remove it, or see what processor.settings can have",
                )  # fmt: skip
        if processor.merge is not None and not facts["merges"]:
            raise problem("processor.merge is configured", f"{processor.kind} merges nothing", "set it to null")
        if self.answers is not None and not facts["sends"]:
            raise problem("answers are configured", f"processor {processor.kind} sends none", "set answers to null")
        for name in ("source_id", "source_sub_id", "primitives_max"):
            if self.answers is not None and getattr(self.answers, name) != Answers.model_fields[name].default:
                raise problem(f"answers.{name} is configured", f"processor {processor.kind} writes packets of its own", "remove it")

    def _check_processor(self) -> None:
        source_count = sum(len(link.sources) for link in self.links)
        self._check_forward()
        self._check_mask()
        if self.processor.kind == "count":
            if self.answers is not None:
                raise problem("answers are configured", "processor count makes none", "set answers to null, or kind to rich")
            if self.processor.merge is not None:
                raise problem("merge is configured", "processor count builds no events", "set merge to null, or kind to rich")
            return
        if self.processor.kind == "forward" and self.answers is not None:
            raise problem("answers are configured", "processor forward finds no rings", "set answers to null, or kind to rich")
        kinds = self.kinds()
        without_events = {"raw"} if kinds is None else {name for name, facts in kinds.protocols.items() if not facts["has_events"]}
        raw = [link for link in self.links if link.protocol in without_events] if self.done_counter() is not None else []
        if raw:
            raise problem(
                f"processor {self.processor.kind} cannot read link '{raw[0].name}'",
                f"its protocol is {raw[0].protocol}",
                "use protocol: mgp, or kind: count"
                if kinds is None
                else "choose a protocol whose packets have events, or kind: count",
            )
        merges = kinds is None or kinds.processors[self.processor.kind]["merges"]
        if source_count > 1 and merges and self.processor.merge is None and self.processor.runtime == "cpu":
            raise problem(
                f"{source_count} sources but no merge",
                "their parts of an event have to be merged",
                "add processor.merge: {window_us: 200}",
            )

    def _check_gpu(self) -> None:
        processor = self.processor
        if processor.runtime == "cpu":
            if processor.gpu != Gpu():
                raise problem("processor.gpu is configured", "runtime cpu uses no GPU", "remove it, or set runtime: persistent")
            for link in self.links:
                if link.dpdk is not None and link.dpdk.payload_memory == "gpu":
                    raise problem(
                        f"payloads of link '{link.name}' in the memory of a GPU", "runtime cpu cannot read them there",
                        "set payload_memory: host, or runtime: persistent",
                    )  # fmt: skip
            return
        if processor.kind != "rich":
            raise problem(f"processor {processor.kind} on a GPU", "only kind rich runs on one", "set runtime: cpu")
        self._check_gpu_settings()
        self._check_gpu_merge()
        for link in self.links:
            if len(link.sources) != 1 and processor.merge is None:
                raise problem(
                    f"link '{link.name}' has {len(link.sources)} sources",
                    "on a GPU without merge each packet must hold whole events, from one source per link",
                    "add processor.merge: {window_us: 200}, or give each source a link of its own",
                )
            if link.packet_bytes_max > GPU_PACKET_BYTES_MAX:
                raise problem(
                    f"packet_bytes_max {link.packet_bytes_max} of link '{link.name}'",
                    f"a GPU takes packets of at most {GPU_PACKET_BYTES_MAX} B", "set it to that, or runtime: cpu",
                )  # fmt: skip

    def _check_gpu_merge(self) -> None:
        if self.processor.merge is None:
            return
        if len(self.processor.gpu.devices) > 1:
            raise problem(
                f"merge on {len(self.processor.gpu.devices)} GPUs", "the parts of an event meet in the memory of one",
                "name one device, or let nodes with kind: forward build the events",
            )  # fmt: skip
        source_count = sum(len(link.sources) for link in self.links)
        if source_count > MERGE_SOURCES_MAX:
            raise problem(
                f"merge of {source_count} sources on a GPU", f"an event has parts of at most {MERGE_SOURCES_MAX}",
                "let nodes with kind: forward merge some of them first",
            )  # fmt: skip

    def _check_gpu_settings(self) -> None:
        runtime, gpu = self.processor.runtime, self.processor.gpu
        if runtime == "persistent" and gpu.path == "copied":
            raise problem(
                "runtime persistent with copied buffers", "the host does nothing between a buffer and its answers",
                "set gpu.path: mapped, or runtime: launch",
            )  # fmt: skip
        if len(gpu.devices) > len(self.links):
            raise problem(
                f"{len(gpu.devices)} GPUs for {len(self.links)} link(s)", "the links go to the GPUs in turn",
                "name fewer devices, or spread the sources over more links",
            )  # fmt: skip
        if runtime == "persistent" and gpu.blocks is None and len(set(gpu.devices)) < len(gpu.devices):
            raise problem(
                "a GPU is named twice", "a persistent kernel takes all of it unless told how much", "set gpu.blocks, such as 8"
            )
        answers_max = GPU_PACKET_EVENTS_MAX if self.processor.merge is None else GPU_MERGED_ANSWERS_MAX
        if self.answers is not None and self.answers.primitives_max < answers_max:
            raise problem(
                f"answers.primitives_max {self.answers.primitives_max}",
                f"a GPU writes up to {answers_max} into a packet of answers", "leave it at 255",
            )  # fmt: skip
        if self.cpu_cores.send is not None:
            raise problem(
                "cpu_cores.send is set", "with a GPU the processing thread, which only watches, sends too",
                "set cpu_cores.send to null",
            )  # fmt: skip


class PortConfig(Model):
    """What `nanet.open` hands to the native port: one link, one CLOP, no processor. Its keys are those of links and memory regions."""

    endpoint: Endpoint = setting(..., "Where to listen: udp://ADDRESS:PORT")
    protocol: Literal["mgp", "m2egp", "raw"] = setting("raw", "mgp, m2egp: our packets, checked; raw: any datagrams")
    senders: tuple[Network, ...] = same_as(LinkConfig, "senders")
    sources: tuple[Source, ...] = same_as(LinkConfig, "sources")
    buffer_count: int = same_as(MemoryRegion, "buffer_count", default=16)
    buffer_bytes: int = same_as(MemoryRegion, "buffer_bytes")
    huge_pages: bool = same_as(MemoryRegion, "huge_pages")
    memory_kind: MemoryKind = same_as(MemoryRegion, "kind")
    batch_size: int = same_as(LinkConfig, "batch_size")
    timeout_us: int = same_as(LinkConfig, "timeout_us")
    socket_buffer_bytes: int = same_as(LinkConfig, "socket_buffer_bytes")
    packet_bytes_max: int = same_as(LinkConfig, "packet_bytes_max")
    gro: bool = same_as(LinkConfig, "gro")
    busy_poll_us: int = same_as(LinkConfig, "busy_poll_us")

    @model_validator(mode="after")
    def _whole(self) -> PortConfig:
        MemoryRegion(name="port", kind=self.memory_kind, buffer_count=self.buffer_count, buffer_bytes=self.buffer_bytes)
        link = LinkConfig(
            name="port",
            endpoint=self.endpoint,
            memory_region="port",
            protocol=self.protocol,
            sources=self.sources,
            gro=self.gro,
            packet_bytes_max=self.packet_bytes_max,
        )
        need, why = room_bytes(link)
        if self.buffer_bytes < need:
            raise problem(f"buffer_bytes {self.buffer_bytes} is too small", f"{why} needs {need} B", f"choose {need} or more")
        identities = [f"{source.source_id:#04x} sub {source.source_sub_id}" for source in self.sources]
        _no_twice("source", identities, "give each source a source_id and source_sub_id of its own")
        return self


def _no_twice(what: str, values: Iterable[str], suggestion: str) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise problem(f"{what} {value} appears {count} times", "each must be unique", suggestion)
