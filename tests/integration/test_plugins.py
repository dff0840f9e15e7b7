# SPDX-License-Identifier: Apache-2.0
"""Plug-ins: the camera of examples/own_detector as one, and those that are refused. Compiled here, against the libraries that this nanet is made of."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from loops import free_ports

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
EXAMPLE = ROOT / "examples" / "own_detector"
LIBRARIES = ("engine", "format", "link", "event", "flow", "wire", "base")  # users before what they use

# A plug-in of plain C, so that whatever it says is read and not compiled.
C_PLUGIN = """
#include <stdint.h>
static const char* const nanet = %(nanet)s;
static void add(void* kinds) { __builtin_trap(); }
const struct { uint32_t abi; const char* built_with; const char* const* nanet; void (*add)(void*); } nanet_plugin = {%(abi)d, %(built)s, &nanet, add};
"""
# Kinds that are declared well and make nothing; or what NANET_TEST_PLUGIN says.
PLUGIN = """
#include <cstdlib>
#include <stdexcept>
#include "nanet/engine/plugin.hpp"
#include "nanet/setup_error.hpp"
using namespace nanet;
using namespace nanet::engine;

static std::shared_ptr<Processor> count(const ProcessorSettings&) { return std::make_shared<CountProcessor>(); }
static std::shared_ptr<Processor> throws(const ProcessorSettings&) { throw std::runtime_error("in make"); }
static std::shared_ptr<Processor> none(const ProcessorSettings&) { return nullptr; }
static std::unique_ptr<link::Link> open_none(const LinkConfig&, LinkParts) { return nullptr; }

struct Checks final : Processor {
  void check(const EngineConfig&) const override { throw std::runtime_error("checked"); }
  std::unique_ptr<Consumer> make_consumer(LaneParts) override { return nullptr; }
};
struct MakesNone final : Processor {
  std::unique_ptr<Consumer> make_consumer(LaneParts) override { return nullptr; }
};
template <class Type>
std::shared_ptr<Processor> made(const ProcessorSettings&) { return std::make_shared<Type>(); }

NANET_PLUGIN([](Kinds& kinds) {
  const char* const said = std::getenv("NANET_TEST_PLUGIN");
  const std::string how = said != nullptr ? said : "";
  kinds.add(ProcessorKind{.name = "made", .make = throws, .done = std::nullopt});
  kinds.add(ProcessorKind{.name = "null", .make = none, .done = std::nullopt});
  kinds.add(ProcessorKind{.name = "checks", .make = made<Checks>, .done = std::nullopt});
  kinds.add(ProcessorKind{.name = "consumer", .make = made<MakesNone>, .done = std::nullopt});
  kinds.add(LinkKind{.name = "none", .open = open_none});
  if (how == "throws") throw std::runtime_error("no pixels");
  if (how == "throws_any") throw 5;
  if (how == "refuses") throw SetupError("no camera", "it is off", "switch it on");
  if (how == "twice") kinds.add(ProcessorKind{.name = "made", .make = count});
  if (how == "as_ours") kinds.add(LinkKind{.name = "udp", .open = open_none});
});
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Compiles a text, C or C++, to lib{name}.so and says where it is."""
    folder = tmp_path_factory.mktemp("plugins")
    shown = folder / "nanet_plugin.map"  # as cmake/NanetPlugin.cmake has it
    shown.write_text("{ global: nanet_plugin; local: *; };")

    def compile_one(name: str, text: str) -> Path:
        library = folder / f"lib{name}.so"
        is_c = "nanet/" not in text
        source = folder / f"{name}.{'c' if is_c else 'cpp'}"
        source.write_text(text)
        if is_c:
            command = ["cc", "-shared", "-fPIC", str(source), "-o", str(library)]
        else:
            command = [
                "c++", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", f"-Wl,--version-script={shown}",
                f"-I{ROOT / 'include'}", f"-I{EXAMPLE}", str(source), *[str(BUILD / f"libnanet_{one}.a") for one in LIBRARIES],
                "-o", str(library),
            ]  # fmt: skip
        subprocess.run(command, check=True)
        return library

    return compile_one


@pytest.fixture(scope="module")
def camera(compiled: Callable[[str, str], Path]) -> Path:
    return compiled("own_camera", (EXAMPLE / "plugin.cpp").read_text())


@pytest.fixture(scope="module")
def makes(compiled: Callable[[str, str], Path]) -> Path:
    return compiled("makes", PLUGIN)


def configuration(plugin: Path | str, **changes: Any) -> dict[str, Any]:
    said: dict[str, Any] = yaml.safe_load((EXAMPLE / "own_camera.yaml").read_text())
    return said | {"plugins": [str(plugin)]} | changes


def nanet(tmp_path: Path, said: dict[str, Any], verb: str = "run") -> subprocess.CompletedProcess[str]:
    (tmp_path / "engine.yaml").write_text(yaml.safe_dump(said, sort_keys=False))
    command = [sys.executable, "-m", "nanet", verb, "engine.yaml", "--json", "result.json"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)


def refusal(tmp_path: Path, said: dict[str, Any]) -> str:
    """What an engine in this process is refused with, which is what the command prints."""
    from nanet import ConfigError, Engine, SetupError

    path = tmp_path / "engine.yaml"
    path.write_text(yaml.safe_dump(said, sort_keys=False))
    with pytest.raises((ConfigError, SetupError)) as refused:
        Engine(path)
    return str(refused.value)


def test_a_run_with_all_three_kinds(camera: Path, tmp_path: Path) -> None:
    shutil.copy(camera, tmp_path)  # as the example says: a path from the working directory
    done = nanet(tmp_path, configuration("libown_camera.so"))
    assert done.returncode == 0, done
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["counters"]["packets_accepted"] == 5000
    assert result["counters"]["events_received"] == result["counters"]["events_answered"] == 40_000
    assert result["verdict"]["kept"]
    assert result["links"][0]["path"] == "made-up camera"
    assert result["config"]["processor"]["settings"] == {"bright_pixels": 4}
    assert "40,000" in done.stdout  # of the live table's last frame


def test_answers_and_settings(camera: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        said = configuration(camera, answers={"endpoint": f"udp://127.0.0.1:{receiver.getsockname()[1]}"})
        said["links"][0]["settings"] = {"packets": 10, "packets_per_s": 1000}
        done = nanet(tmp_path, said)
        assert done.returncode == 0, done
        answered: list[int] = []
        while len(answered) < 20:
            packet = receiver.recv(2048)
            answered += [int.from_bytes(packet[at : at + 4], "little") for at in range(0, len(packet), 4)]
    assert sorted(answered) == sorted(8 * p + e for p in range(10) for e in (4, 5))


def test_an_engine_in_a_program(camera: Path) -> None:
    import nanet

    with nanet.Engine(configuration(camera)) as engine:
        while not engine.inputs_finished:
            pass
    assert engine.result is not None
    assert engine.result["counters"]["events_answered"] == 40_000


def test_our_own_kinds_beside_them(camera: Path, tmp_path: Path) -> None:
    assert nanet(tmp_path, configuration(camera, processor={"kind": "count"})).returncode == 0
    assert json.loads((tmp_path / "result.json").read_text())["counters"]["packets_accepted"] == 5000


def test_the_command_says_one_line_and_starts_nothing(makes: Path, tmp_path: Path) -> None:
    for said, expected in (
        (
            configuration("gone.so"),
            "engine.yaml:4: plugins[0]: plug-in gone.so cannot be read (",
        ),
        (
            configuration(makes, processor={"kind": "made"}),
            "processor made of plug-in libmakes.so cannot be made (it threw: in make)",
        ),
    ):
        said["links"] = [{"name": "a", "endpoint": "udp://127.0.0.1:6233", "protocol": "raw", "memory_region": "main"}]
        done = nanet(tmp_path, said)
        assert done.returncode == 2, done
        assert done.stderr.removeprefix("nanet: ").removeprefix("engine.yaml:1: ").startswith(expected), done.stderr
        assert done.stderr.count("\n") == 1
        assert not done.stdout
        assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("empty", "", "libempty.so is no plug-in of nanet (it has no nanet_plugin) write NANET_PLUGIN(...) in one of its sources"),
        (
            "abi", C_PLUGIN % {"abi": 99, "built": "(char*)8", "nanet": "(char*)8"},
            "plug-in libabi.so does not fit this nanet (its ABI version is 99, this is 2) build it again, with the nanet that shall load it",
        ),
        (
            "old", C_PLUGIN % {"abi": 2, "built": '""', "nanet": '"nanet 0.0.1"'},
            "plug-in libold.so does not fit this nanet (it was built with nanet 0.0.1, this is nanet ",
        ),
        (
            "layout", C_PLUGIN % {"abi": 2, "built": '"libstdc++ ABI 0, sizes 8 24"', "nanet": '"nanet VERSION"'},
            "plug-in liblayout.so does not fit this nanet (it has libstdc++ ABI 0, sizes 8 24, this nanet libstdc++ ABI 1, sizes 8 32 ",
        ),
    ],
)  # fmt: skip
def test_a_plugin_that_is_refused(
    compiled: Callable[[str, str], Path], tmp_path: Path, name: str, text: str, expected: str
) -> None:
    from nanet import _core

    library = compiled(name, text.replace("VERSION", _core.build_info()["version"]))
    assert refusal(tmp_path, configuration(library)).startswith(f"engine.yaml:4: plugins[0]: {expected}")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("throws", " cannot tell its kinds (it threw: no pixels) see what the plug-in's author says of that"),
        ("throws_any", " cannot tell its kinds (it threw what is no std::exception) ask the plug-in's author"),
        ("refuses", ": no camera (it is off) switch it on"),
        ("twice", ": there are two kinds of processor with the name made (a configuration could mean either) rename one"),
        ("as_ours", ": there are two kinds of link with the name udp (a configuration could mean either) rename one"),
    ],
)
def test_a_plugin_that_cannot_tell_its_kinds(
    makes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, expected: str
) -> None:
    library = shutil.copy(makes, tmp_path / f"lib{how}.so")  # one that was loaded well is asked once only
    monkeypatch.setenv("NANET_TEST_PLUGIN", how)
    assert refusal(tmp_path, configuration(library)) == f"engine.yaml:4: plugins[0]: plug-in lib{how}.so{expected}"


def test_a_file_that_is_none(camera: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.so").write_text("no library")
    line = refusal(tmp_path, configuration("text.so"))
    assert line.startswith("engine.yaml:4: plugins[0]: plug-in text.so does not load (./text.so: ")
    line = refusal(tmp_path, configuration("gone.so"))
    assert line == (
        f"engine.yaml:4: plugins[0]: plug-in gone.so cannot be read ({tmp_path}/gone.so: No such file or directory)"
        " give the path of a shared library"
    )
    line = refusal(tmp_path, configuration(camera, plugins=[str(camera), os.path.relpath(camera, tmp_path)]))
    assert line.startswith(
        "engine.yaml:3: plugins: plug-in libown_camera.so: there are two kinds of protocol with the name camera ("
    )


def test_root_loads_nothing_that_anyone_may_write(camera: Path, tmp_path: Path) -> None:
    library = shutil.copy(camera, tmp_path / "libopen.so")
    library.chmod(0o666)
    done = nanet(tmp_path, configuration(library), "validate")
    if os.geteuid() == 0:
        assert done.returncode == 2
        assert "plug-in libopen.so is not loaded as root (any account may write it) chmod o-w " in done.stderr
    else:
        assert done.returncode == 0, done


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "made",
            "processor made of plug-in libmakes.so cannot be made (it threw: in make) see what the plug-in's author says of that",
        ),
        ("null", "processor null of plug-in libmakes.so cannot be made (it gave none) ask the plug-in's author"),
        (
            "checks",
            "processor checks of plug-in libmakes.so cannot check the configuration (it threw: checked) see what the plug-in's author"
            " says of that",
        ),
        ("consumer", "processor consumer of plug-in libmakes.so cannot make its consumer (it gave none) ask the plug-in's author"),
    ],
)
def test_what_is_made_of_a_kind(makes: Path, tmp_path: Path, kind: str, expected: str) -> None:
    said = configuration(makes, processor={"kind": kind})
    said["links"] = [{"name": "a", "endpoint": "udp://127.0.0.1:6233", "protocol": "raw", "memory_region": "main"}]
    assert refusal(tmp_path, said).removeprefix("engine.yaml:1: ") == expected


# Packets of one event each, which name no source.
UNNUMBERED = """
#include <nanet/engine/plugin.hpp>
#include <nanet/engine/protocol_of.hpp>
#include <nanet/event/event_sink.hpp>
using namespace nanet;
using namespace nanet::engine;

struct Plain {
  static constexpr bool has_sequence = false;
  static constexpr bool has_events = true;
  static constexpr std::size_t kScratchHits = 0;
  static constexpr bool kHitsPadded = false;
  using Packet = std::span<const std::byte>;
  static Inspection inspect(std::span<const std::byte>, PacketFacts& facts) {
    facts.event_count = 1;
    return {.accepted = true, .refused_as = {}};
  }
  static Inspection inspect_head(std::span<const std::byte> head, std::size_t, PacketFacts& facts) { return inspect(head, facts); }
  static Packet open(std::span<const std::byte> payload) { return payload; }
  static std::size_t event_count(const Packet&) { return 1; }
  template <class Room, class Visit>
  static void for_each_event(const Packet& packet, Room, Visit visit) {
    visit(event::Event{.hits = reinterpret_cast<const std::uint16_t*>(packet.data()), .count = 1});
  }
};
inline constexpr Protocol kPlain = protocol_of<Plain>("plain");

struct Sink final : event::EventSink {
  explicit Sink(flow::Counters& counters) : counters_(counters) {}
  void take(std::span<const event::Event> events, std::uint64_t) override {
    counters_.add(flow::Counter::events_answered, events.size());
  }
  flow::Counters& counters_;
};
struct Takes final : Processor {
  std::unique_ptr<Consumer> make_consumer(LaneParts parts) override {
    return std::make_unique<EventBuilder>(parts.completions, std::move(parts.origins), parts.source_count, std::nullopt,
                                          std::make_unique<Sink>(parts.counters), parts.counters);
  }
};
static std::shared_ptr<Processor> takes(const ProcessorSettings&) { return std::make_shared<Takes>(); }

NANET_PLUGIN([](Kinds& kinds) {
  kinds.add(kPlain);
  kinds.add(ProcessorKind{.name = "takes", .make = takes});
});
"""


def test_events_of_packets_without_numbers(compiled: Callable[[str, str], Path]) -> None:
    """Such packets name no source, and the configuration none: they are all of one."""
    import nanet

    said = configuration(compiled("unnumbered", UNNUMBERED), processor={"kind": "takes"})
    port = free_ports(1)[0]
    said["links"] = [{"name": "a", "endpoint": f"udp://127.0.0.1:{port}", "protocol": "plain", "memory_region": "main"}]
    with nanet.Engine(said) as engine, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(50):
            sender.sendto(b"event!", ("127.0.0.1", port))
        deadline = time.monotonic() + 20
        while engine.counters()["events_answered"] < 50 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert engine.result is not None
    assert engine.result["counters"]["events_received"] == engine.result["counters"]["events_answered"] == 50


def test_a_link_that_is_none(makes: Path, tmp_path: Path) -> None:
    said = configuration(makes, processor={"kind": "count"})
    said["links"][0] |= {"endpoint": "none://x", "settings": None, "protocol": "raw", "sources": []}
    assert refusal(tmp_path, said) == "link camera of plug-in libmakes.so cannot be opened (it gave none) ask the plug-in's author"


@pytest.mark.parametrize(
    ("changes", "link", "expected"),
    [
        ({"processor": {"kind": "brigth"}}, {}, "processor.kind: unknown processor 'brigth' (with these plug-ins it can be count, rich,"
         " forward, km3, bright) did you mean 'bright'?"),
        ({}, {"protocol": "camra"}, "links[0].protocol: unknown protocol 'camra' (with these plug-ins it can be raw, mgp, m2egp, camera)"
         " did you mean 'camera'?"),
        ({}, {"endpoint": "camra://7"}, "links[0].endpoint: unknown kind of link 'camra' (with these plug-ins it can be udp, xdp, dpdk, ucx,"
         " gateware, torus, pcap, camera) did you mean 'camera'?"),
        ({}, {"endpoint": "camera://"}, "links[0].endpoint: endpoint 'camera://' names no place (only its kind is said) write camera://PLACE"),
        ({}, {"gro": False}, "links[0]: link 'camera' has gro (camera is of a plug-in) remove gro, or see its settings"),
        ({}, {"interface": "eth1"}, "links[0]: link 'camera' has interface (camera is of a plug-in) remove interface, or see its settings"),
        ({}, {"senders": ["10.0.0.0/24"]}, "links[0]: link 'camera' has senders (camera does not say who sent a packet) remove senders"),
        ({}, {"sources": []}, "links[0]: link 'camera' has no sources ("),
        ({}, {"protocol": "raw", "sources": []}, "the processor cannot read link 'camera' (its protocol is raw)"),
        ({"plugins": "own.so"}, {}, "plugins: 'own.so' is not allowed (it must be a list)"),
        ({"processor": {"kind": "bright", "settings": [1]}}, {}, "processor.settings: [1] is not allowed (it must be a table of keys and values)"),
        ({}, {"settings": {"packets": 1 << 63}}, "links[0].settings: the number 9223372036854775808 is not usable (it has more than 64 bits)"),
        ({}, {"settings": {"packets": "many"}}, "link camera of plug-in libown_camera.so: settings: packets is not usable (it is a number from 1 to 1,000,000,000) write one"),
        ({}, {"settings": {"pakets": 5}}, "settings: unknown key 'pakets' (the camera has no such setting) remove it"),
        ({}, {"endpoint": "camera://256"}, "link camera: '256' is no camera (cameras have numbers up to 255) write camera://7"),
        ({"processor": {"kind": "bright", "cuts": {"min_hits": 5}}}, {}, "processor.cuts is configured (bright is of a plug-in, which reads its"
         " settings) remove it, or see what processor.settings can have"),
        ({"processor": {"kind": "bright", "merge": {}}}, {}, "processor.merge is configured (processor bright merges nothing) set it to null"),
        ({"processor": {"kind": "bright", "runtime": "persistent"}}, {}, "processor.runtime is configured (bright is of a plug-in"),
        ({"processor": {"kind": "count", "settings": {}}}, {}, "processor.settings is configured (count is of no plug-in) remove it"),
        ({"answers": {"endpoint": "udp://127.0.0.1:6299", "source_id": 3}}, {}, "answers.source_id is configured (processor bright writes"
         " packets of its own) remove it"),
        ({"answers": {"endpoint": "udp://127.0.0.1:6299", "via": "camera"}}, {}, "answers cannot leave by link 'camera' (camera only receives)"),
    ],
)  # fmt: skip
def test_what_a_configuration_cannot_say(
    camera: Path, tmp_path: Path, changes: dict[str, Any], link: dict[str, Any], expected: str
) -> None:
    said = configuration(camera, **changes)
    said["links"][0] |= link
    assert expected in refusal(tmp_path, said)


def test_without_plugins_their_names_are_refused(tmp_path: Path) -> None:
    said = configuration("")
    del said["plugins"]
    problems = nanet(tmp_path, said, "validate").stderr
    assert "processor.kind: 'bright' is not allowed (it must be one of count, rich, forward, km3)" in problems
    assert "for one of a plug-in add plugins: [FILE.so]" in problems
    assert "links[0].protocol: 'camera' is not allowed (it must be one of raw, mgp, m2egp, or a declared format)" in problems
    assert "endpoint 'camera://7' is of an unknown kind (here it can be udp, xdp, dpdk, ucx, gateware, torus, pcap)" in problems


def test_validate_checks_the_settings_of_a_processor(camera: Path, tmp_path: Path) -> None:
    done = nanet(tmp_path, configuration(camera, processor={"kind": "bright", "settings": {"bright_pixls": 4}}), "validate")
    assert done.returncode == 2
    assert "processor bright of plug-in libown_camera.so: settings: unknown key 'bright_pixls' (" in done.stderr
    assert not json.loads((tmp_path / "result.json").read_text())["valid"]


def test_validate_names_what_plugins_add(camera: Path, tmp_path: Path) -> None:
    done = nanet(tmp_path, configuration(camera), "validate")
    assert done.returncode == 0, done
    assert "plug-ins: protocol camera, processor bright, link camera" in done.stdout
