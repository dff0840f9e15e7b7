# SPDX-License-Identifier: Apache-2.0
"""The links that are compared: of each its name, what it is, and how it changes the engine's configuration and the cable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.config.errors import ConfigError, validated
from nanet.loop.run import Loop, loop_configs
from nanet.machine.facts import CorePlan, plan_cores
from nanet.machine.netns import VethPair
from nanet.result.keys.base import Config

# Room for a pause of the engine's thread of 10 ms at 1.6 million packets a second. A socket has 64 MiB, about as much.
RING_PACKETS = 16384
# AF_XDP: a half of that. Frames are used in turn, so that with more of them the kernel writes each into cold memory, on the sender's core here.
XDP: Config = {"zero_copy": "off", "frame_count": RING_PACKETS}  # a half is for sending
DPDK: Config = {"descriptors": RING_PACKETS, "memory_mib": 512}
ANSWER_FRAMES = 4096  # of the emulator
REALTIME_PRIORITY = 50
DRAIN_MS = 3000  # so that answers of a full socket buffer still come, also when something else has the engine's core for a second

BackEnd = Literal["udp", "xdp", "dpdk"]
# How the emulator sends and takes answers in. socket: both through sockets; answers-xdp: answers through AF_XDP; xdp: both. auto: answers-xdp for links
# below the kernel where packets are sent one at a time, as there it is the time of an answer that counts; else socket, which sends most.
Boards = Literal["auto", "socket", "answers-xdp", "xdp"]


@dataclass(frozen=True)
class Variant:
    """One of the links."""

    name: str
    what: str
    back_end: BackEnd = "udp"
    link: Config = field(default_factory=dict)  # keys of the engine's link
    spin: int | None = None  # of `waiting`; None: forever, where the engine has a core
    coalesced: bool = False  # super-packets cross the cable in one piece
    engine_address: bool = True  # the engine's kernel has the address
    realtime: bool = False  # the engine's thread runs under SCHED_FIFO
    boards: Boards = "auto"

    def pair(self) -> VethPair:
        """The cable for this link, not made yet."""
        return VethPair(coalesced=self.coalesced, engine_address=self.engine_address)


VARIANTS = (
    Variant("blocking", "socket, a system call a batch, sleeps when nothing arrives", link={"gro": False}, spin=0),
    Variant("spinning", "socket, looks without pause, packet by packet", link={"gro": False}),
    Variant("gro", "socket, looks without pause, super-packets (GSO, GRO): the default", coalesced=True),
    Variant("realtime", "as gro, its thread under SCHED_FIFO", coalesced=True, realtime=True),
    Variant(
        "xdp", "AF_XDP, program in the driver, the kernel copies", "xdp",
        {"interface": "engine0", "xdp": {"attach": "driver"} | XDP},
    ),
    Variant(
        "xdp-in-place", "as xdp, payloads stay in their frames", "xdp",
        {"interface": "engine0", "xdp": {"attach": "driver", "payloads": "in_place"} | XDP},
    ),
    Variant(
        "xdp-generic", "AF_XDP, program after the driver, the kernel copies", "xdp",
        {"interface": "engine0", "xdp": {"attach": "generic"} | XDP},
    ),
    Variant(
        "dpdk-af_packet", "DPDK over a packet socket (net_af_packet)", "dpdk",
        {"dpdk": {"device": "net_af_packet0,iface=engine0"} | DPDK}, engine_address=False,
    ),
    Variant(
        "dpdk-af_xdp", "DPDK over AF_XDP (net_af_xdp)", "dpdk",
        {"dpdk": {"device": "net_af_xdp0,iface=engine0,start_queue=0,queue_count=1"} | DPDK}, engine_address=False,
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


def sent_to(variants: tuple[Variant, ...], how: str) -> tuple[Variant, ...]:
    """The same links with this way of sending and receiving. Raises ConfigError."""
    for boards in get_args(Boards):
        if how == boards:
            return tuple(replace(variant, boards=boards) for variant in variants)
    raise ConfigError([f"boards cannot go via '{how}' (there are {', '.join(get_args(Boards))}) choose one of these"])


def missing(variant: Variant) -> str | None:
    """Why this link is not in this build, or not for this machine; None: it is."""
    from nanet import _core

    if variant.realtime and plan_cores().engine is None:
        return "no core for the engine alone, which real-time priority needs"
    if _core.build_info()["back_ends"].get(variant.back_end):
        return None
    return f"not in this build: nanet was built without {variant.back_end}"


def boards_of(variant: Variant, loop: Loop) -> Boards:
    """How the emulator sends and receives with this link; super-packets on the cable need sockets."""
    if variant.boards != "auto" and not variant.coalesced:
        return variant.boards
    return "answers-xdp" if variant.back_end != "udp" and loop.burst_packets == 1 and has_xdp() else "socket"


def has_xdp() -> bool:
    """Whether nanet was built with AF_XDP."""
    from nanet import _core

    return bool(_core.build_info()["back_ends"].get("xdp"))


def configs(variant: Variant, loop: Loop, pair: VethPair, cores: CorePlan) -> tuple[EngineConfig, EmulatorConfig]:
    """Configurations of engine and emulator at the ends of the pair. Raises ConfigError."""
    engine_model, emulator_model = loop_configs(loop, cores)
    engine = engine_model.model_dump(mode="json")
    emulator = emulator_model.model_dump(mode="json")
    answers = f"udp://{pair.boards.address}:{loop.port + 100}"
    engine["name"] = variant.name
    engine["links"][0] |= {"endpoint": f"{variant.back_end}://{pair.engine.address}:{loop.port}"} | variant.link
    engine["answers"]["endpoint"] = answers
    if variant.back_end != "udp":
        engine["answers"]["via"] = engine["links"][0]["name"]
    if variant.realtime:
        engine["cpu_cores"]["realtime_priority"] = REALTIME_PRIORITY
    if variant.spin is not None:
        engine["waiting"] = {"spin": variant.spin}
    emulator |= {"destinations": [f"udp://{pair.engine.address}:{loop.port}"], "answers": answers, "drain_ms": DRAIN_MS}
    how = boards_of(variant, loop)
    if how != "socket":
        boards = "frames" if how == "xdp" else "socket"
        emulator["xdp"] = {"interface": pair.boards.interface, "boards": boards, "frame_count": ANSWER_FRAMES}
    return validated(EngineConfig, engine), validated(EmulatorConfig, emulator)
