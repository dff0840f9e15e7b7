# SPDX-License-Identifier: Apache-2.0
"""Access Control Services of PCIe bridges: where they redirect requests, a NIC reaches a GPU only by way of the root complex, slowly or not at all.

Read from the bridges' configuration space (PCI Express Base Specification, ACS Extended Capability). Only root may read more than 64 bytes of it.
"""

from __future__ import annotations

from pathlib import Path

from nanet.machine.check import OK, WARN, Check

BRIDGE_CLASS = "0x0604"
EXTENDED_START, EXTENDED_END = 0x100, 0x1000
ACS_ID, ACS_CONTROL = 0x000D, 6
REDIRECT_BITS = 0x04 | 0x08  # peer-to-peer request redirect, completion redirect


def acs_check(devices: Path, is_needed: bool) -> Check:
    """devices: the folder /sys/bus/pci/devices. is_needed: a NIC and a GPU are there."""
    try:
        bridges = sorted(one for one in devices.iterdir() if _text(one / "class").startswith(BRIDGE_CLASS))
    except OSError:
        bridges = []
    if not bridges:
        return Check("ACS", OK, "no PCIe bridge is visible here")
    found = {bridge.name: redirects(bridge / "config") for bridge in bridges}
    hidden = [name for name, state in found.items() if state is None]
    redirecting = [name for name, state in found.items() if state]
    if redirecting:
        text = f"{len(redirecting)} of {len(found)} bridges redirect requests between devices: {_some(redirecting)}"
        if not is_needed:
            return Check("ACS", OK, f"{text} (there is no NIC and GPU that this would separate)")
        mend = f"sudo setpci -s {redirecting[0]} ECAP_ACS+0x6.w=0000, for each; or turn ACS off in the firmware"
        return Check("ACS", WARN, f"{text}: a NIC reaches a GPU slowly or not at all", mend)
    if hidden:
        return Check("ACS", OK, f"not known: the configuration of {len(hidden)} of {len(found)} bridges may be read by root only")
    return Check("ACS", OK, f"none of {len(found)} bridges redirects requests between devices")


def redirects(config: Path) -> bool | None:
    """Whether a bridge redirects. None: its extended configuration space cannot be read."""
    try:
        data = config.read_bytes()
    except OSError:
        return None
    if len(data) <= 64:
        return None
    at = EXTENDED_START
    for _ in range((EXTENDED_END - EXTENDED_START) // 4):  # a chain that is broken may go in circles
        if at < EXTENDED_START or at + 8 > len(data):
            return False
        head = int.from_bytes(data[at : at + 4], "little")
        if head & 0xFFFF == ACS_ID:
            control = int.from_bytes(data[at + ACS_CONTROL : at + ACS_CONTROL + 2], "little")
            return bool(control & REDIRECT_BITS)
        at = head >> 20 & ~3
    return False


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
