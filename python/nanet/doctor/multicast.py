# SPDX-License-Identifier: Apache-2.0
"""What a link that listens on an IPv4 multicast group needs of a machine: an interface that is up, IGMPv3 for named senders, and no reverse-path
filter in the way."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from nanet.config.engine import EngineConfig
from nanet.config.link import LinkConfig
from nanet.machine.check import FAIL, OK, WARN, Check, Reader

__all__ = ["group_checks"]

IFF_UP, IFF_MULTICAST = 0x1, 0x1000
SOURCES_MAX = 10  # the kernel's default of net.ipv4.igmp_max_msf


def group_checks(config: EngineConfig | None, read: Reader) -> Iterator[Check]:
    """One finding for each link that listens on a group."""
    for link in config.links if config is not None else ():
        if (group := _group(link.endpoint)) is not None:
            yield _group_check(link, group, read)


def _group(endpoint: str) -> ipaddress.IPv4Address | None:
    host = endpoint.partition("://")[2].rpartition(":")[0]
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        return None
    return address if address.is_multicast else None


def _group_check(link: LinkConfig, group: ipaddress.IPv4Address, read: Reader) -> Check:
    name = f"group {group}"
    interface = link.interface or _interface_of(group, read("/proc/net/route"))
    if interface is None:
        command = f"sudo ip route add {group}/32 dev IF, or name the interface in links[].interface"
        return Check(name, FAIL, f"link {link.name} cannot join it: no route leads to it", command)
    flags = int(read(f"/sys/class/net/{interface}/flags") or "0", 16)
    if not flags & IFF_UP:
        return Check(name, FAIL, f"{interface} is down, or not there", f"sudo ip link set {interface} up")
    if not flags & IFF_MULTICAST and interface != "lo":
        return Check(name, FAIL, f"{interface} takes no multicast", f"sudo ip link set {interface} multicast on")
    senders = _sources(link)
    who = f"of {len(senders)} sender(s)" if senders else "of any sender"
    found = f"link {link.name} joins it on {interface}, {who}; a switch that snoops IGMP needs a querier in the network"
    if (limit := int(read("/proc/sys/net/ipv4/igmp_max_msf") or SOURCES_MAX)) < len(senders):
        command = f"sudo sysctl -w net.ipv4.igmp_max_msf={len(senders)}"
        return Check(name, FAIL, f"{len(senders)} senders are named, and the kernel takes {limit}", command)
    for where in ("all", interface):
        version = read(f"/proc/sys/net/ipv4/conf/{where}/force_igmp_version")
        if senders and version in ("1", "2"):
            command = f"sudo sysctl -w net.ipv4.conf.{where}.force_igmp_version=0"
            return Check(name, WARN, f"{found}; IGMPv{version} is forced, which names no senders to the network", command)
    for where in ("all", interface):
        if read(f"/proc/sys/net/ipv4/conf/{where}/rp_filter") == "1":
            why = "the kernel drops packets of senders to which no route leads through that interface"
            return Check(name, WARN, f"{found}; {why}", f"sudo sysctl -w net.ipv4.conf.{where}.rp_filter=2")
    return Check(name, OK, found)


def _sources(link: LinkConfig) -> tuple[str, ...]:
    """The senders that are joined by address: all, or none if one of them is a network."""
    senders = tuple(str(sender) for sender in link.senders)
    return senders if all("/" not in sender or sender.endswith("/32") for sender in senders) else ()


def _interface_of(group: ipaddress.IPv4Address, table: str) -> str | None:
    """The interface of the longest prefix in /proc/net/route that holds the group; None: there is no route."""
    best, interface = -1, None
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[0] == "Iface":
            continue
        network, mask = (int.from_bytes(bytes.fromhex(fields[i]), "little") for i in (1, 7))
        if int(group) & mask == network and mask > best:
            best, interface = mask, fields[0]
    return interface
