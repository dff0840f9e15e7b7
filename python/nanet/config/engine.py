# SPDX-License-Identifier: Apache-2.0
"""What can be configured: one frozen model per component, validated whole before anything starts.

A configuration is a YAML file with `version: 1`. Every field says its unit, its default and what happens when it is too
small or too big; `nanet schema` prints the same as JSON schema. Bad input raises `ConfigError`, whose lines read
`problem (why) suggestion`. The models hold no objects of the running system: `model_dump(mode="json")` is all that the
native engine sees.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, ModelWrapValidatorHandler, field_validator, model_validator

from nanet.config.base import Endpoint, Model, Name, problem, same_as, setting
from nanet.config.components import (
    PROCESSORS,
    PROTOCOLS,
    Answers,
    Assemble,
    Cores,
    Format,
    Forward,
    Gpu,
    Km3,
    MemoryRegion,
    Merge,
    Source,
    Udp,
    Waiting,
)
from nanet.config.errors import load_document, validated
from nanet.config.formats import with_formats
from nanet.config.forms import Network
from nanet.config.link import LinkConfig, ProtocolName, link_facts
from nanet.config.plugins import (
    KindName,
    Kinds,
    PluginPath,
    Settings,
    check_engine,
    check_plugins,
    choices,
    load_kinds,
    with_plugins,
)
from nanet.config.rich import Decision

__all__ = [
    "Answers", "Cores", "EngineConfig", "Forward", "Gpu", "MemoryRegion", "Merge", "Metrics", "PortConfig", "Processor", "Run", "Waiting", "load",
]  # fmt: skip

SCHEMA_VERSION = 1
MemoryKind: TypeAlias = Literal["host", "host_pinned", "device"]


def load(path: str | Path) -> EngineConfig:
    """The engine configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(EngineConfig, load_document(Path(path)))


class Processor(Decision):
    """What is done with the events."""

    kind: Annotated[str, KindName("processor", tuple(PROCESSORS))] = setting("rich", f"What it does. {choices(PROCESSORS)}")
    runtime: Literal["cpu", "launch", "graph", "persistent"] = setting(
        "cpu",
        "Where events are judged. cpu: by the engine's own thread; persistent: by a kernel that stays on the GPU and takes buffers and"
        " answers on its own; launch: by a kernel that the host launches for each buffer; graph: the same as a captured graph",
    )
    gpu: Gpu = setting(Gpu, "How events are judged on GPUs; not with runtime cpu")
    merge: Merge | None = setting(None, "Event building; needed with more than one source; null: each packet holds whole events")
    forward: Forward | None = setting(None, "Where whole events go; with kind forward, and only then")
    km3: Km3 | None = setting(None, "The trigger of a KM3NeT detector; with kind km3, and only then; null: all its defaults")
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
    match = re.fullmatch(r"http://([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})/?", url)
    if match is None or not 1 <= int(match[2]) <= 65535 or (match[1][0] == "[" and not _is_ipv6(match[1][1:-1])):
        raise problem(
            f"endpoint '{url}' is not usable", "metrics are served over HTTP, on an address and a port from 1 to 65535",
            "write it as http://ADDRESS:PORT, for example http://127.0.0.1:9400 or http://[::1]:9400",
        )  # fmt: skip
    return f"http://{match[1]}:{int(match[2])}"


def _is_ipv6(text: str) -> bool:
    try:
        return bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


class Metrics(Model):
    """What a monitoring system reads while the engine runs. There is no authentication: choose an address that only it can reach."""

    endpoint: Annotated[str, AfterValidator(check_http_endpoint)] = setting(
        ...,
        "Where /metrics (Prometheus) and /health are served: http://ADDRESS:PORT, an IPv6 address in brackets; http://0.0.0.0:PORT: on every IPv4 address",
    )

    def address(self) -> tuple[str, int]:
        """Host and port of the endpoint."""
        host, _, port = self.endpoint.removeprefix("http://").rpartition(":")
        return host.strip("[]"), int(port)


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
    formats: dict[Name, Format] = setting(
        dict,
        "Packet formats declared here, by name (docs/declared-formats.md); those that are shipped, which nanet format list shows, need not be",
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
        with with_plugins(said), with_formats(said) as whole:
            return handler(whole)

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
        """Names in results of the links whose senders' sequence numbers the engine does not see: packets have none, or a node merges what they hold."""
        kinds = self.kinds()
        numbered = {name: kind["numbered"] for name, kind in kinds.protocols.items()} if kinds is not None else {"raw": False}
        numbered |= {name: declared.sequence is not None for name, declared in self.formats.items()}
        raw = (link for link in self.links if not numbered.get(link.protocol, True) or link.merges())
        return {name for link in raw for name in link.inputs()}

    def pinned_cores(self) -> set[int]:
        """Those that threads are pinned to."""
        cores = self.cpu_cores
        return {core for core in (cores.receive, cores.process, cores.send, *cores.lanes) if core is not None}

    @model_validator(mode="after")
    def _whole(self) -> EngineConfig:
        _no_twice("memory region", [region.name for region in self.memory_regions], "rename one")
        self._check_forward()
        self._check_km3()
        self._check_mask()
        self._check_plugin_processor()
        if self.processor.runtime == "cpu" and self.processor.gpu != Gpu():
            raise problem("processor.gpu is configured", "runtime cpu uses no GPU", "remove it, or set runtime: persistent")
        check_engine(self)
        return self

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

    def _check_km3(self) -> None:
        if self.processor.kind != "km3" and self.processor.km3 is not None:
            raise problem(
                "km3 is configured", f"processor {self.processor.kind} is no trigger of KM3NeT", "remove it, or set kind to km3"
            )

    def _check_mask(self) -> None:
        mask = self.processor.mask
        if self.processor.kind != "rich" and (mask.channels or mask.hot):
            raise problem(
                "mask is configured", f"processor {self.processor.kind} looks at no hits", "remove it, or set kind to rich"
            )

    def _check_plugin_processor(self) -> None:
        processor = self.processor
        if processor.kind in PROCESSORS:
            if processor.settings is not None:
                raise problem("processor.settings is configured", f"{processor.kind} is of no plug-in", "remove it")
            return
        for name, field in Processor.model_fields.items():
            if name not in ("kind", "settings", "merge") and getattr(processor, name) != field.get_default(
                call_default_factory=True
            ):
                raise problem(
                    f"processor.{name} is configured", f"{processor.kind} is of a plug-in, which reads its settings",
                    "remove it, or see what processor.settings can have",
                )  # fmt: skip
        for name in ("source_id", "source_sub_id", "primitives_max"):
            if self.answers is not None and getattr(self.answers, name) != Answers.model_fields[name].default:
                raise problem(f"answers.{name} is configured", f"processor {processor.kind} writes packets of its own", "remove it")


class PortConfig(Model):
    """What `nanet.open` hands to the native port: one link, one CLOP, no processor. Its keys are those of links and memory regions."""

    endpoint: Endpoint = setting(..., "Where to listen: udp://ADDRESS:PORT")
    protocol: ProtocolName = setting("raw", f"What its packets are. {choices(PROTOCOLS)}; or the name of a declared format")
    formats: dict[Name, Format] = setting(dict, "Packet formats declared here, by name; those that are shipped need not be")
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
    assemble: Assemble | None = same_as(LinkConfig, "assemble")
    udp: Udp | None = setting(None, "What only a udp:// link needs; null: one queue")
    queue: int = setting(0, "Which of several queues this port is over; they are opened in order", ge=0)

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
            timeout_us=self.timeout_us,
            assemble=self.assemble,
            udp=self.udp,
        )
        need, why = link_facts(link)["room"]
        if self.buffer_bytes < need:
            raise problem(f"buffer_bytes {self.buffer_bytes} is too small", f"{why} needs {need} B", f"choose {need} or more")
        identities = [f"{source.source_id:#04x} sub {source.source_sub_id}" for source in self.sources]
        _no_twice("source", identities, "give each source a source_id and source_sub_id of its own")
        return self

    # After _whole, which it is to enclose: a link is made there.
    @model_validator(mode="wrap")
    @classmethod
    def _with_formats(cls, said: Any, handler: ModelWrapValidatorHandler[PortConfig]) -> PortConfig:
        with with_formats(said) as whole:
            return handler(whole)


def _no_twice(what: str, values: Iterable[str], suggestion: str) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise problem(f"{what} {value} appears {count} times", "each must be unique", suggestion)
