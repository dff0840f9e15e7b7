# SPDX-License-Identifier: Apache-2.0
"""The links that are compared: of each its name, what it is, and how it changes the engine's configuration and the cable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from nanet import demo
from nanet.config import EngineConfig
from nanet.config_errors import ConfigError, validated
from nanet.demo import Loop
from nanet.emulator_config import EmulatorConfig
from nanet.machine import CorePlan
from nanet.netns import VethPair

# Room for a pause of the engine's thread of 10 ms at 1.6 million packets a second. A socket has 64 MiB, about as much.
RING_PACKETS = 16384
XDP: dict[str, Any] = {"zero_copy": "off", "frame_count": 2 * RING_PACKETS}  # a half is for sending
DPDK: dict[str, Any] = {"descriptors": RING_PACKETS, "memory_mib": 512}
ANSWER_FRAMES = 4096  # of the emulator
DRAIN_MS = 3000  # so that answers of a full socket buffer still come, also when something else has the engine's core for a second

BackEnd = Literal["udp", "xdp", "dpdk"]
Boards = Literal["socket", "answers-xdp", "xdp"]  # how the emulator sends, and takes answers in


@dataclass(frozen=True)
class Variant:
    """One of the links."""

    name: str
    what: str
    back_end: BackEnd = "udp"
    link: dict[str, Any] = field(default_factory=dict)  # keys of the engine's link
    spin: int | None = None  # of `waiting`; None: for ever, where the engine has a core
    coalesced: bool = False  # super-packets cross the cable in one piece
    engine_address: bool = True  # the engine's kernel has the address
    realtime: bool = False  # the engine's thread runs under SCHED_FIFO
    boards: Boards = "socket"

    def pair(self) -> VethPair:
        """The cable for this link, not made yet."""
        return VethPair(coalesced=self.coalesced, engine_address=self.engine_address)


VARIANTS = (
    Variant("blocking", "socket, a system call a batch, sleeps when nothing comes", link={"gro": False}, spin=0),
    Variant("spinning", "socket, looks without pause, packet by packet", link={"gro": False}),
    Variant("gro", "socket, looks without pause, super-packets (GSO, GRO): the default", coalesced=True),
    Variant("realtime", "as gro, its thread under SCHED_FIFO", coalesced=True, realtime=True),
    Variant(
        "xdp", "AF_XDP, program in the driver, the kernel copies", "xdp",
        {"interface": "engine0", "xdp": {"attach": "driver"} | XDP}, boards="xdp",
    ),
    Variant(
        "xdp-generic", "AF_XDP, program behind the driver, the kernel copies", "xdp",
        {"interface": "engine0", "xdp": {"attach": "generic"} | XDP}, boards="xdp",
    ),
    Variant(
        "dpdk-af_packet", "DPDK over a packet socket (net_af_packet)", "dpdk",
        {"dpdk": {"device": "net_af_packet0,iface=engine0"} | DPDK}, engine_address=False, boards="xdp",
    ),
    Variant(
        "dpdk-af_xdp", "DPDK over AF_XDP (net_af_xdp)", "dpdk",
        {"dpdk": {"device": "net_af_xdp0,iface=engine0,start_queue=0,queue_count=1"} | DPDK}, engine_address=False, boards="xdp",
    ),
)  # fmt: skip
NAMES = tuple(variant.name for variant in VARIANTS)


def chosen(text: str) -> tuple[Variant, ...]:
    """The links that `all` or `NAME,NAME` names, in the order of the table. Raises ConfigError."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    if wanted == ["all"]:
        return VARIANTS
    for name in wanted or [""]:
        if name not in NAMES:
            raise ConfigError([f"there is no link '{name}' to compare (there are {', '.join(NAMES)}) name some of those, or all"])
    return tuple(variant for variant in VARIANTS if variant.name in wanted)


def missing(variant: Variant) -> str | None:
    """Why this link is not in this build; None: it is."""
    from nanet import _core

    if _core.build_info()["back_ends"].get(variant.back_end):
        return None
    return f"not in this build: nanet was built without {variant.back_end}"


def configs(variant: Variant, loop: Loop, pair: VethPair, cores: CorePlan) -> tuple[EngineConfig, EmulatorConfig]:
    """Configurations of engine and emulator at the ends of the pair. Raises ConfigError."""
    engine_model, emulator_model = demo.configs(loop, cores)
    engine = engine_model.model_dump(mode="json")
    emulator = emulator_model.model_dump(mode="json")
    answers = f"udp://{pair.boards.address}:{loop.port + 100}"
    engine["name"] = variant.name
    engine["links"][0] |= {"endpoint": f"{variant.back_end}://{pair.engine.address}:{loop.port}"} | variant.link
    engine["answers"]["endpoint"] = answers
    if variant.back_end != "udp":
        engine["answers"]["via"] = engine["links"][0]["name"]
    if variant.spin is not None:
        engine["waiting"] = {"spin": variant.spin}
    emulator |= {"destinations": [f"udp://{pair.engine.address}:{loop.port}"], "answers": answers, "drain_ms": DRAIN_MS}
    if variant.boards != "socket":
        boards = "frames" if variant.boards == "xdp" else "socket"
        emulator["xdp"] = {"interface": pair.boards.interface, "boards": boards, "frame_count": ANSWER_FRAMES}
    return validated(EngineConfig, engine), validated(EmulatorConfig, emulator)
