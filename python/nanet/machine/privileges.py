# SPDX-License-Identifier: Apache-2.0
"""Giving up root once everything is set up: what listens to the network needs no privilege to go on."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from nanet.config.errors import ConfigError

# linux/prctl.h, linux/capability.h, linux/securebits.h
_PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 28, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = range(64)
# In /proc/PID/status, what a thread can use. CapInh of a thread that a library made before `prepare` may stay: it gives a capability only to
# a program with file capabilities that this thread executes, and it executes none.
_SETS = ("CapEff", "CapPrm", "CapAmb")


def account(name: str) -> pwd.struct_passwd:
    """The account of that name, which is not root's. Raises ConfigError, also where this process could not become it and no more than it."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ConfigError([f"run.user: there is no account '{name}' (this machine does not know it) see: getent passwd"]) from None
    if entry.pw_uid == 0:
        raise ConfigError([f"run.user: '{name}' is root (no privilege would be dropped) name another account, such as nobody"])
    if os.geteuid() not in (0, entry.pw_uid):
        raise ConfigError([f"run.user: cannot become '{name}' (not started as root) start as root, or remove run.user"])
    if os.geteuid() != 0 and _held(_status("self")):
        why = "not started as root, and with capabilities, which threads that are there already would keep"
        raise ConfigError(
            [
                f"run.user: '{name}' would not be all that this is ({why}) start as root, or without AmbientCapabilities, or remove run.user"
            ]
        )
    return entry


def prepare() -> None:
    """What threads keep for themselves: call it before there is a second one, they have it from their maker. The set-up loses nothing by it.

    Nothing can be had again by executing a program: no set-uid, no bounding set, nothing inheritable, nothing ambient; and leaving root takes
    all capabilities, whatever a service manager set (SecureBits).
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    with contextlib.suppress(OSError):  # they are locked, or this is not root: `become` looks at what is left
        _prctl(_PR_SET_SECUREBITS, 0)
    with contextlib.suppress(OSError):  # not root, or the last that the kernel knows
        for one in _CAPABILITIES:
            _prctl(_PR_CAPBSET_DROP, one)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    now = _status("self")
    _set_capabilities(int(now["CapEff"], 16), int(now["CapPrm"], 16))


def become(entry: pwd.struct_passwd) -> None:
    """This process, with all its threads, becomes that account for good; capabilities go with it. Sockets and memory that it has, stay.

    After `prepare`. Raises ConfigError where a thread would keep a capability.
    """
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
        os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    _set_capabilities(0, 0)
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it ended
            if _held(_status(f"self/task/{thread.name}")):
                raise ConfigError(
                    [
                        f"run.user: a thread keeps capabilities as '{entry.pw_name}' (SecureBits are locked) take them out of the service"
                    ]
                )


def _held(status: Mapping[str, str]) -> bool:
    return any(int(status[one], 16) for one in _SETS)


def _status(of: str) -> dict[str, str]:
    lines = Path(f"/proc/{of}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    if ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} is refused")


def _set_capabilities(effective: int, permitted: int) -> None:
    """Of the calling thread; none inheritable."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    words = [(one >> shift) & 0xFFFFFFFF for shift in (0, 32) for one in (effective, permitted, 0)]
    if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)(*words)) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")
