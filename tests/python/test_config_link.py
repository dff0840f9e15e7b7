# SPDX-License-Identifier: Apache-2.0
"""Links of each kind in a configuration: which keys belong to which, and what is said of those that do not."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from nanet import _core
from nanet.config import components, engine
from nanet.config import link as config_link
from nanet.config.errors import ConfigError, validated
from nanet.rdma import tokens
from nanet.run.native import native_config

BASE: dict[str, Any] = {
    "version": 1,
    "memory_regions": [{"name": "rich", "buffer_bytes": 16384}],
    "links": [{"name": "board", "endpoint": "xdp://10.0.0.1:6200", "memory_region": "rich", "sources": [{"name": "a"}]}],
    "answers": {"endpoint": "udp://10.0.0.2:6300"},
}


OWN: dict[str, Any] = {"device": "net_af_packet0,iface=eth1", "payload_memory": "host"}
CARD: dict[str, Any] = {"card": "0000:65:00.0", "mac": "02:00:00:00:00:01"}
TORUS: dict[str, Any] = {"endpoint": "torus://3", "torus": {"file": "/dev/shm/torus"}}
NODE: dict[str, Any] = {"endpoint": "gateware://10.0.0.1:6200", "protocol": "m2egp", "gateware": {"merge": {}}}
SLOW_CONTROL = {"control": "udp://127.0.0.1:7300", "floor_control": "udp://127.0.0.1:7500"}
FLOORS: dict[str, Any] = {"endpoint": "gateware://10.0.0.1:7100"}
TWO_SOURCES = [{"name": "a"}, {"name": "b", "source_sub_id": 1}]
ON_GPU: dict[str, Any] = {"device": "0000:3b:00.0", "payload_memory": "gpu", "split_bytes": 66}


def with_link(**keys: Any) -> dict[str, Any]:
    data = copy.deepcopy(BASE)
    data["links"][0].update(keys)
    return data


def only_problem(data: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        validated(engine.EngineConfig, data)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("keys", "scheme"),
    [
        ({}, "xdp"),
        ({"interface": "eth1", "xdp": {"queues": [0, 1], "zero_copy": "required", "attach": "driver"}}, "xdp"),
        ({"endpoint": "dpdk://10.0.0.1:6200", "dpdk": {"device": "net_af_packet0,iface=eth1", "address": "10.0.0.1/16"}}, "dpdk"),
        (
            {
                "endpoint": "dpdk://[2001:db8::2]:6200",
                "dpdk": {"device": "net_af_packet0,iface=eth1", "address": "2001:db8::2/56", "gateway": "fe80::1"},
            },
            "dpdk",
        ),
        ({"endpoint": "xdp://[2001:db8::1]:6200", "interface": "eth1"}, "xdp"),
        ({"packet_bytes_max": 3784, "xdp": {"payloads": "in_place"}}, "xdp"),
        ({"endpoint": "dpdk://10.0.0.1:6200", "dpdk": OWN | {"payloads": "in_place"}}, "dpdk"),
        ({"endpoint": "udp://10.0.0.1:6200", "interface": "eth1", "gro": False}, "udp"),
        ({"endpoint": "udp://[2001:db8::1]:6200", "senders": ["2001:db8::/32", "fd00::7/128"], "gro": False}, "udp"),
        ({"endpoint": "ucx://10.0.0.1:6200", "packet_bytes_max": 16000}, "ucx"),
        ({"endpoint": "ucx://10.0.0.1:6200", "ucx": {"ring_count": 4, "memory": "host", "transports": "rc,tcp"}}, "ucx"),
        ({"endpoint": "gateware://10.0.0.1:6200"}, "gateware"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": {"line_gbps": 1}}, "gateware"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD}, "gateware"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"next_hop": "02:00:00:00:00:02"}}, "gateware"),
        (NODE, "gateware"),
        (NODE | {"gateware": {"merge": {"ports": 2, "window_us": 1000, "complete_only": False}}}, "gateware"),
        (NODE | {"endpoint": "gateware://10.0.0.1:65532"}, "gateware"),
        (TORUS, "torus"),
        (TORUS | {"torus": {"file": "/dev/shm/t", "senders": [0, 63], "slot_count": 2, "wait_ms": 0}}, "torus"),
        ({"endpoint": "pcap://out/run.pcap"}, "pcap"),
        ({"endpoint": "pcap:///tmp/run.pcap", "pcap": {"port": 6200, "pace": "packets", "packets_per_s": 1e5}}, "pcap"),
    ],
)
def test_a_link_of_each_kind(keys: dict[str, Any], scheme: str) -> None:
    whole = validated(engine.EngineConfig, with_link(**keys))
    assert whole.links[0].scheme == scheme
    assert whole.links[0].endpoint == keys.get("endpoint", "xdp://10.0.0.1:6200")
    assert validated(engine.EngineConfig, whole.model_dump(mode="json")) == whole  # as the engine's process gets it


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"endpoint": "raw://10.0.0.1:6200"}, "here it can be udp, xdp, dpdk, ucx, gateware, torus, pcap"),
        ({"endpoint": "torus://3"}, "link 'board' has no torus (nothing says which one its node is of) add torus: {file: PATH}"),
        ({"endpoint": "torus://64", "torus": {"file": "t"}}, "names no node (there are at most 64) write it as torus://3"),
        ({"endpoint": "torus://10.0.0.1:6200", "torus": {"file": "t"}}, "names no node"),
        (TORUS | {"torus": {"file": "t", "slot_count": 48}}, "slot_count 48 is not a power of two"),
        (TORUS | {"torus": {"file": "t", "senders": [1, 1]}}, "a sender is named twice"),
        (TORUS | {"torus": {"file": "t", "senders": [1, 3]}}, "node 3 is a sender to itself (link 'board' is at that node, which"),
        (TORUS | {"senders": ["10.0.0.1"]}, "torus.senders names the nodes that may send"),
        (TORUS | {"gro": False}, "torus has no socket buffer and no super-packets"),
        (TORUS | {"interface": "eth1"}, "its network is simulated"),
        ({"dpdk": {"device": "0000:3b:00.0"}}, "has a section dpdk"),
        ({"endpoint": "dpdk://10.0.0.1:6200"}, "has no device"),
        ({"endpoint": "dpdk://10.0.0.1:6200", "interface": "eth1", "dpdk": {"device": "net_ring0"}}, "has interface"),
        ({"endpoint": "gateware://10.0.0.1:6200", "interface": "eth1"}, "its wire is simulated"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD, "interface": "eth1"}, "the NIC is its interface"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD, "senders": ["10.0.0.7"]}, "not who sent it) remove senders"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD, "busy_poll_us": 5}, "has busy_poll_us"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD, "gro": False}, "has gro"),
        ({"endpoint": "gateware://0.0.0.0:6200", "gateware": CARD}, "has no address of its own"),
        ({"endpoint": "gateware://239.1.2.3:6200"}, "(it is a multicast group, and gateware joins none) use udp://"),
        ({"endpoint": "ucx://239.1.2.3:6200"}, "ucx joins none"),
        ({"endpoint": "udp://232.1.2.3:6200"}, "232.0.0.0/8 is for groups of known senders) list the address of each in `senders`"),
        ({"endpoint": "udp://232.1.2.3:6200", "senders": ["10.0.0.0/8"]}, "232.0.0.0/8 is for groups of known senders"),
        ({"endpoint": "udp://232.1.2.3:6200", "senders": ["fd00::1"]}, "its sender fd00::1 is of another family"),
        ({"endpoint": "xdp://232.1.2.3:6200"}, "232.0.0.0/8 is for groups of known senders"),
        ({"endpoint": "dpdk://[ff02::9]:6200", "dpdk": OWN}, "dpdk joins none"),
        ({"endpoint": "gateware://10.0.0.1:6200", "packet_bytes_max": 8961}, "(the NIC takes 1 to 8960) lower it"),
        (
            {"endpoint": "gateware://10.0.0.1:6200", "gateware": {"next_hop": CARD["mac"], "mac": CARD["mac"]}},
            "there is mac without a card or a board",
        ),
        (
            {"endpoint": "gateware://10.0.0.1:6200", "gateware": {"next_hop": CARD["mac"]}},
            "there is next_hop without a card or a board",
        ),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": {"card": CARD["card"]}}, "there is a NIC without mac"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": {"host_interface": "eth1"}}, "there is a NIC without mac"),
        (
            {"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"host_interface": "eth1"}},
            "there are card and host_interface",
        ),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"line_gbps": 1}}, "there is line_gbps with a card"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": {"line_gbps": 25}}, "line_gbps"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"seed": 1}}, "unknown key 'seed'"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"card": "65:00.0"}}, "'65:00.0' is not a PCI address"),
        ({"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"mac": "0200:0000:0001"}}, "is not an Ethernet address"),
        (
            {"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"mac": "01:00:5e:00:00:01"}},
            "is not the address of a station",
        ),
        (
            {"endpoint": "gateware://10.0.0.1:6200", "gateware": CARD | {"next_hop": "00:00:00:00:00:00"}},
            "is not the address of a station",
        ),
        ({"gateware": CARD}, "has a section gateware"),
        (
            NODE | {"protocol": "mgp"},
            "merges in the node and has protocol mgp (what comes out of the node are packets of merged events)",
        ),
        (NODE | {"sources": TWO_SOURCES}, "merges in the node and has 2 sources"),
        (NODE | {"senders": ["10.0.0.7"]}, "has senders (an event of several boards has no one sender)"),
        (NODE | {"endpoint": "gateware://10.0.0.1:65533"}, "choose a port of 1 to 65532"),
        (NODE | {"interface": "eth1"}, "its wire is simulated"),
        (
            NODE | {"gateware": CARD | {"merge": {}}},
            "there is merge with a card or a board (only the simulated node merges so far)",
        ),
        (NODE | {"gateware": {"merge": {}, "line_gbps": 1}}, "the node cannot be simulated at 1 Gb/s"),
        (NODE | {"gateware": {"merge": {"ports": 5}}}, "gateware.merge.ports"),
        (NODE | {"gateware": {"merge": {"window": 5}}}, "unknown key 'window'"),
        (
            FLOORS | {"gateware": {"floors": {}}},
            "has links of floors and protocol mgp (what comes out of the node are packets of floors)",
        ),
        (FLOORS | {"gateware": {"floors": {}, "merge": {}}}, "there is floors with a card, a board or merge"),
        (FLOORS | {"gateware": {"floors": {}, "line_gbps": 1}}, "there is line_gbps with floors (their links have mbps)"),
        (FLOORS | {"gateware": {"floors": {"slice_us": 1050}}}, "there are slices of 1050 us (they are whole frames of 100 us)"),
        (FLOORS | {"gateware": {"floors": {"floors": 5}}}, "gateware.floors.floors"),
        (
            FLOORS | {"gateware": {"floors": {"control": "udp://127.0.0.1:7300"}}},
            "there is one of control and floor_control (slow control goes from the one to the other by the links)",
        ),
        (
            FLOORS | {"gateware": {"floors": SLOW_CONTROL | {"slice_us": 100}}},
            "there is slow control with slices of one frame",
        ),
        (FLOORS | {"gateware": {"floors": {"mbps": 1000}}}, "gateware.floors.mbps"),
        ({"endpoint": "pcap://"}, "names no file"),
        ({"endpoint": "pcap://a.pcap", "interface": "eth1"}, "it plays a file"),
        ({"endpoint": "pcap://a.pcap", "pcap": {"pace": "packets"}}, "without packets_per_s"),
        ({"endpoint": "pcap://a.pcap", "pcap": {"packets_per_s": 5}}, "with packets_per_s"),
        ({"endpoint": "ucx://10.0.0.1:6200", "interface": "eth1"}, "has interface (UCX chooses it)"),
        ({"endpoint": "ucx://10.0.0.1:6200", "senders": ["10.0.0.7"]}, "ucx.token_file says who may send"),
        ({"endpoint": "ucx://10.0.0.1:6200", "busy_poll_us": 5}, "has busy_poll_us"),
        ({"endpoint": "ucx://10.0.0.1:6200", "socket_buffer_bytes": 65536}, "has socket_buffer_bytes"),
        ({"endpoint": "ucx://10.0.0.1:6200", "ucx": {"ring_count": 1025}}, "ring_count"),
        ({"endpoint": "ucx://10.0.0.1:6200", "ucx": {"slot_count": 0}}, "slot_count"),
        ({"endpoint": "ucx://10.0.0.1:6200", "ucx": {"transports": "rc tcp"}}, "transports"),
        ({"ucx": {}}, "has a section ucx"),
        ({"gro": False}, "has gro"),
        ({"socket_buffer_bytes": 65536}, "has socket_buffer_bytes"),
        ({"packet_bytes_max": 9015}, "packet_bytes_max 9015"),
        ({"endpoint": "ucx://[2001:db8::1]:6200"}, "ucx knows IPv4 only) use udp://"),
        ({"endpoint": "dpdk://[2001:db8::g]:6200", "dpdk": OWN}, "write it as dpdk://[2001:db8::1]:6200"),
        ({"endpoint": "dpdk://[2001:db8::2]:6200", "dpdk": OWN | {"address": "2001:db8::2"}}, "address"),
        ({"endpoint": "udp://[2001:db8::g]:6200"}, "is not an IPv6 address in brackets"),
        ({"endpoint": "udp://[::1:6200"}, "is not an IPv6 address in brackets"),
        ({"endpoint": "udp://[::1]6200"}, "has no usable port"),
        ({"endpoint": "udp://2001:db8::1:6200"}, "has no usable address"),
        ({"senders": ["2001:db8::1/32"]}, "is not an address or network"),
        ({"senders": ["10.0.0.1/24"]}, "is not an address or network"),
        ({"xdp": {"frame_count": 1000}}, "choose 512 or 1024"),
        ({"xdp": {"queues": [0, 0]}}, "a queue is named twice"),
        ({"packet_bytes_max": 3785, "xdp": {"payloads": "in_place"}}, "(a payload in place lies in one frame) set at most 3784"),
        ({"xdp": {"payloads": "in_place"}, "faults": {"loss": 0.1}}, "has faults, but its payloads stay in place"),
        ({"xdp": {"payloads": "in_place"}, "record": {"file": "a.pcap"}}, "has record, but its payloads stay in place"),
        ({"endpoint": "dpdk://10.0.0.1:6200", "dpdk": {"device": "a", "payloads": "in_place"}}, "set payload_memory: host"),
        (
            {"endpoint": "dpdk://10.0.0.1:6200", "dpdk": OWN | {"payloads": "in_place", "split_bytes": 66}},
            "a consumer on the host reads each in one piece",
        ),
        ({"endpoint": "dpdk://10.0.0.1:6200", "dpdk": {"device": "a", "payload_memory": "gpu"}}, "set split_bytes: 66"),
        ({"endpoint": "dpdk://10.0.0.1:6200", "dpdk": ON_GPU}, "the processor does not run on one"),
    ],
)
def test_keys_of_another_kind_are_refused(keys: dict[str, Any], said: str) -> None:
    assert said in only_problem(with_link(**keys))


def test_answers_leave_by_a_card_that_knows_the_next_hop() -> None:
    data = with_link(endpoint="gateware://10.0.0.1:6200", gateware=CARD)
    data["answers"]["via"] = "board"
    assert "set gateware.next_hop to the Ethernet address" in only_problem(data)
    data["links"][0]["gateware"] = CARD | {"next_hop": "0A:00:00:00:00:02"}
    gateware = validated(engine.EngineConfig, data).links[0].gateware
    assert gateware is not None
    assert gateware.next_hop == "0a:00:00:00:00:02"


@pytest.mark.parametrize(("key", "text"), [("card", "0000:03:00.0"), ("mac", "52:54:00:12:34:56")])
def test_addresses_that_yaml_takes_for_numbers(key: str, text: str) -> None:
    data = with_link(endpoint="gateware://10.0.0.1:6200", gateware=CARD | {key: yaml.safe_load(text)})
    assert "is a number (YAML reads digits, also between colons, as one) put it in quotes" in only_problem(data)
    data["links"][0]["gateware"] = CARD | {key: yaml.safe_load(f"'{text}'")}
    validated(engine.EngineConfig, data)


def test_a_card_has_one_link() -> None:
    data = with_link(endpoint="gateware://10.0.0.1:6200", gateware=CARD)
    other = {"name": "other", "endpoint": "gateware://10.0.0.2:6200", "sources": [{"name": "b", "source_sub_id": 1}]}
    data["links"].append(data["links"][0] | other)
    data["processor"] = {"merge": {"window_us": 200}}
    assert "give each link a device of its own" in only_problem(data)


def test_the_engine_looks_for_the_card() -> None:
    data = with_link(endpoint="gateware://10.0.0.1:6200", gateware=CARD | {"card": "ffff:ff:1f.7"})
    with pytest.raises(_core.SetupError) as caught:
        _core.Engine(native_config(validated(engine.EngineConfig, data)))
    if _core.build_info()["back_ends"]["gateware"]:
        assert str(caught.value).startswith("there is no PCI device ffff:ff:1f.7 (")
    else:
        warnings.warn("NOT RUN: a card that is not there: nanet was built without gateware", stacklevel=2)
        assert "libnanet_link_gateware.so is neither in" in str(caught.value)


def test_payloads_in_the_memory_of_a_gpu_stay_in_place_and_need_no_room_elsewhere() -> None:
    data = with_link(endpoint="dpdk://10.0.0.1:6200", dpdk=ON_GPU)
    data["processor"] = {"kind": "rich", "runtime": "persistent"}
    link = validated(engine.EngineConfig, data).links[0]
    assert config_link.link_facts(link)["in_place"]
    assert config_link.link_facts(link)["room"][0] == 0
    assert not config_link.link_facts(validated(engine.EngineConfig, BASE).links[0])["in_place"]


def test_only_udp_needs_room_for_a_super_packet() -> None:
    assert "65536 B" in only_problem(with_link(endpoint="udp://10.0.0.1:6200"))


def test_answers_go_by_way_of_a_link_that_is_there() -> None:
    data = copy.deepcopy(BASE)
    data["answers"]["via"] = "board"
    assert validated(engine.EngineConfig, data).answers.via == "board"
    data["answers"]["via"] = "bord"
    assert "did you mean 'board'" in only_problem(data)


def test_packets_leave_for_a_node_of_a_torus_from_a_torus_only() -> None:
    data = with_link(**TORUS)
    data["answers"] = {"endpoint": "torus://0"}
    assert "answers cannot leave for torus://0 (it leaves by a socket) add answers.torus: {file: PATH, node: 0}" in only_problem(
        data
    )
    data["answers"]["torus"] = {"file": "t", "node": 1}
    assert validated(engine.EngineConfig, data).answers.endpoint == "torus://0"
    data["answers"]["torus"]["slot_count"] = 5
    assert "slot_count 5 is not a power of two" in only_problem(data)
    data["answers"] |= {"torus": {"file": "t", "node": 1}, "via": "board"}
    assert "answers has via and torus" in only_problem(data)
    data["answers"]["torus"] = None
    assert validated(engine.EngineConfig, data).answers.via == "board"
    data["answers"]["endpoint"] = "udp://10.0.0.2:6300"
    assert "(link 'board' is torus://3) give torus://..., or remove answers.via" in only_problem(data)
    data["answers"]["endpoint"] = "torus://3"
    assert "packets go to the engine's own link 'board'" in only_problem(data)
    data["answers"] = {"endpoint": "udp://10.0.0.2:6300", "torus": {"file": "t", "node": 1}}
    assert "(it leaves from a node of a torus) write torus://NODE, or remove answers.torus" in only_problem(data)


@pytest.mark.parametrize(
    ("endpoint", "why"), [("ucx://10.0.0.1:6200", "ucx only receives"), ("pcap://a.pcap", "pcap only receives")]
)
def test_answers_cannot_leave_by_a_link_that_only_receives(endpoint: str, why: str) -> None:
    data = with_link(endpoint=endpoint)
    data["answers"]["via"] = "board"
    assert why in only_problem(data)


def test_answers_do_not_leave_by_links_of_floors() -> None:
    data = yaml.safe_load((Path(__file__).parents[2] / "examples" / "km3.yaml").read_text())
    data["links"][0] |= FLOORS | {"packet_bytes_max": 8960, "gateware": {"floors": SLOW_CONTROL}}
    assert validated(engine.EngineConfig, data).links[0].gateware is not None
    data["answers"]["via"] = "tower"
    assert "only slow control goes over the links of floors" in only_problem(data)


UCX = {"endpoint": "ucx://127.0.0.1:6200"}


@pytest.fixture
def not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)


@pytest.mark.usefixtures("not_root")
def test_the_engine_is_given_the_token_and_the_configuration_only_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tokens.VARIABLE, raising=False)
    file = tmp_path / "token"
    file.write_text("5eed\n")
    file.chmod(0o600)
    whole = validated(engine.EngineConfig, with_link(**UCX, ucx={"ring_count": 3, "token_file": str(file)}))
    (link,) = native_config(whole)["links"]
    assert (link["ucx"]["token"], link["ucx"]["ring_count"]) == ("5eed", 3)
    assert "token" not in whole.model_dump(mode="json")["links"][0]["ucx"]
    file.chmod(0o640)
    with pytest.raises(_core.SetupError, match="others than its owner may open it"):
        native_config(whole)


def test_root_receives_over_ucx_only_if_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv(tokens.VARIABLE, "17")
    refused = {
        r"is not opened as root \(.+\) start as another account": with_link(**UCX),
        r"cannot be used with run.user \(its shared memory would be root's": with_link(**UCX) | {"run": {"user": "nobody"}},
    }
    for why, data in refused.items():
        with pytest.raises(_core.SetupError, match=why):
            native_config(validated(engine.EngineConfig, data))
    native_config(validated(engine.EngineConfig, with_link(**UCX, ucx={"allow_root": True})))
    elsewhere = with_link(endpoint="ucx://10.0.0.1:6200", ucx={"trust_network": True}) | {"run": {"user": "nobody"}}
    native_config(validated(engine.EngineConfig, elsewhere))


@pytest.mark.usefixtures("not_root")
def test_without_a_token_a_link_is_on_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tokens.VARIABLE, raising=False)
    (here,) = native_config(validated(engine.EngineConfig, with_link(**UCX)))["links"]
    assert here["ucx"] == {"token": "0"} | components.Ucx().model_dump()
    outside = validated(engine.EngineConfig, with_link(endpoint="ucx://0.0.0.0:6200"))
    with pytest.raises(_core.SetupError, match=r"link 'board' does not listen on ucx://0\.0\.0\.0:6200 without a token"):
        native_config(outside)
    monkeypatch.setenv(tokens.VARIABLE, "17")
    assert native_config(outside)["links"][0]["ucx"]["token"] == "17"


def test_answers_to_the_own_link_are_refused_whatever_its_kind() -> None:
    data = copy.deepcopy(BASE)
    data["answers"]["endpoint"] = "udp://10.0.0.1:6200"
    assert "the engine's own link" in only_problem(data)
